//! The deletion conditions of a namespace.

use scantling_value::{Map, Value};
use std::collections::BTreeMap;

/// The remaining content of a namespace after a deletion pass.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// The number of objects by kind: `widgets.example.com`.
    pub(super) objects: BTreeMap<String, usize>,
    /// The number of objects that each finalizer holds.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// The errors.
    pub(super) failures: Vec<String>,
}

impl Left {
    /// Returns whether nothing is known to be left.
    pub(super) fn is_nothing(&self) -> bool {
        self.objects.is_empty() && self.failures.is_empty()
    }
}

/// A condition: its type, the reason and the message.
struct Condition {
    ty: &'static str,
    is_true: bool,
    reason: &'static str,
    message: String,
}

fn instances(counts: &BTreeMap<String, usize>, verb: &str) -> String {
    let each = counts
        .iter()
        .map(|(name, n)| format!("{name} {verb} {n} resource instances"));
    each.collect::<Vec<_>>().join(", ")
}

fn conditions(left: &Left) -> [Condition; 5] {
    let fine = |ty, reason, message: &str| Condition {
        ty,
        is_true: false,
        reason,
        message: message.to_owned(),
    };
    let bad = |ty, reason, message| Condition {
        ty,
        is_true: true,
        reason,
        message,
    };
    [
        // The server knows all kinds, so discovery cannot fail.
        fine(
            "NamespaceDeletionDiscoveryFailure",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        fine(
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        match left.failures.as_slice() {
            [] => fine(
                "NamespaceDeletionContentFailure",
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            failures => bad(
                "NamespaceDeletionContentFailure",
                "ContentDeletionFailed",
                format!(
                    "Failed to delete all resource types, {} remaining: {}",
                    failures.len(),
                    failures.join(", ")
                ),
            ),
        },
        if left.objects.is_empty() {
            fine(
                "NamespaceContentRemaining",
                "ContentRemoved",
                "All content successfully removed",
            )
        } else {
            let what = instances(&left.objects, "has");
            bad(
                "NamespaceContentRemaining",
                "SomeResourcesRemain",
                format!("Some resources are remaining: {what}"),
            )
        },
        if left.finalizers.is_empty() {
            fine(
                "NamespaceFinalizersRemaining",
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            )
        } else {
            let what = instances(&left.finalizers, "in");
            bad(
                "NamespaceFinalizersRemaining",
                "SomeFinalizersRemain",
                format!("Some content in the namespace has finalizers remaining: {what}"),
            )
        },
    ]
}

/// Updates the conditions of a namespace; returns whether any changed.
pub(super) fn update(namespace: &mut Value, left: &Left, now: &str) -> bool {
    let Some(members) = namespace.as_object_mut() else {
        return false;
    };
    let status = members.get_or_insert_with("status", || Map::new().into());
    let Some(status) = status.as_object_mut() else {
        return false;
    };
    let list = status.get_or_insert_with("conditions", || Value::Array(Vec::new()));
    let Some(list) = list.as_array_mut() else {
        return false;
    };
    let mut changed = false;
    for condition in conditions(left) {
        let text = |c: &Value, field: &str| c.get_str(field).to_owned();
        let place = list.iter().position(|c| text(c, "type") == condition.ty);
        let status = if condition.is_true { "True" } else { "False" };
        let old = place.and_then(|i| list.get(i));
        let since = match old {
            // Only a change of the status is a transition; otherwise each round would write a new time.
            Some(old) if text(old, "status") == status => text(old, "lastTransitionTime"),
            _ => now.to_owned(),
        };
        let new = Value::Object(Map::from_iter([
            ("type", Value::from(condition.ty)),
            ("status", status.into()),
            ("lastTransitionTime", since.into()),
            ("reason", condition.reason.into()),
            ("message", condition.message.into()),
        ]));
        if old == Some(&new) {
            continue;
        }
        changed = true;
        match place.and_then(|i| list.get_mut(i)) {
            Some(old) => *old = new,
            None => list.push(new),
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_conditions_keep_their_transition_time() {
        let mut namespace = Value::Object(Map::new());
        let mut left = Left::default();
        left.objects.insert("widgets.example.com".to_owned(), 2);
        assert!(update(&mut namespace, &left, "t1"));
        assert!(!update(&mut namespace, &left, "t2"));
        left.objects.insert("widgets.example.com".to_owned(), 1);
        assert!(update(&mut namespace, &left, "t3"));
        let remaining = |n: &Value| {
            let list = n.list_at(["status", "conditions"]);
            list.get(3).map_or(String::new(), Value::to_json)
        };
        assert_eq!(
            remaining(&namespace),
            r#"{"lastTransitionTime":"t1","message":"Some resources are remaining: widgets.example.com has 1 resource instances","reason":"SomeResourcesRemain","status":"True","type":"NamespaceContentRemaining"}"#
        );
        assert!(update(&mut namespace, &Left::default(), "t4"));
        assert!(remaining(&namespace).contains(r#""lastTransitionTime":"t4""#));
    }
}
