//! The parts that protobuf messages are made of, and a `Status` in Kubernetes' envelope.
//!
//! Custom resources have no protobuf form; clients that ask for nothing else get their refusal in the form that
//! they asked for. A dozen fields are written by hand rather than by generated code.

use scantling_value::{Map, Value};

/// A `Status` in its envelope (`k8s\0` + `runtime.Unknown`). Other objects are sent as the JSON inside of one.
pub(crate) fn status(value: &Value) -> Vec<u8> {
    let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut list_meta = Vec::new();
    string(&mut list_meta, 1, "");
    string(&mut list_meta, 2, "");
    string(&mut list_meta, 3, "");
    let mut body = Vec::new();
    bytes(&mut body, 1, &list_meta);
    string(&mut body, 2, &text(value, "status"));
    string(&mut body, 3, &text(value, "message"));
    string(&mut body, 4, &text(value, "reason"));
    if let Some(details) = value.get("details") {
        let mut d = Vec::new();
        string(&mut d, 1, &text(details, "name"));
        string(&mut d, 2, &text(details, "group"));
        string(&mut d, 3, &text(details, "kind"));
        for cause in details
            .get("causes")
            .and_then(Value::as_array)
            .unwrap_or_default()
        {
            let mut c = Vec::new();
            string(&mut c, 1, &text(cause, "reason"));
            string(&mut c, 2, &text(cause, "message"));
            string(&mut c, 3, &text(cause, "field"));
            bytes(&mut d, 4, &c);
        }
        number(
            &mut d,
            5,
            details
                .get("retryAfterSeconds")
                .and_then(Value::as_int)
                .unwrap_or_default(),
        );
        string(&mut d, 6, &text(details, "uid"));
        bytes(&mut body, 5, &d);
    }
    number(
        &mut body,
        6,
        value.get("code").and_then(Value::as_int).unwrap_or_default(),
    );

    let mut type_meta = Vec::new();
    string(&mut type_meta, 1, &text(value, "apiVersion"));
    string(&mut type_meta, 2, &text(value, "kind"));
    let mut out = b"k8s\0".to_vec();
    bytes(&mut out, 1, &type_meta);
    bytes(&mut out, 2, &body);
    string(&mut out, 3, "");
    string(&mut out, 4, "");
    out
}

fn varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push((n & 0x7f) as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// The beginning of a field whose content of that length follows.
pub(crate) fn length(out: &mut Vec<u8>, field: u64, length: usize) {
    varint(out, field << 3 | 2);
    varint(out, length as u64);
}

pub(crate) fn bytes(out: &mut Vec<u8>, field: u64, content: &[u8]) {
    length(out, field, content.len());
    out.extend_from_slice(content);
}

pub(crate) fn string(out: &mut Vec<u8>, field: u64, text: &str) {
    bytes(out, field, text.as_bytes());
}

pub(crate) fn number(out: &mut Vec<u8>, field: u64, n: i64) {
    varint(out, field << 3);
    varint(out, n.cast_unsigned());
}

pub(crate) fn boolean(out: &mut Vec<u8>, field: u64, b: bool) {
    number(out, field, i64::from(b));
}

pub(crate) fn double(out: &mut Vec<u8>, field: u64, n: f64) {
    varint(out, field << 3 | 1);
    out.extend_from_slice(&n.to_le_bytes());
}

/// What a field of a message holds.
enum Held<'b> {
    Number,
    Bytes(&'b [u8]),
}

/// The fields of a message; nothing where it is malformed.
fn fields(mut rest: &[u8]) -> Option<Vec<(u64, Held<'_>)>> {
    let mut out = Vec::new();
    while !rest.is_empty() {
        let tag = read_varint(&mut rest)?;
        let held = match tag & 7 {
            0 => {
                read_varint(&mut rest)?;
                Held::Number
            }
            2 => {
                let length = usize::try_from(read_varint(&mut rest)?).ok()?;
                let (content, after) = rest.split_at_checked(length)?;
                rest = after;
                Held::Bytes(content)
            }
            _ => return None,
        };
        out.push((tag >> 3, held));
    }
    Some(out)
}

fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    for shift in (0..64).step_by(7) {
        let (first, after) = rest.split_first()?;
        *rest = after;
        n |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(n);
        }
    }
    None
}

/// The texts in a field of a message.
fn texts(message: &[u8], field: u64) -> Option<Vec<&str>> {
    parts(message, field)?
        .into_iter()
        .map(|b| std::str::from_utf8(b).ok())
        .collect()
}

fn parts(message: &[u8], field: u64) -> Option<Vec<&[u8]>> {
    let of_field = |(f, held)| match held {
        Held::Bytes(b) if f == field => Some(b),
        _ => None,
    };
    Some(fields(message)?.into_iter().filter_map(of_field).collect())
}

/// A namespace in Kubernetes' envelope, as clients create them: its names, labels, annotations and finalizers.
pub(crate) fn namespace(body: &[u8]) -> Option<Value> {
    let envelope = body.strip_prefix(b"k8s\0")?;
    let type_meta = parts(envelope, 1)?.pop()?;
    let (api_version, kind) = (texts(type_meta, 1)?.pop()?, texts(type_meta, 2)?.pop()?);
    if (api_version, kind) != ("v1", "Namespace") {
        return None;
    }
    let namespace = parts(envelope, 2)?.pop()?;
    let meta = parts(namespace, 1)?.pop().unwrap_or_default();
    let mut metadata = Map::new();
    for (field, name) in [
        (1, "name"),
        (2, "generateName"),
        (5, "uid"),
        (6, "resourceVersion"),
    ] {
        if let Some(text) = texts(meta, field)?.pop().filter(|t| !t.is_empty()) {
            metadata.insert(name, text.into());
        }
    }
    for (field, name) in [(11, "labels"), (12, "annotations")] {
        let mut map = Map::new();
        for entry in parts(meta, field)? {
            let value = texts(entry, 2)?.pop().unwrap_or_default();
            map.insert(texts(entry, 1)?.pop().unwrap_or_default(), value.into());
        }
        if !map.is_empty() {
            metadata.insert(name, map.into());
        }
    }
    let finalizers = texts(meta, 14)?;
    if !finalizers.is_empty() {
        metadata.insert("finalizers", finalizers.into());
    }
    let entries = [
        ("apiVersion", Value::from(api_version)),
        ("kind", kind.into()),
        ("metadata", metadata.into()),
    ];
    Some(Value::Object(entries.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_read() {
        let mut meta = Vec::new();
        string(&mut meta, 1, "one");
        number(&mut meta, 7, 300);
        let mut label = Vec::new();
        string(&mut label, 1, "a");
        string(&mut label, 2, "b");
        bytes(&mut meta, 11, &label);
        let mut namespace_body = Vec::new();
        bytes(&mut namespace_body, 1, &meta);
        let mut type_meta = Vec::new();
        string(&mut type_meta, 1, "v1");
        string(&mut type_meta, 2, "Namespace");
        let mut body = b"k8s\0".to_vec();
        bytes(&mut body, 1, &type_meta);
        bytes(&mut body, 2, &namespace_body);
        assert_eq!(
            namespace(&body).unwrap().to_json(),
            r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"labels":{"a":"b"},"name":"one"}}"#
        );
        for end in 0..body.len() {
            let _ = namespace(&body[..end]);
        }
    }
}
