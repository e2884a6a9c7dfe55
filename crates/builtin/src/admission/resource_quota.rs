//! `ResourceQuota`: what a namespace uses stays within its quotas.
//!
//! A quota takes part once a controller has written its status: `status.hard` says what is limited, `status.used` what is
//! used. The plugin adds to `used`; only a controller subtracts.

use super::pod_resources::{AmountList, Amounts, amounts, in_use};
use super::{Action, Effects, Found, Lookup, Plugin, PluginVerdict, Request, RequestSubresource};
use crate::Subresource;
use crate::checks::resources::{is_huge_pages, is_native, quantity, sum};
use crate::core::persistent_volume_claim::class_name;
use crate::prepare::object_in;
use scantling_notation::quantity::Quantity;
use scantling_notation::timestamp;
use scantling_value::{Map, Value};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// The plugin.
pub(super) const PLUGIN: Plugin = Plugin {
    lookups: |_, request| vec![Lookup::all("", "resourcequotas").within(request.namespace)],
    check,
    ..Plugin::new("ResourceQuota", handles)
};

/// Resources that no quota counts: they are not stored, or never were counted.
const IGNORED: &[(&str, &str)] = &[
    ("", "bindings"),
    ("", "componentstatuses"),
    ("", "events"),
    ("events.k8s.io", "events"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
];

/// Resources whose objects are counted under their plain name, too.
const COUNTED: &[&str] = &[
    "configmaps",
    "resourcequotas",
    "replicationcontrollers",
    "secrets",
];

/// The suffix of resources of a storage class: `gold.storageclass.storage.k8s.io/requests.storage`.
const OF_CLASS: &str = ".storageclass.storage.k8s.io/";

const CLAIM_RESOURCES: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];

fn handles(request: &Request<'_>) -> bool {
    // The namespace of a request about a Namespace is that object itself, which quotas within it do not count.
    if request.is_mutating() || request.namespace.is_empty() || request.is_resource("", "namespaces") {
        return false;
    }
    if IGNORED
        .iter()
        .any(|(group, resource)| request.is_resource(group, resource))
    {
        return false;
    }
    let is_object = request.subresource == RequestSubresource::Of(Subresource::None);
    match (request.group, request.resource) {
        ("", "pods") => {
            let resizes = request.subresource == RequestSubresource::Of(Subresource::Resize);
            match request.action {
                Action::Create => is_object,
                Action::Update => is_object || resizes,
                Action::Delete => false,
            }
        }
        ("", "services") => is_object && request.action != Action::Delete,
        ("", "persistentvolumeclaims") => {
            let is_status = request.subresource == RequestSubresource::Of(Subresource::Status);
            match request.action {
                Action::Create => is_object,
                // The status says how large a claim is while it grows, and which class it has.
                Action::Update => is_object || is_status,
                Action::Delete => false,
            }
        }
        _ => is_object && request.action == Action::Create,
    }
}

fn check(object: &Value, request: &Request<'_>, found: &Found<'_>, effects: &mut Effects) -> PluginVerdict {
    let is_pod = request.is_resource("", "pods");
    let is_plain_update = request.is_for("", "pods") && request.action == Action::Update;
    // An update of a pod only counts if it moves the pod to other quotas.
    if is_plain_update
        && request
            .old
            .is_some_and(|old| is_terminating(old) == is_terminating(object))
    {
        return Ok(());
    }
    let usage = usage(object, request);
    for quota in found.all() {
        let hard = amounts(quota.at(["status", "hard"]));
        let restricted: BTreeSet<&str> = hard
            .keys()
            .map(String::as_str)
            .filter(|name| counts(name, request))
            .collect();
        if restricted.is_empty() || !matches_scopes(quota, object, request) {
            continue;
        }
        let name = quota.str_at(["metadata", "name"]);
        if is_pod && let Some(why) = missing_amounts(object, &restricted) {
            return Err(request.forbidden(object, format!("failed quota: {name}: {why}")));
        }
        let used = amounts(quota.at(["status", "used"]));
        // Until a controller has counted the existing objects, the server cannot know whether there is room.
        if !restricted.iter().all(|resource| used.contains_key(*resource)) {
            let resources: Vec<&str> = restricted.into_iter().collect();
            let resources = resources.join(",");
            let why = format!("status unknown for quota: {name}, resources: {resources}");
            return Err(request.forbidden(object, why));
        }
        let mut added = usage.clone();
        // An object that was outside the scopes of this quota before counts in full.
        if let Some(old) = request.old.filter(|old| matches_scopes(quota, old, request)) {
            subtract(&mut added, &self::usage(old, request));
        }
        // A quota whose usage does not change is not written.
        added.retain(|name, amount| hard.contains_key(name) && amount.sign() != Ordering::Equal);
        if let Some(new) =
            charge(quota, &added, &used, &hard).map_err(|why| request.forbidden(object, why))?
        {
            effects.updates.push(new);
        }
    }
    Ok(())
}

