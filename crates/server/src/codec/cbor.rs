//! CBOR (RFC 8949), behind the feature gate `CBORServingAndStorage`: request and response bodies, applies, streams, and
//! stored custom resources.
//!
//! Text is written as byte strings, which need no check for UTF-8, and numbers keep their type. Every document
//! begins with the tag of self-described CBOR.

mod notation;
mod read;
mod scan;

pub(crate) use notation::notation;
pub(crate) use read::{Fault, decode, decode_object};

use ciborium_ll::{Encoder, Header, simple};
use scantling_value::{Map, Value};

/// The tag of self-described CBOR.
const SELF_DESCRIBED: u64 = 55_799;

/// The first bytes of every document.
const PREFIX: &[u8] = &[0xd9, 0xd9, 0xf7];

/// Returns whether bytes are self-described CBOR.
pub(crate) fn is_tagged(bytes: &[u8]) -> bool {
    bytes.starts_with(PREFIX)
}

/// Encodes a document, with its keys in the deterministic order of RFC 8949.
pub(crate) fn encode(value: &Value) -> Vec<u8> {
    let mut out = PREFIX.to_vec();
    write(value, &mut out);
    out
}

/// Encodes an event of a stream. Items of a sequence need no separator.
pub(crate) fn event(word: &str, object: &Value) -> Vec<u8> {
    let mut out = PREFIX.to_vec();
    head(Header::Map(Some(2)), &mut out);
    write_text("type", &mut out);
    write_text(word, &mut out);
    write_text("object", &mut out);
    // The object is a document of its own inside the event: kube-apiserver embeds it with its tag.
    out.extend_from_slice(PREFIX);
    write(object, &mut out);
    out
}

/// Returns the length of the first item of a sequence if it is complete.
pub(crate) fn first_item(sequence: &[u8]) -> Option<usize> {
    let mut scanner = scan::Scanner::of_sequence(sequence);
    scanner.skip(0).ok()?;
    Some(sequence.len() - scanner.left())
}

fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => head(Header::Simple(simple::NULL), out),
        Value::Bool(true) => head(Header::Simple(simple::TRUE), out),
        Value::Bool(false) => head(Header::Simple(simple::FALSE), out),
        Value::Int(n) => match u64::try_from(*n) {
            Ok(n) => head(Header::Positive(n), out),
            // CBOR stores a negative number n as -1 - n, which is the complement.
            Err(_) => head(Header::Negative(!n.cast_unsigned()), out),
        },
        Value::Float(n) => head(Header::Float(*n), out),
        Value::String(s) => write_text(s, out),
        Value::Array(items) => {
            head(Header::Array(Some(items.len())), out);
            for item in items {
                write(item, out);
            }
        }
        Value::Object(map) => write_map(map, out),
    }
}

fn write_map(map: &Map, out: &mut Vec<u8>) {
    head(Header::Map(Some(map.len())), out);
    let mut members: Vec<_> = map.iter().collect();
    // By their encoded bytes, which start with the length. A map's own order is by text.
    members.sort_by_key(|(key, _)| key.len());
    for (key, value) in members {
        write_text(key, out);
        write(value, out);
    }
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    head(Header::Bytes(Some(text.len())), out);
    out.extend_from_slice(text.as_bytes());
}

fn head(header: Header, out: &mut Vec<u8>) {
    // Writing to a string cannot fail.
    let _ = Encoder::from(out).push(header);
}

#[cfg(test)]
mod tests;
