//! Custom resources: the kinds that CRDs define.

mod compiler;

pub(crate) use compiler::Compiler;

use self::compiler::{CompiledVersion, CrdSource};
use crate::discovery::api_version;
use crate::kinds::codec::KindCodec;
use crate::kinds::kind::{Kind, PATCH_TYPES, Protobuf, ServedIncarnation, ServedSubresource, Version};
use crate::kinds::rules::KindRules;
use crate::rest::conversion::Webhook;
use crate::rest::entry_cache::next_serial;
use crate::status::{ApiError, ApiResult};
use crate::tables::{Column, Columns};
use base64::Engine as _;
use scantling_admit::{AnyResource, NormalizeMode, Resource, ScalePaths, prune, prune_and_default_stored};
use scantling_builtin::{KindBehavior, KindFacts};
use scantling_merge::typed::ObjectType;
use scantling_schema::definition::{self, Definition};
use scantling_schema::names::group_version;
use scantling_schema::publish::{self, OpenApiVersion};
use scantling_store::Entry;
use scantling_value::{Str, Value};
use sha2::Digest as _;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The behavior of all custom resources, as far as no CRD decides it.
static BEHAVIOR: KindBehavior = KindBehavior::new(KindFacts {
    unconditional_update: false,
    status_keeps: &[&["spec"], &["metadata"]],
    ..KindFacts::new("", "")
});

const VERBS: &[&str] = &[
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];

/// The verbs of a kind whose CRD is being deleted.
const TERMINATING_VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "watch"];

const SUBRESOURCE_VERBS: &[&str] = &["get", "patch", "update"];

/// The kind of a CRD whose names are accepted.
pub(crate) fn kind(
    definition: &Definition,
    entry: &Arc<Entry>,
    compiler: &Compiler,
    incarnation: ServedIncarnation,
) -> Kind {
    let spec = &definition.spec;
    let names = &definition.status.accepted_names;
    let source = Arc::new(CrdSource {
        entry: Arc::clone(entry),
        compiler: compiler.clone(),
    });
    let own = |s: &Str| s.to_string();
    let list = |l: &Option<Vec<Str>>| l.iter().flatten().map(own).collect();
    let versions = spec.versions();
    let compiled = versions.iter().enumerate();
    let compiled = compiled.map(|(i, v)| (own(&v.name), CompiledVersion::new(&source, i)));
    let custom = Arc::new(Custom {
        versions: compiled.collect(),
        webhook: Webhook::new(definition, &compiler.conversions, &compiler.recent),
    });
    let storage = versions
        .iter()
        .find(|v| v.storage)
        // Validation requires exactly one storage version: only a CRD that another program damaged has none.
        .map_or("v1", |v| v.name.as_str());
    let is_terminating = definition.has_condition("Terminating");
    Kind {
        // The kind comes from the accepted names: a change of names that conflicts is not served yet.
        storage_hash: Some(storage_hash(&spec.group, storage, &names.kind)),
        group: own(&spec.group),
        key_group: own(&spec.group),
        object_group: own(&spec.group),
        plural: own(&spec.names.plural),
        singular: own(&names.singular),
        kind: own(&names.kind),
        list_kind: own(&names.list_kind),
        short_names: list(&names.short_names),
        categories: list(&names.categories),
        namespaced: spec.scope != "Cluster",
        versions: versions.iter().map(|v| version(definition, v)).collect(),
        codec: Arc::clone(&custom) as Arc<dyn KindCodec>,
        rules: custom,
        behavior: &BEHAVIOR,
        patch_types: PATCH_TYPES,
        protobuf: Protobuf::Unsupported,
        status_has_columns: true,
        precondition_failed: None,
        review: None,
        leaving: is_terminating || definition.metadata.get("deletionTimestamp").is_some(),
        servable: spec.is_servable(),
        built_in: false,
        verbs: match is_terminating {
            true => TERMINATING_VERBS.to_vec(),
            false => VERBS.to_vec(),
        },
        mark: entry.mod_revision.to_string(),
        serial: next_serial(),
        incarnation,
    }
}