/// The quota with added usage, if there is any; an error if it is exceeded.
fn charge(quota: &Value, added: &Amounts, used: &Amounts, hard: &Amounts) -> Result<Option<Value>, String> {
    if added.is_empty() {
        return Ok(None);
    }
    let zero = Quantity::from_int(0);
    let total = |name: &str, amount: &Quantity| sum(used.get(name).unwrap_or(&zero), amount);
    let exceeded: BTreeSet<&String> = added
        .iter()
        .filter(|(name, amount)| hard.get(*name).is_some_and(|most| total(name, amount) > *most))
        .map(|(name, _)| name)
        .collect();
    if !exceeded.is_empty() {
        let show = |list: &Amounts| {
            let shown = list.iter().filter(|(name, _)| exceeded.contains(name));
            let shown: Vec<String> = shown.map(|(n, a)| format!("{n}={}", a.canonical())).collect();
            shown.join(",")
        };
        return Err(format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}",
            quota.str_at(["metadata", "name"]),
            show(added),
            show(used),
            show(hard)
        ));
    }
    let mut new = quota.clone();
    let status = new.as_object_mut().and_then(|q| object_in(q, "status"));
    if let Some(used) = status.and_then(|s| object_in(s, "used")) {
        let total = |(name, amount): (&String, &Quantity)| {
            let total = total(name, amount).canonical();
            (name.as_str().into(), total.into())
        };
        used.insert_all(added.iter().map(total).collect());
    }
    Ok(Some(new))
}

/// Subtracts amounts; what becomes negative becomes 0.
fn subtract(from: &mut Amounts, less: &Amounts) {
    // Only the controller lowers usage. An update that needs less charges nothing.
    for (name, amount) in from {
        let rest = less.get(name).and_then(|less| amount.sub(less).ok());
        *amount = match rest {
            Some(rest) if rest.sign() == Ordering::Less => Quantity::from_int(0),
            Some(rest) => rest,
            None => amount.clone(),
        };
    }
}

fn object_count(request: &Request<'_>) -> String {
    match request.group {
        "" => format!("count/{}", request.resource),
        group => format!("count/{}.{group}", request.resource),
    }
}

/// Returns whether a resource of a quota depends on objects of the request's resource.
fn counts(name: &str, request: &Request<'_>) -> bool {
    if name == object_count(request) {
        return true;
    }
    match (request.group, request.resource) {
        ("", "pods") => counts_pods(name),
        ("", "services") => matches!(name, "services" | "services.nodeports" | "services.loadbalancers"),
        ("", "persistentvolumeclaims") => {
            let of_class = name.split_once(OF_CLASS).map(|(_, resource)| resource);
            CLAIM_RESOURCES.contains(&of_class.unwrap_or(name))
        }
        ("", resource) => COUNTED.contains(&resource) && name == resource,
        _ => false,
    }
}

fn counts_pods(name: &str) -> bool {
    let plain = name
        .strip_prefix("requests.")
        .or_else(|| name.strip_prefix("limits."))
        .unwrap_or(name);
    let is_extended = name.starts_with("requests.")
        && (!is_native(name) || name.starts_with("requests.deviceclass.resource.kubernetes.io/"));
    name == "pods"
        || matches!(plain, "cpu" | "memory" | "ephemeral-storage")
        || (is_huge_pages(plain) && !name.starts_with("limits."))
        || is_extended
}

