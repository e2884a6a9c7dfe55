//! What a kind adds to the document of OpenAPI v2, made from what it adds to those of v3.

use super::paths::Writer;
use super::{META, SHARED, models, object};
use crate::kinds::kind::{Kind, Version};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE;
use scantling_schema::publish::OpenApiVersion;
use scantling_value::{Map, Str, Value};

const V3: &str = "#/components/schemas/";
const V2: &str = "#/definitions/";

/// The version of the format.
pub(super) const SWAGGER: &str = "2.0";

/// What the document says of itself.
pub(super) fn info() -> Value {
    object([("title", "Kubernetes".into()), ("version", "v1.37.0".into())])
}

/// The paths and schemas of a kind in all its served versions.
pub(super) fn of_kind(kind: &Kind) -> Result<(Map, Map), String> {
    let mut paths = Vec::new();
    let mut schemas: Vec<(Str, Value)> = Vec::new();
    let versions: Vec<&Version> = kind.versions.iter().filter(|v| v.served).collect();
    let published = kind.strategy.published(kind, &versions, OpenApiVersion::V2)?;
    let mut full = match kind.built_in {
        true => kind
            .strategy
            .published(kind, &versions, OpenApiVersion::V3)?
            .into_iter(),
        false => Vec::new().into_iter(),
    };
    for (version, published) in versions.into_iter().zip(published) {
        let writer = Writer::new(kind, version);
        paths.extend(writer.paths());
        if let Some(full) = full.next() {
            let mut models = Map::from_iter([(writer.name.as_str(), full)]);
            models::add_references(&mut models);
            let others = models
                .into_iter()
                .filter(|(name, _)| !SHARED.schemas.contains_key(name));
            schemas.extend(others);
        }
        if kind.review.is_none() {
            schemas.push((writer.list_name().into(), writer.list_schema()));
        }
        schemas.push((writer.name.into(), published));
    }
    // Of schemas of one name the last one counts.
    let (paths, schemas) = (Map::from_unsorted(paths), Map::from_unsorted(schemas));
    let paths = paths
        .into_iter()
        .map(|(path, item)| (path, path_item(kind, item)));
    let schemas = schemas.into_iter().map(|(name, s)| (name, schema(s)));
    Ok((paths.collect(), schemas.collect()))
}

/// The schemas that all kinds share.
pub(super) fn shared() -> Map {
    let all = SHARED.schemas.iter();
    all.map(|(name, s)| (name.clone(), schema(s.clone()))).collect()
}

/// The parameters that all kinds share, by the names under which operations refer to them.
pub(super) fn shared_parameters() -> Map {
    let of = |model: &str| object([("$ref", format!("{V2}{META}.{model}").into())]);
    let bodies = [
        body(of("DeleteOptions"), None),
        body(of("Patch"), Some(true.into())),
    ];
    let others = SHARED.parameters.values().cloned().map(flat);
    let all = others.chain(bodies);
    all.filter_map(|p| Some((shared_name(&p)?, p))).collect()
}

