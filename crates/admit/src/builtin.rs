//! Built-in kinds in the pipeline: the table of API types decodes them, `scantling_builtin` has their
//! behavior.
//!
//! Behaviour applies to the hub version of a kind. An object of another version is converted before and
//! after.

use crate::metadata::{NewObjectMeta, keep_system_fields};
use crate::pipeline::{Admitted, NormalizeMode, Rejected, StageResult, report_findings};
use crate::{AdmissionError, AdmitOptions, RequestContext, Stats, Warning, WriteOperation};
use scantling_apitypes::decode::DecodeSource;
use scantling_apitypes::{DecodeError, Extensions, TypeDef, TypeTable};
use scantling_builtin::{Context, Cursor, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_schema::meta::{self, NameRule, Scope};
use scantling_value::{ErrorList, Finding, FindingList, Map, Path, Str, Value};
use std::collections::BTreeSet;

/// One served version of a built-in kind.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinResource {
    /// The table of the release that decodes the version. The hub version is that of the latest release.
    table: &'static TypeTable,
    version: &'static str,
    definition: &'static TypeDef,
    /// The type of the hub version, in which objects are stored.
    hub: &'static TypeDef,
    is_hub: bool,
    scope: Scope,
    behavior: &'static KindBehavior,
}

/// The behavior of kinds that are only decoded.
static DECODED: KindBehavior = KindBehavior::new(KindFacts::new("", ""));

impl BuiltinResource {
    /// Returns a version of a kind, or `None` if the table does not have it. `hub` names the group and version in which
    /// objects are stored.
    pub fn new(
        table: &'static TypeTable,
        (group, version, kind): (&str, &str, &str),
        hub: (&str, &str),
        scope: Scope,
    ) -> Option<BuiltinResource> {
        let definition = table.kind(group, version, kind)?;
        Some(BuiltinResource {
            table,
            version: table.package(definition).version(),
            definition,
            hub: TypeTable::latest().kind(hub.0, hub.1, kind)?,
            is_hub: (group, version) == hub,
            scope,
            behavior: scantling_builtin::kind(group, kind).unwrap_or(&DECODED),
        })
    }

