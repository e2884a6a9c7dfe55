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
pub use validate::{Duplicates, TypeErrors, ValidatedSibling};

pub(crate) use reconcile::reconcile;
pub(crate) use remove::{RemovalFilter, prune, remove};

use crate::fields::Set;
use scantling_value::Value;

/// The number of levels at which equal members are skipped before their types are considered. A write usually
/// leaves most of an object unchanged; each further level would compare everything below it once more.
const SHARED_DEPTH: u32 = 3;

impl ObjectType {
    /// Checks that an object conforms to this type.
    pub fn validate(
        &self,
        object: &Value,
        known: ValidatedSibling<'_>,
        duplicates: Duplicates,
    ) -> Result<(), TypeErrors> {
        validate::validate(object, known, self.root(), duplicates)
    }

    /// Compares two valid objects.
    pub fn compare(&self, old: &Value, new: &Value) -> Comparison {
        compare::compare(old, new, self.root())
    }

    /// Merges the new object into the old one. Both are valid, and the new one has no duplicates.
    pub fn merge(&self, old: Value, new: &Value) -> Value {
        merge::merge(Some(old), Some(new), self.root()).unwrap_or_default()
    }

    /// Returns the fields that a valid object sets.
    pub fn fields_of(&self, object: &Value) -> Set {
        owned::fields_of(object, self.root())
    }
}
