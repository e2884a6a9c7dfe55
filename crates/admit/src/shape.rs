//! Brings objects into the form of their schema, as a server does while it decodes them.

use crate::{Refusal, Resource};
use scantling_schema::default::{self, TooLarge};
use scantling_schema::meta::{self, Malformed};
use scantling_schema::prune::{self, Nulls, Place, Unknown};
use scantling_value::{Path, TextList, Value};

/// Brings an object of a request into form: metadata are typed, unknown fields and stray `null`s go, defaults come.
/// Returns the paths of the unknown fields.
pub fn shape(resource: &Resource, object: &mut Value, unknown: Unknown) -> Result<TextList, Refusal> {
    let paths = form(resource, object, unknown, Malformed::Refuse).map_err(Refusal::Undecodable)?;
    default::fill(resource.plan.root(), object)?;
    Ok(paths)
}

/// Brings an object of the store into form: as [`shape`], but what is malformed in its metadata is dropped, and a
/// generation that very old objects lack is filled in.
pub fn load(resource: &Resource, object: &mut Value) -> Result<(), TooLarge> {
    // Nothing is refused: what is malformed is dropped.
    let _ = form(resource, object, Unknown::Ignore, Malformed::Drop);
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
        let options = prune::Options {
            nulls: Nulls::Keep,
            unknown: Unknown::Ignore,
        };
        prune::prune(resource.plan.root(), object, Place::Resource, &options);
    }
}

fn form(
    resource: &Resource,
    object: &mut Value,
    unknown: Unknown,
    malformed: Malformed,
) -> Result<TextList, String> {
    let root = resource.plan.root();
    let mut paths = TextList::new();
    if let Some(map) = object.as_object_mut() {
        paths = meta::coerce(map, &Path::ROOT, malformed)?.unknown;
    }
    if !resource.preserve_unknown_fields {
        let options = prune::Options {
            nulls: Nulls::Drop,
            unknown,
        };
        let pruned = prune::prune(root, object, Place::Resource, &options);
        paths.append(pruned, |path| path);
    }
    let embedded = meta::coerce_embedded(root, object, malformed, &Path::ROOT).map_err(|e| e.to_string())?;
    paths.append(embedded.unknown, |path| path);
    Ok(paths)
}
