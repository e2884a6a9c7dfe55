//! Patches, server-side apply and field ownership, as pure functions.
//!
//! - [`json_patch`], [`merge_patch`], [`strategic`]: patches as kube-apiserver applies them.
//! - [`patch`]: decodes and applies a patch of any of these types, with the findings of strict decoding.
//! - [`fields`]: field sets, as in `managedFields`.
//! - [`typed`]: schema-driven comparison and merging.
//! - [`apply`]: field ownership, through updates and server-side apply.
//!
//! ```
//! use scantling_merge::json_patch::JsonPatch;
//! use scantling_merge::merge_patch;
//! use scantling_value::{Limits, json};
//!
//! let read = |text: &str| json::decode(text.as_bytes(), Limits::SAFE);
//! let object = read(r#"{"spec": {"image": "a", "replicas": 1}}"#)?;
//!
//! let merged = merge_patch::apply(object.clone(), read(r#"{"spec": {"image": null, "replicas": 2}}"#)?)?;
//! assert_eq!(merged.to_json(), r#"{"spec":{"replicas":2}}"#);
//!
//! let patch = JsonPatch::decode(br#"[{"op": "replace", "path": "/spec/image", "value": "b"}]"#, Limits::SAFE)?;
//! assert_eq!(patch.apply(object)?.to_json(), r#"{"spec":{"image":"b","replicas":1}}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "scantling-merge is pure"
)]

pub mod apply;
pub mod fields;
pub mod json_patch;
mod members;
pub mod merge_patch;
pub mod patch;
pub mod strategic;
mod text;
pub mod typed;
