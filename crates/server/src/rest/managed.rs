//! Who manages which field, in the terms of a request.

use crate::api::ResourceRequest;
use crate::discovery::api_version;
use crate::kinds::kind::{Kind, Version};
use crate::rest::conversion::{Memo, with_conversions};
use crate::rest::write::Part;
use crate::status::{ApiError, ApiResult};
use jiff::Timestamp;
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
    /// The version of the request, through which all conversions lead.
    hub: &'a Version,
    /// What a webhook converted.
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

    /// The version of an `apiVersion` of this kind.
    fn version<'v>(&self, api_version: &'v str) -> Option<&'v str> {
        let (group, version) = group_version(api_version);
        let known = group == self.kind.group && self.kind.versions.iter().any(|v| v.name == version);
        known.then_some(version)
    }

    fn convert_by_webhook(&self, object: &Value, to: &str) -> Result<Value, String> {
        let is_of = |version: &str| object.get("apiVersion").and_then(Value::as_str) == Some(version);
        let hub = api_version(&self.kind.group, &self.hub.name);
        if is_of(to) {
            Ok(object.clone())
        } else if to == hub || is_of(&hub) {
            self.memo.convert(object, to)
        } else {
            self.memo.convert(&self.memo.convert(object, &hub)?, to)
        }
    }
}

const NO_VERSION: &str = "request to convert CR to an invalid group/version: ";

impl Versions for KindVersions<'_> {
    fn object_type(&self, api_version: &str) -> Option<&ObjectType> {
        self.kind.strategy.object_type(self.version(api_version)?)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        // A server knows all versions of its own kinds that there ever were, but of others only those of today.
        if !self.kind.built_in && self.version(api_version).is_none() {
            return Err(NO_VERSION.to_owned() + api_version);
        }
        if self.kind.strategy.by_webhook().is_some() {
            return self.convert_by_webhook(object, api_version);
        }
        self.kind.strategy.in_version(object.clone(), api_version)
    }
}

fn manager<'a>(versions: &'a KindVersions<'_>, part: Part) -> FieldManager<'a> {
    let (kind, version) = (versions.kind, versions.hub);
    let asked = api_version(&kind.group, &version.name);
    let mut manager = FieldManager::new(versions, &asked, &kind.kind);
    if let Some(name) = part.subresource_name() {
        manager = manager.subresource(name);
    }
    if let Some(blank) = kind.strategy.empty_object(version) {
        manager = manager.beginning_with(blank);
    }
    match part {
        // Whichever version a manager wrote in: the status is all that changes.
        Part::Status => {
            for version in kind.versions.iter().filter(|v| v.status) {
                let name = api_version(&kind.group, &version.name);
                manager = manager.resets_paths(&name, kind.strategy.kept_by_status().iter().copied());
            }
        }
        // What the version of the request leaves to another endpoint; other versions may differ.
        _ if version.status => manager = manager.resets_paths(&asked, kind.strategy.kept().iter().copied()),
        _ => {}
    }
    manager
}

/// The manager of what a server writes by itself.
const SERVER: &str = "kube-apiserver";

/// The entry of a manager: the server itself, which made an object of the core group with these fields.
pub(crate) fn own_entry(time: &str, fields: Value) -> Value {
    let entry = [
        ("manager", Value::from(SERVER)),
        ("operation", "Update".into()),
        ("apiVersion", "v1".into()),
        ("time", time.into()),
        ("fieldsType", "FieldsV1".into()),
        ("fieldsV1", fields),
    ];
    Value::Object(entry.into_iter().collect())
}

/// An object with its managers after the server wrote its status.
pub(crate) fn after_own_status(kind: &Kind, version: &Version, live: &Value, new: Value) -> Value {
    let versions = KindVersions {
        kind,
        hub: version,
        memo: &Memo::default(),
    };
    let manager = manager(&versions, Part::Status);
    manager.update(Some(live), new, SERVER, Timestamp::now()).object
}

/// A stored object that is about to change.
#[derive(Clone, Copy)]
pub(crate) struct Live<'a> {
    pub(crate) object: &'a Value,
    pub(crate) typed: TypeCheck,
}

/// An object with its managers after an update by one.
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
    if call.kind.strategy.by_webhook().is_none() {
        return updated(call, &update, new, &Memo::default());
    }
    with_conversions(call, |memo| updated(call, &update, new.clone(), memo)).await
}

