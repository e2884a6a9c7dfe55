//! Strict decoding of JSON into API types, as kube-apiserver's decoder does it.
//!
//! One walk over a document checks every value against its type. It drops `null`s and the fields that the type does not
//! have, and reports the latter. The first value of a wrong type is an error in the words of Go's decoder.

pub(crate) mod base64;
mod decoder;
mod source;

pub use source::{DecodeSource, SourceNode, SourceNumber};

use crate::{Extensions, GoType, TypeDef, TypeTable};
use decoder::Decoder;
use scantling_value::json::{self, RawJson};
use scantling_value::{Finding, Limits, Map, Value};
use std::fmt;

/// The deepest nesting of a typed document: far beyond any real object, and safe for every later walk over it.
pub(crate) const MAX_DEPTH: usize = 400;

const TOO_DEEP: &str = "exceeded max depth";

/// An object that fits its type.
#[derive(Debug)]
pub struct DecodedObject {
    /// The members that the type has.
    pub members: Map,
    /// The unknown and duplicate fields, in the order of the document.
    pub findings: Vec<Finding>,
}

/// A value that does not fit its field, in the words of Go's decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError(pub(crate) String);

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DecodeError {}

/// Reads a text that is known to be valid JSON as it is written, so that duplicate fields and the notation of numbers
/// are still there when it is decoded.
pub fn decode_raw(text: &[u8]) -> Result<RawJson, DecodeError> {
    let limits = Limits { depth: MAX_DEPTH };
    json::decode_raw(text, limits).map_err(|_| DecodeError(TOO_DEEP.into()))
}

impl TypeTable {
    /// Decodes an object of a type. A field that occurs twice is decoded twice, into the same place.
    pub fn decode(
        &self,
        definition: &TypeDef,
        document: impl DecodeSource,
        extensions: Extensions,
    ) -> Result<DecodedObject, DecodeError> {
        Decoder::new(self, extensions)
            .decode(document, definition)
            .map_err(DecodeError)
    }

    /// Decodes an object of a type as kube-apiserver holds it in memory; see [`TypeTable::in_memory`]. Fails if the
    /// fields that are always written add too much to it.
    pub fn decode_in_memory(
        &self,
        definition: &TypeDef,
        document: impl DecodeSource,
    ) -> Result<DecodedObject, DecodeError> {
        Decoder::in_memory(self)
            .decode(document, definition)
            .map_err(DecodeError)
    }

    /// The first fault of a value that is decoded for itself, wherever it belongs.
    pub(crate) fn check(&self, value: Value, ty: &GoType, extensions: Extensions) -> Result<(), String> {
        Decoder::new(self, extensions).check(value, ty)
    }

    /// Returns the zero value of a Go type: what a field that is not set holds.
    pub fn zero(&self, ty: &GoType) -> Value {
        use crate::{Codec, TypeKind};
        match ty {
            GoType::String | GoType::Bytes => "".into(),
            GoType::Bool => false.into(),
            GoType::Int32 | GoType::Int64 | GoType::Float64 => 0.into(),
            GoType::Any | GoType::Pointer(_) | GoType::List(_) | GoType::Map(_) => Value::Null,
            GoType::Named(id) => match &self.get(*id).kind {
                TypeKind::Named(inner) => self.zero(inner),
                TypeKind::Struct(_) => self.canonical(self.get(*id), Map::new()).into(),
                TypeKind::Custom(Codec::Quantity) => "0".into(),
                TypeKind::Custom(Codec::IntOrString) => 0.into(),
                TypeKind::Custom(_) => Value::Null,
            },
        }
    }
}

#[cfg(test)]
mod tests;
