//! Elements of field paths, and the order of values in field sets.

use scantling_value::{Str, Value, go};
use std::cmp::Ordering;
use std::fmt;

/// One element of a field path.
#[derive(Clone, Debug)]
pub enum Element {
    /// A field of an object, or an entry of a map.
    Field(Str),
    /// The element of a keyed list with these keys, sorted by name.
    Key(Box<[(Str, Value)]>),
    /// An element of a set.
    Value(Value),
    /// An element of a list by its position.
    Index(i64),
}

impl Element {
    /// A field.
    pub fn field(name: &str) -> Self {
        Element::Field(name.into())
    }

    fn rank(&self) -> u8 {
        // structured-merge-diff's order of path elements, in which conflicts are listed.
        match self {
            Element::Field(_) => 0,
            Element::Key(_) => 1,
            Element::Value(_) => 2,
            Element::Index(_) => 3,
        }
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Element::Field(a), Element::Field(b)) => a.cmp(b),
            (Element::Key(a), Element::Key(b)) => compare_members(
                a.iter().map(|(k, v)| (k.as_str(), v)),
                b.iter().map(|(k, v)| (k.as_str(), v)),
            ),
            (Element::Value(a), Element::Value(b)) => compare(a, b),
            (Element::Index(a), Element::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Element {}

/// Formats the element as conflicts do: `.name`, `[name="web"]`, `[="x"]`, `[3]`.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Field(name) => write!(f, ".{name}"),
            Element::Key(keys) => {
                f.write_str("[")?;
                for (i, (name, value)) in keys.iter().enumerate() {
                    let comma = if i > 0 { "," } else { "" };
                    write!(f, "{comma}{name}={}", format_value(value))?;
                }
                f.write_str("]")
            }
            Element::Value(value) => write!(f, "[={}]", format_value(value)),
            Element::Index(i) => write!(f, "[{i}]"),
        }
    }
}

/// Formats a value in a path.
fn format_value(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(f) => go::float_v(*f),
        Value::String(s) => go::quote(s),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(format_value).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => {
            // Members are printed without separators.
            map.iter()
                .map(|(k, v)| format!("{k}={}", format_value(v)))
                .collect()
        }
    }
}

/// A path to a field. `Display` is the notation of conflicts: `.spec.ports[name="web"].port`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(pub Vec<Element>);

impl FieldPath {
    /// A path of field names.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        FieldPath(names.into_iter().map(Element::field).collect())
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}

/// Returns whether values are equal for ownership: integers and floats of the same value are.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b.iter())
                    .all(|((ka, va), (kb, vb))| ka == kb && equal(va, vb))
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "numbers of both kinds compare as floats"
        )]
        (Value::Int(i), Value::Float(f)) | (Value::Float(f), Value::Int(i)) => *i as f64 == *f,
        _ => a == b,
    }
}

/// A total order of values: numbers, strings, booleans, lists, objects, null.
fn compare(a: &Value, b: &Value) -> Ordering {
    fn rank(v: &Value) -> u8 {
        match v {
            Value::Int(_) | Value::Float(_) => 0,
            Value::String(_) => 1,
            Value::Bool(_) => 2,
            Value::Array(_) => 3,
            Value::Object(_) => 4,
            Value::Null => 5,
        }
    }
    // JSON has no NaN, so floats are always comparable.
    let floats = |a: f64, b: f64| a.partial_cmp(&b).unwrap_or(Ordering::Equal);
    #[expect(
        clippy::cast_precision_loss,
        reason = "numbers of both kinds compare as floats"
    )]
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Int(a), Value::Float(b)) => floats(*a as f64, *b),
        (Value::Float(a), Value::Int(b)) => floats(*a, *b as f64),
        (Value::Float(a), Value::Float(b)) => floats(*a, *b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let first = a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|o| o.is_ne());
            first.unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => compare_members(
            a.iter().map(|(k, v)| (k.as_str(), v)),
            b.iter().map(|(k, v)| (k.as_str(), v)),
        ),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn compare_members<'a>(
    mut a: impl Iterator<Item = (&'a str, &'a Value)>,
    mut b: impl Iterator<Item = (&'a str, &'a Value)>,
) -> Ordering {
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some((ka, va)), Some((kb, vb))) => {
                let order = ka.cmp(kb).then_with(|| compare(va, vb));
                if order.is_ne() {
                    return order;
                }
            }
        }
    }
}
