//! Locations of findings in files.

use crate::input::{Document, Notation, Start};
use scantling_admit::Warning;
use scantling_value::{FieldError, Finding, Limits, PathBuf, Position, Segment, Value};
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

/// A place to look up in a document.
#[derive(Clone, Debug)]
pub(crate) enum LocationQuery {
    /// A path from the document's root.
    Path(PathBuf),
    /// A line, from 1.
    Line(usize),
}

/// Takes what to look up for a finding, and where to store the location.
pub(crate) type LocationVisitor<'v> = dyn FnMut(&mut Option<LocationQuery>, &mut Option<Location>) + 'v;

/// A report item with findings whose locations are looked up.
pub(crate) trait Locatable {
    /// Visits each finding: what to look up, and where to store the location.
    fn visit_locations(&mut self, visit: &mut LocationVisitor<'_>);
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
        // A document that cannot be decoded has no findings with a path.
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
        let steps: Vec<Segment<'_>> = above(index).collect();
        Some(LocationQuery::Path(
            steps.into_iter().chain(path.segments()).collect(),
        ))
    }

    /// Returns the query for a field of one of the objects, written as in messages.
    pub(crate) fn field(&self, index: &[usize], field: &str) -> Option<LocationQuery> {
        self.path(index, &path_in(field, self.object(index)))
    }

    /// Returns the query for a server's message, which begins with a field.
    pub(crate) fn message(&self, index: &[usize], text: &str) -> Option<LocationQuery> {
        let field = text.split(": ").next().unwrap_or_default();
        let path = path_in(field, self.object(index));
        path.segments().next()?;
        self.path(index, &path)
    }

    /// Returns the query for an unknown or duplicate field.
    pub(crate) fn finding(&self, index: &[usize], finding: &Finding) -> Option<LocationQuery> {
        match finding {
            Finding::DuplicateKey { line, .. } => Some(LocationQuery::Line(*line)),
            finding => self.path(index, finding.field()?),
        }
    }

    /// Returns the query for a warning.
    pub(crate) fn warning(&self, index: &[usize], warning: &Warning) -> Option<LocationQuery> {
        match warning {
            Warning::Finding(finding) => self.finding(index, finding),
            Warning::Text(text) => self.message(index, text),
        }
    }

    /// Returns the location of each query.
    pub(crate) fn locations(&self, queries: &[Option<LocationQuery>]) -> Vec<Option<Location>> {
        let paths = queries.iter().flatten().filter_map(|query| match query {
            LocationQuery::Path(path) => Some(path),
            LocationQuery::Line(_) => None,
        });
        let paths: Vec<&PathBuf> = paths.collect();
        // Each lookup parses the text once for all paths.
        let document = self.document;
        let positions = match (document.notation, paths.as_slice()) {
            (_, []) => Vec::new(),
            (Notation::Json, paths) => Position::all_in_json(document.text, paths),
            (Notation::Yaml, paths) => Position::all_in_yaml(document.text, paths, Limits::SERVER),
        };
        let mut positions = positions.into_iter();
        // The lines are split at most once, and only if there is something to locate.
        let lines = OnceCell::new();
        let lines = || lines.get_or_init(|| document.text.split(|b| *b == b'\n').collect::<Vec<_>>());
        let location_of = |query: &Option<LocationQuery>| match query.as_ref()? {
            // Positions come in the order of the paths, so each query with a path takes the next one.
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
        // Both visits have the same order, so the n-th location belongs to the n-th query.
        item.visit_locations(&mut |query, _| queries.push(query.take()));
    }
    let mut locations = locator.locations(&queries).into_iter();
    for item in items {
        item.visit_locations(&mut |_, location| *location = locations.next().flatten());
    }
}

/// So many characters of a long line are kept before and after a position.
const AROUND: usize = 1024;

impl Location {
    /// Returns the location of a position in a text that begins at `start` in its file.
    pub(crate) fn in_text(text: &[u8], start: Start, at: Position) -> Self {
        let line = text.split(|b| *b == b'\n').nth(at.line.saturating_sub(1));
        Location::on_line(line.unwrap_or_default(), start, at)
    }

    fn on_line(line: &[u8], start: Start, at: Position) -> Self {
        let missing = if at.line == 1 { start.column } else { 0 };
        // Of a very long line, the part around the position.
        let cut = match line.len() > 4 * AROUND {
            true => at.column.saturating_sub(AROUND),
            false => 0,
        };
        let shown = match line.len() > 4 * AROUND {
            // ASCII can be cut by bytes; otherwise the whole line is decoded, because columns count characters.
            true if line.is_ascii() => {
                let rest = line.get(cut..).unwrap_or_default();
                String::from_utf8_lossy(rest.get(..2 * AROUND).unwrap_or(rest)).into_owned()
            }
            true => String::from_utf8_lossy(line)
                .chars()
                .skip(cut)
                .take(2 * AROUND)
                .collect(),
            false => String::from_utf8_lossy(line).trim_end().to_owned(),
        };
        Location {
            line: at.line + start.line,
            column: at.column + missing,
            text: shown,
            missing: missing + cut,
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
            // The text is that of the whole document: the index leads to the object.
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
    // A rule may name a field below its own, which only the text of the error says.
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
                // Names may contain dots, so the longest member that fits wins.
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
    found.into_iter().collect()
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

/// The steps to an object of a document; `index` is its position in a list.
pub(crate) fn above(index: &[usize]) -> impl Iterator<Item = Segment<'static>> {
    index
        .iter()
        .flat_map(|n| [Segment::Field("items"), Segment::Index(*n)])
}

/// The value at a path.
pub(crate) fn value_at<'v>(value: &'v Value, path: &PathBuf) -> Option<&'v Value> {
    path.segments().try_fold(value, |v, segment| match segment {
        Segment::Field(name) | Segment::Key(name) => v.get(name),
        Segment::Index(index) => v.as_array()?.get(index),
    })
}
