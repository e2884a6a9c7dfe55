//! OpenAPI v2: one document for everything, made from the documents of v3.

use super::{SHARED, document, kinds_of, object};
use crate::discovery::served_versions;
use crate::kind::Kinds;
use scantling_schema::publish::Format;
use scantling_value::{Map, Value};

const V3: &str = "#/components/schemas/";
const V2: &str = "#/definitions/";

/// The document of all groups and versions.
pub(super) fn whole(kinds: &Kinds) -> Value {
    let mut paths = Map::new();
    let mut definitions = Map::new();
    for group in kinds.groups() {
        for version in served_versions(kinds, group) {
            let mut part = document(kinds, group, &version);
            for (kind, v) in kinds_of(kinds, group, &version) {
                let name = super::schema_name(group, &version, &kind.kind);
                definitions.insert(name, schema(kind.strategy.published(kind, v, Format::V2)));
            }
            for (name, s) in take(&mut part, &["components", "schemas"]) {
                if !definitions.contains_key(&name) && !SHARED.schemas.contains_key(&name) {
                    definitions.insert(name, schema(s));
                }
            }
            for (path, item) in take(&mut part, &["paths"]) {
                paths.insert(path, path_item(item));
            }
        }
    }
    for (name, s) in SHARED.schemas.iter() {
        definitions.insert(name.clone(), schema(s.clone()));
    }
    object([
        ("swagger", "2.0".into()),
        (
            "info",
            object([("title", "Kubernetes".into()), ("version", "v1.37.0".into())]),
        ),
        ("paths", paths.into()),
        ("definitions", definitions.into()),
    ])
}

fn take(value: &mut Value, path: &[&str]) -> Map {
    let found = path
        .iter()
        .try_fold(value, |v, key| v.as_object_mut()?.get_mut(key));
    match found.map(std::mem::take) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

/// A schema: references point elsewhere and stand for themselves, and junctors are gone.
fn schema(value: Value) -> Value {
    let Value::Object(members) = value else {
        return value;
    };
    let mut out = Map::new();
    for (key, value) in members {
        let value = match (key.as_str(), value) {
            ("anyOf" | "oneOf" | "not" | "nullable", _) => continue,
            ("allOf", Value::Array(all)) => match all.as_slice() {
                [one] if one.get("$ref").is_some() => {
                    let reference = one.get("$ref").cloned().unwrap_or_default();
                    out.insert("$ref", place(reference));
                    continue;
                }
                _ => Value::Array(all.into_iter().map(schema).collect()),
            },
            ("$ref", reference) => place(reference),
            ("properties", Value::Object(properties)) => {
                let properties = properties.into_iter().map(|(name, value)| (name, schema(value)));
                Value::Object(properties.collect())
            }
            ("items" | "additionalProperties", value) => schema(value),
            (_, value) => value,
        };
        out.insert(key, value);
    }
    out.into()
}

fn place(reference: Value) -> Value {
    match reference {
        Value::String(s) => s.replace(V3, V2).into(),
        other => other,
    }
}

fn path_item(value: Value) -> Value {
    let Value::Object(members) = value else {
        return value;
    };
    let members = members.into_iter().map(|(key, value)| {
        let value = if key == "parameters" {
            parameters(value)
        } else {
            operation(value)
        };
        (key, value)
    });
    Value::Object(members.collect())
}

fn parameters(value: Value) -> Value {
    let Value::Array(items) = value else { return value };
    let flat = items.into_iter().map(|mut parameter| {
        let keywords = take(&mut parameter, &["schema"]);
        if let Some(members) = parameter.as_object_mut() {
            members.remove("schema");
            for (k, v) in keywords {
                members.insert(k, v);
            }
        }
        parameter
    });
    Value::Array(flat.collect())
}

/// The schema of the first media type, and the media types.
fn content(value: &mut Value) -> (Value, Value) {
    let kinds = take(value, &["content"]);
    let names = Value::Array(kinds.keys().map(|k| k.as_str().into()).collect());
    let first = kinds
        .into_iter()
        .next()
        .and_then(|(_, mut v)| match take(&mut v, &["schema"]) {
            s if s.is_empty() => None,
            s => Some(schema(s.into())),
        });
    (first.unwrap_or_else(|| Map::new().into()), names)
}

fn operation(mut value: Value) -> Value {
    let Some(members) = value.as_object_mut() else {
        return value;
    };
    let mut all = match members.remove("parameters").map(parameters) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    if let Some(mut body) = members.remove("requestBody") {
        let required = body.get("required").cloned();
        let (schema, consumes) = content(&mut body);
        let mut parameter = Map::from_iter([
            ("name", Value::from("body")),
            ("in", "body".into()),
            ("schema", schema),
        ]);
        if let Some(required) = required {
            parameter.insert("required", required);
        }
        all.insert(0, parameter.into());
        members.insert("consumes", consumes);
    }
    if !all.is_empty() {
        members.insert("parameters", Value::Array(all));
    }
    members.insert(
        "produces",
        Value::from(vec!["application/json", "application/yaml"]),
    );
    members.insert("schemes", Value::from(vec!["https"]));
    if let Some(Value::Object(responses)) = members.get_mut("responses") {
        for (_, response) in responses.iter_mut() {
            let (schema, kinds) = content(response);
            if let Some(m) = response.as_object_mut() {
                m.remove("content");
                if kinds.as_array().is_some_and(|k| !k.is_empty()) {
                    m.insert("schema", schema);
                }
            }
        }
    }
    value
}
