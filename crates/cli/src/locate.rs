//! Where in a file an error is.

use crate::input::{Document, Notation};
use scantling_value::{FieldError, Limits, Path, PathBuf, Position, Segment, Value};

/// A place in a file, and the line that stands there.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// The line, from 1, counted from the beginning of the file.
    pub(crate) line: usize,
    /// The column, from 1.
    pub(crate) column: usize,
    /// The line's text.
    pub(crate) text: String,
}

/// Lists beyond this size are not searched for the place of each error: every search begins at their start.
const SEARCHED: usize = 4 << 20;

/// The place of an error of a document's object; `index` is the object's place in a list.
pub(crate) fn locate(document: &Document<'_>, index: Option<usize>, at: &PathBuf) -> Option<Place> {
    if index.is_some() && document.text.len() > SEARCHED {
        return None;
    }
    let at = match index {
        Some(index) => {
            let items = Path::ROOT.field("items");
            append(&items.index(index), &at.segments().collect::<Vec<_>>())
        }
        None => at.clone(),
    };
    let position = match document.notation {
        Notation::Json => Position::in_json(document.text, &at),
        Notation::Yaml => Position::in_yaml(document.text, &at, Limits::SERVER),
    }?;
    let line = position.line + document.line;
    Some(Place {
        line,
        column: position.column,
        text: document.line_text(line),
    })
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
