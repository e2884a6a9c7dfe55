//! CustomResourceDefinitions: their own kind, and the controller that turns them into kinds that are served.
//!
//! The controller follows the store: whichever server wrote a definition, every server sees it, settles its status and
//! serves it. All decisions are functions of the definitions that there are; the controller only carries them out.

mod pending;

pub(crate) use pending::PendingDefinitions;

use crate::api::Api;
use crate::codec::text::Stored;
use crate::kinds::builtin;
use crate::kinds::custom::{Compiled, Custom};
use crate::kinds::kind::{Kind, Kinds, ServedIncarnation, Version};
use crate::kinds::strategy::{Strategy, WriteContext};
use crate::metrics::{Conversions, Metrics};
use crate::rest::body::DecodedBody;
use crate::rest::conversion::Webhook;
use crate::status::{ApiError, ApiResult};
use crate::tables::{Column, Columns};
use prometheus_client::metrics::histogram::Histogram;
use scantling_admit::{
    AdmissionError, AdmitOutcome, CompileError, FieldValidation, Gates, Resource, ResourceCompiler,
    ScalePaths, Stats, WriteOperation,
};
use scantling_cel::kubernetes;
use scantling_merge::typed::ObjectType;
use scantling_schema::definition::{self, Accepted, ApiVersion, Definition, ValidationContext};
use scantling_schema::names::group_version;
use scantling_schema::rules::Environments;
use scantling_schema::structural::Structural;
use scantling_store::Entry;
use scantling_value::{Map, Value, deadline};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// The group of definitions.
pub(crate) const GROUP: &str = "apiextensions.k8s.io";
/// The plural name of definitions.
pub(crate) const PLURAL: &str = "customresourcedefinitions";

/// What compiled definitions share.
#[derive(Clone, Debug)]
pub(crate) struct Compiler {
    workshop: Arc<Mutex<ResourceCompiler>>,
    pub(crate) gates: Gates,
    environments: Environments,
    /// How long compilations take.
    took: Histogram,
    /// How conversions go.
    conversions: Conversions,
}

impl Compiler {
    /// A compiler for definitions under these gates.
    pub(crate) fn new(gates: Gates, metrics: &Metrics) -> Self {
        let version = kubernetes::KubernetesVersion::LATEST;
        Compiler {
            workshop: Arc::new(Mutex::new(ResourceCompiler::for_version(version))),
            gates,
            environments: Environments::for_version(version),
            took: metrics.compilation(),
            conversions: metrics.conversions(),
        }
    }

    /// Does something that compiles rules.
    fn timed<T>(&self, compile: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let made = compile();
        self.took.observe(started.elapsed().as_secs_f64());
        made
    }
}

/// Decodes a definition of the store.
pub(crate) fn decode(entry: &Entry, gates: Gates) -> Result<Definition, String> {
    let stored = crate::rest::read::stored(entry).map_err(|e| e.message().to_owned())?;
    let written_as = ApiVersion::of_document(&stored);
    let received = Definition::decode(stored, written_as, gates).map_err(|e| e.to_string())?;
    Ok(received.definition)
}

/// A definition that kinds are compiled from when their first object comes along. Most of it is schemas, and most of
/// these are never used: it stays as it is stored, and is decoded when it is needed.
#[derive(Debug)]
pub(crate) struct Source {
    entry: Arc<Entry>,
    compiler: Compiler,
}

impl Source {
    /// The definition. It was decoded when its kind came to be, so that it can be again; if it cannot, that is logged.
    pub(crate) fn definition(&self) -> Result<Definition, String> {
        decode(&self.entry, self.compiler.gates).map_err(|error| {
            tracing::error!(key = %self.entry.key, error, "a definition in use cannot be decoded");
            format!("the definition {} cannot be decoded", self.entry.key)
        })
    }

    /// Compiles one version. Kinds with a version that does not compile are not served, see [`Kind::servable`].
    pub(crate) fn compile(&self, version: usize) -> Result<Arc<Resource>, String> {
        let definition = self.definition()?;
        let spec = &definition.spec;
        let version = spec
            .versions()
            .get(version)
            .ok_or_else(|| format!("the definition has no version {version}"))?;
        // Others wait for the same workshop, and for this very version.
        deadline::suspended(|| {
            let mut workshop = self
                .compiler
                .workshop
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let resource = match self.compiler.timed(|| workshop.resource(spec, version)) {
                // Versions that are not served need no schema.
                Err(CompileError::NoSchema) => workshop.resource_without_schema(spec, version),
                resource => resource.map_err(|why| why.to_string())?,
            };
            Ok(Arc::new(resource))
        })
    }
}

