//! Field management as kube-apiserver does it: manager names, times, limits, and objects without managers.

use super::last_applied;
use super::managed::{
    ManagedFields, ManagerFields, ManagerId, ManagerOperation, entries_of, set_entries, take_entries,
    without_entries,
};
use super::updater::{ConvertError, Updater, Versioned};
use super::{Conflicts, Versions};
use crate::fields::{FieldPath, Set};
use crate::typed::Duplicates;
use jiff::Timestamp;
use scantling_schema::meta::{self, MalformedFields};
use scantling_schema::names::group_version;
use scantling_value::{Map, Path, Str, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

/// The maximum number of update managers. Beyond it, the oldest are merged.
const MAX_UPDATE_MANAGERS: usize = 10;
/// The name of merged managers.
const ANCIENT_CHANGES: &str = "ancient-changes";
/// The manager name for fields that existed before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The temporary manager name under which an update collects its changes.
const CURRENT_OPERATION: &str = "current-operation";

/// Whether an apply takes over fields of other managers, or fails with a conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// It fails.
    No,
    /// It takes them over.
    Yes,
}

/// The error of an apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// Other managers own fields with other values (HTTP 409).
    Conflicts(Conflicts),
    /// The request is invalid (HTTP 400).
    BadRequest(String),
    /// Any other error (HTTP 500).
    Internal(String),
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApplyError::Conflicts(conflicts) => conflicts.fmt(f),
            ApplyError::BadRequest(text) | ApplyError::Internal(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for ApplyError {}

/// The knowledge about the conformance of an object to its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TypeCheck {
    /// It must be validated.
    #[default]
    Unknown,
    /// It is the result of an update with the same schema.
    Verified,
}

/// An object with its `managedFields`, ready to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Updated {
    /// The object.
    pub object: Value,
    /// Whether the object is known to conform to its type, for the next update.
    pub typed: TypeCheck,
}

/// Manages the fields of objects of one kind, for requests to one version and subresource.
#[derive(Clone)]
pub struct FieldManager<'a> {
    versions: &'a dyn Versions,
    api_version: Str,
    kind: Str,
    subresource: Str,
    reset: BTreeMap<Str, Set>,
    no_beginning: Option<Str>,
    blank: Option<Value>,
    live: TypeCheck,
}

impl fmt::Debug for FieldManager<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FieldManager")
            .field("api_version", &self.api_version)
            .field("kind", &self.kind)
            .field("subresource", &self.subresource)
            .finish_non_exhaustive()
    }
}

/// Fields that are never owned: they identify the object or belong to the server.
static UNOWNED: LazyLock<Set> = LazyLock::new(|| {
    let root = ["apiVersion", "kind", "metadata"].map(|name| FieldPath::from_names([name]));
    // `clusterName` no longer exists, but kube-apiserver still lists it.
    let metadata = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ]
    .map(|name| FieldPath::from_names(["metadata", name]));
    root.into_iter().chain(metadata).collect()
});

impl<'a> FieldManager<'a> {
    /// Creates a manager for requests to a version (`group/version`) of a kind.
    pub fn new(versions: &'a dyn Versions, api_version: &str, kind: &str) -> Self {
        FieldManager {
            versions,
            api_version: api_version.into(),
            kind: kind.into(),
            subresource: Str::default(),
            reset: BTreeMap::new(),
            no_beginning: None,
            blank: None,
            live: TypeCheck::Unknown,
        }
    }

    /// States whether the live object is known to conform to its type.
    #[must_use]
    pub fn with_live(mut self, live: TypeCheck) -> Self {
        self.live = live;
        self
    }

    /// Sets the object that a create starts from. Built-in types have some fields even when empty; no manager
    /// owns them by leaving them empty.
    #[must_use]
    pub fn beginning_with(mut self, blank: Value) -> Self {
        self.blank = Some(blank);
        self
    }

    /// Makes an apply fail with this reason if the object has no managers yet.
    #[must_use]
    pub fn without_beginning(mut self, why: &str) -> Self {
        self.no_beginning = Some(why.into());
        self
    }

