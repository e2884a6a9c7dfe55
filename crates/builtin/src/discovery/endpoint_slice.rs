//! Endpoint slices.

use super::GROUP;
use crate::checks::update::{IMMUTABLE, same_of};
use crate::checks::{Report, Rule, ip, labels, names};
use crate::prepare::{object_in, objects_in, set_default};
use crate::{Context, Cursor, KindBehavior, KindFacts, Write};
use scantling_schema::meta;
use scantling_value::{ErrorList, FieldError, Map, Value};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// A slice of the endpoints of a service.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    warn,
    ..KindBehavior::new(KindFacts {
        has_generation: true,
        validates_name_on_update: true,
        ..KindFacts::new(GROUP, "EndpointSlice")
    })
};

const ADDRESS_TYPES: &[&str] = &["FQDN", "IPv4", "IPv6"];
const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const MAX_ENDPOINTS: usize = 1000;
const MAX_ADDRESSES: usize = 100;
const MAX_PORTS: usize = 20_000;
const MAX_TOPOLOGY_LABELS: usize = 16;
const MAX_HINTS: usize = 8;

/// The label that names the writer of a slice, and the controllers that write no addresses that deserve a warning.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const CONTROLLERS: [&str; 2] = [
    "endpointslice-controller.k8s.io",
    "endpointslicemirroring-controller.k8s.io",
];

