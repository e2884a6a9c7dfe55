//! Computed cells of the groups `networking.k8s.io` and `discovery.k8s.io`.

use super::core::balancer_addresses;
use super::text::{NONE, UNSET, since, some_of};
use super::{Printer, Printing};
use scantling_value::Value;

const GROUP: &str = "networking.k8s.io";

/// The number of list members that a cell shows.
const MOST: usize = 3;

/// The printers of these groups.
pub(super) const PRINTERS: &[Printer] = &[
    ("discovery.k8s.io", "EndpointSlice", endpoint_slice),
    (GROUP, "IPAddress", ip_address),
    (GROUP, "Ingress", ingress),
    (GROUP, "IngressClass", ingress_class),
];

fn endpoint_slice(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    let port = |port: &Value| match port.get("port").and_then(Value::as_int) {
        Some(number) => number.to_string(),
        None => port.get("name").and_then(Value::as_str).unwrap_or("*").to_owned(),
    };
    let ports: Vec<String> = object.list("ports").iter().map(port).collect();
    let addresses = object.list("endpoints").iter().flat_map(|e| e.list("addresses"));
    let addresses: Vec<String> = addresses.filter_map(Value::as_str).map(str::to_owned).collect();
    let cell = |texts: &[String]| match some_of(texts, MOST, ",") {
        none if none.is_empty() => UNSET.into(),
        some => some.into(),
    };
    vec![cell(&ports), cell(&addresses)]
}

fn ip_address(object: &Value, printing: &Printing<'_>) -> Vec<Value> {
    let parent = object.at(["spec", "parentRef"]).filter(|p| !p.is_null());
    let parent = parent.map_or_else(
        || NONE.to_owned(),
        |parent| {
            let resource = match parent.get_str("group") {
                "" => parent.get_str("resource").to_lowercase(),
                group => format!("{}.{group}", parent.get_str("resource")).to_lowercase(),
            };
            let namespace = match parent.get_str("namespace") {
                "" => String::new(),
                namespace => format!("/{namespace}"),
            };
            format!("{resource}{namespace}/{}", parent.get_str("name"))
        },
    );
    let age = since(object.at(["metadata", "creationTimestamp"]), printing);
    vec![parent.into(), age.into()]
}

fn ingress(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    let ports = match object.list_at(["spec", "tls"]).is_empty() {
        true => "80",
        false => "80, 443",
    };
    let hosts = hosts(object.list_at(["spec", "rules"]));
    vec![hosts.into(), balancer_addresses(object).into(), ports.into()]
}

/// The first hosts. Rules without a host count as more, as in Kubernetes.
fn hosts(rules: &[Value]) -> String {
    let mut shown = Vec::new();
    let mut has_more = false;
    for host in rules.iter().map(|r| r.get_str("host")) {
        has_more |= shown.len() == MOST;
        if !has_more && !host.is_empty() {
            shown.push(host);
        }
    }
    match (shown.is_empty(), has_more) {
        (true, _) => "*".to_owned(),
        (false, true) => format!("{} + {} more...", shown.join(","), rules.len() - MOST),
        (false, false) => shown.join(","),
    }
}

fn ingress_class(object: &Value, _printing: &Printing<'_>) -> Vec<Value> {
    const DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";
    let mut name = object.str_at(["metadata", "name"]).to_owned();
    if object.str_at(["metadata", "annotations", DEFAULT]) == "true" {
        name.push_str(" (default)");
    }
    let parameters = object.at(["spec", "parameters"]).filter(|p| !p.is_null());
    let parameters = parameters.map_or_else(
        || NONE.to_owned(),
        |p| {
            let group = p.get("apiGroup").and_then(Value::as_str);
            let group = group.map_or_else(String::new, |group| format!(".{group}"));
            format!("{}{group}/{}", p.get_str("kind"), p.get_str("name"))
        },
    );
    vec![name.into(), parameters.into()]
}
