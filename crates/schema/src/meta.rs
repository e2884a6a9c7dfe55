//! The metadata of objects: `apiVersion`, `kind` and `metadata`, of the object itself and of embedded
//! resources.
//!
//! Schemas do not declare them. [`coerce`] and [`coerce_embedded`] normalize them as kube-apiserver's typed
//! decoding does; [`check_new`], [`check_update`] and [`check_embedded`] validate them.

mod check;
mod coerce;
mod embedded;

pub use check::{
    NameRule, Scope, check_annotations, check_common, check_labels, check_new, check_readable, check_update,
    finalizer_warnings,
};
pub use coerce::{MalformedFields, coerce};
pub use embedded::{check_embedded, coerce_embedded};
pub(crate) use embedded::{check_resource, coerce_one, typed_fields};

use scantling_value::Value;

/// A string of `metadata`; empty if absent.
pub fn string_field<'v>(metadata: Option<&'v Value>, field: &str) -> &'v str {
    metadata.map_or("", |m| m.get_str(field))
}

/// The `generation` in `metadata`; 0 if absent.
pub fn generation(metadata: Option<&Value>) -> i64 {
    metadata
        .and_then(|m| m.get("generation"))
        .and_then(Value::as_int)
        .unwrap_or(0)
}
