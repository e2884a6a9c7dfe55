//! `RuntimeClass`: pods get the overhead, node selector and tolerations of their runtime class.

use super::{Action, Denial, Effects, Found, Lookup, Plugin, PluginVerdict, Request};
use crate::prepare::object_in;
use scantling_schema::meta::NameRule;
use scantling_value::{Map, Value, deadline, go};

/// The plugin.
pub(super) const PLUGIN: Plugin = Plugin {
    lookups,
    mutate,
    check,
    ..Plugin::new("RuntimeClass", |request| {
        request.is_for("", "pods") && request.action == Action::Create
    })
};

const OVERHEAD: [&str; 2] = ["overhead", "podFixed"];

fn lookups(object: &Value, _: &Request<'_>) -> Vec<Lookup> {
    match class_name(object) {
        None => Vec::new(),
        Some(name) => vec![Lookup::one("node.k8s.io", "runtimeclasses", name)],
    }
}

fn mutate(object: &mut Map, request: &Request<'_>, found: &Found<'_>) -> PluginVerdict {
    let pod = Value::Object(object.clone());
    let (Some(class), Some(spec)) = (find(&pod, request, found)?, object_in(object, "spec")) else {
        return Ok(());
    };
    set_overhead(spec, class, &pod, request)?;
    set_scheduling(spec, class, &pod, request)
}

fn check(object: &Value, request: &Request<'_>, found: &Found<'_>, _: &mut Effects) -> PluginVerdict {
    let class = find(object, request, found)?;
    // The mutating phase has set the overhead, but a webhook may have changed it since.
    let given = object.at(["spec", "overhead"]).filter(|v| !v.is_null());
    let why = match class.and_then(|c| c.at(OVERHEAD)).filter(|v| !v.is_null()) {
        Some(defined) if Some(defined) == given => return Ok(()),
        Some(_) => "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        None if given.is_none() => return Ok(()),
        None => "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
    };
    Err(request.forbidden(object, why))
}

fn class_name(pod: &Value) -> Option<&str> {
    pod.at(["spec", "runtimeClassName"]).and_then(Value::as_str)
}

/// The error of a lookup by a name that cannot be part of a path.
fn invalid_name(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("resource name may not be empty".to_owned());
    }
    let wrong = NameRule::PathSegment.check(name);
    let why = || format!("invalid resource name {}: [{}]", go::quote(name), wrong.join(" "));
    (!wrong.is_empty()).then(why)
}

/// The class of a pod, if it has one. A class that does not exist refuses the pod.
fn find<'f>(pod: &Value, request: &Request<'_>, found: &Found<'f>) -> Result<Option<&'f Value>, Box<Denial>> {
    let Some(name) = class_name(pod) else {
        return Ok(None);
    };
    match (found.one(), invalid_name(name)) {
        // kube-apiserver's client refuses such a name before it sends the lookup, which is an internal error.
        (None, Some(why)) => Err(Denial::failed(why)),
        (None, None) => {
            let why = format!("pod rejected: RuntimeClass \"{name}\" not found");
            Err(request.forbidden(pod, why))
        }
        (class, _) => Ok(class),
    }
}

fn set_overhead(spec: &mut Map, class: &Value, pod: &Value, request: &Request<'_>) -> PluginVerdict {
    let Some(defined) = class.at(OVERHEAD).filter(|v| !v.is_null()) else {
        return Ok(());
    };
    let given = spec.get("overhead").and_then(Value::as_object);
    if given.is_some_and(|g| !g.is_empty() && Some(g) != defined.as_object()) {
        let why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
        return Err(request.forbidden(pod, why));
    }
    spec.insert("overhead", defined.clone());
    Ok(())
}

/// Adds the node selector and the tolerations of a class to a pod. A selector that contradicts the pod's own is
/// refused.
fn set_scheduling(spec: &mut Map, class: &Value, pod: &Value, request: &Request<'_>) -> PluginVerdict {
    let Some(scheduling) = class.get("scheduling").filter(|v| !v.is_null()) else {
        return Ok(());
    };
    if let Some(defined) = scheduling.get("nodeSelector").and_then(Value::as_object) {
        let Some(selector) = object_in(spec, "nodeSelector") else {
            return Ok(());
        };
        for (key, value) in defined.iter() {
            let value = value.as_str().unwrap_or("");
            if let Some(given) = selector.get(key).and_then(Value::as_str)
                && given != value
            {
                let why = format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; \
                     pod.spec.nodeSelector[{key}] = {given}"
                );
                return Err(request.forbidden(pod, why));
            }
        }
        selector.insert_all(defined.clone().into_iter().collect());
    }
    let given = spec.get("tolerations").and_then(Value::as_array).unwrap_or(&[]);
    let merged = merge_tolerations(given, scheduling.list("tolerations"));
    if !merged.is_empty() {
        spec.insert("tolerations", Value::Array(merged));
    }
    Ok(())
}

/// Both lists, without tolerations that another one includes. Of equal ones the first stays.
fn merge_tolerations(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<&Value> = Vec::new();
    for (i, toleration) in all.iter().enumerate() {
        // Each is compared with all others, as by kube-apiserver.
        deadline::tick_for(all.len());
        let mut later = all.iter().skip(i + 1);
        let is_redundant = merged.iter().any(|m| includes(m, toleration))
            || later.any(|l| l != toleration && includes(l, toleration));
        if !is_redundant {
            merged.push(toleration);
        }
    }
    merged.into_iter().cloned().collect()
}

/// Returns whether the first toleration tolerates everything that the second one does.
fn includes(wide: &Value, narrow: &Value) -> bool {
    if wide == narrow {
        return true;
    }
    let seconds = |t: &Value| t.get("tolerationSeconds").and_then(Value::as_int);
    let same = |field: &str| wide.get_str(field) == narrow.get_str(field);
    let exists = wide.get_str("operator") == "Exists";
    let covers_key = same("key") || (wide.get_str("key").is_empty() && exists);
    let covers_effect = same("effect") || wide.get_str("effect").is_empty();
    let covers_time = wide.get_str("effect") != "NoExecute"
        || seconds(wide).is_none_or(|most| seconds(narrow).is_some_and(|s| s <= most));
    let covers_value = match wide.get_str("operator") {
        "Exists" => true,
        // UPSTREAM: an empty operator means `Equal`, but only a toleration that spells it out is covered.
        "Equal" | "" => narrow.get_str("operator") == "Equal" && same("value"),
        _ => false,
    };
    covers_key && covers_effect && covers_time && covers_value
}
