//! Compiles the versions of CRDs when their first object is read or written.

use crate::kinds::definitions;
use crate::metrics::{Conversions, Metrics};
use crate::rest::conversion::RecentConversions;
use prometheus_client::metrics::histogram::Histogram;
use scantling_admit::{Gates, Resource, ResourceCompiler};
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_merge::typed::ObjectType;
use scantling_schema::definition::{Accepted, Definition};
use scantling_schema::publish;
use scantling_schema::rules::Environments;
use scantling_store::Entry;
use scantling_value::deadline;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// The state that all compiled CRDs share.
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    resources: Arc<Mutex<ResourceCompiler>>,
    pub(crate) gates: Gates,
    pub(crate) environments: Environments,
    /// The durations of compilations.
    took: Histogram,
    pub(super) conversions: Conversions,
    pub(super) recent: Arc<RecentConversions>,
}

impl Compiler {
    /// Returns a compiler for CRDs under these gates.
    pub(crate) fn new(gates: Gates, metrics: &Metrics) -> Self {
        let version = KubernetesVersion::LATEST;
        Compiler {
            resources: Arc::new(Mutex::new(ResourceCompiler::for_version(version))),
            gates,
            environments: Environments::for_version(version),
            took: metrics.compilation(),
            conversions: metrics.conversions(),
            recent: Arc::default(),
        }
    }
}

/// A CRD whose versions are compiled on demand. It is kept as it is stored, because most of its schemas are never used.
#[derive(Debug)]
pub(crate) struct CrdSource {
    pub(super) entry: Arc<Entry>,
    pub(super) compiler: Compiler,
}

impl CrdSource {
    /// Decodes the CRD. It was decoded when its kind was published, so a failure is logged.
    pub(super) fn definition(&self) -> Result<Definition, String> {
        definitions::decode(&self.entry, self.compiler.gates).map_err(|error| {
            tracing::error!(key = %self.entry.key, error, "a definition in use cannot be decoded");
            format!("the definition {} cannot be decoded", self.entry.key)
        })
    }

    /// Compiles one version. Kinds with a version that does not compile are not served, see
    /// [`Kind::servable`](crate::kinds::kind::Kind::servable).
    fn compile(&self, version: usize) -> Result<Arc<Resource>, String> {
        let accepted = Accepted::assume_accepted(self.definition()?);
        let version = accepted
            .spec
            .versions()
            .get(version)
            .ok_or_else(|| format!("the definition has no version {version}"))?;
        // Other requests wait for the lock, and for this version.
        deadline::suspended(|| {
            let resources = &self.compiler.resources;
            // One compiler for all CRDs, because they share parts of their schemas.
            let mut resources = resources.lock().unwrap_or_else(PoisonError::into_inner);
            let started = Instant::now();
            let compiled = resources.compile(&accepted, &version.name);
            self.compiler.took.observe(started.elapsed().as_secs_f64());
            compiled.map(Arc::new).map_err(|why| why.to_string())
        })
    }
}

/// A version, compiled on first use.
#[derive(Debug)]
pub(crate) struct CompiledVersion {
    /// The compiled version, or the reason why it does not compile.
    resource: OnceLock<Result<Arc<Resource>, String>>,
    object_type: OnceLock<Option<ObjectType>>,
    pub(super) source: Arc<CrdSource>,
    /// The position in the CRD.
    pub(super) position: usize,
}

impl CompiledVersion {
    /// The version of a CRD at a position.
    pub(super) fn new(source: &Arc<CrdSource>, position: usize) -> CompiledVersion {
        CompiledVersion {
            resource: OnceLock::new(),
            object_type: OnceLock::new(),
            source: Arc::clone(source),
            position,
        }
    }

    /// The compiled version.
    pub(super) fn resource(&self) -> Result<&Arc<Resource>, &str> {
        let compile = || {
            let compiled = self.source.compile(self.position);
            compiled.inspect_err(|why| tracing::error!(%why, "a schema does not compile"))
        };
        self.resource
            .get_or_init(compile)
            .as_ref()
            .map_err(String::as_str)
    }

    /// An upper bound of the number of checks per value; the maximum if the version has not been compiled.
    pub(super) fn weight(&self) -> u32 {
        let compiled = self.resource.get().and_then(|r| r.as_ref().ok());
        compiled.map_or(u32::MAX, |resource| resource.plan.root().weight())
    }

    /// The type by which fields are owned and merged.
    pub(super) fn object_type(&self) -> Option<&ObjectType> {
        let make = || {
            // Writes to a version that does not compile are refused before field ownership matters.
            let resource = self.resource().ok()?;
            let ty = ObjectType::new(Arc::clone(resource.plan.root().schema()));
            if !resource.preserve_unknown_fields {
                return Some(ty);
            }
            let spec = self.source.definition().ok()?.spec;
            let version = spec.versions().get(self.position)?;
            Some(match publish::merges_by_schema(&spec, version) {
                true => ty.preserving_unknown_fields(),
                false => ObjectType::free(),
            })
        };
        self.object_type.get_or_init(make).as_ref()
    }
}
