//! Persistent volumes.

mod sources;

use super::persistent_volume_claim::{
    BETA_CLASS_ANNOTATION, VOLUME_MODES, check_access_modes, check_basic_amount,
};
use crate::checks::defaults::{round_list, set_if_empty};
use crate::checks::gates::drop_disabled_in;
use crate::checks::labels::{Values, has_invalid_value};
use crate::checks::update::{IMMUTABLE, immutable, keep, same_of};
use crate::checks::{Report, Rule, diff, go, names, nodes, resources};
use crate::prepare::{object_in, set_default};
use crate::{Context, Cursor, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_value::{ErrorKind, ErrorList, FieldError, Map, Value};

/// A persistent volume.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    warn: warn_persistent_volume,
    ..KindBehavior::new(KindFacts {
        delete_returns_object: true,
        validates_name_on_update: true,
        ..KindFacts::new("", "PersistentVolume")
    })
};

const RECLAIM_POLICIES: &[&str] = &["Delete", "Recycle", "Retain"];
const INLINE: &str = "may not be specified in the context of inline volumes";

/// The annotation that had mount options before there was a field for them.
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";

fn default(object: &mut Map, _context: &Context<'_>) {
    if let Some(status) = object_in(object, "status") {
        set_if_empty(status, "phase", "Pending");
    }
    if let Some(spec) = object_in(object, "spec") {
        set_if_empty(spec, "persistentVolumeReclaimPolicy", "Retain");
        set_default(spec, "volumeMode", "Filesystem");
        round_list(spec.get_mut("capacity"));
        sources::set_defaults(spec);
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    match (write.operation, write.subresource) {
        (Operation::Update(old), Subresource::Status) => {
            keep(object, old, "spec");
            keep_transition_time(object, old, write.context.now);
        }
        (Operation::Update(old), _) => keep(object, old, "status"),
        (Operation::Create, _) => {
            let status = Map::from_iter([
                ("lastPhaseTransitionTime", Value::from(write.context.now)),
                ("phase", Value::from("Pending")),
            ]);
            object.insert("status", status.into());
        }
    }
    drop_disabled_in(object, "spec", ("core/v1", "PersistentVolumeSpec"), write);
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    if write.subresource == Subresource::Status {
        return;
    }
    let root = Cursor::root(object);
    let spec = root.field("spec");
    let name = object.str_at(["metadata", "name"]);
    check_spec(&spec, name, write, errors);
    check_mount_options(&root, errors);
    if let Some(old) = write.old() {
        check_update(&root, old, write, errors);
    }
}

fn warn_persistent_volume(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    if write.subresource != Subresource::Status {
        warn(object, warnings);
    }
}

/// The time of the last change of the phase, which clients need not set.
fn keep_transition_time(object: &mut Map, old: &Value, now: &str) {
    const TIME: &str = "lastPhaseTransitionTime";
    let Some(status) = object_in(object, "status") else {
        return;
    };
    let set = |time: Option<&Value>| time.filter(|t| !t.is_null()).cloned();
    let (new_time, old_time) = (set(status.get(TIME)), set(old.at(["status", TIME])));
    let is_same_phase =
        status.get("phase").and_then(Value::as_str).unwrap_or("") == old.str_at(["status", "phase"]);
    match (is_same_phase, new_time) {
        (true, None) => {
            if let Some(time) = old_time {
                status.insert(TIME, time);
            }
        }
        // A client that sends the stored time back has not set it.
        (false, new_time) if new_time.is_none() || new_time == old_time => {
            status.insert(TIME, now.into());
        }
        _ => {}
    }
}

/// The location of a spec: a volume, or a volume in an attachment.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SpecLocation {
    Volume,
    Inline,
}

/// Fills in the defaults of the spec of a volume that only a volume attachment has.
pub(crate) fn default_inline_spec(spec: &mut Map) {
    round_list(spec.get_mut("capacity"));
    sources::set_defaults(spec);
}

/// Checks the spec of a volume that only a volume attachment has.
pub(crate) fn check_inline_spec(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    for (field, is_set) in [
        ("claimRef", spec.field("claimRef").is_set()),
        (
            "capacity",
            spec.field("capacity").map().is_some_and(|c| !c.is_empty()),
        ),
    ] {
        if is_set {
            errors.forbidden(&spec.field(field), INLINE);
        }
    }
    if !spec.field("csi").is_set() {
        errors.required(
            &spec.field("csi"),
            "has to be specified in the context of inline volumes",
        );
    }
    check_modes(spec, errors);
    let policy = spec.field("persistentVolumeReclaimPolicy");
    if !matches!(policy.str(), "" | "Retain") {
        errors.forbidden(&policy, "may only be Retain in the context of inline volumes");
    }
    Rule::Forbidden(INLINE).check(&spec.field("nodeAffinity"), errors);
    sources::check(spec, "", errors);
    check_recycled_root(spec, errors);
    check_local(spec, SpecLocation::Inline, errors);
    if !spec.field("storageClassName").str().is_empty() {
        errors.forbidden(&spec.field("storageClassName"), INLINE);
    }
    let mode = spec.field("volumeMode");
    if mode.is_set() && mode.str() != "Filesystem" {
        let why = "may not specify volumeMode other than Filesystem in the context of inline volumes";
        errors.forbidden(&mode, why);
    }
}

