//! The CRDs, objects and paths that attacks use.

use crate::http::HttpRequest;
use serde_json::{Value, json};

/// The group of all CRDs here.
pub(crate) const GROUP: &str = "attack.example.com";
/// The path of definitions.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The path of objects of the standard CRD.
pub(crate) const THINGS: &str = "/apis/attack.example.com/v1/namespaces/default/things";
/// The path of the standard object.
pub(crate) const THING: &str = "/apis/attack.example.com/v1/namespaces/default/things/a";
pub(crate) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) const JSON: &str = "application/json";
pub(crate) const YAML: &str = "application/yaml";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// The schema of an object with one property, `spec`.
pub(crate) fn with_spec(spec: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": spec}})
}

/// A schema that allows anything below `spec`.
pub(crate) fn open() -> Value {
    with_spec(&json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}))
}

/// One version of a definition.
pub(crate) fn version(name: &str, storage: bool, schema: &Value) -> Value {
    json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}})
}

/// A CRD with the given versions.
pub(crate) fn definition(plural: &str, versions: &[Value]) -> Value {
    let kind = format!(
        "{}{}",
        plural.get(..1).unwrap_or_default().to_uppercase(),
        plural.get(1..).unwrap_or_default()
    );
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "listKind": format!("{kind}List")},
            "versions": versions,
        },
    })
}

/// The standard CRD, `things`, with one version and the given schema.
pub(crate) fn things(schema: &Value) -> Value {
    definition("things", &[version("v1", true, schema)])
}

/// Creates a CRD.
pub(crate) fn define(definition: &Value) -> HttpRequest {
    post(DEFINITIONS, definition)
}

/// An object of the standard CRD.
pub(crate) fn thing(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Things", "metadata": {"name": name}, "spec": spec})
}

/// Creates the standard object; `spec` is JSON.
pub(crate) fn create_text(query: &str, spec: &str) -> HttpRequest {
    HttpRequest::new("POST", format!("{THINGS}{query}"), JSON, thing_text(spec))
}

/// The standard object as text; `spec` is JSON.
pub(crate) fn thing_text(spec: &str) -> String {
    format!(r#"{{"apiVersion":"{GROUP}/v1","kind":"Things","metadata":{{"name":"a"}},"spec":{spec}}}"#)
}

pub(crate) fn post(path: &str, body: &Value) -> HttpRequest {
    HttpRequest::new("POST", path, JSON, body.to_string())
}

pub(crate) fn put(path: &str, body: &Value) -> HttpRequest {
    HttpRequest::new("PUT", path, JSON, body.to_string())
}

pub(crate) fn patch(path: &str, media_type: &str, body: &Value) -> HttpRequest {
    HttpRequest::new("PATCH", path, media_type, body.to_string())
}

/// The same item `n` times, separated by commas.
pub(crate) fn repeated(item: &str, n: usize) -> String {
    vec![item; n].join(",")
}

/// Items built from their numbers, separated by commas.
pub(crate) fn numbered(n: usize, item: impl Fn(usize) -> String) -> String {
    (0..n).map(item).collect::<Vec<_>>().join(",")
}

/// A list with the same value `n` times.
pub(crate) fn list(value: &Value, n: usize) -> Value {
    Value::Array(vec![value.clone(); n])
}

/// An object with members built from their numbers.
pub(crate) fn members(n: usize, member: impl Fn(usize) -> (String, Value)) -> Value {
    Value::Object((0..n).map(member).collect())
}
