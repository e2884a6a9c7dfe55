//! CustomResourceDefinitions: types, validation, structural schemas and their compiled plans.
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "scantling-schema is pure"
)]

pub mod default;
pub mod definition;
pub mod document;
pub mod field_path;
mod fingerprint;
pub mod gates;
pub mod immutable;
pub mod listtype;
pub mod lower;
pub mod meta;
pub mod names;
pub mod plan;
pub mod prune;
pub mod publish;
pub mod rules;
pub mod structural;
pub mod union;
pub mod validate;

mod correlate;
mod enumeration;
mod format;
mod pattern;

pub use scantling_apitypes::DecodeError;
