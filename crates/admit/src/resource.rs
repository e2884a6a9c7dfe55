//! A version of a kind that a CRD defines.

use scantling_schema::definition;
use scantling_schema::meta::Scope;
use scantling_schema::plan::{Plan, PlanNode};
use scantling_value::Str;
use std::sync::Arc;

/// A compiled version of a CRD. Only a [`ResourceCompiler`](crate::ResourceCompiler) makes one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Resource {
    /// The compiled schema.
    pub plan: Plan,
    /// The kind: `Widget`.
    pub kind: Str,
    /// Group and version: `example.com/v1`.
    pub api_version: Str,
    /// The scope of the kind.
    pub scope: Scope,
    /// Whether `/status` is served, which then is the only way to write `status`.
    pub status: bool,
    /// The fields behind `/scale`, if it is served.
    pub scale: Option<ScalePaths>,
    /// Whether unknown fields are kept everywhere, as CRDs of v1beta1 may ask for.
    pub preserve_unknown_fields: bool,
}

impl Resource {
    /// Reports whether a new object reads back from the store as it was admitted. Otherwise reading may change it: a
    /// status that a create drops may have a default, and the metadata of embedded objects in defaults is coerced on
    /// reading.
    pub fn creates_normalized(&self) -> bool {
        let root = self.plan.root();
        let has_default = |status: &Arc<PlanNode>| status.schema().default.is_some();
        let defaults_status = self.status && root.property("status").is_some_and(has_default);
        !defaults_status && !root.has_embedded_defaults()
    }
}

/// The fields behind `/scale`, as paths with a leading dot: `.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalePaths {
    /// The path of the desired number of replicas.
    pub spec_replicas: Str,
    /// The path of the observed number of replicas.
    pub status_replicas: Str,
    /// The path of the label selector, a string.
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

/// The treatment of unknown and duplicate fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// The request is rejected.
    Strict,
    /// The fields are dropped with a warning.
    #[default]
    Warn,
    /// The fields are dropped.
    Ignore,
}
