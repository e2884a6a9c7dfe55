//! OpenAPI v2 in protobuf (gnostic's `openapi.v2`), which clients prefer because it is faster to decode.
//!
//! It covers the keywords that this server's documents contain. Values of any type are YAML inside.

pub(super) mod v3;

use crate::codec::protobuf::{boolean, bytes, double, number, string};
use scantling_value::{Map, Value};

/// The beginning of a document: version and `info`. Paths are field 8, schemas field 9.
pub(super) fn beginning(swagger: &str, info: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    string(&mut out, 1, swagger);
    let mut m = Vec::new();
    write_string(&mut m, 1, info, "title");
    write_string(&mut m, 2, info, "version");
    bytes(&mut out, 2, &m);
    out
}

/// The end of a document: shared parameters (field 10) and security (12, 13).
pub(super) fn end(parameters: &Map, (asked, ways): &(Value, Value)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut m = Vec::new();
    for (name, p) in parameters.iter() {
        named(&mut m, 1, name, &own_parameter(p));
    }
    bytes(&mut out, 10, &m);
    for way in asked.as_array().into_iter().flatten() {
        let mut m = Vec::new();
        for name in way.as_object().into_iter().flat_map(Map::keys) {
            named(&mut m, 1, name, &[]);
        }
        bytes(&mut out, 12, &m);
    }
    let mut m = Vec::new();
    for (name, way) in ways.as_object().into_iter().flat_map(Map::iter) {
        let mut key = Vec::new();
        write_string(&mut key, 1, way, "type");
        write_string(&mut key, 2, way, "name");
        write_string(&mut key, 3, way, "in");
        write_string(&mut key, 4, way, "description");
        named(&mut m, 1, name, &wrapped(2, &key));
    }
    bytes(&mut out, 13, &m);
    out
}

/// An entry of a document's paths.
pub(super) fn named_path(name: &str, item: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    named(&mut out, 2, name, &path_item(item));
    out
}

/// An entry of a document's schemas.
pub(super) fn named_schema(name: &str, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    named(&mut out, 1, name, &schema(value));
    out
}

fn members<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = (&'v str, &'v Value)> {
    let members = value.get(key).and_then(Value::as_object);
    members
        .into_iter()
        .flat_map(Map::iter)
        .map(|(k, v)| (k.as_str(), v))
}

fn items<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.list(key)
}

/// `NamedX { name = 1, value = 2 }`
fn named(out: &mut Vec<u8>, field: u64, name: &str, value: &[u8]) {
    let mut m = Vec::new();
    string(&mut m, 1, name);
    bytes(&mut m, 2, value);
    bytes(out, field, &m);
}

fn write_string(out: &mut Vec<u8>, field: u64, value: &Value, key: &str) {
    if let Some(s) = value.get(key).and_then(Value::as_str) {
        string(out, field, s);
    }
}

fn texts(out: &mut Vec<u8>, field: u64, value: &Value, key: &str) {
    for s in items(value, key).iter().filter_map(Value::as_str) {
        string(out, field, s);
    }
}

fn flag(out: &mut Vec<u8>, field: u64, value: &Value, key: &str) {
    if value.get(key).and_then(Value::as_bool) == Some(true) {
        boolean(out, field, true);
    }
}

fn count(out: &mut Vec<u8>, field: u64, value: &Value, key: &str) {
    // Zero is the default and not written.
    if let Some(n) = value.get(key).and_then(Value::as_int).filter(|n| *n != 0) {
        number(out, field, n);
    }
}

fn amount(out: &mut Vec<u8>, field: u64, value: &Value, key: &str) {
    match value.get(key) {
        #[expect(clippy::cast_precision_loss, reason = "the format has doubles alone")]
        Some(Value::Int(n)) if *n != 0 => double(out, field, *n as f64),
        Some(Value::Float(f)) if *f != 0.0 => double(out, field, *f),
        _ => {}
    }
}

/// `Any { yaml = 2 }`
fn any(value: &Value) -> Vec<u8> {
    let mut m = Vec::new();
    // gnostic's clients parse this field as YAML.
    string(&mut m, 2, &scantling_value::yaml::encode(value));
    m
}

fn extensions(out: &mut Vec<u8>, field: u64, value: &Value) {
    let all = value.as_object().into_iter().flat_map(Map::iter);
    for (name, v) in all.filter(|(name, _)| name.starts_with("x-")) {
        named(out, field, name, &any(v));
    }
}

/// The operations of a path; either version numbers them in this order.
fn operations(out: &mut Vec<u8>, first: u64, value: &Value, operation: fn(&Value) -> Vec<u8>) {
    let methods = ["get", "put", "post", "delete", "options", "head", "patch"];
    for (field, method) in (first..).zip(methods) {
        if let Some(found) = value.get(method) {
            bytes(out, field, &operation(found));
        }
    }
}

fn path_item(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    operations(&mut out, 2, value, operation);
    for p in items(value, "parameters") {
        bytes(&mut out, 9, &parameter(p));
    }
    out
}

