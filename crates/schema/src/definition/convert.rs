//! Between settings for all versions and settings of single versions.

use super::{Spec, Validation, Version};
use crate::wire::tables;
use scantling_value::Value;

impl Spec {
    /// Equality that does not tell empty values from absent ones.
    pub(super) fn same(&self, other: &Spec) -> bool {
        self == other || super::encode::spec(self) == super::encode::spec(other)
    }

    /// Moves the settings in which all versions agree to the top, as reading a `v1` document does.
    pub(super) fn lift(&mut self) {
        let Some(versions) = &mut self.versions else {
            return;
        };
        let Some((first, rest)) = versions.split_first() else {
            return;
        };
        self.version = first.name.clone();
        let (validation, subresources, columns, selectable_fields) = (
            rest.iter()
                .all(|v| same_validation(v.validation.as_ref(), first.validation.as_ref())),
            rest.iter().all(|v| v.subresources == first.subresources),
            rest.iter()
                .all(|v| same_list(v.columns.as_deref(), first.columns.as_deref())),
            rest.iter()
                .all(|v| same_list(v.selectable_fields.as_deref(), first.selectable_fields.as_deref())),
        );
        for (i, v) in versions.iter_mut().enumerate() {
            if validation {
                keep_first(&mut self.validation, v.validation.take(), i);
            }
            if subresources {
                keep_first(&mut self.subresources, v.subresources.take(), i);
            }
            if columns {
                keep_first(&mut self.columns, v.columns.take(), i);
            }
            if selectable_fields {
                keep_first(&mut self.selectable_fields, v.selectable_fields.take(), i);
            }
        }
    }

    /// The versions with every setting in its place, as a `v1` document writes them.
    pub(super) fn lowered(&self) -> Vec<Version> {
        let mut versions = self.versions().to_vec();
        if versions.is_empty() && !self.version.is_empty() {
            versions.push(Version {
                name: self.version.clone(),
                served: true,
                storage: true,
                ..Version::default()
            });
        }
        for v in &mut versions {
            if self.subresources.is_some() {
                v.subresources.clone_from(&self.subresources);
            }
            if self.validation.is_some() {
                v.validation.clone_from(&self.validation);
            }
            if self.columns.is_some() {
                v.columns.clone_from(&self.columns);
            }
            if self.selectable_fields.is_some() {
                v.selectable_fields.clone_from(&self.selectable_fields);
            }
        }
        versions
    }
}

fn keep_first<T>(top: &mut Option<T>, own: Option<T>, i: usize) {
    if i == 0 {
        *top = own;
    }
}

/// Equality of lists that does not tell an empty one from none.
pub(crate) fn same_list<T: PartialEq>(a: Option<&[T]>, b: Option<&[T]>) -> bool {
    a.unwrap_or_default() == b.unwrap_or_default()
}

/// Equality of schema places that does not tell empty values from absent ones.
pub(crate) fn same_validation(a: Option<&Validation>, b: Option<&Validation>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => match (&a.schema, &b.schema) {
            (None, None) => true,
            (Some(a), Some(b)) => same_schema(a, b),
            _ => false,
        },
        _ => false,
    }
}

/// Equality of schema documents that does not tell empty values from absent ones.
pub(crate) fn same_schema(a: &Value, b: &Value) -> bool {
    a == b
        || match (a.as_object(), b.as_object()) {
            (Some(a), Some(b)) => tables::SCHEMA.canonical(a) == tables::SCHEMA.canonical(b),
            _ => false,
        }
}
