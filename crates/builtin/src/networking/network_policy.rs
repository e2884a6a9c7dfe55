//! Network policies.

use super::GROUP;
use crate::checks::ip::{self, Cidr};
use crate::checks::labels::{self, Values};
use crate::checks::{Report, Rule, names, numbers};
use crate::prepare::{count_change, object_in, objects_in, set_default, set_generation};
use crate::{Context, Cursor, KindBehavior, KindFacts, Operation, Write};
use scantling_value::{ErrorList, Map, Value};
use std::collections::BTreeSet;

/// A network policy.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    warn,
    ..KindBehavior::new(KindFacts {
        has_generation: true,
        ..KindFacts::new(GROUP, "NetworkPolicy")
    })
};

/// The rules of a direction, with the list of their peers.
const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

const PROTOCOLS: &[&str] = &["TCP", "UDP", "SCTP"];
const POLICY_TYPES: &[&str] = &["Ingress", "Egress"];

fn default(object: &mut Map, _context: &Context<'_>) {
    let Some(spec) = object_in(object, "spec") else {
        return;
    };
    for (direction, _) in DIRECTIONS {
        for rule in objects_in(spec, direction) {
            for port in objects_in(rule, "ports") {
                set_default(port, "protocol", "TCP");
            }
        }
    }
    let has = |field: &str| {
        spec.get(field)
            .and_then(Value::as_array)
            .is_some_and(|l| !l.is_empty())
    };
    if !has("policyTypes") {
        let types = if has("egress") { POLICY_TYPES } else { &["Ingress"] };
        spec.insert("policyTypes", types.to_vec().into());
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    match write.operation {
        Operation::Create => set_generation(object, 1),
        // An empty list counts as a change of an absent one.
        Operation::Update(old) => {
            let is_changed = object.get("spec") != old.get("spec");
            count_change(object, old, is_changed);
        }
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let spec = root.field("spec");
    let stored = StoredViolations::new(write.old());
    labels::selector_with(&spec.field("podSelector"), stored.values, errors);
    for (direction, peers) in DIRECTIONS {
        for rule in spec.field(direction).items() {
            rule.field("ports").items().for_each(|p| check_port(&p, errors));
            rule.field(peers)
                .items()
                .for_each(|p| check_peer(&p, &stored, errors));
        }
    }
    let types = spec.field("policyTypes");
    if types.list().len() > POLICY_TYPES.len() {
        return errors.invalid(&types, "may not specify more than two policyTypes");
    }
    types
        .items()
        .for_each(|t| Rule::OneOf(POLICY_TYPES).check(&t, errors));
}

fn warn(object: &Value, _write: &Write<'_>, warnings: &mut Vec<String>) {
    let root = Cursor::root(object);
    let spec = root.field("spec");
    for (direction, peers) in DIRECTIONS {
        for rule in spec.field(direction).items() {
            for peer in rule.field(peers).items() {
                let block = peer.field("ipBlock");
                let cidr = block.field("cidr");
                ip::cidr_warnings(cidr.path(), cidr.str(), warnings);
                for except in block.field("except").items() {
                    ip::cidr_warnings(except.path(), except.str(), warnings);
                }
            }
        }
    }
}

/// Violations of the stored policy that an update may keep.
struct StoredViolations<'v> {
    cidrs: BTreeSet<&'v str>,
    values: Values,
}

impl<'v> StoredViolations<'v> {
    fn new(old: Option<&'v Value>) -> Self {
        let Some(old) = old else {
            return StoredViolations {
                cidrs: BTreeSet::new(),
                values: Values::Checked,
            };
        };
        let mut cidrs = BTreeSet::new();
        for (direction, peers) in DIRECTIONS {
            let rules = old.list_at(["spec", direction]).iter();
            let blocks = rules.flat_map(|r| r.list(peers)).filter_map(|p| p.get("ipBlock"));
            for block in blocks {
                cidrs.insert(block.get_str("cidr"));
                cidrs.extend(block.list("except").iter().filter_map(Value::as_str));
            }
        }
        let mut errors = ErrorList::new();
        let root = Cursor::root(old);
        labels::selector(&root.field("spec").field("podSelector"), &mut errors);
        let values = if errors.is_empty() {
            Values::Checked
        } else {
            Values::Unchecked
        };
        StoredViolations { cidrs, values }
    }
}

fn check_port(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    Rule::OneOf(PROTOCOLS).check(&at.field("protocol"), errors);
    let (port, end) = (at.field("port"), at.field("endPort"));
    match port.value() {
        None => {
            if end.is_set() {
                errors.invalid(&end, "may not be specified when `port` is not specified");
            }
        }
        Some(Value::String(name)) => {
            if end.is_set() {
                errors.invalid(&end, "may not be specified when `port` is non-numeric");
            }
            errors.invalid_for(&port, names::port_name(name));
        }
        Some(_) => {
            numbers::port(&port, errors);
            if end.is_set() {
                if end.int() < port.int() {
                    errors.invalid(&end, "must be greater than or equal to `port`");
                }
                numbers::port(&end, errors);
            }
        }
    }
}

fn check_peer(at: &Cursor<'_, '_>, stored: &StoredViolations<'_>, errors: &mut ErrorList) {
    let selectors = ["podSelector", "namespaceSelector"];
    let mut n_selectors = 0;
    for name in selectors {
        let selector = at.field(name);
        if selector.is_set() {
            n_selectors += 1;
            labels::selector_with(&selector, stored.values, errors);
        }
    }
    let block = at.field("ipBlock");
    if block.is_set() {
        check_block(&block, stored, errors);
    }
    match (n_selectors, block.is_set()) {
        (0, false) => errors.required(at, "must specify a peer"),
        (1.., true) => errors.forbidden(at, "may not specify both ipBlock and another peer"),
        _ => {}
    }
}

fn check_block(at: &Cursor<'_, '_>, stored: &StoredViolations<'_>, errors: &mut ErrorList) {
    let cidr = at.field("cidr");
    if cidr.str().is_empty() {
        return errors.required(&cidr, "");
    }
    ip::check_cidr_unless_stored(&cidr, &stored.cidrs, errors);
    let Some(network) = Cidr::parse_sloppy(cidr.str()) else {
        return;
    };
    for except in at.field("except").items() {
        ip::check_cidr_unless_stored(&except, &stored.cidrs, errors);
        let is_subset = |e: Cidr| contains(network, e) && network.prefix < e.prefix;
        if Cidr::parse_sloppy(except.str()).is_some_and(|e| !is_subset(e)) {
            errors.invalid(&except, "must be a strict subset of `cidr`");
        }
    }
}

/// Returns whether a network has the address of another one. IPv4-mapped IPv6 addresses count as IPv4
/// addresses.
fn contains(network: Cidr, other: Cidr) -> bool {
    const MAPPED: u8 = 96;
    let address = network.address.to_canonical();
    // The first 96 bits of a mapped address are fixed.
    let prefix = match address.is_ipv4() && !network.address.is_ipv4() {
        true => network.prefix.saturating_sub(MAPPED),
        false => network.prefix,
    };
    Cidr { address, prefix }.contains(other.network().address.to_canonical())
}