fn version(definition: &Definition, v: &definition::CrdVersion) -> Version {
    let spec = &definition.spec;
    let subresources = spec.subresources_of(v);
    let scale = subresources.and_then(|s| s.scale.as_ref()).map(ScalePaths::from);
    let status = subresources.is_some_and(|s| s.status);
    let endpoints = [
        status.then(|| ServedSubresource {
            name: "status",
            group: None,
            version: None,
            kind: definition.status.accepted_names.kind.to_string().into(),
            verbs: SUBRESOURCE_VERBS.to_vec(),
        }),
        scale.as_ref().map(|_| ServedSubresource {
            name: "scale",
            group: Some("autoscaling"),
            version: Some("v1"),
            kind: "Scale".into(),
            verbs: SUBRESOURCE_VERBS.to_vec(),
        }),
    ];
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
        status,
        scale,
        subresources: endpoints.into_iter().flatten().collect(),
        columns: Columns::new(&columns),
        selectable: spec
            .selectable_fields_of(v)
            .iter()
            .map(|f| f.trim_start_matches('.').to_owned())
            .collect(),
    }
}

/// The hash by which discovery tells storage versions apart.
fn storage_hash(group: &str, version: &str, kind: &str) -> String {
    let digest: [u8; 32] = sha2::Sha256::digest(format!("{group}/{version}/{kind}")).into();
    let [a, b, c, d, e, f, g, h, ..] = digest;
    base64::engine::general_purpose::STANDARD.encode([a, b, c, d, e, f, g, h])
}

/// The codec and the rules of a custom resource.
#[derive(Debug)]
pub(crate) struct Custom {
    /// Each version by name.
    versions: Vec<(String, CompiledVersion)>,
    webhook: Option<Webhook>,
}

/// A kind whose objects a webhook converts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByWebhook<'a> {
    pub(crate) custom: &'a Custom,
    pub(crate) webhook: &'a Webhook,
}

impl Custom {
    fn compiled(&self, version: &str) -> Option<&CompiledVersion> {
        self.versions.iter().find(|(n, _)| n == version).map(|(_, c)| c)
    }

    /// Returns a compiled version that a client may have named; `None` if the kind does not have it.
    fn resource_named(&self, version: &str) -> Result<Option<&Arc<Resource>>, &str> {
        self.compiled(version).map(CompiledVersion::resource).transpose()
    }

    /// Returns a compiled version that the kind must have.
    fn own_resource(&self, version: &str) -> Result<&Arc<Resource>, String> {
        match self.resource_named(version)? {
            Some(resource) => Ok(resource),
            None => {
                tracing::error!(version, "a version that is served has not been compiled");
                Err(format!("version {version} has not been compiled"))
            }
        }
    }

    /// Returns a stored object in the version in which it was written, which provides its defaults.
    pub(crate) fn load(&self, kind: &Kind, mut stored: Value) -> ApiResult<Value> {
        let written = written_version(&stored);
        let Some(resource) = self.resource_named(written).map_err(ApiError::internal_error)? else {
            let version = api_version(&kind.group, written);
            return Err(ApiError::unreadable(format!(
                "request to convert CR from an invalid group/version: {version}"
            )));
        };
        prune_and_default_stored(resource, &mut stored)
            .map_err(|why| ApiError::unreadable(why.to_string()))?;
        Ok(stored)
    }

    /// Returns an object in a version, without the fields that the version does not have.
    pub(crate) fn convert(&self, kind: &Kind, version: &str, mut object: Value) -> ApiResult<Value> {
        if let Some(m) = object.as_object_mut() {
            m.insert("apiVersion", api_version(&kind.group, version).into());
        }
        let resource = self.own_resource(version).map_err(ApiError::internal_error)?;
        prune(resource, &mut object);
        Ok(object)
    }
}

