//! Brings objects into the form of their schema, as a server does while it decodes them.

use crate::{AdmissionError, Resource};
use scantling_schema::default::{self, TooLarge};
use scantling_schema::meta::{self, MalformedFields};
use scantling_schema::prune::{self, NullPolicy, UnknownFields, ValueRole};
use scantling_value::{Path, TextList, Value};

/// Brings an object of a request into form: metadata are typed, unknown fields and stray `null`s go, defaults come.
/// Returns the paths of the unknown fields.
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

/// Brings an object of the store into form: as [`shape`], but what is malformed in its metadata is dropped, and a
/// generation that very old objects lack is filled in.
pub fn prune_and_default_stored(resource: &Resource, object: &mut Value) -> Result<(), TooLarge> {
    // Nothing is refused: what is malformed is dropped.
    let _ = prune_and_coerce(resource, object, UnknownFields::Ignore, MalformedFields::Drop);
    if let Some(metadata) = object.as_object_mut().and_then(|o| o.get_mut("metadata"))
        && meta::generation(Some(metadata)) == 0
        && let Some(metadata) = metadata.as_object_mut()
    {
        metadata.insert("generation", Value::Int(1));
    }
    default::fill(resource.plan.root(), object)
}

/// Drops what a version's schema does not know, as a change of versions does.
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