/// The resources that an object uses.
fn usage(object: &Value, request: &Request<'_>) -> Amounts {
    let mut usage = Amounts::from([(object_count(request), Quantity::from_int(1))]);
    match (request.group, request.resource) {
        // Such a pod uses no resources, but is still counted as a stored object.
        ("", "pods") if has_ended(object) || is_overdue(object, request.context.now) => {}
        ("", "pods") => {
            let [requests, limits] =
                [AmountList::Requests, AmountList::Limits].map(|bound| in_use(object, bound));
            usage.extend(compute_usage(&requests, &limits));
        }
        ("", "services") => usage.extend(service_usage(object)),
        ("", "persistentvolumeclaims") => usage.extend(claim_usage(object)),
        ("", resource) if COUNTED.contains(&resource) => {
            usage.insert(resource.to_owned(), Quantity::from_int(1));
        }
        _ => {}
    }
    usage
}

fn has_ended(pod: &Value) -> bool {
    matches!(pod.str_at(["status", "phase"]), "Failed" | "Succeeded")
}

/// Returns whether a pod should have been deleted by now. Its node is probably lost, and its user needs a new pod.
fn is_overdue(pod: &Value, now: &str) -> bool {
    let seconds = |text: &str| timestamp::parse(text).map(|moment| moment.seconds);
    let grace = pod.at(["metadata", "deletionGracePeriodSeconds"]);
    let deleted = seconds(pod.str_at(["metadata", "deletionTimestamp"]));
    match (seconds(now), deleted, grace.and_then(Value::as_int)) {
        (Some(now), Some(deleted), Some(grace)) => now > deleted.saturating_add(grace),
        _ => false,
    }
}

fn compute_usage(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::from([("pods".to_owned(), Quantity::from_int(1))]);
    let is_compute = |name: &str| matches!(name, "cpu" | "memory" | "ephemeral-storage");
    for (name, amount) in requests {
        if is_compute(name) || is_huge_pages(name) {
            usage.insert(name.clone(), amount.clone());
        }
        usage.insert(format!("requests.{name}"), amount.clone());
    }
    for (name, amount) in limits.iter().filter(|(name, _)| is_compute(name)) {
        usage.insert(format!("limits.{name}"), amount.clone());
    }
    usage
}

fn service_usage(service: &Value) -> Amounts {
    let count = |n: usize| Quantity::from_int(i64::try_from(n).unwrap_or(i64::MAX));
    let ports = service.list_at(["spec", "ports"]);
    let service_type = service.str_at(["spec", "type"]);
    let allocates = service.at(["spec", "allocateLoadBalancerNodePorts"]) != Some(&Value::Bool(false));
    let has_node_port = |p: &&Value| !matches!(p.get("nodePort"), None | Some(Value::Null | Value::Int(0)));
    // Node ports are not allocated yet, so the spec decides how many there will be.
    let node_ports = match service_type {
        "NodePort" => ports.len(),
        "LoadBalancer" if allocates => ports.len(),
        "LoadBalancer" => ports.iter().filter(has_node_port).count(),
        _ => 0,
    };
    let balancers = usize::from(service_type == "LoadBalancer");
    Amounts::from([
        ("services".to_owned(), count(1)),
        ("services.nodeports".to_owned(), count(node_ports)),
        ("services.loadbalancers".to_owned(), count(balancers)),
    ])
}

fn claim_usage(claim: &Value) -> Amounts {
    let mut usage = Amounts::from([("persistentvolumeclaims".to_owned(), Quantity::from_int(1))]);
    if let Some(requested) = claim.at(["spec", "resources", "requests", "storage"]) {
        let requested = quantity(Some(requested));
        // An expansion that is under way counts with its greater size.
        let allocated = quantity(claim.at(["status", "allocatedResources", "storage"]));
        usage.insert("requests.storage".to_owned(), requested.max(allocated));
    }
    let class = class_name(claim);
    // Such a claim counts twice: in general, and for its class.
    if !class.is_empty() {
        let of_class = usage
            .clone()
            .into_iter()
            .map(|(name, amount)| (format!("{class}{OF_CLASS}{name}"), amount));
        usage.extend(of_class.collect::<Vec<_>>());
    }
    usage
}

