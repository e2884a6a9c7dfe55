//! The metadata of objects: `apiVersion`, `kind` and `metadata`, of the object itself and of resources embedded in it.
//!
//! A schema does not describe them. They are brought into form by [`coerce`] and [`coerce_embedded`], as decoding into
//! typed fields does it in a server, and checked by [`check_new`], [`check_update`] and [`check_embedded`].

mod check;
mod coerce;
mod embedded;

pub use check::{
    NameRule, Scope, check_annotations, check_common, check_labels, check_new, check_readable, check_update,
    finalizer_warnings,
};
pub use coerce::{Coercion, MalformedFields, coerce};
pub use embedded::{check_embedded, coerce_embedded};
pub(crate) use embedded::{check_resource, coerce_one, typed_fields};

use scantling_value::Value;

/// A string of `metadata`; empty where absent.
pub fn string_field<'v>(metadata: Option<&'v Value>, field: &str) -> &'v str {
    metadata.map_or("", |m| m.get_str(field))
}

/// The `generation` in `metadata`; 0 where absent.
pub fn generation(metadata: Option<&Value>) -> i64 {
    metadata
        .and_then(|m| m.get("generation"))
        .and_then(Value::as_int)
        .unwrap_or(0)
}
