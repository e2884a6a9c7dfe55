//! `LimitRanger`: containers get default amounts of resources; pods and claims stay within bounds.

use super::pod_resources::{Amounts, Bound, amounts, of_containers};
use super::{Action, Denial, Effects, Found, Lookup, Plugin, Request, RequestSubresource};
use crate::Subresource;
use crate::prepare::{object_in, objects_in};
use scantling_notation::quantity::Quantity;
use scantling_value::{Map, Value, aggregate};

/// The plugin.
#[derive(Debug)]
pub(super) struct LimitRanger;

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

impl Plugin for LimitRanger {
    fn name(&self) -> &'static str {
        "LimitRanger"
    }

    fn handles(&self, request: &Request<'_>) -> bool {
        let resizes = request.subresource == RequestSubresource::Of(Subresource::Resize);
        let is_handled = match request.action {
            Action::Create => request.is_for("", "pods") || request.is_for("", "persistentvolumeclaims"),
            Action::Update => {
                request.is_for("", "persistentvolumeclaims") || (request.is_resource("", "pods") && resizes)
            }
            Action::Delete => false,
        };
        let is_deleted = |old: &Value| old.at(["metadata", "deletionTimestamp"]).is_some();
        is_handled && !request.old.is_some_and(is_deleted)
    }

    fn lookups(&self, _object: &Value, request: &Request<'_>) -> Vec<Lookup> {
        vec![Lookup::all("", "LimitRange").within(request.namespace)]
    }

    fn mutate(&self, object: &mut Map, request: &Request<'_>, found: &Found<'_>) -> Result<(), Box<Denial>> {
        if request.is_resource("", "pods") {
            for range in found.all() {
                set_defaults(object, range);
            }
        }
        Ok(())
    }

    fn check(
        &self,
        object: &Value,
        request: &Request<'_>,
        found: &Found<'_>,
        _effects: &mut Effects,
    ) -> Result<(), Box<Denial>> {
        for range in found.all() {
            let mut errors = Vec::new();
            for limit in range.list_at(["spec", "limits"]) {
                match (request.resource, limit.get_str("type")) {
                    ("pods", "Container") => check_containers(object, limit, &mut errors),
                    ("pods", "Pod") => {
                        let requests = of_containers(object, Bound::Requests);
                        let limits = of_containers(object, Bound::Limits);
                        check_bounds(limit, &requests, &limits, &mut errors);
                    }
                    ("persistentvolumeclaims", "PersistentVolumeClaim") => {
                        check_claim(object, limit, &mut errors);
                    }
                    _ => {}
                }
            }
            if !errors.is_empty() {
                return Err(request.forbidden(object, aggregate(errors)));
            }
        }
        Ok(())
    }
}

/// Sets the default amounts of a limit range, and an annotation that says which.
fn set_defaults(pod: &mut Map, range: &Value) {
    let (mut requests, mut limits) = (Map::new(), Map::new());
    let container_limits = range
        .list_at(["spec", "limits"])
        .iter()
        .filter(|l| l.get_str("type") == "Container");
    for limit in container_limits {
        for (field, defaults) in [("defaultRequest", &mut requests), ("default", &mut limits)] {
            let amounts = limit.get(field).and_then(Value::as_object).cloned();
            defaults.insert_all(amounts.into_iter().flatten().collect());
        }
    }
    let mut notes = Vec::new();
    let Some(spec) = object_in(pod, "spec") else {
        return;
    };
    for (field, kind) in [("containers", "container"), ("initContainers", "init container")] {
        for container in objects_in(spec, field) {
            let name = container
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned();
            for (member, defaults, what) in [("requests", &requests, "request"), ("limits", &limits, "limit")]
            {
                let set = set_absent(container, member, defaults);
                if !set.is_empty() {
                    notes.push(format!("{} {what} for {kind} {name}", set.join(", ")));
                }
            }
        }
    }
    if notes.is_empty() {
        return;
    }
    let annotations = object_in(pod, "metadata").and_then(|m| object_in(m, "annotations"));
    if let Some(annotations) = annotations {
        let text = format!("LimitRanger plugin set: {}", notes.join("; "));
        annotations.insert(ANNOTATION, text.into());
    }
}

