//! Field ownership: updates `managedFields` after writes, applies and scales.

use crate::api::ResourceRequest;
use crate::discovery::api_version;
use crate::kinds::codec::INVALID_VERSION;
use crate::kinds::kind::{Kind, Version};
use crate::rest::conversion::{Memo, with_conversions};
use crate::rest::write::Part;
use crate::status::{ApiError, ApiResult};
use jiff::Timestamp;
use scantling_builtin::Subresource;
use scantling_merge::apply::{
    ApplyError, FieldManager, Force, ScaleMapping, TypeCheck, Updated, Versions, scale_to_parent,
    scale_to_subresource,
};
use scantling_merge::fields::FieldPath;
use scantling_merge::typed::ObjectType;
use scantling_schema::names::group_version;
use scantling_value::{Map, Value};
use std::sync::LazyLock;

/// The versions of a kind, as ownership sees them.
struct KindVersions<'a> {
    kind: &'a Kind,
    /// The version of the request. Conversions by a webhook go through it.
    hub: &'a Version,
    /// The conversions by a webhook.
    memo: &'a Memo,
}

impl<'a> KindVersions<'a> {
    fn new(call: &'a ResourceRequest<'_>, memo: &'a Memo) -> Self {
        KindVersions {
            kind: call.kind,
            hub: call.version,
            memo,
        }
    }

    fn convert_by_webhook(&self, object: &Value, to: &str) -> Result<Value, String> {
        let is_of = |version: &str| object.get("apiVersion").and_then(Value::as_str) == Some(version);
        let hub = api_version(&self.kind.group, &self.hub.name);
        if !self.kind.has_version(to) {
            Err(format!("{INVALID_VERSION}{to}"))
        } else if is_of(to) {
            Ok(object.clone())
        } else if to == hub || is_of(&hub) {
            self.memo.convert(object, to)
        } else {
            // As in kube-apiserver's version converter, every version is reached through the hub.
            self.memo.convert(&self.memo.convert(object, &hub)?, to)
        }
    }
}

impl Versions for KindVersions<'_> {
    fn object_type(&self, api_version: &str) -> Option<&ObjectType> {
        let version = self
            .kind
            .has_version(api_version)
            .then(|| group_version(api_version).1);
        self.kind.codec.object_type(version?)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        match self.kind.codec.webhook() {
            Some(_) => self.convert_by_webhook(object, api_version),
            None => self.kind.codec.in_version(self.kind, object.clone(), api_version),
        }
    }
}

fn manager<'a>(versions: &'a KindVersions<'_>, part: Part) -> FieldManager<'a> {
    let (kind, version) = (versions.kind, versions.hub);
    let asked = api_version(&kind.group, &version.name);
    let mut manager = FieldManager::new(versions, &asked, &kind.kind);
    if let Some(name) = part.subresource_name() {
        manager = manager.subresource(name);
    }
    if let Some(blank) = kind.codec.empty_object(version) {
        manager = manager.beginning_with(blank);
    }
    match part {
        // In every version, only the status changes.
        Part::Status => {
            for version in kind.versions.iter().filter(|v| v.status) {
                let name = api_version(&kind.group, &version.name);
                manager = manager.resets_paths(&name, kind.behavior.facts.status_keeps.iter().copied());
            }
        }
        Part::Other(Subresource::Approval) => {
            manager = manager.resets_paths(&asked, kind.behavior.facts.approval_keeps.iter().copied());
        }
        // kube-apiserver resets fields of these subresources without telling the managers.
        Part::Other(Subresource::EphemeralContainers | Subresource::Resize) => {}
        // Other versions may have no status endpoint.
        _ if version.status => {
            manager = manager.resets_paths(&asked, kind.behavior.facts.keeps.iter().copied());
        }
        _ => {}
    }
    manager
}

/// The field manager of the server itself.
const SERVER: &str = "kube-apiserver";

/// Returns an object with its managed fields after the server wrote its status.
pub(crate) fn after_own_status(kind: &Kind, version: &Version, live: &Value, new: Value) -> Value {
    let versions = KindVersions {
        kind,
        hub: version,
        memo: &Memo::default(),
    };
    let manager = manager(&versions, Part::Status);
    manager.update(Some(live), new, SERVER, Timestamp::now()).object
}

/// The stored object of an update.
#[derive(Clone, Copy)]
pub(crate) struct Live<'a> {
    pub(crate) object: &'a Value,
    pub(crate) typed: TypeCheck,
}

