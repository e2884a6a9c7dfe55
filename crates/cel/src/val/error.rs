//! Evaluation errors.

use std::borrow::Cow;
use std::fmt;

/// An evaluation error. `Display` gives kube-apiserver's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// No overload of a function takes arguments of these types.
    NoSuchOverload,
    /// The cost limit was exceeded. Final: no operator absorbs it.
    CostLimitExceeded,
    /// The caller has interrupted the evaluation. Final.
    Interrupted,
    /// Intermediate values exceed the limit of the arena. Final.
    OutOfMemory,
    /// kube-apiserver fails to compute the cost of the call. Final.
    NoCost,
    /// Integer division by zero.
    DivisionByZero,
    /// Integer remainder by zero.
    ModulusByZero,
    /// The result does not fit an `int` or a duration.
    IntOverflow,
    /// The result does not fit a `uint`.
    UintOverflow,
    /// The result does not fit a timestamp.
    TimestampOverflow,
    /// Any other error. See [`EvalError::message`].
    Text(Box<Cow<'static, str>>),
}

impl EvalError {
    /// Creates an error with a message.
    #[cold]
    pub fn message(text: impl Into<Cow<'static, str>>) -> Self {
        // Boxed, so that an error does not make results larger than values.
        EvalError::Text(Box::new(text.into()))
    }

    /// A missing key.
    #[cold]
    pub fn no_such_key(key: impl fmt::Display) -> Self {
        EvalError::message(format!("no such key: {key}"))
    }

    /// An index out of bounds.
    #[cold]
    pub fn index_out_of_bounds(index: impl fmt::Display) -> Self {
        EvalError::message(format!("index out of bounds: {index}"))
    }

    /// Returns whether the error ends the evaluation: `&&`, `||` and loops do not absorb it.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            EvalError::CostLimitExceeded
                | EvalError::Interrupted
                | EvalError::OutOfMemory
                | EvalError::NoCost
        )
    }
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EvalError::NoSuchOverload => "no such overload",
            EvalError::CostLimitExceeded => "operation cancelled: actual cost limit exceeded",
            EvalError::Interrupted => "operation interrupted",
            EvalError::OutOfMemory => "operation cancelled: memory limit exceeded",
            EvalError::NoCost => {
                // The text of the Go panic that cel-go recovers from.
                "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add"
            }
            EvalError::DivisionByZero => "division by zero",
            EvalError::ModulusByZero => "modulus by zero",
            EvalError::IntOverflow => "integer overflow",
            EvalError::UintOverflow => "unsigned integer overflow",
            EvalError::TimestampOverflow => "timestamp overflow",
            EvalError::Text(text) => text,
        })
    }
}

impl std::error::Error for EvalError {}
