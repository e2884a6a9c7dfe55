//! Preparation and validation of custom resources.

use crate::check::{ObjectValidator, ValidationResult};
use crate::{AdmissionError, AdmitOptions, Resource, WriteOperation, prepare};
use scantling_schema::immutable::{Changes, UnchangedElements};
use scantling_schema::meta::{self, NameRule};
use scantling_value::{ErrorList, FieldError, Map, Path, Value};

/// Prepares an object, and returns the elements that an update is known to leave unchanged.
pub(crate) fn prepare(
    resource: &Resource,
    operation: WriteOperation<'_>,
    object: &mut Value,
    options: &AdmitOptions<'_>,
) -> Result<UnchangedElements, AdmissionError> {
    let Value::Object(object) = object else {
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
    Ok(changes.unchanged)
}

/// Validates a prepared object: metadata, values, list types, unions, rules; then collects warnings.
pub(crate) fn validate(
    resource: &Resource,
    operation: WriteOperation<'_>,
    object: &Value,
    unchanged: &UnchangedElements,
    options: &AdmitOptions<'_>,
) -> ValidationResult {
    let (old, status) = match operation {
        WriteOperation::Create(_) => (None, false),
        WriteOperation::Update(old) => (Some(old), false),
        WriteOperation::UpdateStatus(old) => (Some(old), true),
    };
    let at = Path::ROOT.field("metadata");
    let (metadata, scope) = (object.get("metadata"), resource.scope);
    let mut common = ErrorList::new();
    let mut errors = type_errors(resource, object);
    // kube-apiserver validates no values of an object of another kind or version.
    let typed = errors.is_empty();
    if let Some(old) = old {
        // kube-apiserver runs these checks for every kind and again for custom resources, so clients see an error twice.
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
    let mut validator =
        ObjectValidator::new(resource, object, old, options, errors).with_unchanged(unchanged);
    if typed && status {
        validator.status_values();
        validator.scale_status();
    } else if typed {
        validator.values();
        validator.scale_spec();
        validator.scale_status();
    }
    // kube-apiserver does not check embedded metadata in writes to `/status`.
    if !status {
        validator.embedded();
    }
    let mut result = validator.finish();
    // The name rule of custom resources covers the rule of all kinds, except for the end of a `generateName` prefix.
    let covered = meta::string_field(metadata, "generateName").is_empty();
    if old.is_none() && !covered && result.errors.is_empty() {
        result.errors = meta::check_common(metadata, scope, &at);
    }
    // kube-apiserver runs the checks for every kind first.
    result.errors.prepend(common);
    if result.errors.is_empty() {
        match operation {
            WriteOperation::Create(_) => result.warnings.extend(meta::finalizer_warnings(metadata, None)),
            WriteOperation::Update(old) => {
                let warnings = meta::finalizer_warnings(metadata, old.get("metadata"));
                result.warnings.extend(warnings);
            }
            WriteOperation::UpdateStatus(_) => {}
        }
    }
    result
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
