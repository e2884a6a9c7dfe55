//! Validation of services.

use super::cluster_ips;
use super::{ServiceView, node_port, stored_texts};
use crate::Cursor;
use crate::checks::{Report, Rule, check_fields, go, ip, labels, names, numbers};
use scantling_value::{ErrorList, Map, Value};
use std::collections::BTreeSet;

const TYPES: &[&str] = &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const AFFINITIES: &[&str] = &["ClientIP", "None"];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const TRAFFIC_POLICIES: &[&str] = &["Cluster", "Local"];
const DISTRIBUTIONS: &[&str] = &["PreferClose", "PreferSameZone", "PreferSameNode"];
const IP_MODES: &[&str] = &["Proxy", "VIP"];
const MAX_AFFINITY_SECONDS: i64 = 86_400;
const NOT_FOR_EXTERNAL_NAMES: &str = "may not be set for ExternalName services";
const ONLY_FOR_LOAD_BALANCERS: &str = "may only be used when `type` is 'LoadBalancer'";

/// The rules of a port, apart from its name.
const PORT: &[(&str, Rule)] = &[
    ("port", Rule::Check(numbers::port)),
    ("protocol", Rule::RequiredOneOf(PROTOCOLS)),
    ("targetPort", Rule::Check(numbers::port_or_name)),
    ("appProtocol", Rule::FormIfSet(names::label_key)),
];

/// Validates a service; `old` is the stored one on an update.
pub(super) fn check(object: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    let (root, view) = (Cursor::root(object), ServiceView::of_value(object));
    let spec = root.field("spec");
    if let Some(old) = old {
        check_update(&spec, object, old, errors);
    }
    check_topology_annotations(&root, errors);
    let ports = spec.field("ports");
    if ports.list().is_empty() && !view.is_headless() && !view.is_external_name() {
        errors.required(&ports, "");
    }
    check_addresses_of_type(&spec, view, errors);
    check_ports(&ports, errors);
    if spec.field("selector").is_set() {
        labels::labels(&spec.field("selector"), errors);
    }
    check_affinity(&spec, errors);
    cluster_ips::check(object, old, errors);
    check_external_ips(&spec.field("externalIPs"), old, errors);
    Rule::RequiredOneOf(TYPES).check(&spec.field("type"), errors);
    check_node_ports(&ports, view, errors);
    check_unique_ports(&ports, errors);
    check_source_ranges(&root, view, old, errors);
    check_load_balancer(&root, view, errors);
    check_external_traffic(&spec, view, errors);
    let internal = spec.field("internalTrafficPolicy");
    if !internal.is_set() && matches!(view.service_type(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        errors.required(&internal, "");
    }
    Rule::OneOf(TRAFFIC_POLICIES).check(&internal, errors);
    Rule::OneOf(DISTRIBUTIONS).check(&spec.field("trafficDistribution"), errors);
}

fn check_update(spec: &Cursor<'_, '_>, object: &Value, old: &Value, errors: &mut ErrorList) {
    cluster_ips::check_changed_addresses(object, old, errors);
    cluster_ips::check_changed_families(object, old, errors);
    let (new, old) = (ServiceView::of_value(object), ServiceView::of_value(old));
    let class = spec.field("loadBalancerClass");
    if new.is_load_balancer() && old.is_load_balancer() && class.value() != old.get("loadBalancerClass") {
        errors.invalid_value(
            &class,
            class.value().cloned().unwrap_or_default(),
            "may not change once set",
        );
    }
    check_load_balancer_class(spec, new, errors);
    let port = spec.field("healthCheckNodePort");
    let stored = old
        .get("healthCheckNodePort")
        .and_then(Value::as_int)
        .unwrap_or(0);
    if new.needs_health_check() && old.needs_health_check() && port.int() != stored {
        errors.forbidden(&port, "field is immutable");
    }
}

/// The old and the new annotation about topology must agree.
fn check_topology_annotations(root: &Cursor<'_, '_>, errors: &mut ErrorList) {
    const MODE: &str = "service.kubernetes.io/topology-mode";
    const OLD_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let metadata = root.field("metadata");
    let annotations = metadata.field("annotations");
    let annotation = |key: &str| annotations.map().and_then(|a| a.get(key)).and_then(Value::as_str);
    if let (Some(mode), Some(hints)) = (annotation(MODE), annotation(OLD_HINTS))
        && mode != hints
    {
        let at = Cursor::at(None, annotations.path().key(MODE));
        let why = format!("must match annotations[{OLD_HINTS}] when both are specified");
        errors.invalid_value(&at, mode, why);
    }
}

fn check_addresses_of_type(spec: &Cursor<'_, '_>, view: ServiceView<'_>, errors: &mut ErrorList) {
    let addresses = spec.field("clusterIPs");
    match view.service_type() {
        service_type @ ("LoadBalancer" | "NodePort") if view.is_headless() => {
            for first in addresses.items() {
                errors.invalid(
                    &first,
                    format!("may not be set to 'None' for {service_type} services"),
                );
            }
        }
        "ExternalName" => {
            for list in [&addresses, &spec.field("ipFamilies")] {
                if !list.list().is_empty() {
                    errors.forbidden(list, NOT_FOR_EXTERNAL_NAMES);
                }
            }
            Rule::Forbidden(NOT_FOR_EXTERNAL_NAMES).check(&spec.field("ipFamilyPolicy"), errors);
            let name = spec.field("externalName");
            match name.str().strip_suffix('.').unwrap_or(name.str()) {
                "" => errors.required(&name, ""),
                domain => {
                    for why in names::dns1123_subdomain(domain) {
                        errors.invalid_value(&name, domain, why);
                    }
                }
            }
        }
        _ => {}
    }
}

fn check_ports(ports: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        let name = port.field("name");
        if name.str().is_empty() {
            if ports.list().len() > 1 {
                errors.required(&name, "");
            }
        } else {
            errors.invalid_for(&name, names::dns1123_label(name.str()));
            errors.unique(&mut seen, &name);
        }
        check_fields(PORT, &port, errors);
    }
}

