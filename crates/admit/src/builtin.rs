//! Built-in kinds in the pipeline: the table of API types decodes them, `scantling_builtin` gives them their behaviour.
//!
//! Behaviour applies to the hub version of a kind. An object of another version is converted before and after.

use crate::metadata::keep_system_fields;
use crate::pipeline::{Admitted, NormalizeMode, Rejected, StageResult, report_findings};
use crate::{AdmissionError, AdmitOptions, FieldValidation, Stats, WriteOperation};
use scantling_apitypes::{DecodeError, Extensions, TypeDef, TypeTable, decode::Finding};
use scantling_builtin::{BuiltinKind, Context, KindFacts, Operation, Subresource, Write};
use scantling_schema::meta::{self, Scope};
use scantling_value::{ErrorList, FieldError, Map, Path, Value};
use std::collections::BTreeSet;

/// One served version of a built-in kind.
#[derive(Clone, Copy, Debug)]
pub struct BuiltinResource {
    table: &'static TypeTable,
    version: &'static str,
    definition: &'static TypeDef,
    /// The type of the hub version, in which objects are stored.
    hub: &'static TypeDef,
    facts: &'static KindFacts,
    /// `None` for a kind that is only decoded.
    behavior: Option<&'static dyn BuiltinKind>,
}

static NAMESPACED: KindFacts = KindFacts::new("", "");
static CLUSTER: KindFacts = KindFacts {
    scope: Scope::Cluster,
    ..KindFacts::new("", "")
};

impl BuiltinResource {
    /// Returns a version of a kind, or `None` if the table does not have it. `hub` names the group and version in which
    /// objects are stored. `scope` is that of a kind without behaviour of its own.
    pub fn new(
        table: &'static TypeTable,
        (group, version, kind): (&str, &'static str, &str),
        hub: (&str, &str),
        scope: Scope,
    ) -> Option<BuiltinResource> {
        let behavior = scantling_builtin::kind(group, kind);
        let facts = match (behavior, scope) {
            (Some(behavior), _) => behavior.facts(),
            (None, Scope::Namespaced) => &NAMESPACED,
            (None, Scope::Cluster) => &CLUSTER,
        };
        Some(BuiltinResource {
            table,
            version,
            definition: table.kind(group, version, kind)?,
            hub: table.kind(hub.0, hub.1, kind)?,
            facts,
            behavior,
        })
    }

    /// Facts about the kind.
    pub fn facts(&self) -> &'static KindFacts {
        self.facts
    }

