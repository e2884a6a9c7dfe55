//! Kubernetes' protobuf encoding of built-in kinds.
//!
//! Clients in Go send and ask for built-in objects in this encoding unless told otherwise. Custom resources have none;
//! their metadata and statuses about them have. Messages follow from the table of API types.

pub(crate) use scantling_apitypes::protobuf::{
    Envelope, boolean, bytes, double, is_enveloped, length, number, open, string,
};

use scantling_apitypes::{TypeDef, TypeTable, protobuf};
use scantling_value::{Limits, Value};

/// The type of the object in an envelope; nothing where its kind has no protobuf encoding.
pub(crate) fn described(envelope: &Envelope<'_>) -> Option<&'static TypeDef> {
    TypeTable::latest().protobuf_kind(envelope.api_version, envelope.kind)
}

/// The object in an envelope, read as one of a type, with its version and kind.
pub(crate) fn read(envelope: &Envelope<'_>, definition: &TypeDef) -> Result<Value, String> {
    let read = TypeTable::latest().read_protobuf(definition, envelope.message, Limits::SERVER.depth);
    let mut object = read?;
    object.insert("apiVersion", envelope.api_version.into());
    object.insert("kind", envelope.kind.into());
    Ok(object.into())
}

/// Whether objects of a kind have this encoding.
pub(crate) fn has_form(api_version: &str, kind: &str) -> bool {
    TypeTable::latest().protobuf_kind(api_version, kind).is_some()
}

/// An object in the envelope; nothing for kinds that do not have this encoding.
pub(crate) fn write(object: &Value) -> Option<Vec<u8>> {
    TypeTable::latest().write_envelope(object)
}

/// An event of a watch.
pub(crate) fn event(kind: &str, object: &Value) -> Option<Vec<u8>> {
    protobuf::watch_event(kind, &write(object)?)
}
