//! The resource requests and limits of pods.

use crate::checks::resources::{is_huge_pages, quantity, sum};
use scantling_notation::quantity::Quantity;
use scantling_value::{Map, Value};
use std::cmp::Ordering;
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
    let total = aggregate(pod, |container| {
        amounts(container.at(["resources", bound.field()]))
    });
    with_pod_level(pod, bound, total)
}

/// The amounts of a pod with its overhead.
pub(super) fn with_overhead(pod: &Value, bound: AmountList) -> Amounts {
    add_overhead(pod, bound, of_containers(pod, bound))
}

/// The amounts that a pod uses, with its overhead. While a pod is resized, the greater of the actual and the desired
/// amount of each container counts.
pub(super) fn in_use(pod: &Value, bound: AmountList) -> Amounts {
    let mut statuses: BTreeMap<&str, &Value> = BTreeMap::new();
    let lists = ["containerStatuses", "initContainerStatuses"].into_iter();
    for status in lists.flat_map(|list| pod.list_at(["status", list])) {
        statuses.entry(status.get_str("name")).or_insert(status);
    }
    let pending = pod
        .list_at(["status", "conditions"])
        .iter()
        .find(|condition| condition.get_str("type") == "PodResizePending");
    // The containers will never get what the spec says.
    let is_infeasible = pending.is_some_and(|condition| condition.get_str("reason") == "Infeasible");
    let path = ["resources", bound.field()];
    let of_spec = |container: &Value| amounts(container.at(path));
    let of_status = |container: &Value, fields: &[&[&str]]| {
        let status = statuses.get(container.get_str("name"));
        let mut known = fields
            .iter()
            .filter_map(|field| status?.at(field.iter().copied()))
            .filter(|list| !list.is_null());
        match known.next() {
            Some(list) => amounts(Some(list)),
            None if is_infeasible => Amounts::new(),
            None => of_spec(container),
        }
    };
    let sources: &[&[&[&str]]] = match bound {
        AmountList::Requests => &[&[&path, &["allocatedResources"]], &[&["allocatedResources"]]],
        AmountList::Limits => &[&[&path]],
    };
    let mut total = match is_infeasible {
        true => Amounts::new(),
        false => aggregate(pod, of_spec),
    };
    for fields in sources {
        raise(
            &mut total,
            &aggregate(pod, |container| of_status(container, fields)),
        );
    }
    add_overhead(pod, bound, with_pod_level(pod, bound, total))
}

/// The sum of the containers, or what an init container needs if that is more.
fn aggregate(pod: &Value, of_container: impl Fn(&Value) -> Amounts) -> Amounts {
    let mut total = Amounts::new();
    for container in pod.list_at(["spec", "containers"]) {
        add(&mut total, &of_container(container));
    }
    let mut sidecars = Amounts::new();
    let mut highest = Amounts::new();
    for container in pod.list_at(["spec", "initContainers"]) {
        let mut own = of_container(container);
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
    total
}

fn with_pod_level(pod: &Value, bound: AmountList, mut total: Amounts) -> Amounts {
    let of_pod = amounts(pod.at(["spec", "resources", bound.field()]));
    let is_settable = |name: &str| matches!(name, "cpu" | "memory") || is_huge_pages(name);
    total.extend(of_pod.into_iter().filter(|(name, _)| is_settable(name)));
    total
}

fn add_overhead(pod: &Value, bound: AmountList, mut total: Amounts) -> Amounts {
    let mut overhead = amounts(pod.at(["spec", "overhead"]));
    if bound == AmountList::Limits {
        // Overhead raises limits, but does not limit a resource that was unlimited.
        let is_limited = |name: &String| {
            total
                .get(name)
                .is_some_and(|limit| limit.sign() != Ordering::Equal)
        };
        overhead.retain(|name, _| is_limited(name));
    }
    add(&mut total, &overhead);
    total
}
