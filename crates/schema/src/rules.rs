//! Rules (`x-kubernetes-validations`): what their expressions see, what they cost, and what is wrong with them.

mod escape;
mod shape;

pub use shape::Shapes;
