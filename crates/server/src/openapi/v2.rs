//! The OpenAPI v2 document, converted from the v3 documents kind by kind.

use super::models::ModelRenderer;
use super::paths::PathsWriter;
use super::{META, SCALE, object, reference, routes};
use crate::kinds::kind::{Kind, Kinds, Version};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE;
use scantling_schema::publish::OpenApiVersion;
use scantling_value::{Map, Str, Value};

const V3: &str = "#/components/schemas/";
const V2: &str = "#/definitions/";

/// The version of the format.
pub(super) const SWAGGER: &str = "2.0";

/// The title and version of documents.
pub(super) fn info() -> Value {
    object([("title", "Kubernetes".into()), ("version", "1.37".into())])
}

/// The paths and schemas of a kind in all its served versions. The schemas of built-in kinds are among those that are
/// [`shared`].
pub(super) fn of_kind(kind: &Kind) -> Result<(Map, Map), String> {
    let versions: Vec<&Version> = kind.versions.iter().filter(|v| v.served).collect();
    let mut paths = Vec::new();
    let mut schemas: Vec<(Str, Value)> = Vec::new();
    for version in &versions {
        let writer = PathsWriter::new(kind, version);
        paths.extend(writer.paths());
        if !kind.built_in {
            schemas.push((writer.list_name().into(), writer.list_schema()));
        }
    }
    if !kind.built_in {
        let published = kind.codec.published(kind, &versions, OpenApiVersion::V2)?;
        let names = versions
            .iter()
            .map(|version| PathsWriter::new(kind, version).name.into());
        // `published` has one schema per version, in their order.
        schemas.extend(names.zip(published));
    }
    // The last of several schemas with one name wins.
    let (paths, schemas) = (Map::from_unsorted(paths), Map::from_unsorted(schemas));
    let paths = paths
        .into_iter()
        .map(|(path, item)| (path, path_item(kind.patch_types, kind.built_in, item)));
    let schemas = schemas.into_iter().map(|(name, s)| (name, schema(s)));
    Ok((paths.collect(), schemas.collect()))
}

/// The paths outside kinds, and the schemas of built-in types.
pub(super) fn shared(kinds: &Kinds) -> (Map, Map) {
    let renderer = ModelRenderer::for_scheme(&["apiextensions.k8s.io", "apiregistration.k8s.io"]);
    let own: Map = routes::paths(kinds).into_iter().collect();
    let built_in = kinds.all().filter(|kind| kind.built_in);
    let served = built_in.flat_map(|kind| kind.versions.iter().filter(|v| v.served).map(move |v| (kind, v)));
    let of_kinds: Vec<Map> = served
        .map(|(kind, version)| PathsWriter::new(kind, version).paths())
        .collect();
    let mut schemas = Map::new();
    // Custom resources may have a scale.
    let scale = reference(SCALE);
    let paths = own
        .values()
        .chain(of_kinds.iter().flat_map(Map::values))
        .chain([&scale]);
    renderer.add_references(paths, &mut schemas);
    let own = own
        .into_iter()
        .map(|(path, item)| (path, path_item(&[], true, item)));
    (
        own.collect(),
        schemas.into_iter().map(|(name, s)| (name, schema(s))).collect(),
    )
}

/// The shared parameters, by the names by which operations refer to them.
pub(super) fn shared_parameters() -> Map {
    let of = |model: &str| object([("$ref", format!("{V2}{META}.{model}").into())]);
    let bodies = [
        body(of("DeleteOptions"), None),
        body(of("Patch"), Some(true.into())),
    ];
    let others = super::shared_parameters().cloned().map(flat);
    let all = others.chain(bodies);
    all.filter_map(|p| Some((shared_name(&p)?, p))).collect()
}

/// The security requirement, and the security scheme.
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

