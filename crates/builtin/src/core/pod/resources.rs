//! Resources of pods: those of the pod as a whole, sums over containers, and the class of service.

use super::containers::{PodFacts, requirements};
use crate::checks::Report;
use crate::checks::amounts::{self, Amounts, amounts};
use crate::checks::resources::{allows_overcommit, is_huge_pages, is_pod_level, pod_name, quantity};
use crate::{Context, Cursor};
use scantling_notation::quantity::Quantity;
use scantling_value::{ErrorList, FieldError, Map, Str, Value};
use std::cmp::Ordering;

/// What the containers of a pod need together: `list` is `requests` or `limits`.
fn needs<'v>(spec: &'v Value, list: &str) -> Amounts<&'v str> {
    amounts::aggregate(Some(spec), |container| amounts(container.at(["resources", list])))
}

/// Checks the resources of a pod as a whole.
pub(super) fn check_pod_level(spec: &Cursor<'_, '_>, pod: &PodFacts<'_>, errors: &mut ErrorList) {
    let at = spec.field("resources");
    if !at.is_set() || !pod.rules.enabled("PodLevelResources") {
        return;
    }
    if pod.os == Some("windows") {
        return errors.forbidden(&at, "may not be set for a windows pod");
    }
    let claims = at.field("claims");
    if claims.is_set() {
        errors.forbidden(&claims, "claims may not be set for Resources at pod-level");
    }
    requirements(&at, pod_name, pod.claims, pod.rules, errors);
    if let Some(spec) = spec.value() {
        check_against_containers(&at, spec, errors);
    }
}

/// A pod requests at least what its containers request, and no container may use more than its pod.
fn check_against_containers(at: &Cursor<'_, '_>, spec: &Value, errors: &mut ErrorList) {
    for (list, is_compared) in [
        ("requests", (|_| true) as fn(&str) -> bool),
        ("limits", is_huge_pages),
    ] {
        let of_pod = at.field(list);
        for (name, sum) in needs(spec, list) {
            let own = of_pod.field(name);
            let own = own.with_path(of_pod.path().key(name));
            if own.is_set() && is_compared(name) && sum > quantity(own.value()) {
                let sum = sum.canonical();
                let why = format!("must be greater than or equal to aggregate container {list} of {sum}");
                errors.invalid(&own, why);
            }
        }
    }
    let (path, limits) = (at.path().field("containers"), at.field("limits"));
    for (i, container) in spec.list("containers").iter().enumerate() {
        for (name, limit) in amounts::<&str>(container.at(["resources", "limits"])) {
            let own = limits.field(name);
            if own.is_set() && limit > quantity(own.value()) {
                let (container, own) = (path.index(i), quantity(own.value()).canonical());
                let why = format!("must be less than or equal to pod limits of {own}");
                let at = container.key(name);
                errors.push_with(|| FieldError::invalid(&at.field("limits"), limit.canonical(), why));
            }
        }
    }
}

/// Fills in the resources of a pod as a whole from those of its containers.
pub(super) fn default_pod_level(spec: &mut Map, context: &Context<'_>) {
    let count = |list: &str| {
        let list = spec.get("resources").and_then(|r| r.get(list)?.as_object());
        list.map_or(0, Map::len)
    };
    if count("requests") + count("limits") == 0
        || !(context.enabled)("PodLevelResources")
        || !(context.enabled)("PodLevelResourcesFixDefaulting")
    {
        return;
    }
    // The spec is moved, so that sums can borrow from it while the resources change.
    let whole = Value::Object(std::mem::take(spec));
    let mut resources = whole
        .get("resources")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    limit_huge_pages(&mut resources, &whole);
    request_sums(&mut resources, &whole);
    limit_requests(&mut resources, &whole);
    // `whole` was made from an object, so that nothing gets lost here.
    *spec = whole.into_object().unwrap_or_default();
    spec.insert("resources", resources.into());
}

/// Adds amounts to a list that lacks them.
fn insert(resources: &mut Map, list: &str, added: Vec<(Str, Value)>) {
    if added.is_empty() {
        return;
    }
    let list = resources.get_or_insert_with(list, || Map::new().into());
    if let Some(list) = list.as_object_mut() {
        list.insert_all(added);
    }
}

fn has(resources: &Map, list: &str, name: &str) -> bool {
    resources.get(list).and_then(|l| l.get(name)).is_some()
}

