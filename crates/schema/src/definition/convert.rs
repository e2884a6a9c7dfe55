//! Converts between settings for all versions and settings of single versions.

use super::types::canonical_schema;
use super::{CrdVersion, Spec, Validation};
use scantling_value::Value;

impl Spec {
    /// Compares specifications without distinguishing empty values from absent ones.
    pub(super) fn same(&self, other: &Spec) -> bool {
        self == other || super::encode::spec(self.clone()) == super::encode::spec(other.clone())
    }

    /// Moves settings in which all versions agree to the top, as decoding a `v1` document does.
    pub(super) fn hoist_shared_settings(&mut self) {
        let Some(versions) = &mut self.versions else {
            return;
        };
        let Some((first, rest)) = versions.split_first() else {
            return;
        };
        self.version = first.name.clone();
        // kube-apiserver decides for each setting on its own whether all versions agree.
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

    /// The versions with their own settings, as in a `v1` document.
    pub(super) fn versions_with_own_settings(&self) -> Vec<CrdVersion> {
        let mut spec = self.clone();
        spec.distribute_shared_settings();
        spec.versions.unwrap_or_default()
    }

    /// Moves the settings for all versions into each version, as in a `v1` document.
    pub(super) fn distribute_shared_settings(&mut self) {
        // A `v1beta1` CRD may have only `version`.
        if self.versions().is_empty() && !self.version.is_empty() {
            self.versions = Some(vec![CrdVersion {
                name: self.version.clone(),
                served: true,
                storage: true,
                ..CrdVersion::default()
            }]);
        }
        let Some(versions) = &mut self.versions else {
            return;
        };
        copy_to_versions(self.subresources.take(), versions, |v| &mut v.subresources);
        copy_to_versions(self.validation.take(), versions, |v| &mut v.validation);
        copy_to_versions(self.columns.take(), versions, |v| &mut v.columns);
        copy_to_versions(self.selectable_fields.take(), versions, |v| {
            &mut v.selectable_fields
        });
    }
}

/// Copies a setting to all versions.
fn copy_to_versions<T: Clone>(
    setting: Option<T>,
    versions: &mut [CrdVersion],
    place: impl Fn(&mut CrdVersion) -> &mut Option<T>,
) {
    if let (Some(setting), Some((last, others))) = (setting, versions.split_last_mut()) {
        for version in others {
            *place(version) = Some(setting.clone());
        }
        *place(last) = Some(setting);
    }
}

fn keep_first<T>(top: &mut Option<T>, own: Option<T>, i: usize) {
    // All versions agree, so the first one represents them.
    if i == 0 {
        *top = own;
    }
}

/// Compares lists without distinguishing an empty one from an absent one.
pub(crate) fn same_list<T: PartialEq>(a: Option<&[T]>, b: Option<&[T]>) -> bool {
    a.unwrap_or_default() == b.unwrap_or_default()
}

/// Compares validation settings without distinguishing empty values from absent ones.
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

/// Compares schema documents without distinguishing empty values from absent ones.
pub(crate) fn same_schema(a: &Value, b: &Value) -> bool {
    a == b
        || match (a.as_object(), b.as_object()) {
            (Some(a), Some(b)) => canonical_schema(a.clone()) == canonical_schema(b.clone()),
            _ => false,
        }
}