fn check_modes(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let modes = spec.field("accessModes");
    Rule::Required.check(&modes, errors);
    check_access_modes(&modes, errors);
}

fn check_spec(spec: &Cursor<'_, '_>, name: &str, write: &Write<'_>, errors: &mut ErrorList) {
    check_modes(spec, errors);
    check_capacity(&spec.field("capacity"), errors);
    let policy = spec.field("persistentVolumeReclaimPolicy");
    if !policy.str().is_empty() {
        Rule::OneOf(RECLAIM_POLICIES).check(&policy, errors);
    }
    check_node_affinity(&spec.field("nodeAffinity"), write.old(), errors);
    sources::check(spec, name, errors);
    check_local(spec, SpecLocation::Volume, errors);
    check_recycled_root(spec, errors);
    Rule::Form(names::dns1123_subdomain).check(&spec.field("storageClassName"), errors);
    Rule::OneOf(VOLUME_MODES).check(&spec.field("volumeMode"), errors);
    let class = spec.field("volumeAttributesClassName");
    let is_stored = write
        .old()
        .and_then(|o| o.at(["spec", "volumeAttributesClassName"]))
        .is_some();
    if class.is_set() && (is_stored || (write.context.enabled)("VolumeAttributesClass")) {
        match class.str() {
            "" => errors.required(&class, "an empty string is disallowed"),
            name => errors.invalid_for(&class, names::dns1123_subdomain(name)),
        }
        if !spec.field("csi").is_set() {
            let why = "has to be specified when using volumeAttributesClassName";
            errors.required(&spec.field("csi"), why);
        }
    }
}

fn check_capacity(capacity: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let amounts = capacity.map().map_or(&[][..], Map::entries);
    if amounts.is_empty() {
        errors.required(capacity, "");
    }
    if amounts.len() != 1 || amounts.iter().any(|(name, _)| name != "storage") {
        let shown = capacity.value().cloned().unwrap_or_default();
        let detail = "supported values: \"storage\"";
        errors.push_with(|| FieldError::new(ErrorKind::NotSupported, capacity.path(), shown, detail));
    }
    for (_, amount) in capacity.entries() {
        check_basic_amount(&amount, errors);
        resources::positive(&amount, errors);
    }
}

fn check_node_affinity(affinity: &Cursor<'_, '_>, old: Option<&Value>, errors: &mut ErrorList) {
    if !affinity.is_set() {
        return;
    }
    let required = affinity.field("required");
    let stored = old.map_or(&[][..], |o| {
        o.list_at(["spec", "nodeAffinity", "required", "nodeSelectorTerms"])
    });
    let values = match stored.iter().any(|term| has_invalid_value(Some(term))) {
        true => Values::Unchecked,
        false => Values::Checked,
    };
    match required.is_set() {
        true => nodes::selector(&required, values, errors),
        false => errors.required(&required, "must specify required node constraints"),
    }
}

/// A local volume is on certain nodes.
fn check_local(spec: &Cursor<'_, '_>, location: SpecLocation, errors: &mut ErrorList) {
    let is_first = sources::first(spec) == Some("local");
    let has_affinity = location == SpecLocation::Volume && spec.field("nodeAffinity").is_set();
    if is_first && !has_affinity {
        errors.required(&spec.field("nodeAffinity"), "Local volume requires node affinity");
    }
}

/// The root of a node is not to be deleted.
fn check_recycled_root(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let host = spec.field("hostPath");
    let policy = spec.field("persistentVolumeReclaimPolicy");
    let path = host.field("path");
    let is_root = path.str().starts_with('/') && is_root_when_cleaned(path.str());
    if host.is_set() && is_root && policy.str() == "Recycle" {
        errors.forbidden(&policy, "may not be 'recycle' for a hostPath mount of '/'");
    }
}

fn is_root_when_cleaned(path: &str) -> bool {
    let mut depth = 0_usize;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => depth = depth.saturating_sub(1),
            _ => depth += 1,
        }
    }
    depth == 0
}

