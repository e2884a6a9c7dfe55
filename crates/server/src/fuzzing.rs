//! Entry points of fuzz targets.

use crate::codec::cbor;
use crate::codec::protobuf;
use scantling_value::Value;

/// Decodes bytes as a CBOR and a protobuf body; decoded bodies round-trip.
pub fn read_body(bytes: &[u8]) {
    if let Ok(value) = cbor::decode(bytes) {
        let read = cbor::decode(&cbor::encode(&value));
        assert_eq!(read.as_ref(), Ok(&value));
    }
    let _ = (cbor::decode_object(bytes), cbor::notation(bytes));
    if let Ok(envelope) = protobuf::open(bytes)
        && let Some(definition) = protobuf::described(&envelope)
        && let Ok(value) = protobuf::read(&envelope, definition)
    {
        let written = protobuf::write(&value).unwrap_or_default();
        let read = protobuf::open(&written).and_then(|envelope| protobuf::read(&envelope, definition));
        assert_eq!(read.as_ref().map(Value::to_json), Ok(value.to_json()));
    }
}