fn check_affinity(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let affinity = spec.field("sessionAffinity");
    Rule::RequiredOneOf(AFFINITIES).check(&affinity, errors);
    let config = spec.field("sessionAffinityConfig");
    match affinity.str() {
        "ClientIP" => {
            let client = config.field("clientIP");
            let timeout = client.field("timeoutSeconds");
            if let Some(missing) = [&config, &client, &timeout].into_iter().find(|c| !c.is_set()) {
                errors.required(missing, "when session affinity type is ClientIP");
            } else if !(1..=MAX_AFFINITY_SECONDS).contains(&timeout.int()) {
                let why = format!("must be greater than 0 and less than {MAX_AFFINITY_SECONDS}");
                errors.invalid(&timeout, why);
            }
        }
        "None" => {
            Rule::Forbidden("must not be set when session affinity is None").check(&config, errors);
        }
        _ => {}
    }
}

fn check_external_ips(addresses: &Cursor<'_, '_>, old: Option<&Value>, errors: &mut ErrorList) {
    let stored = stored_texts(old, "externalIPs");
    for address in addresses.items() {
        let before = errors.total();
        ip::check_unless_stored(&address, &stored, errors);
        // Ranges of addresses are only checked for an address that is well-formed.
        if errors.total() == before {
            ip::endpoint(&address, errors);
        }
    }
}

fn check_node_ports(ports: &Cursor<'_, '_>, view: ServiceView<'_>, errors: &mut ErrorList) {
    if view.service_type() == "ClusterIP" {
        for port in ports.items().filter(|p| p.field("nodePort").int() != 0) {
            errors.forbidden(
                &port.field("nodePort"),
                "may not be used when `type` is 'ClusterIP'",
            );
        }
    }
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        let number = port.value().map_or(0, node_port);
        if number != 0 && !seen.insert((port.field("protocol").str(), number)) {
            errors.duplicate(&port.field("nodePort"), number);
        }
    }
}

fn check_unique_ports(ports: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        let (protocol, number) = (port.field("protocol").str(), port.field("port").int());
        if !seen.insert((protocol, number)) {
            let key = Map::from_iter([("protocol", Value::from(protocol)), ("port", Value::Int(number))]);
            errors.duplicate(&port, go::structure("core/v1", "ServicePort", Some(&key.into())));
        }
    }
}

