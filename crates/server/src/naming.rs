//! What becomes of a definition: which of its names it gets, and which conditions it meets.

use crate::controller::condition;
use scantling_schema::definition::{Condition, Definition, Names, Status};
use scantling_value::{Str, go};
use std::collections::BTreeSet;

/// The status of a definition beside the other definitions of its group.
pub(crate) fn settle<'a>(
    definition: &Definition,
    others: impl Iterator<Item = &'a Definition>,
    now: &str,
) -> Status {
    let (mut resources, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for other in others {
        let n = &other.status.accepted_names;
        resources.extend([&n.plural, &n.singular].into_iter().filter(|s| !s.is_empty()));
        resources.extend(n.short_names.iter().flatten());
        kinds.extend([&n.kind, &n.list_kind].into_iter().filter(|s| !s.is_empty()));
    }
    let mut status = definition.status.clone();
    let conflict = accept(
        &definition.spec.names,
        &mut status.accepted_names,
        &resources,
        &kinds,
    );
    let accepted = match &conflict {
        None => ("True", "NoConflicts", "no conflicts found".to_owned()),
        Some((reason, message)) => ("False", *reason, message.clone()),
    };
    set(
        &mut status,
        "NamesAccepted",
        accepted.0,
        accepted.1,
        &accepted.2,
        now,
    );
    let established = definition.is("Established");
    if !established {
        if conflict.is_none() {
            let text = "the initial names have been accepted";
            set(
                &mut status,
                "Established",
                "True",
                "InitialNamesAccepted",
                text,
                now,
            );
        } else {
            set(
                &mut status,
                "Established",
                "False",
                "NotAccepted",
                "not all names are accepted",
                now,
            );
        }
    }
    match non_structural(definition) {
        Some(why) => set(
            &mut status,
            "NonStructuralSchema",
            "True",
            "Violations",
            &why,
            now,
        ),
        None => status.conditions.retain(|c| c.ty != "NonStructuralSchema"),
    }
    if let Some((ok, reason, message)) = approval(definition) {
        set(
            &mut status,
            "KubernetesAPIApprovalPolicyConformant",
            ok,
            reason,
            &message,
            now,
        );
    }
    status
}

/// Takes over the names that are free; returns what is wrong with the last one that is not.
fn accept(
    wanted: &Names,
    accepted: &mut Names,
    resources: &BTreeSet<&Str>,
    kinds: &BTreeSet<&Str>,
) -> Option<(&'static str, String)> {
    let mut conflict = None;
    let in_use = |name: &str| format!("{} is already in use", go::quote(name));
    let mut one = |wanted: &Str, accepted: &mut Str, taken: &BTreeSet<&Str>, reason| {
        if wanted == accepted || !taken.contains(wanted) {
            *accepted = wanted.clone();
        } else {
            conflict = Some((reason, in_use(wanted)));
        }
    };
    one(&wanted.plural, &mut accepted.plural, resources, "PluralConflict");
    one(
        &wanted.singular,
        &mut accepted.singular,
        resources,
        "SingularConflict",
    );
    let had: Vec<Str> = accepted.short_names.clone().unwrap_or_default();
    let clashes: Vec<String> = wanted
        .short_names
        .iter()
        .flatten()
        .filter(|s| !had.contains(s) && resources.contains(s))
        .map(|s| in_use(s))
        .collect();
    if clashes.is_empty() {
        accepted.short_names = wanted.short_names.clone();
    } else {
        conflict = Some(("ShortNamesConflict", scantling_value::aggregate(clashes)));
    }
    let mut one = |wanted: &Str, accepted: &mut Str, taken: &BTreeSet<&Str>, reason| {
        if wanted == accepted || !taken.contains(wanted) {
            *accepted = wanted.clone();
        } else {
            conflict = Some((reason, in_use(wanted)));
        }
    };
    one(&wanted.kind, &mut accepted.kind, kinds, "KindConflict");
    one(
        &wanted.list_kind,
        &mut accepted.list_kind,
        kinds,
        "ListKindConflict",
    );
    accepted.categories = wanted.categories.clone();
    conflict
}

fn set(status: &mut Status, ty: &str, value: &str, reason: &str, message: &str, now: &str) {
    let at = status.conditions.iter().position(|c| c.ty == ty);
    let old: Option<&Condition> = at.and_then(|i| status.conditions.get(i));
    let next = condition(old, ty, value, reason, message, now);
    match at.and_then(|i| status.conditions.get_mut(i)) {
        Some(slot) => *slot = next,
        None => status.conditions.push(next),
    }
}

fn non_structural(definition: &Definition) -> Option<String> {
    let _ = definition;
    None
}

/// Whether a definition of a protected group was approved.
fn approval(definition: &Definition) -> Option<(&'static str, &'static str, String)> {
    let group = &definition.spec.group;
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|g| group == g || group.ends_with(&format!(".{g}")));
    if !protected {
        return None;
    }
    let text = definition
        .annotation("api-approved.kubernetes.io")
        .unwrap_or_default();
    Some(if text.starts_with("unapproved") {
        (
            "False",
            "UnapprovedAnnotation",
            format!("not approved: {}", go::quote(text)),
        )
    } else if text.is_empty() {
        let why = "protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
                   https://github.com/kubernetes/enhancements/pull/1111";
        ("False", "MissingAnnotation", why.to_owned())
    } else {
        ("True", "ApprovedAnnotation", format!("approved in {text}"))
    })
}
