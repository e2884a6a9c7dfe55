//! `TaintNodesByCondition`: a new node takes no pods until it is ready.

use super::{Action, Found, Plugin, PluginVerdict, Request};
use crate::prepare::{append, object_in};
use scantling_value::{Map, Value};

/// The plugin.
pub(super) const PLUGIN: Plugin = Plugin {
    mutate,
    ..Plugin::new("TaintNodesByCondition", handles)
};

const KEY: &str = "node.kubernetes.io/not-ready";
const EFFECT: &str = "NoSchedule";

fn handles(request: &Request<'_>) -> bool {
    request.is_for("", "nodes") && request.action == Action::Create && request.is_mutating()
}

fn mutate(object: &mut Map, _: &Request<'_>, _: &Found<'_>) -> PluginVerdict {
    let Some(spec) = object_in(object, "spec") else {
        return Ok(());
    };
    let taints = spec.get("taints").and_then(Value::as_array).unwrap_or(&[]);
    let is_there = taints
        .iter()
        .any(|t| t.get_str("key") == KEY && t.get_str("effect") == EFFECT);
    // Otherwise pods could be scheduled to the node before it has reported that it is ready.
    if !is_there {
        let taint = Map::from_iter([("effect", Value::from(EFFECT)), ("key", Value::from(KEY))]);
        append(spec, "taints", taint);
    }
    Ok(())
}
