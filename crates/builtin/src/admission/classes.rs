//! The default among classes.

use scantling_value::Value;
use std::cmp::Reverse;

/// The annotations that mark the default storage class.
pub(crate) const STORAGE_CLASS_DEFAULTS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];

/// Returns whether an object has an annotation with the value `true`.
fn has_flag(object: &Value, annotation: &str) -> bool {
    object.str_at(["metadata", "annotations", annotation]) == "true"
}

/// The name of the default class: of those that carry one of the annotations, the newest, then the first by name.
pub(crate) fn default_class<'c>(
    classes: impl Iterator<Item = &'c Value>,
    annotations: &[&str],
) -> Option<&'c str> {
    let marked = classes.filter(|c| annotations.iter().any(|a| has_flag(c, a)));
    let default = marked.min_by_key(|c| {
        // Timestamps have one form, so that their text sorts as they do.
        let created = c.str_at(["metadata", "creationTimestamp"]);
        (Reverse(created), c.str_at(["metadata", "name"]))
    });
    default.map(|c| c.str_at(["metadata", "name"]))
}
