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
    each(text, |path, time| {
        if time == Time::Again && found.len() < MAX_FINDINGS && seen.insert(path.to_owned()) {
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
    each(text, |path, time| {
        place += 1;
        if let Some(known) = places.get_mut(&finding(path, time)) {
            *known = place.min(*known);
        }
    });
    findings.sort_by_key(|finding| places.get(finding).copied());
}

fn finding(path: &str, time: Time) -> String {
    let what = match time {
        Time::First => "unknown",
        Time::Again => "duplicate",
    };
    format!("{what} field {}", go::quote(path))
}

/// Whether a field stands in its object for the first time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Time {
    First,
    Again,
}

/// Visits every field of a text that is known to be valid.
fn each(text: &[u8], visit: impl FnMut(&str, Time)) {
    let mut walk = Walk {
        cursor: Cursor::new(text),
        open: Vec::new(),
        path: String::new(),
        visit,
    };
    let _ = walk.document();
}

enum Open {
    /// The index of the current element.
    Array(usize),
    /// The keys so far.
    Object(BTreeSet<Str>),
}

struct Level {
    open: Open,
    /// The length of the path of the list or object itself.
    path: usize,
}

struct Walk<'a, V> {
    cursor: Cursor<'a>,
    open: Vec<Level>,
    path: String,
    visit: V,
}

/// The text is not what was expected.
struct Lost;

impl<V: FnMut(&str, Time)> Walk<'_, V> {
    fn document(&mut self) -> Result<(), Lost> {
        loop {
            match self.cursor.skip_space().ok_or(Lost)? {
                b'{' => {
                    self.cursor.advance();
                    self.push(Open::Object(BTreeSet::new()));
                    if self.cursor.skip_space() != Some(b'}') {
                        self.key()?;
                        continue;
                    }
                }
                b'[' => {
                    self.cursor.advance();
                    self.push(Open::Array(0));
                    if self.cursor.skip_space() != Some(b']') {
                        self.path.push_str("[0]");
                        continue;
                    }
                }
                b'"' => {
                    self.cursor.advance();
                    self.cursor.string().map_err(|_| Lost)?;
                }
                b'-' | b'0'..=b'9' => {
                    self.cursor.number().map_err(|_| Lost)?;
                }
                _ => {
                    while matches!(self.cursor.peek(), Some(b'a'..=b'z')) {
                        self.cursor.advance();
                    }
                }
            }
            if self.after_value()? == Next::End {
                return Ok(());
            }
        }
    }

    fn push(&mut self, open: Open) {
        self.open.push(Level {
            open,
            path: self.path.len(),
        });
    }

    /// Moves on from a value to the beginning of the next one.
    fn after_value(&mut self) -> Result<Next, Lost> {
        loop {
            let Some(level) = self.open.last_mut() else {
                return Ok(Next::End);
            };
            self.path.truncate(level.path);
            match self.cursor.skip_space().ok_or(Lost)? {
                b',' => {
                    self.cursor.advance();
                    match &mut level.open {
                        Open::Array(index) => {
                            *index += 1;
                            // Writing to a string cannot fail.
                            let _ = write!(self.path, "[{index}]");
                        }
                        Open::Object(_) => self.key()?,
                    }
                    return Ok(Next::Value);
                }
                b']' | b'}' => {
                    self.cursor.advance();
                    self.open.pop();
                }
                _ => return Err(Lost),
            }
        }
    }

    /// Reads `"key":` and puts the key on the path.
    fn key(&mut self) -> Result<(), Lost> {
        self.cursor.skip_space();
        self.cursor.advance();
        let key = self.cursor.string().map_err(|_| Lost)?;
        self.cursor.skip_space();
        self.cursor.advance();
        let nested = self.open.len() > 1;
        let Some(Level {
            open: Open::Object(keys),
            ..
        }) = self.open.last_mut()
        else {
            return Err(Lost);
        };
        if nested {
            self.path.push('.');
        }
        self.path.push_str(&key);
        let time = if keys.insert(key) {
            Time::First
        } else {
            Time::Again
        };
        (self.visit)(&self.path, time);
        Ok(())
    }
}

#[derive(PartialEq, Eq)]
enum Next {
    Value,
    End,
}
