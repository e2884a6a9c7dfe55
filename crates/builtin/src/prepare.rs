//! Preparation steps that many kinds share.

use crate::equality::equal;
use crate::{KindFacts, Operation, Subresource, Write};
use scantling_schema::meta;
use scantling_value::{Map, Value};

/// Prepares an object with a spec and a status, and the generation if the kind has one.
///
/// A create drops the status. An update keeps the status and counts changes of the spec. A status update keeps the spec.
pub(crate) fn spec_and_status(facts: &KindFacts, object: &mut Map, write: &Write<'_>) {
    match (write.operation, write.subresource) {
        (Operation::Create, _) => {
            object.remove("status");
            if facts.has_generation {
                set_generation(object, 1);
            }
        }
        (Operation::Update(old), Subresource::Status) => keep(object, old, "spec"),
        (Operation::Update(old), _) => {
            keep(object, old, "status");
            if facts.has_generation {
                count_changes(facts, object, old, &[&["spec"]]);
            }
        }
    }
}

/// Restores a member of the stored object.
pub(crate) fn keep(object: &mut Map, old: &Value, member: &str) {
    match old.get(member) {
        Some(value) => drop(object.insert(member, value.clone())),
        None => drop(object.remove(member)),
    }
}

/// Restores a member of the stored object's metadata.
pub(crate) fn keep_metadata(object: &mut Map, old: &Value, member: &str) {
    let kept = old.at(["metadata", member]);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        match kept {
            Some(value) => drop(metadata.insert(member, value.clone())),
            None => drop(metadata.remove(member)),
        }
    }
}

/// Sets `metadata.generation` to the stored one, incremented if the object changed at one of the paths.
pub(crate) fn count_changes(facts: &KindFacts, object: &mut Map, old: &Value, paths: &[&[&str]]) {
    let new = Value::Object(std::mem::take(object));
    let changed = paths.iter().any(|path| !equal(facts, path, &new, old));
    *object = new.into_object().unwrap_or_default();
    let generation = meta::generation(old.get("metadata"));
    set_generation(object, generation + i64::from(changed));
}

/// Sets `metadata.generation`; 0 leaves it out.
pub(crate) fn set_generation(object: &mut Map, generation: i64) {
    let metadata = object.get_or_insert_with("metadata", || Value::Object(Map::new()));
    if let Some(metadata) = metadata.as_object_mut() {
        match generation {
            0 => drop(metadata.remove("generation")),
            _ => drop(metadata.insert("generation", Value::Int(generation))),
        }
    }
}
