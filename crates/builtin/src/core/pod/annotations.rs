//! Annotations that mean something to pods.

use super::containers_at;
use super::rules::Rules;
use super::volumes::descending_path;
use crate::Cursor;
use crate::checks::{Report, names, tolerations};
use scantling_value::{ErrorList, Limits, Value, go, json};

/// The annotation of mirror pods, which represent static pods of a node.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";
/// The annotation that held tolerations.
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
/// The annotation that says which pods a replica set deletes first.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
/// The annotation that held the seccomp profile of a pod.
pub(super) const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
/// The prefix of annotations that held seccomp profiles of containers.
pub(super) const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// The prefix of annotations that held `AppArmor` profiles of containers.
pub(super) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// The annotation about a container.
pub(super) fn of_container(prefix: &str, name: &str) -> String {
    format!("{prefix}{name}")
}

/// Checks the annotations of a pod or a template.
pub(super) fn check(
    at: &Cursor<'_, '_>,
    spec: &Cursor<'_, '_>,
    old: Option<&Value>,
    rules: &Rules<'_>,
    errors: &mut ErrorList,
) {
    let Some(map) = at.map().filter(|map| !map.is_empty()) else {
        return;
    };
    if map.contains_key(MIRROR) && spec.field("nodeName").str().is_empty() {
        let mirror = at.with_path(at.path().key(MIRROR));
        let why = "must set spec.nodeName if mirror pod annotation is set";
        errors.invalid_value(&mirror, map.get_str(MIRROR), why);
    }
    if !map.get_str(TOLERATIONS).is_empty() {
        check_tolerations(at, map.get_str(TOLERATIONS), rules, errors);
    }
    let is_cost = |cost: &str| names::decimal_integer(cost).is_empty() && cost.parse::<i32>().is_ok();
    if map.contains_key(DELETION_COST) && !is_cost(map.get_str(DELETION_COST)) {
        // An update may keep a cost that is stored and invalid.
        let stored = old.and_then(|old| old.get(DELETION_COST)).and_then(Value::as_str);
        let is_allowed = stored.is_some_and(|cost| !is_cost(cost)) || !rules.enabled("PodDeletionCost");
        if !is_allowed {
            let cost = at.with_path(at.path().key(DELETION_COST));
            errors.invalid_value(&cost, map.get_str(DELETION_COST), "must be a 32bit integer");
        }
    }
    if map.contains_key(SECCOMP_POD) {
        check_seccomp(&at.field(SECCOMP_POD), errors);
    }
    for (key, _) in at.entries().filter(|(key, _)| key.starts_with(SECCOMP_CONTAINER)) {
        check_seccomp(&at.field(key), errors);
    }
    for (key, profile) in at.entries() {
        if let Some(container) = key.strip_prefix(APP_ARMOR) {
            check_app_armor(container, &profile, spec, errors);
        }
    }
}

fn check_tolerations(at: &Cursor<'_, '_>, text: &str, rules: &Rules<'_>, errors: &mut ErrorList) {
    match json::decode(text.as_bytes(), Limits::SERVER) {
        Ok(list @ (Value::Array(_) | Value::Null)) => {
            let list = Cursor::at(Some(&list), at.path().field(TOLERATIONS));
            tolerations::tolerations(&list, rules.compares_taints(), errors);
        }
        Ok(other) => {
            let kind = go::json_kind(&other);
            let why = format!("json: cannot unmarshal {kind} into Go value of type []core.Toleration");
            errors.invalid_value(at, TOLERATIONS, why);
        }
        Err(e) => errors.invalid_value(at, TOLERATIONS, e.to_string()),
    }
}

fn check_seccomp(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    match at.str() {
        "runtime/default" | "docker/default" | "unconfined" => {}
        profile => match profile.strip_prefix("localhost/") {
            Some(path) => {
                let path = Value::from(path);
                descending_path(&Cursor::at(Some(&path), *at.path()), errors);
            }
            None => errors.invalid(at, "must be a valid seccomp profile"),
        },
    }
}

