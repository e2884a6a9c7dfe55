//! Endpoints.

use crate::checks::defaults::set_if_empty;
use crate::checks::update::same_of;
use crate::checks::{Report, Rule, check_fields, ip, names, numbers};
use crate::prepare::objects_in;
use crate::{Context, Cursor, KindBehavior, KindFacts, Write};
use scantling_value::{ErrorList, Map, Value};
use std::collections::BTreeSet;

/// The endpoints of a service.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    validate,
    warn,
    ..KindBehavior::new(KindFacts {
        creates_on_update: true,
        validates_name_on_update: true,
        ..KindFacts::new("", "Endpoints")
    })
};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// The label with which the controller of endpoints marks them. It writes no addresses that deserve a warning.
const MANAGED_BY: (&str, &str) = ("endpoints.kubernetes.io/managed-by", "endpoint-controller");

const ADDRESS_LISTS: [&str; 2] = ["addresses", "notReadyAddresses"];

const ADDRESS: &[(&str, Rule)] = &[
    ("hostname", Rule::Form(names::dns1123_label)),
    ("nodeName", Rule::FormIfSet(names::dns1123_subdomain)),
    ("ip", Rule::Check(ip::endpoint)),
];

const PORT: &[(&str, Rule)] = &[
    ("name", Rule::Form(names::dns1123_label)),
    ("port", Rule::Check(numbers::port)),
    ("protocol", Rule::RequiredOneOf(PROTOCOLS)),
    ("appProtocol", Rule::FormIfSet(names::label_key)),
];

fn default(object: &mut Map, _context: &Context<'_>) {
    for subset in objects_in(object, "subsets") {
        for port in objects_in(subset, "ports") {
            set_if_empty(port, "protocol", "TCP");
        }
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let subsets = |v: &Value| v.list("subsets").to_vec();
    // Older versions accepted more, so that subsets are only checked if they change.
    if let Some(old) = write.old() {
        let (new, old) = (subsets(object), subsets(old));
        let same = |(a, b): (&Value, &Value)| same_of("core/v1", "EndpointSubset", Some(a), Some(b));
        if new.len() == old.len() && new.iter().zip(&old).all(same) {
            return;
        }
    }
    let root = Cursor::root(object);
    root.field("subsets")
        .items()
        .for_each(|s| check_subset(&s, errors));
}

fn warn(object: &Value, _write: &Write<'_>, warnings: &mut Vec<String>) {
    if object.str_at(["metadata", "labels", MANAGED_BY.0]) == MANAGED_BY.1 {
        return;
    }
    let root = Cursor::root(object);
    for subset in root.field("subsets").items() {
        for list in ADDRESS_LISTS {
            for address in subset.field(list).items() {
                let address = address.field("ip");
                warnings.extend(ip::warning(address.path(), address.str()));
            }
        }
    }
}

fn check_subset(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if ADDRESS_LISTS.iter().all(|list| at.field(list).list().is_empty()) {
        errors.required(at, "must specify `addresses` or `notReadyAddresses`");
    }
    for list in ADDRESS_LISTS {
        for address in at.field(list).items() {
            ip::check_unless_stored(&address.field("ip"), &BTreeSet::new(), errors);
            check_fields(ADDRESS, &address, errors);
        }
    }
    let ports = at.field("ports");
    for port in ports.items() {
        let name = port.field("name");
        if ports.list().len() > 1 && name.str().is_empty() {
            errors.required(&name, "");
        }
        check_fields(PORT, &port, errors);
    }
}
