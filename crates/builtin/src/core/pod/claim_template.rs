//! Templates of persistent volume claims, as ephemeral volumes have them.

use crate::checks::{Report, labels};
use crate::core::persistent_volume_claim::{SpecRules, check_spec};
use crate::{Context, Cursor};
use scantling_value::ErrorList;

/// Fields of metadata that a template may not set, in the order of their declaration.
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

/// Checks a template.
pub(super) fn validate(at: &Cursor<'_, '_>, context: &Context<'_>, errors: &mut ErrorList) {
    let metadata = at.field("metadata");
    labels::annotations(&metadata.field("annotations"), errors);
    labels::labels(&metadata.field("labels"), errors);
    for name in FORBIDDEN_METADATA {
        let field = metadata.field(name);
        if !field.is_empty() {
            let name = match *name {
                "uid" => "uID",
                name => name,
            };
            errors.forbidden(&field.with_path(metadata.path().field(name)), "cannot be set");
        }
    }
    check_spec(&at.field("spec"), SpecRules::tolerating(None), context, errors);
}