fn check_app_armor(name: &str, at: &Cursor<'_, '_>, spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mut is_known = false;
    containers_at(spec, |container| {
        is_known |= container.field("name").str() == name;
    });
    if !is_known {
        errors.invalid_value(at, name, "container not found");
    }
    let profile = at.str();
    let is_valid =
        matches!(profile, "" | "runtime/default" | "unconfined") || profile.starts_with("localhost/");
    if !is_valid {
        let why = format!("invalid AppArmor profile name: {}", go::quote(profile));
        errors.invalid(at, why);
    }
}

/// Checks changes of annotations that are fixed when a pod is created.
pub(super) fn check_updates(at: &Cursor<'_, '_>, old: Option<&Value>, errors: &mut ErrorList) {
    let mut check = |key: &str, did: [&str; 2]| {
        let at = at.with_path(at.path().key(key));
        if key.starts_with(APP_ARMOR) {
            errors.forbidden(&at, format!("may not {} AppArmor annotations", did[0]));
        }
        if key == MIRROR {
            errors.forbidden(&at, format!("may not {} mirror pod annotation", did[1]));
        }
    };
    let old = old.and_then(Value::as_object);
    for (key, value) in old.into_iter().flat_map(scantling_value::Map::iter) {
        if at.map().and_then(|new| new.get(key)) != Some(value) {
            check(key, ["remove or update"; 2]);
        }
    }
    for (key, _) in at.entries() {
        if !old.is_some_and(|old| old.contains_key(key)) {
            check(key, ["add"; 2]);
        }
    }
}

/// Checks that annotations and fields with the same meaning agree.
pub(super) fn match_fields(annotations: &Cursor<'_, '_>, spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let Some(map) = annotations.map().filter(|map| !map.is_empty()) else {
        return;
    };
    let context = spec.field("securityContext");
    let profile = context.field("seccompProfile");
    if profile.is_set() && map.contains_key(SECCOMP_POD) {
        match_profile(SECCOMP, map.get_str(SECCOMP_POD), &profile, &profile, errors);
    }
    containers_at(spec, |container| {
        let context = container.field("securityContext");
        let profile = context.field("seccompProfile");
        if !profile.is_set() {
            return;
        }
        let key = of_container(SECCOMP_CONTAINER, container.field("name").str());
        if map.contains_key(&key) {
            match_profile(SECCOMP, map.get_str(&key), &profile, &profile, errors);
        }
    });
    let os = spec.field("os");
    if os.field("name").str() == "windows" {
        return;
    }
    let of_pod = context.field("appArmorProfile");
    containers_at(spec, |container| {
        let context = container.field("securityContext");
        let own = context.field("appArmorProfile");
        let profile = if own.is_set() { &own } else { &of_pod };
        if !profile.is_set() {
            return;
        }
        let key = of_container(APP_ARMOR, container.field("name").str());
        if map.contains_key(&key) {
            match_profile("apparmor", map.get_str(&key), profile, &own, errors);
        }
    });
}

const SECCOMP: &str = "seccomp";

/// Checks that an annotation agrees with a profile; errors are reported at a position.
fn match_profile(
    what: &str,
    annotation: &str,
    profile: &Cursor<'_, '_>,
    at: &Cursor<'_, '_>,
    errors: &mut ErrorList,
) {
    let path = profile.field("localhostProfile");
    let is_default = annotation == "runtime/default" || (what == SECCOMP && annotation == "docker/default");
    let fits = match profile.field("type").str() {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => is_default,
        "Localhost" => match annotation.strip_prefix("localhost/") {
            None => false,
            Some(local) => {
                if !path.is_set() || path.str() != local {
                    let why = format!("{what} profile in annotation and field must match");
                    errors.forbidden(&at.field("localhostProfile"), why);
                }
                true
            }
        },
        _ => true,
    };
    if !fits {
        let why = format!("{what} type in annotation and field must match");
        errors.forbidden(&at.field("type"), why);
    }
}