    /// The behavior of the kind.
    pub fn behavior(&self) -> &'static KindBehavior {
        self.behavior
    }

    /// Decodes an object of the version.
    pub fn decode(&self, document: impl DecodeSource) -> Result<TypedObject, DecodeError> {
        decode_typed(self.table, self.definition, document)
    }

    /// Converts the values of an object that a patch or an apply made to their types. Removes unknown fields and
    /// returns them.
    pub fn convert(&self, object: &mut Value) -> Result<FindingList, DecodeError> {
        self.table.convert(self.definition, object, Extensions::NONE)
    }

    /// Returns an object of the version as it is encoded, without empty lists and maps; `None` if there is nothing to
    /// omit.
    pub fn encoded(&self, object: &Value) -> Option<Value> {
        let members = object.as_object()?;
        let omits = self.table.omits_empty_collections(self.definition, members);
        omits.then(|| self.table.canonical(self.definition, members.clone()).into())
    }

    /// Normalizes an object: decodes it by its type, fills in defaults, reports findings.
    pub(crate) fn normalize(
        &self,
        object: &mut Value,
        findings: &[Finding],
        mode: NormalizeMode,
        options: &AdmitOptions<'_>,
    ) -> Result<FindingList, AdmissionError> {
        let undecodable = |e: DecodeError| AdmissionError::Undecodable(e.to_string());
        let decoded = self.decode(std::mem::take(object)).map_err(undecodable)?;
        let unknown = decoded.findings;
        let mut hub = self.version_to_hub(decoded.object).map_err(undecodable)?;
        self.default(&mut hub, &options.request.builtin());
        *object = self.hub_to_version(hub).map_err(undecodable)?;
        report_findings(
            FindingList::join(findings, unknown),
            mode.field_validation(options),
        )
    }

    /// Normalizes an object of the store, which another server may have written without defaults.
    pub fn load(&self, stored: Value) -> Result<Value, DecodeError> {
        let mut object = self.decode_hub(stored)?;
        self.default(&mut object, &RequestContext::default().builtin());
        self.hub_to_version(object)
    }

    /// Converts an object to the hub version and sets the fields that a request cannot write. Returns the stored object
    /// in the hub version, if it had to be converted.
    pub(crate) fn prepare(
        &self,
        operation: WriteOperation<'_>,
        object: &mut Value,
        options: &AdmitOptions<'_>,
    ) -> Result<Option<Value>, AdmissionError> {
        let internal = |e: DecodeError| AdmissionError::Internal(e.to_string());
        // The stored object arrives in the version of the request.
        let converted = match stored(operation) {
            Some(old) if !self.is_hub => Some(self.version_to_hub(old.clone()).map_err(internal)?),
            _ => None,
        };
        let old = converted.as_ref().or(stored(operation));
        let hub = self.version_to_hub(std::mem::take(object)).map_err(internal)?;
        let mut members = match with_metadata(hub) {
            Ok(members) => members,
            Err(other) => {
                // Put back, because a rejection carries the object.
                *object = other;
                let kind = self.hub.name;
                let why = format!("a {kind} without members or metadata that are an object");
                return Err(AdmissionError::Internal(why));
            }
        };
        if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
            match (operation, old) {
                (WriteOperation::Create(meta), _) if self.behavior.facts.names == NameRule::Own => {
                    let suffix = Str::default();
                    // The kind validates the prefix as the name, so no suffix may follow it.
                    NewObjectMeta {
                        suffix,
                        ..meta.clone()
                    }
                    .apply_to(metadata);
                }
                (WriteOperation::Create(meta), _) => meta.apply_to(metadata),
                (_, Some(old)) => restore_metadata(metadata, old),
                _ => {}
            }
        }
        (self.behavior.prepare)(&mut members, &write(operation, old, options));
        *object = Value::Object(members);
        Ok(converted)
    }

    /// Validates an object of the hub version, and returns it in the version of the resource.
    pub(crate) fn validate(
        &self,
        operation: WriteOperation<'_>,
        old: Option<&Value>,
        object: Value,
        mut warnings: Vec<Warning>,
        options: &AdmitOptions<'_>,
    ) -> StageResult<Admitted> {
        let write = write(operation, old, options);
        let mut own = ErrorList::new();
        (self.behavior.validate)(&object, &write, &mut own);
        // On a create, kube-apiserver checks metadata after the kind's own validation, and only if that
        // succeeds. A kind may include it in its own validation.
        let mut errors = match self.behavior.facts.validates_metadata || old.is_some() || own.is_empty() {
            true => self.check_metadata(&object, old, write.subresource),
            false => ErrorList::new(),
        };
        errors.extend(own);
        // Several checks may find the same error; kube-apiserver reports it once.
        let mut seen = BTreeSet::new();
        errors.retain(|error| seen.insert(error.to_string()));
        let mut own = Vec::new();
        (self.behavior.warn_always)(&object, &write, &mut own);
        if errors.is_empty() {
            (self.behavior.warn)(&object, &write, &mut own);
        }
        warnings.extend(own.into_iter().map(Warning::Text));
        let error = (!errors.is_empty()).then(|| AdmissionError::Invalid(errors));
        let object = match error {
            None => self.as_stored(object, &write.context),
            Some(_) => object,
        };
        let (object, error) = match self.hub_to_version(object) {
            Ok(object) => (object, error),
            Err(e) => (Value::Null, Some(AdmissionError::Internal(e.to_string()))),
        };
        let stats = Stats::default();
        match error {
            None => Ok(Admitted {
                object,
                warnings,
                stats,
            }),
            Some(error) => Err(Box::new(Rejected {
                object,
                error,
                warnings,
                stats,
            })),
        }
    }

    /// Validates the metadata that all kinds share.
    fn check_metadata(&self, object: &Value, old: Option<&Value>, subresource: Subresource) -> ErrorList {
        let (scope, names) = (self.scope, self.behavior.facts.names);
        let at = Path::ROOT.field("metadata");
        let metadata = object.get("metadata");
        let mut errors = match old {
            None => meta::check_new(metadata, scope, names, &at),
            Some(old) => {
                let mut errors = meta::check_common(metadata, scope, &at);
                if subresource == Subresource::None && self.behavior.facts.validates_name_on_update {
                    errors.extend(meta::check_new(metadata, scope, names, &at));
                }
                errors.extend(meta::check_update(metadata, old.get("metadata"), &at));
                errors
            }
        };
        let is_status = subresource == Subresource::Status;
        if self.behavior.facts.qualifies_finalizers
            && (!is_status || self.behavior.facts.qualifies_finalizers_of_status)
        {
            let root = Cursor::root(object);
            let metadata = root.field("metadata");
            for finalizer in metadata.field("finalizers").items() {
                scantling_builtin::qualified_finalizer(&finalizer, &mut errors);
            }
        }
        errors
    }

    fn decode_hub(&self, object: Value) -> Result<Value, DecodeError> {
        Ok(decode_typed(TypeTable::latest(), self.hub, object)?.object)
    }

    /// Returns a valid object as it comes back from the store: empty lists are absent, and defaults are filled in
    /// again.
    fn as_stored(&self, object: Value, context: &Context<'_>) -> Value {
        let Value::Object(members) = object else {
            return object;
        };
        let mut object = TypeTable::latest().stored(self.hub, members).into();
        self.default(&mut object, context);
        object
    }

    /// Converts an object of the version to the hub version.
    pub fn version_to_hub(&self, object: Value) -> Result<Value, DecodeError> {
        match self.is_hub {
            // Versions differ in the fields that are always written.
            false => self.decode_hub((self.behavior.version_to_hub)(self.version, object)),
            true => Ok(object),
        }
    }

    /// Converts an object of the hub version to the version.
    pub fn hub_to_version(&self, object: Value) -> Result<Value, DecodeError> {
        match self.is_hub {
            false => Ok(self
                .decode((self.behavior.hub_to_version)(self.version, object))?
                .object),
            true => Ok(object),
        }
    }

    fn default(&self, object: &mut Value, context: &Context<'_>) {
        if let Some(members) = object.as_object_mut() {
            (self.behavior.default)(members, context);
        }
    }
}

