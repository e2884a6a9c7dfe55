//! `NamespaceLifecycle`: objects are only created in namespaces that exist and are not being deleted.

use super::{Action, Cause, Denial, Effects, Found, Lookup, Plugin, PluginVerdict, Request};
use scantling_value::{Map, Value};

/// The plugin.
pub(super) const PLUGIN: Plugin = Plugin {
    lookups: |_, request| vec![Lookup::one("", "namespaces", request.namespace)],
    mutate,
    check,
    ..Plugin::new("NamespaceLifecycle", handles)
};

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

fn handles(request: &Request<'_>) -> bool {
    match request.action {
        Action::Create if request.is_mutating() => {
            // A missing namespace would tell a user without permissions which namespaces there are.
            let is_review = request.is_resource("authorization.k8s.io", "localsubjectaccessreviews");
            !request.namespace.is_empty() && !request.is_resource("", "namespaces") && !is_review
        }
        Action::Create | Action::Update => false,
        Action::Delete => request.is_resource("", "namespaces"),
    }
}

fn mutate(object: &mut Map, request: &Request<'_>, found: &Found<'_>) -> PluginVerdict {
    let name = request.namespace;
    let Some(namespace) = found.one() else {
        return Err(Denial::not_found("namespaces", name));
    };
    if namespace.str_at(["status", "phase"]) != "Terminating" {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {name} because it is being terminated");
    let mut denial = request.forbidden(&Value::Object(object.clone()), why);
    denial.causes.push(Cause {
        reason: "NamespaceTerminating",
        message: format!("namespace {name} is being terminated"),
        field: "metadata.namespace".to_owned(),
    });
    Err(denial)
}

fn check(object: &Value, request: &Request<'_>, _: &Found<'_>, _: &mut Effects) -> PluginVerdict {
    if IMMORTAL.contains(&request.name) {
        return Err(request.forbidden(object, "this namespace may not be deleted"));
    }
    Ok(())
}
