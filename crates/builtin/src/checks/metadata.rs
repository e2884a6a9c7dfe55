//! Metadata of templates, and finalizers. The metadata of objects themselves are checked by the caller.

use super::{Report, labels};
use crate::Cursor;
use scantling_value::{ErrorList, Value};

/// Checks the labels and annotations of a template: `template.metadata` is reported as `template`.
pub(crate) fn template(at: &Cursor<'_, '_>, metadata: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let within = metadata.with_path(*at.path());
    labels::labels(&within.field("labels"), errors);
    labels::annotations(&within.field("annotations"), errors);
}

/// Fields of metadata that a template of objects may not set, in the order of their declaration.
const FORBIDDEN_METADATA: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

/// Checks the metadata of a template from which objects are made: only labels and annotations may be set.
pub(crate) fn template_of_objects(metadata: &Cursor<'_, '_>, errors: &mut ErrorList) {
    labels::annotations(&metadata.field("annotations"), errors);
    labels::labels(&metadata.field("labels"), errors);
    for name in FORBIDDEN_METADATA {
        let field = metadata.field(name);
        // An empty list is set, unlike other empty values.
        if !field.is_empty() || matches!(field.value(), Some(Value::Array(_))) {
            // Kubernetes derives the path from the Go field `UID`.
            let shown = if *name == "uid" { "uID" } else { name };
            errors.forbidden(&field.with_path(metadata.path().field(shown)), "cannot be set");
        }
    }
}

/// Checks that a finalizer is a standard one or names a domain.
pub fn qualified_finalizer(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let name = at.str();
    let is_standard = matches!(name, "kubernetes" | "orphan" | "foregroundDeletion");
    if !is_standard && !name.contains('/') {
        errors.invalid(
            at,
            "name is neither a standard finalizer name nor is it fully qualified",
        );
    }
}
