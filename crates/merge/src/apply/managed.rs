//! Managers and the fields they own, and their encoding in `metadata.managedFields`.

use crate::fields::Set;
use jiff::Timestamp;
use scantling_value::{Map, Str, Value, go};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

/// The operation by which a manager owns fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ManagerOperation {
    /// By server-side apply.
    Apply,
    /// By any other write.
    Update,
}

impl ManagerOperation {
    /// The name in `managedFields`.
    pub fn as_str(self) -> &'static str {
        match self {
            ManagerOperation::Apply => "Apply",
            ManagerOperation::Update => "Update",
        }
    }
}

/// Identifies an owner of fields.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ManagerId {
    /// The name given by the client.
    pub manager: Str,
    /// The operation.
    pub operation: ManagerOperation,
    /// The version it writes in. `None` for appliers, which have one entry for all versions.
    pub api_version: Option<Str>,
    /// The subresource it writes to; empty for the object itself.
    pub subresource: Str,
}

/// kube-apiserver's order of managers: a manager of a subresource before that of the object itself.
impl Ord for ManagerId {
    fn cmp(&self, other: &Self) -> Ordering {
        fn key(id: &ManagerId) -> (&Str, ManagerOperation, &Option<Str>, bool, &Str) {
            // kube-apiserver compares entries as JSON texts, in which the comma before a subresource precedes
            // the closing brace.
            let of_object = id.subresource.is_empty();
            (
                &id.manager,
                id.operation,
                &id.api_version,
                of_object,
                &id.subresource,
            )
        }
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for ManagerId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl ManagerId {
    pub(super) fn new(
        manager: &str,
        operation: ManagerOperation,
        api_version: &str,
        subresource: &str,
    ) -> Self {
        ManagerId {
            manager: manager.into(),
            operation,
            // kube-apiserver leaves the version out of an applier's identifier, so an apply in another version
            // finds its entry.
            api_version: match operation {
                ManagerOperation::Apply => None,
                ManagerOperation::Update => Some(api_version.into()),
            },
            subresource: subresource.into(),
        }
    }
}

/// Formats the manager as conflicts do: `"one"`, `"ctl" with subresource "status" using g/v1`.
impl fmt::Display for ManagerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&go::quote(&self.manager))?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {}", go::quote(&self.subresource))?;
        }
        match &self.api_version {
            Some(version) => write!(f, " using {version}"),
            None => Ok(()),
        }
    }
}

/// Owned fields in one version.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ManagerFields {
    pub(super) fields: Set,
    pub(super) api_version: Str,
}

impl ManagerFields {
    pub(super) fn new(fields: Set, api_version: &str) -> Self {
        ManagerFields {
            fields,
            api_version: api_version.into(),
        }
    }
}

/// The owners of fields and the times of their last changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ManagedFields {
    pub(super) fields: BTreeMap<ManagerId, ManagerFields>,
    /// Within one operation, times outlive ownership: a manager that loses all its fields and takes some
    /// again keeps its time unless the operation sets a new one.
    pub(super) times: BTreeMap<ManagerId, Timestamp>,
}

/// A time as metadata has it: `2006-01-02T15:04:05Z`.
pub fn timestamp(time: Timestamp) -> String {
    // Whole seconds are written without a fraction, so no format string has to be interpreted.
    Timestamp::from_second(time.as_second())
        .unwrap_or(time)
        .to_string()
}

/// An error of decoding `managedFields`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedError(String);

impl fmt::Display for ManagedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ManagedError {}

/// The `managedFields` of an object.
pub(super) fn entries_of(object: &Value) -> Option<&[Value]> {
    object.at(["metadata", "managedFields"])?.as_array()
}

/// Takes the `managedFields` out of an object.
pub(super) fn take_entries(object: &mut Value) -> Option<Vec<Value>> {
    let metadata = object.as_object_mut()?.get_mut("metadata")?.as_object_mut()?;
    match metadata.remove("managedFields")? {
        Value::Array(entries) => Some(entries),
        _ => None,
    }
}

