//! ResourceQuota.

use crate::checks::defaults::round_list;
use crate::checks::update::separate_status;
use crate::checks::{Report, go, resources, update};
use crate::prepare::{clear_status, object_if_set};
use crate::{Context, Cursor, KindBehavior, KindFacts, Subresource, Write};
use scantling_value::{ErrorList, Map, Value};
use std::collections::BTreeSet;

/// Limits on all objects of a namespace.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    warn,
    ..KindBehavior::new(KindFacts {
        delete_returns_object: true,
        ..KindFacts::new("", "ResourceQuota")
    })
};

/// Scopes that exclude each other.
const CONFLICTS: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];

const EXISTS_ONLY: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
    ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
    ResourceQuotaScopeCrossNamespacePodAffinity";

fn default(object: &mut Map, _context: &Context<'_>) {
    for (part, amounts) in [("spec", "hard"), ("status", "hard"), ("status", "used")] {
        if let Some(part) = object_if_set(object, part) {
            round_list(part.get_mut(amounts));
        }
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    separate_status(object, write);
    if write.old().is_none() {
        clear_status(object, ("core/v1", "ResourceQuotaSpec"));
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let status = root.field("status");
    if write.subresource == Subresource::Status {
        check_list(&status.field("hard"), errors);
        check_list(&status.field("used"), errors);
        return;
    }
    let spec = root.field("spec");
    check_list(&spec.field("hard"), errors);
    check_scopes(&spec, errors);
    check_scope_selector(&spec, errors);
    if let Some(old) = write.old() {
        let set = |list: &[Value]| {
            list.iter()
                .filter_map(|v| v.as_str().map(str::to_owned))
                .collect()
        };
        let scopes = spec.field("scopes");
        let new: BTreeSet<String> = set(scopes.list());
        let before: BTreeSet<String> = set(old.list_at(["spec", "scopes"]));
        if new != before {
            errors.invalid_value(&scopes, shown_list(&scopes), update::IMMUTABLE);
        }
    }
}

fn warn(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    if write.old().is_none() {
        warn_about_requests(object, warnings);
    }
}

fn shown_list(list: &Cursor<'_, '_>) -> Value {
    list.value().cloned().unwrap_or_default()
}

/// Checks resources with their amounts.
fn check_list(list: &Cursor<'_, '_>, errors: &mut ErrorList) {
    for (name, amount) in list.entries() {
        // Errors in the name must not show the amount.
        let at = Cursor::at(None, *amount.path());
        resources::name(name, &at, errors);
        if !name.contains('/') && !resources::is_standard_in_quotas(name) {
            errors.invalid_value(&at, name, "must be a standard resource for quota");
        }
        resources::amount(name, &amount, errors);
    }
}

fn check_scopes(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let scopes = spec.field("scopes");
    let names: Vec<&str> = scopes.list().iter().filter_map(Value::as_str).collect();
    for scope in &names {
        if !is_standard_scope(scope) {
            errors.invalid_value(&scopes, shown_list(&scopes), "unsupported scope");
        }
        for _ in resources_outside_scope(spec, scope) {
            errors.invalid_value(
                &scopes,
                shown_list(&scopes),
                "unsupported scope applied to resource",
            );
        }
    }
    report_conflicts(&names, &scopes, &scopes, errors);
}

fn report_conflicts(names: &[&str], at: &Cursor<'_, '_>, scopes: &Cursor<'_, '_>, errors: &mut ErrorList) {
    for pair in CONFLICTS {
        if pair.iter().all(|scope| names.contains(scope)) {
            errors.invalid_value(at, shown_list(scopes), "conflicting scopes");
        }
    }
}

fn check_scope_selector(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let selector = spec.field("scopeSelector");
    let expressions = selector.field("matchExpressions");
    let mut names = Vec::new();
    for requirement in expressions.list() {
        let scope = requirement.get_str("scopeName");
        // The paths have no index, as in Kubernetes.
        let at = |name| Cursor::at(requirement.get(name), expressions.path().field(name));
        if !is_standard_scope(scope) {
            errors.invalid_value(&at("scopeName"), scope, "unsupported scope");
        }
        for _ in resources_outside_scope(spec, scope) {
            let shown = go::pointer("core/v1", "ScopeSelector", selector.value());
            errors.invalid_value(&expressions, shown, "unsupported scope applied to resource");
        }
        let operator = requirement.get_str("operator");
        let is_named = matches!(
            scope,
            "BestEffort" | "NotBestEffort" | "Terminating" | "NotTerminating" | "CrossNamespacePodAffinity"
        );
        if is_named && operator != "Exists" {
            errors.invalid_value(&at("operator"), operator, EXISTS_ONLY);
        }
        let has_values = !requirement.list("values").is_empty();
        match operator {
            "In" | "NotIn" if !has_values => {
                let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.required(&at("values"), why);
            }
            "Exists" | "DoesNotExist" if has_values => {
                let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.invalid(&at("values"), why);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.invalid_value(&at("operator"), operator, "not a valid selector operator"),
        }
        names.push(scope);
    }
    report_conflicts(&names, &expressions, &spec.field("scopes"), errors);
}

fn is_standard_scope(scope: &str) -> bool {
    matches!(
        scope,
        "Terminating"
            | "NotTerminating"
            | "BestEffort"
            | "NotBestEffort"
            | "PriorityClass"
            | "CrossNamespacePodAffinity"
            | "VolumeAttributesClass"
    )
}

/// The standard resources of a quota to which a scope cannot apply.
fn resources_outside_scope<'v>(spec: &Cursor<'v, '_>, scope: &str) -> Vec<&'v str> {
    let hard = spec.field("hard");
    let names = hard
        .map()
        .into_iter()
        .flat_map(Map::keys)
        .map(scantling_value::Str::as_str);
    let is_outside = |name: &&str| resources::is_standard_in_quotas(name) && !scope_applies(scope, name);
    names.filter(is_outside).collect()
}

fn scope_applies(scope: &str, resource: &str) -> bool {
    match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => is_of_pods(resource),
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => matches!(resource, "persistentvolumeclaims" | "requests.storage"),
        _ => true,
    }
}

/// Returns whether a resource is used by pods.
fn is_of_pods(resource: &str) -> bool {
    let resource = resource
        .strip_prefix("requests.")
        .or(resource.strip_prefix("limits."))
        .unwrap_or(resource);
    matches!(resource, "pods" | "cpu" | "memory")
}

/// Requests should be at most as high as limits.
fn warn_about_requests(object: &Value, warnings: &mut Vec<String>) {
    let hard = |name: &str| object.at(["spec", "hard", name]);
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let mut name = format!("requests.{resource}");
        if hard(&name).is_none() && matches!(resource, "cpu" | "memory") {
            name = resource.to_owned();
        }
        let limit_name = format!("limits.{resource}");
        if let (Some(request), Some(limit)) = (hard(&name), hard(&limit_name)) {
            let (request, limit) = (
                resources::quantity(Some(request)),
                resources::quantity(Some(limit)),
            );
            if request > limit {
                warnings.push(format!(
                    "ResourceQuota {name} ({}) should be less than {limit_name} ({})",
                    request.canonical(),
                    limit.canonical()
                ));
            }
        }
    }
}
