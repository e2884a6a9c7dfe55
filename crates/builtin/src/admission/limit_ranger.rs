//! `LimitRanger`: containers get default amounts of resources; pods and claims stay within bounds.

use super::pod_resources::{AmountList, Amounts, amounts, of_containers};
use super::{Action, Denial, Effects, Found, Lookup, Plugin, Request, RequestSubresource};
use crate::Subresource;
use crate::prepare::{object_in, objects_in};
use scantling_notation::quantity::Quantity;
use scantling_value::{Map, Str, TextList, Value, aggregate, deadline};
use std::cell::LazyCell;
use std::collections::BTreeSet;

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
        // kube-apiserver leaves objects alone that are marked for deletion.
        vec![Lookup::all("", "limitranges").within(request.namespace)]
    }

    fn mutate(&self, object: &mut Map, request: &Request<'_>, found: &Found<'_>) -> Result<(), Box<Denial>> {
        if request.is_resource("", "pods") {
            // The bound is on what all limit ranges add together.
            let mut left = MAX_ADDED;
            for range in found.all() {
                set_defaults(object, range, &mut left).map_err(|TooLarge| too_large())?;
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
        // Computed once for all limits, and only if one of them needs it.
        let of_pod =
            LazyCell::new(|| [AmountList::Requests, AmountList::Limits].map(|b| of_containers(object, b)));
        let of_each = LazyCell::new(|| of_each_container(object));
        for range in found.all() {
            let mut errors = Errors::default();
            for limit in range.list_at(["spec", "limits"]) {
                match (request.resource, limit.get_str("type")) {
                    ("pods", "Container") => check_bounds(limit, &of_each, &mut errors),
                    ("pods", "Pod") => check_bounds(limit, std::slice::from_ref(&*of_pod), &mut errors),
                    ("persistentvolumeclaims", "PersistentVolumeClaim") => {
                        check_claim(object, limit, &mut errors);
                    }
                    _ => {}
                }
            }
            // The first limit range with errors decides; its errors are all reported.
            if !errors.seen.is_empty() {
                return Err(request.forbidden(object, aggregate(errors.list.into_vec())));
            }
        }
        Ok(())
    }
}

/// The maximum size of text that the defaults of limit ranges may add to a pod: the size limit of a request. Otherwise
/// the defaults of many resources for many containers could take gigabytes.
const MAX_ADDED: usize = 3 << 20;

/// Defaults add more than [`MAX_ADDED`].
struct TooLarge;

fn too_large() -> Box<Denial> {
    let message = format!(
        "Request entity too large: limit is {MAX_ADDED}: limit ranges add more than {MAX_ADDED} bytes to the object"
    );
    Box::new(Denial {
        code: 413,
        reason: "RequestEntityTooLarge",
        message,
        group: String::new(),
        kind: String::new(),
        name: String::new(),
        causes: Vec::new(),
    })
}

/// Different errors, up to a limit.
#[derive(Default)]
struct Errors {
    list: TextList,
    seen: BTreeSet<String>,
}

impl Errors {
    fn push(&mut self, error: String) {
        // A full list only counts errors. `seen` must not grow either.
        if self.list.is_full() {
            return self.list.push(error);
        }
        if self.seen.insert(error.clone()) {
            self.list.push(error);
        }
    }
}

/// Sets the default amounts of a limit range, and an annotation that says which.
fn set_defaults(pod: &mut Map, range: &Value, left: &mut usize) -> Result<(), TooLarge> {
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
        return Ok(());
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
                let set = set_absent(container, member, defaults, left)?;
                if !set.is_empty() {
                    notes.push(format!("{} {what} for {kind} {name}", set.join(", ")));
                }
            }
        }
    }
    if notes.is_empty() {
        return Ok(());
    }
    let annotations = object_in(pod, "metadata").and_then(|m| object_in(m, "annotations"));
    if let Some(annotations) = annotations {
        let text = format!("LimitRanger plugin set: {}", notes.join("; "));
        annotations.insert(ANNOTATION, text.into());
    }
    Ok(())
}

/// Sets the amounts that a container lacks; returns their names.
fn set_absent(
    container: &mut Map,
    member: &str,
    defaults: &Map,
    left: &mut usize,
) -> Result<Vec<String>, TooLarge> {
    if defaults.is_empty() {
        return Ok(Vec::new());
    }
    let amounts = object_in(container, "resources").and_then(|r| object_in(r, member));
    let Some(amounts) = amounts else {
        return Ok(Vec::new());
    };
    deadline::tick_for(defaults.len());
    let mut absent: Vec<(Str, Value)> = Vec::new();
    for (name, amount) in defaults.iter().filter(|(name, _)| !amounts.contains_key(name)) {
        // Quotes, a colon and a comma.
        let bytes = name.len() + amount.as_str().map_or(0, str::len) + 6;
        *left = left.checked_sub(bytes).ok_or(TooLarge)?;
        absent.push((name.clone(), amount.clone()));
    }
    let names = absent.iter().map(|(name, _)| name.to_string()).collect();
    amounts.insert_all(absent);
    Ok(names)
}

