//! OpenAPI v3 in protobuf (gnostic's `openapi.v3`).

use super::{
    additional, any, extensions, flag, items, limits, members, named, operations, texts, wrapped,
    write_string,
};
use crate::codec::protobuf::{boolean, bytes, double, string};
use scantling_value::Value;

/// A whole document.
pub(in crate::openapi) fn document(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    // The numbers of fields are those of gnostic's `OpenAPIv3.proto`.
    write_string(&mut out, 1, value, "openapi");
    let mut info = Vec::new();
    if let Some(found) = value.get("info") {
        write_string(&mut info, 1, found, "title");
        write_string(&mut info, 6, found, "version");
    }
    bytes(&mut out, 2, &info);
    let mut paths = Vec::new();
    for (name, item) in members(value, "paths") {
        named(&mut paths, 1, name, &path_item(item));
    }
    bytes(&mut out, 4, &paths);
    if let Some(components) = value.get("components") {
        let mut m = wrapped(1, &named_schemas(components, "schemas"));
        let mut schemes = Vec::new();
        for (name, scheme) in members(components, "securitySchemes") {
            let mut s = Vec::new();
            write_string(&mut s, 1, scheme, "type");
            write_string(&mut s, 2, scheme, "description");
            write_string(&mut s, 3, scheme, "name");
            write_string(&mut s, 4, scheme, "in");
            named(&mut schemes, 1, name, &wrapped(1, &s));
        }
        if !schemes.is_empty() {
            bytes(&mut m, 7, &schemes);
        }
        bytes(&mut out, 5, &m);
    }
    out
}

/// The schemas in a member, each under its name.
fn named_schemas(value: &Value, key: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, found) in members(value, key) {
        named(&mut out, 1, name, &schema_or_reference(found));
    }
    out
}

fn path_item(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    operations(&mut out, 4, value, operation);
    parameters(&mut out, 13, value);
    out
}

fn operation(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    texts(&mut out, 1, value, "tags");
    write_string(&mut out, 3, value, "description");
    write_string(&mut out, 5, value, "operationId");
    parameters(&mut out, 6, value);
    if let Some(body) = value.get("requestBody") {
        let mut m = Vec::new();
        write_string(&mut m, 1, body, "description");
        bytes(&mut m, 2, &content(body));
        flag(&mut m, 3, body, "required");
        bytes(&mut out, 7, &wrapped(1, &m));
    }
    let mut responses = Vec::new();
    for (code, response) in members(value, "responses") {
        let mut m = Vec::new();
        write_string(&mut m, 1, response, "description");
        if response.get("content").is_some() {
            bytes(&mut m, 3, &content(response));
        }
        named(&mut responses, 2, code, &wrapped(1, &m));
    }
    bytes(&mut out, 8, &responses);
    extensions(&mut out, 13, value);
    out
}

/// The media types of a body, and the schema of each.
fn content(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for (media_type, found) in members(value, "content") {
        let mut m = Vec::new();
        schema_in(&mut m, 1, found, "schema");
        named(&mut out, 1, media_type, &m);
    }
    out
}

fn parameters(out: &mut Vec<u8>, field: u64, value: &Value) {
    for parameter in items(value, "parameters") {
        let mut m = Vec::new();
        write_string(&mut m, 1, parameter, "name");
        write_string(&mut m, 2, parameter, "in");
        write_string(&mut m, 3, parameter, "description");
        flag(&mut m, 4, parameter, "required");
        schema_in(&mut m, 10, parameter, "schema");
        bytes(out, field, &wrapped(1, &m));
    }
}

fn schema_in(out: &mut Vec<u8>, field: u64, value: &Value, key: &str) {
    if let Some(found) = value.get(key) {
        bytes(out, field, &schema_or_reference(found));
    }
}

fn schema_or_reference(value: &Value) -> Vec<u8> {
    match value.get("$ref").and_then(Value::as_str) {
        Some(name) => {
            let mut reference = Vec::new();
            string(&mut reference, 1, name);
            wrapped(2, &reference)
        }
        None => wrapped(1, &schema(value)),
    }
}

fn schema(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    flag(&mut out, 1, value, "nullable");
    if let Some(example) = value.get("example") {
        bytes(&mut out, 7, &any(example));
    }
    write_string(&mut out, 9, value, "title");
    limits(&mut out, 10, value);
    write_string(&mut out, 25, value, "type");
    for (field, key) in [(26, "allOf"), (27, "oneOf"), (28, "anyOf")] {
        for found in items(value, key) {
            bytes(&mut out, field, &schema_or_reference(found));
        }
    }
    if let Some(not) = value.get("not") {
        bytes(&mut out, 29, &schema(not));
    }
    if let Some(element) = value.get("items") {
        bytes(&mut out, 30, &wrapped(1, &schema_or_reference(element)));
    }
    if value.get("properties").is_some() {
        bytes(&mut out, 31, &named_schemas(value, "properties"));
    }
    additional(&mut out, 32, value, schema_or_reference);
    if let Some(found) = value.get("default") {
        bytes(&mut out, 33, &default(found));
    }
    write_string(&mut out, 34, value, "description");
    write_string(&mut out, 35, value, "format");
    extensions(&mut out, 36, value);
    out
}

/// A default. The message has scalars only; other defaults are empty messages.
fn default(value: &Value) -> Vec<u8> {
    let mut m = Vec::new();
    match value {
        #[expect(clippy::cast_precision_loss, reason = "the format has doubles alone")]
        Value::Int(n) => double(&mut m, 1, *n as f64),
        Value::Float(f) => double(&mut m, 1, *f),
        Value::Bool(b) => boolean(&mut m, 2, *b),
        Value::String(s) => string(&mut m, 3, s),
        Value::Null | Value::Array(_) | Value::Object(_) => {}
    }
    m
}
