//! Cells of groups with few kinds.

use super::text::{age, flag, int, is_deleted, name, since, text};
use super::{Printer, Printing};
use scantling_value::Value;

const RESOURCE: &str = "resource.k8s.io";

/// The printers of these groups.
pub(super) const PRINTERS: &[Printer] = &[
    ("apiregistration.k8s.io", "APIService", api_service),
    ("coordination.k8s.io", "Lease", |o, p| {
        vec![name(o), text(o, ["spec", "holderIdentity"]), age(o, p)]
    }),
    ("node.k8s.io", "RuntimeClass", |o, p| {
        vec![name(o), text(o, ["handler"]), age(o, p)]
    }),
    ("policy", "PodDisruptionBudget", disruption_budget),
    (RESOURCE, "DeviceClass", |o, p| vec![name(o), age(o, p)]),
    (RESOURCE, "DeviceTaintRule", device_taint_rule),
    (RESOURCE, "ResourceClaim", |o, p| {
        vec![name(o), claim_state(o).into(), age(o, p)]
    }),
    (RESOURCE, "ResourceClaimTemplate", |o, p| vec![name(o), age(o, p)]),
    (RESOURCE, "ResourceSlice", resource_slice),
    ("scheduling.k8s.io", "PriorityClass", priority_class),
    ("storagemigration.k8s.io", "StorageVersionMigration", migration),
];

fn api_service(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let service = object.at(["spec", "service"]).filter(|s| !s.is_null());
    let service = service.map_or_else(
        || "Local".to_owned(),
        |s| format!("{}/{}", s.get_str("namespace"), s.get_str("name")),
    );
    let mut conditions = object.list_at(["status", "conditions"]).iter();
    let available = conditions.find(|c| c.get_str("type") == "Available");
    let available = match available.map(|c| (c.get_str("status"), c.get_str("reason"))) {
        None => "Unknown".to_owned(),
        Some((status @ "True", _) | (status, "")) => status.to_owned(),
        Some((status, reason)) => format!("{status} ({reason})"),
    };
    vec![
        name(object),
        service.into(),
        available.into(),
        age(object, printing),
    ]
}

fn disruption_budget(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let bound = |field| match object.at(["spec", field]) {
        None | Some(Value::Null) => Value::from("N/A"),
        Some(Value::Int(number)) => number.to_string().into(),
        Some(other) => other.clone(),
    };
    vec![
        name(object),
        bound("minAvailable"),
        bound("maxUnavailable"),
        int(object, ["status", "disruptionsAllowed"]).into(),
        age(object, printing),
    ]
}

fn device_taint_rule(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let taint = |field| text(object, ["spec", "taint", field]);
    let added = object.at(["spec", "taint", "timeAdded"]).filter(|t| !t.is_null());
    let added = added.map_or_else(String::new, |added| since(Some(added), printing));
    vec![
        name(object),
        taint("key"),
        taint("value"),
        taint("effect"),
        added.into(),
        age(object, printing),
    ]
}

fn claim_state(claim: &Value) -> &'static str {
    let is_allocated = claim.at(["status", "allocation"]).is_some_and(|a| !a.is_null());
    let is_reserved = !claim.list_at(["status", "reservedFor"]).is_empty();
    match (is_deleted(claim), is_allocated, is_reserved) {
        (false, false, _) => "pending",
        (false, true, false) => "allocated",
        (false, true, true) => "allocated,reserved",
        (true, false, _) => "deleted",
        (true, true, false) => "deleted,allocated",
        (true, true, true) => "deleted,allocated,reserved",
    }
}

fn resource_slice(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    vec![
        name(object),
        text(object, ["spec", "nodeName"]),
        text(object, ["spec", "driver"]),
        text(object, ["spec", "pool", "name"]),
        age(object, printing),
    ]
}

fn priority_class(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    vec![
        name(object),
        int(object, ["value"]).into(),
        flag(object, ["globalDefault"]).into(),
        age(object, printing),
        text(object, ["preemptionPolicy"]),
    ]
}

fn migration(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    let resource = match object.str_at(["spec", "resource", "group"]) {
        "" => object.str_at(["spec", "resource", "resource"]).to_owned(),
        group => format!("{}.{group}", object.str_at(["spec", "resource", "resource"])),
    };
    // kube-apiserver overwrites the state in a loop, so that the last condition decides.
    let conditions = object.list_at(["status", "conditions"]).iter().rev();
    let mut reached = conditions
        .filter(|c| c.get_str("status") == "True")
        .map(|c| c.get_str("type"));
    let state = reached.find(|state| matches!(*state, "Running" | "Failed" | "Succeeded"));
    vec![name(object), resource.into(), state.unwrap_or("Unknown").into()]
}
