//! The resource requests and limits of pods.

use crate::checks::resources::{is_huge_pages, quantity, sum};
use scantling_notation::quantity::Quantity;
use scantling_value::{Map, Value};
use std::collections::BTreeMap;

/// Amounts of resources by name.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// The amounts of a list of resources.
pub(super) fn amounts(list: Option<&Value>) -> Amounts {
    let entries = list.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    entries
        .map(|(name, amount)| (name.to_string(), quantity(Some(amount))))
        .collect()
}

/// Adds amounts to others.
pub(super) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let total = to
            .get(name)
            .map_or_else(|| amount.clone(), |before| sum(before, amount));
        to.insert(name.clone(), total);
    }
}

fn raise(to: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        if to.get(name).is_none_or(|before| amount > before) {
            to.insert(name.clone(), amount.clone());
        }
    }
}

/// Selects the `requests` or `limits` of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AmountList {
    /// The requests.
    Requests,
    /// The most that may be used.
    Limits,
}

impl AmountList {
    fn field(self) -> &'static str {
        match self {
            AmountList::Requests => "requests",
            AmountList::Limits => "limits",
        }
    }
}

/// The amounts of a pod without its overhead: the sum of its containers, or what an init container needs if that is
/// more. Amounts of the pod itself take precedence.
pub(super) fn of_containers(pod: &Value, bound: AmountList) -> Amounts {
    let path = ["resources", bound.field()];
    let mut total = Amounts::new();
    for container in pod.list_at(["spec", "containers"]) {
        add(&mut total, &amounts(container.at(path)));
    }
    let mut sidecars = Amounts::new();
    let mut highest = Amounts::new();
    for container in pod.list_at(["spec", "initContainers"]) {
        let mut own = amounts(container.at(path));
        if container.get_str("restartPolicy") == "Always" {
            // A sidecar runs beside the containers and beside all init containers after it.
            add(&mut total, &own);
            add(&mut sidecars, &own);
            own.clone_from(&sidecars);
        } else {
            add(&mut own, &sidecars);
        }
        raise(&mut highest, &own);
    }
    raise(&mut total, &highest);
    let of_pod = amounts(pod.at(["spec", "resources", bound.field()]));
    let is_settable = |name: &str| matches!(name, "cpu" | "memory") || is_huge_pages(name);
    total.extend(of_pod.into_iter().filter(|(name, _)| is_settable(name)));
    total
}

/// The amounts of a pod with its overhead.
pub(super) fn with_overhead(pod: &Value, bound: AmountList) -> Amounts {
    let mut total = of_containers(pod, bound);
    let mut overhead = amounts(pod.at(["spec", "overhead"]));
    if bound == AmountList::Limits {
        // Overhead raises limits, but does not limit a resource that was unlimited.
        overhead.retain(|name, _| total.contains_key(name));
    }
    add(&mut total, &overhead);
    total
}
