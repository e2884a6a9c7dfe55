//! Built-in kinds: decoded by the table of API types, with the behaviour that `scantling_builtin` gives them.

use super::{Model, NAMES, findings, keep_system_fields, report_joined_findings, selectable};
use crate::codec::typed;
use crate::discovery::api_version;
use crate::kinds::kind::{Kind, Version};
use crate::kinds::strategy::{Strategy, WriteContext};
use crate::rest::body::DecodedBody;
use crate::rest::write::metadata_mut;
use crate::status::{ApiError, ApiResult};
use scantling_admit::{AdmissionError, AdmitOutcome, FieldValidation, NewObjectMeta, Stats, WriteOperation};
use scantling_apitypes::{TypeDef, TypeTable};
use scantling_builtin::{
    BuiltinKind, Context, GarbageCollection, KindFacts, Operation as BuiltinOperation, Subresource, Write,
};
use scantling_merge::typed::ObjectType;
use scantling_schema::DecodeError;
use scantling_schema::gates::is_on_by_default;
use scantling_schema::meta::{self, Scope};
use scantling_schema::names::group_version;
use scantling_schema::structural::Structural;
use scantling_value::{ErrorList, FieldError, Map, Path, Value, go};
use std::collections::BTreeSet;

/// A built-in kind whose objects are stored.
#[derive(Debug)]
pub(super) struct Typed {
    group: &'static str,
    kind: &'static str,
    facts: &'static KindFacts,
    /// Rules of its own; a kind without them is only decoded.
    behavior: Option<&'static dyn BuiltinKind>,
    /// The served versions.
    versions: Vec<TypedVersion>,
    /// The type of the hub version, in which objects are stored and rules apply.
    hub: &'static TypeDef,
}

/// A served version of a built-in kind.
#[derive(Debug)]
struct TypedVersion {
    name: &'static str,
    definition: &'static TypeDef,
    model: Model,
}

/// The facts of kinds that have no behaviour of their own.
static NAMESPACED: KindFacts = KindFacts::new("", "");
static CLUSTER: KindFacts = KindFacts {
    scope: Scope::Cluster,
    ..KindFacts::new("", "")
};

impl Typed {
    /// The kind of a group with its served versions, all of which the table knows; `hub` names the group and version in
    /// which objects are stored.
    pub(super) fn new(
        group: &'static str,
        kind: &'static str,
        scope: Scope,
        versions: &[&'static str],
        hub: (&'static str, &'static str),
    ) -> Option<Typed> {
        let table = TypeTable::latest();
        let behavior = scantling_builtin::kind(group, kind);
        let default_facts = match scope {
            Scope::Namespaced => &NAMESPACED,
            Scope::Cluster => &CLUSTER,
        };
        let version = |name: &&'static str| {
            Some(TypedVersion {
                name,
                definition: table.kind(group, name, kind)?,
                model: Model::new(group, name, kind),
            })
        };
        Some(Typed {
            group,
            kind,
            facts: behavior.map_or(default_facts, |b| b.facts()),
            behavior,
            versions: versions.iter().map(version).collect::<Option<_>>()?,
            hub: table.kind(hub.0, hub.1, kind)?,
        })
    }

    fn version(&self, name: &str) -> Option<&TypedVersion> {
        self.versions.iter().find(|v| v.name == name)
    }

