//! The encoding of field sets in `managedFields` (`FieldsV1`).

use super::{Element, Set, SetBuilder};
use scantling_value::{Limits, Map, Str, Value, json};
use std::fmt;

/// An error of decoding a set of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldsError(String);

impl fmt::Display for FieldsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FieldsError {}

/// Up to here, every integer is exactly representable as a float.
const GREATEST_WHOLE: u64 = 1 << f64::MANTISSA_DIGITS;

/// The key that marks a path itself as a member, beside its descendants.
pub(super) const SELF: &str = ".";

impl Set {
    /// Encodes the set: `{"f:spec":{".":{},"f:size":{}}}`.
    pub fn to_fields(&self) -> Value {
        Value::Object(document(false, self))
    }

    /// Decodes a set. Elements of unknown kinds are skipped.
    pub fn from_fields(fields: &Value) -> Result<Set, FieldsError> {
        read(fields).map(|(set, _)| set)
    }
}

/// Encodes the descendants of an element, and whether its own path is in the set.
pub(super) fn document(member: bool, below: &Set) -> Map {
    let own = (member && !below.is_empty()).then(|| (Str::from(SELF), Value::Object(Map::new())));
    let steps = below
        .steps()
        .map(|(element, member, below)| (element_key(element), document(member, below).into()));
    // The keys have another order than their elements.
    Map::from_unsorted(own.into_iter().chain(steps).collect())
}

pub(super) fn element_key(element: &Element) -> Str {
    match element {
        Element::Field(name) => {
            let mut key = Str::with_capacity(name.len() + 2);
            key.push_str("f:");
            key.push_str(name);
            key
        }
        Element::Key(keys) => {
            let keys = Value::Object(keys.iter().cloned().collect());
            format!("k:{}", keys.to_json()).into()
        }
        Element::Value(value) => format!("v:{}", value.to_json()).into(),
        Element::Index(i) => format!("i:{i}").into(),
    }
}

pub(super) fn parse_element(key: &str) -> Result<Option<Element>, FieldsError> {
    let Some((kind, text)) = key.split_at_checked(2) else {
        return Err(FieldsError("key must be 2 characters long:".into()));
    };
    if !kind.ends_with(':') {
        return Err(FieldsError(format!("missing colon: {key}")));
    }
    let value = || {
        let value = json::decode(text.as_bytes(), Limits::SAFE).map_err(|e| FieldsError(e.to_string()))?;
        Ok(as_read(value))
    };
    Ok(Some(match kind {
        "f:" => Element::Field(text.into()),
        "v:" => Element::Value(value()?),
        "k:" => match value()? {
            Value::Object(keys) => Element::Key(keys.into_iter().collect()),
            _ => return Err(FieldsError(format!("expected an object of keys: {text}"))),
        },
        "i:" => {
            let parsed = text.parse();
            Element::Index(parsed.map_err(|_| FieldsError(format!("expected an index: {text}")))?)
        }
        _ => return Ok(None),
    }))
}

/// Returns the element after encoding and decoding.
pub(super) fn reread(element: &Element) -> Element {
    match element {
        Element::Key(keys) => Element::Key(
            keys.iter()
                .map(|(k, v)| (k.clone(), as_read(v.clone())))
                .collect(),
        ),
        Element::Value(value) => Element::Value(as_read(value.clone())),
        Element::Field(_) | Element::Index(_) => element.clone(),
    }
}

/// Converts a value of a decoded element: its numbers are floats, as conflicts show them (`[port=1e+06]`).
/// Integers that a float cannot represent stay integers; kube-apiserver rounds them and loses their
/// ownership.
fn as_read(value: Value) -> Value {
    #[expect(
        clippy::cast_precision_loss,
        reason = "the cast tests whether a float represents the integer"
    )]
    match value {
        Value::Int(i) if i.unsigned_abs() <= GREATEST_WHOLE => Value::Float(i as f64),
        Value::Object(map) => Value::Object(map.into_iter().map(|(k, v)| (k, as_read(v))).collect()),
        Value::Array(items) => Value::Array(items.into_iter().map(as_read).collect()),
        other => other,
    }
}

/// Decodes the descendants of an element, and whether its own path is in the set.
fn read(fields: &Value) -> Result<(Set, bool), FieldsError> {
    let map = match fields {
        Value::Object(map) => map,
        Value::Null => return Ok((Set::new(), true)),
        _ => return Err(FieldsError("expected an object of fields".into())),
    };
    let mut set = SetBuilder::default();
    let mut member = false;
    for (key, value) in map.iter() {
        if key == SELF {
            member = true;
            continue;
        }
        let Some(element) = parse_element(key)? else {
            continue;
        };
        let (below, is_member) = read(value)?;
        set.push(element, is_member, below);
    }
    let set = set.finish();
    // The encoding omits the `.` of leaves.
    member |= set.is_empty();
    Ok((set, member))
}
