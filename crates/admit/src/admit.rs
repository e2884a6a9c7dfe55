//! The pipeline.

use crate::check::{ObjectValidator, ValidationResult};
use crate::{
    AdmissionError, AdmitOutcome, FieldValidation, Gates, NewObjectMeta, Resource, Stats, prepare,
    prune_and_default,
};
use scantling_schema::immutable::{Changes, UnchangedElements};
use scantling_schema::meta::{self, NameRule};
use scantling_schema::prune::UnknownFields;
use scantling_schema::rules::Meter;
use scantling_value::{ErrorList, FieldError, Map, Path, TextList, Value};
use std::time::Duration;

/// What a request wants to write.
#[derive(Debug)]
pub struct Request<'a> {
    /// What is to be done.
    pub operation: WriteOperation<'a>,
    /// The object as it was sent, or as a patch or an apply made it.
    pub object: Value,
    /// What strict decoding of the request found: `duplicate field "spec.a"`.
    pub findings: &'a [String],
}

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub enum WriteOperation<'a> {
    /// A new object.
    Create(&'a NewObjectMeta),
    /// A new state of the stored object. Writes to `/scale` are such updates, too: see
    /// [`ScalePaths::with_replicas`](crate::ScalePaths::with_replicas).
    Update(&'a Value),
    /// A new status of the stored object.
    UpdateStatus(&'a Value),
}

/// How admission behaves.
#[derive(Clone, Copy, Default)]
pub struct AdmitOptions<'a> {
    /// Which features are on.
    pub gates: Gates,
    /// What becomes of unknown and duplicate fields.
    pub field_validation: FieldValidation,
    /// A clock, for those who want to know what ratcheting and rules take.
    pub clock: Option<&'a dyn Fn() -> Duration>,
    /// For those who want to know what each rule costs.
    pub meter: Option<Meter<'a>>,
}

impl std::fmt::Debug for AdmitOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdmitOptions")
            .field("gates", &self.gates)
            .field("field_validation", &self.field_validation)
            .finish_non_exhaustive()
    }
}

/// Decides about a write; the crate's documentation has an example.
pub fn admit(resource: &Resource, request: Request<'_>, options: &AdmitOptions<'_>) -> AdmitOutcome {
    let mut object = request.object;
    match normalize(resource, &mut object, request.findings, options) {
        Ok(warnings) => {
            let mut outcome = prepare_and_validate(resource, request.operation, object, options);
            if !warnings.is_empty() {
                outcome.warnings.splice(0..0, warnings);
            }
            outcome
        }
        Err(error) => AdmitOutcome {
            object,
            error: Some(error),
            warnings: Vec::new(),
            stats: Stats::default(),
        },
    }
}

/// The first half of [`admit`]: brings the object into form and settles what becomes of unknown and duplicate fields.
/// A server that records who manages which field does so between the halves. Returns warnings.
pub fn normalize(
    resource: &Resource,
    object: &mut Value,
    findings: &[String],
    options: &AdmitOptions<'_>,
) -> Result<Vec<String>, AdmissionError> {
    let mode = match options.field_validation {
        FieldValidation::Ignore => UnknownFields::Ignore,
        _ if !options.gates.field_validation => UnknownFields::Ignore,
        FieldValidation::Strict | FieldValidation::Warn => UnknownFields::List,
    };
    let unknown = prune_and_default(resource, object, mode)?;
    if mode == UnknownFields::Ignore {
        return Ok(Vec::new());
    }
    let mut found: TextList = findings.iter().cloned().collect();
    found.append(unknown, |path| format!("unknown field \"{path}\""));
    let found = found.into_texts();
    if options.field_validation == FieldValidation::Strict && !found.is_empty() {
        return Err(AdmissionError::Strict(found));
    }
    Ok(found)
}

/// The second half of [`admit`]: sets what a request has no say in, and judges.
pub fn prepare_and_validate(
    resource: &Resource,
    operation: WriteOperation<'_>,
    object: Value,
    options: &AdmitOptions<'_>,
) -> AdmitOutcome {
    let mut outcome = AdmitOutcome {
        object,
        error: None,
        warnings: Vec::new(),
        stats: Stats::default(),
    };
    outcome.error = run_stages(resource, operation, options, &mut outcome).err();
    outcome
}

