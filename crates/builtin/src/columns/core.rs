//! Cells of the core group and of events.

use super::text::{
    NONE, UNSET, age, amount, condition, containers, int, is_deleted, joined, labels, name, set_text_or,
    since, text, text_or,
};
use super::{Printer, Printing, pod};
use crate::core::persistent_volume_claim::{BETA_CLASS_ANNOTATION, class_name};
use scantling_value::{Map, Value};
use std::collections::BTreeSet;

/// The printers of this group.
pub(super) const PRINTERS: &[Printer] = &[
    ("", "ComponentStatus", component_status),
    ("", "ConfigMap", config_map),
    ("", "Endpoints", endpoints),
    ("", "Event", event),
    ("", "Namespace", |o, p| {
        vec![name(o), text(o, ["status", "phase"]), age(o, p)]
    }),
    ("", "Node", node),
    ("", "PersistentVolume", persistent_volume),
    ("", "PersistentVolumeClaim", persistent_volume_claim),
    ("", "Pod", pod::cells),
    ("", "PodTemplate", pod_template),
    ("", "ReplicationController", replication_controller),
    ("", "ResourceQuota", resource_quota),
    ("", "Secret", |o, p| {
        vec![name(o), text(o, ["type"]), members(o, &["data"]), age(o, p)]
    }),
    ("", "Service", service),
    ("", "ServiceAccount", |o, p| vec![name(o), age(o, p)]),
    ("events.k8s.io", "Event", event),
];

/// The number of members of objects.
fn members(object: &Value, fields: &[&str]) -> Value {
    let count = |field: &&str| object.get(field).and_then(Value::as_object).map_or(0, Map::len);
    let count: usize = fields.iter().map(count).sum();
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

fn component_status(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    let healthy = object
        .list("conditions")
        .iter()
        .find(|c| c.get_str("type") == "Healthy");
    let status = match healthy.map(|c| c.get_str("status")) {
        None => "Unknown",
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
    };
    let field = |name| healthy.map_or("", |c| c.get_str(name)).into();
    vec![name(object), status.into(), field("message"), field("error")]
}

fn config_map(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    vec![
        name(object),
        members(object, &["data", "binaryData"]),
        age(object, printing),
    ]
}

fn endpoints(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    vec![
        name(object),
        endpoint_list(object.list("subsets")).into(),
        age(object, printing),
    ]
}

fn endpoint_list(subsets: &[Value]) -> String {
    const MOST: usize = 3;
    if subsets.is_empty() {
        return NONE.to_owned();
    }
    let with_port = |ip: &str, port: i64| match ip.contains(':') {
        true => format!("[{ip}]:{port}"),
        false => format!("{ip}:{port}"),
    };
    let mut all: Vec<String> = Vec::new();
    for subset in subsets {
        let addresses = || subset.list("addresses").iter().map(|a| a.get_str("ip"));
        match subset.list("ports") {
            [] => all.extend(addresses().map(str::to_owned)),
            ports => {
                for port in ports {
                    all.extend(addresses().map(|ip| with_port(ip, int(port, ["port"]))));
                }
            }
        }
    }
    let shown: Vec<&str> = all.iter().take(MOST).map(String::as_str).collect();
    let shown = shown.join(",");
    match all.len().checked_sub(MOST) {
        Some(more @ 1..) => format!("{shown} + {more} more..."),
        _ => shown,
    }
}

fn event(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let time = |path: &[&str]| object.at(path.iter().copied()).filter(|t| !t.is_null());
    let first = time(&["firstTimestamp"]).or_else(|| time(&["eventTime"]));
    let series = object.get("series").filter(|s| !s.is_null());
    let last = match series {
        Some(_) => time(&["series", "lastObservedTime"]),
        None => time(&["lastTimestamp"]).or(first),
    };
    let count = match (series, int(object, ["count"])) {
        (Some(series), _) => int(series, ["count"]),
        // An event without a series may have no count.
        (None, 0) => 1,
        (None, count) => count,
    };
    let involved = |field| object.str_at(["involvedObject", field]);
    let kind = involved("kind").to_lowercase();
    let target = match involved("name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let either = |a: &'static str, b: &'static str| match object.str_at(["source", a]) {
        "" => object.get_str(b),
        text => text,
    };
    let source = match (
        either("component", "reportingComponent"),
        either("host", "reportingInstance"),
    ) {
        (component, "") => component.to_owned(),
        (component, instance) => format!("{component}, {instance}"),
    };
    vec![
        since(last, printing).into(),
        text(object, ["type"]),
        text(object, ["reason"]),
        target.into(),
        involved("fieldPath").into(),
        source.into(),
        object.get_str("message").trim().into(),
        since(first, printing).into(),
        count.into(),
        name(object),
    ]
}

fn node(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let mut status = match condition(object, "Ready") {
        "" => "Unknown",
        "True" => "Ready",
        _ => "NotReady",
    }
    .to_owned();
    if object.at(["spec", "unschedulable"]) == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    let info = |field| text_or(object, ["status", "nodeInfo", field], "<unknown>");
    let mut kernel = info("kernelVersion").as_str().unwrap_or("").to_owned();
    let architecture = object.str_at(["status", "nodeInfo", "architecture"]);
    if !architecture.is_empty() {
        kernel = format!("{kernel} ({architecture})");
    }
    let address = |kind: &str| {
        let mut addresses = object.list_at(["status", "addresses"]).iter();
        addresses
            .find(|a| a.get_str("type") == kind)
            .map_or(NONE, |a| a.get_str("address"))
    };
    vec![
        name(object),
        status.into(),
        roles(object).into(),
        age(object, printing),
        text(object, ["status", "nodeInfo", "kubeletVersion"]),
        address("InternalIP").into(),
        address("ExternalIP").into(),
        info("osImage"),
        kernel.into(),
        info("containerRuntimeVersion"),
    ]
}

fn roles(node: &Value) -> String {
    let labels = node
        .at(["metadata", "labels"])
        .and_then(Value::as_object)
        .map_or(&[][..], Map::entries);
    let role = |(key, value): &'_ (scantling_value::Str, Value)| {
        let value = value.as_str().unwrap_or("").to_owned();
        let role = key.strip_prefix("node-role.kubernetes.io/").map(str::to_owned);
        role.or_else(|| (key == "kubernetes.io/role").then_some(value))
            .filter(|r| !r.is_empty())
    };
    let roles: BTreeSet<String> = labels.iter().filter_map(role).collect();
    let roles: Vec<String> = roles.into_iter().collect();
    match roles.is_empty() {
        true => NONE.to_owned(),
        false => roles.join(","),
    }
}

