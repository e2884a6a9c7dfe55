//! Rules (`x-kubernetes-validations`): what their expressions see, what they cost, and what is wrong with them.

mod check;
mod compile;
mod cost;
mod escape;
mod shape;
mod view;

pub use check::{Check, ExpressionLimit};
pub use compile::{Accepted, CompiledRule, Environments, Expression, Expressions, compile};
pub use shape::Shapes;
pub use view::View;
