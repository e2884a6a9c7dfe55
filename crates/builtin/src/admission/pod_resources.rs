//! The resource requests and limits of pods.

use crate::checks::amounts::{self, add, aggregate, max_each};
use crate::checks::resources::is_huge_pages;
use scantling_value::Value;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Amounts of resources by name.
pub(super) type Amounts = amounts::Amounts<String>;

/// The amounts in a list of resources.
pub(super) fn amounts(list: Option<&Value>) -> Amounts {
    amounts::amounts(list)
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
    let total = aggregate(pod.get("spec"), |container| {
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
        false => aggregate(pod.get("spec"), of_spec),
    };
    for fields in sources {
        let known = aggregate(pod.get("spec"), |container| of_status(container, fields));
        max_each(&mut total, &known);
    }
    add_overhead(pod, bound, with_pod_level(pod, bound, total))
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
