//! `StorageObjectInUseProtection`: finalizers keep volumes, claims and classes that are in use.

use super::{Action, Found, Plugin, PluginVerdict, Request};
use crate::prepare::{append, object_in};
use scantling_value::{Map, Value};

/// The plugin.
pub(super) const PLUGIN: Plugin = Plugin {
    mutate,
    ..Plugin::new("StorageObjectInUseProtection", handles)
};

/// The protected resources with their finalizers.
const FINALIZERS: [(&str, &str, &str); 3] = [
    ("", "persistentvolumes", "kubernetes.io/pv-protection"),
    ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    (
        "storage.k8s.io",
        "volumeattributesclasses",
        "kubernetes.io/vac-protection",
    ),
];

fn finalizer(request: &Request<'_>) -> Option<&'static str> {
    let row = FINALIZERS
        .iter()
        .find(|(group, resource, _)| request.is_for(group, resource));
    row.map(|(_, _, finalizer)| *finalizer)
}

fn handles(request: &Request<'_>) -> bool {
    request.is_mutating() && request.action == Action::Create && finalizer(request).is_some()
}

fn mutate(object: &mut Map, request: &Request<'_>, _: &Found<'_>) -> PluginVerdict {
    let (Some(finalizer), Some(metadata)) = (finalizer(request), object_in(object, "metadata")) else {
        return Ok(());
    };
    let finalizers = metadata
        .get("finalizers")
        .and_then(Value::as_array)
        .unwrap_or(&[]);
    if !finalizers.iter().any(|f| f.as_str() == Some(finalizer)) {
        append(metadata, "finalizers", finalizer);
    }
    Ok(())
}