/// How clients show who they are: that they have to, and the ways there are.
pub(super) fn security() -> (Value, Value) {
    let token = object([
        ("description", "Bearer Token authentication".into()),
        ("type", "apiKey".into()),
        ("name", "authorization".into()),
        ("in", "header".into()),
    ]);
    let asked = object([("BearerToken", Value::Array(Vec::new()))]);
    (Value::Array(vec![asked]), object([("BearerToken", token)]))
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

/// A schema: references point elsewhere and stand for themselves, and junctors and defaults are gone.
fn schema(value: Value) -> Value {
    let Value::Object(members) = value else {
        return value;
    };
    let mut out = Map::new();
    for (key, value) in members {
        let value = match (key.as_str(), value) {
            ("anyOf" | "oneOf" | "not" | "nullable" | "default", _) => continue,
            ("allOf", Value::Array(all)) => {
                if let [one] = all.as_slice()
                    && let Some(reference) = one.get("$ref")
                {
                    out.insert("$ref", place(reference.clone()));
                    continue;
                }
                Value::Array(all.into_iter().map(schema).collect())
            }
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

fn path_item(kind: &Kind, value: Value) -> Value {
    let Value::Object(members) = value else {
        return value;
    };
    let members = members.into_iter().map(|(key, value)| {
        let value = match (key.as_str(), value) {
            ("parameters", Value::Array(all)) => {
                Value::Array(all.into_iter().map(|p| referred(flat(p))).collect())
            }
            (method, value) => operation(kind, method, value),
        };
        (key, value)
    });
    Value::Object(members.collect())
}

/// A parameter with the keywords of its schema beside its own.
fn flat(mut parameter: Value) -> Value {
    let keywords = take(&mut parameter, &["schema"]);
    if let Some(members) = parameter.as_object_mut() {
        members.remove("schema");
        for (k, v) in keywords {
            members.insert(k, v);
        }
    }
    parameter
}

/// The parameter that a body is.
fn body(schema: Value, required: Option<Value>) -> Value {
    let members = [
        ("name", Value::from("body")),
        ("in", "body".into()),
        ("schema", schema),
    ];
    let required = required.map(|required| ("required", required));
    Value::Object(members.into_iter().chain(required).collect())
}

/// A reference to a parameter that is shared, or the parameter.
fn referred(parameter: Value) -> Value {
    match shared_name(&parameter) {
        Some(name) => object([("$ref", format!("#/parameters/{name}").into())]),
        None => parameter,
    }
}

/// The name under which a parameter is shared: its own and the beginning of a digest of its text. Some are not: those
/// that are a kind's own, and those by which old clients tell what a server can do.
fn shared_name(parameter: &Value) -> Option<String> {
    const ORDER: [&str; 7] = [
        "uniqueItems",
        "type",
        "description",
        "name",
        "in",
        "required",
        "schema",
    ];
    let text = |key| parameter.get_str(key);
    let schema = parameter.at(["schema", "$ref"]).and_then(Value::as_str);
    let is_own = |schema: &str| !schema.starts_with("#/definitions/io.k8s.apimachinery");
    if matches!(text("name"), "name" | "fieldValidation" | "dryRun") || schema.is_some_and(is_own) {
        return None;
    }
    let member = |key: &str| Some(format!("\"{key}\":{}", parameter.get(key)?.to_json()));
    let members: Vec<String> = ORDER.into_iter().filter_map(member).collect();
    let digest = fnv1(format!("{{{}}}", members.join(",")).as_bytes()).to_be_bytes();
    let beginning = BASE64_URL_SAFE.encode(digest.get(..6)?);
    Some(format!("{}-{beginning}", text("name")))
}

/// The FNV-1 digest of 64 bits (not FNV-1a, which crates have).
fn fnv1(text: &[u8]) -> u64 {
    let start: u64 = 0xcbf2_9ce4_8422_2325;
    text.iter().fold(start, |digest, byte| {
        digest.wrapping_mul(0x100_0000_01b3) ^ u64::from(*byte)
    })
}

/// The schema of the first media type; none without media types.
fn content(value: &mut Value) -> Option<Value> {
    let (_, mut first) = take(value, &["content"]).into_iter().next()?;
    Some(schema(take(&mut first, &["schema"]).into()))
}

/// The media types of the body of an operation, and of its answer.
fn media_types(kind: &Kind, method: &str, operation: &Map) -> (Value, Value) {
    const OBJECTS: &[&str] = &["application/json", "application/yaml"];
    let consumes = match method {
        "patch" => kind.strategy.patch_types(),
        _ if kind.built_in => &["*/*"],
        _ => OBJECTS,
    };
    let mut produces = OBJECTS.to_vec();
    if kind.built_in {
        produces.push("application/vnd.kubernetes.protobuf");
        if operation.get("x-kubernetes-action").and_then(Value::as_str) == Some("list") {
            produces.push("application/json;stream=watch");
            produces.push("application/vnd.kubernetes.protobuf;stream=watch");
        }
    }
    (consumes.to_vec().into(), produces.into())
}

fn operation(kind: &Kind, method: &str, mut value: Value) -> Value {
    let Some(members) = value.as_object_mut() else {
        return value;
    };
    let (consumes, produces) = media_types(kind, method, members);
    let mut all: Vec<Value> = match members.remove("parameters") {
        Some(Value::Array(items)) => items.into_iter().map(flat).collect(),
        _ => Vec::new(),
    };
    if let Some(mut sent) = members.remove("requestBody") {
        let required = sent.get("required").cloned();
        let schema = content(&mut sent).unwrap_or_else(|| Map::new().into());
        all.insert(0, body(schema, required));
    }
    if !all.is_empty() {
        let all = all.into_iter().map(referred);
        members.insert("parameters", Value::Array(all.collect()));
    }
    members.insert("consumes", consumes);
    members.insert("produces", produces);
    members.insert("schemes", Value::from(vec!["https"]));
    if let Some(Value::Object(responses)) = members.get_mut("responses") {
        for (_, response) in responses.iter_mut() {
            let schema = content(response);
            if let Some(members) = response.as_object_mut() {
                members.remove("content");
                if let Some(schema) = schema {
                    members.insert("schema", schema);
                }
            }
        }
    }
    value
}
