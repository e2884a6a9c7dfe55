//! What comes of a request.

use scantling_schema::default::TooLarge;
use scantling_value::{ErrorList, FieldError, Value};
use std::time::Duration;

/// What comes of a request.
#[derive(Debug)]
pub struct AdmitOutcome {
    /// The object to store; of a refused request, what it would have been.
    pub object: Value,
    /// Why the request is refused, if it is.
    pub error: Option<AdmissionError>,
    /// What the client should know either way.
    pub warnings: Vec<String>,
    /// What it took.
    pub stats: Stats,
}

/// Why a request is refused. Each kind has its own status and text.
#[derive(Clone, Debug, PartialEq)]
pub enum AdmissionError {
    /// The object cannot be read as one of its kind (400): `json: cannot unmarshal …`.
    Undecodable(String),
    /// Strict reading found something (400): `unknown field "spec.x"`, `duplicate field "spec.y"`.
    Strict(Vec<String>),
    /// Immutable fields would change (400).
    Immutable(ErrorList),
    /// The object is invalid (422).
    Invalid(ErrorList),
    /// Defaults make the object larger than a request may be (413). A server without this bound would fail to store it.
    TooLarge(TooLarge),
    /// The server cannot prepare_and_validate (500): something of its own is not as it should be.
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

/// What a request took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The cost of the rules that ran, in the units of their budget.
    pub rule_cost: u64,
    /// The time spent on telling unchanged values from changed ones, if the caller brought a clock.
    pub ratcheting: Duration,
    /// The time that the rules took, if any ran and the caller brought a clock.
    pub rules: Option<Duration>,
}
