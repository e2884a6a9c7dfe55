//! The text of a patched document.
//!
//! A server patches text: what an operation brings in stays as the patch has it, with the order of its members and with
//! those that stand twice, until another operation looks inside. Refusals show that text, and strict reading finds in it
//! what stands twice.

use super::{index, unescape};
use scantling_value::{Limits, Str, Value, json};
use std::collections::BTreeMap;

/// The text that a patch makes of a document. The patch is known to be one that can be applied; of any other, what could
/// be done is shown.
pub fn patched_text(document: &Value, patch: &str) -> String {
    let mut document = Node::Text(document.to_json());
    let mut operations = Node::Text(compact(patch));
    if let Node::List(operations) = operations.open() {
        for operation in operations {
            if let Node::Object(members) = operation.open() {
                let _ = apply(&mut document, members);
            }
        }
    }
    let mut out = String::new();
    document.write(&mut out);
    out
}

/// A part of a document: text, as long as nobody looked inside.
enum Node {
    Text(String),
    List(Vec<Node>),
    Object(BTreeMap<Str, Node>),
}

impl Node {
    /// Looks inside: of members that stand twice the last one stays.
    fn open(&mut self) -> &mut Node {
        if let Node::Text(text) = self {
            if let Some(inside) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
                *self = Node::Object(parts(inside).filter_map(member).collect());
            } else if let Some(inside) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
                *self = Node::List(parts(inside).map(|part| Node::Text(part.to_owned())).collect());
            }
        }
        self
    }

    fn open_all(&mut self) {
        match self.open() {
            Node::List(items) => items.iter_mut().for_each(Node::open_all),
            Node::Object(members) => members.values_mut().for_each(Node::open_all),
            Node::Text(_) => {}
        }
    }

    fn step(&mut self, key: &str) -> Option<&mut Node> {
        match self.open() {
            Node::Object(members) => members.get_mut(key),
            Node::List(items) => {
                let at = index(key, items.len(), items.len()).ok()?;
                items.get_mut(at)
            }
            Node::Text(_) => None,
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
            Node::List(items) if key == "-" => items.push(node),
            Node::List(items) => {
                let after = items.len() + 1;
                items.insert(index(key, after, after).ok()?, node);
            }
            Node::Text(_) => {}
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
            Node::Text(_) => None,
        }
    }

    fn write(&self, out: &mut String) {
        let comma = |out: &mut String, i: usize| {
            if i > 0 {
                out.push(',');
            }
        };
        match self {
            Node::Text(text) => out.push_str(text),
            Node::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    comma(out, i);
                    item.write(out);
                }
                out.push(']');
            }
            Node::Object(members) => {
                out.push('{');
                for (i, (name, value)) in members.iter().enumerate() {
                    comma(out, i);
                    out.push_str(&Value::from(name.clone()).to_json());
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

fn apply(document: &mut Node, operation: &mut BTreeMap<Str, Node>) -> Option<()> {
    let text = |name: &str| match operation.get(name) {
        Some(Node::Text(text)) => match json::decode(text.as_bytes(), Limits::SERVER) {
            Ok(Value::String(text)) => Some(text),
            _ => None,
        },
        _ => None,
    };
    let (op, path, from) = (text("op")?, text("path")?, text("from"));
    let value = operation.remove("value");
    let value = value.unwrap_or_else(|| Node::Text("null".into()));
    let place = |path: &str| {
        let (parent, last) = path.rsplit_once('/')?;
        Some((parent.to_owned(), unescape(last)))
    };
    match op.as_str() {
        "replace" if path.is_empty() => *document = value,
        "add" | "replace" => {
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
                source.step(&name)?.write(&mut copy);
                Node::Text(copy)
            };
            let (parent, last) = place(&path)?;
            document.find(&parent)?.add(&last, node)?;
        }
        // A test that holds has looked at everything.
        "test" => document.find(&path)?.open_all(),
        _ => {}
    }
    Some(())
}

fn member(part: &str) -> Option<(Str, Node)> {
    let end = Scan::new(part)
        .find(|(_, byte, depth)| *byte == b':' && *depth == 0)?
        .0;
    let (name, value) = part.split_at_checked(end)?;
    let Ok(Value::String(name)) = json::decode(name.as_bytes(), Limits::SERVER) else {
        return None;
    };
    Some((name, Node::Text(value.strip_prefix(':')?.to_owned())))
}

/// The parts between the commas of a list or an object.
fn parts(inside: &str) -> impl Iterator<Item = &str> {
    let commas = Scan::new(inside).filter(|(_, byte, depth)| *byte == b',' && *depth == 0);
    let mut start = 0;
    let ends: Vec<usize> = commas.map(|(at, ..)| at).chain([inside.len()]).collect();
    ends.into_iter()
        .filter_map(move |end| {
            let part = inside.get(start..end);
            start = end + 1;
            part
        })
        .filter(|part| !part.is_empty())
}

/// The bytes of a JSON text that are not inside of strings, each with how many lists and objects are open.
struct Scan<'t> {
    bytes: std::iter::Enumerate<std::str::Bytes<'t>>,
    depth: usize,
}

impl<'t> Scan<'t> {
    fn new(text: &'t str) -> Self {
        Scan {
            bytes: text.bytes().enumerate(),
            depth: 0,
        }
    }
}

impl Iterator for Scan<'_> {
    type Item = (usize, u8, usize);

    fn next(&mut self) -> Option<Self::Item> {
        let (at, byte) = self.bytes.next()?;
        match byte {
            b'"' => {
                while let Some((_, byte)) = self.bytes.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => {
                            self.bytes.next();
                        }
                        _ => {}
                    }
                }
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        Some((at, byte, self.depth))
    }
}

/// The text without the space between its parts, and with what HTML could take for its own escaped, as servers write.
fn compact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    for c in text.chars() {
        if in_string {
            match c {
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    out.push_str(&format!("\\u{:04x}", u32::from(c)));
                }
                c => out.push(c),
            }
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if !matches!(c, ' ' | '\t' | '\n' | '\r') {
            out.push(c);
            in_string = c == '"';
        }
    }
    out
}