/// An object of an API type.
#[derive(Debug)]
pub struct TypedObject {
    /// The object, without unset fields. Empty lists and maps differ from absent ones.
    pub object: Value,
    /// Unknown and duplicate fields, in document order.
    pub findings: Vec<Finding>,
}

/// Decodes a document of an API type.
pub fn decode_typed(
    table: &TypeTable,
    definition: &TypeDef,
    document: impl DecodeSource,
) -> Result<TypedObject, DecodeError> {
    let mut decoded = table.decode_in_memory(definition, document)?;
    keep_empty_managed_fields(&mut decoded.members);
    Ok(TypedObject {
        object: decoded.members.into(),
        findings: decoded.findings,
    })
}

/// The stored object of an update.
pub(crate) fn stored(operation: WriteOperation<'_>) -> Option<&Value> {
    match operation {
        WriteOperation::Create(_) => None,
        WriteOperation::Update(old) | WriteOperation::UpdateStatus(old) => Some(old),
    }
}

fn write<'a>(operation: WriteOperation<'_>, old: Option<&'a Value>, options: &AdmitOptions<'a>) -> Write<'a> {
    let subresource = match (operation, options.request.subresource) {
        (WriteOperation::UpdateStatus(_), Subresource::None) => Subresource::Status,
        (_, subresource) => subresource,
    };
    Write {
        operation: old.map_or(Operation::Create, Operation::Update),
        subresource,
        context: options.request.builtin(),
    }
}

/// Restores the metadata that only the server writes.
fn restore_metadata(metadata: &mut Map, old: &Value) {
    let Some(old) = old.get("metadata").and_then(Value::as_object) else {
        return;
    };
    keep_system_fields(metadata, old);
    // The kind increments the generation later; a request cannot set it.
    match old.get("generation") {
        Some(generation) => metadata.insert("generation", generation.clone()),
        None => metadata.remove("generation"),
    };
    // A write without a version is unconditional, but validation requires one.
    if let Some(version) = old.get("resourceVersion") {
        metadata.get_or_insert_with("resourceVersion", || version.clone());
    }
}

/// The members of an object with metadata, which is added if absent; the object itself if either is not an
/// object.
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

/// An empty list of managers clears them, as a list of one empty entry does. Only the latter survives the removal of
/// empty fields.
fn keep_empty_managed_fields(members: &mut Map) {
    let metadata = members.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(Value::Array(managers)) = metadata.and_then(|m| m.get_mut("managedFields"))
        && managers.is_empty()
    {
        managers.push(Value::Object(Map::new()));
    }
}
