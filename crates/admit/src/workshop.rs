//! From a definition to what admission knows about a kind.

use crate::{Resource, Scale};
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::definition::{Spec, Version};
use scantling_schema::document::{Schema, Unsupported};
use scantling_schema::meta::Scope;
use scantling_schema::plan::Compiler;
use scantling_schema::structural::{Interner, Structural};
use std::sync::Arc;

/// Makes the resources of definitions, and remembers what they share.
#[derive(Debug)]
pub struct Workshop {
    interner: Interner,
    compiler: Compiler,
}

/// Why the objects of a version cannot be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unchecked {
    /// The version has no schema, and fields that no schema describes are dropped.
    #[error("there is no schema")]
    NoSchema,
    /// Its schema uses a keyword that definitions may not use.
    #[error("{0}")]
    Unsupported(Unsupported),
    /// No server serves objects of the definition.
    #[error("a default stands in no object, and servers serve no such kind")]
    NotServable,
}

impl Default for Workshop {
    fn default() -> Self {
        Self::for_version(KubernetesVersion::LATEST)
    }
}

impl Workshop {
    /// A workshop for rules as that version of Kubernetes understands them.
    pub fn for_version(version: KubernetesVersion) -> Self {
        Workshop {
            interner: Interner::new(),
            compiler: Compiler::for_version(version),
        }
    }

    /// The resource of a version of a definition.
    pub fn resource(&mut self, spec: &Spec, version: &Version) -> Result<Resource, Unchecked> {
        let Some(schema) = spec.schema_of(version) else {
            return if spec.preserves_unknown_fields() {
                Ok(self.resource_without_schema(spec, version))
            } else {
                Err(Unchecked::NoSchema)
            };
        };
        let schema = Schema::new(schema).for_values(&mut self.interner);
        let schema = schema.map_err(Unchecked::Unsupported)?;
        if !spec.has_usable_defaults() {
            return Err(Unchecked::NotServable);
        }
        Ok(self.with_schema(spec, version, &schema))
    }

    /// The resource of a version without a schema: only the metadata of its objects are checked.
    pub fn resource_without_schema(&mut self, spec: &Spec, version: &Version) -> Resource {
        self.with_schema(spec, version, &Arc::new(Structural::default()))
    }

    fn with_schema(&mut self, spec: &Spec, version: &Version, schema: &Arc<Structural>) -> Resource {
        let subresources = spec.subresources_of(version);
        let scale = subresources.and_then(|s| s.scale.as_ref()).map(Scale::from);
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
