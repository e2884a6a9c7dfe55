//! Rules (`x-kubernetes-validations`): shapes, cost, compilation and evaluation.

mod check;
mod compile;
mod compiled;
mod cost;
pub(crate) mod escape;
mod run;
mod shape;
mod visible_shape;

pub use check::{ExpressionLimit, RuleCheck};
pub use compile::{CompiledRule, Environments, Expression, Expressions, PreviouslyAccepted, compile};
pub(crate) use compiled::{LazyRules, RuleContext, RuleScope, is_visible, shows_fields};
pub(crate) use run::NOT_COMPILED;
pub use run::{BUDGET, Meter, RuleOptions, RuleReport, run};
pub use shape::Shapes;
pub use visible_shape::VisibleShape;
