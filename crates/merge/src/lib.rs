//! Everything that makes a new object from an old one and a patch, as pure functions.
//!
//! - [`json_patch`], [`merge_patch`], [`strategic`]: patches as a Kubernetes API server applies them.
//! - [`body`]: their texts, and what strict reading finds in them.
//! - [`fields`]: sets of fields, as `managedFields` holds them.
//! - [`typed`]: comparison and merging driven by a schema.
//! - [`apply`]: ownership of fields by managers, through updates and server-side applies.
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "scantling-merge is pure"
)]

pub mod apply;
pub mod body;
pub mod fields;
pub mod json_patch;
pub mod merge_patch;
pub mod strategic;
pub mod typed;
