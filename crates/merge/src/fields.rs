//! Sets of fields, as owned by managers.

mod codec;
mod element;
mod fields_v1;
mod set;

pub use codec::FieldsError;
pub use element::{Element, FieldPath};
pub use set::Set;

pub(crate) use element::equal;
pub(crate) use fields_v1::{FieldsKey, FieldsNode, FieldsV1};
pub(crate) use set::SetBuilder;
