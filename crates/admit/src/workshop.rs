//! From a definition to what admission knows about a kind.

use crate::{Resource, Scale};
use scantling_cel::kubernetes::Version as Kubernetes;
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
    /// The version has no schema.
    #[error("there is no schema")]
    NoSchema,
    /// Its schema has no structural form. Definitions of old may have such schemas.
    #[error("the schema is not structural: {0}")]
    NotStructural(Unsupported),
    /// No server serves objects of the definition.
    #[error("a default stands in no object, and servers serve no such kind")]
    NotServable,
}

impl Default for Workshop {
    fn default() -> Self {
        Self::for_version(Kubernetes::LATEST)
    }
}

impl Workshop {
    /// A workshop for rules as that version of Kubernetes understands them.
    pub fn for_version(version: Kubernetes) -> Self {
        Workshop {
            interner: Interner::new(),
            compiler: Compiler::for_version(version),
        }
    }

    /// The resource of a version of a definition.
    pub fn resource(&mut self, spec: &Spec, version: &Version) -> Result<Resource, Unchecked> {
        let schema = spec.schema_of(version).ok_or(Unchecked::NoSchema)?;
        if !spec.is_servable() {
            return Err(Unchecked::NotServable);
        }
        let structural = Schema::new(schema).structural(&mut self.interner);
        let structural = structural.map_err(Unchecked::NotStructural)?;
        Ok(self.with_schema(spec, version, &structural))
    }

    /// The resource of a version whose objects are not checked.
    pub fn unchecked_resource(&mut self, spec: &Spec, version: &Version) -> Resource {
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