fn operation(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    texts(&mut out, 1, value, "tags");
    write_string(&mut out, 3, value, "description");
    write_string(&mut out, 5, value, "operationId");
    texts(&mut out, 6, value, "produces");
    texts(&mut out, 7, value, "consumes");
    for p in items(value, "parameters") {
        bytes(&mut out, 8, &parameter(p));
    }
    let mut responses = Vec::new();
    for (code, r) in members(value, "responses") {
        let mut response = Vec::new();
        write_string(&mut response, 1, r, "description");
        if let Some(s) = r.get("schema") {
            bytes(&mut response, 2, &wrapped(1, &schema(s)));
        }
        named(&mut responses, 1, code, &wrapped(1, &response));
    }
    bytes(&mut out, 9, &responses);
    texts(&mut out, 10, value, "schemes");
    extensions(&mut out, 13, value);
    out
}

/// A message in one field of another.
fn wrapped(field: u64, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    bytes(&mut out, field, content);
    out
}

/// `ParametersItem { Parameter | JsonReference }`
fn parameter(value: &Value) -> Vec<u8> {
    if value.get("$ref").is_some() {
        let mut m = Vec::new();
        write_string(&mut m, 1, value, "$ref");
        return wrapped(2, &m);
    }
    wrapped(1, &own_parameter(value))
}

/// `Parameter { BodyParameter | NonBodyParameter { query | path } }`
fn own_parameter(value: &Value) -> Vec<u8> {
    let place = value.get_str("in");
    let mut m = Vec::new();
    if place == "body" {
        write_string(&mut m, 1, value, "description");
        write_string(&mut m, 2, value, "name");
        write_string(&mut m, 3, value, "in");
        flag(&mut m, 4, value, "required");
        if let Some(s) = value.get("schema") {
            bytes(&mut m, 5, &schema(s));
        }
        wrapped(1, &m)
    } else {
        flag(&mut m, 1, value, "required");
        write_string(&mut m, 2, value, "in");
        write_string(&mut m, 3, value, "description");
        write_string(&mut m, 4, value, "name");
        // Query parameters have one field more, `allow_empty_value`.
        let (which, ty, unique) = if place == "path" { (4, 5, 19) } else { (3, 6, 20) };
        write_string(&mut m, ty, value, "type");
        flag(&mut m, unique, value, "uniqueItems");
        wrapped(2, &wrapped(which, &m))
    }
}

/// The validation keywords: fifteen consecutive fields in either version.
fn limits(out: &mut Vec<u8>, first: u64, value: &Value) {
    amount(out, first, value, "multipleOf");
    amount(out, first + 1, value, "maximum");
    flag(out, first + 2, value, "exclusiveMaximum");
    amount(out, first + 3, value, "minimum");
    flag(out, first + 4, value, "exclusiveMinimum");
    count(out, first + 5, value, "maxLength");
    count(out, first + 6, value, "minLength");
    write_string(out, first + 7, value, "pattern");
    count(out, first + 8, value, "maxItems");
    count(out, first + 9, value, "minItems");
    flag(out, first + 10, value, "uniqueItems");
    count(out, first + 11, value, "maxProperties");
    count(out, first + 12, value, "minProperties");
    texts(out, first + 13, value, "required");
    for listed in items(value, "enum") {
        bytes(out, first + 14, &any(listed));
    }
}

/// `additionalProperties`: a schema or a boolean.
fn additional(out: &mut Vec<u8>, field: u64, value: &Value, schema: fn(&Value) -> Vec<u8>) {
    match value.get("additionalProperties") {
        Some(Value::Bool(b)) => {
            let mut m = Vec::new();
            boolean(&mut m, 2, *b);
            bytes(out, field, &m);
        }
        Some(found @ Value::Object(_)) => bytes(out, field, &wrapped(1, &schema(found))),
        _ => {}
    }
}

fn schema(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_string(&mut out, 1, value, "$ref");
    write_string(&mut out, 2, value, "format");
    write_string(&mut out, 3, value, "title");
    write_string(&mut out, 4, value, "description");
    if let Some(default) = value.get("default") {
        bytes(&mut out, 5, &any(default));
    }
    limits(&mut out, 6, value);
    additional(&mut out, 21, value, schema);
    if let Some(ty) = value.get("type").and_then(Value::as_str) {
        let mut m = Vec::new();
        string(&mut m, 1, ty);
        bytes(&mut out, 22, &m);
    }
    if let Some(s) = value.get("items") {
        bytes(&mut out, 23, &wrapped(1, &schema(s)));
    }
    for s in items(value, "allOf") {
        bytes(&mut out, 24, &schema(s));
    }
    if value.get("properties").is_some() {
        let mut m = Vec::new();
        for (name, s) in members(value, "properties") {
            named(&mut m, 1, name, &schema(s));
        }
        bytes(&mut out, 25, &m);
    }
    if let Some(example) = value.get("example") {
        bytes(&mut out, 30, &any(example));
    }
    extensions(&mut out, 31, value);
    out
}
