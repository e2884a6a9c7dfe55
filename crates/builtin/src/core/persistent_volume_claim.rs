//! Persistent volume claims.

use crate::checks::defaults::{round_list, round_requirements, set_if_empty};
use crate::checks::gates::drop_disabled_in;
use crate::checks::labels::{self, Values};
use crate::checks::resources::{self, is_native, quantity};
use crate::checks::update::{immutable, keep, same_of};
use crate::checks::{Report, Rule, diff, names};
use crate::prepare::{object_in, set_default};
use crate::{Context, Cursor, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_notation::quantity::Quantity;
use scantling_value::{ErrorList, FieldError, Map, Value};

/// A persistent volume claim.
pub(super) const KIND: KindBehavior = KindBehavior {
    default: |object, _| default_claim(object),
    prepare,
    validate,
    warn,
    ..KindBehavior::new(KindFacts {
        delete_returns_object: true,
        validates_name_on_update: true,
        ..KindFacts::new("", "PersistentVolumeClaim")
    })
};

/// The annotation that named the storage class before there was a field for it.
pub(crate) const BETA_CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// The access modes of volumes.
pub(super) const ACCESS_MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

/// The volume modes.
pub(super) const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];

const RESIZE_STATES: &[&str] = &[
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

/// The name of a claim's storage class; empty if there is none.
pub(crate) fn class_name(claim: &Value) -> &str {
    match beta_class(claim) {
        Some(class) => class,
        None => claim.str_at(["spec", "storageClassName"]),
    }
}

fn beta_class(claim: &Value) -> Option<&str> {
    let annotation = claim.at(["metadata", "annotations", BETA_CLASS_ANNOTATION]);
    annotation.and_then(Value::as_str)
}

/// The storage that a claim requests.
pub(crate) fn requested_storage(claim: &Value) -> Quantity {
    quantity(claim.at(["spec", "resources", "requests", "storage"]))
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    match (write.operation, write.subresource) {
        (Operation::Update(old), Subresource::Status) => {
            keep(object, old, "spec");
            return drop_status_fields(object, old, &write.context);
        }
        (Operation::Create, _) => {
            let status = Map::from_iter([("phase", Value::from("Pending"))]);
            object.insert("status", status.into());
        }
        (Operation::Update(old), _) => keep(object, old, "status"),
    }
    drop_disabled_in(object, "spec", ("core/v1", "PersistentVolumeClaimSpec"), write);
    let old = write.old().and_then(|o| o.get("spec"));
    if let Some(spec) = object_in(object, "spec") {
        drop_foreign_source(spec, old, &write.context);
        relate_data_sources(spec, old);
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    if write.subresource == Subresource::Status {
        return check_status(&root, errors);
    }
    let rules = SpecRules::tolerating(write.old());
    check_spec(&root.field("spec"), rules, &write.context, errors);
    if let Some(old) = write.old() {
        check_update(object, old, &write.context, errors);
    }
}

fn warn(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    if write.subresource == Subresource::Status {
        return;
    }
    let root = Cursor::root(object);
    if beta_class(object).is_some() {
        warnings.push(format!(
            "metadata.annotations[{BETA_CLASS_ANNOTATION}]: deprecated since v1.8; use \"storageClassName\" \
             attribute instead"
        ));
    }
    warn_about_spec(&root.field("spec"), warnings);
}

/// Fills in the defaults of a claim, or of a template of a StatefulSet.
pub(crate) fn default_claim(claim: &mut Map) {
    if let Some(status) = object_in(claim, "status") {
        set_if_empty(status, "phase", "Pending");
        round_list(status.get_mut("capacity"));
        round_list(status.get_mut("allocatedResources"));
    }
    if let Some(spec) = object_in(claim, "spec") {
        default_spec(spec);
    }
}

/// Fills in the defaults of the spec of a claim or of a template for claims.
pub(crate) fn default_spec(spec: &mut Map) {
    set_default(spec, "volumeMode", "Filesystem");
    round_requirements(spec.get_mut("resources"));
}

/// Adds the warnings about the spec of a claim or of a template for claims.
pub(crate) fn warn_about_spec(spec: &Cursor<'_, '_>, warnings: &mut Vec<String>) {
    let resources = spec.field("resources");
    for list in ["requests", "limits"] {
        let amounts = resources.field(list);
        let storage = amounts.field("storage");
        let amount = quantity(storage.value());
        if amount.scaled(-3) % 1000 != 0 {
            let amount = amount.canonical();
            warnings.push(format!(
                "{}[storage]: fractional byte value \"{amount}\" is invalid, must be an integer",
                amounts.path()
            ));
        }
    }
}

/// Drops a data source of another namespace without its feature gate, unless the stored claim has a data source.
fn drop_foreign_source(spec: &mut Map, old: Option<&Value>, context: &Context<'_>) {
    let namespace = spec.get("dataSourceRef").map_or("", |r| r.get_str("namespace"));
    let is_stored = || {
        old.and_then(|o| o.get("dataSourceRef"))
            .is_some_and(|v| !v.is_null())
    };
    if !namespace.is_empty() && !(context.enabled)("CrossNamespaceVolumeDataSource") && !is_stored() {
        spec.remove("dataSourceRef");
    }
}

fn drop_status_fields(object: &mut Map, old: &Value, context: &Context<'_>) {
    const GATED: [(&str, &str); 5] = [
        ("currentVolumeAttributesClassName", "VolumeAttributesClass"),
        ("modifyVolumeStatus", "VolumeAttributesClass"),
        ("allocatedResources", "RecoverVolumeExpansionFailure"),
        ("allocatedResourceStatuses", "RecoverVolumeExpansionFailure"),
        ("healthStatus", "CSIVolumeHealth"),
    ];
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    for (field, gate) in GATED {
        let is_stored = old.at(["status", field]).is_some_and(|v| !v.is_null());
        if !is_stored && !(context.enabled)(gate) {
            status.remove(field);
        }
    }
}

/// `dataSource` and `dataSourceRef` are the same source, unless it is in another namespace.
fn relate_data_sources(spec: &mut Map, old: Option<&Value>) {
    let set = |holder: Option<&Value>| holder.is_some_and(|v| !v.is_null());
    let had_source = ["dataSource", "dataSourceRef"]
        .iter()
        .any(|f| set(old.and_then(|o| o.get(f))));
    if !had_source && !set(spec.get("dataSourceRef")) && !spec.get("dataSource").is_some_and(is_old_source) {
        // Clients that only know the old field expect that other sources are ignored.
        spec.remove("dataSource");
    }
    let (source, reference) = (
        spec.get("dataSource").cloned(),
        spec.get("dataSourceRef").cloned(),
    );
    match (set(source.as_ref()), set(reference.as_ref())) {
        (true, false) => drop(spec.insert("dataSourceRef", source.unwrap_or_default())),
        (false, true)
            if reference
                .as_ref()
                .is_some_and(|r| r.get_str("namespace").is_empty()) =>
        {
            let mut source = reference.and_then(Value::into_object).unwrap_or_default();
            source.remove("namespace");
            spec.insert("dataSource", source.into());
        }
        _ => {}
    }
}

/// Returns whether a source is a claim or a snapshot, the only ones of the old field.
fn is_old_source(source: &Value) -> bool {
    matches!(
        (source.get_str("apiGroup"), source.get_str("kind")),
        ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
    )
}

/// Violations of the stored claim that an update may keep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpecRules {
    /// The validation of the selector's values.
    pub(crate) values: Values,
    /// True if the API groups of data sources are checked.
    pub(crate) checks_api_groups: bool,
}

impl SpecRules {
    /// The rules for an update of a claim or of a template with a claim's spec.
    pub(crate) fn tolerating(old: Option<&Value>) -> Self {
        let mut rules = SpecRules {
            values: Values::Checked,
            checks_api_groups: true,
        };
        let Some(old) = old else { return rules };
        let mut errors = ErrorList::new();
        let root = Cursor::root(old);
        labels::selector(&root.field("spec").field("selector"), &mut errors);
        if !errors.is_empty() {
            rules.values = Values::Unchecked;
        }
        let has_group = |source: &str| old.at(["spec", source, "apiGroup"]).is_some_and(|v| !v.is_null());
        rules.checks_api_groups = !(has_group("dataSource") || has_group("dataSourceRef"));
        rules
    }
}

/// Checks that access modes are known and go together.
pub(super) fn check_access_modes(modes: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let unknown = modes
        .items()
        .map(|m| m.str())
        .filter(|m| !ACCESS_MODES.contains(m));
    for mode in unknown {
        errors.push_with(|| FieldError::not_supported(modes.path(), mode, ACCESS_MODES.iter().copied()));
    }
    let is_exclusive = |mode: &str| mode == "ReadWriteOncePod";
    let has_exclusive = modes.items().any(|m| is_exclusive(m.str()));
    let has_other = modes
        .items()
        .any(|m| ACCESS_MODES.contains(&m.str()) && !is_exclusive(m.str()));
    if has_exclusive && has_other {
        errors.forbidden(modes, "may not use ReadWriteOncePod with other access modes");
    }
}

/// Checks the spec of a claim or of a template for claims.
pub(crate) fn check_spec(
    spec: &Cursor<'_, '_>,
    rules: SpecRules,
    context: &Context<'_>,
    errors: &mut ErrorList,
) {
    let modes = spec.field("accessModes");
    Rule::RequiredFor("at least 1 access mode is required").check(&modes, errors);
    labels::selector_with(&spec.field("selector"), rules.values, errors);
    check_access_modes(&modes, errors);
    let resources = spec.field("resources");
    let storage = resources.field("requests").field("storage").value();
    // The path is written as Kubernetes writes it.
    let storage = Cursor::at(storage, resources.path().key("storage"));
    match storage.is_set() {
        true => resources::positive(&storage, errors),
        false => errors.required(&storage, ""),
    }
    Rule::Form(names::dns1123_subdomain).check(&spec.field("storageClassName"), errors);
    Rule::OneOf(VOLUME_MODES).check(&spec.field("volumeMode"), errors);
    check_data_sources(spec, rules, errors);
    if (context.enabled)("VolumeAttributesClass") {
        Rule::Form(names::dns1123_subdomain).check(&spec.field("volumeAttributesClassName"), errors);
    }
}

fn check_data_sources(spec: &Cursor<'_, '_>, rules: SpecRules, errors: &mut ErrorList) {
    let (source, reference) = (spec.field("dataSource"), spec.field("dataSourceRef"));
    for at in [&source, &reference] {
        if at.is_set() {
            check_data_source(at, rules, errors);
        }
    }
    let namespace = reference.field("namespace");
    if !namespace.str().is_empty() {
        errors.invalid_for(&namespace, names::dns1123_label(namespace.str()));
    }
    if !source.is_set() || !reference.is_set() {
        return;
    }
    let same = |field: &str| source.field(field).value() == reference.field(field).value();
    let why = if !namespace.str().is_empty() {
        "may not be specified when dataSourceRef.namespace is specified"
    } else if !(same("apiGroup") && same("kind") && same("name")) {
        "must match dataSourceRef"
    } else {
        return;
    };
    // Kubernetes shows a path, which prints as an empty object.
    errors.invalid_value(spec, Map::new(), why);
}

fn check_data_source(at: &Cursor<'_, '_>, rules: SpecRules, errors: &mut ErrorList) {
    let (kind, group) = (at.field("kind"), at.field("apiGroup"));
    Rule::Required.check(&at.field("name"), errors);
    Rule::Required.check(&kind, errors);
    if group.str().is_empty() && kind.str() != "PersistentVolumeClaim" {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.invalid_value(at, kind.str(), why);
    }
    if rules.checks_api_groups {
        Rule::Form(names::dns1123_subdomain).check(&group, errors);
    }
}

fn check_update(object: &Value, old: &Value, context: &Context<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    let spec = root.field("spec");
    let (new_class, old_class) = (text(object, "storageClassName"), text(old, "storageClassName"));
    let moves_class = moves_class_to_field(object, old);
    if !moves_class {
        let metadata = root.field("metadata");
        let annotations = metadata.field("annotations");
        let (new, old) = (beta_class(object).unwrap_or(""), beta_class(old).unwrap_or(""));
        if new != old {
            let at = annotations.field(BETA_CLASS_ANNOTATION);
            errors.invalid_value(&at, new, crate::checks::update::IMMUTABLE);
        }
    }
    // A claim without a class may get one later, as controllers assign a default class retroactively.
    let gets_class = new_class.is_some()
        && old_class.is_none()
        && beta_class(old).is_none_or(|annotated| new_class == Some(annotated));
    // Both specs, without the changes that are allowed.
    let mut new_spec = spec.map().cloned().unwrap_or_default();
    let mut old_spec = old
        .get("spec")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    // A controller binds the claim by setting its volume.
    if text(old, "volumeName").unwrap_or("").is_empty() {
        copy(&new_spec, &mut old_spec, "volumeName");
    }
    if moves_class || gets_class {
        copy(&old_spec, &mut new_spec, "storageClassName");
    }
    if object.str_at(["status", "phase"]) == "Bound" {
        copy_requested_storage(&old_spec, &mut new_spec);
        copy(&old_spec, &mut new_spec, "volumeAttributesClassName");
    }
    let [new_spec, old_spec] = [new_spec, old_spec].map(Value::Object);
    const TYPE: (&str, &str) = ("core/v1", "PersistentVolumeClaimSpec");
    if !same_of(TYPE.0, TYPE.1, Some(&new_spec), Some(&old_spec)) {
        let diff = diff::structs(TYPE.0, TYPE.1, Some(&old_spec), Some(&new_spec));
        let why = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
             claims\n{diff}"
        );
        errors.forbidden(&spec, why);
    }
    check_size(&spec, object, old, context, errors);
    let mode = spec.field("volumeMode");
    // The path lacks `spec`, as in Kubernetes.
    let mode = mode.with_path(root.path().field("volumeMode"));
    immutable(&mode, old.at(["spec", "volumeMode"]), errors);
    check_attributes_class(&spec, old, context, errors);
}

