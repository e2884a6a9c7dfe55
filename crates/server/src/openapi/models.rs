//! The schemas of built-in kinds: data, in `openapi/models.yaml`.

use super::{SHARED, object, reference};
use scantling_schema::document::Schema;
use scantling_schema::structural::{Interner, Structural};
use scantling_value::{Limits, Map, Value, yaml};
use std::sync::{Arc, LazyLock};

const MODELS: &str = include_str!("models.yaml");
const PLACE: &str = "#/components/schemas/";

/// All models by their full names, as OpenAPI v3 writes them.
static ALL: LazyLock<Map> = LazyLock::new(|| {
    let Ok(Value::Object(packages)) = yaml::decode(MODELS.as_bytes(), Limits::SAFE) else {
        return Map::new();
    };
    let mut all = Map::new();
    for (package, models) in packages {
        let Value::Object(models) = models else { continue };
        for (name, model) in models {
            all.insert(format!("{package}.{name}"), expand(model, &package));
        }
    }
    all
});

/// The package of the models of a group and version; groups that definitions make have their names reversed.
pub(crate) fn package(group: &str, version: &str) -> String {
    let group = match group {
        "" => "io.k8s.api.core".to_owned(),
        crate::builtin::AUTHENTICATION => "io.k8s.api.authentication".to_owned(),
        crate::builtin::AUTHORIZATION => "io.k8s.api.authorization".to_owned(),
        crate::definitions::GROUP => "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions".to_owned(),
        other => {
            let mut parts: Vec<&str> = other.split('.').collect();
            parts.reverse();
            parts.join(".")
        }
    };
    format!("{group}.{version}")
}

/// The model of a built-in kind.
pub(crate) fn published(group: &str, version: &str, kind: &str) -> Value {
    let name = super::schema_name(group, version, kind);
    let mut model = ALL.get(&name).cloned().unwrap_or_default();
    if let Some(members) = model.as_object_mut() {
        members.insert(
            "x-kubernetes-group-version-kind",
            super::gvk_list(group, version, kind),
        );
    }
    model
}

/// A model by its full name.
pub(super) fn model(name: &str) -> Value {
    ALL.get(name).cloned().unwrap_or_default()
}

/// Adds what schemas refer to, and what that refers to, as far as it is a model.
pub(super) fn add_references(schemas: &mut Map) {
    let mut todo: Vec<String> = Vec::new();
    for schema in schemas.values() {
        references(schema, &mut todo);
    }
    while let Some(name) = todo.pop() {
        if let Some(model) = ALL.get(&name).filter(|_| !schemas.contains_key(&name)) {
            references(model, &mut todo);
            schemas.insert(name, model.clone());
        }
    }
}

fn references(schema: &Value, out: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            for (key, value) in members.iter() {
                match value {
                    Value::String(s) if key == "$ref" => {
                        out.extend(s.strip_prefix(PLACE).map(str::to_owned));
                    }
                    other => references(other, out),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, out)),
        _ => {}
    }
}

/// The schema by which objects of a built-in kind merge. A model within itself is taken for anything.
pub(crate) fn structural(group: &str, version: &str, kind: &str) -> Arc<Structural> {
    let model = ALL.get(&super::schema_name(group, version, kind));
    let document = model.map(|m| resolve(m, &mut Vec::new())).unwrap_or_default();
    Schema::new(&document)
        .structural(&mut Interner::new())
        .unwrap_or_default()
}

/// How often a model may stand within itself. What is further down has any type; few definitions go that deep.
const LEVELS: usize = 4;

/// A schema with what it refers to in place.
fn resolve(schema: &Value, within: &mut Vec<String>) -> Value {
    let members = match schema {
        Value::Object(members) => members,
        Value::Array(items) => return Value::Array(items.iter().map(|i| resolve(i, within)).collect()),
        scalar => return scalar.clone(),
    };
    let referred = members
        .get("$ref")
        .or_else(|| members.get("allOf")?.as_array()?.first()?.get("$ref"));
    let Some(name) = referred
        .and_then(Value::as_str)
        .and_then(|r| r.strip_prefix(PLACE))
    else {
        let members = members.iter().map(|(k, v)| (k.clone(), resolve(v, within)));
        return Value::Object(members.collect());
    };
    let model = ALL.get(name).or_else(|| SHARED.schemas.get(name));
    let typed = model.is_some_and(|m| m.get("type").is_some());
    if !typed || within.iter().filter(|w| *w == name).count() == LEVELS {
        return object([("x-kubernetes-preserve-unknown-fields", true.into())]);
    }
    within.push(name.to_owned());
    let resolved = model.map(|m| resolve(m, within)).unwrap_or_default();
    within.pop();
    resolved
}

/// A schema as it is published: references by their full names, objects with their type, and what all kinds have.
fn expand(schema: Value, package: &str) -> Value {
    let Value::Object(mut members) = schema else {
        return schema;
    };
    if let Some(Value::String(name)) = members.remove("$ref") {
        let full = if name.contains('.') {
            name.to_string()
        } else {
            format!("{package}.{name}")
        };
        let reference = reference(&full);
        if members.is_empty() {
            return reference;
        }
        // Beside a reference, nothing else counts.
        members.insert("allOf", Value::Array(vec![reference]));
        return members.into();
    }
    let is_top = members.remove("top").is_some();
    if let Some(Value::Object(properties)) = members.remove("properties") {
        let expanded = properties.into_iter().map(|(k, v)| (k, expand(v, package)));
        let mut properties: Map = expanded.collect();
        if is_top {
            properties.insert("apiVersion", super::text(super::API_VERSION));
            properties.insert("kind", super::text(super::KIND));
            properties.insert("metadata", super::metadata_schema());
        }
        members.insert("properties", properties.into());
        members.insert("type", "object".into());
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = members.remove(key) {
            members.insert(key, expand(inner, package));
        }
    }
    members.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reference_is_a_model() {
        for (name, model) in ALL.iter() {
            let mut found = Vec::new();
            references(model, &mut found);
            for r in found {
                assert!(
                    ALL.contains_key(&r) || SHARED.schemas.contains_key(&r),
                    "{name} refers to {r}"
                );
            }
        }
        assert_eq!(ALL.len(), 77);
    }

    #[test]
    fn models_merge_by_their_keys() {
        for (group, version, kind) in [
            ("", "v1", "Namespace"),
            ("", "v1", "Event"),
            (crate::definitions::GROUP, "v1", "CustomResourceDefinition"),
            (crate::definitions::GROUP, "v1beta1", "CustomResourceDefinition"),
        ] {
            let schema = structural(group, version, kind);
            assert!(schema.properties.len() > 3, "{kind}: {schema:?}");
        }
    }

    #[test]
    fn documents_are_closed() {
        let mut schemas = Map::from_iter([("Event", published("", "v1", "Event"))]);
        add_references(&mut schemas);
        let names: Vec<&str> = schemas
            .keys()
            .map(|k| k.rsplit('.').next().unwrap_or(k))
            .collect();
        assert_eq!(
            names,
            [
                "Event",
                "EventSeries",
                "EventSource",
                "ObjectReference",
                "MicroTime"
            ]
        );
    }
}
