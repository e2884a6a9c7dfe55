//! Where in a file an error is.

use crate::input::{Document, Notation, Start};
use scantling_value::{FieldError, Limits, Path, PathBuf, Position, Segment, Value};
use serde::Serialize;
use std::sync::Arc;

/// A place in a file, and the line that stands there.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Place {
    /// The line, from 1, counted from the beginning of the file.
    pub(crate) line: usize,
    /// The column, from 1.
    pub(crate) column: usize,
    /// The line's text, as far as it is known.
    #[serde(skip)]
    pub(crate) text: String,
    /// The number of characters that are missing at its beginning.
    #[serde(skip)]
    pub(crate) missing: usize,
}

/// Lists beyond this size are not searched for the places of each object's errors: every search reads all of them.
const SEARCHED: usize = 4 << 20;

/// The places of paths in a document's object; `index` is the object's place in a list.
pub(crate) fn locate(document: &Document<'_>, index: &[usize], paths: &[PathBuf]) -> Vec<Option<Place>> {
    if paths.is_empty() || (!index.is_empty() && document.text.len() > SEARCHED) {
        return vec![None; paths.len()];
    }
    let above = index
        .iter()
        .flat_map(|n| [Segment::Field("items"), Segment::Index(*n)]);
    let above: Vec<Segment<'_>> = above.collect();
    let from_root = |path: &PathBuf| {
        let steps = above.iter().copied().chain(path.segments());
        append(&Path::ROOT, &steps.collect::<Vec<_>>())
    };
    let paths: Vec<PathBuf> = paths.iter().map(from_root).collect();
    let positions = match (document.notation, paths.as_slice()) {
        (Notation::Json, [path]) => vec![Position::in_json(document.text, path)],
        _ => Position::all_in_yaml(document.text, &paths, Limits::SERVER),
    };
    let lines: Vec<&[u8]> = document.text.split(|b| *b == b'\n').collect();
    let place = |position| place(document, &lines, position);
    positions.into_iter().map(|p| p.map(place)).collect()
}

fn place(document: &Document<'_>, lines: &[&[u8]], at: Position) -> Place {
    let text = lines.get(at.line.saturating_sub(1)).copied().unwrap_or_default();
    let missing = if at.line == 1 { document.start.column } else { 0 };
    Place {
        line: at.line + document.start.line,
        column: at.column + missing,
        text: String::from_utf8_lossy(text).trim_end().to_owned(),
        missing,
    }
}

/// The text of an object, kept so that places can be looked up after its file is left.
#[derive(Debug)]
pub(crate) struct Origin {
    file: Arc<str>,
    text: Box<[u8]>,
    start: Start,
    notation: Notation,
    index: Vec<usize>,
}

impl Origin {
    /// The text of an object of a document.
    pub(crate) fn of(document: &Document<'_>, index: &[usize]) -> Self {
        Origin {
            file: Arc::clone(document.file),
            text: document.text.into(),
            start: document.start,
            notation: document.notation,
            index: index.to_vec(),
        }
    }

    /// The places of fields, as texts spell them.
    pub(crate) fn places(&self, fields: &[String]) -> Vec<Option<Place>> {
        if fields.is_empty() {
            return Vec::new();
        }
        let document = Document {
            file: &self.file,
            text: &self.text,
            start: self.start,
            notation: self.notation,
            within: None,
        };
        let sent = document.again(&self.index);
        let paths: Vec<PathBuf> = fields.iter().map(|field| path_in(field, &sent)).collect();
        locate(&document, &self.index, &paths)
    }
}

/// The places of what a server says in words: of unknown and duplicate fields, and of fields that a text begins with.
pub(crate) fn locate_said(
    document: &Document<'_>,
    index: &[usize],
    said: &[impl AsRef<str>],
) -> Vec<Option<Place>> {
    if said.is_empty() {
        return Vec::new();
    }
    let sent = document.again(index);
    let paths: Vec<PathBuf> = said.iter().map(|text| path_said(text.as_ref(), &sent)).collect();
    let lines: Vec<&[u8]> = document.text.split(|b| *b == b'\n').collect();
    let found = locate(document, index, &paths).into_iter().zip(&paths);
    let found = found.map(|(place, path)| place.filter(|_| path.segments().next().is_some()));
    found
        .zip(said)
        .map(|(found, text)| found.or_else(|| line_said(text.as_ref(), document, &lines)))
        .collect()
}

fn path_said(text: &str, sent: &Value) -> PathBuf {
    let quoted = ["unknown field ", "duplicate field "]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix))
        .map(|rest| rest.trim_matches('"'));
    path_in(
        quoted.unwrap_or_else(|| text.split(": ").next().unwrap_or_default()),
        sent,
    )
}

/// The place that a text of YAML's strict decoder names: `line 6: key "size" already set in map`.
fn line_said(text: &str, document: &Document<'_>, lines: &[&[u8]]) -> Option<Place> {
    let number = text.strip_prefix("line ")?;
    let line: usize = number.split(':').next()?.parse().ok()?;
    let text = lines.get(line.checked_sub(1)?)?;
    let column = text.iter().take_while(|b| b.is_ascii_whitespace()).count() + 1;
    Some(place(document, lines, Position { line, column }))
}

/// The path of an error in an object: the one that it carries, or the one that its field spells where that goes
/// further (a rule may point below its own place).
pub(crate) fn path_of(error: &FieldError, object: &Value) -> PathBuf {
    let spelled = path_in(error.field(), object);
    if spelled.segments().count() > error.at().segments().count() {
        spelled
    } else {
        error.at().clone()
    }
}

/// The path that a text spells, as far as the object has it: names may hold dots and brackets themselves.
pub(crate) fn path_in(text: &str, object: &Value) -> PathBuf {
    let mut found = Vec::new();
    let (mut rest, mut value) = (text, object);
    while !rest.is_empty() {
        let step = match value {
            Value::Object(members) => members
                .iter()
                .filter_map(|(name, value)| Some((Segment::Field(name), value, after_member(rest, name)?)))
                .min_by_key(|(_, _, rest)| rest.len()),
            Value::Array(items) => after_index(rest)
                .and_then(|(index, rest)| Some((Segment::Index(index), items.get(index)?, rest))),
            _ => None,
        };
        let Some((segment, next, after)) = step else {
            break;
        };
        found.push(segment);
        (value, rest) = (next, after);
    }
    append(&Path::ROOT, &found)
}

fn after_member<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let bracketed = text
        .strip_prefix('[')
        .and_then(|t| t.strip_prefix(name))
        .and_then(|t| t.strip_prefix(']'));
    let plain = || text.trim_start_matches('.').strip_prefix(name);
    bracketed
        .or_else(plain)
        .filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn after_index(text: &str) -> Option<(usize, &str)> {
    let (index, rest) = text.strip_prefix('[')?.split_once(']')?;
    Some((index.parse().ok()?, rest))
}

fn append(path: &Path<'_>, rest: &[Segment<'_>]) -> PathBuf {
    match rest.split_first() {
        Some((first, rest)) => append(&path.push(*first), rest),
        None => PathBuf::from(path),
    }
}

/// The value at a path.
pub(crate) fn value_at<'v>(value: &'v Value, path: &PathBuf) -> Option<&'v Value> {
    path.segments().try_fold(value, |v, segment| match segment {
        Segment::Field(name) | Segment::Key(name) => v.get(name),
        Segment::Index(index) => v.as_array()?.get(index),
    })
}