    /// The type of the version.
    pub fn definition(&self) -> &'static TypeDef {
        self.definition
    }

    /// Normalizes an object: decodes it by its type, fills in defaults, reports findings.
    pub(crate) fn normalize(
        &self,
        object: &mut Value,
        findings: &[String],
        mode: NormalizeMode,
        options: &AdmitOptions<'_>,
    ) -> Result<Vec<String>, AdmissionError> {
        let undecodable = |e: DecodeError| AdmissionError::Undecodable(e.to_string());
        let (decoded, unknown) = self
            .decode(self.definition, std::mem::take(object))
            .map_err(undecodable)?;
        let mut hub = self.version_to_hub(decoded).map_err(undecodable)?;
        self.default(&mut hub, &options.request.builtin());
        *object = self.hub_to_version(hub).map_err(undecodable)?;
        let field_validation = match mode {
            NormalizeMode::Applied => FieldValidation::Ignore,
            NormalizeMode::Request | NormalizeMode::OtherKind | NormalizeMode::UnknownVersion => {
                options.field_validation
            }
        };
        report_findings(join_findings(findings, &unknown), field_validation)
    }

    /// Normalizes an object of the store, which another server may have written without defaults.
    pub fn load(&self, stored: Value, context: &Context<'_>) -> Result<Value, DecodeError> {
        let (mut object, _) = self.decode(self.hub, stored)?;
        self.default(&mut object, context);
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
        let is_hub = self.definition.id == self.hub.id;
        let converted = match stored(operation) {
            Some(old) if !is_hub => Some(self.version_to_hub(old.clone()).map_err(internal)?),
            _ => None,
        };
        let old = converted.as_ref().or(stored(operation));
        let hub = self.version_to_hub(std::mem::take(object)).map_err(internal)?;
        let mut members = match with_metadata(hub) {
            Ok(members) => members,
            Err(other) => {
                *object = other;
                let kind = self.hub.name;
                let why = format!("a {kind} without members or metadata that are an object");
                return Err(AdmissionError::Internal(why));
            }
        };
        if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
            match (operation, old) {
                (WriteOperation::Create(meta), _) => meta.apply_to(metadata),
                (_, Some(old)) => restore_metadata(metadata, old),
                _ => {}
            }
        }
        if let Some(behavior) = self.behavior {
            behavior.prepare(&mut members, &write(operation, old, options));
        }
        *object = Value::Object(members);
        Ok(converted)
    }

    /// Validates an object of the hub version, and returns it in the version of the resource.
    pub(crate) fn validate(
        &self,
        operation: WriteOperation<'_>,
        old: Option<&Value>,
        object: Value,
        mut warnings: Vec<String>,
        options: &AdmitOptions<'_>,
    ) -> StageResult<Admitted> {
        let write = write(operation, old, options);
        let mut own = ErrorList::new();
        if let Some(behavior) = self.behavior {
            behavior.validate(&object, &write, &mut own);
        }
        let mut errors = match self.facts.validates_metadata || old.is_some() || own.is_empty() {
            true => self.check_metadata(&object, old, write.subresource),
            false => ErrorList::new(),
        };
        errors.extend(own);
        // Several checks may find the same error; kube-apiserver reports it once.
        let mut seen = BTreeSet::new();
        errors.retain(|error| seen.insert(error.to_string()));
        let error = if errors.is_empty() {
            if let Some(behavior) = self.behavior {
                behavior.warn(&object, &write, &mut warnings);
            }
            None
        } else {
            Some(AdmissionError::Invalid(errors))
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

    fn decode(&self, definition: &TypeDef, object: Value) -> Result<(Value, Vec<Finding>), DecodeError> {
        let mut decoded = self.table.decode(definition, object, Extensions::NONE)?;
        keep_empty_managed_fields(&mut decoded.members);
        let members = self.table.canonical(definition, decoded.members);
        Ok((members.into(), decoded.findings))
    }

    fn version_to_hub(&self, object: Value) -> Result<Value, DecodeError> {
        match self.behavior {
            Some(behavior) if self.definition.id != self.hub.id => {
                // Versions differ in the fields that are always written.
                let (object, _) = self.decode(self.hub, behavior.version_to_hub(self.version, object))?;
                Ok(object)
            }
            _ => Ok(object),
        }
    }

    fn hub_to_version(&self, object: Value) -> Result<Value, DecodeError> {
        match self.behavior {
            Some(behavior) if self.definition.id != self.hub.id => {
                let object = behavior.hub_to_version(self.version, object);
                Ok(self.decode(self.definition, object)?.0)
            }
            _ => Ok(object),
        }
    }

    fn default(&self, object: &mut Value, context: &Context<'_>) {
        if let (Some(behavior), Some(members)) = (self.behavior, object.as_object_mut()) {
            behavior.default(members, context);
        }
    }
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
    match old.get("generation") {
        Some(generation) => metadata.insert("generation", generation.clone()),
        None => metadata.remove("generation"),
    };
    if let Some(version) = old.get("resourceVersion") {
        metadata.get_or_insert_with("resourceVersion", || version.clone());
    }
}

/// The members of an object with metadata, which is added if it is absent; the object itself if either is no object.
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

/// The errors about finalizers that are neither standard nor qualified by a domain.
fn unqualified_finalizers(object: &Value) -> ErrorList {
    let metadata = Path::ROOT.field("metadata");
    let at = metadata.field("finalizers");
    let finalizers = object.list_at(["metadata", "finalizers"]).iter().enumerate();
    let is_standard = |f: &str| matches!(f, "kubernetes" | "orphan" | "foregroundDeletion");
    finalizers
        .filter_map(|(i, f)| Some((i, f.as_str()?)))
        .filter(|(_, f)| !is_standard(f) && !f.contains('/'))
        .map(|(i, f)| {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            FieldError::invalid(&at.index(i), f, why)
        })
        .collect()
}

/// Joins the findings of a text with those of decoding. An unknown field is skipped as a whole, so duplicates within it
/// are not reported.
fn join_findings(in_text: &[String], decoded: &[Finding]) -> Vec<String> {
    let unknown: Vec<String> = decoded.iter().map(ToString::to_string).collect();
    let seen = in_text
        .iter()
        .filter(|finding| !unknown.iter().any(|unknown| is_within(finding, unknown)));
    let mut all: Vec<String> = seen.cloned().collect();
    all.extend(unknown);
    all
}

/// Reports whether a duplicate field is an unknown field, or inside one.
fn is_within(duplicate: &str, unknown: &str) -> bool {
    let path = duplicate.strip_prefix("duplicate field \"");
    let rest = unknown
        .strip_prefix("unknown field \"")
        .and_then(|unknown| path?.strip_prefix(unknown.strip_suffix('"')?));
    rest.is_some_and(|rest| rest == "\"" || rest.starts_with(['.', '[']))
}
