//! Admin access to devices: only claims in labelled namespaces may request it.

use super::{
    Action, Cause, Denial, Effects, Found, Lookup, Plugin, PluginVerdict, Request, RequestSubresource,
};
use crate::Subresource;
use scantling_value::{Value, go};

/// The check.
pub(super) const PLUGIN: Plugin = Plugin {
    lookups,
    check,
    ..Plugin::new("AdminAccess", handles)
};

const GROUP: &str = "resource.k8s.io";
const LABEL: &str = "resource.kubernetes.io/admin-access";
const CLAIMS: &str = "resourceclaims";
const TEMPLATES: &str = "resourceclaimtemplates";

fn handles(request: &Request<'_>) -> bool {
    let is_status = request.is_resource(GROUP, CLAIMS)
        && request.subresource == RequestSubresource::Of(Subresource::Status);
    let is_whole = request.is_for(GROUP, CLAIMS) || request.is_for(GROUP, TEMPLATES);
    // The spec is immutable.
    request.is_validating() && (is_status || (is_whole && request.action == Action::Create))
}

fn lookups(object: &Value, request: &Request<'_>) -> Vec<Lookup> {
    match field(object, request) {
        Some(_) => vec![Lookup::one("", "namespaces", request.namespace)],
        None => Vec::new(),
    }
}

fn check(object: &Value, request: &Request<'_>, found: &Found<'_>, _: &mut Effects) -> PluginVerdict {
    let Some(field) = field(object, request) else {
        return Ok(());
    };
    let namespace = found.one();
    if namespace.is_some_and(|ns| ns.str_at(["metadata", "labels", LABEL]) == "true") {
        return Ok(());
    }
    let kind = match request.resource {
        CLAIMS => "ResourceClaim",
        _ => "ResourceClaimTemplate",
    };
    let name = object.str_at(["metadata", "name"]);
    let why = format!(
        "Forbidden: admin access to devices requires the `{LABEL}: true` label on the containing namespace"
    );
    Err(Box::new(Denial {
        code: 422,
        reason: "Invalid",
        message: format!("{kind}.{GROUP} {} is invalid: {field}: {why}", go::quote(name)),
        group: GROUP.to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        causes: vec![Cause {
            reason: "FieldValueForbidden",
            message: why,
            field,
        }],
    }))
}

/// The field that asks for admin access, as errors show it.
fn field(object: &Value, request: &Request<'_>) -> Option<String> {
    let has_access = |value: &Value| value.get("adminAccess") == Some(&Value::Bool(true));
    if request.subresource == RequestSubresource::Of(Subresource::Status) {
        let place = ["status", "allocation", "devices", "results"];
        let first = |object: &Value| object.list_at(place).iter().position(has_access);
        // `status.allocation` is immutable, so access that was granted before is not judged again.
        return match request.old.and_then(first) {
            Some(_) => None,
            None => first(object).map(|i| format!("status.allocation.devices.results[{i}].adminAccess")),
        };
    }
    let place: &[&str] = match request.resource {
        TEMPLATES => &["spec", "spec", "devices", "requests"],
        _ => &["spec", "devices", "requests"],
    };
    // Subrequests (`firstAvailable`) cannot ask for admin access.
    let asks = |request: &Value| request.get("exactly").is_some_and(has_access);
    let index = object.list_at(place.iter().copied()).iter().position(asks)?;
    // UPSTREAM: the path is that of a claim, even in a template.
    Some(format!("spec.devices.requests[{index}].adminAccess"))
}
