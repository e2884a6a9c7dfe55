//! Why an evaluation gives no value.

use std::borrow::Cow;
use std::fmt;

/// Why an evaluation gives no value. `Display` is the text of a Kubernetes API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// No overload of a function takes arguments of these types.
    NoSuchOverload,
    /// The cost limit was reached: the evaluation ends here, whatever stands around.
    CostLimitExceeded,
    /// The caller asked to stop: the evaluation ends here, whatever stands around.
    Interrupted,
    /// The values made on the way outgrew the arena: the evaluation ends here, whatever stands around.
    OutOfMemory,
    /// The cost of a call cannot be told: the evaluation ends here, whatever stands around.
    NoCost,
    /// Integer division by zero.
    DivisionByZero,
    /// Integer remainder by zero.
    ModulusByZero,
    /// A result that no `int`, or no duration, holds.
    IntOverflow,
    /// A result that no `uint` holds.
    UintOverflow,
    /// A result that no timestamp holds.
    TimestampOverflow,
    /// Any other error. See [`EvalError::message`].
    Text(Box<Cow<'static, str>>),
}

impl EvalError {
    /// An error with a text.
    #[cold]
    pub fn message(text: impl Into<Cow<'static, str>>) -> Self {
        EvalError::Text(Box::new(text.into()))
    }

    /// A key that is not there.
    #[cold]
    pub fn no_such_key(key: impl fmt::Display) -> Self {
        EvalError::message(format!("no such key: {key}"))
    }

    /// An index that is not there.
    #[cold]
    pub fn index_out_of_bounds(index: impl fmt::Display) -> Self {
        EvalError::message(format!("index out of bounds: {index}"))
    }

    /// Whether evaluation ends here: such an error is never absorbed by `&&`, `||` and their kin.
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