/// The kind that a definition makes, once its names are accepted.
pub(crate) fn kind(
    definition: &Definition,
    entry: &Arc<Entry>,
    compiler: &Compiler,
    incarnation: ServedIncarnation,
) -> Kind {
    let spec = &definition.spec;
    let names = &definition.status.accepted_names;
    let source = Arc::new(Source {
        entry: Arc::clone(entry),
        compiler: compiler.clone(),
    });
    let own = |s: &scantling_value::Str| s.to_string();
    let list = |l: &Option<Vec<scantling_value::Str>>| l.iter().flatten().map(own).collect();
    let compiled = spec.versions().iter().enumerate().map(|(i, v)| {
        let c = Compiled {
            resource: OnceLock::new(),
            object_type: OnceLock::new(),
            source: Arc::clone(&source),
            version: i,
        };
        (own(&v.name), c)
    });
    let versions = spec.versions().iter().map(|v| version(definition, v)).collect();
    Kind {
        group: own(&spec.group),
        plural: own(&spec.names.plural),
        singular: own(&names.singular),
        kind: own(&names.kind),
        list_kind: own(&names.list_kind),
        short_names: list(&names.short_names),
        categories: list(&names.categories),
        namespaced: spec.scope != "Cluster",
        versions,
        strategy: Arc::new(Custom {
            versions: compiled.collect(),
            gates: compiler.gates,
            webhook: Webhook::new(definition, &compiler.conversions),
        }),
        review: None,
        leaving: definition.has_condition("Terminating")
            || definition.metadata.get("deletionTimestamp").is_some(),
        terminating: definition.has_condition("Terminating"),
        servable: spec.is_servable(),
        built_in: false,
        verbs: Vec::new(),
        storage_hash: None,
        mark: entry.mod_revision.to_string(),
        serial: crate::codec::text::next_serial(),
        incarnation,
    }
}

fn version(definition: &Definition, v: &definition::CrdVersion) -> Version {
    let spec = &definition.spec;
    let subresources = spec.subresources_of(v);
    let scale = subresources.and_then(|s| s.scale.as_ref()).map(ScalePaths::from);
    let columns: Vec<Column> = spec
        .columns_of(v)
        .iter()
        .map(|c| Column {
            name: c.name.to_string(),
            kind: c.ty.to_string(),
            format: c.format.to_string(),
            description: c.description.to_string(),
            priority: c.priority,
            path: c.json_path.to_string(),
        })
        .collect();
    Version {
        name: v.name.to_string(),
        served: v.served,
        storage: v.storage,
        deprecation: spec.deprecation(v),
        status: subresources.is_some_and(|s| s.status),
        scale,
        subresources: Vec::new(),
        columns: Columns::new(&columns),
        selectable: spec
            .selectable_fields_of(v)
            .iter()
            .map(|f| f.trim_start_matches('.').to_owned())
            .collect(),
    }
}

/// The kind of definitions itself.
#[derive(Debug)]
pub(crate) struct Definitions {
    compiler: Compiler,
    v1: builtin::Model,
    v1beta1: builtin::Model,
}

fn api_version(version: &Version) -> ApiVersion {
    if version.name == "v1beta1" {
        ApiVersion::V1Beta1
    } else {
        ApiVersion::V1
    }
}

impl Definitions {
    /// The kind of definitions that this compiler accepts.
    pub(crate) fn new(compiler: Compiler) -> Definitions {
        let model = |version| builtin::Model::new(GROUP, version, "CustomResourceDefinition");
        Definitions {
            compiler,
            v1: model("v1"),
            v1beta1: model("v1beta1"),
        }
    }

    fn decode(&self, object: Value, api: ApiVersion) -> Result<(Definition, Vec<String>), String> {
        let received = Definition::decode(object, api, self.compiler.gates).map_err(|e| e.to_string())?;
        let unknown = builtin::findings(&received.findings);
        Ok((received.definition, unknown))
    }
}

impl Strategy for Definitions {
    fn checks(&self, _version: &Version) -> u32 {
        // Few bytes of a schema or a rule may be much work.
        u32::MAX
    }

    fn read(&self, _kind: &Kind, version: &Version, stored: Value) -> ApiResult<Value> {
        let written_as = ApiVersion::of_document(&stored);
        let (definition, _) = self
            .decode(stored, written_as)
            .map_err(|e| ApiError::internal_error("a stored definition cannot be read").private(e))?;
        Ok(definition.into_document(api_version(version)))
    }