impl ManagedFields {
    /// Reads `managedFields`.
    pub(super) fn decode(entries: Vec<Value>) -> Result<Self, ManagedError> {
        let mut managed = ManagedFields::default();
        for (i, mut entry) in entries.into_iter().enumerate() {
            // The set is moved out first, so that it is not copied with the rest of the entry.
            let fields = entry.as_object_mut().and_then(|entry| entry.remove("fieldsV1"));
            let text = |name| entry.get_str(name);
            let operation = match text("operation") {
                "Apply" => ManagerOperation::Apply,
                "Update" => ManagerOperation::Update,
                _ => return Err(ManagedError("operation must be `Apply` or `Update`".into())),
            };
            if text("apiVersion").is_empty() {
                return Err(ManagedError("apiVersion must not be empty".into()));
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => {
                    return Err(ManagedError(format!(
                        "missing fieldsType in managed fields entry {i}"
                    )));
                }
                other => {
                    let other = go::quote(other);
                    return Err(ManagedError(format!(
                        "invalid fieldsType {other} in managed fields entry {i}"
                    )));
                }
            }
            let id = ManagerId::new(
                text("manager"),
                operation,
                text("apiVersion"),
                text("subresource"),
            );
            let fields = match fields {
                Some(fields) => Set::from_fields(fields).map_err(|e| {
                    ManagedError(format!("error decoding versioned set: error decoding set: {e}"))
                })?,
                // As on kube-apiserver, an entry without `fieldsV1` owns nothing.
                None => Set::new(),
            };
            // The last of several entries of a manager wins, including its time or the lack of one.
            match entry.get("time").and_then(Value::as_str) {
                Some(time) => {
                    let parsed = time.parse();
                    let time =
                        parsed.map_err(|_| ManagedError(format!("invalid time {}", go::quote(time))))?;
                    managed.times.insert(id.clone(), time);
                }
                None => {
                    managed.times.remove(&id);
                }
            }
            let api_version = text("apiVersion").into();
            managed.fields.insert(id, ManagerFields { fields, api_version });
        }
        Ok(managed)
    }

    /// Encodes `managedFields`: applies before updates, then by time, manager, version, subresource.
    pub(super) fn encode(self) -> Vec<Value> {
        // kube-apiserver sorts by whole seconds and treats an entry without a time as the oldest.
        let seconds = |id: &ManagerId| self.times.get(id).map_or(0, |t| t.as_second());
        let mut entries: Vec<_> = self.fields.into_iter().collect();
        entries.sort_by(|(a, of_a), (b, of_b)| {
            let key = |id: &ManagerId| (id.operation, seconds(id));
            key(a)
                .cmp(&key(b))
                .then_with(|| a.manager.cmp(&b.manager))
                .then_with(|| of_a.api_version.cmp(&of_b.api_version))
                .then_with(|| a.subresource.cmp(&b.subresource))
        });
        let entry = |(id, owned): (ManagerId, ManagerFields)| {
            let time = self.times.get(&id);
            let time = time.map(|time| Value::from(timestamp(*time)));
            let named = |text: Str| (!text.is_empty()).then(|| Value::String(text));
            let members = [
                ("apiVersion", Some(Value::String(owned.api_version))),
                ("fieldsType", Some("FieldsV1".into())),
                ("fieldsV1", Some(owned.fields.into_fields())),
                ("manager", named(id.manager)),
                ("operation", Some(id.operation.as_str().into())),
                ("subresource", named(id.subresource)),
                ("time", time),
            ];
            let members = members
                .into_iter()
                .filter_map(|(name, value)| Some((name, value?)));
            Value::Object(members.collect())
        };
        entries.into_iter().map(entry).collect()
    }

    /// Writes `managedFields` into an object; removes the field if there are no managers.
    pub(super) fn write_to(self, object: &mut Value) {
        set_entries(object, self.encode());
    }
}

/// Copies an object without its `managedFields`.
pub(super) fn without_entries(object: &Value) -> Value {
    // The entries can be larger than the rest of the object, so they are not copied only to be dropped.
    let copy = |map: &Map, name: &str, special: &dyn Fn(&Value) -> Option<Value>| {
        let member = |(key, value): (&Str, &Value)| {
            let value = if key == name {
                special(value)?
            } else {
                value.clone()
            };
            Some((key.clone(), value))
        };
        Value::Object(map.iter().filter_map(member).collect())
    };
    let metadata = |metadata: &Value| match metadata {
        Value::Object(map) => Some(copy(map, "managedFields", &|_| None)),
        other => Some(other.clone()),
    };
    match object {
        Value::Object(map) => copy(map, "metadata", &metadata),
        other => other.clone(),
    }
}

/// Sets or removes the `managedFields` of an object.
pub(super) fn set_entries(object: &mut Value, entries: Vec<Value>) {
    let Some(object) = object.as_object_mut() else {
        return;
    };
    if entries.is_empty() {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        return;
    }
    let metadata = object.get_or_insert_with("metadata", || Value::Object(Map::new()));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("managedFields", Value::Array(entries));
    }
}
