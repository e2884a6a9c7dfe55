//! Updates of pods: which changes are allowed.

use super::annotations::MIRROR;
use super::containers::check_image_spaces;
use crate::Cursor;
use crate::checks::update::{keep, same_of};
use crate::checks::{Report, Rule, diff, go, numbers, tolerations};
use scantling_value::{ErrorList, FieldError, Map, Path, Value, go::quote};
use std::collections::{BTreeMap, BTreeSet};

const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                         `spec.tolerations` (only additions to existing tolerations),\
                         `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Checks a change of the spec of a pod.
pub(super) fn check_spec(new: &Cursor<'_, '_>, old: &Value, compares_taints: bool, errors: &mut ErrorList) {
    for list in ["containers", "initContainers"] {
        // kube-apiserver stops here, because later checks compare containers by position.
        if !check_images(&new.field(list), old.list(list), errors) {
            return;
        }
    }
    if !check_deadline(&new.field("activeDeadlineSeconds"), old, errors) {
        return;
    }
    let taints = new.field("tolerations");
    if has_all(taints.list(), old.list("tolerations")) {
        tolerations::tolerations(&taints, compares_taints, errors);
    } else {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.forbidden(&taints, why);
    }
    check_gates(&new.field("schedulingGates"), old.list("schedulingGates"), errors);
    if !same_spec(new.value(), Some(old)) {
        check_rest(new, old, errors);
    }
}

fn same_spec(a: Option<&Value>, b: Option<&Value>) -> bool {
    same_of("core/v1", "PodSpec", a, b)
}

/// Checks the containers of a pod. Returns whether their number is the same.
fn check_images(new: &Cursor<'_, '_>, old: &[Value], errors: &mut ErrorList) -> bool {
    if new.list().len() != old.len() {
        errors.forbidden(new, "pod updates may not add or remove containers");
        return false;
    }
    for container in new.items() {
        Rule::Required.check(&container.field("image"), errors);
        check_image_spaces(&container, errors);
    }
    true
}

/// A deadline may be set and brought forward. Returns whether it is valid.
fn check_deadline(new: &Cursor<'_, '_>, old: &Value, errors: &mut ErrorList) -> bool {
    let old = old.get("activeDeadlineSeconds").and_then(Value::as_int);
    let Some(seconds) = new.as_int() else {
        if old.is_some() {
            let why = "must not update from a positive integer to nil value";
            errors.invalid_value(new, Value::Null, why);
        }
        return true;
    };
    let max = i64::from(i32::MAX);
    if !(0..=max).contains(&seconds) {
        errors.invalid(new, numbers::range(0, max));
        return false;
    }
    if old.is_some_and(|old| old < seconds) {
        errors.invalid(new, "must be less than or equal to previous value");
        return false;
    }
    true
}

/// Returns whether all tolerations are still there; how long they hold may differ.
fn has_all(new: &[Value], old: &[Value]) -> bool {
    let parts = |toleration: &'_ Value| {
        ["key", "operator", "value", "effect"].map(|field| toleration.get_str(field).to_owned())
    };
    let new: BTreeSet<[String; 4]> = new.iter().map(parts).collect();
    old.iter().all(|old| new.contains(&parts(old)))
}

/// Scheduling gates may only be removed.
fn check_gates(new: &Cursor<'_, '_>, old: &[Value], errors: &mut ErrorList) {
    let old: BTreeSet<&str> = old.iter().map(|gate| gate.get_str("name")).collect();
    let names: Vec<&str> = new.list().iter().map(|gate| gate.get_str("name")).collect();
    // Of gates with the same name, only the last is reported.
    let last: BTreeMap<&str, usize> = names.iter().enumerate().map(|(i, name)| (*name, i)).collect();
    for (i, gate) in new.items().enumerate() {
        let name = gate.field("name");
        if !old.contains(name.str()) && last.get(name.str()) == Some(&i) {
            let why = format!(
                "only deletion is allowed, but found new scheduling gate '{}'",
                name.str()
            );
            errors.forbidden(&name, why);
        }
    }
}

/// Checks that everything that may not change is as it was.
fn check_rest(new: &Cursor<'_, '_>, old: &Value, errors: &mut ErrorList) {
    let Some(mut rest) = new.map().cloned() else {
        return;
    };
    let Some(stored) = old.as_object() else { return };
    for list in ["containers", "initContainers"] {
        let old = old.list(list);
        let containers = rest.get_mut(list).and_then(Value::as_array_mut);
        for (container, old) in containers.into_iter().flatten().zip(old) {
            if let (Some(container), Some(image)) = (container.as_object_mut(), old.get("image")) {
                container.insert("image", image.clone());
            }
        }
    }
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        keep(&mut rest, old, field);
    }
    // Older servers stored negative periods, which mean 1. Defaults replace them when a client writes.
    let period = |spec: &Map| spec.get("terminationGracePeriodSeconds").and_then(Value::as_int);
    if period(stored).is_some_and(|p| p < 0) && period(&rest) == Some(1) {
        keep(&mut rest, old, "terminationGracePeriodSeconds");
    }
    if !old.list("schedulingGates").is_empty() {
        check_gated(new, old, &mut rest, errors);
    }
    let rest = Value::Object(rest);
    if !same_spec(Some(&rest), Some(old)) {
        let diff = diff::structs("core/v1", "PodSpec", Some(old), Some(&rest));
        let why = format!("pod updates may not change fields other than {UPDATABLE}\n{diff}");
        errors.forbidden(new, why);
    }
}

/// While a pod waits for its scheduling gates, constraints on its node may be added.
fn check_gated(new: &Cursor<'_, '_>, old: &Value, rest: &mut Map, errors: &mut ErrorList) {
    let selector = new.field("nodeSelector");
    let stored = old.get("nodeSelector").and_then(Value::as_object);
    let is_kept = |(key, value): (&scantling_value::Str, &Value)| {
        selector.map().and_then(|new| new.get(key)) == Some(value)
    };
    if !stored.into_iter().flat_map(Map::iter).all(is_kept) {
        let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        let shown = selector.value().cloned().unwrap_or_default();
        errors.invalid_value(&selector, shown, why);
    }
    keep(rest, old, "nodeSelector");
    let affinity = new.field("affinity");
    let node = affinity.field("nodeAffinity");
    let stored = old.at(["affinity", "nodeAffinity"]);
    if same_of("core/v1", "NodeAffinity", node.value(), stored) && node.is_set() == stored.is_some() {
        return;
    }
    check_node_affinity(&node, stored, errors);
    restore_node_affinity(rest, old, stored);
}

fn restore_node_affinity(rest: &mut Map, old: &Value, stored: Option<&Value>) {
    let has_others =
        |affinity: &Map| affinity.contains_key("podAffinity") || affinity.contains_key("podAntiAffinity");
    match (rest.get_mut("affinity").and_then(Value::as_object_mut), stored) {
        (None, None) => {}
        (None, Some(node)) => {
            let affinity = Map::from_iter([("nodeAffinity", node.clone())]);
            rest.insert("affinity", affinity.into());
        }
        // Only a node affinity was added, so that the rest equals a stored spec without affinity.
        (Some(affinity), _) if old.get("affinity").is_none() && !has_others(affinity) => {
            rest.remove("affinity");
        }
        (Some(affinity), Some(node)) => {
            affinity.insert("nodeAffinity", node.clone());
        }
        (Some(affinity), None) => {
            affinity.remove("nodeAffinity");
        }
    }
}

/// Requirements may be added to existing terms; terms may not be added.
fn check_node_affinity(new: &Cursor<'_, '_>, old: Option<&Value>, errors: &mut ErrorList) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    let old = old.map_or(&[][..], |old| old.list_at([REQUIRED, "nodeSelectorTerms"]));
    let required = new.field(REQUIRED);
    let terms = required.field("nodeSelectorTerms");
    if !old.is_empty() && old.len() != terms.list().len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        let shown = go::list("core/v1", "NodeSelectorTerm", terms.value());
        return errors.invalid_value(&terms, shown, why);
    }
    for (new, old) in terms.items().zip(old) {
        if !has_only_additions(&new, old) {
            let why = "only additions are allowed (no mutations or deletions)";
            let shown = go::structure("core/v1", "NodeSelectorTerm", new.value());
            errors.invalid_value(&new, shown, why);
        }
    }
}

fn has_only_additions(new: &Cursor<'_, '_>, old: &Value) -> bool {
    const LISTS: [&str; 2] = ["matchExpressions", "matchFields"];
    let was_empty = LISTS.iter().all(|list| old.list(list).is_empty());
    if was_empty && LISTS.iter().any(|list| !new.field(list).list().is_empty()) {
        return false;
    }
    let same = |a: &Value, b: &Value| same_of("core/v1", "NodeSelectorRequirement", Some(a), Some(b));
    LISTS.iter().all(|list| {
        let (new, old) = (new.field(list).list(), old.list(list));
        new.len() >= old.len() && new.iter().zip(old).all(|(new, old)| same(new, old))
    })
}

/// Checks a change of the ephemeral containers: they may be added, never changed or removed.
pub(super) fn check_ephemeral_containers(new: &Cursor<'_, '_>, old: &Value, errors: &mut ErrorList) {
    let annotations = old.at(["metadata", "annotations"]);
    if annotations.is_some_and(|annotations| annotations.get(MIRROR).is_some()) {
        *errors = refused("static pods do not support ephemeral containers");
        return;
    }
    let list = new.field("ephemeralContainers");
    let by_name: BTreeMap<&str, &Value> = list.list().iter().map(|new| (new.get_str("name"), new)).collect();
    for old in old.list_at(["spec", "ephemeralContainers"]) {
        let name = old.get_str("name");
        let same_name = by_name.get(name).copied();
        let quoted = quote(name);
        match same_name {
            None => {
                let why = format!("existing ephemeral containers {quoted} may not be removed\n");
                errors.forbidden(&list, why);
            }
            Some(new) if !same_of("core/v1", "EphemeralContainer", Some(new), Some(old)) => {
                let diff = diff::structs("core/v1", "EphemeralContainer", Some(old), Some(new));
                let why = format!("existing ephemeral containers {quoted} may not be changed\n{diff}");
                errors.forbidden(&list, why);
            }
            Some(_) => {}
        }
    }
}

/// An error about the pod as such, in place of all others.
pub(super) fn refused(why: &str) -> ErrorList {
    FieldError::forbidden(&Path::ROOT.field(""), why).into()
}
