//! Field ownership: records which manager set which fields, through updates and server-side apply.
//!
//! [`FieldManager`] is the entry point: the server calls [`FieldManager::apply`] for an apply, and
//! [`FieldManager::update`] after every other write.

mod conflict;
mod last_applied;
mod managed;
mod manager;
mod scale;
mod updater;

pub use conflict::{Conflict, Conflicts};
pub use managed::{ManagedError, ManagerId, ManagerOperation, timestamp};
pub use manager::{ApplyError, FieldManager, Force, TypeCheck, Updated};
pub use scale::{ScaleMapping, scale_to_parent, scale_to_subresource};

use crate::typed::ObjectType;
use scantling_value::Value;

/// The versions of a kind: their types, and conversion between them.
pub trait Versions {
    /// The type of objects in a version (`group/version`); `None` if the kind does not have that version.
    fn object_type(&self, api_version: &str) -> Option<&ObjectType>;

    /// Converts an object to another version; fails if no conversion exists. A version to which conversion
    /// succeeds but that has no type has been removed from the kind; what managers own in it is dropped.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String>;
}
