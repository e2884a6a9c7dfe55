//! The write pipeline of Kubernetes objects: custom resources and built-in kinds.
//!
//! A write passes through stages. Each stage is a type: [`Normalized`] (pruned, defaulted, findings reported),
//! [`Prepared`] (system fields set), [`Admitted`] (valid). A caller may act between stages. [`admit`] runs
//! them all and returns the object to store, or the error of a Kubernetes API server.
//!
//! The crate reads no clock and draws no random numbers: the caller passes the time, the `uid` of a new object and the
//! suffix of a generated name.
//!
//! A [`ResourceCompiler`] compiles the versions of an accepted CRD to [`Resource`]s; a [`BuiltinResource`] is a version of a
//! built-in kind; a [`DefinitionResource`] is a version of CRDs themselves. [`prune_and_default_stored`] normalizes
//! objects of the store, [`check`] validates values alone.
//!
//! ```
//! use scantling_cel::kubernetes::KubernetesVersion;
//! use scantling_admit::{Gates, NewObjectMeta, WriteOperation, AdmitOptions, Request, ResourceCompiler, admit};
//! use scantling_schema::definition::{Accepted, ApiVersion, Definition, ValidationContext};
//! use scantling_schema::rules::Environments;
//! use scantling_value::{Limits, yaml};
//!
//! let definition = br#"
//! apiVersion: apiextensions.k8s.io/v1
//! kind: CustomResourceDefinition
//! metadata: {name: widgets.example.com}
//! spec:
//!   group: example.com
//!   scope: Cluster
//!   names: {plural: widgets, singular: widget, kind: Widget}
//!   versions:
//!   - name: v1
//!     served: true
//!     storage: true
//!     schema:
//!       openAPIV3Schema:
//!         type: object
//!         properties:
//!           spec:
//!             type: object
//!             properties:
//!               size: {type: integer, default: 3}
//!             x-kubernetes-validations:
//!             - {rule: self.size > 0, message: a widget has a size}
//! "#;
//! let definition = yaml::decode(definition, Limits::SAFE)?;
//! let definition = Definition::decode(definition, ApiVersion::V1, Gates::default())?.definition;
//! let context = ValidationContext {
//!     api: ApiVersion::V1,
//!     gates: Gates::default(),
//!     environments: &Environments::for_version(KubernetesVersion::LATEST),
//! };
//! let accepted = Accepted::create(definition, &context).map_err(|errors| errors[0].clone())?.accepted;
//! let resource = ResourceCompiler::default().compile(&accepted, "v1")?;
//!
//! let meta = NewObjectMeta {
//!     uid: "7a1c".into(),
//!     created: "2026-08-01T00:00:00Z".into(),
//!     suffix: "x7k2p".into(),
//! };
//! let create = |spec: &str| {
//!     let object = format!("{{apiVersion: example.com/v1, kind: Widget, metadata: {{name: a}}, spec: {spec}}}");
//!     let object = yaml::decode(object.as_bytes(), Limits::SAFE)?;
//!     let request = Request { operation: WriteOperation::Create(&meta), object, findings: &[] };
//!     Ok::<_, Box<dyn std::error::Error>>(admit(&resource, request, &AdmitOptions::default()))
//! };
//! let outcome = create("{}")?;
//! assert!(outcome.error.is_none());
//! assert_eq!(outcome.object.get("spec").map(|spec| spec.to_json()).as_deref(), Some(r#"{"size":3}"#));
//!
//! let error = create("{size: 0}")?.error.ok_or("a size of 0 is refused")?;
//! assert_eq!(error.status(), 422);
//! assert_eq!(error.errors()[0].to_string(), "spec: Invalid value: a widget has a size");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "scantling-admit is pure"
)]

mod admit;
mod builtin;
mod check;
mod compiler;
mod custom;
mod definition;
mod metadata;
mod normalize;
mod outcome;
mod pipeline;
mod prepare;
mod resource;
mod scale;

pub use admit::{AdmitOptions, Request, RequestContext, WriteOperation, admit};
pub use builtin::{BuiltinResource, TypedObject, decode_typed};
pub use check::{ValidationResult, check};
pub use compiler::{CompileError, ResourceCompiler};
pub use definition::DefinitionResource;
pub use metadata::{NewObjectMeta, keep_system_fields, remove_system_fields};
pub use normalize::{prune, prune_and_default_stored};
pub use outcome::{AdmissionError, AdmitOutcome, Stats, Warning};
pub use pipeline::{
    Admitted, AnyResource, NormalizeMode, Normalized, Prepared, Rejected, StageResult, report_findings,
};
pub use resource::{FieldValidation, Resource, ScalePaths};
pub use scale::{ScaleValues, go_text};
pub use scantling_schema::definition::Gates;

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
