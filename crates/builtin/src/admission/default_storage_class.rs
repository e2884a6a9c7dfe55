//! `DefaultStorageClass`: claims without a class get the default one.

use super::classes::{STORAGE_CLASS_DEFAULTS, default_class};
use super::{Action, Found, Lookup, Plugin, PluginVerdict, Request};
use crate::core::persistent_volume_claim::BETA_CLASS_ANNOTATION;
use crate::prepare::object_in;
use scantling_value::{Map, Value};

/// The plugin.
pub(super) const PLUGIN: Plugin = Plugin {
    lookups,
    mutate,
    ..Plugin::new("DefaultStorageClass", handles)
};

fn has_class(claim: &Value) -> bool {
    // An empty class is set, too: it asks for a volume without a class and must not get the default.
    let is_set = |path: &[&str]| claim.at(path.iter().copied()).is_some_and(|v| !v.is_null());
    is_set(&["metadata", "annotations", BETA_CLASS_ANNOTATION]) || is_set(&["spec", "storageClassName"])
}

fn handles(request: &Request<'_>) -> bool {
    request.is_for("", "persistentvolumeclaims") && request.action == Action::Create && request.is_mutating()
}

fn lookups(object: &Value, _: &Request<'_>) -> Vec<Lookup> {
    if has_class(object) {
        return Vec::new();
    }
    vec![Lookup::all("storage.k8s.io", "storageclasses")]
}

fn mutate(object: &mut Map, _: &Request<'_>, found: &Found<'_>) -> PluginVerdict {
    let default = default_class(found.all(), &STORAGE_CLASS_DEFAULTS);
    if let (Some(class), Some(spec)) = (default, object_in(object, "spec")) {
        spec.insert("storageClassName", class.into());
    }
    Ok(())
}