fn entry(name: &str, amount: &Quantity) -> (Str, Value) {
    (name.into(), amount.canonical().into())
}

fn limit_huge_pages(resources: &mut Map, spec: &Value) {
    // Huge pages cannot be overcommitted, so that their limit is exactly what the containers need.
    let sums = needs(spec, "limits");
    let absent = |name: &str| {
        is_huge_pages(name) && !has(resources, "requests", name) && !has(resources, "limits", name)
    };
    let added = sums.iter().filter(|(name, _)| absent(name));
    let added = added.map(|(name, amount)| entry(name, amount)).collect();
    insert(resources, "limits", added);
}

fn request_sums(resources: &mut Map, spec: &Value) {
    let sums = needs(spec, "requests");
    let absent =
        |name: &str| is_pod_level(name) && allows_overcommit(name) && !has(resources, "requests", name);
    let added = sums.iter().filter(|(name, _)| absent(name));
    let added = added.map(|(name, amount)| entry(name, amount)).collect();
    insert(resources, "requests", added);
    // A resource with a limit but no request is requested up to its limit.
    let limits = resources
        .get("limits")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::iter);
    let absent = |name: &str| is_pod_level(name) && !has(resources, "requests", name);
    let added = limits.filter(|(name, _)| absent(name));
    let added = added
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    insert(resources, "requests", added);
}

/// Limits the pod as a whole where all of its containers have limits.
fn limit_requests(resources: &mut Map, spec: &Value) {
    let sums = needs(spec, "limits");
    let all_limit =
        |name: &str| super::containers_of(spec).all(|c| c.at(["resources", "limits", name]).is_some());
    let requests = resources
        .get("requests")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::iter);
    let added = requests.filter_map(|(name, request)| {
        let sum = sums.get(name.as_str())?;
        let is_absent = is_pod_level(name) && !has(resources, "limits", name) && all_limit(name);
        let limit = match quantity(Some(request)).cmp(sum) {
            Ordering::Greater => request.clone(),
            _ => sum.canonical().into(),
        };
        is_absent.then(|| (name.clone(), limit))
    });
    let added = added.collect();
    insert(resources, "limits", added);
}

/// The class of service of a pod, which follows from its resources.
pub(super) fn service_class(spec: &Value, context: &Context<'_>) -> &'static str {
    const BEST_EFFORT: &str = "BestEffort";
    const BURSTABLE: &str = "Burstable";
    if let Some(resources) = spec.get("resources").filter(|r| !r.is_null())
        && (context.enabled)("PodLevelResources")
        && (!(context.enabled)("PodLevelResourcesFixKubeletQOSClass") || has_pod_level(resources))
    {
        return class_of(resources);
    }
    let containers = spec.list("initContainers").iter().chain(spec.list("containers"));
    let mut class = None;
    for container in containers {
        let own = container.get("resources").map_or(BEST_EFFORT, class_of);
        if own == BURSTABLE || class.is_some_and(|class| class != own) {
            return BURSTABLE;
        }
        class = Some(own);
    }
    return class.unwrap_or(BEST_EFFORT);

    fn has_pod_level(resources: &Value) -> bool {
        ["requests", "limits"].iter().any(|list| {
            let list = resources.get(list).and_then(Value::as_object);
            list.is_some_and(|list| list.keys().any(|name| is_pod_level(name)))
        })
    }

    /// The class of service of a pod that had only these resources.
    fn class_of(resources: &Value) -> &'static str {
        let is_empty = |list: &str| {
            resources
                .get(list)
                .and_then(Value::as_object)
                .is_none_or(Map::is_empty)
        };
        if is_empty("requests") && is_empty("limits") {
            return BEST_EFFORT;
        }
        let mut class = None;
        for name in ["cpu", "memory"] {
            let amount = |list: &str| quantity(resources.at([list, name]));
            let (request, limit) = (amount("requests"), amount("limits"));
            let own = match request == limit {
                false => return BURSTABLE,
                true if request.sign() == Ordering::Equal => BEST_EFFORT,
                true => "Guaranteed",
            };
            if class.is_some_and(|class| class != own) {
                return BURSTABLE;
            }
            class = Some(own);
        }
        class.unwrap_or(BEST_EFFORT)
    }
}
