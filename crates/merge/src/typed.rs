//! Schema-driven comparison and merging of objects.

mod builtin_types;
mod compare;
mod merge;
mod object_type;
mod owned;
mod reconcile;
mod remove;
mod validate;

pub use builtin_types::merge_schema;
pub use compare::Comparison;
pub use object_type::ObjectType;
pub use validate::{Duplicates, TypeErrors};

pub(crate) use reconcile::reconcile;
pub(crate) use remove::{RemovalFilter, prune, remove};

use crate::fields::Set;
use scantling_value::Value;

impl ObjectType {
    /// Checks that an object conforms to this type.
    pub fn validate(&self, object: &Value, duplicates: Duplicates) -> Result<(), TypeErrors> {
        validate::validate(object, self.root(), duplicates)
    }

    /// Compares an object with a valid one. Fails if the new object does not conform to this type, whatever elements of
    /// its lists occur twice.
    pub fn compare(&self, old: &Value, new: &Value) -> Result<Comparison, TypeErrors> {
        let validated = || self.validate(new, Duplicates::Allowed);
        let compared = compare::compare(old, new, self.root());
        debug_assert_eq!(compared.is_ok(), validated().is_ok(), "{new:?}");
        // The comparison notices that the object does not fit; validation says why.
        compared.map_err(|compare::Misfit| validated().err().unwrap_or_default())
    }

    /// Merges the new object into the old one. Both are valid, and the new one has no duplicates.
    pub fn merge(&self, old: Value, new: &Value) -> Value {
        merge::merge(Some(old), Some(new), self.root()).unwrap_or_default()
    }

    /// Returns the fields that a valid object sets.
    pub fn fields_of(&self, object: &Value) -> Set {
        owned::fields_of(object, self.root()).1.into_set()
    }
}
