//! The write pipeline of a custom resource as one pure function.
//!
//! [`admit`] takes what a request wants to write and what is stored, and returns what would be stored, or why not,
//! in the words of a Kubernetes API server. It reads no clock and draws no random numbers: whoever calls it brings the
//! time, the new object's `uid` and the end of a generated name.
//!
//! The stages of the pipeline are public, too, for those who need one of them alone: [`shape`] brings an object into
//! the form of its schema, [`load`] does so for objects of the store, and [`check`] says what is wrong with an object.
//! A [`Workshop`] makes the [`Resource`]s of definitions.
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
pub use scale::{go_text, with_replicas};
pub use scantling_schema::definition::Gates;
pub use shape::{load, prune, shape};
pub use workshop::{Unchecked, Workshop};
