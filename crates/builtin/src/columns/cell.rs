//! Cells that show a field.

use super::Printing;
use super::text::{NONE, UNSET, amount, containers, joined, labels, selector, since};
use scantling_value::{Map, Value};

/// A cell that shows a field of an object.
#[derive(Debug)]
pub(super) struct FieldCell {
    function: FieldFunction,
    path: Vec<&'static str>,
    /// The cell of an empty field.
    otherwise: &'static str,
}

type FieldFunction = fn(Option<&Value>, &Printing<'_>) -> Value;

/// The functions of fields, as `definitions.txt` names them. A field that is absent or null is `None`.
const FUNCTIONS: [(&str, FieldFunction); 13] = [
    ("text", |field, _| {
        field.and_then(Value::as_str).unwrap_or("").into()
    }),
    ("pointer", |field, _| {
        field.and_then(Value::as_str).unwrap_or(UNSET).into()
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
        let (source, otherwise) = text.split_once(" or ").unwrap_or((text, ""));
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
        match (self.function)(field, printing) {
            Value::String(empty) if empty.is_empty() => self.otherwise.into(),
            cell => cell,
        }
    }
}
