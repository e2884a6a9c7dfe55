//! What a kind adds to the document of OpenAPI v2, made from what it adds to those of v3.

use super::paths::Writer;
use super::{SHARED, models, object};
use crate::kind::Kind;
use scantling_schema::publish::Format;
use scantling_value::{Map, Value};

const V3: &str = "#/components/schemas/";
const V2: &str = "#/definitions/";

/// The version of the format.
pub(super) const SWAGGER: &str = "2.0";

/// What the document says of itself.
pub(super) fn info() -> Value {
    object([("title", "Kubernetes".into()), ("version", "v1.37.0".into())])
}

/// The paths and schemas of a kind in all its served versions.
pub(super) fn of_kind(kind: &Kind) -> (Map, Map) {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for version in kind.versions.iter().filter(|v| v.served) {
        let writer = Writer::new(kind, version);
        writer.paths(&mut paths);
        if kind.built_in {
            let mut models = Map::from_iter([(
                writer.name.as_str(),
                kind.strategy.published(kind, version, Format::V3),
            )]);
            models::add_references(&mut models);
            let others = models
                .into_iter()
                .filter(|(name, _)| !SHARED.schemas.contains_key(name));
            others.for_each(|(name, model)| drop(schemas.insert(name, model)));
        }
        if kind.question.is_none() {
            schemas.insert(writer.list_name(), writer.list_schema());
        }
        let published = kind.strategy.published(kind, version, Format::V2);
        schemas.insert(writer.name, published);
    }
    let paths = paths.into_iter().map(|(path, item)| (path, path_item(item)));
    let schemas = schemas.into_iter().map(|(name, s)| (name, schema(s)));
    (paths.collect(), schemas.collect())
}

/// The schemas that all kinds share.
pub(super) fn shared() -> Map {
    let all = SHARED.schemas.iter();
    all.map(|(name, s)| (name.clone(), schema(s.clone()))).collect()
}

fn take(value: &mut Value, path: &[&str]) -> Map {
    let found = path
        .iter()
        .try_fold(value, |v, key| v.as_object_mut()?.get_mut(key));
    found
        .map(std::mem::take)
        .and_then(Value::into_object)
        .unwrap_or_default()
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