fn access_modes(modes: &[Value]) -> Value {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| modes.iter().any(|m| m.as_str() == Some(mode));
    let short: Vec<&str> = SHORT
        .iter()
        .filter(|(mode, _)| has(mode))
        .map(|(_, short)| *short)
        .collect();
    short.join(",").into()
}

fn phase(object: &Value) -> Value {
    match is_deleted(object) {
        true => "Terminating".into(),
        false => text(object, ["status", "phase"]),
    }
}

fn persistent_volume(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let claim = object.at(["spec", "claimRef"]).filter(|c| !c.is_null());
    let claim = claim.map_or_else(String::new, |c| {
        format!("{}/{}", c.get_str("namespace"), c.get_str("name"))
    });
    let class = object
        .at(["metadata", "annotations", BETA_CLASS_ANNOTATION])
        .and_then(Value::as_str);
    vec![
        name(object),
        amount(object.at(["spec", "capacity", "storage"])).into(),
        access_modes(object.list_at(["spec", "accessModes"])),
        text(object, ["spec", "persistentVolumeReclaimPolicy"]),
        phase(object),
        claim.into(),
        class
            .unwrap_or_else(|| object.str_at(["spec", "storageClassName"]))
            .into(),
        set_text_or(object, ["spec", "volumeAttributesClassName"], UNSET),
        text(object, ["status", "reason"]),
        age(object, printing),
        text_or(object, ["spec", "volumeMode"], UNSET),
    ]
}

