//! Ownership of fields: who set what, through updates and server-side applies.
//!
//! [`FieldManager`] is what a server calls: [`FieldManager::update`] after any write that is no apply, and
//! [`FieldManager::apply`] for an apply.

mod conflict;
mod last_applied;
mod managed;
mod manager;
mod scale;
mod updater;

pub use conflict::{Conflict, Conflicts};
pub use managed::{ManagedError, ManagerId, ManagerOperation};
pub use manager::{ApplyError, FieldManager, Force, TypeCheck, Updated};
pub use scale::{ScaleMapping, scale_to_parent, scale_to_subresource};

use crate::typed::ObjectType;
use scantling_value::Value;

/// The versions of a kind: their types, and conversion between them.
pub trait Versions {
    /// The type of objects of a version (`group/version`); none if the kind does not have that version.
    fn object_type(&self, api_version: &str) -> Option<&ObjectType>;

    /// The object in another version; an error if there is no way there. A version that objects can be brought into
    /// but that has no type is one that the kind had once, and what managers own in it is forgotten.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String>;
}
