//! Services.

pub mod allocate;
mod cluster_ips;
mod pool;
mod prepare;
mod validate;

use crate::checks::defaults::set_if_empty;
use crate::checks::ip;
use crate::prepare::{object_in, set_default};
use crate::{Context, Cursor, KindBehavior, KindFacts, Subresource, Write};
use scantling_schema::meta::NameRule;
use scantling_value::{ErrorList, Map, Value};
use std::collections::BTreeSet;

/// A service.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare: prepare::prepare,
    validate,
    warn: warn_service,
    ..KindBehavior::new(FACTS)
};

/// The facts about services.
pub(super) const FACTS: KindFacts = KindFacts {
    // Names may start with a digit, unlike in old versions.
    names: NameRule::Label,
    selectable: &["spec.clusterIP", "spec.type"],
    creates_on_update: true,
    delete_returns_object: true,
    ..KindFacts::new("", "Service")
};

/// The `clusterIP` of a service without addresses of its own.
const HEADLESS: &str = "None";

/// For how long a client's connections go to the same pod.
const DEFAULT_AFFINITY_SECONDS: i64 = 10_800;

fn default(object: &mut Map, _context: &Context<'_>) {
    if let Some(spec) = object_in(object, "spec") {
        default_spec(spec);
    }
    if ServiceView::new(object).service_type() == "LoadBalancer" {
        default_ip_modes(object);
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    match write.subresource {
        Subresource::Status => validate::check_status(object, write.old(), errors),
        _ => validate::check(object, write.old(), errors),
    }
}

fn warn_service(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    match write.subresource {
        Subresource::Status => warn_about_status(object, warnings),
        _ => warn(object, warnings),
    }
}

/// The texts of a list in the spec of the stored service.
fn stored_texts<'v>(old: Option<&'v Value>, field: &str) -> BTreeSet<&'v str> {
    let texts = old.map(|service| ServiceView::of_value(service).texts(field));
    texts.into_iter().flatten().collect()
}

/// The fields of a service that decide about others.
#[derive(Clone, Copy)]
struct ServiceView<'a> {
    spec: Option<&'a Value>,
}

impl<'a> ServiceView<'a> {
    fn new(object: &'a Map) -> Self {
        ServiceView {
            spec: object.get("spec"),
        }
    }

    fn of_value(object: &'a Value) -> Self {
        ServiceView {
            spec: object.get("spec"),
        }
    }

    fn text(self, field: &str) -> &'a str {
        self.spec.map_or("", |s| s.get_str(field))
    }

    fn list(self, field: &str) -> &'a [Value] {
        self.spec.map_or(&[], |s| s.list(field))
    }

    fn get(self, field: &str) -> Option<&'a Value> {
        self.spec.and_then(|s| s.get(field)).filter(|v| !v.is_null())
    }

    fn texts(self, field: &str) -> Vec<&'a str> {
        self.list(field)
            .iter()
            .map(|v| v.as_str().unwrap_or(""))
            .collect()
    }

    fn service_type(self) -> &'a str {
        self.text("type")
    }

    fn is_external_name(self) -> bool {
        self.service_type() == "ExternalName"
    }

    fn is_load_balancer(self) -> bool {
        self.service_type() == "LoadBalancer"
    }

    /// Returns whether the only cluster IP is `None`.
    fn is_headless(self) -> bool {
        matches!(self.list("clusterIPs"), [Value::String(ip)] if ip == HEADLESS)
    }

    fn has_selector(self) -> bool {
        let selector = self.get("selector").and_then(Value::as_object);
        selector.is_some_and(|s| !s.is_empty())
    }

    /// Returns whether clients outside the cluster can reach the service.
    fn is_externally_accessible(self) -> bool {
        match self.service_type() {
            "LoadBalancer" | "NodePort" => true,
            "ClusterIP" => !self.list("externalIPs").is_empty(),
            _ => false,
        }
    }

    /// Returns whether load balancers check the health of nodes at a separate port.
    fn needs_health_check(self) -> bool {
        self.is_load_balancer() && self.text("externalTrafficPolicy") == "Local"
    }

    /// The node ports that are set.
    fn node_ports(self) -> Vec<i64> {
        let ports = self.list("ports").iter().map(node_port);
        ports.filter(|p| *p != 0).collect()
    }
}

/// The node port of a port; 0 if there is none.
fn node_port(port: &Value) -> i64 {
    port.get("nodePort").and_then(Value::as_int).unwrap_or(0)
}

