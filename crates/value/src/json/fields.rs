//! The fields of a JSON text in their order: which of them stand twice, and which stand before others.

use super::parse::Cursor;
use crate::{Str, go};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// A server stops collecting here.
const MAX_FINDINGS: usize = 100;

/// The fields that stand twice, in document order, as `duplicate field "spec.a[0].b"`. The text is known to be
/// valid; on any other the findings so far are returned.
pub(super) fn duplicates(text: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    visit_fields(text, |path, time| {
        if time == Occurrence::Again && found.len() < MAX_FINDINGS && seen.insert(path.to_owned()) {
            found.push(finding(path, time));
        }
    });
    found
}

/// Sorts findings about fields, `unknown field "spec.a"` and `duplicate field "spec.b"`, by where the text has the
/// fields. Findings about others come last, in their order.
pub fn sort_findings(text: &[u8], findings: &mut [String]) {
    if findings.len() < 2 {
        return;
    }
    let mut places: BTreeMap<String, usize> = findings.iter().map(|f| (f.clone(), usize::MAX)).collect();
    let mut place = 0;
    visit_fields(text, |path, time| {
        place += 1;
        if let Some(known) = places.get_mut(&finding(path, time)) {
            *known = place.min(*known);
        }
    });
    findings.sort_by_key(|finding| places.get(finding).copied());
}

fn finding(path: &str, time: Occurrence) -> String {
    let what = match time {
        Occurrence::First => "unknown",
        Occurrence::Again => "duplicate",
    };
    format!("{what} field {}", go::quote(path))
}

/// Whether a field stands in its object for the first time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occurrence {
    First,
    Again,
}

/// Visits every field of a text that is known to be valid.
fn visit_fields(text: &[u8], visit: impl FnMut(&str, Occurrence)) {
    let mut visitor = FieldVisitor {
        cursor: Cursor::new(text),
        open: Vec::new(),
        path: String::new(),
        visit,
    };
    let _ = visitor.document();
}

enum Container {
    /// The index of the current element.
    Array(usize),
    /// The keys so far.
    Object(BTreeSet<Str>),
}

struct Frame {
    open: Container,
    /// The length of the path of the list or object itself.
    path: usize,
}

struct FieldVisitor<'a, V> {
    cursor: Cursor<'a>,
    open: Vec<Frame>,
    path: String,
    visit: V,
}

/// The text is not what was expected.
struct SyntaxMismatch;

impl<V: FnMut(&str, Occurrence)> FieldVisitor<'_, V> {
    fn document(&mut self) -> Result<(), SyntaxMismatch> {
        loop {
            match self.cursor.skip_space().ok_or(SyntaxMismatch)? {
                b'{' => {
                    self.cursor.advance();
                    self.push(Container::Object(BTreeSet::new()));
                    if self.cursor.skip_space() != Some(b'}') {
                        self.key()?;
                        continue;
                    }
                }
                b'[' => {
                    self.cursor.advance();
                    self.push(Container::Array(0));
                    if self.cursor.skip_space() != Some(b']') {
                        self.path.push_str("[0]");
                        continue;
                    }
                }
                b'"' => {
                    self.cursor.advance();
                    self.cursor.string().map_err(|_| SyntaxMismatch)?;
                }
                b'-' | b'0'..=b'9' => {
                    self.cursor.number().map_err(|_| SyntaxMismatch)?;
                }
                _ => {
                    while matches!(self.cursor.peek(), Some(b'a'..=b'z')) {
                        self.cursor.advance();
                    }
                }
            }
            if self.after_value()? == AfterValue::End {
                return Ok(());
            }
        }
    }

    fn push(&mut self, open: Container) {
        self.open.push(Frame {
            open,
            path: self.path.len(),
        });
    }

    /// Moves on from a value to the beginning of the next one.
    fn after_value(&mut self) -> Result<AfterValue, SyntaxMismatch> {
        loop {
            let Some(level) = self.open.last_mut() else {
                return Ok(AfterValue::End);
            };
            self.path.truncate(level.path);
            match self.cursor.skip_space().ok_or(SyntaxMismatch)? {
                b',' => {
                    self.cursor.advance();
                    match &mut level.open {
                        Container::Array(index) => {
                            *index += 1;
                            // Writing to a string cannot fail.
                            let _ = write!(self.path, "[{index}]");
                        }
                        Container::Object(_) => self.key()?,
                    }
                    return Ok(AfterValue::Value);
                }
                b']' | b'}' => {
                    self.cursor.advance();
                    self.open.pop();
                }
                _ => return Err(SyntaxMismatch),
            }
        }
    }

    /// Reads `"key":` and puts the key on the path.
    fn key(&mut self) -> Result<(), SyntaxMismatch> {
        self.cursor.skip_space();
        self.cursor.advance();
        let key = self.cursor.string().map_err(|_| SyntaxMismatch)?;
        self.cursor.skip_space();
        self.cursor.advance();
        let nested = self.open.len() > 1;
        let Some(Frame {
            open: Container::Object(keys),
            ..
        }) = self.open.last_mut()
        else {
            return Err(SyntaxMismatch);
        };
        if nested {
            self.path.push('.');
        }
        self.path.push_str(&key);
        let time = if keys.insert(key) {
            Occurrence::First
        } else {
            Occurrence::Again
        };
        (self.visit)(&self.path, time);
        Ok(())
    }
}

#[derive(PartialEq, Eq)]
enum AfterValue {
    Value,
    End,
}
