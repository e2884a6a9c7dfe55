//! Kubernetes' protobuf encoding of built-in kinds.
//!
//! Go clients use it for built-in objects by default. Custom resources do not have it, but their metadata and
//! statuses do. The table of API types defines the messages.

pub(crate) use scantling_apitypes::protobuf::{
    Envelope, boolean, bytes, double, is_enveloped, length, number, open, string,
};

use scantling_apitypes::{TypeDef, TypeTable, protobuf};
use scantling_value::{Limits, Value};

/// Returns the type of the object in an envelope; `None` if its kind has no protobuf encoding.
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

/// Returns whether objects of a kind have this encoding.
pub(crate) fn has_form(api_version: &str, kind: &str) -> bool {
    TypeTable::latest().protobuf_kind(api_version, kind).is_some()
}

/// Encodes an object in the envelope; `None` for kinds without this encoding.
pub(crate) fn write(object: &Value) -> Option<Vec<u8>> {
    TypeTable::latest().write_envelope(object)
}

/// The field of the items in every list.
const ITEMS: u64 = 2;

/// The item of a list, as a field of the list; `None` for kinds without this encoding.
pub(crate) fn list_item(api_version: &str, kind: &str, item: &Value) -> Option<Vec<u8>> {
    let table = TypeTable::latest();
    let mut message = Vec::with_capacity(1024);
    table.write_protobuf(
        table.protobuf_kind(api_version, kind)?,
        item.as_object()?,
        &mut message,
    );
    let mut out = Vec::with_capacity(message.len() + 8);
    bytes(&mut out, ITEMS, &message);
    Some(out)
}

/// The texts before and after the items of a list, which have that many bytes.
pub(crate) fn around_items(list: &Value, items: usize) -> Option<(Vec<u8>, Vec<u8>)> {
    let (api_version, kind) = (list.get_str("apiVersion"), list.get_str("kind"));
    let table = TypeTable::latest();
    let mut message = Vec::new();
    table.write_protobuf(
        table.protobuf_kind(api_version, kind)?,
        list.as_object()?,
        &mut message,
    );
    let (mut before, mut after) = (Vec::new(), Vec::new());
    protobuf::begin_envelope(&mut before, api_version, kind, message.len() + items);
    // The metadata is field 1, so it precedes the items, as in Go's encoding.
    before.append(&mut message);
    protobuf::end_envelope(&mut after);
    Some((before, after))
}

/// An event of a watch.
pub(crate) fn event(kind: &str, object: &Value) -> Option<Vec<u8>> {
    protobuf::watch_event(kind, &write(object)?)
}
