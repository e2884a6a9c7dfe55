//! The two modes of the interpreter.
//!
//! Nearly every rule that runs passes, on an object that fits its schema. [`Fast`] serves those evaluations: any error
//! ends the evaluation at once, no message is formatted, and the cost limit is checked in loops and at the end. It
//! never reports an error; the caller repeats the evaluation in [`Thorough`] mode. Evaluation has no side effects, so
//! the repetition costs only time and room in the arena.
//!
//! [`Thorough`] reports every error and absorbs errors as the language demands (`error || true` is `true`).
//!
//! The operators are generic over the mode and written once. In fast mode every error is final, so the compiler
//! removes the code that absorbs errors.

use crate::val::EvalError;

/// The treatment of errors and of the cost limit.
pub(super) trait Mode {
    /// The error of an operator.
    type Error: Clone + From<EvalError>;

    /// True for [`Fast`].
    const FAST: bool;

    /// Creates an error. Fast mode does not call `make`.
    fn error(make: impl FnOnce() -> EvalError) -> Self::Error;

    /// Returns whether the error ends the evaluation. `&&`, `||` and loops absorb all other errors.
    fn is_final(error: &Self::Error) -> bool;
}

/// Accepts evaluations without errors and gives up on all others.
pub(super) struct Fast;

/// Reports every error.
pub(super) struct Thorough;

/// Fast mode has met an error, a cost limit or an interrupt.
#[derive(Clone, Copy)]
pub(super) struct GaveUp;

impl From<EvalError> for GaveUp {
    #[inline]
    fn from(_: EvalError) -> Self {
        GaveUp
    }
}

impl Mode for Fast {
    type Error = GaveUp;

    const FAST: bool = true;

    #[inline(always)]
    fn error(_: impl FnOnce() -> EvalError) -> GaveUp {
        GaveUp
    }

    #[inline(always)]
    fn is_final(_: &GaveUp) -> bool {
        true
    }
}

impl Mode for Thorough {
    type Error = EvalError;

    const FAST: bool = false;

    #[cold]
    fn error(make: impl FnOnce() -> EvalError) -> EvalError {
        make()
    }

    #[inline]
    fn is_final(error: &EvalError) -> bool {
        error.is_final()
    }
}