/// An update by a manager.
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
    if part == Part::Scale {
        return after_scale(call, live, new, name).map(untyped);
    }
    let manager = manager(&versions, part).with_live(typed);
    let update = |new| manager.update(live, new, name, now);
    Ok(match call.kind.strategy.written(call.version, &new) {
        None => update(new),
        Some(written) => untyped(with_managers_of(new, &update(written).object)),
    })
}

/// An object with the managers of another.
fn with_managers_of(mut object: Value, other: &Value) -> Value {
    if let Some(metadata) = crate::rest::write::metadata_mut(&mut object) {
        match other.at(["metadata", "managedFields"]) {
            Some(managers) => metadata.insert("managedFields", managers.clone()),
            None => metadata.remove("managedFields"),
        };
    }
    object
}

/// An apply of a configuration by a manager.
pub(crate) struct Apply<'a> {
    pub(crate) config: &'a Value,
    pub(crate) manager: &'a str,
    pub(crate) force: Force,
    pub(crate) now: Timestamp,
}

/// What an apply makes of an object.
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

/// The version of `Scale`.
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

/// Gives an object back the times of its managers if nothing else about it changed: a write of what is there already
/// is none.
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

/// Whether objects differ in nothing but who manages them.
pub(crate) fn same_but_managers(old: &Value, new: &Value) -> bool {
    let same_metadata = |old: &Value, new: &Value| same_but(old, new, "managedFields", |_, _| true);
    same_but(old, new, "metadata", same_metadata)
}

/// Whether objects have the same members but for one, which is compared apart.
fn same_but(a: &Value, b: &Value, except: &str, apart: impl Fn(&Value, &Value) -> bool) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else {
        return a == b;
    };
    let others = |map: &Map| map.len() - usize::from(map.contains_key(except));
    let null = Value::Null;
    // What is compared apart is mostly small, and where objects mostly differ.
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

/// Removes the managers of an object; says whether it had any.
pub(crate) fn forget(object: &mut Value) -> bool {
    let metadata = crate::rest::write::metadata_mut(object);
    metadata.is_some_and(|m| m.remove("managedFields").is_some())
}

/// The scale of an object with the managers of its replicas.
pub(crate) fn managed_scale(call: &ResourceRequest<'_>, object: &Value) -> ApiResult<Value> {
    let mut scale = crate::rest::scale::scale_to_patch(call, object)?;
    let managers = scale_to_subresource(entries(object), &mapping(call.kind));
    set_entries(
        &mut scale,
        managers.map_err(|e| ApiError::internal(e.to_string()))?,
    );
    Ok(scale)
}

/// An object with its managers after a write to its scale.
fn after_scale(
    call: &ResourceRequest<'_>,
    live: Option<&Value>,
    mut new: Value,
    name: &str,
) -> ApiResult<Value> {
    let before = live.map(|live| managed_scale(call, live)).transpose()?;
    let after = crate::rest::scale::scale_to_patch(call, &new)?;
    if !crate::rest::scale::has_replicas(&after) {
        // The schema does not know the replicas, so they are gone already and have no manager.
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

/// What an apply to the scale of an object makes of the scale, with the managers of the object after it.
pub(crate) fn apply_scale(
    call: &ResourceRequest<'_>,
    live: &Value,
    config: &Value,
    name: &str,
    force: Force,
) -> Result<(Value, Vec<Value>), ApplyError> {
    let before = managed_scale(call, live).map_err(|e| ApplyError::Internal(e.message().to_owned()))?;
    let versions = ScaleVersions;
    // A scale that nobody manages is no beginning: a server would have to convert it as if it were of the kind.
    let manager = FieldManager::new(&versions, SCALE_VERSION, "Scale")
        .subresource("scale")
        .without_beginning(&(NO_VERSION.to_owned() + SCALE_VERSION));
    let scale = manager.apply(Some(&before), config, name, force, Timestamp::now())?;
    if !call.kind.built_in && !same_but_managers(&before, &scale) {
        // An apply may say who manages the replicas, but not change them: a server cannot convert what comes of it.
        let said = |field| crate::rest::write::metadata_str(config, field);
        return Err(ApplyError::Internal(format!(
            "failed to convert new object ({}/{}; {SCALE_VERSION}, Kind=Scale) to proper version: \
             {NO_VERSION}{SCALE_VERSION}",
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
