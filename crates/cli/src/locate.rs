//! Locations of findings in files.

use crate::input::{Document, Notation, Start};
use scantling_value::{FieldError, Limits, Path, PathBuf, Position, Segment, Value};
use serde::Serialize;
use std::cell::OnceCell;
use std::sync::{Arc, OnceLock};

/// A line and column of a file, with the text of the line.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Location {
    /// The line, from 1, counted from the beginning of the file.
    pub(crate) line: usize,
    /// The column, from 1.
    pub(crate) column: usize,
    /// The text of the line, as far as it is known.
    #[serde(skip)]
    pub(crate) text: String,
    /// The number of characters that are missing at the beginning of `text`.
    #[serde(skip)]
    pub(crate) missing: usize,
}

/// What to look up in a document.
#[derive(Clone, Debug)]
pub(crate) enum LocationQuery {
    /// A path from the document's root.
    Path(PathBuf),
    /// A line, from 1.
    Line(usize),
}

/// Up to this many paths are looked up one by one.
const FEW: usize = 8;

/// A report item with findings whose locations are looked up.
pub(crate) trait Locatable {
    /// Visits each finding: what to look up, and where to store the location.
    fn visit_locations(&mut self, visit: &mut dyn FnMut(&Option<LocationQuery>, &mut Option<Location>));
}

/// Looks up locations in a document.
#[derive(Debug)]
pub(crate) struct DocumentLocator<'d> {
    document: &'d Document<'d>,
    /// The decoded document. Decoding again is cheaper than keeping a copy of every document.
    value: OnceLock<Value>,
}

impl<'d> DocumentLocator<'d> {
    pub(crate) fn new(document: &'d Document<'d>) -> Self {
        DocumentLocator {
            document,
            value: OnceLock::new(),
        }
    }

    /// Returns one of the objects of the document; `index` is its position in a list.
    fn object(&self, index: &[usize]) -> &Value {
        let whole = self
            .value
            .get_or_init(|| self.document.value().unwrap_or(Value::Null));
        let element = index
            .iter()
            .try_fold(whole, |list, n| list.get("items")?.as_array()?.get(*n));
        element.unwrap_or(&Value::Null)
    }

    /// Returns the query for a path in one of the objects.
    pub(crate) fn path(&self, index: &[usize], path: &PathBuf) -> Option<LocationQuery> {
        let above = index
            .iter()
            .flat_map(|n| [Segment::Field("items"), Segment::Index(*n)]);
        let steps: Vec<Segment<'_>> = above.chain(path.segments()).collect();
        Some(LocationQuery::Path(append(&Path::ROOT, &steps)))
    }

    /// Returns the query for a field of one of the objects, written as in messages.
    pub(crate) fn field(&self, index: &[usize], field: &str) -> Option<LocationQuery> {
        self.path(index, &path_in(field, self.object(index)))
    }

    /// Returns the query for a server's message: about an unknown or duplicate field, or beginning with a field.
    pub(crate) fn message(&self, index: &[usize], text: &str) -> Option<LocationQuery> {
        let path = path_in_message(text, self.object(index));
        if path.segments().next().is_some() {
            return self.path(index, &path);
        }
        // YAML's strict decoder names lines: `line 6: key "size" already set in map`.
        let number = text.strip_prefix("line ")?.split(':').next()?;
        number.parse().ok().map(LocationQuery::Line)
    }

    /// Returns the location of each query.
    pub(crate) fn locations(&self, queries: &[Option<LocationQuery>]) -> Vec<Option<Location>> {
        let paths = queries.iter().flatten();
        let paths: Vec<PathBuf> = paths
            .filter_map(|query| match query {
                LocationQuery::Path(path) => Some(path.clone()),
                LocationQuery::Line(_) => None,
            })
            .collect();
        let document = self.document;
        let positions = match (document.notation, paths.as_slice()) {
            (_, []) => Vec::new(),
            // For a few paths, searching the text is cheaper than parsing it.
            (Notation::Json, few) if few.len() <= FEW => few
                .iter()
                .map(|path| Position::in_json(document.text, path))
                .collect(),
            _ => Position::all_in_yaml(document.text, &paths, Limits::SERVER),
        };
        let mut positions = positions.into_iter();
        let lines = OnceCell::new();
        let lines = || lines.get_or_init(|| document.text.split(|b| *b == b'\n').collect::<Vec<_>>());
        let location_of = |query: &Option<LocationQuery>| match query.as_ref()? {
            LocationQuery::Path(_) => Some(location(document, lines(), positions.next()??)),
            LocationQuery::Line(line) => line_location(document, lines(), *line),
        };
        queries.iter().map(location_of).collect()
    }
}

