//! Cells that show a field.

use super::Printing;
use super::text::{NONE, amount, containers, joined, labels, selector, since};
use scantling_value::{Map, Value};

/// A cell that shows a field of an object.
#[derive(Debug)]
pub(super) struct FieldCell {
    function: FieldFunction,
    path: Vec<&'static str>,
    otherwise: Otherwise,
}

/// The cell in place of a text that says nothing.
#[derive(Clone, Copy, Debug)]
enum Otherwise {
    /// Of an empty text.
    Empty(&'static str),
    /// Of a field that is absent. An empty text stays.
    Absent(&'static str),
}

type FieldFunction = fn(Option<&Value>, &Printing<'_>) -> Value;

/// The functions of fields, as `definitions.txt` names them. A field that is absent or null is `None`.
const FUNCTIONS: [(&str, FieldFunction); 12] = [
    ("text", |field, _| {
        field.and_then(Value::as_str).unwrap_or("").into()
    }),
    ("int", |field, _| {
        field.and_then(Value::as_int).unwrap_or(0).into()
    }),
    ("flag", |field, _| {
        field.and_then(Value::as_bool).unwrap_or(false).into()
    }),
    ("amount", |field, _| amount(field).into()),
    ("time", |field, printing| {
        field
            .map_or_else(String::new, |time| since(Some(time), printing))
            .into()
    }),
    ("length", |field, _| {
        count(field.and_then(Value::as_array).map_or(0, <[Value]>::len))
    }),
    ("members", |field, _| {
        count(field.and_then(Value::as_object).map_or(0, Map::len))
    }),
    ("joined", |field, _| joined(field).into()),
    ("labels", |field, _| labels(field).into()),
    ("selector", |field, _| match selector(field).as_deref() {
        None => "<error>".into(),
        Some("") => NONE.into(),
        Some(selector) => selector.into(),
    }),
    ("names", |field, _| containers(field, "name")),
    ("images", |field, _| containers(field, "image")),
];

fn count(number: usize) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

impl FieldCell {
    /// Reads the notation of `definitions.txt`; `None` if a printer computes the cell.
    pub(super) fn parse(text: &'static str) -> Option<FieldCell> {
        let text = match text {
            "name" => "text metadata.name",
            "age" => "time metadata.creationTimestamp or <unknown>",
            text => text,
        };
        let (source, otherwise) = match (text.split_once(" or "), text.split_once(" else ")) {
            (Some((source, empty)), _) => (source, Otherwise::Empty(empty)),
            (None, Some((source, absent))) => (source, Otherwise::Absent(absent)),
            (None, None) => (text, Otherwise::Empty("")),
        };
        let (name, path) = source.split_once(' ')?;
        let (_, function) = FUNCTIONS.iter().find(|(known, _)| *known == name)?;
        Some(FieldCell {
            function: *function,
            path: path.split('.').collect(),
            otherwise,
        })
    }

    /// The cell of an object.
    pub(super) fn render(&self, object: &Value, printing: &Printing<'_>) -> Value {
        let field = object.at(self.path.iter().copied()).filter(|v| !v.is_null());
        match (self.otherwise, (self.function)(field, printing)) {
            (Otherwise::Empty(otherwise), Value::String(text)) if text.is_empty() => otherwise.into(),
            (Otherwise::Absent(otherwise), _) if field.is_none() => otherwise.into(),
            (_, cell) => cell,
        }
    }
}