/// A string of the spec, if it is set.
fn text<'v>(claim: &'v Value, field: &str) -> Option<&'v str> {
    claim.at(["spec", field]).and_then(Value::as_str)
}

/// Returns whether an update moves the class from the annotation to the field.
fn moves_class_to_field(object: &Value, old: &Value) -> bool {
    let Some(annotated) = beta_class(old) else {
        return false;
    };
    text(old, "storageClassName").is_none()
        && text(object, "storageClassName") == Some(annotated)
        && beta_class(object).is_none_or(|new| new == annotated)
}

fn copy(from: &Map, to: &mut Map, field: &str) {
    match from.get(field) {
        Some(value) => to.insert(field, value.clone()),
        None => to.remove(field),
    };
}

fn copy_requested_storage(from: &Map, to: &mut Map) {
    let stored = from
        .get("resources")
        .and_then(|r| r.at(["requests", "storage"]))
        .cloned();
    let resources = to.get_mut("resources").and_then(Value::as_object_mut);
    let requests = resources
        .and_then(|r| r.get_mut("requests"))
        .and_then(Value::as_object_mut);
    if let (Some(stored), Some(requests)) = (stored, requests) {
        requests.insert("storage", stored);
    }
}

fn check_size(
    spec: &Cursor<'_, '_>,
    object: &Value,
    old: &Value,
    context: &Context<'_>,
    errors: &mut ErrorList,
) {
    let (new_size, old_size) = (requested_storage(object), requested_storage(old));
    if new_size >= old_size {
        return;
    }
    let has_expansion = ["allocatedResources", "allocatedResourceStatuses"]
        .iter()
        .any(|f| old.at(["status", f]).is_some());
    let can_recover = has_expansion || (context.enabled)("RecoverVolumeExpansionFailure");
    let resources = spec.field("resources");
    let requests = resources.field("requests");
    let at = requests.field("storage");
    if !can_recover {
        errors.forbidden(&at, "field can not be less than previous value");
    // An expansion that failed may be reduced, but not to the size that the volume has.
    } else if new_size <= quantity(old.at(["status", "capacity", "storage"])) {
        errors.forbidden(&at, "field can not be less than status.capacity");
    }
}

