//! Quantities, lists of resources, and resource requirements.

use super::numbers::{NEGATIVE, NOT_POSITIVE};
use super::{Report, names};
use crate::Cursor;
use scantling_notation::quantity::Quantity;
use scantling_value::{ErrorKind, ErrorList, FieldError, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// The prefix of huge pages: the page size follows.
const HUGE_PAGES: &str = "hugepages-";

/// The quantity of a value. Decoding has refused what is not one, so that anything else counts as 0.
pub(crate) fn quantity(value: Option<&Value>) -> Quantity {
    let parsed = match value {
        Some(Value::String(text)) => Quantity::parse(text).ok(),
        Some(Value::Int(number)) => Some(Quantity::from_int(*number)),
        _ => None,
    };
    parsed.unwrap_or_else(|| Quantity::from_int(0))
}

/// The quantity is at least 0.
pub(crate) fn non_negative(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if quantity(at.value()).sign() == Ordering::Less {
        errors.invalid(at, NEGATIVE);
    }
}

/// The quantity is greater than 0.
pub(crate) fn positive(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let quantity = quantity(at.value());
    if quantity.sign() != Ordering::Greater {
        errors.invalid_value(at, quantity.canonical(), NOT_POSITIVE);
    }
}

/// Returns whether a resource is one of huge pages.
pub(crate) fn is_huge_pages(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

/// Returns whether a resource belongs to Kubernetes itself.
pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Returns whether a resource is provided by a device plug-in or the like.
pub(crate) fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::label_key(&format!("requests.{name}")).is_empty()
}

/// Returns whether pods may request more of a resource than nodes have.
pub(crate) fn allows_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

/// Resources that count objects.
const COUNTED: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Resources of containers.
const OF_CONTAINERS: &[&str] = &["cpu", "memory", "ephemeral-storage"];

/// Further resources without a domain.
const STANDARD: &[&str] = &[
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "storage",
    "requests.storage",
];

fn is_quota_huge_pages(name: &str) -> bool {
    is_huge_pages(name) || name.starts_with("requests.hugepages-")
}

/// Returns whether a quota may limit a resource that has no domain.
pub(crate) fn is_standard_in_quotas(name: &str) -> bool {
    name != "storage" && is_standard(name)
}

fn is_standard(name: &str) -> bool {
    [OF_CONTAINERS, COUNTED, STANDARD]
        .iter()
        .any(|l| l.contains(&name))
        || is_quota_huge_pages(name)
}

/// A check of the name of a resource; the error is at the entry of the list.
pub(crate) type NameCheck = fn(&str, &Cursor<'_, '_>, &mut ErrorList);

/// Checks that a name is a standard one or has a domain.
pub(crate) fn name(name: &str, at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let wrong = names::label_key(name);
    if wrong.is_empty() && !name.contains('/') && !is_standard(name) {
        errors.invalid_value(at, name, "must be a standard resource type or fully qualified");
    }
    for why in wrong {
        errors.invalid_value(at, name, why);
    }
}

/// The name is a resource of containers.
pub(crate) fn container_name(resource: &str, at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    name(resource, at, errors);
    if !resource.contains('/') {
        if !OF_CONTAINERS.contains(&resource) && !is_huge_pages(resource) {
            errors.invalid_value(at, resource, "must be a standard resource for containers");
        }
    } else if !is_native(resource) && !is_extended(resource) {
        errors.invalid_value(at, resource, "doesn't follow extended resource name standard");
    }
}

/// Returns whether pods as a whole may request a resource.
pub(crate) fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || is_huge_pages(name)
}

/// The name is a resource that a pod as a whole may request.
pub(crate) fn pod_name(resource: &str, at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let before = errors.total();
    name(resource, at, errors);
    if errors.total() == before && !is_pod_level(resource) {
        let supported = ["cpu", HUGE_PAGES, "memory"];
        errors.push_with(|| FieldError::not_supported(at.path(), resource, supported));
    }
}

/// The amount of a resource is at least 0, and whole where the resource cannot be divided.
pub(crate) fn amount(resource: &str, at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let is_whole = COUNTED.contains(&resource) || is_extended(resource);
    let quantity = quantity(at.value());
    check_amount(&quantity, is_whole, at, errors);
}

fn check_amount(quantity: &Quantity, is_whole: bool, at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if quantity.sign() == Ordering::Less {
        errors.invalid_value(at, quantity.canonical(), NEGATIVE);
    }
    // kube-apiserver tests the amount in thousandths, rounded up.
    if is_whole && quantity.scaled(-3) % 1000 != 0 {
        errors.invalid_value(at, quantity.canonical(), "must be an integer");
    }
}

