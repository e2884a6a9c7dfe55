//! The fields of services that clients do not control.

use super::allocate::relate_cluster_ips;
use super::{ServiceView, node_port};
use crate::checks::update::keep;
use crate::prepare::{object_in, objects_in};
use crate::{Operation, Subresource, Write};
use scantling_value::{Map, Value};

/// Drops the status on a create, keeps it on an update, and drops what no longer fits the type of the service.
pub(super) fn prepare(object: &mut Map, write: &Write<'_>) {
    match (write.operation, write.subresource) {
        (Operation::Create, _) => {
            object.remove("status");
            // Also where nothing is allocated: a headless service is valid without a server.
            relate_cluster_ips(object, None);
            drop_idle_policy(object);
        }
        (Operation::Update(old), Subresource::Status) => keep(object, old, "spec"),
        (Operation::Update(old), _) => {
            keep(object, old, "status");
            drop_fields_of_other_types(object, old);
            drop_idle_policy(object);
        }
    }
}

/// A service without traffic has no policy for it. The client who set one still owns it, and a wrong one is an error.
fn drop_idle_policy(object: &mut Map) {
    let view = ServiceView::new(object);
    let is_idle =
        view.is_external_name() && matches!(view.text("internalTrafficPolicy"), "Cluster" | "Local");
    if is_idle && let Some(spec) = object_in(object, "spec") {
        spec.remove("internalTrafficPolicy");
    }
}

/// Drops fields that the new type does not have, if the client left them as they were stored.
fn drop_fields_of_other_types(object: &mut Map, old: &Value) {
    let dropped = fields_of_other_types(ServiceView::new(object), ServiceView::of_value(old));
    let drops_node_ports = drops_node_ports(ServiceView::new(object), ServiceView::of_value(old));
    let is_load_balancer = ServiceView::new(object).is_load_balancer();
    if let Some(spec) = object_in(object, "spec") {
        for field in dropped {
            spec.remove(field);
        }
        if drops_node_ports {
            for port in objects_in(spec, "ports") {
                port.remove("nodePort");
            }
        }
    }
    if !is_load_balancer && let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("loadBalancer");
    }
}

/// The fields that the new type does not have and that the client left as they were. They are dropped instead of
/// refused, so that a client can change only the type.
fn fields_of_other_types(new: ServiceView<'_>, old: ServiceView<'_>) -> Vec<&'static str> {
    let is_kept = |field: &str| new.get(field) == old.get(field);
    let mut dropped = Vec::new();
    if !old.is_external_name() && new.is_external_name() {
        if new.text("clusterIP") == old.text("clusterIP") && new.list("clusterIPs") == old.list("clusterIPs")
        {
            dropped.extend(["clusterIP", "clusterIPs"]);
        }
        dropped.extend(
            ["ipFamilies", "ipFamilyPolicy"]
                .into_iter()
                .filter(|f| is_kept(f)),
        );
    }
    if old.needs_health_check() && !new.needs_health_check() && is_kept("healthCheckNodePort") {
        dropped.push("healthCheckNodePort");
    }
    if old.is_load_balancer() && !new.is_load_balancer() {
        let balancing = ["allocateLoadBalancerNodePorts", "loadBalancerClass"];
        dropped.extend(balancing.into_iter().filter(|f| is_kept(f)));
    }
    let loses_access = old.is_externally_accessible() && !new.is_externally_accessible();
    if loses_access && is_kept("externalTrafficPolicy") {
        dropped.push("externalTrafficPolicy");
    }
    dropped
}

/// Returns whether a service loses its node ports: its new type has none, and the client added none.
fn drops_node_ports(new: ServiceView<'_>, old: ServiceView<'_>) -> bool {
    let has_node_ports = |v: ServiceView<'_>| matches!(v.service_type(), "NodePort" | "LoadBalancer");
    let stored = old.node_ports();
    has_node_ports(old)
        && !has_node_ports(new)
        && new
            .list("ports")
            .iter()
            .map(node_port)
            .all(|p| p == 0 || stored.contains(&p))
}
