//! The write pipeline of a custom resource as one pure function.
//!
//! [`admit`] takes what a request wants to write and what is stored, and returns what would be stored, or why not,
//! in the words of a Kubernetes API server. It reads no clock and draws no random numbers: whoever calls it brings the
//! time, the new object's `uid` and the end of a generated name.
//!
//! The stages of the pipeline are public, too, for those who need one of them alone: [`shape`] brings an object into
//! the form of its schema, [`load`] does so for objects of the store, and [`check`] says what is wrong with an object.
//! A [`ResourceCompiler`] makes the [`Resource`]s of definitions.
//!
//! ```
//! use scantling_admit::{Gates, NewObjectMeta, WriteOperation, AdmitOptions, Request, ResourceCompiler, admit};
//! use scantling_schema::definition::{ApiVersion, Definition};
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
//! let mut compiler = ResourceCompiler::default();
//! let resource = compiler.resource(&definition.spec, &definition.spec.versions()[0])?;
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
mod check;
mod compiler;
mod normalize;
mod outcome;
mod prepare;
mod resource;
mod scale;

pub use admit::{AdmitOptions, Request, WriteOperation, admit, normalize, prepare_and_validate};
pub use check::{ValidationResult, check};
pub use compiler::{CompileError, ResourceCompiler};
pub use normalize::{prune, prune_and_default, prune_and_default_stored};
pub use outcome::{AdmissionError, AdmitOutcome, Stats};
pub use prepare::NewObjectMeta;
pub use resource::{FieldValidation, Resource, ScalePaths};
pub use scale::{ScaleValues, go_text};
pub use scantling_schema::definition::Gates;
