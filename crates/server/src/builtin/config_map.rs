//! What is particular about config maps.

use super::core::{Particulars, Written};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use scantling_cel::data::names;
use scantling_schema::meta::{NameRule, Scope};
use scantling_value::{FieldError, Map, Path, Value};

/// The most bytes that the values of one may have together.
const MAX_SIZE: usize = 1 << 20;

pub(super) static PARTICULARS: Particulars = Particulars {
    scope: Scope::Namespaced,
    names: NameRule::Subdomain,
    selectable: &super::NAMES,
    qualifies_finalizers: true,
    creates_on_update: false,
    unconditional_update: true,
    kept_in_memory: true,
    prepare: |_, _| {},
    check,
};

fn check(written: &Written<'_>) -> Vec<FieldError> {
    let mut errors = written
        .old
        .map_or_else(Vec::new, |old| changes(old, written.object));
    let held = |field: &str| written.object.get(field).and_then(Value::as_object);
    let (data, binary) = (held("data"), held("binaryData"));
    let root = Path::ROOT;
    let mut size = 0;
    for (field, entries) in [("data", data), ("binaryData", binary)] {
        let at = root.field(field);
        for (key, value) in entries.into_iter().flat_map(Map::iter) {
            let at = at.key(key);
            let wrong = names::config_key(key).into_iter();
            errors.extend(wrong.map(|why| FieldError::invalid(&at, key.as_str(), why)));
            let value = value.as_str().unwrap_or_default();
            size += match field {
                "data" => value.len(),
                _ => BASE64_STANDARD.decode(value).map_or(0, |bytes| bytes.len()),
            };
            if field == "data" && binary.is_some_and(|binary| binary.contains_key(key)) {
                let why = "duplicate of key present in binaryData";
                errors.push(FieldError::invalid(&at, key.as_str(), why));
            }
        }
    }
    if size > MAX_SIZE {
        errors.push(FieldError::too_long(&root.field(""), MAX_SIZE));
    }
    errors
}

/// What may not change in one that says so.
fn changes(old: &Value, new: &Map) -> Vec<FieldError> {
    let is_immutable = |flag: Option<&Value>| flag.and_then(Value::as_bool) == Some(true);
    if !is_immutable(old.get("immutable")) {
        return Vec::new();
    }
    let changed = |field: &str| match field {
        "immutable" => !is_immutable(new.get(field)),
        _ => old.get(field) != new.get(field),
    };
    ["immutable", "data", "binaryData"]
        .into_iter()
        .filter(|field| changed(field))
        .map(|field| {
            let why = "field is immutable when `immutable` is set";
            FieldError::forbidden(&Path::ROOT.field(field), why)
        })
        .collect()
}
