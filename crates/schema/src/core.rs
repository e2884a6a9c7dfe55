//! The core kinds that clients cannot do without: their documents, decoded as a Kubernetes API server decodes them.

use scantling_apitypes::decode::{self, DecodeSource, Finding};
use scantling_apitypes::{DecodeError, Extensions, TypeDef, TypeTable};
use scantling_value::{Map, Value};

/// A core kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreKind {
    /// `Namespace`
    Namespace,
    /// `Event`
    Event,
    /// `Event` of the group that events have for themselves, which has other names for its fields
    NewEvent,
    /// `ConfigMap`
    ConfigMap,
    /// `Secret`
    Secret,
    /// `Lease`
    Lease,
    /// `Scale`, which any kind may have as a subresource
    Scale,
    /// `SelfSubjectAccessReview`
    AccessReview,
    /// `SelfSubjectRulesReview`
    RulesReview,
    /// `SelfSubjectReview`
    SelfReview,
    /// `ConversionReview`, in which webhooks answer
    ConversionReview,
}

/// A document that fits its kind.
#[derive(Debug)]
pub struct CoreObject {
    /// The members, without unset and empty ones.
    pub members: Map,
    /// Unknown and duplicate fields, in the order of the document.
    pub findings: Vec<Finding>,
}

/// Reads the options of a deletion; what they do not have is left out.
pub fn decode_delete_options(document: Value) -> Result<Map, DecodeError> {
    read_delete_options(document)
}

/// Reads a text that is known to be valid JSON as the options of a deletion, to the letter.
pub fn decode_delete_options_text(text: &[u8]) -> Result<Map, DecodeError> {
    read_delete_options(decode::decode_raw(text)?)
}

fn read_delete_options(document: impl DecodeSource) -> Result<Map, DecodeError> {
    let table = TypeTable::latest();
    let options = table.known("meta/v1", "DeleteOptions");
    let decoded = table.decode(options, document, Extensions::NONE)?;
    Ok(table.canonical(options, decoded.members))
}

impl CoreKind {
    /// Reads a document of the kind.
    pub fn decode(self, document: Value) -> Result<CoreObject, DecodeError> {
        self.read(document)
    }

    /// Reads a text that is known to be valid JSON to the letter: fields may stand twice, and of several faults the first
    /// is told.
    pub fn decode_text(self, text: &[u8]) -> Result<CoreObject, DecodeError> {
        self.read(decode::decode_raw(text)?)
    }

    /// Brings the values of a document that was made, not sent, into their types, as far as they are not; its first
    /// misfit is told in the words for such documents. Unknown fields go; it is told where they stood.
    pub fn convert(self, document: &mut Value) -> Result<Vec<Finding>, DecodeError> {
        TypeTable::latest().convert(self.definition(), document, Extensions::NONE)
    }

    /// The kind's type.
    pub fn definition(self) -> &'static TypeDef {
        let (package, name) = match self {
            CoreKind::Namespace => ("core/v1", "Namespace"),
            CoreKind::Event => ("core/v1", "Event"),
            CoreKind::NewEvent => ("events/v1", "Event"),
            CoreKind::ConfigMap => ("core/v1", "ConfigMap"),
            CoreKind::Secret => ("core/v1", "Secret"),
            CoreKind::Lease => ("coordination/v1", "Lease"),
            CoreKind::Scale => ("autoscaling/v1", "Scale"),
            CoreKind::AccessReview => ("authorization/v1", "SelfSubjectAccessReview"),
            CoreKind::RulesReview => ("authorization/v1", "SelfSubjectRulesReview"),
            CoreKind::SelfReview => ("authentication/v1", "SelfSubjectReview"),
            CoreKind::ConversionReview => ("apiextensions/v1", "ConversionReview"),
        };
        TypeTable::latest().known(package, name)
    }

    fn read(self, document: impl DecodeSource) -> Result<CoreObject, DecodeError> {
        let (table, definition) = (TypeTable::latest(), self.definition());
        let mut decoded = table.decode(definition, document, Extensions::NONE)?;
        keep_empty_managed_fields(&mut decoded.members);
        Ok(CoreObject {
            members: table.canonical(definition, decoded.members),
            findings: decoded.findings,
        })
    }
}

/// An empty list of managers means that nobody manages the object any more, as does a list of one empty entry. Only the
/// latter is left when empty fields go.
fn keep_empty_managed_fields(members: &mut Map) {
    let metadata = members.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(Value::Array(managers)) = metadata.and_then(|m| m.get_mut("managedFields"))
        && managers.is_empty()
    {
        managers.push(Value::Object(Map::new()));
    }
}