/// Sets the amounts that a container lacks; returns their names.
fn set_absent(container: &mut Map, member: &str, defaults: &Map) -> Vec<String> {
    if defaults.is_empty() {
        return Vec::new();
    }
    let amounts = object_in(container, "resources").and_then(|r| object_in(r, member));
    let Some(amounts) = amounts else {
        return Vec::new();
    };
    let absent: Vec<_> = defaults
        .iter()
        .filter(|(name, _)| !amounts.contains_key(name))
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    let names = absent.iter().map(|(name, _)| name.to_string()).collect();
    amounts.insert_all(absent);
    names
}

fn check_containers(pod: &Value, limit: &Value, errors: &mut Vec<String>) {
    let containers = ["containers", "initContainers"].into_iter();
    for container in containers.flat_map(|field| pod.list_at(["spec", field])) {
        let [requests, limits] = ["requests", "limits"].map(|f| amounts(container.at(["resources", f])));
        check_bounds(limit, &requests, &limits, errors);
    }
}

/// Checks the request and the limit of a resource against a bound: the type of the limit range, the name of the resource, the
/// bound, the request and the limit.
type BoundCheck = fn(&str, &str, &Quantity, Option<&Quantity>, Option<&Quantity>) -> Option<String>;

fn check_bounds(limit: &Value, requests: &Amounts, limits: &Amounts, errors: &mut Vec<String>) {
    let checks: [(&str, BoundCheck); 3] = [
        ("min", check_least),
        ("max", check_most),
        ("maxLimitRequestRatio", check_ratio),
    ];
    for (field, check) in checks {
        for (name, bound) in amounts(limit.get(field)) {
            let error = check(
                limit.get_str("type"),
                &name,
                &bound,
                requests.get(&name),
                limits.get(&name),
            );
            errors.extend(error);
        }
    }
}

fn check_claim(claim: &Value, limit: &Value, errors: &mut Vec<String>) {
    let kind = limit.get_str("type");
    let requests = amounts(claim.at(["spec", "resources", "requests"]));
    for (name, least) in amounts(limit.get("min")) {
        errors.extend(check_least(kind, &name, &least, requests.get(&name), None));
    }
    for (name, most) in amounts(limit.get("max")) {
        let start = format!("maximum {name} usage per {kind} is {}", most.canonical());
        match requests.get(&name) {
            None => errors.push(format!("{start}.  No request is specified")),
            Some(request) if *request > most => {
                errors.push(format!("{start}, but request is {}", request.canonical()));
            }
            Some(_) => {}
        }
    }
}

fn check_least(
    kind: &str,
    name: &str,
    least: &Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) -> Option<String> {
    let start = format!("minimum {name} usage per {kind} is {}", least.canonical());
    match (request, limit) {
        (None, _) => Some(format!("{start}.  No request is specified")),
        (Some(request), _) if request < least => {
            Some(format!("{start}, but request is {}", request.canonical()))
        }
        (_, Some(limit)) if limit < least => Some(format!("{start}, but limit is {}", limit.canonical())),
        _ => None,
    }
}

fn check_most(
    kind: &str,
    name: &str,
    most: &Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) -> Option<String> {
    let start = format!("maximum {name} usage per {kind} is {}", most.canonical());
    match (request, limit) {
        (_, None) => Some(format!("{start}.  No limit is specified")),
        (_, Some(limit)) if limit > most => Some(format!("{start}, but limit is {}", limit.canonical())),
        (Some(request), _) if request > most => {
            Some(format!("{start}, but request is {}", request.canonical()))
        }
        _ => None,
    }
}

fn check_ratio(
    kind: &str,
    name: &str,
    most: &Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) -> Option<String> {
    let start = format!(
        "{name} max limit to request ratio per {kind} is {}",
        most.canonical()
    );
    let given = |amount: Option<&Quantity>| amount.map(Quantity::as_approximate_float).filter(|a| *a != 0.0);
    let Some(request) = given(request) else {
        return Some(format!("{start}, but no request is specified or request is 0"));
    };
    let Some(limit) = given(limit) else {
        return Some(format!("{start}, but no limit is specified or limit is 0"));
    };
    let ratio = limit / request;
    (ratio > most.as_approximate_float()).then(|| format!("{start}, but provided ratio is {ratio:.6}"))
}