/// The requests and the limits of each container.
fn of_each_container(pod: &Value) -> Vec<[Amounts; 2]> {
    let containers = ["containers", "initContainers"].into_iter();
    let containers = containers.flat_map(|field| pod.list_at(["spec", field]));
    containers
        .map(|container| ["requests", "limits"].map(|f| amounts(container.at(["resources", f]))))
        .collect()
}

/// Checks the request and the limit of a resource against a bound: the type of the limit range, the name of the resource, the
/// bound, the request and the limit.
type BoundCheck = fn(&str, &str, &Quantity, Option<&Quantity>, Option<&Quantity>) -> Option<String>;

/// Checks the requests and limits of containers, or of a pod as a whole.
fn check_bounds(limit: &Value, given: &[[Amounts; 2]], errors: &mut Errors) {
    let checks: [(&str, BoundCheck); 3] = [
        ("min", check_least),
        ("max", check_most),
        ("maxLimitRequestRatio", check_ratio),
    ];
    let kind = limit.get_str("type");
    let checks = checks.map(|(field, check)| (amounts(limit.get(field)), check));
    for [requests, limits] in given {
        for (bounds, check) in &checks {
            // kube-apiserver visits resources in random order. Sorted names make the text reproducible.
            for (name, bound) in bounds {
                deadline::tick();
                if let Some(error) = check(kind, name, bound, requests.get(name), limits.get(name)) {
                    errors.push(error);
                }
            }
        }
    }
}

fn check_claim(claim: &Value, limit: &Value, errors: &mut Errors) {
    let kind = limit.get_str("type");
    let requests = amounts(claim.at(["spec", "resources", "requests"]));
    for (name, least) in amounts(limit.get("min")) {
        if let Some(error) = check_least(kind, &name, &least, requests.get(&name), None) {
            errors.push(error);
        }
    }
    for (name, most) in amounts(limit.get("max")) {
        let start = format!("maximum {name} usage per {kind} is {}", most.canonical());
        match requests.get(&name) {
            None => errors.push(format!("{start}.  No request is specified")),
            Some(request) => {
                let amounts = Comparable::new(Some(request), None, &most);
                if amounts.request > amounts.bound {
                    errors.push(format!("{start}, but request is {}", request.canonical()));
                }
            }
        }
    }
}

/// The greatest integer that has thousandths in 64 bits.
const MAX_MILLI: i64 = i64::MAX / 1000;

/// Amounts as integers of the same unit: thousandths, or whole ones if an amount is too large. Absent amounts are 0.
struct Comparable {
    request: i64,
    limit: i64,
    bound: i64,
}

impl Comparable {
    fn new(request: Option<&Quantity>, limit: Option<&Quantity>, bound: &Quantity) -> Comparable {
        let units = |exponent| {
            let scaled = |amount: Option<&Quantity>| amount.map_or(0, |amount| amount.scaled(exponent));
            [scaled(request), scaled(limit), bound.scaled(exponent)]
        };
        let whole = units(0);
        let is_small = whole.iter().all(|amount| *amount <= MAX_MILLI);
        let [request, limit, bound] = if is_small { units(-3) } else { whole };
        Comparable {
            request,
            limit,
            bound,
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
    let start = || format!("minimum {name} usage per {kind} is {}", least.canonical());
    let amounts = Comparable::new(request, limit, least);
    match (request, limit) {
        (None, _) => Some(format!("{}.  No request is specified", start())),
        (Some(request), _) if amounts.request < amounts.bound => {
            Some(format!("{}, but request is {}", start(), request.canonical()))
        }
        (_, Some(limit)) if amounts.limit < amounts.bound => {
            Some(format!("{}, but limit is {}", start(), limit.canonical()))
        }
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
    let start = || format!("maximum {name} usage per {kind} is {}", most.canonical());
    let amounts = Comparable::new(request, limit, most);
    match (request, limit) {
        (_, None) => Some(format!("{}.  No limit is specified", start())),
        (_, Some(limit)) if amounts.limit > amounts.bound => {
            Some(format!("{}, but limit is {}", start(), limit.canonical()))
        }
        (Some(request), _) if amounts.request > amounts.bound => {
            Some(format!("{}, but request is {}", start(), request.canonical()))
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
    let start = || {
        let most = most.canonical();
        format!("{name} max limit to request ratio per {kind} is {most}")
    };
    let amounts = Comparable::new(request, limit, most);
    // A ratio with 0 does not exist, so that 0 is reported as if the amount were absent.
    if amounts.request == 0 {
        return Some(format!(
            "{}, but no request is specified or request is 0",
            start()
        ));
    }
    if amounts.limit == 0 {
        return Some(format!("{}, but no limit is specified or limit is 0", start()));
    }
    #[expect(clippy::cast_precision_loss, reason = "kube-apiserver compares floats")]
    let [request, limit, whole, milli] =
        [amounts.request, amounts.limit, most.scaled(0), most.scaled(-3)].map(|n| n as f64);
    let ratio = limit / request;
    let is_over = match most.scaled(0) <= MAX_MILLI {
        true => ratio * 1000.0 > milli,
        false => ratio > whole,
    };
    // Go's `%f` prints six decimals.
    is_over.then(|| format!("{}, but provided ratio is {ratio:.6}", start()))
}
