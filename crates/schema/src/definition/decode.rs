//! Decodes a document as a CRD.

use super::members::MemberValue;
use super::types;
use super::{ApiVersion, Definition, Gates};
use scantling_apitypes::decode::{self, DecodeSource};
use scantling_apitypes::{DecodeError, Extensions, TypeTable};
use scantling_value::{Finding, FindingList, Value};

/// A decoded CRD.
#[derive(Debug)]
pub struct DecodedDefinition {
    /// The CRD with its defaults.
    pub definition: Definition,
    /// Unknown and duplicate fields, in document order.
    pub findings: Vec<Finding>,
}

impl Definition {
    /// Decodes a document of either version and sets its defaults.
    pub fn decode(
        document: Value,
        version: ApiVersion,
        gates: Gates,
    ) -> Result<DecodedDefinition, DecodeError> {
        Definition::read(document, version, gates)
    }

    /// Decodes valid JSON text: fields may be repeated, and the first of several errors is reported.
    pub fn decode_text(
        text: &[u8],
        version: ApiVersion,
        gates: Gates,
    ) -> Result<DecodedDefinition, DecodeError> {
        Definition::read(decode::decode_raw(text)?, version, gates)
    }

    /// Converts the values of a document that a patch or an apply produced to their types; fails at the first
    /// mismatch, with the messages for such documents. Removes unknown fields and returns their paths.
    pub fn convert(
        document: &mut Value,
        version: ApiVersion,
        gates: Gates,
    ) -> Result<FindingList, DecodeError> {
        TypeTable::latest().convert(types::definition(version), document, extensions(gates))
    }

    /// Converts a document from either version to another. Sets no defaults: a partial CRD stays partial.
    pub fn document_in(document: Value, version: ApiVersion, gates: Gates) -> Result<Value, DecodeError> {
        let written_in = ApiVersion::of_document(&document);
        let mut received = Definition::parse(document, written_in, gates)?;
        if written_in == ApiVersion::V1 {
            received.definition.spec.hoist_shared_settings();
        }
        Ok(received.definition.into_document(version))
    }

    fn read(
        document: impl DecodeSource,
        version: ApiVersion,
        gates: Gates,
    ) -> Result<DecodedDefinition, DecodeError> {
        let mut received = Definition::parse(document, version, gates)?;
        let definition = &mut received.definition;
        definition.set_defaults(version);
        if version == ApiVersion::V1 {
            definition.spec.hoist_shared_settings();
        }
        Ok(received)
    }

    /// Decodes a document without setting defaults.
    fn parse(
        document: impl DecodeSource,
        version: ApiVersion,
        gates: Gates,
    ) -> Result<DecodedDefinition, DecodeError> {
        let decoded = TypeTable::latest().decode(types::definition(version), document, extensions(gates))?;
        let mut members = decoded.members;
        let mut definition = Definition {
            metadata: MemberValue::read(members.remove("metadata"), version),
            spec: MemberValue::read(members.remove("spec"), version),
            status: MemberValue::read(members.remove("status"), version),
        };
        if version == ApiVersion::V1 {
            // `v1` does not distinguish unset from false.
            definition.spec.preserve_unknown_fields.get_or_insert(false);
        }
        Ok(DecodedDefinition {
            definition,
            findings: decoded.findings,
        })
    }
}

/// The fields that gates add to schemas.
fn extensions(gates: Gates) -> Extensions {
    let of = |gate, extension| if gate { extension } else { Extensions::NONE };
    of(gates.immutability, Extensions::IMMUTABILITY)
        .with(of(gates.unions, Extensions::UNIONS))
        .with(of(gates.rules_on_create, Extensions::APPLIES_ON_CREATE))
}