    /// Manages requests to a subresource.
    #[must_use]
    pub fn subresource(mut self, name: &str) -> Self {
        self.subresource = name.into();
        self
    }

    /// Sets the fields, in a version, that writes to this resource cannot change, as paths of names: `status` for the
    /// object itself, `spec` and `metadata` for its status.
    #[must_use]
    pub fn resets_paths<'f>(
        mut self,
        api_version: &str,
        paths: impl IntoIterator<Item = &'f [&'f str]>,
    ) -> Self {
        let set = paths
            .into_iter()
            .map(|path| FieldPath::from_names(path.iter().copied()))
            .collect();
        self.reset.insert(api_version.into(), set);
        self
    }

    fn updater(&self) -> Updater<'_> {
        Updater {
            versions: self.versions,
            reset: &self.reset,
        }
    }

    /// The manager of a request; `unknown` if it has no name.
    fn id(&self, manager: &str, operation: ManagerOperation) -> ManagerId {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        ManagerId::new(manager, operation, &self.api_version, &self.subresource)
    }

    /// Sets the `managedFields` of an object that is about to be written by anything but an apply. `live` is
    /// `None` for a create. If the fields cannot be managed, those of the live object stay.
    pub fn update(&self, live: Option<&Value>, mut new: Value, manager: &str, now: Timestamp) -> Updated {
        let sent = take_entries(&mut new);
        let managed = self.managed_before(live, sent);
        let updated = self.update_managed(live, &new, managed, manager, now);
        let typed = match updated {
            Ok(Some(managed)) => {
                managed.write_to(&mut new);
                TypeCheck::Verified
            }
            Ok(None) => TypeCheck::Unknown,
            // kube-apiserver only logs this error: a write must not fail because its fields cannot be tracked.
            Err(_) => {
                set_entries(&mut new, live.and_then(entries_of).unwrap_or_default().to_vec());
                TypeCheck::Unknown
            }
        };
        Updated { object: new, typed }
    }

    /// Returns the ownership before an update. A client may set `managedFields` itself: an empty list is
    /// ignored, a list of one empty entry clears all ownership, and malformed entries are ignored. A write to
    /// a subresource cannot set them.
    fn managed_before(&self, live: Option<&Value>, sent: Option<Vec<Value>>) -> ManagedFields {
        let of_live = || {
            // If the stored entries are malformed, management starts anew, as on kube-apiserver: updates must
            // stay possible.
            let entries = live.and_then(entries_of).unwrap_or_default();
            ManagedFields::decode(entries.to_vec()).unwrap_or_default()
        };
        if !self.subresource.is_empty() {
            return of_live();
        }
        match sent {
            Some(entries) if matches!(entries.as_slice(), [only] if is_blank(only)) => {
                ManagedFields::default()
            }
            Some(entries) => match ManagedFields::decode(entries) {
                Ok(managed) if !managed.fields.is_empty() => managed,
                _ => of_live(),
            },
            None => of_live(),
        }
    }

    /// Returns the ownership after an update; `None` if there are no owners.
    fn update_managed(
        &self,
        live: Option<&Value>,
        new: &Value,
        managed: ManagedFields,
        manager: &str,
        now: Timestamp,
    ) -> Result<Option<ManagedFields>, ApplyError> {
        // An object without managers becomes managed at its first apply, not at its first update.
        let uid = live
            .and_then(|l| l.at(["metadata", "uid"]))
            .and_then(Value::as_str);
        let exists = uid.is_some_and(|uid| !uid.is_empty());
        if managed.fields.is_empty() && exists {
            return Ok(None);
        }
        self.track_update(live, new, managed, manager, now).map(Some)
    }

    fn empty_object(&self) -> Cow<'_, Value> {
        self.blank.as_ref().map_or_else(
            || {
                let members = [("apiVersion", &self.api_version), ("kind", &self.kind)];
                let members = members.map(|(name, text)| (name, Value::String(text.clone())));
                Cow::Owned(Map::from_iter(members).into())
            },
            Cow::Borrowed,
        )
    }

    /// Returns the ownership after a change of the live object, or of an empty one, which has its type.
    fn track_update(
        &self,
        live: Option<&Value>,
        new: &Value,
        managed: ManagedFields,
        manager: &str,
        now: Timestamp,
    ) -> Result<ManagedFields, ApplyError> {
        let (live, known) = match live {
            Some(live) => (Cow::Borrowed(live), self.live),
            None => (self.empty_object(), TypeCheck::Verified),
        };
        let new = self.versioned("new", new)?;
        let live = self.versioned("live", &live)?;
        let not_typed = |what: &str, object: &Value, why: &str| {
            let describe_object = self.describe_object(object);
            ApplyError::Internal(format!(
                "failed to convert {what} object ({describe_object}) to smd typed: {why}"
            ))
        };
        let judge_live = || self.validate(&live, Duplicates::Allowed);
        match known {
            TypeCheck::Unknown => judge_live().map_err(|e| not_typed("live", &live.object, &e))?,
            TypeCheck::Verified => {
                debug_assert_eq!(judge_live(), Ok(()), "{:?} has not its type", live.object);
            }
        }
        let changes = self.updater().compare(&live, &new).map_err(|e| match e {
            ConvertError::Failed(why) => not_typed("new", &new.object, &why),
            ConvertError::Missing => not_typed("new", &new.object, &self.no_type(&new)),
        })?;
        let id = self.id(manager, ManagerOperation::Update);
        // No stored entry has this name, so the updater returns exactly the changes of this write for it.
        let current = ManagerId::new(CURRENT_OPERATION, ManagerOperation::Update, &self.api_version, "");
        let ManagedFields { fields, mut times } = managed;
        let (mut fields, mut taken) = self.updater().update(&live, &new, changes, fields, &current)?;
        // The difference decides whether the object changed; then it is added to what the manager owned
        // before.
        taken.subtract(&UNOWNED);
        if !taken.is_empty() {
            match fields.get_mut(&id) {
                Some(owned) => owned.fields.unite(taken),
                None => drop(fields.insert(id.clone(), ManagerFields::new(taken, &self.api_version))),
            }
            times.insert(id, now);
        }
        let mut managed = ManagedFields { fields, times };
        cap_update_managers(&mut managed);
        Ok(managed)
    }

    /// Wraps the live or new object in the version of the request.
    fn versioned<'v>(&self, what: &str, object: &'v Value) -> Result<Versioned<'v>, ApplyError> {
        let from = object.get_str("apiVersion");
        if from == self.api_version || from.is_empty() {
            return Ok(Versioned::borrowed(object, &self.api_version));
        }
        let converted = self.versions.convert(object, &self.api_version);
        let converted = converted.map_err(|e| self.not_converted(what, object, &e))?;
        Ok(Versioned::owned(converted, &self.api_version))
    }

    fn not_converted(&self, what: &str, object: &Value, why: &str) -> ApplyError {
        let describe_object = self.describe_object(object);
        // kube-apiserver names the version for the new object only.
        let version = match what {
            "new" => format!("version ({})", self.api_version),
            _ => "version".to_owned(),
        };
        ApplyError::Internal(format!(
            "failed to convert {what} object ({describe_object}) to proper {version}: {why}"
        ))
    }

    fn validate(&self, object: &Versioned<'_>, duplicates: Duplicates) -> Result<(), String> {
        let ty = self.versions.object_type(&object.api_version);
        let ty = ty.ok_or_else(|| self.no_type(object))?;
        ty.validate(&object.object, duplicates).map_err(|e| e.to_string())
    }

    fn no_type(&self, object: &Versioned<'_>) -> String {
        let (group, version) = group_version(&object.api_version);
        format!("no corresponding type for {group}/{version}, Kind={}", self.kind)
    }

    /// `namespace/name; group/version, Kind=kind`.
    fn describe_object(&self, object: &Value) -> String {
        let text = |path: [&str; 2]| object.str_at(path);
        let root = |name| object.get_str(name);
        let (group, version) = group_version(root("apiVersion"));
        let kind = root("kind");
        format!(
            "{}/{}; {group}/{version}, Kind={kind}",
            text(["metadata", "namespace"]),
            text(["metadata", "name"])
        )
    }

    /// Applies a configuration to the live object, or to an empty one for a create. The result has its
    /// `managedFields` but no defaults yet.
    pub fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        manager: &str,
        force: Force,
        now: Timestamp,
    ) -> Result<Value, ApplyError> {
        let empty = self.empty_object();
        let live = live.unwrap_or(&empty);
        // Unlike an update, an apply cannot start anew: what it removes depends on what its manager owned
        // before.
        let managed = ManagedFields::decode(entries_of(live).unwrap_or_default().to_vec())
            .map_err(|e| ApplyError::Internal(format!("failed to decode managed fields: {e}")))?;
        self.check_config(config)?;

        // Only kubectl gets a second attempt, and the first one consumes the ownership.
        let before = (manager == last_applied::MANAGER).then(|| managed.clone());
        let first = self.apply_managed(live, config, managed, manager, force, now);
        let applied = match first {
            Err(ApplyError::Conflicts(conflicts)) => {
                // Fields set by client-side apply belong to this manager, unless they changed since.
                match before.zip(self.allowed_by_last_applied(live)) {
                    Some((managed, allowed)) => {
                        let left = conflicts.0.iter().filter(|c| !allowed.contains(&c.path.0));
                        let left: Vec<_> = left.cloned().collect();
                        if !left.is_empty() {
                            return Err(ApplyError::Conflicts(Conflicts(left)));
                        }
                        // All conflicts are allowed, so forcing overrides nothing else.
                        self.apply_managed(live, config, managed, manager, Force::Yes, now)
                    }
                    None => Err(ApplyError::Conflicts(conflicts)),
                }
            }
            other => other,
        };
        let (mut object, managed) = applied?;
        if manager == last_applied::MANAGER {
            last_applied::refresh(&mut object, config);
        }
        managed.write_to(&mut object);
        Ok(object)
    }

    fn check_config(&self, config: &Value) -> Result<(), ApplyError> {
        let text = |name| config.get_str(name);
        if text("apiVersion") != self.api_version || text("kind") != self.kind {
            // A malformed version says nothing about the object, not even its kind.
            let is_version = text("apiVersion").matches('/').count() < 2;
            let (api_version, kind) = if is_version {
                (text("apiVersion"), text("kind"))
            } else {
                ("", "")
            };
            let (group, version) = group_version(api_version);
            return Err(ApplyError::BadRequest(format!(
                "invalid object type: {group}/{version}, Kind={kind}"
            )));
        }
        Ok(())
    }

    fn apply_managed(
        &self,
        live: &Value,
        config: &Value,
        mut managed: ManagedFields,
        manager: &str,
        force: Force,
        now: Timestamp,
    ) -> Result<(Value, ManagedFields), ApplyError> {
        if managed.fields.is_empty() {
            // Existing fields belong to the manager `before-first-apply`.
            let tracked = match &self.no_beginning {
                Some(why) => Err(self.not_converted("live", &self.empty_object(), why)),
                None => self.track_update(None, live, managed, BEFORE_FIRST_APPLY, now),
            };
            managed = tracked.map_err(|e| {
                ApplyError::Internal(format!("failed to create manager for existing fields: {e}"))
            })?;
        }
        if sends_entries(config) {
            return Err(ApplyError::BadRequest(
                "metadata.managedFields must be nil".into(),
            ));
        }
        let id = self.id(manager, ManagerOperation::Apply);
        let config = Versioned::borrowed(config, &self.api_version);
        self.validate(&config, Duplicates::Refused).map_err(|e| {
            let describe_object = self.describe_object(&config.object);
            ApplyError::Internal(format!(
                "failed to create typed patch object ({describe_object}): {e}"
            ))
        })?;
        let live_versioned = self.versioned("live", live)?;
        // The entries are no part of the merge; the new ones are written last.
        let base = without_entries(&live_versioned.object);
        let typed_base = Versioned::borrowed(&base, &live_versioned.api_version);
        self.validate(&typed_base, Duplicates::Allowed).map_err(|e| {
            let describe_object = self.describe_object(&base);
            ApplyError::Internal(format!(
                "failed to create typed live object ({describe_object}): {e}"
            ))
        })?;
        let ManagedFields { fields, mut times } = managed;
        let (object, mut fields) =
            self.updater()
                .apply(&live_versioned, base, &config, fields, &id, force)?;
        if let Some(owned) = fields.get_mut(&id) {
            owned.fields.subtract(&UNOWNED);
            if owned.fields.is_empty() {
                fields.remove(&id);
            }
        }
        let object = match object {
            // An apply that changes nothing keeps its time, so repeating it causes no write.
            Some(object) => {
                times.insert(id, now);
                object
            }
            None => without_entries(live),
        };
        Ok((object, ManagedFields { fields, times }))
    }

    /// The fields that client-side apply set last and that still have their applied values.
    fn allowed_by_last_applied(&self, live: &Value) -> Option<Set> {
        let last = last_applied::read(live)?;
        if last.get("apiVersion").and_then(Value::as_str) != Some(self.api_version.as_str()) {
            return None;
        }
        let live = self.versioned("live", live).ok()?;
        self.validate(&live, Duplicates::Refused).ok()?;
        let ty = self.versions.object_type(&self.api_version)?;
        ty.validate(&last, Duplicates::Refused).ok()?;
        let changes = ty.compare(&last, &live.object).ok()?;
        let mut fields = ty.fields_of(&last);
        for changed in [&changes.modified, &changes.added, &changes.removed] {
            fields.subtract(changed);
        }
        Some(fields)
    }
}