/// Source ranges are given in a field or, as a list with commas, in an annotation.
fn check_source_ranges(
    root: &Cursor<'_, '_>,
    view: ServiceView<'_>,
    old: Option<&Value>,
    errors: &mut ErrorList,
) {
    const ANNOTATION: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
    let ranges = view.texts("loadBalancerSourceRanges");
    if !ranges.is_empty() {
        let spec = root.field("spec");
        // The path is written as Kubernetes writes it.
        let path = spec.path().field("LoadBalancerSourceRanges");
        if !view.is_load_balancer() {
            errors.forbidden(&Cursor::at(None, path), ONLY_FOR_LOAD_BALANCERS);
        }
        let stored = stored_texts(old, "loadBalancerSourceRanges");
        // kube-apiserver trims ranges before it compares and checks them.
        let stored: BTreeSet<&str> = stored.into_iter().map(str::trim).collect();
        for (i, range) in ranges.into_iter().enumerate() {
            let range = Value::from(range.trim());
            ip::check_cidr_unless_stored(&Cursor::at(Some(&range), path.index(i)), &stored, errors);
        }
        return;
    }
    let metadata = root.field("metadata");
    let annotations = metadata.field("annotations");
    let Some(annotation) = annotations
        .map()
        .and_then(|a| a.get(ANNOTATION))
        .and_then(Value::as_str)
    else {
        return;
    };
    let path = annotations.path().key(ANNOTATION);
    if !view.is_load_balancer() {
        errors.forbidden(&Cursor::at(None, path), ONLY_FOR_LOAD_BALANCERS);
    }
    let is_stored = old.is_some_and(|o| o.str_at(["metadata", "annotations", ANNOTATION]) == annotation);
    if is_stored || annotation.trim().is_empty() {
        return;
    }
    for range in annotation.trim().split(',') {
        let range = Value::from(range.trim());
        ip::check_cidr_unless_stored(&Cursor::at(Some(&range), path), &BTreeSet::new(), errors);
    }
}

fn check_load_balancer(root: &Cursor<'_, '_>, view: ServiceView<'_>, errors: &mut ErrorList) {
    let spec = root.field("spec");
    let allocates = spec.field("allocateLoadBalancerNodePorts");
    if allocates.is_set() && !view.is_load_balancer() {
        errors.forbidden(&allocates, ONLY_FOR_LOAD_BALANCERS);
    }
    if !allocates.is_set() && view.is_load_balancer() {
        // The path has no `spec`, as in Kubernetes.
        errors.required(&root.field("allocateLoadBalancerNodePorts"), "");
    }
    check_load_balancer_class(&spec, view, errors);
}

fn check_load_balancer_class(spec: &Cursor<'_, '_>, view: ServiceView<'_>, errors: &mut ErrorList) {
    let class = spec.field("loadBalancerClass");
    match view.is_load_balancer() {
        true => Rule::FormIfSet(names::label_key).check(&class, errors),
        false => Rule::Forbidden(ONLY_FOR_LOAD_BALANCERS).check(&class, errors),
    }
}

fn check_external_traffic(spec: &Cursor<'_, '_>, view: ServiceView<'_>, errors: &mut ErrorList) {
    let policy = spec.field("externalTrafficPolicy");
    if view.is_externally_accessible() {
        Rule::RequiredOneOf(TRAFFIC_POLICIES).check(&policy, errors);
    } else if !policy.str().is_empty() {
        errors.invalid(&policy, "may only be set for externally-accessible services");
    }
    let port = spec.field("healthCheckNodePort");
    match (view.needs_health_check(), port.int()) {
        (true, 0) => errors.required(&port, ""),
        (true, _) => numbers::port(&port, errors),
        (false, 0) => {}
        (false, _) => errors.invalid(
            &port,
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'",
        ),
    }
}

/// Validates an update of the status.
pub(super) fn check_status(object: &Value, old: Option<&Value>, errors: &mut ErrorList) {
    const INGRESS: [&str; 3] = ["status", "loadBalancer", "ingress"];
    let root = Cursor::root(object);
    let status = root.field("status");
    let balancer = status.field("loadBalancer");
    let ingress = balancer.field("ingress");
    if !ServiceView::of_value(object).is_load_balancer() && !ingress.list().is_empty() {
        return errors.forbidden(&ingress, "may only be used when `spec.type` is 'LoadBalancer'");
    }
    let stored = old.map_or(&[][..], |o| o.list_at(INGRESS)).iter();
    let stored: BTreeSet<&str> = stored.map(|p| p.get_str("ip")).collect();
    for point in ingress.items() {
        let (address, mode) = (point.field("ip"), point.field("ipMode"));
        let has_address = !address.str().is_empty();
        if has_address {
            ip::check_unless_stored(&address, &stored, errors);
        }
        match (has_address, mode.is_set()) {
            (true, false) => errors.required(&mode, "must be specified when `ip` is set"),
            (false, true) => errors.forbidden(&mode, "may not be specified when `ip` is not set"),
            _ => Rule::OneOf(IP_MODES).check(&mode, errors),
        }
        let hostname = point.field("hostname");
        if !hostname.str().is_empty() {
            errors.invalid_for(&hostname, names::dns1123_subdomain(hostname.str()));
            if ip::parse_sloppy(hostname.str()).is_some() {
                errors.invalid(&hostname, "must be a DNS name, not an IP address");
            }
        }
    }
}
