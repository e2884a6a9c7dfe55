//! What admission knows about a kind, and how it is told to behave.

use scantling_schema::definition;
use scantling_schema::meta::Scope;
use scantling_schema::plan::Plan;
use scantling_value::Str;

/// One served version of a kind.
#[derive(Clone, Debug)]
pub struct Resource {
    /// The compiled schema.
    pub plan: Plan,
    /// The kind: `Widget`.
    pub kind: Str,
    /// Group and version: `example.com/v1`.
    pub api_version: Str,
    /// Whether its objects live in namespaces.
    pub scope: Scope,
    /// Whether `/status` is served: then it alone writes `status`.
    pub status: bool,
    /// The fields behind `/scale`, if it is served.
    pub scale: Option<ScalePaths>,
    /// Whether fields that the schema does not describe stay everywhere, as definitions of old could ask for.
    pub preserve_unknown_fields: bool,
}

/// The fields behind `/scale`, as paths with a leading dot: `.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The wanted number.
    pub spec_replicas: Str,
    /// The actual number.
    pub status_replicas: Str,
    /// The selector as text.
    pub label_selector: Option<Str>,
}

impl From<&definition::ScaleSubresource> for ScalePaths {
    fn from(scale: &definition::ScaleSubresource) -> Self {
        ScalePaths {
            spec_replicas: scale.spec_replicas_path.clone(),
            status_replicas: scale.status_replicas_path.clone(),
            label_selector: scale.label_selector_path.clone().filter(|path| !path.is_empty()),
        }
    }
}

/// What becomes of fields that a schema does not know, and of fields that stand twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// The request is refused.
    Strict,
    /// The fields are dropped with a warning.
    #[default]
    Warn,
    /// The fields are dropped.
    Ignore,
}
