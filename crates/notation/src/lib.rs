//! Notations of Kubernetes and Go: texts that stand for values, with the meaning and the error texts that a Kubernetes
//! API server gives them.
//!
//! This is a crate of layer 0: the expression language and the API types both read these texts.
#![deny(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "scantling-notation is pure"
)]

pub mod quantity;
pub mod timestamp;
