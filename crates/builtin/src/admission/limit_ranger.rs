//! `LimitRanger`: containers get default amounts of resources; pods and claims stay within bounds.

use super::pod_resources::{AmountList, Amounts, amounts, of_containers};
use super::{Action, Denial, Effects, Found, Lookup, Plugin, PluginVerdict, Request, RequestSubresource};
use crate::Subresource;
use crate::prepare::{object_in, objects_in};
use scantling_notation::quantity::Quantity;
use scantling_value::{Map, Str, TextList, Value, aggregate, deadline};
use std::cell::LazyCell;
use std::collections::BTreeSet;

/// The plugin.
pub(super) const PLUGIN: Plugin = Plugin {
    lookups,
    mutate,
    check,
    ..Plugin::new("LimitRanger", handles)
};

const ANNOTATION: &str = "kubernetes.io/limit-ranger";

fn handles(request: &Request<'_>) -> bool {
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

fn lookups(_: &Value, request: &Request<'_>) -> Vec<Lookup> {
    // kube-apiserver leaves objects alone that are marked for deletion.
    vec![Lookup::all("", "limitranges").within(request.namespace)]
}

fn mutate(object: &mut Map, request: &Request<'_>, found: &Found<'_>) -> PluginVerdict {
    if request.is_resource("", "pods") {
        // The bound is on what all limit ranges add together.
        let mut left = MAX_ADDED;
        for range in found.all() {
            set_defaults(object, range, &mut left).map_err(|TooLarge| too_large())?;
        }
    }
    Ok(())
}

fn check(object: &Value, request: &Request<'_>, found: &Found<'_>, _: &mut Effects) -> PluginVerdict {
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
        ..Denial::default()
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

/// The request and the limit of a resource, to compare with a bound of a limit range.
struct Usage<'a> {
    /// The type of the limit.
    kind: &'a str,
    resource: &'a str,
    request: Option<&'a Quantity>,
    limit: Option<&'a Quantity>,
}

type BoundCheck = fn(&Usage<'_>, &Quantity) -> Option<String>;

/// Checks the requests and limits of containers, or of a pod as a whole.
fn check_bounds(limit: &Value, given: &[[Amounts; 2]], errors: &mut Errors) {
    let checks: [(&str, BoundCheck); 3] = [
        ("min", |usage, bound| usage.check_least(bound)),
        ("max", |usage, bound| usage.check_most(bound)),
        ("maxLimitRequestRatio", |usage, bound| usage.check_ratio(bound)),
    ];
    let kind = limit.get_str("type");
    let checks = checks.map(|(field, check)| (amounts(limit.get(field)), check));
    for [requests, limits] in given {
        for (bounds, check) in &checks {
            // kube-apiserver visits resources in random order. Sorted names make the text reproducible.
            for (resource, bound) in bounds {
                deadline::tick();
                let (request, limit) = (requests.get(resource), limits.get(resource));
                let usage = Usage {
                    kind,
                    resource,
                    request,
                    limit,
                };
                if let Some(error) = check(&usage, bound) {
                    errors.push(error);
                }
            }
        }
    }
}

fn check_claim(claim: &Value, limit: &Value, errors: &mut Errors) {
    let requests = amounts(claim.at(["spec", "resources", "requests"]));
    let checks: [(&str, BoundCheck); 2] = [
        ("min", |usage, bound| usage.check_least(bound)),
        ("max", |usage, bound| usage.check_most_requested(bound)),
    ];
    for (field, check) in checks {
        for (resource, bound) in amounts(limit.get(field)) {
            let usage = Usage {
                kind: limit.get_str("type"),
                resource: &resource,
                request: requests.get(&resource),
                limit: None,
            };
            if let Some(error) = check(&usage, &bound) {
                errors.push(error);
            }
        }
    }
}

/// The greatest integer that has thousandths in 64 bits.
const MAX_MILLI: i64 = i64::MAX / 1000;

impl Usage<'_> {
    /// The request, the limit and a bound as integers of the same unit: thousandths, or whole ones if an amount is too
    /// large. Absent amounts are 0.
    fn comparable(&self, bound: &Quantity) -> [i64; 3] {
        let units = |exponent| {
            let scaled = |amount: Option<&Quantity>| amount.map_or(0, |amount| amount.scaled(exponent));
            [scaled(self.request), scaled(self.limit), bound.scaled(exponent)]
        };
        let whole = units(0);
        let is_small = whole.iter().all(|amount| *amount <= MAX_MILLI);
        if is_small { units(-3) } else { whole }
    }

    fn error(&self, bound: &str, amount: &Quantity, why: &str) -> Option<String> {
        let Usage { kind, resource, .. } = self;
        let amount = amount.canonical();
        Some(format!("{bound} {resource} usage per {kind} is {amount}{why}"))
    }

    fn check_least(&self, least: &Quantity) -> Option<String> {
        let [request, limit, bound] = self.comparable(least);
        let error = |why: &str| self.error("minimum", least, why);
        match (self.request, self.limit) {
            (None, _) => error(".  No request is specified"),
            (Some(own), _) if request < bound => error(&format!(", but request is {}", own.canonical())),
            (_, Some(own)) if limit < bound => error(&format!(", but limit is {}", own.canonical())),
            _ => None,
        }
    }

    fn check_most(&self, most: &Quantity) -> Option<String> {
        let [request, limit, bound] = self.comparable(most);
        let error = |why: &str| self.error("maximum", most, why);
        match (self.request, self.limit) {
            (_, None) => error(".  No limit is specified"),
            (_, Some(own)) if limit > bound => error(&format!(", but limit is {}", own.canonical())),
            (Some(own), _) if request > bound => error(&format!(", but request is {}", own.canonical())),
            _ => None,
        }
    }

    /// Claims have requests only.
    fn check_most_requested(&self, most: &Quantity) -> Option<String> {
        let [request, _, bound] = self.comparable(most);
        match self.request {
            None => self.error("maximum", most, ".  No request is specified"),
            Some(own) if request > bound => {
                let why = format!(", but request is {}", own.canonical());
                self.error("maximum", most, &why)
            }
            Some(_) => None,
        }
    }

    fn check_ratio(&self, most: &Quantity) -> Option<String> {
        let [request, limit, _] = self.comparable(most);
        let error = |why: &str| {
            let Usage { kind, resource, .. } = self;
            let most = most.canonical();
            Some(format!(
                "{resource} max limit to request ratio per {kind} is {most}, but {why}"
            ))
        };
        // A ratio with 0 does not exist, so that 0 is reported as if the amount were absent.
        if request == 0 {
            return error("no request is specified or request is 0");
        }
        if limit == 0 {
            return error("no limit is specified or limit is 0");
        }
        #[expect(clippy::cast_precision_loss, reason = "kube-apiserver compares floats")]
        let [request, limit, whole, milli] =
            [request, limit, most.scaled(0), most.scaled(-3)].map(|n| n as f64);
        let ratio = limit / request;
        let is_over = match most.scaled(0) <= MAX_MILLI {
            true => ratio * 1000.0 > milli,
            false => ratio > whole,
        };
        // Go's `%f` prints six decimals.
        match is_over {
            true => error(&format!("provided ratio is {ratio:.6}")),
            false => None,
        }
    }
}
