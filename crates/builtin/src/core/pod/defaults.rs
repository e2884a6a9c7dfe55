//! Defaults of pods and pod specs.

use super::image;
use crate::Context;
use crate::checks::defaults::{round_list, round_requirements, set_if_empty, set_static};
use crate::core::persistent_volume_claim;
use crate::prepare::{objects_in, set_default};
use scantling_value::{Map, Value};

/// The members of a pod spec that hold containers.
pub(super) const CONTAINERS: [&str; 3] = ["containers", "initContainers", "ephemeralContainers"];

/// Fills in the defaults of a pod: those that only pods have, and those of its spec and status.
pub(super) fn pod(pod: &mut Map, context: &Context<'_>) {
    let spec = pod.get_or_insert_with("spec", || Map::new().into());
    if let Some(spec) = spec.as_object_mut() {
        // Older servers accepted negative periods, which mean 1.
        if let Some(Value::Int(period)) = spec.get_mut("terminationGracePeriodSeconds") {
            *period = if *period < 0 { 1 } else { *period };
        }
        let is_host_network = spec.get("hostNetwork").and_then(Value::as_bool) == Some(true);
        for field in ["containers", "initContainers"] {
            for container in objects_in(spec, field) {
                if let Some(resources) = container.get_mut("resources").and_then(Value::as_object_mut) {
                    request_limits(resources);
                }
                if is_host_network {
                    objects_in(container, "ports").for_each(use_host_port);
                }
            }
        }
        set_default(spec, "enableServiceLinks", true);
        let mut set_protocol = |action: &mut Map| {
            if (context.enabled)("H2CContainerProbe") {
                set_default(action, "protocol", "HTTP1");
            }
        };
        for field in CONTAINERS {
            objects_in(spec, field).for_each(|container| http_actions(container, &mut set_protocol));
        }
        self::spec(spec);
    }
    if let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) {
        self::status(status);
    }
}

/// Sets requests that are absent to the limits.
fn request_limits(resources: &mut Map) {
    let Some(limits) = resources.get("limits").and_then(Value::as_object) else {
        return;
    };
    let requests = resources.get("requests").and_then(Value::as_object);
    let is_requested = |name: &str| requests.is_some_and(|r| r.contains_key(name));
    let absent: Vec<_> = limits
        .iter()
        .filter(|(name, _)| !is_requested(name))
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    if absent.is_empty() {
        return;
    }
    let requests = resources.get_or_insert_with("requests", || Map::new().into());
    if let Some(requests) = requests.as_object_mut() {
        requests.insert_all(absent);
    }
}

fn use_host_port(port: &mut Map) {
    if let Some(container_port) = port.get("containerPort").cloned() {
        set_if_empty(port, "hostPort", container_port);
    }
}

/// Calls a function for the HTTP requests of a container's probes and hooks.
pub(super) fn http_actions(container: &mut Map, act: &mut dyn FnMut(&mut Map)) {
    let mut handler = |handler: Option<&mut Value>| {
        let handler = handler.and_then(Value::as_object_mut);
        let action = handler.and_then(|h| h.get_mut("httpGet"));
        if let Some(action) = action.and_then(Value::as_object_mut) {
            act(action);
        }
    };
    for probe in PROBES {
        handler(container.get_mut(probe));
    }
    if let Some(lifecycle) = container.get_mut("lifecycle").and_then(Value::as_object_mut) {
        handler(lifecycle.get_mut("postStart"));
        handler(lifecycle.get_mut("preStop"));
    }
}

/// The probes of a container.
pub(super) const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// The first address and the list of addresses go together.
fn status(status: &mut Map) {
    let list = |ip: Value| Value::from(vec![Value::from(Map::from_iter([("ip", ip)]))]);
    let first = status.get("podIPs").and_then(|ips| ips.as_array()?.first());
    let first = first.map(|ip| ip.get_str("ip").to_owned());
    let single = status.get_str("podIP").to_owned();
    match first {
        None if !single.is_empty() => {
            status.insert("podIPs", list(single.into()));
        }
        Some(first) if single.is_empty() => {
            status.insert("podIP", first.into());
        }
        // If both are set and differ, the older field decides: clients may know only that one.
        Some(first) if first != single => {
            status.insert("podIPs", list(single.into()));
        }
        _ => {}
    }
    round_list(status.get_mut("allocatedResources"));
    round_requirements(status.get_mut("resources"));
    for field in STATUSES {
        for status in objects_in(status, field) {
            round_list(status.get_mut("allocatedResources"));
            round_requirements(status.get_mut("resources"));
        }
    }
}

/// The members of a pod's status that hold statuses of containers.
pub(super) const STATUSES: [&str; 3] = [
    "containerStatuses",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
];

