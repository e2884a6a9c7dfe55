//! Encodings: media types, JSON, YAML, CBOR, protobuf, indented JSON, and stored text.

pub(crate) mod cbor;
pub(crate) mod media;
pub(crate) mod order;
pub(crate) mod pretty;
pub(crate) mod protobuf;
pub(crate) mod scheme;
pub(crate) mod text;
