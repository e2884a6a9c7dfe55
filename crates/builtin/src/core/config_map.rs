//! ConfigMap.

use crate::checks::Report;
use crate::{Cursor, KindBehavior, KindFacts, Write};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use scantling_notation::names;
use scantling_value::{ErrorList, FieldError, Value};

/// Configuration as keys and values.
pub(super) const KIND: KindBehavior = KindBehavior {
    validate,
    ..KindBehavior::new(KindFacts {
        validates_name_on_update: true,
        ..KindFacts::new("", "ConfigMap")
    })
};

/// The most bytes of all values of a ConfigMap or a Secret.
pub(super) const MAX_SIZE: usize = 1 << 20;

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    check_immutable(object, write, &["data", "binaryData"], errors);
    let root = Cursor::root(object);
    let (data, binary) = (root.field("data"), root.field("binaryData"));
    let mut size = 0;
    for (key, value) in data.entries() {
        check_key(key, &value, errors);
        size += value.str().len();
        if binary.map().is_some_and(|binary| binary.contains_key(key)) {
            errors.invalid_value(&value, key, "duplicate of key present in binaryData");
        }
    }
    for (key, value) in binary.entries() {
        check_key(key, &value, errors);
        // Decoding has refused values that are not base64.
        size += BASE64_STANDARD.decode(value.str()).map_or(0, |bytes| bytes.len());
    }
    if size > MAX_SIZE {
        // The empty path says that the error is about the whole object.
        errors.push_with(|| FieldError::too_long(root.field("").path(), MAX_SIZE));
    }
}

/// Checks the name of an entry.
pub(super) fn check_key(key: &str, at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    for why in names::config_key(key) {
        errors.invalid_value(at, key, why);
    }
}

/// An object that is `immutable` stays so, and its data stay.
pub(super) fn check_immutable(
    object: &Value,
    write: &Write<'_>,
    fields: &[&'static str],
    errors: &mut ErrorList,
) {
    let is_immutable = |object: &Value| object.get("immutable").and_then(Value::as_bool) == Some(true);
    let Some(old) = write.old().filter(|old| is_immutable(old)) else {
        return;
    };
    let root = Cursor::root(object);
    let unset = (!is_immutable(object)).then_some(&"immutable");
    let changed = fields.iter().filter(|field| old.get(field) != object.get(field));
    for field in unset.into_iter().chain(changed) {
        errors.forbidden(&root.field(field), "field is immutable when `immutable` is set");
    }
}
