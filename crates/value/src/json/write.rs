//! Writing values as JSON, byte for byte as Go's `encoding/json` writes them.

use crate::{Value, go};

/// How strings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// `<`, `>` and `&` as `\u003c`, `\u003e` and `\u0026`: what Go does unless told otherwise, and so the form
    /// of API answers and of documents inside of error messages.
    Html,
    /// As few escapes as JSON allows (and U+2028 and U+2029, which Go always escapes).
    Minimal,
}

impl Value {
    /// The document as a server writes it: compact, keys sorted, HTML characters escaped.
    pub fn to_json(&self) -> String {
        self.to_json_with(Escape::Html)
    }

    /// The document as compact JSON.
    pub fn to_json_with(&self, escape: Escape) -> String {
        let mut out = Vec::with_capacity(128);
        self.write_json_with(&mut out, escape);
        into_string(out)
    }

    /// Appends the document as a server writes it.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        self.write_json_with(out, Escape::Html);
    }

    /// Appends the document as compact JSON.
    pub fn write_json_with(&self, out: &mut Vec<u8>, escape: Escape) {
        match self {
            Value::Null => out.extend_from_slice(b"null"),
            Value::Bool(true) => out.extend_from_slice(b"true"),
            Value::Bool(false) => out.extend_from_slice(b"false"),
            Value::Int(i) => write_int(out, *i),
            Value::Float(f) => go::write_float_json(out, *f),
            Value::String(s) => write_string(out, s, escape),
            Value::Array(items) => {
                out.push(b'[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    item.write_json_with(out, escape);
                }
                out.push(b']');
            }
            Value::Object(map) => {
                out.push(b'{');
                for (i, (key, value)) in map.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    write_string(out, key, escape);
                    out.push(b':');
                    value.write_json_with(out, escape);
                }
                out.push(b'}');
            }
        }
    }
}

/// The bytes are JSON, hence UTF-8.
fn into_string(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

fn write_int(out: &mut Vec<u8>, i: i64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = i.unsigned_abs();
    loop {
        at -= 1;
        if let Some(d) = digits.get_mut(at) {
            *d = b'0' + (rest % 10) as u8;
        }
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if i < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(digits.get(at..).unwrap_or_default());
}

/// Whether a byte ends a run that can be copied as it is. 0xe2 begins U+2028 and U+2029.
const fn special(b: u8, escape: Escape) -> bool {
    matches!(b, 0..=0x1f | b'"' | b'\\' | 0xe2)
        || (matches!(escape, Escape::Html) && matches!(b, b'<' | b'>' | b'&'))
}

/// Appends the text as a JSON string.
pub(crate) fn write_string(out: &mut Vec<u8>, s: &str, escape: Escape) {
    out.push(b'"');
    let mut rest = s.as_bytes();
    while let Some(run) = rest.iter().position(|&b| special(b, escape)) {
        let (plain, tail) = rest.split_at(run);
        out.extend_from_slice(plain);
        let taken = match tail {
            [0xe2, 0x80, last @ (0xa8 | 0xa9), ..] => {
                out.extend_from_slice(if *last == 0xa8 { b"\\u2028" } else { b"\\u2029" });
                3
            }
            [b, ..] => {
                match b {
                    b'"' => out.extend_from_slice(b"\\\""),
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    b'\n' => out.extend_from_slice(b"\\n"),
                    b'\r' => out.extend_from_slice(b"\\r"),
                    b'\t' => out.extend_from_slice(b"\\t"),
                    0x08 => out.extend_from_slice(b"\\b"),
                    0x0c => out.extend_from_slice(b"\\f"),
                    0xe2 => out.push(0xe2),
                    other => out.extend_from_slice(format!("\\u{other:04x}").as_bytes()),
                }
                1
            }
            [] => 0,
        };
        rest = tail.get(taken..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Map;

    #[test]
    fn strings() {
        let text = "\0\x01\x08\x0c\n\r\t\x1f\x7f<>&\u{2028}\u{2029}\u{20ac}\"\\/é\u{1f600}";
        // Printed by Go's json.Marshal.
        let html = "\"\\u0000\\u0001\\b\\f\\n\\r\\t\\u001f\x7f\\u003c\\u003e\\u0026\\u2028\\u2029€\\\"\\\\/é\u{1f600}\"";
        assert_eq!(Value::from(text).to_json(), html);
        let minimal = html.replace("\\u003c\\u003e\\u0026", "<>&");
        assert_eq!(Value::from(text).to_json_with(Escape::Minimal), minimal);
    }

    #[test]
    fn documents() {
        let doc = Value::Object(Map::from_iter([
            ("b", Value::from(vec![1i64, -20, i64::MIN, i64::MAX, 0])),
            ("a", Value::Null),
            ("c", Value::from(vec![true, false])),
            ("", Value::Object(Map::new())),
            ("f", Value::from(vec![1.0, 1e21, -0.0])),
        ]));
        assert_eq!(
            doc.to_json(),
            r#"{"":{},"a":null,"b":[1,-20,-9223372036854775808,9223372036854775807,0],"c":[true,false],"f":[1,1e+21,-0]}"#
        );
    }
}