fn default(object: &mut Map, _context: &Context<'_>) {
    for port in objects_in(object, "ports") {
        set_default(port, "name", "");
        set_default(port, "protocol", "TCP");
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    count_generation(object, write.old());
    let has_same_endpoints = write
        .old()
        .is_some_and(|old| same_lists(object.get("endpoints"), old.get("endpoints"), "Endpoint"));
    // Stored endpoints keep their topology as long as they do not change.
    if !has_same_endpoints {
        drop_topology(object, write.old());
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let address_type = root.field("addressType");
    Rule::RequiredOneOf(ADDRESS_TYPES).check(&address_type, errors);
    check_ports(&root.field("ports"), errors);
    let endpoints = root.field("endpoints");
    // Older versions accepted more, so that endpoints are only checked if they change.
    let stored = write.old().map(|old| old.get("endpoints"));
    if !stored.is_some_and(|stored| same_lists(endpoints.value(), stored, "Endpoint")) {
        check_endpoints(&endpoints, address_type.str(), errors);
    }
    if write
        .old()
        .is_some_and(|old| old.get_str("addressType") != address_type.str())
    {
        errors.invalid_value(&address_type, Value::Null, IMMUTABLE);
    }
}

fn warn(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    if write.old().is_none() && object.get_str("addressType") == "FQDN" {
        warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    if CONTROLLERS.contains(&object.str_at(["metadata", "labels", MANAGED_BY])) {
        return;
    }
    let root = Cursor::root(object);
    for endpoint in root.field("endpoints").items() {
        for address in endpoint.field("addresses").items() {
            warnings.extend(ip::warning(address.path(), address.str()));
        }
    }
}

fn same_lists(a: Option<&Value>, b: Option<&Value>, element: &str) -> bool {
    let [a, b] = [a, b].map(|v| v.and_then(Value::as_array).unwrap_or(&[]));
    let same = |(a, b): (&Value, &Value)| same_of("discovery/v1", element, Some(a), Some(b));
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// The generation counts changes of everything but metadata, and of labels.
fn count_generation(object: &mut Map, old: Option<&Value>) {
    let generation = match old {
        None => 1,
        Some(old) => {
            let labels = |metadata: Option<&Value>| {
                let labels = metadata.and_then(|m| m.get("labels")?.as_object()).cloned();
                labels.unwrap_or_default()
            };
            let is_same = object.get("addressType") == old.get("addressType")
                && same_lists(object.get("endpoints"), old.get("endpoints"), "Endpoint")
                && same_lists(object.get("ports"), old.get("ports"), "EndpointPort")
                && labels(object.get("metadata")) == labels(old.get("metadata"));
            meta::generation(old.get("metadata")) + i64::from(!is_same)
        }
    };
    if let Some(metadata) = object_in(object, "metadata") {
        metadata.insert("generation", Value::Int(generation));
    }
}

/// The topology of endpoints is not written in v1. A stored node name moves to its field.
fn drop_topology(object: &mut Map, old: Option<&Value>) {
    const HOSTNAME: [&str; 2] = ["deprecatedTopology", "kubernetes.io/hostname"];
    let stored = old.map_or(&[][..], |o| o.list("endpoints")).iter();
    let stored: BTreeSet<&str> = stored.map(|e| e.str_at(HOSTNAME)).collect();
    for endpoint in objects_in(object, "endpoints") {
        let Some(topology) = endpoint.remove(HOSTNAME[0]) else {
            continue;
        };
        let node = topology.get_str(HOSTNAME[1]);
        let is_known = !node.is_empty() && stored.contains(node) && names::dns1123_subdomain(node).is_empty();
        if is_known {
            set_default(endpoint, "nodeName", node);
        }
    }
}

fn check_ports(ports: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if !errors.max_items(ports, MAX_PORTS) {
        return;
    }
    let mut seen = BTreeSet::new();
    for port in ports.items() {
        let name = port.field("name");
        Rule::Form(names::dns1123_label).check(&name, errors);
        errors.unique(&mut seen, &name);
        let protocol = port.field("protocol");
        match protocol.is_set() {
            true => Rule::OneOf(PROTOCOLS).check(&protocol, errors),
            false => errors.required(&protocol, ""),
        }
        Rule::FormIfSet(names::label_key).check(&port.field("appProtocol"), errors);
    }
}

fn check_endpoints(endpoints: &Cursor<'_, '_>, address_type: &str, errors: &mut ErrorList) {
    if !errors.max_items(endpoints, MAX_ENDPOINTS) {
        return;
    }
    for endpoint in endpoints.items() {
        let addresses = endpoint.field("addresses");
        Rule::Required.check(&addresses, errors);
        errors.max_items(&addresses, MAX_ADDRESSES);
        for address in addresses.items() {
            check_address(&addresses, &address, address_type, errors);
        }
        Rule::FormIfSet(names::dns1123_subdomain).check(&endpoint.field("nodeName"), errors);
        let topology = endpoint.field("deprecatedTopology");
        let n_labels = topology.map().map_or(0, Map::len);
        if n_labels > MAX_TOPOLOGY_LABELS {
            errors.push(FieldError::too_many(
                topology.path(),
                n_labels,
                MAX_TOPOLOGY_LABELS,
            ));
        }
        labels::labels(&topology, errors);
        Rule::FormIfSet(names::dns1123_label).check(&endpoint.field("hostname"), errors);
        check_hints(&endpoint.field("hints"), errors);
    }
}

/// Checks an address. Errors about the IP family are at the list.
fn check_address(
    addresses: &Cursor<'_, '_>,
    address: &Cursor<'_, '_>,
    address_type: &str,
    errors: &mut ErrorList,
) {
    let before = errors.total();
    match address_type {
        "IPv4" => ip::check_unless_stored(address, &BTreeSet::new(), errors),
        "IPv6" => ip::check_canonical(address, errors),
        "FQDN" => return names::fully_qualified_domain_name(address, errors),
        _ => return,
    }
    if errors.total() > before {
        return;
    }
    let parsed = ip::parse_sloppy(address.str()).map(|a| a.to_canonical());
    let family = match parsed {
        Some(IpAddr::V4(_)) => "IPv4",
        _ => "IPv6",
    };
    if family != address_type {
        errors.invalid_value(
            addresses,
            address.str(),
            format!("must be an {address_type} address"),
        );
    }
    ip::endpoint(address, errors);
}

fn check_hints(hints: &Cursor<'_, '_>, errors: &mut ErrorList) {
    for field in ["forZones", "forNodes"] {
        let list = hints.field(field);
        if !errors.max_items(&list, MAX_HINTS) {
            return;
        }
        let mut seen = BTreeSet::new();
        for hint in list.items() {
            let name = hint.field("name");
            errors.unique(&mut seen, &name);
            let wrong = match field {
                "forZones" => names::label_value(name.str()),
                _ => names::dns1123_subdomain(name.str()),
            };
            errors.invalid_for(&name, wrong);
        }
    }
}
