//! `NodeDeclaredFeatureValidator`: an update of a pod on a node only uses features that the node declares.

use super::{Action, Found, Lookup, Plugin, Request, RequestSubresource, Verdict};
use crate::Subresource;
use crate::checks::update::same_of;
use scantling_notation::quantity::Quantity;
use scantling_value::Value;

/// The plugin.
#[derive(Debug)]
pub(super) struct NodeDeclaredFeatureValidator;

/// A feature that an update may need: its name, and whether an update from the first pod to the second needs it.
type Feature = (&'static str, fn(&Value, &Value) -> bool);

/// The features, by name.
const FEATURES: &[Feature] = &[
    ("InPlacePodLevelResourcesVerticalScaling", resizes_pod),
    ("InPlacePodVerticalScalingInitContainers", resizes_init_containers),
    (
        "InPlacePodVerticalScalingMemoryBackedVolumes",
        resizes_memory_volumes,
    ),
];

impl Plugin for NodeDeclaredFeatureValidator {
    fn name(&self) -> &'static str {
        "NodeDeclaredFeatureValidator"
    }

    fn handles(&self, request: &Request<'_>) -> bool {
        let is_spec = request.is_for("", "pods")
            || request.is_resource("", "pods")
                && request.subresource == RequestSubresource::Of(Subresource::Resize);
        request.action == Action::Update && is_spec
    }

    fn lookups(&self, object: &Value, request: &Request<'_>) -> Vec<Lookup> {
        match needed(object, request) {
            needed if needed.is_empty() => Vec::new(),
            _ => vec![Lookup::one("", "nodes", object.str_at(["spec", "nodeName"]))],
        }
    }

    fn check(&self, object: &Value, request: &Request<'_>, found: &Found<'_>) -> Verdict {
        let mut needed = needed(object, request);
        if needed.is_empty() {
            return Ok(());
        }
        let name = object.str_at(["spec", "nodeName"]);
        let Some(node) = found.one() else {
            return Err(request.forbidden(object, format!("node \"{name}\" not found")));
        };
        let declared = node.list_at(["status", "declaredFeatures"]);
        needed.retain(|feature| !declared.iter().any(|d| d.as_str() == Some(feature)));
        if needed.is_empty() {
            return Ok(());
        }
        let needed = needed.join(", ");
        let why = format!("pod update requires features {needed} which are not available on node \"{name}\"");
        Err(request.forbidden(object, why))
    }
}

/// The features that an update of a pod needs.
fn needed(pod: &Value, request: &Request<'_>) -> Vec<&'static str> {
    let generation = |pod: &Value| pod.at(["metadata", "generation"]).and_then(Value::as_int);
    let Some(old) = request.old else {
        return Vec::new();
    };
    // The generation counts changes of the spec.
    if pod.str_at(["spec", "nodeName"]).is_empty() || generation(old) == generation(pod) {
        return Vec::new();
    }
    let needed = FEATURES.iter().filter(|(_, is_needed)| is_needed(old, pod));
    needed.map(|(name, _)| *name).collect()
}

fn resizes_pod(old: &Value, new: &Value) -> bool {
    let [old, new] = [old, new].map(|pod| pod.at(["spec", "resources"]).filter(|r| !r.is_null()));
    match (old, new) {
        (None, None) => false,
        (Some(_), Some(_)) => !same_of("core/v1", "ResourceRequirements", new, old),
        _ => true,
    }
}

/// Sidecars are resized like containers.
fn resizes_init_containers(old: &Value, new: &Value) -> bool {
    let [old, new] = [old, new].map(|pod| pod.list_at(["spec", "initContainers"]).iter());
    old.zip(new).any(|(old, new)| {
        let [before, after] = [old, new].map(|container| container.get("resources"));
        old.get_str("restartPolicy") != "Always" && !same_of("core/v1", "ResourceRequirements", after, before)
    })
}

fn resizes_memory_volumes(old: &Value, new: &Value) -> bool {
    let [old, new] = [old, new].map(|pod| pod.list_at(["spec", "volumes"]));
    let is_resized = |(old, new): (&Value, &Value)| {
        let size = |volume: &Value| Quantity::parse(volume.str_at(["emptyDir", "sizeLimit"])).ok();
        let is_memory = new.str_at(["emptyDir", "medium"]) == "Memory";
        let sizes = size(old).zip(size(new));
        is_memory && old.get_str("name") == new.get_str("name") && sizes.is_some_and(|(old, new)| old != new)
    };
    old.len() == new.len() && old.iter().zip(new).any(is_resized)
}
