//! The outcome of a request.

use scantling_schema::default::TooLarge;
use scantling_value::{ErrorList, FieldError, Finding, FindingList, Value};
use std::fmt;
use std::time::Duration;

/// The outcome of a request.
#[derive(Debug)]
pub struct AdmitOutcome {
    /// The object to store; if the request is rejected, the object as far as it was processed.
    pub object: Value,
    /// The reason for a rejection.
    pub error: Option<AdmissionError>,
    /// Warnings for the client.
    pub warnings: Vec<Warning>,
    /// The work done.
    pub stats: Stats,
}

/// A warning for the client. `Display` is its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// An unknown or duplicate field.
    Finding(Finding),
    /// Any other warning.
    Text(String),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Finding(finding) => finding.fmt(f),
            Warning::Text(text) => f.write_str(text),
        }
    }
}

/// The reason why a request is rejected. Each kind has its own status and text.
#[derive(Clone, Debug, PartialEq)]
pub enum AdmissionError {
    /// The object cannot be decoded (400): `json: cannot unmarshal …`.
    Undecodable(String),
    /// Strict decoding rejects unknown or duplicate fields (400).
    Strict(FindingList),
    /// Immutable fields would change (400).
    Immutable(ErrorList),
    /// The object is invalid (422).
    Invalid(ErrorList),
    /// Defaults make the object larger than a request may be (413). Without this bound, storing it would
    /// fail.
    TooLarge(TooLarge),
    /// An impossible state of the server itself (500).
    Internal(String),
}

impl From<TooLarge> for AdmissionError {
    fn from(why: TooLarge) -> Self {
        AdmissionError::TooLarge(why)
    }
}

impl AdmissionError {
    /// The HTTP status.
    pub fn status(&self) -> u16 {
        match self {
            AdmissionError::Undecodable(_) | AdmissionError::Strict(_) | AdmissionError::Immutable(_) => 400,
            AdmissionError::Invalid(_) => 422,
            AdmissionError::TooLarge(_) => 413,
            AdmissionError::Internal(_) => 500,
        }
    }

    /// The field errors, if it is about fields.
    pub fn errors(&self) -> &[FieldError] {
        match self {
            AdmissionError::Immutable(errors) | AdmissionError::Invalid(errors) => errors,
            AdmissionError::Undecodable(_)
            | AdmissionError::Strict(_)
            | AdmissionError::TooLarge(_)
            | AdmissionError::Internal(_) => &[],
        }
    }
}

/// The work that a request took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The cost of the rules that ran, in the units of their budget.
    pub rule_cost: u64,
    /// The time spent on ratcheting, if the caller brought a clock.
    pub ratcheting: Duration,
    /// The time that the rules took, if any ran and the caller passed a clock.
    pub rules: Option<Duration>,
    /// The time that validating a CRD took, which compiles its rules, if the caller brought a clock.
    pub compilation: Option<Duration>,
}