impl KindCodec for Custom {
    fn webhook(&self) -> Option<ByWebhook<'_>> {
        let webhook = self.webhook.as_ref()?;
        Some(ByWebhook {
            custom: self,
            webhook,
        })
    }

    fn read(&self, kind: &Kind, version: &Version, stored: Value) -> ApiResult<Value> {
        // `load` prunes by the written version, so only another version needs more.
        let is_asked = written_version(&stored) == version.name;
        let loaded = self.load(kind, stored)?;
        match is_asked {
            true => Ok(loaded),
            false => self.convert(kind, &version.name, loaded),
        }
    }

    fn store(&self, kind: &Kind, version: &Version, object: Value) -> ApiResult<Value> {
        match kind.storage_version() {
            Some(storage) if storage.name != version.name => self.convert(kind, &storage.name, object),
            _ => Ok(object),
        }
    }

    fn object_type(&self, version: &str) -> Option<&ObjectType> {
        self.compiled(version)?.object_type()
    }

    fn published(
        &self,
        kind: &Kind,
        versions: &[&Version],
        format: OpenApiVersion,
    ) -> Result<Vec<Value>, String> {
        let Some((_, any)) = self.versions.first() else {
            return Err(format!("{}.{} has no versions", kind.plural, kind.group));
        };
        // The schemas are decoded again for a document: keeping them for every CRD would take far more memory.
        let definition = any.source.definition()?;
        let positions: BTreeMap<&str, usize> = self
            .versions
            .iter()
            .map(|(name, compiled)| (name.as_str(), compiled.position))
            .collect();
        let schema = |version: &&Version| {
            let position = *positions.get(version.name.as_str())?;
            let version = definition.spec.versions().get(position)?;
            Some(publish::object_schema(&definition, version, format))
        };
        let published = |version: &&Version| {
            schema(version).ok_or_else(|| {
                let Kind { plural, group, .. } = kind;
                format!(
                    "version {} of {plural}.{group} is served but not defined",
                    version.name
                )
            })
        };
        versions.iter().map(published).collect()
    }
}

impl KindRules for Custom {
    fn resource(&self, version: &Version) -> Result<AnyResource<'_>, String> {
        Ok(self.own_resource(&version.name)?.into())
    }

    fn normalization(
        &self,
        version: &Version,
        object: &Value,
    ) -> Result<(AnyResource<'_>, NormalizeMode), String> {
        let asked = self.own_resource(&version.name)?;
        let (api_version, kind) = (object.get_str("apiVersion"), object.get_str("kind"));
        let (group, name) = group_version(api_version);
        let is_own = group == group_version(&asked.api_version).0 && kind == asked.kind;
        let is_list = kind.ends_with("List") && object.get("items").is_some_and(|i| i.as_array().is_some());
        let own = self.resource_named(name)?.filter(|_| is_own);
        // kube-apiserver prunes by the version that the object names, and compares it with the path only later.
        Ok(match own {
            Some(own) => (own.into(), NormalizeMode::Request),
            None if is_own && !asked.preserve_unknown_fields => (asked.into(), NormalizeMode::UnknownVersion),
            None if is_list && !is_own => (asked.into(), NormalizeMode::List),
            None => (asked.into(), NormalizeMode::OtherKind),
        })
    }

    fn weight(&self, version: &Version) -> u32 {
        self.compiled(&version.name)
            // Unknown counts as heavy: the request may have to compile the version.
            .map_or(u32::MAX, CompiledVersion::weight)
    }

    fn check_selectable(&self, kind: &Kind, version: &Version, field: &str) -> Result<(), String> {
        let known = field == "metadata.name"
            || (field == "metadata.namespace" && kind.namespaced)
            || version.selectable.iter().any(|s| s == field);
        if known {
            Ok(())
        } else {
            Err(format!("field label not supported: {field}"))
        }
    }
}

/// The version that an object names.
fn written_version(object: &Value) -> &str {
    group_version(object.get_str("apiVersion")).1
}
