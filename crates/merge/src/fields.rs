//! Sets of fields, as owned by managers.

mod element;
mod key;
mod set;

pub use element::{Element, FieldPath};
pub use key::FieldsError;
pub use set::Set;

pub(crate) use element::equal;
pub(crate) use set::{FieldsKey, FieldsNode, NodeBuilder};