    fn definition(&self, version: &Version) -> &'static TypeDef {
        self.version(&version.name).map_or(self.hub, |v| v.definition)
    }

    /// The type of objects under another name of the kind: another served version, or a version that was served once.
    fn other_definition(&self, of: &str) -> Option<&'static TypeDef> {
        let (group, version) = group_version(of);
        let is_own = group == self.group || (self.kind == "Event" && matches!(group, "" | "events.k8s.io"));
        let definition = TypeTable::latest().kind(group, version, self.kind);
        definition.filter(|_| is_own)
    }

    fn is_namespace(&self) -> bool {
        self.group.is_empty() && self.kind == "Namespace"
    }

    /// Converts an object of a version to the hub version.
    fn version_to_hub(&self, version: &str, object: Value) -> Result<Value, DecodeError> {
        match (self.behavior, self.version(version)) {
            (Some(behavior), Some(v)) if v.definition.id != self.hub.id => {
                // Fields that are always written differ between versions.
                let decoded = typed::decode(self.hub, behavior.version_to_hub(version, object))?;
                Ok(decoded.members.into())
            }
            _ => Ok(object),
        }
    }

    /// Converts an object of the hub version to a version.
    fn hub_to_version(&self, version: &str, object: Value) -> Result<Value, DecodeError> {
        match (self.behavior, self.version(version)) {
            (Some(behavior), Some(v)) if v.definition.id != self.hub.id => {
                let decoded = typed::decode(v.definition, behavior.hub_to_version(version, object))?;
                Ok(decoded.members.into())
            }
            _ => Ok(object),
        }
    }

    /// Fills in defaults in an object of the hub version.
    fn default(&self, object: &mut Value, context: &Context<'_>) {
        if let (Some(behavior), Some(members)) = (self.behavior, object.as_object_mut()) {
            behavior.default(members, context);
        }
    }

    /// Prepares and validates a write.
    fn decide_in_hub(
        &self,
        operation: WriteOperation<'_>,
        old: Option<&Value>,
        subresource: Subresource,
        context: Context<'_>,
        object: Value,
    ) -> AdmitOutcome {
        let mut members = match with_metadata(object) {
            Ok(members) => members,
            Err(object) => {
                let why = format!("a {} without members or metadata that are an object", self.kind);
                return refused(object, AdmissionError::Internal(why));
            }
        };
        if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
            match (&operation, old) {
                (WriteOperation::Create(identity), _) => mark_new(identity, metadata),
                (_, Some(old)) => keep_system_metadata(metadata, old),
                _ => {}
            }
        }
        let write = Write {
            operation: old.map_or(BuiltinOperation::Create, BuiltinOperation::Update),
            subresource,
            context,
        };
        if let Some(behavior) = self.behavior {
            behavior.prepare(&mut members, &write);
        }
        let object = Value::Object(members);
        let mut own = ErrorList::new();
        if let Some(behavior) = self.behavior {
            behavior.validate(&object, &write, &mut own);
        }
        let mut errors = match self.facts.validates_metadata || old.is_some() || own.is_empty() {
            true => self.check_metadata(&object, old, subresource),
            false => ErrorList::new(),
        };
        errors.extend(own);
        let errors = once(errors);
        let mut warnings = Vec::new();
        if errors.is_empty()
            && let Some(behavior) = self.behavior
        {
            behavior.warn(&object, &write, &mut warnings);
        }
        let object = match errors.is_empty() {
            true => self.as_stored(object, &write.context),
            false => object,
        };
        AdmitOutcome {
            object,
            error: (!errors.is_empty()).then_some(AdmissionError::Invalid(errors)),
            warnings,
            stats: Stats::default(),
        }
    }

    /// An object as it comes back from the store: empty lists are absent, and defaults are filled in again.
    fn as_stored(&self, object: Value, context: &Context<'_>) -> Value {
        let Value::Object(members) = object else {
            return object;
        };
        let mut object = TypeTable::latest().stored(self.hub, members).into();
        self.default(&mut object, context);
        object
    }

    /// Validates the metadata that all kinds share.
    fn check_metadata(&self, object: &Value, old: Option<&Value>, subresource: Subresource) -> ErrorList {
        let KindFacts { scope, names, .. } = *self.facts;
        let at = Path::ROOT.field("metadata");
        let metadata = object.get("metadata");
        let mut errors = match old {
            None => meta::check_new(metadata, scope, names, &at),
            Some(old) => {
                let mut errors = meta::check_common(metadata, scope, &at);
                if subresource == Subresource::None {
                    errors.extend(meta::check_new(metadata, scope, names, &at));
                }
                errors.extend(meta::check_update(metadata, old.get("metadata"), &at));
                errors
            }
        };
        if self.facts.qualifies_finalizers {
            errors.extend(unqualified_finalizers(object));
        }
        errors
    }

    fn undecodable(e: &DecodeError) -> ApiError {
        ApiError::internal_error("a stored object cannot be read").private(e.to_string())
    }
}