/// Fills in the defaults of a pod spec.
pub(in crate::core) fn spec(spec: &mut Map) {
    // These are two names of one field. If both are set, the new one decides.
    if spec.get_str("serviceAccountName").is_empty() {
        if let Some(name @ Value::String(_)) = spec.get("serviceAccount").cloned() {
            spec.insert("serviceAccountName", name);
        }
    } else if let Some(name) = spec.get("serviceAccountName").cloned() {
        spec.insert("serviceAccount", name);
    }
    set_if_empty(spec, "dnsPolicy", "ClusterFirst");
    set_if_empty(spec, "restartPolicy", "Always");
    set_default(spec, "securityContext", Map::new());
    set_default(spec, "terminationGracePeriodSeconds", 30);
    set_if_empty(spec, "schedulerName", "default-scheduler");
    objects_in(spec, "volumes").for_each(volume);
    for field in CONTAINERS {
        objects_in(spec, field).for_each(container);
    }
    round_list(spec.get_mut("overhead"));
    round_requirements(spec.get_mut("resources"));
}

fn container(container: &mut Map) {
    if container.get_str("imagePullPolicy").is_empty() {
        container.insert("imagePullPolicy", pull_policy(container.get_str("image")));
    }
    set_if_empty(container, "terminationMessagePath", "/dev/termination-log");
    set_if_empty(container, "terminationMessagePolicy", "File");
    objects_in(container, "ports").for_each(|port| set_static(port, "ContainerPort"));
    for variable in objects_in(container, "env") {
        let source = variable.get_mut("valueFrom").and_then(Value::as_object_mut);
        let Some(source) = source else { continue };
        field_reference(source);
        if let Some(file) = source.get_mut("fileKeyRef").and_then(Value::as_object_mut) {
            set_static(file, "FileKeySelector");
        }
    }
    round_requirements(container.get_mut("resources"));
    for name in PROBES {
        if let Some(found) = container.get_mut(name).and_then(Value::as_object_mut) {
            probe(found);
        }
    }
    http_actions(container, &mut |action| {
        set_if_empty(action, "path", "/");
        set_if_empty(action, "scheme", "HTTP");
    });
}

fn pull_policy(image: &str) -> Value {
    if image::is_latest(image) {
        "Always".into()
    } else {
        "IfNotPresent".into()
    }
}

fn probe(probe: &mut Map) {
    for (field, seconds) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        set_if_empty(probe, field, seconds);
    }
    if let Some(grpc) = probe.get_mut("grpc").and_then(Value::as_object_mut) {
        set_static(grpc, "GRPCAction");
    }
}

/// A reference to a field is to one of version 1.
fn field_reference(holder: &mut Map) {
    if let Some(reference) = holder.get_mut("fieldRef").and_then(Value::as_object_mut) {
        set_if_empty(reference, "apiVersion", "v1");
    }
}

/// The mode of files in volumes, in octal 0644.
const FILE_MODE: i64 = 0o644;

/// Fills in the defaults of a volume. One without a source is an empty directory.
fn volume(volume: &mut Map) {
    // Decoding keeps only known fields, so every other member is a source.
    let is_source = |(name, value): (&scantling_value::Str, &Value)| name != "name" && !value.is_null();
    if !volume.iter().any(is_source) {
        volume.insert("emptyDir", Map::new().into());
        return;
    }
    for (name, source) in volume.iter_mut() {
        let Some(source) = source.as_object_mut() else {
            continue;
        };
        match name.as_str() {
            "secret" | "configMap" => set_default(source, "defaultMode", FILE_MODE),
            "downwardAPI" => {
                set_default(source, "defaultMode", FILE_MODE);
                objects_in(source, "items").for_each(field_reference);
            }
            "projected" => {
                set_default(source, "defaultMode", FILE_MODE);
                objects_in(source, "sources").for_each(projection);
            }
            "hostPath" => set_default(source, "type", ""),
            "image" if source.get_str("pullPolicy").is_empty() => {
                source.insert("pullPolicy", pull_policy(source.get_str("reference")));
            }
            "ephemeral" => {
                let template = source
                    .get_mut("volumeClaimTemplate")
                    .and_then(Value::as_object_mut);
                let spec = template.map(|t| t.get_or_insert_with("spec", || Map::new().into()));
                if let Some(spec) = spec.and_then(Value::as_object_mut) {
                    persistent_volume_claim::default_spec(spec);
                }
            }
            "iscsi" => set_static(source, "ISCSIVolumeSource"),
            "rbd" => set_static(source, "RBDVolumeSource"),
            "azureDisk" => set_static(source, "AzureDiskVolumeSource"),
            "scaleIO" => set_static(source, "ScaleIOVolumeSource"),
            _ => {}
        }
    }
}

fn projection(source: &mut Map) {
    if let Some(token) = source
        .get_mut("serviceAccountToken")
        .and_then(Value::as_object_mut)
    {
        set_default(token, "expirationSeconds", 3600);
    }
    if let Some(files) = source.get_mut("downwardAPI").and_then(Value::as_object_mut) {
        objects_in(files, "items").for_each(field_reference);
    }
}