fn run_stages(
    resource: &Resource,
    operation: WriteOperation<'_>,
    options: &AdmitOptions<'_>,
    outcome: &mut AdmitOutcome,
) -> Result<(), AdmissionError> {
    let Value::Object(object) = &mut outcome.object else {
        return Err(AdmissionError::Undecodable("the object is no JSON object".into()));
    };
    let empty = Map::new();
    let gates = options.gates;
    let changes = match operation {
        WriteOperation::Create(meta) => {
            prepare::create(resource, object, meta);
            Changes::default()
        }
        WriteOperation::Update(old) => {
            prepare::update(resource, object, old.as_object().unwrap_or(&empty), gates)
        }
        WriteOperation::UpdateStatus(old) => Changes {
            forbidden: prepare::update_status(resource, object, old.as_object().unwrap_or(&empty), gates),
            ..Changes::default()
        },
    };
    if !changes.forbidden.is_empty() {
        return Err(AdmissionError::Immutable(changes.forbidden));
    }
    let prepared = Prepared {
        object: &outcome.object,
        unchanged: &changes.unchanged,
    };
    let checked = judge(resource, operation, prepared, options);
    outcome.warnings.extend(checked.warnings);
    outcome.stats = checked.stats;
    if !checked.errors.is_empty() {
        return Err(AdmissionError::Invalid(checked.errors));
    }
    let metadata = outcome.object.get("metadata");
    match operation {
        WriteOperation::Create(_) => outcome.warnings.extend(meta::finalizer_warnings(metadata, None)),
        WriteOperation::Update(old) => {
            let warnings = meta::finalizer_warnings(metadata, old.get("metadata"));
            outcome.warnings.extend(warnings);
        }
        WriteOperation::UpdateStatus(_) => {}
    }
    Ok(())
}

/// An object that is prepared for the store.
#[derive(Clone, Copy)]
struct Prepared<'a> {
    object: &'a Value,
    /// What of it is known to be what it was.
    unchanged: &'a UnchangedElements,
}

/// What is wrong with an object that is prepared for the store.
fn judge(
    resource: &Resource,
    operation: WriteOperation<'_>,
    prepared: Prepared<'_>,
    options: &AdmitOptions<'_>,
) -> ValidationResult {
    let Prepared { object, unchanged } = prepared;
    let (old, status) = match operation {
        WriteOperation::Create(_) => (None, false),
        WriteOperation::Update(old) => (Some(old), false),
        WriteOperation::UpdateStatus(old) => (Some(old), true),
    };
    let at = Path::ROOT.field("metadata");
    let (metadata, scope) = (object.get("metadata"), resource.scope);
    let mut common = ErrorList::new();
    let mut errors = type_errors(resource, object);
    let typed = errors.is_empty();
    if let Some(old) = old {
        // Every kind is checked for these, and custom resources once more: clients see such an error twice.
        common = meta::check_common(metadata, scope, &at);
        let update = meta::check_update(metadata, old.get("metadata"), &at);
        if typed {
            let unreadable = meta::check_readable(metadata, &at);
            errors.extend(unreadable.map_or_else(|| update.clone(), ErrorList::from));
        }
        common.extend(update);
    } else if typed {
        errors.extend(meta::check_new(metadata, scope, NameRule::Subdomain, &at));
    }
    let mut check = ObjectValidator::new(resource, object, old, options, errors).with_unchanged(unchanged);
    if typed && status {
        check.status_values();
        check.scale_status();
    } else if typed {
        check.values();
        check.scale_spec();
        check.scale_status();
    }
    if !status {
        check.embedded();
    }
    let mut checked = check.finish();
    // The rule for names of custom resources covers the one that all kinds share, save for the end of a prefix.
    let covered = meta::string_field(metadata, "generateName").is_empty();
    if old.is_none() && !covered && checked.errors.is_empty() {
        checked.errors = meta::check_common(metadata, scope, &at);
    }
    checked.errors.prepend(common);
    checked
}

fn type_errors(resource: &Resource, object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    for (field, wanted) in [("kind", &resource.kind), ("apiVersion", &resource.api_version)] {
        let found = object.get_str(field);
        if found != wanted {
            let at = Path::ROOT.field(field);
            errors.push_with(|| FieldError::invalid(&at, found, format!("must be {wanted}")));
        }
    }
    errors
}
