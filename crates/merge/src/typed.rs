//! Comparison and merging of objects, driven by the types that a schema gives them.

mod compare;
mod merge;
mod owned;
mod reconcile;
mod remove;
mod ty;
mod validate;

pub use compare::Comparison;
pub use ty::ObjectType;
pub use validate::{Duplicates, TypeErrors, ValidatedSibling};

pub(crate) use reconcile::reconcile;
pub(crate) use remove::{RemovalFilter, prune, remove};

use crate::fields::Set;
use scantling_value::Value;

/// For how many levels the members of two objects are compared as they are before they are looked at by their types.
/// Mostly a write leaves nearly all of an object alone; each further level would compare once more what is below it.
const SHARED_DEPTH: u32 = 3;

impl ObjectType {
    /// Checks that an object has this type.
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

    /// The old object with all that the new one says. Both are valid, the new one without duplicates.
    pub fn merge(&self, old: Value, new: &Value) -> Value {
        merge::merge(Some(old), Some(new), self.root()).unwrap_or_default()
    }

    /// The fields that an object sets. It is valid.
    pub fn fields_of(&self, object: &Value) -> Set {
        owned::fields_of(object, self.root())
    }
}