/// What rules may depend on besides the object, where nobody asks: objects are read from the store.
fn no_request() -> Context<'static> {
    Context {
        enabled: is_on_by_default,
        now: "",
        user: scantling_builtin::User::default(),
    }
}

fn refused(object: Value, refusal: AdmissionError) -> AdmitOutcome {
    AdmitOutcome {
        object,
        error: Some(refusal),
        warnings: Vec::new(),
        stats: Stats::default(),
    }
}

fn mark_new(identity: &NewObjectMeta, metadata: &mut Map) {
    identity.apply_to(metadata);
}

/// Restores the metadata that only the server writes. Another uid stays, to be refused.
fn keep_system_metadata(metadata: &mut Map, old: &Value) {
    let Some(before) = old.get("metadata").and_then(Value::as_object) else {
        return;
    };
    keep_system_fields(metadata, before);
    match before.get("generation") {
        Some(generation) => metadata.insert("generation", generation.clone()),
        None => metadata.remove("generation"),
    };
    if let Some(version) = before.get("resourceVersion") {
        metadata.get_or_insert_with("resourceVersion", || version.clone());
    }
}

/// Errors that several checks find are reported once.
fn once(mut errors: ErrorList) -> ErrorList {
    let mut seen = BTreeSet::new();
    errors.retain(|error| seen.insert(error.to_string()));
    errors
}

/// The finalizers that are neither standard ones nor name a domain.
fn unqualified_finalizers(object: &Value) -> ErrorList {
    let metadata = Path::ROOT.field("metadata");
    let at = metadata.field("finalizers");
    let finalizers = crate::rest::delete::finalizers(object);
    let is_standard = |f: &str| matches!(f, "kubernetes" | "orphan" | "foregroundDeletion");
    let indexed = finalizers.iter().enumerate();
    indexed
        .filter(|(_, f)| !is_standard(f) && !f.contains('/'))
        .map(|(i, f)| {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            FieldError::invalid(&at.index(i), f.as_str(), why)
        })
        .collect()
}

impl Strategy for Typed {
    fn read(&self, _kind: &Kind, version: &Version, stored: Value) -> ApiResult<Value> {
        // Another server may have written it, in a form that leaves out what is empty.
        let decoded = typed::decode(self.hub, stored).map_err(|e| Typed::undecodable(&e))?;
        let mut object = decoded.members.into();
        self.default(&mut object, &no_request());
        self.hub_to_version(&version.name, object)
            .map_err(|e| Typed::undecodable(&e))
    }

    fn store(&self, _kind: &Kind, version: &Version, object: Value) -> ApiResult<Value> {
        let converted = self.version_to_hub(&version.name, object);
        converted.map_err(|e| ApiError::internal_error(e.to_string()))
    }

    fn receive(
        &self,
        version: &Version,
        object: &mut Value,
        found: &[String],
        mode: FieldValidation,
    ) -> Result<Vec<String>, AdmissionError> {
        let undecodable = |e: DecodeError| AdmissionError::Undecodable(e.to_string());
        let decoded = typed::decode(self.definition(version), std::mem::take(object)).map_err(undecodable)?;
        let mut hub = self
            .version_to_hub(&version.name, decoded.members.into())
            .map_err(undecodable)?;
        self.default(&mut hub, &no_request());
        *object = self.hub_to_version(&version.name, hub).map_err(undecodable)?;
        report_joined_findings(found, findings(&decoded.findings), mode)
    }

