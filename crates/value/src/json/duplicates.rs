//! Fields that stand twice in a JSON text.

use super::parse::Cursor;
use crate::{Str, go};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A server stops collecting here.
const MAX_FINDINGS: usize = 100;

/// The fields that stand twice, in document order, as `duplicate field "spec.a[0].b"`. The text is known to be
/// valid; on any other the findings so far are returned.
pub(super) fn find(text: &[u8]) -> Vec<String> {
    let mut walk = Walk {
        cursor: Cursor::new(text),
        open: Vec::new(),
        path: String::new(),
        found: Vec::new(),
        seen: BTreeSet::new(),
    };
    let _ = walk.document();
    walk.found
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

struct Walk<'a> {
    cursor: Cursor<'a>,
    open: Vec<Level>,
    path: String,
    found: Vec<String>,
    seen: BTreeSet<String>,
}

/// The text is not what was expected.
struct Lost;

impl Walk<'_> {
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
        if !keys.insert(key) && self.found.len() < MAX_FINDINGS && self.seen.insert(self.path.clone()) {
            self.found
                .push(format!("duplicate field {}", go::quote(&self.path)));
        }
        Ok(())
    }
}

#[derive(PartialEq, Eq)]
enum Next {
    Value,
    End,
}
