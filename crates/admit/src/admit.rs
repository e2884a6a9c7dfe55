//! The pipeline as one function.

use crate::pipeline::{AnyResource, NormalizeMode, Normalized};
use crate::{AdmitOutcome, FieldValidation, Gates, NewObjectMeta};
use scantling_builtin::{Context, Subresource, User};
use scantling_schema::gates::is_on_by_default;
use scantling_schema::rules::Meter;
use scantling_value::{Finding, Value};
use std::time::Duration;

/// A request to write an object.
#[derive(Debug)]
pub struct Request<'a> {
    /// The operation, with the stored object.
    pub operation: WriteOperation<'a>,
    /// The object as sent, or as a patch or an apply produced it.
    pub object: Value,
    /// The findings of strict decoding of the text, which are duplicate fields.
    pub findings: &'a [Finding],
}

/// The operation of a request.
#[derive(Clone, Copy, Debug)]
pub enum WriteOperation<'a> {
    /// Creates an object.
    Create(&'a NewObjectMeta),
    /// Updates the stored object. A write to `/scale` is an update, too: see
    /// [`ScalePaths::with_replicas`](crate::ScalePaths::with_replicas).
    Update(&'a Value),
    /// Updates the status of the stored object.
    UpdateStatus(&'a Value),
}

/// The parameters of admission.
#[derive(Clone, Copy, Default)]
pub struct AdmitOptions<'a> {
    /// The enabled features.
    pub gates: Gates,
    /// The treatment of unknown and duplicate fields.
    pub field_validation: FieldValidation,
    /// The request, as far as built-in kinds depend on it.
    pub request: RequestContext<'a>,
    /// A clock, to measure ratcheting and rules.
    pub clock: Option<&'a dyn Fn() -> Duration>,
    /// Receives the cost of each rule.
    pub meter: Option<Meter<'a>>,
}

/// The inputs of the rules of built-in kinds besides the object.
#[derive(Clone, Copy, Debug)]
pub struct RequestContext<'a> {
    /// Returns whether a feature gate of Kubernetes is enabled.
    pub enabled: fn(&str) -> bool,
    /// The time of the request: `2006-01-02T15:04:05Z`.
    pub now: &'a str,
    /// The user who sent the request.
    pub user: User<'a>,
    /// The subresource that is written. [`WriteOperation::UpdateStatus`] implies `/status`.
    pub subresource: Subresource,
}

impl Default for RequestContext<'_> {
    fn default() -> Self {
        RequestContext {
            enabled: is_on_by_default,
            now: "",
            user: User::default(),
            subresource: Subresource::None,
        }
    }
}

impl<'a> RequestContext<'a> {
    pub(crate) fn builtin(&self) -> Context<'a> {
        Context {
            enabled: self.enabled,
            now: self.now,
            user: self.user,
        }
    }
}

impl std::fmt::Debug for AdmitOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdmitOptions")
            .field("gates", &self.gates)
            .field("field_validation", &self.field_validation)
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

/// Runs all stages of a write; the crate's documentation has an example.
pub fn admit<'r>(
    resource: impl Into<AnyResource<'r>>,
    request: Request<'_>,
    options: &AdmitOptions<'_>,
) -> AdmitOutcome {
    let Request {
        operation,
        object,
        findings,
    } = request;
    Normalized::new(resource, object, findings, NormalizeMode::Request, options)
        .and_then(|normalized| normalized.prepare(operation, options))
        .and_then(super::pipeline::Prepared::validate)
        .into()
}
