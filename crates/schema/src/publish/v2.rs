//! Restricts schemas to what OpenAPI v2 and its clients support.

use super::children;
use scantling_value::{Map, Value};

/// Removes unsupported keywords from a schema and all schemas below it.
pub(super) fn weaken(schema: &mut Map) {
    for junctor in ["allOf", "oneOf", "anyOf", "not"] {
        schema.remove(junctor);
    }
    let is = |schema: &Map, key: &str| schema.get(key).and_then(Value::as_bool) == Some(true);
    let preserves = is(schema, "x-kubernetes-preserve-unknown-fields");
    let nullable = is(schema, "nullable");
    if nullable {
        // A type without null would be too strict.
        schema.remove("type");
        schema.remove("nullable");
    }
    if nullable || preserves {
        // Clients validate everything against what is listed here.
        schema.remove("items");
        schema.remove("properties");
    }
    let ty = schema.get("type").and_then(Value::as_str);
    if (ty == Some("array") && !schema.contains_key("items")) || (ty == Some("object") && preserves) {
        schema.remove("type");
    }
    let is_nullable = |s: &Value| s.get("nullable").and_then(Value::as_bool) == Some(true);
    let properties = schema.get("properties").and_then(Value::as_object);
    let absent: Vec<_> = properties
        .into_iter()
        .flat_map(Map::iter)
        .filter(|(_, s)| is_nullable(s))
        .map(|(name, _)| name.clone())
        .collect();
    if schema.get("additionalProperties").is_some_and(is_nullable) {
        schema.remove("required");
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !absent.iter().any(|a| Some(a.as_str()) == name.as_str()));
        if required.is_empty() {
            schema.remove("required");
        }
    }
    children(schema, weaken);
}