    fn convert(&self, version: &Version, object: &mut Value) -> Result<Vec<String>, String> {
        let unknown = typed::convert(self.definition(version), object).map_err(|e| e.to_string())?;
        Ok(findings(&unknown))
    }

    fn in_version(&self, object: Value, of: &str) -> Result<Value, String> {
        let mut object = object;
        let from = object.get_str("apiVersion").to_owned();
        let ((group, from), (to_group, to)) = (group_version(&from), group_version(of));
        if group == self.group && to_group == group && from != to {
            object = self.version_to_hub(from, object).map_err(|e| e.to_string())?;
            object = self.hub_to_version(to, object).map_err(|e| e.to_string())?;
        }
        if let Some(members) = object.as_object_mut() {
            members.insert("apiVersion", of.into());
        }
        Ok(object)
    }

    fn read_text(&self, version: &Version, text: &[u8]) -> Option<Result<DecodedBody, String>> {
        let sent = typed::decode_text(self.definition(version), text).map(|decoded| DecodedBody {
            object: decoded.members.into(),
            found: findings(&decoded.findings),
        });
        Some(sent.map_err(|e| e.to_string()))
    }

    fn decide(
        &self,
        version: &Version,
        operation: WriteOperation<'_>,
        object: Value,
        context: &WriteContext<'_>,
    ) -> AdmitOutcome {
        let old = match operation {
            WriteOperation::Create(_) => None,
            WriteOperation::Update(old) | WriteOperation::UpdateStatus(old) => Some(old),
        };
        let subresource = context.subresource;
        let context = Context {
            enabled: is_on_by_default,
            now: context.now,
            user: context.user,
        };
        let is_hub = self.definition(version).id == self.hub.id;
        if is_hub {
            return self.decide_in_hub(operation, old, subresource, context, object);
        }
        let failed = |e: DecodeError| refused(Value::Null, AdmissionError::Internal(e.to_string()));
        let object = match self.version_to_hub(&version.name, object) {
            Ok(object) => object,
            Err(e) => return failed(e),
        };
        let old = match old
            .map(|old| self.version_to_hub(&version.name, old.clone()))
            .transpose()
        {
            Ok(old) => old,
            Err(e) => return failed(e),
        };
        let mut outcome = self.decide_in_hub(operation, old.as_ref(), subresource, context, object);
        match self.hub_to_version(&version.name, std::mem::take(&mut outcome.object)) {
            Ok(object) => outcome.object = object,
            Err(e) => return failed(e),
        }
        outcome
    }

