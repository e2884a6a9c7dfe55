//! Normalization of custom resources: metadata is coerced, unknown fields are pruned, defaults are filled in.

use crate::pipeline::{NormalizeMode, report_findings};
use crate::{AdmissionError, AdmitOptions, FieldValidation, Resource};
use scantling_schema::default::{self, TooLarge};
use scantling_schema::meta::{self, MalformedFields};
use scantling_schema::prune::{self, NullPolicy, UnknownFields, ValueRole};
use scantling_value::{Finding, FindingList, Path, Value};

/// Normalizes an object in a mode. Returns the findings that are warnings.
pub(crate) fn custom(
    resource: &Resource,
    object: &mut Value,
    findings: &[Finding],
    mode: NormalizeMode,
    options: &AdmitOptions<'_>,
) -> Result<FindingList, AdmissionError> {
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
            return Ok(FindingList::new());
        }
        NormalizeMode::OtherKind => coerce_metadata(object)?,
        NormalizeMode::UnknownVersion => {
            let mut unknown = coerce_metadata(object)?;
            if let Some(members) = object.as_object_mut() {
                members.retain(|name, _| {
                    let is_meta = matches!(name, "apiVersion" | "kind" | "metadata");
                    if !is_meta {
                        unknown.push_with(|| Finding::pruned(&Path::ROOT.field(name)));
                    }
                    is_meta
                });
            }
            unknown
        }
        NormalizeMode::List => FindingList::new(),
    };
    if field_validation == FieldValidation::Ignore {
        return Ok(FindingList::new());
    }
    // Not `FindingList::join`: kube-apiserver prunes after decoding, so duplicates inside unknown fields are reported, too.
    let mut all: FindingList = findings.iter().cloned().collect();
    all.append(unknown);
    report_findings(all, field_validation)
}

fn coerce_metadata(object: &mut Value) -> Result<FindingList, AdmissionError> {
    let Some(members) = object.as_object_mut() else {
        return Ok(FindingList::new());
    };
    let coerced = meta::coerce(members, &Path::ROOT, MalformedFields::Refuse);
    coerced.map_err(AdmissionError::Undecodable)
}

/// Normalizes an object of a request: coerces metadata, removes unknown fields and superfluous `null`s, fills in
/// defaults. Returns the unknown fields.
fn prune_and_default(
    resource: &Resource,
    object: &mut Value,
    unknown: UnknownFields,
) -> Result<FindingList, AdmissionError> {
    let found = prune_and_coerce(resource, object, unknown, MalformedFields::Refuse)
        .map_err(AdmissionError::Undecodable)?;
    default::fill(resource.plan.root(), object)?;
    Ok(found)
}

/// Normalizes an object of the store: like [`prune_and_default`], but malformed metadata is dropped, and a generation
/// is filled in, which objects of very old servers lack.
pub fn prune_and_default_stored(resource: &Resource, object: &mut Value) -> Result<(), TooLarge> {
    // Cannot fail, because malformed fields are dropped.
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
) -> Result<FindingList, String> {
    // kube-apiserver's order, which is the order of the findings: metadata, unknown fields, embedded metadata.
    let root = resource.plan.root();
    let mut found = FindingList::new();
    if let Some(map) = object.as_object_mut() {
        found = meta::coerce(map, &Path::ROOT, malformed)?;
    }
    if !resource.preserve_unknown_fields {
        let options = prune::PruneOptions {
            nulls: NullPolicy::Drop,
            unknown,
        };
        found.append(prune::prune(root, object, ValueRole::Resource, &options));
    }
    let embedded = meta::coerce_embedded(root, object, malformed, &Path::ROOT).map_err(|e| e.to_string())?;
    found.append(embedded);
    Ok(found)
}