    fn store(&self, _kind: &Kind, version: &Version, object: Value) -> ApiResult<Value> {
        if version.name == "v1" {
            return Ok(object);
        }
        let decoded = self.decode(object, api_version(version));
        let (definition, _) = decoded.map_err(|why| {
            tracing::error!(error = why, "a definition that was accepted cannot be decoded");
            ApiError::internal_error(why)
        })?;
        Ok(definition.into_document(ApiVersion::V1))
    }

    fn receive(
        &self,
        version: &Version,
        object: &mut Value,
        found: &[String],
        mode: FieldValidation,
    ) -> Result<Vec<String>, AdmissionError> {
        let (definition, unknown) = self
            .decode(std::mem::take(object), api_version(version))
            .map_err(AdmissionError::Undecodable)?;
        *object = definition.into_held_document(api_version(version));
        builtin::report_joined_findings(found, unknown, mode)
    }

    fn convert(&self, version: &Version, object: &mut Value) -> Result<Vec<String>, String> {
        let unknown = Definition::convert(object, api_version(version), self.compiler.gates);
        Ok(builtin::findings(&unknown.map_err(|e| e.to_string())?))
    }

    fn in_version(&self, object: Value, api_version: &str) -> Result<Value, String> {
        let wanted = match group_version(api_version).1 {
            "v1beta1" => ApiVersion::V1Beta1,
            _ => ApiVersion::V1,
        };
        if ApiVersion::of_document(&object) == wanted {
            return Ok(object);
        }
        Definition::document_in(object, wanted, self.compiler.gates).map_err(|e| e.to_string())
    }

    fn read_text(&self, version: &Version, text: &[u8]) -> Option<Result<DecodedBody, String>> {
        let api = api_version(version);
        let received = Definition::decode_text(text, api, self.compiler.gates);
        let sent = received.map(|received| DecodedBody {
            object: received.definition.into_held_document(api),
            found: builtin::findings(&received.findings),
        });
        Some(sent.map_err(|e| e.to_string()))
    }

    fn status_has_columns(&self) -> bool {
        false
    }

    /// The protobuf message of Kubernetes has no fields for the extensions, and clients in Go drop fields that they do
    /// not know. A client that reads a definition and writes it back must not remove them unnoticed.
    fn no_protobuf(&self) -> Option<&'static str> {
        let reason = "the protobuf form of CustomResourceDefinition cannot hold x-kubernetes-immutable and its relatives, \
                      x-kubernetes-unions and appliesOnCreate, whose feature gates are on: use JSON, YAML or CBOR";
        self.compiler.gates.extend_definitions().then_some(reason)
    }

    fn bookmark_object(&self, version: &Version) -> Option<Value> {
        let api = api_version(version);
        let (bare, _) = self.decode(Map::new().into(), api).ok()?;
        let mut bare = bare.into_document(api);
        // Not even a default is known of it.
        let spec = bare.as_object_mut()?.get_mut("spec")?;
        spec.as_object_mut()?.remove("conversion");
        Some(bare)
    }

    fn kept_by_status(&self) -> &'static [&'static [&'static str]] {
        &[&["spec"]]
    }

    fn decide(
        &self,
        version: &Version,
        operation: WriteOperation<'_>,
        object: Value,
        _context: &WriteContext<'_>,
    ) -> AdmitOutcome {
        let mut outcome = AdmitOutcome {
            object,
            error: None,
            warnings: Vec::new(),
            stats: Stats::default(),
        };
        outcome.error = self.judge(api_version(version), operation, &mut outcome).err();
        outcome
    }

    fn object_type(&self, version: &str) -> Option<&ObjectType> {
        let model = if version == "v1beta1" {
            &self.v1beta1
        } else {
            &self.v1
        };
        Some(model.object_type())
    }

    fn written(&self, version: &Version, object: &Value) -> Option<Value> {
        Definition::to_version(object, api_version(version))
    }

    fn empty_object(&self, version: &Version) -> Option<Value> {
        Some(Definition::default().into_document(api_version(version)))
    }

    fn selectable(&self, _kind: &Kind, _version: &Version, field: &str) -> Result<(), String> {
        builtin::selectable(field, &builtin::NAMES)
    }

    fn precondition_failed(&self) -> Option<&'static str> {
        Some("precondition failed")
    }

    fn strategic_schema(&self, _version: &Version) -> Option<&Structural> {
        Some(self.v1.strategic())
    }

    fn mark(&self, object: Value, now: &str) -> Result<Option<Value>, String> {
        mark_deleted(object, now, self.compiler.gates).map(Some)
    }
}

