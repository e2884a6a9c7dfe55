//! Patches, for adapters of crates that cannot patch.

use scantling_merge::json_patch::JsonPatch;
use scantling_merge::merge_patch;
use scantling_value::{Limits, Value};

/// Applies a JSON patch or a merge patch. Returns `None` for other types and for patches that do not apply.
pub fn apply(media_type: &str, object: &Value, patch: &Value) -> Option<Value> {
    match media_type {
        "application/json-patch+json" => json(object, patch),
        "application/merge-patch+json" => merge(object, patch),
        _ => None,
    }
}

/// Applies a merge patch.
pub fn merge(object: &Value, patch: &Value) -> Option<Value> {
    merge_patch::apply(object.clone(), patch.clone()).ok()
}

/// Applies a JSON patch.
pub fn json(object: &Value, patch: &Value) -> Option<Value> {
    let patch = JsonPatch::decode(patch.to_json().as_bytes(), Limits::SERVER);
    patch.ok()?.apply(object.clone()).ok()
}
