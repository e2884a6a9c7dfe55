//! The rules for writes to a kind: which pipeline admits them, and what a deletion does.

use crate::kinds::kind::{Kind, Version};
use scantling_admit::{AnyResource, NormalizeMode};
use scantling_value::Value;
use std::fmt::Debug;

/// The rules of a kind.
pub(crate) trait KindRules: Debug + Send + Sync {
    /// The resource whose pipeline admits writes to a version, or the reason why it does not compile.
    fn resource(&self, version: &Version) -> Result<AnyResource<'_>, String>;

    /// The resource and the mode by which an object of a request is normalized, which may be of another version or kind
    /// than the request.
    fn normalization(
        &self,
        version: &Version,
        _object: &Value,
    ) -> Result<(AnyResource<'_>, NormalizeMode), String> {
        Ok((self.resource(version)?, NormalizeMode::Request))
    }

    /// An upper bound of the number of checks per value of a version's objects.
    fn weight(&self, _version: &Version) -> u32 {
        1
    }

    /// Returns an error text if field selectors cannot use a field.
    fn check_selectable(&self, kind: &Kind, version: &Version, field: &str) -> Result<(), String>;

    /// Returns whether something other than finalizers in its metadata holds an object that is being deleted.
    fn is_held(&self, _object: &Value) -> bool {
        false
    }

    /// Returns the stored object as its first deletion leaves it, for kinds whose objects are never deleted at once.
    /// Fails if the object cannot be decoded.
    fn mark_deleted(&self, _stored: Value, _now: &str) -> Result<Option<Value>, String> {
        Ok(None)
    }
}