fn check_mount_options(root: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let spec = root.field("spec");
    let metadata = root.field("metadata");
    let annotations = metadata.field("annotations");
    let has_options = annotations.map().is_some_and(|a| a.contains_key(MOUNT_OPTIONS));
    if has_options
        && !sources::SUPPORT_MOUNT_OPTIONS
            .iter()
            .any(|s| spec.field(s).is_set())
    {
        let at = annotations.field(MOUNT_OPTIONS);
        errors.forbidden(&at, "may not specify mount options for this volume type");
    }
}

fn check_update(root: &Cursor<'_, '_>, old: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    const TYPE: (&str, &str) = ("core/v1", "PersistentVolumeSource");
    let spec = root.field("spec");
    let mut new_source = sources::select(spec.value());
    let old_source = sources::select(old.get("spec"));
    // A secret for expansion may be added.
    let secret = ["csi", "controllerExpandSecretRef"];
    if old_source.get("csi").is_some() && old_source.at(secret).is_none() {
        let csi = new_source.as_object_mut().and_then(|s| s.get_mut("csi"));
        if let Some(csi) = csi.and_then(Value::as_object_mut) {
            csi.remove("controllerExpandSecretRef");
        }
    }
    if !same_of(TYPE.0, TYPE.1, Some(&new_source), Some(&old_source)) {
        let diff = diff::structs(TYPE.0, TYPE.1, Some(&old_source), Some(&new_source));
        // The path has the name of the embedded Go struct in lower case.
        let at = Cursor::at(None, spec.path().field("persistentvolumesource"));
        errors.forbidden(
            &at,
            format!("spec.persistentvolumesource is immutable after creation\n{diff}"),
        );
    }
    let mode = spec.field("volumeMode");
    immutable(
        // The path lacks `spec`, as in Kubernetes.
        &mode.with_path(root.path().field("volumeMode")),
        old.at(["spec", "volumeMode"]),
        errors,
    );
    check_affinity_update(root, old, write, errors);
    let class = spec.field("volumeAttributesClassName");
    let stored = old
        .at(["spec", "volumeAttributesClassName"])
        .filter(|v| !v.is_null());
    if class.value() == stored {
        return;
    }
    if !(write.context.enabled)("VolumeAttributesClass") {
        let why = "update is forbidden when the VolumeAttributesClass feature gate is disabled";
        errors.forbidden(&class, why);
    }
    if stored.is_some() && !class.is_set() {
        errors.forbidden(&class, "update from non-nil value to nil is forbidden");
    }
}

/// A node affinity may be added. Later only the keys of deprecated labels may change, to those of their successors.
fn check_affinity_update(root: &Cursor<'_, '_>, old: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    const TYPE: (&str, &str) = ("core/v1", "VolumeNodeAffinity");
    let Some(stored) = old
        .at(["spec", "nodeAffinity"])
        .filter(|stored| !stored.is_null())
    else {
        return;
    };
    if (write.context.enabled)("MutablePVNodeAffinity") {
        return;
    }
    let spec = root.field("spec");
    let affinity = spec.field("nodeAffinity");
    let mut expected = stored.clone();
    if let Some(new) = affinity.value() {
        nodes::follow_stable_labels(&mut expected, new);
    }
    if !same_of(TYPE.0, TYPE.1, affinity.value(), Some(&expected)) {
        let why = format!("{IMMUTABLE}, except for updating from beta label to GA");
        // The path lacks `spec`, as in Kubernetes.
        let at = root.field("nodeAffinity");
        errors.invalid_value(&at, go::pointer(TYPE.0, TYPE.1, affinity.value()), why);
    }
}

fn warn(object: &Value, warnings: &mut Vec<String>) {
    const DEPRECATED: [(&str, &str); 2] = [
        (
            BETA_CLASS_ANNOTATION,
            "deprecated since v1.8; use \"storageClassName\" attribute instead",
        ),
        (
            MOUNT_OPTIONS,
            "deprecated since v1.31; use \"mountOptions\" attribute instead",
        ),
    ];
    let root = Cursor::root(object);
    let spec = root.field("spec");
    for (annotation, why) in DEPRECATED {
        if object.at(["metadata", "annotations", annotation]).is_some() {
            warnings.push(format!("metadata.annotations[{annotation}]: {why}"));
        }
    }
    if spec.field("persistentVolumeReclaimPolicy").str() == "Recycle" {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended \
             approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    let affinity = spec.field("nodeAffinity");
    let required = affinity.field("required");
    for term in required.field("nodeSelectorTerms").items() {
        nodes::warn_about_requirements(&term.field("matchExpressions"), warnings);
    }
    sources::warn(&spec, warnings);
}
