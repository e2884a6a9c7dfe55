//! Preparation of custom resources: sets the fields that a request cannot write, that is the status if it has an endpoint
//! of its own, the generation and system metadata.

use crate::metadata::{NewObjectMeta, keep_system_fields, metadata_mut};
use crate::{Gates, Resource};
use scantling_schema::immutable::{self, Changes};
use scantling_schema::meta;
use scantling_value::{ErrorList, Map, Str, Value};

/// Prepares a new object.
pub(crate) fn create(resource: &Resource, object: &mut Map, meta: &NewObjectMeta) {
    /// The number of fields that are inserted: one allocation is enough.
    const INSERTED: usize = 4;
    if resource.status {
        object.remove("status");
    }
    let metadata = metadata_mut(object);
    metadata.reserve(INSERTED);
    meta.apply_to(metadata);
    metadata.insert("generation", Value::Int(1));
}

/// Prepares an update of a stored object. Returns the differences; forbidden changes and unchanged elements only if the
/// immutability gate is on.
pub(crate) fn update(resource: &Resource, object: &mut Map, old: &Map, gates: Gates) -> Changes {
    if resource.status {
        match old.get("status") {
            Some(status) => object.insert("status", status.clone()),
            None => object.remove("status"),
        };
    }
    let before = meta::generation(old.get("metadata"));
    let changes = changes(resource, object, old, gates);
    let generation = if changes.any {
        before.saturating_add(1)
    } else {
        before
    };
    let metadata = metadata_mut(object);
    match generation {
        // Go omits a zero, which only objects without a generation have.
        0 => metadata.remove("generation"),
        n => metadata.insert("generation", Value::Int(n)),
    };
    if let Some(old) = old.get("metadata").and_then(Value::as_object) {
        keep_system_fields(metadata, old);
    }
    changes
}

fn changes(resource: &Resource, object: &Map, old: &Map, gates: Gates) -> Changes {
    // This comparison also finds out whether anything changed.
    if restricts_updates(resource, gates) {
        return immutable::changes(resource.plan.root(), old, object);
    }
    let status = resource.status;
    // Members are sorted by name, so equal objects have equal sequences.
    let members = |object| members_with_generation(object, status);
    Changes {
        any: members(object).ne(members(old)),
        ..Changes::default()
    }
}

fn restricts_updates(resource: &Resource, gates: Gates) -> bool {
    gates.immutability && resource.plan.root().restricts_updates()
}

/// Prepares a write to `/status`: only the status and the managed fields of the request replace those of the stored
/// object. Returns the forbidden changes, if the immutability gate is on.
pub(crate) fn update_status(resource: &Resource, object: &mut Map, old: &Map, gates: Gates) -> ErrorList {
    let status = object.remove("status");
    let managed_fields = metadata_mut(object).remove("managedFields");
    *object = old.clone();
    match status {
        Some(status) => object.insert("status", status),
        None => object.remove("status"),
    };
    match managed_fields {
        Some(entries) => metadata_mut(object).insert("managedFields", entries),
        None => metadata_mut(object).remove("managedFields"),
    };
    if restricts_updates(resource, gates) {
        immutable::changes(resource.plan.root(), old, object).forbidden
    } else {
        ErrorList::new()
    }
}

/// The members whose change increments the generation. A status with an endpoint of its own has been restored before.
fn members_with_generation(object: &Map, status: bool) -> impl Iterator<Item = (&Str, &Value)> {
    let counts = move |name: &str| name != "metadata" && !(status && name == "status");
    object.iter().filter(move |(name, _)| counts(name))
}
