//! Rules (`x-kubernetes-validations`): what their expressions see, what they cost, and what is wrong with them.

mod check;
mod compile;
mod cost;
pub(crate) mod escape;
mod ready;
mod run;
mod shape;
mod view;

pub use check::{Check, ExpressionLimit};
pub use compile::{Accepted, CompiledRule, Environments, Expression, Expressions, compile};
pub(crate) use ready::{Context, Place, Rules, is_visible, shows_fields};
pub(crate) use run::NOT_COMPILED;
pub use run::{BUDGET, Meter, Options, Report, run};
pub use shape::Shapes;
pub use view::View;
