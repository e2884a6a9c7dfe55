//! Documents as text that is parsed on demand.
//!
//! kube-apiserver patches text: a value from a patch keeps the order of its members and its duplicates until it is
//! inspected. Error messages show that text, and strict decoding finds duplicates in it.

use imbl::Vector;
use scantling_value::{Limits, Str, Value, deadline, json};
use std::collections::BTreeMap;

/// A node of a document. It stays text until it is inspected.
#[derive(Clone)]
pub(crate) enum TextNode {
    Text(String),
    /// A null that a patch set. kube-apiserver distinguishes it from one in the document.
    Null,
    List(Box<Vector<TextNode>>),
    Object(BTreeMap<Str, TextNode>),
}

impl TextNode {
    /// Wraps the text of a document, which is known to be JSON.
    pub(crate) fn read(text: &str) -> Self {
        TextNode::Text(compact(text))
    }

    pub(crate) fn is_null(&self) -> bool {
        match self {
            TextNode::Text(text) => text == "null",
            TextNode::Null => true,
            TextNode::List(_) | TextNode::Object(_) => false,
        }
    }

    /// Parses one level. The last of duplicate members wins.
    pub(crate) fn open(&mut self) -> &mut TextNode {
        if let TextNode::Text(text) = self {
            deadline::tick_over(text);
            // The text is valid JSON, so the brackets match.
            if let Some(inside) = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')) {
                *self = TextNode::Object(parts(inside).filter_map(member).collect());
            } else if let Some(inside) = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
                let items = parts(inside).map(|part| TextNode::Text(part.to_owned()));
                *self = TextNode::List(Box::new(items.collect()));
            }
        }
        self
    }

    /// Returns whether texts are equal except for the order of members. Inspected nodes stay parsed.
    pub(crate) fn equals(&mut self, other: &mut TextNode) -> bool {
        deadline::tick();
        match (self.open(), other.open()) {
            (TextNode::Text(a), TextNode::Text(b)) => a == b,
            (TextNode::List(a), TextNode::List(b)) => {
                a.len() == b.len() && a.iter_mut().zip(b.iter_mut()).all(|(a, b)| a.equals(b))
            }
            (TextNode::Object(a), TextNode::Object(b)) => {
                let same_length = a.len() == b.len();
                let same = |(name, a): (&Str, &mut TextNode)| b.get_mut(name).is_some_and(|b| a.equals(b));
                same_length && a.iter_mut().all(same)
            }
            _ => false,
        }
    }

    pub(crate) fn write(&self, out: &mut String) {
        let comma = |out: &mut String, i: usize| {
            if i > 0 {
                out.push(',');
            }
        };
        match self {
            TextNode::Text(text) => push_escaped(text, out),
            TextNode::Null => out.push_str("null"),
            TextNode::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    comma(out, i);
                    item.write(out);
                }
                out.push(']');
            }
            TextNode::Object(members) => {
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

fn member(part: &str) -> Option<(Str, TextNode)> {
    // Every part of an object has a name and a colon, so none is dropped.
    let end = JsonScanner::new(part)
        .find(|(_, byte, depth)| *byte == b':' && *depth == 0)?
        .0;
    let (name, value) = part.split_at_checked(end)?;
    let Ok(Value::String(name)) = json::decode(name.as_bytes(), Limits::SERVER) else {
        return None;
    };
    Some((name, TextNode::Text(value.strip_prefix(':')?.to_owned())))
}

/// Splits a list or an object at its commas.
fn parts(inside: &str) -> impl Iterator<Item = &str> {
    let commas = JsonScanner::new(inside).filter(|(_, byte, depth)| *byte == b',' && *depth == 0);
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

/// Iterates over the bytes of a JSON text outside strings, with the number of open lists and objects.
struct JsonScanner<'t> {
    bytes: std::iter::Enumerate<std::str::Bytes<'t>>,
    depth: usize,
}

impl<'t> JsonScanner<'t> {
    fn new(text: &'t str) -> Self {
        JsonScanner {
            bytes: text.bytes().enumerate(),
            depth: 0,
        }
    }
}

impl Iterator for JsonScanner<'_> {
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

/// Removes the whitespace between the tokens of a text.
fn compact(text: &str) -> String {
    // Removed once, so that texts can be split and compared without regard to whitespace.
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    for c in text.chars() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if !matches!(c, ' ' | '\t' | '\n' | '\r') {
            out.push(c);
            in_string = c == '"';
        }
    }
    out
}

/// Appends a text with HTML characters escaped, as kube-apiserver does.
fn push_escaped(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
}
