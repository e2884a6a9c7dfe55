//! Sets of fields, as owned by managers.

mod element;
mod fields_v1;
mod set;
mod v1;

pub use element::{Element, FieldPath};
pub use set::Set;
pub use v1::FieldsError;

pub(crate) use element::equal;
pub(crate) use fields_v1::{FieldsKey, FieldsNode, FieldsV1};
pub(crate) use set::SetBuilder;
