//! Compiles accepted CRDs to resources.

use crate::{Resource, ScalePaths};
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::definition::Accepted;
use scantling_schema::document::{Schema, UnsupportedKeyword};
use scantling_schema::meta::Scope;
use scantling_schema::plan::PlanCompiler;
use scantling_schema::structural::{Interner, Structural};
use std::sync::Arc;

/// Compiles versions of CRDs to resources, which share equal schemas and rules.
#[derive(Debug)]
pub struct ResourceCompiler {
    interner: Interner,
    compiler: PlanCompiler,
}

/// The reason why a version of an accepted CRD does not compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The CRD does not have the version.
    #[error("the CRD has no such version")]
    UnknownVersion,
    /// A schema of a stored CRD uses a keyword that CRDs may not use any more.
    #[error("{0}")]
    Unsupported(UnsupportedKeyword),
    /// The default is unreachable; kube-apiserver does not serve this kind.
    #[error("a default stands in no object, and servers serve no such kind")]
    NotServable,
}

impl Default for ResourceCompiler {
    fn default() -> Self {
        Self::for_version(KubernetesVersion::LATEST)
    }
}

impl ResourceCompiler {
    /// Returns a compiler for the rules of a version of Kubernetes.
    pub fn for_version(version: KubernetesVersion) -> Self {
        ResourceCompiler {
            interner: Interner::new(),
            compiler: PlanCompiler::for_version(version),
        }
    }

    /// Compiles a version of an accepted CRD. Without a schema, only metadata is checked.
    pub fn compile(&mut self, accepted: &Accepted, version: &str) -> Result<Resource, CompileError> {
        let spec = &accepted.spec;
        let version = spec.version(version).ok_or(CompileError::UnknownVersion)?;
        let schema = match spec.schema_of(version) {
            // Stored CRDs may have schemas that are not structural.
            Some(schema) => Schema::new(schema)
                .for_values(&mut self.interner)
                .map_err(CompileError::Unsupported)?,
            None => Arc::new(Structural::default()),
        };
        if !spec.has_usable_defaults() {
            return Err(CompileError::NotServable);
        }
        let subresources = spec.subresources_of(version);
        Ok(Resource {
            plan: self.compiler.compile(&schema),
            kind: spec.names.kind.clone(),
            api_version: format!("{}/{}", spec.group, version.name).into(),
            scope: if spec.scope == "Cluster" {
                Scope::Cluster
            } else {
                Scope::Namespaced
            },
            status: subresources.is_some_and(|s| s.status),
            scale: subresources.and_then(|s| s.scale.as_ref()).map(ScalePaths::from),
            preserve_unknown_fields: spec.preserves_unknown_fields(),
        })
    }
}