/// Returns an object with its managed fields after an update.
pub(crate) async fn after_update(
    call: &ResourceRequest<'_>,
    part: Part,
    live: Option<Live<'_>>,
    new: Value,
    name: &str,
) -> ApiResult<Updated> {
    let update = Update {
        part,
        live,
        name,
        now: Timestamp::now(),
    };
    // Without a webhook the update runs once, so the object is moved; with one it may run again and is cloned.
    if call.kind.codec.webhook().is_none() {
        return updated(call, &update, new, &Memo::default());
    }
    with_conversions(call, |memo| updated(call, &update, new.clone(), memo)).await
}

/// An update by a field manager.
struct Update<'a> {
    part: Part,
    live: Option<Live<'a>>,
    name: &'a str,
    now: Timestamp,
}

fn updated(call: &ResourceRequest<'_>, update: &Update<'_>, new: Value, memo: &Memo) -> ApiResult<Updated> {
    let Update {
        part,
        live,
        name,
        now,
    } = *update;
    let versions = KindVersions::new(call, memo);
    let typed = live.map_or(TypeCheck::Unknown, |live| live.typed);
    let live = live.map(|live| live.object);
    let untyped = |object| Updated {
        object,
        typed: TypeCheck::Unknown,
    };
    // The scale has managers of its own type, which are mapped to the fields of the object.
    if part == Part::Scale {
        return after_scale(call, live, new, name).map(untyped);
    }
    let manager = manager(&versions, part).with_live(typed);
    let update = |new| manager.update(live, new, name, now);
    Ok(match call.kind.codec.managed_form(call.version, &new) {
        None => update(new),
        // Ownership is computed on the form that Go would encode, but the object keeps its own form.
        Some(written) => untyped(with_managers_of(new, &update(written).object)),
    })
}

/// Returns an object with the managed fields of another.
fn with_managers_of(mut object: Value, other: &Value) -> Value {
    if let Some(metadata) = crate::rest::write::metadata_mut(&mut object) {
        match other.at(["metadata", "managedFields"]) {
            Some(managers) => metadata.insert("managedFields", managers.clone()),
            None => metadata.remove("managedFields"),
        };
    }
    object
}

/// An apply of a configuration by a field manager.
pub(crate) struct Apply<'a> {
    pub(crate) config: &'a Value,
    pub(crate) manager: &'a str,
    pub(crate) force: Force,
    pub(crate) now: Timestamp,
}

/// Applies a configuration to an object.
pub(crate) fn apply(
    call: &ResourceRequest<'_>,
    part: Part,
    live: Option<&Value>,
    apply: &Apply<'_>,
    memo: &Memo,
) -> Result<Value, ApplyError> {
    let versions = KindVersions::new(call, memo);
    manager(&versions, part).apply(live, apply.config, apply.manager, apply.force, apply.now)
}

/// The `apiVersion` of `Scale`.
pub(crate) const SCALE_VERSION: &str = "autoscaling/v1";

struct ScaleVersions;

impl Versions for ScaleVersions {
    fn object_type(&self, api_version: &str) -> Option<&ObjectType> {
        static SCALE: LazyLock<ObjectType> = LazyLock::new(ObjectType::scale);
        (api_version == SCALE_VERSION).then_some(&*SCALE)
    }

    fn convert(&self, object: &Value, _api_version: &str) -> Result<Value, String> {
        Ok(object.clone())
    }
}

fn mapping(kind: &Kind) -> ScaleMapping {
    let entry = |v: &Version| {
        let path = v
            .scale
            .as_ref()
            .map(|s| FieldPath::from_names(s.spec_replicas_path()));
        (api_version(&kind.group, &v.name).into(), path)
    };
    ScaleMapping(kind.versions.iter().map(entry).collect())
}

/// The `managedFields` of an object.
pub(crate) fn entries(object: &Value) -> &[Value] {
    object.list_at(["metadata", "managedFields"])
}

/// Restores the times of managed fields if nothing else changed: such a write is not stored.
pub(crate) fn keep_times(old: &Value, new: &mut Value) {
    let (before, after) = (entries(old), entries(new));
    let same_managers = || {
        let mut pairs = before.iter().zip(after);
        before.len() == after.len() && pairs.all(|(b, a)| same_but(b, a, "time", |_, _| true))
    };
    if !before.is_empty() && same_but_managers(old, new) && same_managers() {
        let before = before.to_vec();
        set_entries(new, before);
    }
}

