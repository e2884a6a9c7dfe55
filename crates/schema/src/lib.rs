//! CustomResourceDefinitions: types, validation, structural schemas and their compiled plans.
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "scantling-schema is pure"
)]

pub mod definition;
pub mod document;
pub mod field_path;
pub mod names;
pub mod rules;
pub mod structural;
mod wire;

pub use wire::DecodeError;
