//! JSON patch on text, for error messages and the `test` operation, where `1.0` is not `1`.

use super::{index, unescape};
use crate::text::TextNode;
use imbl::Vector;
use scantling_value::{Limits, Str, Value, json};
use std::collections::BTreeMap;

/// Applies a patch to the text of a document. The patch is known to apply; otherwise the result after the
/// last successful operation is returned.
pub fn patched_text(document: &str, patch: &str) -> String {
    let mut texts = TextPatcher::new(document, patch);
    while texts.step().is_some() {}
    let mut out = String::new();
    texts.document.write(&mut out);
    out
}

/// A document during the execution of a patch.
pub(super) struct TextPatcher {
    document: TextNode,
    operations: Box<Vector<TextNode>>,
}

impl TextPatcher {
    pub(super) fn new(document: &str, patch: &str) -> Self {
        let mut operations = TextNode::read(patch);
        let operations = match operations.open() {
            TextNode::List(operations) => std::mem::take(operations),
            TextNode::Object(_) | TextNode::Text(_) | TextNode::Null => Box::default(),
        };
        TextPatcher {
            document: TextNode::read(document),
            operations,
        }
    }

    /// Executes the next operation. Returns `None` at the end of the patch and `Some(false)` for a failed test; an operation
    /// that cannot be executed counts as successful.
    pub(super) fn step(&mut self) -> Option<bool> {
        let mut operation = self.operations.pop_front()?;
        let done = match operation.open() {
            TextNode::Object(members) => apply(&mut self.document, members),
            TextNode::List(_) | TextNode::Text(_) | TextNode::Null => None,
        };
        Some(done.unwrap_or(true))
    }
}

/// Path resolution as in JSON patch.
impl TextNode {
    fn step(&mut self, key: &str) -> Option<&mut TextNode> {
        match self.open() {
            TextNode::Object(members) => members.get_mut(key),
            TextNode::List(items) => {
                let at = index(key, items.len(), items.len()).ok()?;
                items.get_mut(at)
            }
            TextNode::Text(_) | TextNode::Null => None,
        }
    }

    fn find(&mut self, path: &str) -> Option<&mut TextNode> {
        path.split('/')
            .skip(1)
            .try_fold(self, |node, part| node.step(&unescape(part)))
    }

    fn add(&mut self, key: &str, node: TextNode) -> Option<()> {
        match self.open() {
            TextNode::Object(members) => {
                members.insert(key.into(), node);
            }
            TextNode::List(items) if key == "-" => items.push_back(node),
            TextNode::List(items) => {
                let after = items.len() + 1;
                items.insert(index(key, after, after).ok()?, node);
            }
            TextNode::Text(_) | TextNode::Null => {}
        }
        Some(())
    }

    fn remove(&mut self, key: &str) -> Option<TextNode> {
        match self.open() {
            TextNode::Object(members) => members.remove(key),
            TextNode::List(items) => {
                let at = index(key, items.len(), items.len()).ok()?;
                Some(items.remove(at))
            }
            TextNode::Text(_) | TextNode::Null => None,
        }
    }
}

/// Executes an operation; `None` if it cannot be executed, `false` if it is a failed test.
fn apply(document: &mut TextNode, operation: &mut BTreeMap<Str, TextNode>) -> Option<bool> {
    let text = |name: &str| match operation.get(name) {
        Some(TextNode::Text(text)) => match json::decode(text.as_bytes(), Limits::SERVER) {
            Ok(Value::String(text)) => Some(text),
            _ => None,
        },
        _ => None,
    };
    let (op, path, from) = (text("op")?, text("path")?, text("from"));
    let null = || TextNode::Text("null".into());
    let given = operation.remove("value").map(|value| match value.is_null() {
        true => TextNode::Null,
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
                // Copies by encoding and decoding.
                let mut copy = String::new();
                // Copying an absent member copies a null.
                source.step(&name).unwrap_or(&mut null()).write(&mut copy);
                TextNode::Text(copy)
            };
            let (parent, last) = place(&path)?;
            document.find(&parent)?.add(&last, node)?;
        }
        "test" => {
            let mut absent = null();
            let found = document.find(&path).unwrap_or(&mut absent);
            return Some(match (found, given) {
                // In json-patch, a null from a patch is a node, which an absent `value` does not equal.
                (TextNode::Null, given) => matches!(given, Some(TextNode::Null)),
                (found, None | Some(TextNode::Null)) => found.is_null(),
                (found, Some(mut value)) => found.equals(&mut value),
            });
        }
        _ => {}
    }
    Some(true)
}