/// The amount of a huge-page resource is a multiple of its page size.
fn check_huge_pages(resource: &str, quantity: &Quantity, at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let size = resource.strip_prefix(HUGE_PAGES).map(Quantity::parse);
    let is_multiple = size.and_then(Result::ok).is_some_and(|size| {
        let is_whole = size.sign() == Ordering::Greater && size.scaled(-3) % 1000 == 0;
        is_whole && quantity.scaled(0) % size.scaled(0).max(1) == 0
    });
    if !is_multiple {
        let amount = quantity.canonical();
        let why = format!("{amount} is not positive integer multiple of {resource}");
        errors.invalid_value(at, amount, why);
    }
}

/// The parameters of checks of resource requirements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requirements<'a> {
    /// The check of resource names.
    pub(crate) names: NameCheck,
    /// The claims of the pod.
    pub(crate) claims: &'a BTreeSet<&'a str>,
    /// True if the stored object has an amount of huge pages already that is not a multiple of the page size.
    pub(crate) allows_partial_pages: bool,
}

/// Checks requests, limits and claims.
pub(crate) fn requirements(at: &Cursor<'_, '_>, context: &Requirements<'_>, errors: &mut ErrorList) {
    if at.is_empty() {
        return;
    }
    let (limits, requests) = (at.field("limits"), at.field("requests"));
    let [mut has_compute, mut has_huge_pages] = [false; 2];
    for (list, is_request) in [(&limits, false), (&requests, true)] {
        for (resource, entry) in list.entries() {
            let amount = quantity(entry.value());
            (context.names)(resource, &entry, errors);
            let is_whole = COUNTED.contains(&resource) || is_extended(resource);
            check_amount(&amount, is_whole, &entry, errors);
            if is_request {
                check_against_limit(resource, &entry, &limits, list, errors);
            }
            if is_huge_pages(resource) {
                has_huge_pages = true;
                if !context.allows_partial_pages {
                    check_huge_pages(resource, &amount, &entry, errors);
                }
            }
            has_compute |= matches!(resource, "cpu" | "memory");
        }
    }
    if has_huge_pages && !has_compute {
        errors.forbidden(at, "HugePages require cpu or memory");
    }
    check_claims(&at.field("claims"), context.claims, errors);
}

fn check_against_limit(
    resource: &str,
    request: &Cursor<'_, '_>,
    limits: &Cursor<'_, '_>,
    requests: &Cursor<'_, '_>,
    errors: &mut ErrorList,
) {
    let limit = limits.field(resource);
    if !limit.is_set() {
        if !allows_overcommit(resource) {
            errors.required(limits, "Limit must be set for non overcommitable resources");
        }
        return;
    }
    let relation = match quantity(request.value()).cmp(&quantity(limit.value())) {
        Ordering::Equal => return,
        _ if !allows_overcommit(resource) => "equal to",
        Ordering::Greater => "less than or equal to",
        Ordering::Less => return,
    };
    // Go prints a quantity as it was read, which is not always canonical.
    let why = format!("must be {relation} {resource} limit of {}", limit.str());
    errors.invalid_value(requests, request.str(), why);
}

fn check_claims(at: &Cursor<'_, '_>, of_pod: &BTreeSet<&str>, errors: &mut ErrorList) {
    // Claims by name, and requests of a claim as `name/request`.
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for claim in at.items() {
        let (name, request) = (claim.field("name").str(), claim.field("request"));
        if name.is_empty() {
            errors.required(&claim, "");
            continue;
        }
        if seen.contains(name) {
            errors.duplicate(&claim, name);
        } else {
            let key = match request.str() {
                "" => name.to_owned(),
                request => format!("{name}/{request}"),
            };
            if !request.str().is_empty() {
                errors.invalid_for(&request, names::dns1123_label(request.str()));
            }
            if seen.contains(&key) {
                errors.duplicate(&claim, key.as_str());
            } else if request.str().is_empty() {
                // A whole claim repeats each of its requests that were listed before.
                let prefix = format!("{name}/");
                let requests = seen
                    .range(prefix.clone()..)
                    .take_while(|k| k.starts_with(&prefix));
                requests.for_each(|_| errors.duplicate(&claim, name));
            }
            seen.insert(key);
        }
        if !of_pod.contains(name) {
            let known: Vec<&str> = of_pod.iter().copied().collect();
            let detail = match known.as_slice() {
                [] => "must be one of the names in pod.spec.resourceClaims which is empty".to_owned(),
                known => format!(
                    "must be one of the names in pod.spec.resourceClaims: {}",
                    known.join(", ")
                ),
            };
            errors.push_with(|| FieldError::new(ErrorKind::NotFound, claim.path(), name, detail));
        }
    }
}

/// The sum of two amounts. If they differ too much to be added, the greater one: the other is negligible.
pub(crate) fn sum(a: &Quantity, b: &Quantity) -> Quantity {
    a.add(b)
        .unwrap_or_else(|_| if a < b { b.clone() } else { a.clone() })
}
