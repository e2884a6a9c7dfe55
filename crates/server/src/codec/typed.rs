//! Documents of built-in types, decoded by the table of API types.

use scantling_apitypes::decode::{self, DecodeSource};
use scantling_apitypes::{DecodeError, Extensions, TypeDef, TypeTable};
use scantling_schema::Finding;
use scantling_value::{Map, Value};

/// A document that fits its type.
#[derive(Debug)]
pub(crate) struct TypedDocument {
    /// The members, without unset and empty ones.
    pub(crate) members: Map,
    /// Unknown and duplicate fields, in the order of the document.
    pub(crate) findings: Vec<Finding>,
}

/// Decodes a document.
pub(crate) fn decode(definition: &TypeDef, document: Value) -> Result<TypedDocument, DecodeError> {
    read(definition, document)
}

/// Decodes a text that is known to be valid JSON. Fields may occur twice, and of several errors the first in the text is
/// returned.
pub(crate) fn decode_text(definition: &TypeDef, text: &[u8]) -> Result<TypedDocument, DecodeError> {
    read(definition, decode::decode_raw(text)?)
}

/// Converts the values of a document that a patch or an apply made to their types. Removes unknown fields and returns
/// them.
pub(crate) fn convert(definition: &TypeDef, document: &mut Value) -> Result<Vec<Finding>, DecodeError> {
    TypeTable::latest().convert(definition, document, Extensions::NONE)
}

fn read(definition: &TypeDef, document: impl DecodeSource) -> Result<TypedDocument, DecodeError> {
    let table = TypeTable::latest();
    let mut decoded = table.decode(definition, document, Extensions::NONE)?;
    spell_out_no_managers(&mut decoded.members);
    Ok(TypedDocument {
        members: table.canonical(definition, decoded.members),
        findings: decoded.findings,
    })
}

/// An empty list of managers clears them, as does a list of one empty entry. Only the latter survives when empty fields
/// are removed.
fn spell_out_no_managers(members: &mut Map) {
    let metadata = members.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(Value::Array(managers)) = metadata.and_then(|m| m.get_mut("managedFields"))
        && managers.is_empty()
    {
        managers.push(Value::Object(Map::new()));
    }
}