/// Looks up the locations of all items of a document. This is done at once: every lookup reads the whole text.
pub(crate) fn locate_all<T: Locatable>(locator: &DocumentLocator<'_>, items: &mut [T]) {
    let mut queries = Vec::new();
    for item in items.iter_mut() {
        item.visit_locations(&mut |query, _| queries.push(query.clone()));
    }
    let mut locations = locator.locations(&queries).into_iter();
    for item in items {
        item.visit_locations(&mut |_, location| *location = locations.next().flatten());
    }
}

impl Location {
    /// Returns the location of a position in a text that begins at `start` in its file.
    pub(crate) fn in_text(text: &[u8], start: Start, at: Position) -> Self {
        let line = text.split(|b| *b == b'\n').nth(at.line.saturating_sub(1));
        Location::on_line(line.unwrap_or_default(), start, at)
    }

    fn on_line(line: &[u8], start: Start, at: Position) -> Self {
        let missing = if at.line == 1 { start.column } else { 0 };
        Location {
            line: at.line + start.line,
            column: at.column + missing,
            text: String::from_utf8_lossy(line).trim_end().to_owned(),
            missing,
        }
    }
}

fn location(document: &Document<'_>, lines: &[&[u8]], at: Position) -> Location {
    let line = lines.get(at.line.saturating_sub(1)).copied().unwrap_or_default();
    Location::on_line(line, document.start, at)
}

/// The text of an object, kept so that locations can be looked up after its file has been read.
#[derive(Debug)]
pub(crate) struct SourceText {
    file: Arc<str>,
    text: Arc<[u8]>,
    start: Start,
    notation: Notation,
    index: Vec<usize>,
}

impl SourceText {
    /// Keeps the text of an object.
    pub(crate) fn new(document: &Document<'_>, text: &Arc<[u8]>, index: &[usize]) -> Self {
        SourceText {
            file: Arc::clone(document.file),
            text: Arc::clone(text),
            start: document.start,
            notation: document.notation,
            index: index.to_vec(),
        }
    }

    /// Returns the location of each field, written as in messages.
    pub(crate) fn locations(&self, fields: &[String]) -> Vec<Option<Location>> {
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
        let locator = DocumentLocator::new(&document);
        let queries: Vec<Option<LocationQuery>> = fields
            .iter()
            .map(|field| locator.field(&self.index, field))
            .collect();
        locator.locations(&queries)
    }

    /// The text of the document.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.text
    }

    /// The number of lines before the document.
    pub(crate) fn first_line(&self) -> usize {
        self.start.line
    }
}

fn path_in_message(text: &str, object: &Value) -> PathBuf {
    let quoted = ["unknown field ", "duplicate field "]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix))
        .map(|rest| rest.trim_matches('"'));
    path_in(
        quoted.unwrap_or_else(|| text.split(": ").next().unwrap_or_default()),
        object,
    )
}

/// Returns the location of the first character of a line that is not a space.
fn line_location(document: &Document<'_>, lines: &[&[u8]], line: usize) -> Option<Location> {
    let text = lines.get(line.checked_sub(1)?)?;
    let column = text.iter().take_while(|b| b.is_ascii_whitespace()).count() + 1;
    Some(location(document, lines, Position { line, column }))
}

/// Returns the path of an error in an object: the one that it carries, or the one in its field if that is longer (a
/// rule may name a field below its own).
pub(crate) fn path_of(error: &FieldError, object: &Value) -> PathBuf {
    let written = path_in(error.field(), object);
    if written.segments().count() > error.at().segments().count() {
        written
    } else {
        error.at().clone()
    }
}

/// Returns the path that a text names, as far as the object has it. Names may contain dots and brackets.
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

/// Returns a path of segments.
pub(crate) fn path_from(segments: &[Segment<'_>]) -> PathBuf {
    append(&Path::ROOT, segments)
}

/// The value at a path.
pub(crate) fn value_at<'v>(value: &'v Value, path: &PathBuf) -> Option<&'v Value> {
    path.segments().try_fold(value, |v, segment| match segment {
        Segment::Field(name) | Segment::Key(name) => v.get(name),
        Segment::Index(index) => v.as_array()?.get(index),
    })
}
