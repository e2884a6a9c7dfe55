//! Programs: checked expressions, compiled for evaluation.
//!
//! `lower` resolves everything that does not depend on a value: variables become slots, fields become JSON names, calls
//! become function pointers, constants are folded. The `interpreter` evaluates the resulting tree over borrowed values and
//! counts the cost that kube-apiserver counts.

mod attribute;
mod call;
mod constant_set;
mod fold;
mod interpreter;
mod lower;
mod op;

use crate::check::CheckedExpr;
use crate::env::{Env, Semantics};
use crate::shape::Shape;
use crate::stack::{SHALLOW, with_room};
use crate::val::{Arena, EvalError, Owned, Res, Val};
use interpreter::Interpreter;
use op::Op;
use scantling_value::Value;
use std::sync::Arc;

/// A compiled expression, which can be evaluated repeatedly and on any thread.
#[derive(Debug)]
pub struct Program {
    root: Op,
    /// The names of the inputs, for error messages.
    inputs: Box<[Arc<str>]>,
    /// The depth of the tree.
    levels: usize,
    semantics: Semantics,
}

/// The value of an input.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// Absent; reading it is an error.
    Absent,
    /// JSON, converted according to its shape when it is read.
    Json(&'a Value, &'a Shape),
    /// Any other value.
    Val(Val<'a>),
}

/// The limits of an evaluation.
#[derive(Clone, Copy)]
pub struct Limits<'c> {
    /// The maximum cost.
    pub cost: u64,
    /// Called after every hundredth loop iteration; `true` ends the evaluation.
    pub interrupt: Option<&'c dyn Fn() -> bool>,
}

impl Limits<'_> {
    /// No limits.
    pub const NONE: Limits<'static> = Limits {
        cost: u64::MAX,
        interrupt: None,
    };
}

impl std::fmt::Debug for Limits<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limits")
            .field("cost", &self.cost)
            .field("interrupt", &self.interrupt.is_some())
            .finish()
    }
}

/// The result and cost of an evaluation.
#[derive(Clone, Debug)]
pub struct EvalOutcome<'a> {
    /// The value or error.
    pub result: Res<'a>,
    /// The cost.
    pub cost: u64,
}

impl Program {
    /// Compiles a checked expression. The inputs are the variables of the environment, in their order.
    ///
    /// # Errors
    /// Returns kube-apiserver's message if a constant cannot be converted or a regular expression does not compile.
    pub fn compile(env: &Env, checked: &CheckedExpr) -> Result<Program, EvalError> {
        lower::lower(env, checked)
    }

    /// Evaluates the program. Inputs beyond those given are absent.
    pub fn eval<'a>(&'a self, arena: &'a Arena, inputs: &[Input<'a>], limits: Limits<'_>) -> EvalOutcome<'a> {
        let mut interpreter = Interpreter::new(self, arena, inputs, limits);
        // Up to this depth the recursion fits any stack, so most programs skip the check.
        let result = if self.levels > SHALLOW {
            with_room(self.levels, || interpreter.eval(&self.root))
        } else {
            interpreter.eval(&self.root)
        };
        EvalOutcome {
            result,
            cost: interpreter.cost(),
        }
    }
}

/// Dropping a deep tree recurses, so it needs stack as well.
impl Drop for Program {
    fn drop(&mut self) {
        if self.levels > SHALLOW {
            // The tree is moved out first: the fields of `self` are dropped after this function, on the thread's own
            // stack.
            let root = std::mem::replace(&mut self.root, Op::Const(Owned::Null));
            with_room(self.levels, || drop(root));
        }
    }
}

const _: () = {
    // Requests on many threads evaluate the same compiled rules.
    const fn shared<T: Send + Sync>() {}
    shared::<Program>();
};

#[cfg(test)]
mod tests;
