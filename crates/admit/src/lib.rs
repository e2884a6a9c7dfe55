//! The write pipeline of a custom resource as one pure function.
//!
//! [`admit`] takes what a request wants to write and what is stored, and returns what would be stored, or why not,
//! in the words of a Kubernetes API server. It reads no clock and draws no random numbers: whoever calls it brings the
//! time, the new object's `uid` and the end of a generated name.
//!
//! The stages of the pipeline are public, too, for those who need one of them alone: [`shape`] brings an object into
//! the form of its schema, [`load`] does so for objects of the store, and [`check`] says what is wrong with an object.
//! A [`Workshop`] makes the [`Resource`]s of definitions.
//!
//! ```
//! use scantling_admit::{Gates, Identity, Operation, Options, Request, Workshop, admit};
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
//! let mut workshop = Workshop::default();
//! let resource = workshop.resource(&definition.spec, &definition.spec.versions()[0])?;
//!
//! let identity = Identity {
//!     uid: "7a1c".into(),
//!     created: "2026-08-01T00:00:00Z".into(),
//!     suffix: "x7k2p".into(),
//! };
//! let create = |spec: &str| {
//!     let object = format!("{{apiVersion: example.com/v1, kind: Widget, metadata: {{name: a}}, spec: {spec}}}");
//!     let object = yaml::decode(object.as_bytes(), Limits::SAFE)?;
//!     let request = Request { operation: Operation::Create(&identity), object, found_in_text: &[] };
//!     Ok::<_, Box<dyn std::error::Error>>(admit(&resource, request, &Options::default()))
//! };
//! let outcome = create("{}")?;
//! assert!(outcome.refusal.is_none());
//! assert_eq!(outcome.object.get("spec").map(|spec| spec.to_json()).as_deref(), Some(r#"{"size":3}"#));
//!
//! let refusal = create("{size: 0}")?.refusal.ok_or("a size of 0 is refused")?;
//! assert_eq!(refusal.status(), 422);
//! assert_eq!(refusal.errors()[0].to_string(), "spec: Invalid value: a widget has a size");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "scantling-admit is pure"
)]

mod admit;
mod check;
mod outcome;
mod prepare;
mod resource;
mod scale;
mod shape;
mod workshop;

pub use admit::{Operation, Options, Request, admit, decide, receive};
pub use check::{Checked, check};
pub use outcome::{Outcome, Refusal, Stats};
pub use prepare::Identity;
pub use resource::{FieldValidation, Resource, Scale};
pub use scale::{Scaled, go_text};
pub use scantling_schema::definition::Gates;
pub use shape::{load, prune, shape};
pub use workshop::{Unchecked, Workshop};
