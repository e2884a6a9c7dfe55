//! The last-applied annotation of client-side apply, for migrating objects to server-side apply.

use scantling_value::{Limits, Map, Value, json};

/// The manager name that client-side and server-side apply share.
pub(super) const MANAGER: &str = "kubectl";
const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

fn annotation(object: &Value) -> Option<&str> {
    let text = object.at(["metadata", "annotations", ANNOTATION])?.as_str()?;
    Some(text).filter(|text| !text.is_empty())
}

fn annotations_mut(object: &mut Value) -> Option<&mut Map> {
    let metadata = object.as_object_mut()?.get_mut("metadata")?;
    metadata.as_object_mut()?.get_mut("annotations")?.as_object_mut()
}

/// Returns the configuration that client-side apply applied last.
pub(super) fn read(object: &Value) -> Option<Value> {
    json::decode(annotation(object)?.as_bytes(), Limits::SAFE).ok()
}

/// Updates the annotation, if the object has it.
pub(super) fn refresh(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = annotations_mut(&mut config) {
        annotations.remove(ANNOTATION);
    }
    let text = format!("{}\n", config.to_json());
    if let Some(annotations) = annotations_mut(object) {
        annotations.insert(ANNOTATION, text.into());
    }
}
