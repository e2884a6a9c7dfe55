//! Access to the metadata of objects.

use scantling_value::{Map, Value};

/// A string of the metadata; empty if it is absent.
pub(crate) fn metadata_str<'v>(object: &'v Value, field: &str) -> &'v str {
    object.str_at(["metadata", field])
}

/// Removes the metadata that no request can set on a new object, so that no manager owns it.
pub(crate) fn remove_system_fields(object: &mut Value) {
    if let Some(metadata) = metadata_mut(object) {
        scantling_admit::remove_system_fields(metadata);
    }
}

/// The metadata of an object, inserted if it is absent; `None` if it is not an object.
pub(crate) fn metadata_mut(object: &mut Value) -> Option<&mut Map> {
    let map = object.as_object_mut()?;
    if map.get("metadata").is_none_or(Value::is_null) {
        map.insert("metadata", Map::new().into());
    }
    map.get_mut("metadata")?.as_object_mut()
}

/// Sets the resource version.
pub(crate) fn set_version(object: &mut Value, revision: u64) {
    if let Some(m) = metadata_mut(object) {
        m.insert("resourceVersion", revision.to_string().into());
    }
}

/// Removes the resource version.
pub(crate) fn remove_version(object: &mut Value) {
    if let Some(m) = metadata_mut(object) {
        m.remove("resourceVersion");
    }
}

/// Returns whether nothing holds an object that is being deleted: neither finalizers nor a grace period.
pub(super) fn is_released(object: &Value) -> bool {
    let Some(m) = object.get("metadata") else {
        return false;
    };
    let held = m
        .get("finalizers")
        .and_then(Value::as_array)
        .is_some_and(|f| !f.is_empty());
    !held
        && m.get("deletionTimestamp").is_some()
        && m.get("deletionGracePeriodSeconds")
            .is_none_or(|s| s.as_int() == Some(0))
}
