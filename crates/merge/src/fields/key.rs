//! The keys of field sets in `managedFields` (`FieldsV1`): encoded path elements.

use super::Element;
use scantling_value::{Limits, Str, Value, json};
use std::fmt;

/// An error of decoding a set of fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldsError(pub(super) String);

impl fmt::Display for FieldsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FieldsError {}

/// Up to here, every integer is exactly representable as a float.
const GREATEST_WHOLE: u64 = 1 << f64::MANTISSA_DIGITS;

/// The key that marks a path itself as a member, beside its descendants. It precedes all other keys.
pub(super) const SELF: &str = ".";

/// The beginning of the key of a field.
pub(super) const FIELD: &str = "f:";

/// The key of a field.
pub(super) fn field_key(name: &str) -> Str {
    let mut key = Str::const_new(FIELD);
    key.push_str(name);
    key
}

/// The key of a path element.
pub(super) fn element_key(element: &Element) -> Str {
    match element {
        Element::Field(name) => field_key(name),
        Element::Key(keys) => {
            let mut key = b"k:{".to_vec();
            for (i, (name, value)) in keys.iter().enumerate() {
                if i > 0 {
                    key.push(b',');
                }
                json::write_key(&mut key, name);
                value.write_json(&mut key);
            }
            key.push(b'}');
            Str::from_utf8_lossy(&key)
        }
        Element::Value(value) => {
            let mut key = b"v:".to_vec();
            value.write_json(&mut key);
            Str::from_utf8_lossy(&key)
        }
        Element::Index(i) => format!("i:{i}").into(),
    }
}

/// Decodes a key; `None` for an element of an unknown kind.
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
        FIELD => Element::Field(text.into()),
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