/// Returns whether an entry of `managedFields` is empty.
fn is_blank(entry: &Value) -> bool {
    // kube-apiserver compares the decoded entry with Go's zero value, which empty strings equal.
    let blank = |v: &Value| v.is_null() || v.as_str() == Some("");
    entry.as_object().is_some_and(|e| e.values().all(blank))
}

/// Merges the oldest update managers, version by version, down to the limit.
fn cap_update_managers(managed: &mut ManagedFields) {
    let mut updaters: Vec<ManagerId> = managed
        .fields
        .keys()
        .filter(|id| id.operation == ManagerOperation::Update)
        .cloned()
        .collect();
    let mut count = updaters.len();
    if count <= MAX_UPDATE_MANAGERS {
        return;
    }
    let seconds = |id: &ManagerId| managed.times.get(id).map_or(0, |t| t.as_second());
    updaters.sort_by_cached_key(|id| (seconds(id), id.clone()));
    let mut first_of_version: BTreeMap<Str, ManagerId> = BTreeMap::new();
    for id in updaters {
        if count <= MAX_UPDATE_MANAGERS {
            break;
        }
        let Some(owned) = managed.fields.get(&id).cloned() else {
            continue;
        };
        // A single old manager of a version keeps its entry: merging needs two.
        let Some(first) = first_of_version.get(&owned.api_version) else {
            first_of_version.insert(owned.api_version.clone(), id);
            continue;
        };
        let bucket = ManagerId::new(ANCIENT_CHANGES, ManagerOperation::Update, &owned.api_version, "");
        if !managed.fields.contains_key(&bucket)
            && let Some(owned) = managed.fields.remove(first)
        {
            managed.fields.insert(bucket.clone(), owned);
        }
        managed.fields.remove(&id);
        count -= 1;
        if let Some(joined) = managed.fields.get_mut(&bucket) {
            joined.fields.unite(owned.fields);
        }
        // The merged entry has the newest time of its parts.
        match managed.times.get(&id).copied() {
            Some(time) => managed.times.insert(bucket, time),
            None => managed.times.remove(&bucket),
        };
    }
}

/// Returns whether a configuration has well-formed `managedFields`. Malformed ones are reported with the rest
/// of the object.
fn sends_entries(config: &Value) -> bool {
    let sent = config.at(["metadata", "managedFields"]).filter(|v| !v.is_null());
    sent.is_some_and(|sent| {
        let metadata = Map::from_iter([("managedFields", sent.clone())]);
        let mut object = Map::from_iter([("metadata", metadata.into())]);
        meta::coerce(&mut object, &Path::ROOT, MalformedFields::Refuse).is_ok()
    })
}
