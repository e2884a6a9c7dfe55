//! CustomResourceDefinitions: types, validation, structural schemas and their compiled plans.
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "scantling-schema is pure"
)]

pub mod document;
pub mod names;
pub mod rules;
pub mod structural;