/// Returns whether objects are equal except for their managed fields.
pub(crate) fn same_but_managers(old: &Value, new: &Value) -> bool {
    let same_metadata = |old: &Value, new: &Value| same_but(old, new, "managedFields", |_, _| true);
    same_but(old, new, "metadata", same_metadata)
}

/// Returns whether objects have the same members; `apart` compares the member `except`.
fn same_but(a: &Value, b: &Value, except: &str, apart: impl Fn(&Value, &Value) -> bool) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else {
        return a == b;
    };
    let others = |map: &Map| map.len() - usize::from(map.contains_key(except));
    let null = Value::Null;
    // That member is usually small, and the one that differs.
    others(a) == others(b)
        && apart(a.get(except).unwrap_or(&null), b.get(except).unwrap_or(&null))
        && a.iter()
            .all(|(name, value)| name == except || b.get(name) == Some(value))
}

pub(crate) fn set_entries(object: &mut Value, entries: Vec<Value>) {
    if let Some(m) = crate::rest::write::metadata_mut(object) {
        if entries.is_empty() {
            m.remove("managedFields");
        } else {
            m.insert("managedFields", Value::Array(entries));
        }
    }
}

/// Removes the managed fields; returns whether there were any.
pub(crate) fn forget(object: &mut Value) -> bool {
    let metadata = crate::rest::write::metadata_mut(object);
    metadata.is_some_and(|m| m.remove("managedFields").is_some())
}

/// Returns the scale of an object with the managed fields of its replicas.
pub(crate) fn managed_scale(call: &ResourceRequest<'_>, object: &Value) -> ApiResult<Value> {
    let mut scale = crate::rest::scale::scale_to_patch(call, object)?;
    let managers = scale_to_subresource(entries(object), &mapping(call.kind));
    set_entries(
        &mut scale,
        managers.map_err(|e| ApiError::internal(e.to_string()))?,
    );
    Ok(scale)
}

/// Returns an object with its managed fields after a write to its scale.
fn after_scale(
    call: &ResourceRequest<'_>,
    live: Option<&Value>,
    mut new: Value,
    name: &str,
) -> ApiResult<Value> {
    let before = live.map(|live| managed_scale(call, live)).transpose()?;
    let after = crate::rest::scale::scale_to_patch(call, &new)?;
    if !crate::rest::scale::has_replicas(&after) {
        // The schema has no replicas: they were pruned and have no manager.
        return Ok(new);
    }
    let versions = ScaleVersions;
    let manager = FieldManager::new(&versions, SCALE_VERSION, "Scale").subresource("scale");
    let after = manager
        .update(before.as_ref(), after, name, Timestamp::now())
        .object;
    let parent = live.map_or(&[][..], entries);
    let managers = scale_to_parent(parent, entries(&after), &mapping(call.kind), &call.api_version());
    set_entries(&mut new, managers.map_err(|e| ApiError::internal(e.to_string()))?);
    Ok(new)
}

/// Applies a configuration to the scale of an object. Returns the scale and the managed fields of the object.
pub(crate) fn apply_scale(
    call: &ResourceRequest<'_>,
    live: &Value,
    config: &Value,
    name: &str,
    force: Force,
) -> Result<(Value, Vec<Value>), ApplyError> {
    let before = managed_scale(call, live).map_err(|e| ApplyError::Internal(e.message().to_owned()))?;
    let versions = ScaleVersions;
    let manager = FieldManager::new(&versions, SCALE_VERSION, "Scale").subresource("scale");
    let manager = match call.kind.built_in {
        true => manager,
        // kube-apiserver cannot convert the scale of a custom resource without managed fields, because it treats it as
        // an object of the kind.
        false => manager.without_beginning(&format!("{INVALID_VERSION}{SCALE_VERSION}")),
    };
    let scale = manager.apply(Some(&before), config, name, force, Timestamp::now())?;
    if !call.kind.built_in && !same_but_managers(&before, &scale) {
        // An apply may change the owner of the replicas, but not the replicas: kube-apiserver cannot convert the
        // result.
        let said = |field| crate::rest::write::metadata_str(config, field);
        return Err(ApplyError::Internal(format!(
            "failed to convert new object ({}/{}; {SCALE_VERSION}, Kind=Scale) to proper version: \
             {INVALID_VERSION}{SCALE_VERSION}",
            said("namespace"),
            said("name"),
        )));
    }
    let entries = scale_to_parent(
        entries(live),
        entries(&scale),
        &mapping(call.kind),
        &call.api_version(),
    )
    .map_err(|e| ApplyError::Internal(e.to_string()))?;
    Ok((scale, entries))
}
