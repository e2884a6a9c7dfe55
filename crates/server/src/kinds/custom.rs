//! Custom resources: kinds that definitions make.

use crate::kinds::kind::{Kind, Version};
use crate::kinds::strategy::{Strategy, WriteContext};
use crate::rest::conversion::Webhook;
use crate::status::{ApiError, ApiResult};
use scantling_admit::{
    AdmissionError, AdmitOptions, AdmitOutcome, FieldValidation, Gates, NormalizeMode, Normalized, Resource,
    WriteOperation, prune, prune_and_default_stored,
};
use scantling_merge::typed::ObjectType;
use scantling_schema::names::group_version;
use scantling_schema::publish::{self, OpenApiVersion};
use scantling_value::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How a definition's objects are read and written.
#[derive(Debug)]
pub(crate) struct Custom {
    /// Each version by name, compiled when its first object comes along.
    pub(crate) versions: Vec<(String, Compiled)>,
    pub(crate) gates: Gates,
    pub(crate) webhook: Option<Webhook>,
}

/// A version, compiled on first use.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The compiled version, or the reason why it does not compile.
    pub(crate) resource: OnceLock<Result<Arc<Resource>, String>>,
    pub(crate) object_type: OnceLock<Option<ObjectType>>,
    pub(crate) source: Arc<crate::kinds::definitions::Source>,
    pub(crate) version: usize,
}

impl Compiled {
    fn resource(&self) -> Result<&Arc<Resource>, &str> {
        let compile = || {
            let compiled = self.source.compile(self.version);
            compiled.inspect_err(|why| tracing::error!(%why, "a schema does not compile"))
        };
        self.resource
            .get_or_init(compile)
            .as_ref()
            .map_err(String::as_str)
    }

    fn object_type(&self) -> Option<&ObjectType> {
        let make = || {
            // Objects of a version that does not compile are refused before anyone owns their fields.
            let resource = self.resource().ok()?;
            let ty = ObjectType::new(Arc::clone(resource.plan.root().schema()));
            if !resource.preserve_unknown_fields {
                return Some(ty);
            }
            let spec = self.source.definition().ok()?.spec;
            let version = spec.versions().get(self.version)?;
            Some(match publish::merges_by_schema(&spec, version) {
                true => ty.preserving_unknown_fields(),
                false => ObjectType::free(),
            })
        };
        self.object_type.get_or_init(make).as_ref()
    }
}

/// A kind whose objects a webhook converts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByWebhook<'a> {
    pub(crate) custom: &'a Custom,
    pub(crate) webhook: &'a Webhook,
}

impl Custom {
    fn compiled(&self, version: &str) -> Option<&Compiled> {
        self.versions.iter().find(|(n, _)| n == version).map(|(_, c)| c)
    }

    /// A compiled version that a client may have named; none if the kind does not have it.
    fn resource(&self, version: &str) -> Result<Option<&Arc<Resource>>, &str> {
        self.compiled(version).map(Compiled::resource).transpose()
    }

    /// A compiled version that the kind must have.
    fn own_resource(&self, version: &str) -> Result<&Arc<Resource>, String> {
        match self.resource(version)? {
            Some(resource) => Ok(resource),
            None => {
                tracing::error!(version, "a version that is served has not been compiled");
                Err(format!("version {version} has not been compiled"))
            }
        }
    }

    /// A stored object as the version shows it in which it was written.
    pub(crate) fn load(&self, kind: &Kind, mut stored: Value) -> ApiResult<Value> {
        // Defaults come from the version that the object was written in, which may be another than that of today.
        let written = written_version(&stored);
        let Some(resource) = self.resource(written).map_err(ApiError::internal_error)? else {
            let version = crate::discovery::api_version(&kind.group, written);
            return Err(ApiError::unreadable(format!(
                "request to convert CR from an invalid group/version: {version}"
            )));
        };
        prune_and_default_stored(resource, &mut stored)
            .map_err(|why| ApiError::unreadable(why.to_string()))?;
        Ok(stored)
    }

    /// An object under the name of a version, without what that version does not know.
    pub(crate) fn convert(&self, kind: &Kind, version: &str, mut object: Value) -> ApiResult<Value> {
        if let Some(m) = object.as_object_mut() {
            m.insert(
                "apiVersion",
                crate::discovery::api_version(&kind.group, version).into(),
            );
        }
        let resource = self.own_resource(version).map_err(ApiError::internal_error)?;
        prune(resource, &mut object);
        Ok(object)
    }
}

