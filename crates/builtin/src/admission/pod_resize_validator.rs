//! `PodResizeValidator`: a pod on a node is only resized to what the node can hold.

use super::pod_resources::{AmountList, amounts, with_overhead};
use super::{
    Action, Cause, Denial, Effects, Found, Lookup, Plugin, PluginVerdict, Request, RequestSubresource,
};
use crate::Subresource;
use scantling_notation::quantity::Quantity;
use scantling_value::Value;

/// The plugin.
pub(super) const PLUGIN: Plugin = Plugin {
    lookups,
    check,
    ..Plugin::new("PodResizeValidator", handles)
};

const SYSTEM_LABEL: &str = "kubernetes.io/os";

fn handles(request: &Request<'_>) -> bool {
    request.is_validating()
        && request.action == Action::Update
        && request.is_resource("", "pods")
        && request.subresource == RequestSubresource::Of(Subresource::Resize)
}

fn lookups(object: &Value, _: &Request<'_>) -> Vec<Lookup> {
    match object.str_at(["spec", "nodeName"]) {
        "" => Vec::new(),
        node => vec![Lookup::one("", "nodes", node)],
    }
}

fn check(object: &Value, request: &Request<'_>, found: &Found<'_>, _: &mut Effects) -> PluginVerdict {
    let name = object.str_at(["spec", "nodeName"]);
    let generation = |pod: &Value| pod.at(["metadata", "generation"]).and_then(Value::as_int);
    // The preparation of the write increments the generation exactly if the spec changes.
    let is_unchanged = request
        .old
        .is_some_and(|old| generation(old) == generation(object));
    if name.is_empty() || is_unchanged {
        return Ok(());
    }
    let Some(node) = found.one() else {
        return Err(request.forbidden(object, format!("node \"{name}\" not found")));
    };
    let system = node
        .at(["metadata", "labels", SYSTEM_LABEL])
        .and_then(Value::as_str);
    if let Some(system) = system.filter(|s| *s != "linux") {
        let why = format!("pod resize is only supported on linux nodes, node \"{name}\" is \"{system}\"");
        return Err(refuse(object, request, &why, "UnsupportedPlatform"));
    }
    match lacking(object, node) {
        lacking if lacking.is_empty() => Ok(()),
        lacking => {
            let why = format!(
                "node didn't have enough allocatable resources: {}",
                lacking.join("; ")
            );
            Err(refuse(object, request, &why, "NodeCapacity"))
        }
    }
}

fn refuse(pod: &Value, request: &Request<'_>, why: &str, reason: &'static str) -> Box<Denial> {
    let mut denial = request.forbidden(pod, why);
    denial.causes.push(Cause {
        reason,
        message: String::new(),
        field: String::new(),
    });
    denial
}

/// The resources that a pod requests beyond the capacity of its node.
fn lacking(pod: &Value, node: &Value) -> Vec<String> {
    let requests = with_overhead(pod, AmountList::Requests);
    let allocatable = amounts(node.at(["status", "allocatable"]));
    let zero = Quantity::from_int(0);
    // CPU is counted in thousandths, memory in bytes.
    let units = [("cpu", -3), ("memory", 0)];
    let lacks = units.into_iter().filter_map(|(name, exponent)| {
        let requested = requests.get(name).unwrap_or(&zero);
        let available = allocatable.get(name).unwrap_or(&zero);
        let (requested_n, available_n) = (requested.scaled(exponent), available.scaled(exponent));
        let text = || format!("{name}, requested: {requested_n}, allocatable: {available_n}");
        (requested > available).then(text)
    });
    lacks.collect()
}
