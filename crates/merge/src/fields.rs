//! Sets of fields: who owns what.

mod element;
mod set;
mod v1;
mod written;

pub use element::{Element, FieldPath};
pub use set::Set;
pub use v1::FieldsError;

pub(crate) use element::equal;
pub(crate) use set::SetBuilder;
pub(crate) use written::{Key, Node, Written};