impl Definitions {
    fn judge(
        &self,
        api: ApiVersion,
        operation: WriteOperation<'_>,
        outcome: &mut AdmitOutcome,
    ) -> Result<(), AdmissionError> {
        let sent = std::mem::take(&mut outcome.object);
        // A refusal names what it refuses.
        outcome.object = identified(&sent);
        let (mut new, _) = self.decode(sent, api).map_err(AdmissionError::Undecodable)?;
        let gates = self.compiler.gates;
        let setting = ValidationContext {
            api,
            gates,
            environments: &self.compiler.environments,
        };
        let old = match operation {
            WriteOperation::Create(_) => None,
            WriteOperation::Update(old) | WriteOperation::UpdateStatus(old) => {
                let (old, _) = self
                    .decode(old.clone(), api)
                    .map_err(AdmissionError::Undecodable)?;
                builtin::keep_system_fields(&mut new.metadata, &old.metadata);
                if let (WriteOperation::UpdateStatus(_), Some(generation)) =
                    (operation, old.metadata.get("generation"))
                {
                    // Labels and the like may come along with a status; only a specification makes a new generation.
                    new.metadata.insert("generation", generation.clone());
                }
                Some(Accepted::assume_accepted(old))
            }
        };
        if let WriteOperation::Create(identity) = operation {
            identity.apply_to(&mut new.metadata);
            if let Some(name) = new.metadata.get("name")
                && let Some(shown) = crate::rest::write::metadata_mut(&mut outcome.object)
            {
                // A refusal names it, also where it was made up.
                shown.insert("name", name.clone());
            }
        }
        let judged = match (operation, &old) {
            (WriteOperation::UpdateStatus(_), Some(old)) => {
                Accepted::update_status(new, old).map(|a| (a, Vec::new()))
            }
            (_, old) => self.compiler.timed(|| {
                let accepted = match old {
                    Some(old) => Accepted::update(new, old, &setting),
                    None => Accepted::create(new, &setting),
                };
                accepted.map(|a| (a.accepted, a.warnings))
            }),
        };
        let (accepted, warnings) = judged.map_err(AdmissionError::Invalid)?;
        outcome.warnings.extend(warnings);
        outcome.object = accepted.into_inner().into_document(api);
        Ok(())
    }
}

/// What of a document tells which it is.
fn identified(document: &Value) -> Value {
    let name = document.at(["metadata", "name"]).cloned().unwrap_or(Value::Null);
    let kind = document.get("kind").cloned().unwrap_or(Value::Null);
    let metadata = Map::from_iter([("name", name)]);
    Map::from_iter([("kind", kind), ("metadata", metadata.into())]).into()
}

/// Marks a definition as being deleted: its objects go first.
fn mark_deleted(object: Value, now: &str, gates: Gates) -> Result<Value, String> {
    let written_as = ApiVersion::of_document(&object);
    let decoded = Definition::decode(object, written_as, gates).map_err(|e| e.to_string())?;
    let mut definition = decoded.definition;
    definition.metadata.insert("deletionTimestamp", now.into());
    let finalizers = definition
        .metadata
        .get_or_insert_with("finalizers", || Value::Array(Vec::new()));
    let cleanup = Value::from(crate::controllers::crd::CLEANUP);
    if let Some(list) = finalizers.as_array_mut()
        && !list.contains(&cleanup)
    {
        list.push(cleanup);
    }
    let condition = crate::controllers::crd::terminating(
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    );
    definition.set_condition(condition, now);
    Ok(definition.into_document(ApiVersion::V1))
}

impl Api {
    /// Tells the controller of a new definition that is about to be stored.
    pub(crate) fn expect_definition(&self, version: &Version, accepted: &Value, stored: &Stored) {
        let gates = self.compiler.gates;
        debug_assert!(
            Definition::decode(accepted.clone(), api_version(version), gates)
                .is_ok_and(|read| read.definition.into_document(api_version(version)) == *accepted),
            "a definition that was accepted is not in form"
        );
        if version.storage
            && let Some(sketch) = Definition::without_schemas(accepted, gates)
        {
            self.pending.add(stored, sketch);
        }
    }

    /// Serves a definition's kind, or no longer.
    pub(crate) fn publish(&self, update: impl Fn(&mut Kinds)) {
        self.kinds.rcu(|kinds| {
            let mut next = Kinds::clone(kinds);
            update(&mut next);
            next
        });
    }
}
