//! The fields of a JSON text in document order: finds repeated fields, and sorts findings by position.

use super::parse::Cursor;
use crate::{Finding, FindingList, PathBuf, Segment, Str};
use std::collections::{BTreeMap, BTreeSet};

/// kube-apiserver stops collecting findings here.
const MAX_FINDINGS: usize = 100;

/// Returns the duplicate fields, in document order. The text is known to be valid; on any other the findings so far are
/// returned.
pub(super) fn duplicates(text: &[u8]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    visit_fields(text, |path, time| {
        // Like kube-apiserver, reports a field that occurs three times only once.
        if time == Occurrence::Again && found.len() < MAX_FINDINGS && !seen.contains(path) {
            seen.insert(path.clone());
            found.push(Finding::DuplicateField(path.clone()));
        }
    });
    found
}

/// Sorts findings about fields by where the text has the fields. Other findings come last, in their order.
pub fn sort_findings(text: &[u8], findings: &mut FindingList) {
    if findings.len() < 2 {
        return;
    }
    let fields = findings.iter().filter_map(Finding::field).cloned();
    let mut places: BTreeMap<PathBuf, Places> = fields.map(|at| (at, Places::NONE)).collect();
    let mut place = 0;
    visit_fields(text, |path, time| {
        place += 1;
        if let Some(known) = places.get_mut(path) {
            let known = match time {
                Occurrence::First => &mut known.first,
                Occurrence::Again => &mut known.again,
            };
            *known = place.min(*known);
        }
    });
    findings.kept_mut().sort_by_cached_key(|finding| {
        let known = finding.field().and_then(|at| places.get(at));
        let known = known.unwrap_or(&Places::NONE);
        match finding {
            Finding::DuplicateField(_) => known.again,
            _ => known.first,
        }
    });
}

/// The positions of a field among all fields of a text.
struct Places {
    first: usize,
    again: usize,
}

impl Places {
    const NONE: Places = Places {
        first: usize::MAX,
        again: usize::MAX,
    };
}

/// Whether this is the first occurrence of a field in its object or a repeated one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Occurrence {
    First,
    Again,
}

/// Visits every field of a valid JSON text.
fn visit_fields(text: &[u8], visit: impl FnMut(&PathBuf, Occurrence)) {
    let mut visitor = FieldVisitor {
        cursor: Cursor::new(text),
        open: Vec::new(),
        path: PathBuf::default(),
        visit,
    };
    // A text that is not valid ends the visit early; what was found until then counts.
    let _ = visitor.document();
}

enum Container {
    /// The index of the current element.
    Array(usize),
    /// The keys seen so far.
    Object(BTreeSet<Str>),
}

struct Frame {
    open: Container,
    /// The number of steps to the list or object itself.
    path: usize,
}

struct FieldVisitor<'a, V> {
    cursor: Cursor<'a>,
    open: Vec<Frame>,
    path: PathBuf,
    visit: V,
}

/// The text is not valid JSON.
struct SyntaxMismatch;

impl<V: FnMut(&PathBuf, Occurrence)> FieldVisitor<'_, V> {
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
                        self.path.push(Segment::Index(0));
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

    /// Advances from a value to the beginning of the next one.
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
                            self.path.push(Segment::Index(*index));
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

    /// Reads `"key":` and appends the key to the path.
    fn key(&mut self) -> Result<(), SyntaxMismatch> {
        self.cursor.skip_space();
        self.cursor.advance();
        let key = self.cursor.string().map_err(|_| SyntaxMismatch)?;
        self.cursor.skip_space();
        self.cursor.advance();
        let Some(Frame {
            open: Container::Object(keys),
            ..
        }) = self.open.last_mut()
        else {
            return Err(SyntaxMismatch);
        };
        self.path.push(Segment::Field(&key));
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