/// Converts a schema: references are rewritten and have no siblings, junctors and defaults are dropped. A
/// type of the table with alternatives becomes a string.
fn schema(value: Value) -> Value {
    let Value::Object(members) = value else {
        return value;
    };
    let mut out = Map::new();
    for (key, value) in members {
        let value = match (key.as_str(), value) {
            ("oneOf", _) => {
                // `IntOrString` is such a type: v2 has no alternatives, and kube-apiserver calls it a string.
                out.insert("type", "string".into());
                continue;
            }
            ("anyOf" | "not" | "nullable" | "default", _) => continue,
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

fn path_item(patch_types: &[&str], is_built_in: bool, value: Value) -> Value {
    let Value::Object(members) = value else {
        return value;
    };
    let members = members.into_iter().map(|(key, value)| {
        let value = match (key.as_str(), value) {
            ("parameters", Value::Array(all)) => {
                Value::Array(all.into_iter().map(|p| referred(flat(p))).collect())
            }
            (method, value) => operation(patch_types, is_built_in, method, value),
        };
        (key, value)
    });
    Value::Object(members.collect())
}

/// A parameter with the keywords of its schema inlined.
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

/// The parameter of a request body.
fn body(schema: Value, required: Option<Value>) -> Value {
    let members = [
        ("name", Value::from("body")),
        ("in", "body".into()),
        ("schema", schema),
    ];
    let required = required.map(|required| ("required", required));
    Value::Object(members.into_iter().chain(required).collect())
}

/// A reference to a shared parameter, or the parameter itself.
fn referred(parameter: Value) -> Value {
    match shared_name(&parameter) {
        Some(name) => object([("$ref", format!("#/parameters/{name}").into())]),
        None => parameter,
    }
}

/// The name of a shared parameter: its own and the beginning of a digest of its text. Parameters of one kind are not
/// shared, nor those by which old clients detect features of the server.
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
    // The digest must equal that of kube-openapi, so the members are in the order in which Go marshals them.
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

/// The schema of the first media type; `None` without media types.
fn content(value: &mut Value) -> Option<Value> {
    let (_, mut first) = take(value, &["content"]).into_iter().next()?;
    Some(schema(take(&mut first, &["schema"]).into()))
}

/// The media types of responses, in the order of `produces`.
const PRODUCED: [&str; 7] = [
    "text/plain",
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "*/*",
];

/// The media types of an operation's responses.
fn produced(operation: &Value) -> Vec<&'static str> {
    let responses = operation.get("responses").and_then(Value::as_object);
    let contents = responses
        .into_iter()
        .flat_map(Map::values)
        .filter_map(|r| r.get("content"));
    let contents: Vec<&Value> = contents.collect();
    let is_produced = |ty: &&str| contents.iter().any(|content| content.get(ty).is_some());
    PRODUCED.into_iter().filter(is_produced).collect()
}

fn operation(patch_types: &[&str], is_built_in: bool, method: &str, mut value: Value) -> Value {
    let produces = produced(&value);
    let consumes: &[&str] = match method {
        "patch" if !patch_types.is_empty() && value.get("requestBody").is_some() => patch_types,
        _ if is_built_in => &["*/*"],
        _ => &["application/json", "application/yaml"],
    };
    let Some(members) = value.as_object_mut() else {
        return value;
    };
    let mut all: Vec<Value> = match members.remove("parameters") {
        Some(Value::Array(items)) => items.into_iter().map(flat).collect(),
        _ => Vec::new(),
    };
    if let Some(mut sent) = members.remove("requestBody") {
        let required = sent.get("required").cloned();
        let schema = content(&mut sent).unwrap_or_else(|| Map::new().into());
        // kube-openapi lists the body first.
        all.insert(0, body(schema, required));
    }
    if !all.is_empty() {
        let all = all.into_iter().map(referred);
        members.insert("parameters", Value::Array(all.collect()));
    }
    members.insert("consumes", consumes.to_vec().into());
    members.insert("produces", produces.into());
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
