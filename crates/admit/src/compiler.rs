//! From a definition to what admission knows about a kind.

use crate::{Resource, ScalePaths};
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::definition::{CrdVersion, Spec};
use scantling_schema::document::{Schema, UnsupportedKeyword};
use scantling_schema::meta::Scope;
use scantling_schema::plan::PlanCompiler;
use scantling_schema::structural::{Interner, Structural};
use std::sync::Arc;

/// Makes the resources of definitions, and remembers what they share.
#[derive(Debug)]
pub struct ResourceCompiler {
    interner: Interner,
    compiler: PlanCompiler,
}

/// Why the objects of a version cannot be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The version has no schema, and fields that no schema describes are dropped.
    #[error("there is no schema")]
    NoSchema,
    /// Its schema uses a keyword that definitions may not use.
    #[error("{0}")]
    Unsupported(UnsupportedKeyword),
    /// No server serves objects of the definition.
    #[error("a default stands in no object, and servers serve no such kind")]
    NotServable,
}

impl Default for ResourceCompiler {
    fn default() -> Self {
        Self::for_version(KubernetesVersion::LATEST)
    }
}

impl ResourceCompiler {
    /// A compiler for rules as that version of Kubernetes understands them.
    pub fn for_version(version: KubernetesVersion) -> Self {
        ResourceCompiler {
            interner: Interner::new(),
            compiler: PlanCompiler::for_version(version),
        }
    }

    /// The resource of a version of a definition.
    pub fn resource(&mut self, spec: &Spec, version: &CrdVersion) -> Result<Resource, CompileError> {
        let Some(schema) = spec.schema_of(version) else {
            return if spec.preserves_unknown_fields() {
                Ok(self.resource_without_schema(spec, version))
            } else {
                Err(CompileError::NoSchema)
            };
        };
        let schema = Schema::new(schema).for_values(&mut self.interner);
        let schema = schema.map_err(CompileError::Unsupported)?;
        if !spec.has_usable_defaults() {
            return Err(CompileError::NotServable);
        }
        Ok(self.with_schema(spec, version, &schema))
    }

    /// The resource of a version without a schema: only the metadata of its objects are checked.
    pub fn resource_without_schema(&mut self, spec: &Spec, version: &CrdVersion) -> Resource {
        self.with_schema(spec, version, &Arc::new(Structural::default()))
    }

    fn with_schema(&mut self, spec: &Spec, version: &CrdVersion, schema: &Arc<Structural>) -> Resource {
        let subresources = spec.subresources_of(version);
        let scale = subresources.and_then(|s| s.scale.as_ref()).map(ScalePaths::from);
        Resource {
            plan: self.compiler.compile(schema),
            kind: spec.names.kind.clone(),
            api_version: format!("{}/{}", spec.group, version.name).into(),
            scope: if spec.scope == "Cluster" {
                Scope::Cluster
            } else {
                Scope::Namespaced
            },
            status: subresources.is_some_and(|s| s.status),
            scale,
            preserve_unknown_fields: spec.preserves_unknown_fields(),
        }
    }
}
