//! Where in a file an error is.

use crate::input::{Document, Notation, Start};
use scantling_value::{FieldError, Limits, Path, PathBuf, Position, Segment, Value};
use serde::Serialize;
use std::cell::OnceCell;
use std::sync::{Arc, OnceLock};

/// A place in a file, and the line that stands there.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Location {
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

/// What to look for in a document.
#[derive(Clone, Debug)]
pub(crate) enum LocationQuery {
    /// A path from the document's root.
    Path(PathBuf),
    /// A line, from 1.
    Line(usize),
}

/// So many paths are looked for one by one.
const FEW: usize = 8;

/// Spots of three sorts, as many as any command tells apart.
pub(crate) type Spots = [Vec<Option<LocationQuery>>; 3];

/// A document as it was sent, for those who look for places in it.
#[derive(Debug)]
pub(crate) struct DocumentLocator<'d> {
    document: &'d Document<'d>,
    /// What it holds; decoded once more where somebody wants to know.
    value: OnceLock<Value>,
}

impl<'d> DocumentLocator<'d> {
    pub(crate) fn new(document: &'d Document<'d>) -> Self {
        DocumentLocator {
            document,
            value: OnceLock::new(),
        }
    }

    /// One of the objects of the document; `index` is its place in a list.
    fn object(&self, index: &[usize]) -> &Value {
        let whole = self
            .value
            .get_or_init(|| self.document.value().unwrap_or(Value::Null));
        let element = index
            .iter()
            .try_fold(whole, |list, n| list.get("items")?.as_array()?.get(*n));
        element.unwrap_or(&Value::Null)
    }

    /// A path in one of the objects.
    pub(crate) fn spot(&self, index: &[usize], path: &PathBuf) -> Option<LocationQuery> {
        let above = index
            .iter()
            .flat_map(|n| [Segment::Field("items"), Segment::Index(*n)]);
        let steps: Vec<Segment<'_>> = above.chain(path.segments()).collect();
        Some(LocationQuery::Path(append(&Path::ROOT, &steps)))
    }

    /// A field of one of the objects, as texts schema_path it.
    pub(crate) fn spelled(&self, index: &[usize], field: &str) -> Option<LocationQuery> {
        self.spot(index, &path_in(field, self.object(index)))
    }

    /// What a server says in words: of unknown and duplicate fields, and of fields that a text begins with.
    pub(crate) fn said(&self, index: &[usize], text: &str) -> Option<LocationQuery> {
        let path = path_said(text, self.object(index));
        if path.segments().next().is_some() {
            return self.spot(index, &path);
        }
        // YAML's strict decoder names lines: `line 6: key "size" already set in map`.
        let number = text.strip_prefix("line ")?.split(':').next()?;
        number.parse().ok().map(LocationQuery::Line)
    }

    /// The places of spots, beside them.
    pub(crate) fn places(&self, spots: &[Option<LocationQuery>]) -> Vec<Option<Location>> {
        let paths = spots.iter().flatten();
        let paths: Vec<PathBuf> = paths
            .filter_map(|spot| match spot {
                LocationQuery::Path(path) => Some(path.clone()),
                LocationQuery::Line(_) => None,
            })
            .collect();
        let document = self.document;
        let positions = match (document.notation, paths.as_slice()) {
            (_, []) => Vec::new(),
            // For a few paths, looking through a text is cheaper than making a tree of it.
            (Notation::Json, few) if few.len() <= FEW => few
                .iter()
                .map(|path| Position::in_json(document.text, path))
                .collect(),
            _ => Position::all_in_yaml(document.text, &paths, Limits::SERVER),
        };
        let mut positions = positions.into_iter();
        let lines = OnceCell::new();
        let lines = || lines.get_or_init(|| document.text.split(|b| *b == b'\n').collect::<Vec<_>>());
        let place_of = |spot: &Option<LocationQuery>| match spot.as_ref()? {
            LocationQuery::Path(_) => Some(place(document, lines(), positions.next()??)),
            LocationQuery::Line(line) => line_place(document, lines(), *line),
        };
        spots.iter().map(place_of).collect()
    }
}

/// Gives items their places. All of a document are looked up at once: every search reads the whole text.
pub(crate) fn place_all<T>(
    sent: &DocumentLocator<'_>,
    found: Vec<(T, Spots)>,
    give: impl Fn(&mut T, [Vec<Option<Location>>; 3]),
) -> Vec<T> {
    let (items, spots): (Vec<T>, Vec<Spots>) = found.into_iter().unzip();
    let counts: Vec<[usize; 3]> = spots.iter().map(|spots| spots.each_ref().map(Vec::len)).collect();
    let wanted: Vec<Option<LocationQuery>> = spots.into_iter().flatten().flatten().collect();
    let mut places = sent.places(&wanted).into_iter();
    let placed = items.into_iter().zip(counts).map(|(mut item, counts)| {
        give(&mut item, counts.map(|n| places.by_ref().take(n).collect()));
        item
    });
    placed.collect()
}

impl Location {
    /// A position in a text that begins somewhere in its file.
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

fn place(document: &Document<'_>, lines: &[&[u8]], at: Position) -> Location {
    let line = lines.get(at.line.saturating_sub(1)).copied().unwrap_or_default();
    Location::on_line(line, document.start, at)
}

/// The text of an object, kept so that places can be looked up after its file is left.
#[derive(Debug)]
pub(crate) struct SourceText {
    file: Arc<str>,
    text: Arc<[u8]>,
    start: Start,
    notation: Notation,
    index: Vec<usize>,
}

impl SourceText {
    /// An object of a document whose text is kept.
    pub(crate) fn new(document: &Document<'_>, text: &Arc<[u8]>, index: &[usize]) -> Self {
        SourceText {
            file: Arc::clone(document.file),
            text: Arc::clone(text),
            start: document.start,
            notation: document.notation,
            index: index.to_vec(),
        }
    }

    /// The places of fields, as texts schema_path them.
    pub(crate) fn places(&self, fields: &[String]) -> Vec<Option<Location>> {
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
        let sent = DocumentLocator::new(&document);
        let spots: Vec<Option<LocationQuery>> = fields
            .iter()
            .map(|field| sent.spelled(&self.index, field))
            .collect();
        sent.places(&spots)
    }
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

/// The first character of a line that is no space.
fn line_place(document: &Document<'_>, lines: &[&[u8]], line: usize) -> Option<Location> {
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
