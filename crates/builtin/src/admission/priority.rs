//! `Priority`: pods get the priority of their class; at most one class is the default.

use super::{Action, Effects, Found, Lookup, Phase, Plugin, PluginVerdict, Request};
use crate::prepare::object_in;
use scantling_value::{Map, Value};

/// The plugin.
pub(super) const PLUGIN: Plugin = Plugin {
    lookups,
    mutate,
    check,
    ..Plugin::new("Priority", handles)
};

const GROUP: &str = "scheduling.k8s.io";
const RESOURCE: &str = "priorityclasses";

fn handles(request: &Request<'_>) -> bool {
    let is_handled = match request.phase {
        Phase::Mutating => request.is_for("", "pods"),
        Phase::Validating => request.is_for(GROUP, RESOURCE),
    };
    is_handled && request.action != Action::Delete
}

fn lookups(object: &Value, request: &Request<'_>) -> Vec<Lookup> {
    let is_pod = request.is_for("", "pods");
    let class = object.str_at(["spec", "priorityClassName"]);
    let is_default = object.get("globalDefault").and_then(Value::as_bool) == Some(true);
    match request.action {
        Action::Create if is_pod && !class.is_empty() => vec![Lookup::one(GROUP, RESOURCE, class)],
        // Any class may be the default.
        Action::Create if is_pod => vec![Lookup::all(GROUP, RESOURCE)],
        _ if !is_pod && is_default => vec![Lookup::all(GROUP, RESOURCE)],
        _ => Vec::new(),
    }
}

fn mutate(object: &mut Map, request: &Request<'_>, found: &Found<'_>) -> PluginVerdict {
    match request.old {
        Some(old) => {
            keep_priority(object, old);
            Ok(())
        }
        None => set_priority(object, request, found),
    }
}

fn check(object: &Value, request: &Request<'_>, found: &Found<'_>, _: &mut Effects) -> PluginVerdict {
    let Some(default) = global_default(found.all()) else {
        return Ok(());
    };
    let name = default.str_at(["metadata", "name"]);
    if request.action == Action::Create || name != object.str_at(["metadata", "name"]) {
        let why = format!("PriorityClass {name} is already marked as default. Only one default can exist");
        return Err(request.forbidden(object, why));
    }
    Ok(())
}

/// The class that is marked as the default; of several, the one with the lowest value.
fn global_default<'c>(classes: impl Iterator<Item = &'c Value>) -> Option<&'c Value> {
    let is_default = |c: &&Value| c.get("globalDefault").and_then(Value::as_bool) == Some(true);
    classes.filter(is_default).min_by_key(|c| class_value(c))
}

fn class_value(class: &Value) -> i64 {
    class.get("value").and_then(Value::as_int).unwrap_or(0)
}

/// An update that omits the priority keeps it.
fn keep_priority(pod: &mut Map, old: &Value) {
    let Some(spec) = object_in(pod, "spec") else {
        return;
    };
    // Validation refuses every other change of these fields, so an old client that drops them must not fail.
    for field in ["priority", "preemptionPolicy"] {
        let stored = old.at(["spec", field]).filter(|v| !v.is_null());
        if let (None | Some(Value::Null), Some(stored)) = (spec.get(field), stored) {
            spec.insert(field, stored.clone());
        }
    }
}

fn set_priority(pod: &mut Map, request: &Request<'_>, found: &Found<'_>) -> PluginVerdict {
    let as_value = Value::Object(pod.clone());
    let refuse = |why: String| Err(request.forbidden(&as_value, why));
    let asked = as_value.str_at(["spec", "priorityClassName"]);
    let class = match asked {
        "" => global_default(found.all()),
        name => match found.one() {
            None => return refuse(format!("no PriorityClass with name {name} was found")),
            class => class,
        },
    };
    let (name, value, policy) = match class {
        None => ("", 0, "PreemptLowerPriority"),
        Some(c) => (
            c.str_at(["metadata", "name"]),
            class_value(c),
            c.get_str("preemptionPolicy"),
        ),
    };
    // A client may send back what the server computed.
    let given = as_value.at(["spec", "priority"]).and_then(Value::as_int);
    if let Some(given) = given.filter(|given| *given != value) {
        return refuse(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name"
        ));
    }
    let given = as_value.at(["spec", "preemptionPolicy"]).and_then(Value::as_str);
    if let Some(given) = given.filter(|given| !policy.is_empty() && *given != policy) {
        return refuse(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        ));
    }
    let Some(spec) = object_in(pod, "spec") else {
        return Ok(());
    };
    spec.insert("priority", Value::Int(value));
    if !name.is_empty() {
        spec.insert("priorityClassName", name.into());
    }
    if !policy.is_empty() {
        spec.insert("preemptionPolicy", policy.into());
    }
    Ok(())
}
