//! `PersistentVolumeClaimResize`: a bound claim grows only if its storage class allows it.

use super::{Action, Effects, Found, Lookup, Plugin, PluginVerdict, Request};
use crate::core::persistent_volume_claim::{class_name, requested_storage};
use scantling_value::Value;

/// The plugin.
pub(super) const PLUGIN: Plugin = Plugin {
    lookups,
    check,
    ..Plugin::new("PersistentVolumeClaimResize", handles)
};

fn handles(request: &Request<'_>) -> bool {
    request.is_for("", "persistentvolumeclaims")
        && request.action == Action::Update
        && request.is_validating()
}

fn lookups(object: &Value, _: &Request<'_>) -> Vec<Lookup> {
    vec![Lookup::one(
        "storage.k8s.io",
        "storageclasses",
        class_name(object),
    )]
}

fn check(object: &Value, request: &Request<'_>, found: &Found<'_>, _: &mut Effects) -> PluginVerdict {
    let Some(old) = request.old else {
        return Ok(());
    };
    // Validation decides whether a claim may shrink.
    if requested_storage(object) <= requested_storage(old) {
        return Ok(());
    }
    if old.str_at(["status", "phase"]) != "Bound" {
        return Err(request.forbidden(object, "Only bound persistent volume claims can be expanded"));
    }
    let keeps_class = !class_name(object).is_empty() && class_name(object) == class_name(old);
    let allows = |class: &Value| class.get("allowVolumeExpansion").and_then(Value::as_bool) == Some(true);
    if keeps_class && found.one().is_some_and(allows) {
        return Ok(());
    }
    let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
               support resize";
    Err(request.forbidden(object, why))
}