fn persistent_volume_claim(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let is_bound = !object.str_at(["spec", "volumeName"]).is_empty();
    let (capacity, modes) = match is_bound {
        true => (
            amount(object.at(["status", "capacity", "storage"])).into(),
            access_modes(object.list_at(["status", "accessModes"])),
        ),
        false => ("".into(), "".into()),
    };
    vec![
        name(object),
        phase(object),
        text(object, ["spec", "volumeName"]),
        capacity,
        modes,
        class_name(object).into(),
        set_text_or(object, ["spec", "volumeAttributesClassName"], UNSET),
        age(object, printing),
        text_or(object, ["spec", "volumeMode"], UNSET),
    ]
}

fn pod_template(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    let [names, images] = containers(object.list_at(["template", "spec", "containers"]));
    vec![
        name(object),
        names,
        images,
        labels(object.at(["template", "metadata", "labels"])).into(),
    ]
}

fn replication_controller(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let [names, images] = containers(object.list_at(["spec", "template", "spec", "containers"]));
    vec![
        name(object),
        int(object, ["spec", "replicas"]).into(),
        int(object, ["status", "replicas"]).into(),
        int(object, ["status", "readyReplicas"]).into(),
        age(object, printing),
        names,
        images,
        labels(object.at(["spec", "selector"])).into(),
    ]
}

fn resource_quota(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let hard = object
        .at(["status", "hard"])
        .and_then(Value::as_object)
        .map_or(&[][..], Map::entries);
    let [mut requests, mut limits] = [const { Vec::new() }; 2];
    for (resource, hard) in hard {
        let used = amount(object.at(["status", "used", resource]));
        let text = format!("{resource}: {used}/{}", amount(Some(hard)));
        match resource.starts_with("limits.") {
            true => limits.push(text),
            false => requests.push(text),
        }
    }
    vec![
        name(object),
        requests.join(", ").into(),
        limits.join(", ").into(),
        age(object, printing),
    ]
}

fn service(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let first = object
        .list_at(["spec", "clusterIPs"])
        .first()
        .and_then(Value::as_str);
    let ports = object.list_at(["spec", "ports"]).iter().map(|port| {
        let (number, protocol) = (int(port, ["port"]), port.get_str("protocol"));
        match int(port, ["nodePort"]) {
            node_port @ 1.. => format!("{number}:{node_port}/{protocol}"),
            _ => format!("{number}/{protocol}"),
        }
    });
    let ports: Vec<String> = ports.collect();
    let ports = if ports.is_empty() {
        NONE.to_owned()
    } else {
        ports.join(",")
    };
    vec![
        name(object),
        text(object, ["spec", "type"]),
        first.unwrap_or(NONE).into(),
        external_ip(object).into(),
        ports.into(),
        age(object, printing),
        labels(object.at(["spec", "selector"])).into(),
    ]
}

/// The addresses of a load balancer, in order.
pub(super) fn balancer_addresses(object: &Value) -> String {
    let points = object.list_at(["status", "loadBalancer", "ingress"]).iter();
    let addresses: BTreeSet<&str> = points
        .map(|p| match p.get_str("ip") {
            "" => p.get_str("hostname"),
            ip => ip,
        })
        .filter(|a| !a.is_empty())
        .collect();
    let addresses: Vec<&str> = addresses.into_iter().collect();
    addresses.join(",")
}

fn external_ip(service: &Value) -> String {
    let external = joined(service, ["spec", "externalIPs"]);
    match service.str_at(["spec", "type"]) {
        "ClusterIP" | "NodePort" if external.is_empty() => NONE.to_owned(),
        "ClusterIP" | "NodePort" => external,
        "LoadBalancer" => {
            let addresses = [balancer_addresses(service), external]
                .into_iter()
                .filter(|a| !a.is_empty());
            let addresses: Vec<String> = addresses.collect();
            match addresses.is_empty() {
                true => "<pending>".to_owned(),
                false => addresses.join(","),
            }
        }
        "ExternalName" => service.str_at(["spec", "externalName"]).to_owned(),
        _ => "<unknown>".to_owned(),
    }
}
