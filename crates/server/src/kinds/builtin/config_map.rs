//! What is particular about config maps.

use super::core::{RestStrategy, ValidationContext};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use scantling_notation::names;
use scantling_schema::meta::{NameRule, Scope};
use scantling_value::{ErrorList, FieldError, Map, Path, Value};

/// The most bytes that the values of one may have together; of a secret, too.
pub(super) const MAX_SIZE: usize = 1 << 20;

pub(super) static PARTICULARS: RestStrategy = RestStrategy {
    scope: Scope::Namespaced,
    names: NameRule::Subdomain,
    selectable: &super::NAMES,
    qualifies_finalizers: true,
    creates_on_update: false,
    unconditional_update: true,
    kept_in_memory: true,
    complete: |_| {},
    prepare: |_, _| {},
    check,
    warn: |_| Vec::new(),
};

fn check(ctx: &ValidationContext<'_>) -> ErrorList {
    let mut errors = ctx.old.map_or_else(ErrorList::new, |old| {
        changes_of_immutable(old, ctx.object, &["data", "binaryData"])
    });
    let held = |field: &str| ctx.object.get(field).and_then(Value::as_object);
    let (data, binary) = (held("data"), held("binaryData"));
    let root = Path::ROOT;
    let mut size = 0;
    for (field, entries) in [("data", data), ("binaryData", binary)] {
        let at = root.field(field);
        for (key, value) in entries.into_iter().flat_map(Map::iter) {
            let at = at.key(key);
            errors.extend(key_errors(key, &at));
            let value = value.as_str().unwrap_or_default();
            size += match field {
                "data" => value.len(),
                _ => BASE64_STANDARD.decode(value).map_or(0, |bytes| bytes.len()),
            };
            if field == "data" && binary.is_some_and(|binary| binary.contains_key(key)) {
                let why = "duplicate of key present in binaryData";
                errors.push_with(|| FieldError::invalid(&at, key.as_str(), why));
            }
        }
    }
    if size > MAX_SIZE {
        errors.push_with(|| FieldError::too_long(&root.field(""), MAX_SIZE));
    }
    errors
}

/// What is wrong with the name of an entry.
pub(super) fn key_errors(key: &str, at: &Path<'_>) -> ErrorList {
    let wrong = names::config_key(key).into_iter();
    wrong.map(|why| FieldError::invalid(at, key, why)).collect()
}

/// What may not change in an object that says that these fields may not.
pub(super) fn changes_of_immutable(old: &Value, new: &Map, fields: &[&'static str]) -> ErrorList {
    let is_immutable = |flag: Option<&Value>| flag.and_then(Value::as_bool) == Some(true);
    if !is_immutable(old.get("immutable")) {
        return ErrorList::new();
    }
    let freed = Some("immutable").filter(|field| !is_immutable(new.get(field)));
    let changed = fields
        .iter()
        .copied()
        .filter(|field| old.get(field) != new.get(field));
    freed
        .into_iter()
        .chain(changed)
        .map(|field| {
            let why = "field is immutable when `immutable` is set";
            FieldError::forbidden(&Path::ROOT.field(field), why)
        })
        .collect()
}