impl Strategy for Custom {
    fn by_webhook(&self) -> Option<ByWebhook<'_>> {
        let webhook = self.webhook.as_ref()?;
        Some(ByWebhook {
            custom: self,
            webhook,
        })
    }

    fn read(&self, kind: &Kind, version: &Version, stored: Value) -> ApiResult<Value> {
        let is_asked = written_version(&stored) == version.name;
        let loaded = self.load(kind, stored)?;
        // What the requested version does not know goes.
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

    fn checks(&self, version: &Version) -> u32 {
        let compiled = self.versions.iter().find(|(name, _)| *name == version.name);
        let resource = compiled.and_then(|(_, compiled)| compiled.resource.get());
        // A version that is not compiled yet may be anything.
        let weight = |resource: &Arc<Resource>| resource.plan.root().weight();
        resource.and_then(|r| r.as_ref().ok()).map_or(u32::MAX, weight)
    }

    fn receive(
        &self,
        version: &Version,
        object: &mut Value,
        found: &[String],
        mode: FieldValidation,
    ) -> Result<Vec<String>, AdmissionError> {
        let options = AdmitOptions {
            gates: self.gates,
            field_validation: mode,
            ..AdmitOptions::default()
        };
        let asked = self
            .own_resource(&version.name)
            .map_err(AdmissionError::Internal)?;
        let said = |field| object.get_str(field);
        let (api_version, kind) = (said("apiVersion"), said("kind"));
        let (group, name) = group_version(api_version);
        let is_own = group == group_version(&asked.api_version).0 && kind == asked.kind;
        // What is sent may be of any version of the kind, of one that the kind does not have, or of another kind.
        let own = self
            .resource(name)
            .map_err(|why| AdmissionError::Internal(why.to_owned()))?;
        let own = own.filter(|_| is_own);
        if kind.ends_with("List") && !is_own && object.get("items").is_some_and(|i| i.as_array().is_some()) {
            // A list where an object should be: it is refused for its kind, and its fields are nobody's.
            return crate::kinds::builtin::report_findings(found.to_vec(), mode);
        }
        match own {
            Some(resource) => normalize(resource, object, found, NormalizeMode::Request, &options),
            None if is_own && !asked.preserve_unknown_fields => {
                normalize(asked, object, found, NormalizeMode::UnknownVersion, &options)
            }
            None => normalize(asked, object, found, NormalizeMode::OtherKind, &options),
        }
    }

    fn receive_applied(&self, version: &Version, object: &mut Value) -> Result<(), AdmissionError> {
        // What the schema does not know is judged with the rest: only reading drops it.
        let resource = self
            .own_resource(&version.name)
            .map_err(AdmissionError::Internal)?;
        let options = AdmitOptions {
            gates: self.gates,
            ..AdmitOptions::default()
        };
        normalize(resource, object, &[], NormalizeMode::Applied, &options)?;
        Ok(())
    }

    fn decide(
        &self,
        version: &Version,
        operation: WriteOperation<'_>,
        object: Value,
        _context: &WriteContext<'_>,
    ) -> AdmitOutcome {
        let clock = clock();
        let options = AdmitOptions {
            gates: self.gates,
            clock: Some(&clock),
            ..AdmitOptions::default()
        };
        match self.own_resource(&version.name) {
            Ok(resource) => Normalized::resume(resource, object)
                .prepare(operation, &options)
                .and_then(scantling_admit::Prepared::validate)
                .into(),
            Err(why) => AdmitOutcome {
                object,
                error: Some(AdmissionError::Internal(why)),
                warnings: Vec::new(),
                stats: Default::default(),
            },
        }
    }

    fn takes_strategic_patches(&self) -> bool {
        false
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
        let definition = any.source.definition()?;
        let positions: BTreeMap<&str, usize> = self
            .versions
            .iter()
            .map(|(name, compiled)| (name.as_str(), compiled.version))
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

    fn selectable(&self, kind: &Kind, version: &Version, field: &str) -> Result<(), String> {
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

/// The version that an object says it is of.
fn written_version(object: &Value) -> &str {
    group_version(object.get_str("apiVersion")).1
}

/// Normalizes an object in place and returns warnings.
fn normalize(
    resource: &Resource,
    object: &mut Value,
    found: &[String],
    mode: NormalizeMode,
    options: &AdmitOptions<'_>,
) -> Result<Vec<String>, AdmissionError> {
    match Normalized::new(resource, std::mem::take(object), found, mode, options) {
        Ok(normalized) => {
            let (normal, warnings) = normalized.into_parts();
            *object = normal;
            Ok(warnings)
        }
        Err(rejected) => {
            *object = rejected.object;
            Err(rejected.error)
        }
    }
}

/// A clock for what ratcheting and rules take.
fn clock() -> impl Fn() -> Duration {
    let start = std::time::Instant::now();
    move || start.elapsed()
}