/// The compute resources that a quota limits and containers do not set. Resources of the pod itself suffice.
fn missing_amounts(pod: &Value, restricted: &BTreeSet<&str>) -> Option<String> {
    // kube-apiserver requires these for compatibility. Resources that quotas learnt later may be unset.
    const REQUIRED: [&str; 6] = [
        "cpu",
        "limits.cpu",
        "limits.memory",
        "memory",
        "requests.cpu",
        "requests.memory",
    ];
    let of_pod = pod.at(["spec", "resources"]);
    let is_set = |field: &str| {
        of_pod
            .and_then(|r| r.get(field))
            .and_then(Value::as_object)
            .is_some_and(|m| !m.is_empty())
    };
    if is_set("requests") || is_set("limits") {
        return None;
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let containers = ["containers", "initContainers"].into_iter();
    for container in containers.flat_map(|field| pod.list_at(["spec", field])) {
        let [requests, limits] = ["requests", "limits"].map(|f| amounts(container.at(["resources", f])));
        let set = compute_usage(&requests, &limits);
        for name in REQUIRED
            .into_iter()
            .filter(|name| restricted.contains(name) && !set.contains_key(*name))
        {
            missing.entry(name).or_default().insert(container.get_str("name"));
        }
    }
    let missing: Vec<String> = missing
        .into_iter()
        .map(|(name, containers)| {
            let containers: Vec<&str> = containers.into_iter().collect();
            format!("{name} for: {}", containers.join(","))
        })
        .collect();
    (!missing.is_empty()).then(|| format!("must specify {}", missing.join("; ")))
}

/// Returns whether an object is in all scopes of a quota.
fn matches_scopes(quota: &Value, object: &Value, request: &Request<'_>) -> bool {
    // A plain scope is short for the requirement that it exists.
    let named = quota.list_at(["spec", "scopes"]).iter().map(|scope| {
        let scope = scope.as_str().unwrap_or("");
        Map::from_iter([
            ("scopeName", Value::from(scope)),
            ("operator", Value::from("Exists")),
        ])
        .into()
    });
    let selected = quota
        .list_at(["spec", "scopeSelector", "matchExpressions"])
        .iter()
        .cloned();
    named
        .chain(selected)
        .all(|requirement: Value| match request.resource {
            "pods" => pod_is_in_scope(object, &requirement),
            "persistentvolumeclaims" => claim_is_in_scope(object, &requirement),
            // Other objects have no scopes, so that quotas with scopes do not count them.
            _ => false,
        })
}

fn pod_is_in_scope(pod: &Value, requirement: &Value) -> bool {
    match requirement.get_str("scopeName") {
        "Terminating" => is_terminating(pod),
        "NotTerminating" => !is_terminating(pod),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => {
            let class = pod.str_at(["spec", "priorityClassName"]);
            let classes: BTreeSet<&str> = [class].into_iter().filter(|c| !c.is_empty()).collect();
            selects(requirement, &classes)
        }
        "CrossNamespacePodAffinity" => crosses_namespaces(pod),
        _ => false,
    }
}

fn claim_is_in_scope(claim: &Value, requirement: &Value) -> bool {
    if requirement.get_str("scopeName") != "VolumeAttributesClass" {
        return false;
    }
    // A claim that changes its class counts for both classes.
    let names = [
        claim.str_at(["spec", "volumeAttributesClassName"]),
        claim.str_at(["status", "currentVolumeAttributesClassName"]),
        claim.str_at(["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"]),
    ];
    let names: BTreeSet<&str> = names.into_iter().filter(|n| !n.is_empty()).collect();
    selects(requirement, &names)
}

/// Returns whether a requirement selects one of the names that an object has.
fn selects(requirement: &Value, names: &BTreeSet<&str>) -> bool {
    let is_listed = |name: &&str| {
        requirement
            .list("values")
            .iter()
            .any(|v| v.as_str() == Some(name))
    };
    match requirement.get_str("operator") {
        "Exists" => !names.is_empty(),
        "DoesNotExist" => names.is_empty(),
        "In" => names.iter().any(is_listed),
        "NotIn" => names.is_empty() || names.iter().any(|name| !is_listed(name)),
        _ => false,
    }
}

fn is_terminating(pod: &Value) -> bool {
    let deadline = pod.at(["spec", "activeDeadlineSeconds"]).and_then(Value::as_int);
    deadline.is_some_and(|seconds| seconds >= 0)
}

/// Returns whether a pod neither requests nor limits CPU or memory.
fn is_best_effort(pod: &Value) -> bool {
    let has_amounts = |holder: &Value| {
        let lists = ["requests", "limits"].map(|field| amounts(holder.at(["resources", field])));
        lists.iter().any(|list| {
            let is_compute = |(name, amount): (&String, &Quantity)| {
                matches!(name.as_str(), "cpu" | "memory") && amount.sign() == Ordering::Greater
            };
            list.iter().any(is_compute)
        })
    };
    let mut containers = ["containers", "initContainers"]
        .into_iter()
        .flat_map(|f| pod.list_at(["spec", f]));
    !containers.any(has_amounts) && !pod.get("spec").is_some_and(has_amounts)
}

fn crosses_namespaces(pod: &Value) -> bool {
    let crosses = |term: &Value| {
        let has_selector = term.get("namespaceSelector").is_some_and(|s| !s.is_null());
        !term.list("namespaces").is_empty() || has_selector
    };
    ["podAffinity", "podAntiAffinity"].into_iter().any(|kind| {
        let path = |when| ["spec", "affinity", kind, when];
        let required = pod.list_at(path("requiredDuringSchedulingIgnoredDuringExecution"));
        let preferred = pod.list_at(path("preferredDuringSchedulingIgnoredDuringExecution"));
        required.iter().any(crosses)
            || preferred
                .iter()
                .filter_map(|p| p.get("podAffinityTerm"))
                .any(crosses)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Phase;
    use super::*;
    use crate::User;
    use scantling_value::{Limits, json};

    /// The CPU that pods use for quotas.
    #[test]
    fn pods_use_what_they_have_or_shall_get() {
        let cases = [
            // A pod that is resized uses the greatest of spec, allocation and actual resources.
            (r#""status":{}"#, "requests.cpu=2,limits.cpu=3"),
            (
                r#""status":{"containerStatuses":[{"name":"c","allocatedResources":{"cpu":"4"}}]}"#,
                "requests.cpu=4,limits.cpu=3",
            ),
            (
                r#""status":{"containerStatuses":[{"name":"c","allocatedResources":{"cpu":"1"},
                    "resources":{"requests":{"cpu":"5"},"limits":{"cpu":"6"}}}]}"#,
                "requests.cpu=5,limits.cpu=6",
            ),
            // The spec of an infeasible resize does not count.
            (
                r#""status":{"conditions":[{"type":"PodResizePending","reason":"Infeasible"}],
                    "containerStatuses":[{"name":"c","allocatedResources":{"cpu":"1"}}]}"#,
                "requests.cpu=1",
            ),
            // A pod that has ended, and one that should have been deleted by now.
            (r#""status":{"phase":"Failed"}"#, ""),
            (
                r#""metadata":{"deletionTimestamp":"2026-11-17T23:59:00Z","deletionGracePeriodSeconds":30}"#,
                "",
            ),
            (
                r#""metadata":{"deletionTimestamp":"2026-11-17T23:59:45Z","deletionGracePeriodSeconds":30}"#,
                "requests.cpu=2,limits.cpu=3",
            ),
        ];
        let request = Request {
            phase: Phase::Validating,
            action: Action::Update,
            group: "",
            resource: "pods",
            subresource: RequestSubresource::Of(Subresource::Resize),
            namespace: "n",
            name: "x",
            old: None,
            context: crate::Context {
                enabled: |_| true,
                now: "2026-11-18T00:00:00Z",
                user: User::default(),
            },
        };
        for (members, expected) in cases {
            let text = format!(
                r#"{{"spec":{{"containers":[{{"name":"c","resources":{{"requests":{{"cpu":"2"}},"limits":{{"cpu":"3"}}}}}}]}},
                    {members}}}"#
            );
            let pod = json::decode(text.as_bytes(), Limits::SERVER).unwrap();
            let usage = usage(&pod, &request);
            let shown = ["requests.cpu", "limits.cpu"].into_iter();
            let shown = shown.filter_map(|name| Some(format!("{name}={}", usage.get(name)?.canonical())));
            assert_eq!(shown.collect::<Vec<_>>().join(","), expected, "{members}");
        }
    }
}
