//! The parts that protobuf messages are made of, and a `Status` in Kubernetes' envelope.
//!
//! Custom resources have no protobuf form; clients that ask for nothing else get their refusal in the form that
//! they asked for. A dozen fields are written by hand rather than by generated code.

use scantling_value::Value;

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

pub(crate) fn bytes(out: &mut Vec<u8>, field: u64, content: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, content.len() as u64);
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
