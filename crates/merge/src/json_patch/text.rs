//! A JSON patch on texts: what refusals show, and what tests compare. `1.0` is not `1` there.

use super::{index, unescape};
use crate::text::Node;
use imbl::Vector;
use scantling_value::{Limits, Str, Value, json};
use std::collections::BTreeMap;

/// The text that a patch makes of the text of a document. The patch is known to be one that can be applied; of any other,
/// what could be done is shown.
pub fn patched_text(document: &str, patch: &str) -> String {
    let mut texts = Texts::new(document, patch);
    while texts.step().is_some() {}
    let mut out = String::new();
    texts.document.write(&mut out);
    out
}

/// A document on its way through the operations of a patch.
pub(super) struct Texts {
    document: Node,
    operations: Box<Vector<Node>>,
}

impl Texts {
    pub(super) fn new(document: &str, patch: &str) -> Self {
        let mut operations = Node::read(patch);
        let operations = match operations.open() {
            Node::List(operations) => std::mem::take(operations),
            Node::Object(_) | Node::Text(_) | Node::Null => Box::default(),
        };
        Texts {
            document: Node::read(document),
            operations,
        }
    }

    /// Does the next operation, as far as it can be done; says whether it is anything but a test that fails.
    pub(super) fn step(&mut self) -> Option<bool> {
        let mut operation = self.operations.pop_front()?;
        let done = match operation.open() {
            Node::Object(members) => apply(&mut self.document, members),
            Node::List(_) | Node::Text(_) | Node::Null => None,
        };
        Some(done.unwrap_or(true))
    }
}

/// Steps of paths, as a JSON patch means them.
impl Node {
    fn step(&mut self, key: &str) -> Option<&mut Node> {
        match self.open() {
            Node::Object(members) => members.get_mut(key),
            Node::List(items) => {
                let at = index(key, items.len(), items.len()).ok()?;
                items.get_mut(at)
            }
            Node::Text(_) | Node::Null => None,
        }
    }

    fn find(&mut self, path: &str) -> Option<&mut Node> {
        path.split('/')
            .skip(1)
            .try_fold(self, |node, part| node.step(&unescape(part)))
    }

    fn add(&mut self, key: &str, node: Node) -> Option<()> {
        match self.open() {
            Node::Object(members) => {
                members.insert(key.into(), node);
            }
            Node::List(items) if key == "-" => items.push_back(node),
            Node::List(items) => {
                let after = items.len() + 1;
                items.insert(index(key, after, after).ok()?, node);
            }
            Node::Text(_) | Node::Null => {}
        }
        Some(())
    }

    fn remove(&mut self, key: &str) -> Option<Node> {
        match self.open() {
            Node::Object(members) => members.remove(key),
            Node::List(items) => {
                let at = index(key, items.len(), items.len()).ok()?;
                Some(items.remove(at))
            }
            Node::Text(_) | Node::Null => None,
        }
    }
}

/// Does an operation; none if it cannot be done, `false` if it is a test that fails.
fn apply(document: &mut Node, operation: &mut BTreeMap<Str, Node>) -> Option<bool> {
    let text = |name: &str| match operation.get(name) {
        Some(Node::Text(text)) => match json::decode(text.as_bytes(), Limits::SERVER) {
            Ok(Value::String(text)) => Some(text),
            _ => None,
        },
        _ => None,
    };
    let (op, path, from) = (text("op")?, text("path")?, text("from"));
    let null = || Node::Text("null".into());
    let given = operation.remove("value").map(|value| match value.is_null() {
        true => Node::Null,
        false => value,
    });
    let place = |path: &str| {
        let (parent, last) = path.rsplit_once('/')?;
        Some((parent.to_owned(), unescape(last)))
    };
    match op.as_str() {
        "replace" if path.is_empty() => *document = given.unwrap_or_else(null),
        "add" | "replace" => {
            let value = given.unwrap_or_else(null);
            let (parent, last) = place(&path)?;
            let parent = document.find(&parent)?;
            match parent.step(&last) {
                Some(slot) if op == "replace" => *slot = value,
                _ => parent.add(&last, value)?,
            }
        }
        "remove" => {
            let (parent, last) = place(&path)?;
            document.find(&parent)?.remove(&last)?;
        }
        "move" | "copy" => {
            let (source, name) = place(&from?)?;
            let source = document.find(&source)?;
            let node = if op == "move" {
                source.remove(&name)?
            } else {
                // A copy is made by writing.
                let mut copy = String::new();
                source.step(&name).unwrap_or(&mut null()).write(&mut copy);
                Node::Text(copy)
            };
            let (parent, last) = place(&path)?;
            document.find(&parent)?.add(&last, node)?;
        }
        "test" => {
            let mut absent = null();
            let found = document.find(&path).unwrap_or(&mut absent);
            return Some(match (found, given) {
                (Node::Null, given) => matches!(given, Some(Node::Null)),
                (found, None | Some(Node::Null)) => found.is_null(),
                (found, Some(mut value)) => found.equals(&mut value),
            });
        }
        _ => {}
    }
    Some(true)
}