fn default_spec(spec: &mut Map) {
    set_if_empty(spec, "sessionAffinity", "None");
    match spec.get("sessionAffinity").and_then(Value::as_str) {
        Some("None") => drop(spec.remove("sessionAffinityConfig")),
        Some("ClientIP") => default_affinity(spec),
        _ => {}
    }
    set_if_empty(spec, "type", "ClusterIP");
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        set_if_empty(port, "protocol", "TCP");
        let is_unset = match port.get("targetPort") {
            None | Some(Value::Null | Value::Int(0)) => true,
            Some(target) => target.as_str() == Some(""),
        };
        if is_unset {
            // Validation refuses the port that is missing.
            let number = port.get("port").cloned().unwrap_or(Value::Int(0));
            port.insert("targetPort", number);
        }
    }
    // `ServiceView` reads a value, so the spec is moved into one for the moment.
    let wrapped = Value::Object(std::mem::take(spec));
    let view = ServiceView { spec: Some(&wrapped) };
    let (is_accessible, is_load_balancer) = (view.is_externally_accessible(), view.is_load_balancer());
    let is_internal = matches!(view.service_type(), "NodePort" | "LoadBalancer" | "ClusterIP");
    *spec = wrapped.into_object().unwrap_or_default();
    if is_accessible {
        set_if_empty(spec, "externalTrafficPolicy", "Cluster");
    }
    if is_internal {
        set_default(spec, "internalTrafficPolicy", "Cluster");
    }
    if is_load_balancer {
        set_default(spec, "allocateLoadBalancerNodePorts", true);
    }
}

fn default_affinity(spec: &mut Map) {
    let path = ["clientIP", "timeoutSeconds"];
    let config = spec.get("sessionAffinityConfig");
    let is_set = config.and_then(|c| c.at(path)).is_some_and(|v| !v.is_null());
    if !is_set {
        let client = Map::from_iter([("timeoutSeconds", Value::Int(DEFAULT_AFFINITY_SECONDS))]);
        let config = Map::from_iter([("clientIP", Value::Object(client))]);
        spec.insert("sessionAffinityConfig", config.into());
    }
}

/// Addresses of load balancers are virtual unless they say otherwise.
fn default_ip_modes(object: &mut Map) {
    let balancer = object.get_mut("status").and_then(Value::as_object_mut);
    let balancer = balancer
        .and_then(|s| s.get_mut("loadBalancer"))
        .and_then(Value::as_object_mut);
    let ingress = balancer
        .and_then(|b| b.get_mut("ingress"))
        .and_then(Value::as_array_mut);
    for point in ingress.into_iter().flatten().filter_map(Value::as_object_mut) {
        if point
            .get("ip")
            .and_then(Value::as_str)
            .is_some_and(|ip| !ip.is_empty())
        {
            set_default(point, "ipMode", "VIP");
        }
    }
}

fn warn(object: &Value, warnings: &mut Vec<String>) {
    const OLD_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
    let (root, view) = (Cursor::root(object), ServiceView::of_value(object));
    let spec = root.field("spec");
    if object.at(["metadata", "annotations", OLD_HINTS]).is_some() {
        warnings.push(format!(
            "annotation {OLD_HINTS} is deprecated, please use service.kubernetes.io/topology-mode instead"
        ));
    }
    let warn_about_ip = |at: &Cursor<'_, '_>, warnings: &mut Vec<String>| {
        warnings.extend(ip::warning(at.path(), at.str()));
    };
    let cluster_ip = view.text("clusterIP");
    if !cluster_ip.is_empty() && cluster_ip != HEADLESS {
        let addresses = spec.field("clusterIPs");
        addresses.items().for_each(|ip| warn_about_ip(&ip, warnings));
    }
    let external = spec.field("externalIPs");
    let is_headless = view.service_type() == "ClusterIP" && cluster_ip == HEADLESS;
    if is_headless {
        let is_ignored = [
            ("loadBalancerIP", !view.text("loadBalancerIP").is_empty()),
            ("externalIPs", !external.list().is_empty()),
            ("SessionAffinity", view.text("sessionAffinity") != "None"),
        ];
        for (field, _) in is_ignored.into_iter().filter(|(_, is_ignored)| *is_ignored) {
            warnings.push(format!("spec.{field} is ignored for headless services"));
        }
    }
    external.items().for_each(|ip| warn_about_ip(&ip, warnings));
    if !external.list().is_empty() && !is_headless && !view.is_external_name() {
        let text = "spec.externalIPs is deprecated and may no longer be implemented in some clusters";
        warnings.push(text.to_owned());
    }
    if !view.text("loadBalancerIP").is_empty() {
        warn_about_ip(&spec.field("loadBalancerIP"), warnings);
    }
    for range in spec.field("loadBalancerSourceRanges").items() {
        ip::cidr_warnings(range.path(), range.str(), warnings);
    }
    if view.is_external_name() && !external.list().is_empty() {
        warnings.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !view.is_external_name() && !view.text("externalName").is_empty() {
        warnings.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if view.text("trafficDistribution") == "PreferClose" {
        warnings.push(
            "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned(),
        );
    }
}

fn warn_about_status(object: &Value, warnings: &mut Vec<String>) {
    let root = Cursor::root(object);
    let status = root.field("status");
    let balancer = status.field("loadBalancer");
    for point in balancer.field("ingress").items() {
        warnings.extend(ip::warning(point.path(), point.field("ip").str()));
    }
}
