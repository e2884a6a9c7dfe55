//! `DefaultIngressClass`: ingresses without a class get the default one.

use super::classes::default_class;
use super::{Action, Found, Lookup, Plugin, PluginVerdict, Request};
use crate::prepare::object_in;
use scantling_value::{Map, Value};

/// The plugin.
pub(super) const PLUGIN: Plugin = Plugin {
    lookups,
    mutate,
    ..Plugin::new("DefaultIngressClass", handles)
};

const DEFAULT_ANNOTATION: &str = "ingressclass.kubernetes.io/is-default-class";
const OLD_CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";

fn handles(request: &Request<'_>) -> bool {
    request.is_for("networking.k8s.io", "ingresses")
        && request.action == Action::Create
        && request.is_mutating()
}

fn lookups(object: &Value, _: &Request<'_>) -> Vec<Lookup> {
    let is_set = |path: &[&str]| object.at(path.iter().copied()).is_some_and(|v| !v.is_null());
    if is_set(&["spec", "ingressClassName"]) || is_set(&["metadata", "annotations", OLD_CLASS_ANNOTATION]) {
        return Vec::new();
    }
    vec![Lookup::all("networking.k8s.io", "ingressclasses")]
}

fn mutate(object: &mut Map, _: &Request<'_>, found: &Found<'_>) -> PluginVerdict {
    let default = default_class(found.all(), &[DEFAULT_ANNOTATION]);
    if let (Some(class), Some(spec)) = (default, object_in(object, "spec")) {
        spec.insert("ingressClassName", class.into());
    }
    Ok(())
}