fn check_attributes_class(spec: &Cursor<'_, '_>, old: &Value, context: &Context<'_>, errors: &mut ErrorList) {
    let class = spec.field("volumeAttributesClassName");
    let stored = old
        .at(["spec", "volumeAttributesClassName"])
        .filter(|v| !v.is_null());
    if class.value() == stored {
        return;
    }
    let is_enabled = (context.enabled)("VolumeAttributesClass");
    if !is_enabled {
        let why = "update is forbidden when the VolumeAttributesClass feature gate is disabled";
        errors.forbidden(&class, why);
    }
    let current = old
        .at(["status", "currentVolumeAttributesClassName"])
        .filter(|v| !v.is_null());
    if (is_enabled || stored.is_some()) && current.is_some() && class.str().is_empty() {
        let what = if class.is_set() { "empty string" } else { "nil" };
        let why =
            format!("update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil");
        errors.forbidden(&class, why);
    }
}

/// The amount of a resource is not negative; the error shows it as a number.
pub(super) fn check_basic_amount(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let amount = quantity(at.value()).scaled(0);
    if amount < 0 {
        errors.invalid_value(at, amount, "must be a valid resource quantity");
    }
}

fn check_status(root: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let status = root.field("status");
    for (_, amount) in status.field("capacity").entries() {
        check_basic_amount(&amount, errors);
    }
    let states = status.field("allocatedResourceStatuses");
    for (resource, state) in states.entries() {
        check_resource_key(resource, &states, errors);
        if !RESIZE_STATES.contains(&state.str()) {
            let supported = RESIZE_STATES.iter().copied();
            errors.push_with(|| FieldError::not_supported(states.path(), resource, supported));
        }
    }
    let allocated = status.field("allocatedResources");
    for (resource, amount) in allocated.entries() {
        let before = errors.total();
        check_resource_key(resource, &allocated, errors);
        if errors.total() == before {
            check_basic_amount(&amount, errors);
        }
    }
}

/// Of the resources of Kubernetes itself, claims have only storage.
fn check_resource_key(resource: &str, at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let wrong = names::label_key(resource);
    if wrong.is_empty() && is_native(resource) && resource != "storage" {
        errors.push_with(|| FieldError::not_supported(at.path(), resource, ["storage"]));
    }
    for why in wrong {
        errors.invalid_value(at, resource, why);
    }
}
