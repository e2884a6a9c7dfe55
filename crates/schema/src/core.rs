//! The core kinds that clients cannot do without: their documents, decoded as a Kubernetes API server decodes them.

use crate::wire::source::Source;
use crate::wire::{self, DecodeError, Options, core, reviews};
use scantling_value::{Map, PathBuf, Value};

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
    /// The fields that the kind does not have.
    pub unknown: Vec<PathBuf>,
    /// The fields that stand twice, as far as the document tells.
    pub repeated: Vec<PathBuf>,
}

const OPTIONS: Options = Options {
    package: "v1",
    immutability: false,
    unions: false,
    applies_on_create: false,
};

/// Reads the options of a deletion; what they do not have is left out.
pub fn decode_delete_options(document: Value) -> Result<Map, DecodeError> {
    read_delete_options(document)
}

/// Reads a text that is known to be valid JSON as the options of a deletion, to the letter.
pub fn decode_delete_options_text(text: &[u8]) -> Result<Map, DecodeError> {
    read_delete_options(wire::written(text)?)
}

fn read_delete_options(document: impl Source) -> Result<Map, DecodeError> {
    let decoded = core::DELETE_OPTIONS.decode(document, OPTIONS)?;
    Ok(core::DELETE_OPTIONS.canonical(decoded.members))
}

impl CoreKind {
    /// Reads a document of the kind.
    pub fn decode(self, document: Value) -> Result<CoreObject, DecodeError> {
        self.read(document)
    }

    /// Reads a text that is known to be valid JSON to the letter: fields may stand twice, and of several faults the first
    /// is told.
    pub fn decode_text(self, text: &[u8]) -> Result<CoreObject, DecodeError> {
        self.read(wire::written(text)?)
    }

    /// Brings the values of a document that was made, not sent, into their types, as far as they are not; its first
    /// misfit is told in the words for such documents. Unknown fields go; it is told where they stood.
    pub fn convert(self, document: &mut Value) -> Result<Vec<PathBuf>, DecodeError> {
        self.fields().convert(document, OPTIONS)
    }

    fn fields(self) -> &'static wire::Struct {
        match self {
            CoreKind::Namespace => &core::NAMESPACE,
            CoreKind::Event => &core::EVENT,
            CoreKind::NewEvent => &core::NEW_EVENT,
            CoreKind::ConfigMap => &core::CONFIG_MAP,
            CoreKind::Secret => &core::SECRET,
            CoreKind::Lease => &core::LEASE,
            CoreKind::Scale => &core::SCALE,
            CoreKind::AccessReview => &reviews::ACCESS_REVIEW,
            CoreKind::RulesReview => &reviews::RULES_REVIEW,
            CoreKind::SelfReview => &reviews::SELF_REVIEW,
            CoreKind::ConversionReview => &reviews::CONVERSION_REVIEW,
        }
    }

    fn read(self, document: impl Source) -> Result<CoreObject, DecodeError> {
        let kind = self.fields();
        let mut decoded = kind.decode(document, OPTIONS)?;
        spell_out_no_managers(&mut decoded.members);
        Ok(CoreObject {
            members: kind.canonical(decoded.members),
            unknown: decoded.unknown,
            repeated: decoded.repeated,
        })
    }
}

/// An empty list of managers means that nobody manages the object any more, as does a list of one empty entry. Only the
/// latter is left when empty fields go.
fn spell_out_no_managers(members: &mut Map) {
    let metadata = members.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(Value::Array(managers)) = metadata.and_then(|m| m.get_mut("managedFields"))
        && managers.is_empty()
    {
        managers.push(Value::Object(Map::new()));
    }
}
