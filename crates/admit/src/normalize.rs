//! Normalization of custom resources: metadata is coerced, unknown fields are pruned, defaults are filled in.

use crate::pipeline::{NormalizeMode, report_findings, with_unknown_fields};
use crate::{AdmissionError, AdmitOptions, FieldValidation, Resource};
use scantling_schema::default::{self, TooLarge};
use scantling_schema::meta::{self, MalformedFields};
use scantling_schema::prune::{self, NullPolicy, UnknownFields, ValueRole};
use scantling_value::{Path, TextList, Value};

/// Normalizes an object in a mode. Returns findings as warnings.
pub(crate) fn custom(
    resource: &Resource,
    object: &mut Value,
    findings: &[String],
    mode: NormalizeMode,
    options: &AdmitOptions<'_>,
) -> Result<Vec<String>, AdmissionError> {
    let field_validation = if options.gates.field_validation {
        options.field_validation
    } else {
        FieldValidation::Ignore
    };
    let list = match field_validation {
        FieldValidation::Ignore => UnknownFields::Ignore,
        FieldValidation::Strict | FieldValidation::Warn => UnknownFields::List,
    };
    let unknown = match mode {
        NormalizeMode::Request => prune_and_default(resource, object, list)?,
        NormalizeMode::Applied => {
            default::fill(resource.plan.root(), object)?;
            if let Some(members) = object.as_object_mut() {
                meta::coerce(members, &Path::ROOT, MalformedFields::Keep)
                    .map_err(AdmissionError::Undecodable)?;
            }
            return Ok(Vec::new());
        }
        NormalizeMode::OtherKind => coerce_metadata(object)?,
        NormalizeMode::UnknownVersion => {
            let mut unknown = coerce_metadata(object)?;
            if let Some(members) = object.as_object_mut() {
                members.retain(|name, _| {
                    let is_meta = matches!(name, "apiVersion" | "kind" | "metadata");
                    if !is_meta {
                        unknown.push_with(|| name.to_owned());
                    }
                    is_meta
                });
            }
            unknown
        }
    };
    if field_validation == FieldValidation::Ignore {
        return Ok(Vec::new());
    }
    report_findings(with_unknown_fields(findings, unknown), field_validation)
}

fn coerce_metadata(object: &mut Value) -> Result<TextList, AdmissionError> {
    let Some(members) = object.as_object_mut() else {
        return Ok(TextList::new());
    };
    let coerced = meta::coerce(members, &Path::ROOT, MalformedFields::Refuse);
    Ok(coerced.map_err(AdmissionError::Undecodable)?.unknown)
}

/// Normalizes an object of a request: coerces metadata, removes unknown fields and superfluous `null`s, fills in
/// defaults. Returns the paths of the unknown fields.
pub fn prune_and_default(
    resource: &Resource,
    object: &mut Value,
    unknown: UnknownFields,
) -> Result<TextList, AdmissionError> {
    let paths = prune_and_coerce(resource, object, unknown, MalformedFields::Refuse)
        .map_err(AdmissionError::Undecodable)?;
    default::fill(resource.plan.root(), object)?;
    Ok(paths)
}

/// Normalizes an object of the store: like [`prune_and_default`], but malformed metadata is dropped, and a generation is
/// filled in, which objects of very old servers lack.
pub fn prune_and_default_stored(resource: &Resource, object: &mut Value) -> Result<(), TooLarge> {
    // No error is possible, since malformed fields are dropped.
    let _ = prune_and_coerce(resource, object, UnknownFields::Ignore, MalformedFields::Drop);
    if let Some(metadata) = object.as_object_mut().and_then(|o| o.get_mut("metadata"))
        && meta::generation(Some(metadata)) == 0
        && let Some(metadata) = metadata.as_object_mut()
    {
        metadata.insert("generation", Value::Int(1));
    }
    default::fill(resource.plan.root(), object)
}

/// Removes the fields that a version's schema does not declare, as conversion between versions does.
pub fn prune(resource: &Resource, object: &mut Value) {
    if !resource.preserve_unknown_fields {
        let options = prune::PruneOptions {
            nulls: NullPolicy::Keep,
            unknown: UnknownFields::Ignore,
        };
        prune::prune(resource.plan.root(), object, ValueRole::Resource, &options);
    }
}

fn prune_and_coerce(
    resource: &Resource,
    object: &mut Value,
    unknown: UnknownFields,
    malformed: MalformedFields,
) -> Result<TextList, String> {
    let root = resource.plan.root();
    let mut paths = TextList::new();
    if let Some(map) = object.as_object_mut() {
        paths = meta::coerce(map, &Path::ROOT, malformed)?.unknown;
    }
    if !resource.preserve_unknown_fields {
        let options = prune::PruneOptions {
            nulls: NullPolicy::Drop,
            unknown,
        };
        let pruned = prune::prune(root, object, ValueRole::Resource, &options);
        paths.append(pruned, |path| path);
    }
    let embedded = meta::coerce_embedded(root, object, malformed, &Path::ROOT).map_err(|e| e.to_string())?;
    paths.append(embedded.unknown, |path| path);
    Ok(paths)
}
