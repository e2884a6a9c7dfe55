//! JSON encoding, byte for byte as Go's `encoding/json` does it.

use super::swar;
use crate::{Value, go};

/// The set of characters that are escaped in strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escape {
    /// Escapes `<`, `>` and `&` as `\u003c`, `\u003e` and `\u0026`. This is Go's default, and so the form of
    /// API responses and of documents in error messages.
    Html,
    /// Escapes only what JSON requires (and U+2028 and U+2029, which Go always escapes).
    Minimal,
}

impl Value {
    /// Encodes the document as kube-apiserver does: compact, keys sorted, HTML characters escaped.
    pub fn to_json(&self) -> String {
        self.to_json_with(Escape::Html)
    }

    /// Encodes the document as compact JSON.
    pub fn to_json_with(&self, escape: Escape) -> String {
        let mut out = Vec::with_capacity(128);
        self.write_json_with(&mut out, escape);
        into_string(out)
    }

    /// Appends the document as kube-apiserver encodes it.
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

/// Appends the name of a member with its colon, as kube-apiserver encodes it.
pub fn write_key(out: &mut Vec<u8>, name: &str) {
    write_string(out, name, Escape::Html);
    out.push(b':');
}

/// Appends the name of a member that needs no escape, with its colon. The names of declared fields need none.
pub fn write_plain_key(out: &mut Vec<u8>, name: &str) {
    debug_assert_eq!(
        plain(name.as_bytes(), Escape::Html),
        name.len(),
        "{name:?} needs escapes"
    );
    out.reserve(name.len() + 3);
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Converts JSON bytes, which are always UTF-8.
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

/// The length of the prefix that can be copied unescaped.
fn plain(text: &[u8], escape: Escape) -> usize {
    let mut at = 0;
    // The marks may be false positives, so the rest is checked byte by byte.
    while let Some(word) = text.get(at..).and_then(swar::load_word)
        && marks(word) == 0
    {
        at += 8;
    }
    let rest = text.get(at..).unwrap_or_default();
    if rest.len() < 8 && last_word(text).is_some_and(|word| marks(word) == 0) {
        return text.len();
    }
    at + rest
        .iter()
        .position(|&b| special(b, escape))
        .unwrap_or(rest.len())
}

/// The last eight bytes of a text, or all of a shorter one, some of them twice; `None` for fewer than four.
#[inline]
fn last_word(text: &[u8]) -> Option<u64> {
    if let Some(word) = text.last_chunk() {
        return Some(u64::from_le_bytes(*word));
    }
    let (first, last) = (text.first_chunk()?, text.last_chunk()?);
    Some(u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32)
}

/// Marks bytes that may need an escape.
const fn marks(word: u64) -> u64 {
    // The two characters of each pair differ in one bit, so one comparison covers both.
    const QUOTE_OR_AMPERSAND: u8 = b'"' | b'&';
    const LESS_OR_GREATER: u8 = b'<' | b'>';
    // `<`, `>` and `&` are marked for `Minimal`, too, where they are false positives.
    swar::bytes_below(word, 0x20)
        | swar::bytes_equal_ignoring(word, QUOTE_OR_AMPERSAND, b'"' ^ b'&')
        | swar::bytes_equal_ignoring(word, LESS_OR_GREATER, b'<' ^ b'>')
        | swar::bytes_equal(word, b'\\')
        | (word & swar::ALL)
}

/// Returns whether a byte ends a run that can be copied unescaped.
fn special(b: u8, escape: Escape) -> bool {
    #[expect(clippy::indexing_slicing, reason = "the table is made when this is compiled")]
    const fn table(escape: Escape) -> [bool; 256] {
        let mut table = [false; 256];
        let mut b = 0;
        while b < table.len() {
            table[b] = is_special(b as u8, escape);
            b += 1;
        }
        table
    }
    static HTML: [bool; 256] = table(Escape::Html);
    static MINIMAL: [bool; 256] = table(Escape::Minimal);
    let table = match escape {
        Escape::Html => &HTML,
        Escape::Minimal => &MINIMAL,
    };
    table.get(usize::from(b)).is_some_and(|special| *special)
}

/// 0xe2 is the first byte of U+2028 and U+2029.
const fn is_special(b: u8, escape: Escape) -> bool {
    matches!(b, 0..=0x1f | b'"' | b'\\' | 0xe2)
        || (matches!(escape, Escape::Html) && matches!(b, b'<' | b'>' | b'&'))
}

/// Appends a string as a JSON string.
pub(crate) fn write_string(out: &mut Vec<u8>, s: &str, escape: Escape) {
    let text = s.as_bytes();
    out.reserve(text.len() + 2);
    out.push(b'"');
    if plain(text, escape) == text.len() {
        out.extend_from_slice(text);
    } else {
        write_escaped(out, text, escape);
    }
    out.push(b'"');
}

/// Appends a text with escapes.
fn write_escaped(out: &mut Vec<u8>, mut rest: &[u8], escape: Escape) {
    loop {
        let (copied, tail) = rest.split_at(plain(rest, escape));
        out.extend_from_slice(copied);
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
                    // Before release 1.22, Go wrote these two as `\u0008` and `\u000c`.
                    0x08 => out.extend_from_slice(b"\\b"),
                    0x0c => out.extend_from_slice(b"\\f"),
                    // The first byte of another character.
                    0xe2 => out.push(0xe2),
                    other => out.extend_from_slice(format!("\\u{other:04x}").as_bytes()),
                }
                1
            }
            [] => break,
        };
        rest = tail.get(taken..).unwrap_or_default();
    }
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
    fn every_byte_is_escaped_at_every_offset() {
        for c in (0..0x80).chain([0xe9, 0x2027, 0x2028, 0x2029, 0x20ac, 0x1f600]) {
            let c = char::from_u32(c).unwrap();
            let alone = Value::from(c.to_string()).to_json();
            let written = alone.strip_prefix('"').and_then(|s| s.strip_suffix('"')).unwrap();
            for (before, after) in (0..20).flat_map(|n| [(n, 0), (n, 9)]) {
                let around = |middle: &str| "x".repeat(before) + middle + &"y".repeat(after);
                let json = Value::from(around(&c.to_string())).to_json();
                assert_eq!(json, format!("\"{}\"", around(written)), "{c:?}");
            }
        }
    }

    #[test]
    fn written_documents() {
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