    fn protection(&self, name: &str) -> Option<&'static str> {
        self.behavior?.protection(name)
    }

    fn kept(&self) -> &'static [&'static [&'static str]] {
        self.facts.keeps
    }

    fn kept_by_status(&self) -> &'static [&'static [&'static str]] {
        self.facts.status_keeps
    }

    fn object_type(&self, version: &str) -> Option<&ObjectType> {
        self.version(version).map(|v| v.model.object_type())
    }

    fn is_also(&self, api_version: &str) -> bool {
        self.other_definition(api_version).is_some()
    }

    fn of_other(&self, version: &Version, of: &str, object: Value) -> Result<DecodedBody, String> {
        let Some(definition) = self.other_definition(of) else {
            return Err(format!("{of} is no other version of the kind"));
        };
        let decoded = typed::decode(definition, object).map_err(|e| e.to_string())?;
        let object: Value = decoded.members.into();
        let (group, from) = group_version(of);
        let object = match scantling_builtin::kind(group, self.kind) {
            Some(behavior) => behavior.version_to_hub(from, object),
            None => object,
        };
        let object = typed::decode(self.hub, object)
            .and_then(|hub| self.hub_to_version(&version.name, hub.members.into()))
            .map_err(|e| e.to_string())?;
        Ok(DecodedBody {
            object,
            found: findings(&decoded.findings),
        })
    }

    fn empty_object(&self, version: &Version) -> Option<Value> {
        let members = [
            ("apiVersion", Value::from(api_version(self.group, &version.name))),
            ("kind", self.kind.into()),
        ];
        let empty = typed::decode(
            self.definition(version),
            Value::Object(members.into_iter().collect()),
        );
        empty.ok().map(|empty| empty.members.into())
    }

    fn selectable(&self, _kind: &Kind, _version: &Version, field: &str) -> Result<(), String> {
        if self.facts.selectable.contains(&field) {
            return Ok(());
        }
        // kube-apiserver has three texts, which depend on how a kind registers its fields.
        Err(match (self.group, self.kind) {
            ("batch", "Job") => format!("field label {} not supported for Job", go::quote(field)),
            ("", "Pod" | "Node" | "ReplicationController" | "Event" | "Namespace" | "Secret" | "Service")
            | ("events.k8s.io" | "certificates.k8s.io" | "resource.k8s.io", _) => {
                format!("field label not supported: {field}")
            }
            _ => match selectable(field, &NAMES) {
                // The kind registers a field that it does not support.
                Ok(()) => format!("field label not supported: {field}"),
                Err(why) => why,
            },
        })
    }

    fn unconditional_update(&self) -> bool {
        self.facts.unconditional_update
    }

    fn is_kept_in_memory(&self) -> bool {
        self.facts.is_cached
    }

    fn creates_on_update(&self) -> bool {
        self.facts.creates_on_update
    }

    fn field(&self, object: &Value, field: &str) -> String {
        match self.behavior {
            Some(behavior) => behavior.selectable_field(object, field),
            None => object
                .at(field.split('.'))
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        }
    }

    fn strategic_schema(&self, version: &Version) -> Option<&Structural> {
        self.version(&version.name).map(|v| v.model.strategic())
    }

    fn mark(&self, stored: Value, now: &str) -> Result<Option<Value>, String> {
        if !self.is_namespace() {
            return Ok(None);
        }
        mark_namespace(stored, now)
            .map(Some)
            .ok_or_else(|| "the metadata or the status of the namespace is not an object".to_owned())
    }

    fn precondition_failed(&self) -> Option<&'static str> {
        self.is_namespace().then_some("Precondition failed")
    }

    fn is_held(&self, object: &Value) -> bool {
        self.is_namespace() && !crate::controllers::namespaces::finalizers(object.get("spec")).is_empty()
    }

    fn garbage_collection(&self) -> GarbageCollection {
        self.facts.garbage_collection
    }

    fn orphan_warning(&self) -> Option<&'static str> {
        self.facts.orphan_warning
    }

    fn returns_deleted(&self) -> bool {
        self.facts.delete_returns_object
    }

    fn grace_period(&self, object: &Value, requested: Option<i64>) -> Option<i64> {
        self.behavior?.grace_period(object, requested)
    }
}

/// A stored namespace that is being deleted; none if its metadata or its status is not an object.
fn mark_namespace(mut stored: Value, now: &str) -> Option<Value> {
    metadata_mut(&mut stored)?.insert("deletionTimestamp", now.into());
    let status = stored
        .as_object_mut()?
        .get_or_insert_with("status", || Map::new().into());
    status.as_object_mut()?.insert("phase", "Terminating".into());
    Some(stored)
}

/// The members of an object with metadata, made if they are absent; the object itself if either is something else.
fn with_metadata(object: Value) -> Result<Map, Value> {
    let Value::Object(mut members) = object else {
        return Err(object);
    };
    let metadata = members.get_or_insert_with("metadata", || Value::Null);
    if metadata.is_null() {
        *metadata = Map::new().into();
    }
    match metadata {
        Value::Object(_) => Ok(members),
        _ => Err(members.into()),
    }
}
