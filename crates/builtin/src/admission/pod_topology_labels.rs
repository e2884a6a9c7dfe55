//! `PodTopologyLabels`: a pod carries the zone and region of its node.

use super::{Action, Found, Lookup, Plugin, PluginVerdict, Request, RequestSubresource};
use crate::prepare::object_in;
use scantling_value::{Map, Value};

/// The plugin.
pub(super) const PLUGIN: Plugin = Plugin {
    lookups,
    mutate,
    ..Plugin::new("PodTopologyLabels", handles)
};

const LABELS: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];
const BINDING: RequestSubresource<'static> = RequestSubresource::Other("binding");

fn handles(request: &Request<'_>) -> bool {
    let is_pod = request.is_for("", "pods");
    let is_binding = request.is_resource("", "pods") && request.subresource == BINDING;
    request.is_mutating()
        && request.action == Action::Create
        && (is_pod || is_binding)
        && (request.context.enabled)("PodTopologyLabelsAdmission")
}

fn lookups(object: &Value, request: &Request<'_>) -> Vec<Lookup> {
    let node = match request.subresource {
        BINDING if object.str_at(["target", "kind"]) == "Node" => object.str_at(["target", "name"]),
        BINDING => "",
        _ => object.str_at(["spec", "nodeName"]),
    };
    match node {
        "" => Vec::new(),
        node => vec![Lookup::one("", "nodes", node)],
    }
}

fn mutate(object: &mut Map, _: &Request<'_>, found: &Found<'_>) -> PluginVerdict {
    let Some(node) = found.one() else {
        return Ok(());
    };
    // The labels of a binding are copied to the pod when it is bound.
    let labels = LABELS.map(|label| (label, node.at(["metadata", "labels", label])));
    for (label, value) in labels {
        let target = object_in(object, "metadata").and_then(|m| object_in(m, "labels"));
        if let (Some(value), Some(target)) = (value, target) {
            // The node's labels replace what the client sent.
            target.insert(label, value.clone());
        }
    }
    Ok(())
}
