//! The envelope of a message: a magic number, then version, kind and content.

use super::wire::{self, WireValue, bytes, length, string};
use crate::TypeTable;
use scantling_value::{Limits, Value};

/// The magic number.
const PREFIX: &[u8] = b"k8s\0";

/// A decoded envelope.
#[derive(Debug)]
pub struct Envelope<'b> {
    /// The group and version.
    pub api_version: &'b str,
    /// The kind.
    pub kind: &'b str,
    /// The message.
    pub message: &'b [u8],
}

/// Returns whether a body has an envelope.
pub fn is_enveloped(body: &[u8]) -> bool {
    body.starts_with(PREFIX)
}

/// Decodes the envelope.
pub fn open(body: &[u8]) -> Result<Envelope<'_>, String> {
    let Some(inner) = body.strip_prefix(PREFIX) else {
        return Err(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
                .to_owned(),
        );
    };
    if inner.is_empty() {
        return Err("empty body".to_owned());
    }
    let mut envelope = Envelope {
        api_version: "",
        kind: "",
        message: &[],
    };
    for field in wire::fields(inner) {
        match field? {
            (1, WireValue::Bytes(type_meta)) => {
                for field in wire::fields(type_meta) {
                    match field? {
                        (1, WireValue::Bytes(b)) => envelope.api_version = super::read::utf8(b)?,
                        (2, WireValue::Bytes(b)) => envelope.kind = super::read::utf8(b)?,
                        _ => {}
                    }
                }
            }
            (2, WireValue::Bytes(b)) => envelope.message = b,
            _ => {}
        }
    }
    Ok(envelope)
}

/// Wraps a message in an envelope.
pub fn wrap(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len() + 128);
    begin_envelope(&mut out, api_version, kind, message.len());
    out.extend_from_slice(message);
    end_envelope(&mut out);
    out
}

/// Writes the part of an envelope before its message, which has that many bytes.
pub fn begin_envelope(out: &mut Vec<u8>, api_version: &str, kind: &str, message: usize) {
    let mut type_meta = Vec::new();
    string(&mut type_meta, 1, api_version);
    string(&mut type_meta, 2, kind);
    out.extend_from_slice(PREFIX);
    bytes(out, 1, &type_meta);
    length(out, 2, message);
}

/// Writes the part of an envelope after its message.
pub fn end_envelope(out: &mut Vec<u8>) {
    // `contentEncoding` and `contentType`: the generated code of Kubernetes writes empty strings as well.
    string(out, 3, "");
    string(out, 4, "");
}

impl TypeTable {
    /// Decodes the object in an envelope, with its version and kind; `None` if the kind has no protobuf
    /// encoding.
    pub fn read_envelope(&self, envelope: &Envelope<'_>) -> Option<Result<Value, String>> {
        let definition = self.protobuf_kind(envelope.api_version, envelope.kind)?;
        let object = self.read_protobuf(definition, envelope.message, Limits::SERVER.depth);
        Some(object.map(|mut members| {
            // The message has no field for `TypeMeta`.
            members.insert("apiVersion", envelope.api_version.into());
            members.insert("kind", envelope.kind.into());
            members.into()
        }))
    }

    /// Encodes an object with an envelope; `None` if its kind has no protobuf encoding.
    pub fn write_envelope(&self, object: &Value) -> Option<Vec<u8>> {
        let members = object.as_object()?;
        let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let definition = self.protobuf_kind(api_version, kind)?;
        let mut message = Vec::with_capacity(1024);
        self.write_protobuf(definition, members, &mut message);
        Some(wrap(api_version, kind, &message))
    }

    /// The type of a kind with a protobuf encoding.
    pub fn protobuf_kind(&self, api_version: &str, kind: &str) -> Option<&crate::TypeDef> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let definition = self.kind(group, version, kind)?;
        (!definition.attributes.has("no-protobuf")).then_some(definition)
    }
}

/// Encodes a watch event: its length, then a message without an envelope that contains an enveloped object.
pub fn watch_event(kind: &str, enveloped: &[u8]) -> Option<Vec<u8>> {
    let mut raw = Vec::new();
    bytes(&mut raw, 1, enveloped);
    let mut message = Vec::with_capacity(raw.len() + 32);
    string(&mut message, 1, kind);
    bytes(&mut message, 2, &raw);
    let mut out = u32::try_from(message.len()).ok()?.to_be_bytes().to_vec();
    out.append(&mut message);
    Some(out)
}
