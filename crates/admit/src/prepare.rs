//! Sets what a request has no say in: the status behind its own endpoint, the generation, the system's metadata.

use crate::{Gates, Resource};
use scantling_schema::immutable::{self, Changes};
use scantling_schema::meta;
use scantling_value::{ErrorList, Map, Str, Value};

/// What makes a new object itself. Nothing in here can be computed: the caller brings it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewObjectMeta {
    /// Its `uid`.
    pub uid: Str,
    /// Its `creationTimestamp`: `2006-01-02T15:04:05Z`.
    pub created: Str,
    /// What follows `generateName` if the object has no name: five random characters.
    pub suffix: Str,
}

impl NewObjectMeta {
    /// Makes metadata those of a new object: with its meta, with a name if one is to be generated, and without what
    /// only becomes of objects later on.
    pub fn apply_to(&self, metadata: &mut Map) {
        let is_foreign = |name: &str| {
            matches!(
                name,
                "deletionTimestamp" | "deletionGracePeriodSeconds" | "selfLink"
            )
        };
        if metadata.keys().any(|name| is_foreign(name)) {
            metadata.retain(|name, _| !is_foreign(name));
        }
        metadata.insert("uid", Value::from(self.uid.clone()));
        metadata.insert("creationTimestamp", Value::from(self.created.clone()));
        let prefix = metadata.get("generateName").and_then(Value::as_str);
        if !metadata.contains_key("name")
            && let Some(prefix) = prefix.filter(|prefix| !prefix.is_empty())
        {
            let name = generated(prefix, &self.suffix);
            metadata.insert("name", Value::from(name));
        }
    }
}

/// Prepares a new object.
pub(crate) fn create(resource: &Resource, object: &mut Map, meta: &NewObjectMeta) {
    if resource.status {
        object.remove("status");
    }
    let metadata = metadata(object);
    const SET_BELOW: usize = 4;
    metadata.reserve(SET_BELOW);
    meta.apply_to(metadata);
    metadata.insert("generation", Value::Int(1));
}

/// A generated name has at most 63 characters.
fn generated(prefix: &str, suffix: &str) -> String {
    const MAX: usize = 63;
    let mut unchanged = prefix.len().min(MAX.saturating_sub(suffix.len()));
    while !prefix.is_char_boundary(unchanged) {
        unchanged -= 1;
    }
    [prefix.get(..unchanged).unwrap_or(prefix), suffix].concat()
}

/// Prepares an object for taking the place of a stored one. Returns how they differ; what is forbidden and what was unchanged
/// only if immutability is on.
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
    keep_system_fields(object, old, generation);
    changes
}

fn changes(resource: &Resource, object: &Map, old: &Map, gates: Gates) -> Changes {
    if restricts_updates(resource, gates) {
        return immutable::changes(resource.plan.root(), old, object);
    }
    let status = resource.status;
    let members = |object| members_that_count(object, status);
    Changes {
        any: members(object).ne(members(old)),
        ..Changes::default()
    }
}

fn restricts_updates(resource: &Resource, gates: Gates) -> bool {
    gates.immutability && resource.plan.root().restricts_updates()
}

/// Makes of an object what a write to `/status` may make of the stored one: its status, and who manages which field.
/// Returns the changes that it must not make, if immutability is on.
pub(crate) fn update_status(resource: &Resource, object: &mut Map, old: &Map, gates: Gates) -> ErrorList {
    let status = object.remove("status");
    let managed_fields = metadata(object).remove("managedFields");
    *object = old.clone();
    match status {
        Some(status) => object.insert("status", status),
        None => object.remove("status"),
    };
    match managed_fields {
        Some(entries) => metadata(object).insert("managedFields", entries),
        None => metadata(object).remove("managedFields"),
    };
    if restricts_updates(resource, gates) {
        immutable::changes(resource.plan.root(), old, object).forbidden
    } else {
        ErrorList::new()
    }
}

/// The members whose change makes a new generation. A status that has an endpoint of its own was taken over.
fn members_that_count(object: &Map, status: bool) -> impl Iterator<Item = (&Str, &Value)> {
    let counts = move |name: &str| name != "metadata" && !(status && name == "status");
    object.iter().filter(move |(name, _)| counts(name))
}

/// Takes over the metadata that no request can change.
fn keep_system_fields(object: &mut Map, old: &Map, generation: i64) {
    let old = old.get("metadata").and_then(Value::as_object);
    let new = metadata(object);
    match generation {
        0 => new.remove("generation"),
        n => new.insert("generation", Value::Int(n)),
    };
    let old_value = |field: &str| old.and_then(|m| m.get(field)).cloned();
    for field in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(value) = old_value(field) {
            new.insert(field, value);
        }
    }
    if let Some(value) = old_value("uid") {
        new.get_or_insert_with("uid", || value);
    }
    // A number of seconds that is none counts as if it was not there.
    if let Some(value) = old_value("deletionGracePeriodSeconds")
        && new
            .get("deletionGracePeriodSeconds")
            .and_then(Value::as_int)
            .is_none()
    {
        new.insert("deletionGracePeriodSeconds", value);
    }
}

fn metadata(object: &mut Map) -> &mut Map {
    let value = object.get_or_insert_with("metadata", || Value::Object(Map::new()));
    if !matches!(value, Value::Object(_)) {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        #[expect(clippy::unreachable, reason = "it was made an object just now")]
        _ => unreachable!("metadata is an object"),
    }
}
