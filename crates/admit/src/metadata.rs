//! Metadata that the server sets on every object, whether its kind is custom or built in.

use scantling_value::{Map, Str, Value};

/// The metadata of a new object that cannot be computed: the caller generates it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewObjectMeta {
    /// The `uid`.
    pub uid: Str,
    /// The `creationTimestamp`: `2006-01-02T15:04:05Z`.
    pub created: Str,
    /// The suffix that completes `generateName` if the object has no name: five random characters.
    pub suffix: Str,
}

/// The metadata that deletion sets, and a field that servers no longer set.
const DELETION_FIELDS: [&str; 3] = ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"];

/// Removes the metadata that no request can set on a new object.
pub fn remove_system_fields(metadata: &mut Map) {
    for field in DELETION_FIELDS.iter().chain(&["uid", "creationTimestamp"]) {
        metadata.remove(field);
    }
}

impl NewObjectMeta {
    /// Sets the metadata of a new object: `uid`, `creationTimestamp` and, if it is generated, the name. Removes the
    /// fields that only deletion sets.
    pub fn apply_to(&self, metadata: &mut Map) {
        let is_set_later = |name: &str| DELETION_FIELDS.contains(&name);
        if metadata.keys().any(|name| is_set_later(name)) {
            metadata.retain(|name, _| !is_set_later(name));
        }
        metadata.insert("uid", Value::from(self.uid.clone()));
        metadata.insert("creationTimestamp", Value::from(self.created.clone()));
        let prefix = metadata.get("generateName").and_then(Value::as_str);
        // An empty name counts as absent: decoding has dropped it.
        if !metadata.contains_key("name")
            && let Some(prefix) = prefix.filter(|prefix| !prefix.is_empty())
        {
            let name = generated_name(prefix, &self.suffix);
            metadata.insert("name", Value::from(name));
        }
    }
}

/// A generated name has at most 63 characters.
fn generated_name(prefix: &str, suffix: &str) -> String {
    const MAX: usize = 63;
    // kube-apiserver cuts bytes. Names with multi-byte characters are refused later, so it suffices not to
    // split one.
    let len = prefix.floor_char_boundary(MAX.saturating_sub(suffix.len()));
    [prefix.get(..len).unwrap_or(prefix), suffix].concat()
}

/// Restores the metadata that an update cannot change. Another `uid` stays, so that validation reports it.
pub fn keep_system_fields(new: &mut Map, old: &Map) {
    for field in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(value) = old.get(field) {
            new.insert(field, value.clone());
        }
    }
    if let Some(value) = old.get("uid") {
        new.get_or_insert_with("uid", || value.clone());
    }
    // kube-apiserver only fills in an absent grace period; validation reports another one. A value that is not a number
    // counts as absent.
    if let Some(value) = old.get("deletionGracePeriodSeconds")
        && new
            .get("deletionGracePeriodSeconds")
            .and_then(Value::as_int)
            .is_none()
    {
        new.insert("deletionGracePeriodSeconds", value.clone());
    }
}

/// The metadata of an object. Replaces metadata that is not an object.
pub(crate) fn metadata_mut(object: &mut Map) -> &mut Map {
    let value = object.get_or_insert_with("metadata", || Value::Object(Map::new()));
    if !matches!(value, Value::Object(_)) {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        #[expect(clippy::unreachable, reason = "the line above made it an object")]
        _ => unreachable!("metadata is an object"),
    }
}
