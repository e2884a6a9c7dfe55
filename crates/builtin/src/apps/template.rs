//! Pod templates of workloads, and the selectors that must match them.

use crate::checks::{Report, go, labels, names, update};
use crate::core::pod_template;
use crate::prepare::{object_if_set, object_in, set_default};
use crate::{Context, Cursor, Subresource, Write};
use scantling_value::{BadValue, ErrorList, FieldError, Map, Value};

/// Fills in the defaults of a workload's pod template.
pub(crate) fn default(spec: &mut Map, context: &Context<'_>) {
    if let Some(template) = object_in(spec, "template") {
        pod_template::default(template, context);
    }
}

/// Fills in members that are absent or empty with the labels of the template: the labels of the workload, or its selector.
pub(crate) fn default_labels(object: &mut Map, members: &[(&str, &'static str)]) {
    let spec = object.get("spec");
    let labels = spec.and_then(|spec| spec.at(["template", "metadata", "labels"]));
    let Some(labels) = labels.cloned() else { return };
    for (owner, member) in members {
        if let Some(owner) = object_in(object, owner) {
            let is_empty = |value: &Value| value.as_object().is_none_or(Map::is_empty);
            if owner.get(member).is_none_or(is_empty) {
                owner.insert(*member, labels.clone());
            }
        }
    }
}

/// Drops the fields of disabled feature gates from the template of a spec, which is at the path.
pub(crate) fn drop_disabled(object: &mut Map, write: &Write<'_>, spec: &[&str]) {
    let old = write
        .old()
        .and_then(|old| old.at(spec.iter().copied()))
        .and_then(|spec| spec.get("template"));
    let spec = spec
        .iter()
        .try_fold(object, |at, member| object_if_set(at, member));
    if let Some(template) = spec.and_then(|spec| object_if_set(spec, "template")) {
        pod_template::drop_disabled(template, old, &write.context);
    }
}

/// Checks a required selector: it is valid and selects something. Returns whether it can be evaluated.
pub(crate) fn check_selector(selector: &Cursor<'_, '_>, resource: &str, errors: &mut ErrorList) -> bool {
    if !selector.is_set() {
        errors.required(selector, "");
        // Kubernetes evaluates an absent selector, which selects nothing, without an error.
        return true;
    }
    labels::selector(selector, errors);
    if labels::is_empty_selector(selector.value()) {
        let why = format!("empty selector is invalid for {resource}");
        errors.invalid_value(selector, show_selector(selector), why);
    }
    labels::is_valid(selector.value())
}

/// A selector as errors show it.
pub(crate) fn show_selector(selector: &Cursor<'_, '_>) -> BadValue {
    go::pointer("meta/v1", "LabelSelector", selector.value())
}

/// Checks that a selector selects the labels of a template. An absent selector selects nothing.
pub(crate) fn check_selected(selector: &Cursor<'_, '_>, template: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let metadata = template.field("metadata");
    let template_labels = metadata.field("labels");
    if !labels::selects(selector.value(), template_labels.value()) {
        report_unselected(&template_labels, errors);
    }
}

/// Reports that the selector of a workload does not select its template's labels.
pub(crate) fn report_unselected(labels: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let shown = labels.value().cloned().unwrap_or_default();
    errors.invalid_value(labels, shown, "`selector` does not match template `labels`");
}

/// Checks that pods of a workload are restarted always and have no deadline.
pub(crate) fn check_runs_forever(template: &Cursor<'_, '_>, kind: &str, errors: &mut ErrorList) {
    let spec = template.field("spec");
    let policy = spec.field("restartPolicy");
    if policy.str() != "Always" {
        errors.not_supported(&policy, &["Always"]);
    }
    let deadline = spec.field("activeDeadlineSeconds");
    if deadline.is_set() {
        errors.forbidden(
            &deadline,
            format!("activeDeadlineSeconds in {kind} is not Supported"),
        );
    }
}

/// Checks the selector and the template of a Deployment or ReplicaSet. The texts about selectors name Deployments, those
/// about templates ReplicaSets.
pub(crate) fn check_replicated(spec: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    let (selector, template) = (spec.field("selector"), spec.field("template"));
    if !check_selector(&selector, "deployment", errors) {
        return errors.invalid_value(&selector, show_selector(&selector), "invalid label selector");
    }
    if !selector.is_set() || !labels::is_empty_selector(selector.value()) {
        check_selected(&selector, &template, errors);
    }
    check_template(&template, write, errors);
    check_runs_forever(&template, "ReplicaSet", errors);
}

/// Checks the pod template of a workload; on an update, the stored template is tolerated.
pub(crate) fn check_template(template: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    let old = write.old().map(Cursor::root);
    let old = old.as_ref().map(|old| old.field("spec"));
    let old = old.as_ref().map(|spec| spec.field("template"));
    pod_template::validate(template, old.as_ref(), &write.context, errors);
}

/// Checks that an update does not change the selector of a workload.
pub(crate) fn check_same_selector(spec: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    if let Some(old) = write.old() {
        let old = old.at(["spec", "selector"]);
        update::immutable_struct(&spec.field("selector"), old, "meta/v1", "LabelSelector", errors);
    }
}

/// The limits among the numbers of a status: a field, the field that it may not exceed, and the error's text.
pub(crate) type StatusLimits = &'static [(&'static str, &'static str, &'static str)];

/// The error of a number that exceeds all replicas.
pub(crate) const MORE_THAN_REPLICAS: &str = "cannot be greater than status.replicas";

/// Checks that numbers of a status do not exceed others.
pub(crate) fn check_limits(status: &Cursor<'_, '_>, limits: StatusLimits, errors: &mut ErrorList) {
    for (name, limit, why) in limits {
        let field = status.field(name);
        if field.int() > status.field(limit).int() {
            errors.invalid_value(&field, field.int(), *why);
        }
    }
}

/// Checks that the counter of hash collisions does not decrease.
pub(crate) fn check_collision_count(status: &Cursor<'_, '_>, old: &Value, errors: &mut ErrorList) {
    let count = status.field("collisionCount");
    let before = old.at(["status", "collisionCount"]).and_then(Value::as_int);
    if before.is_some_and(|before| count.as_int().is_none_or(|count| count < before)) {
        errors.invalid_value(&count, count.int(), "cannot be decremented");
    }
}

/// Adds a warning about a name that cannot be the name of a pod.
pub(crate) fn warn_about_name(object: &Value, warnings: &mut Vec<String>) {
    let wrong = names::dns1123_label(object.str_at(["metadata", "name"]));
    if !wrong.is_empty() {
        let wrong = wrong.join(" ");
        warnings.push(format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; \
             a DNS label is recommended: [{wrong}]"
        ));
    }
}

/// Adds the warnings about the pod template of a workload.
pub(crate) fn warn(object: &Value, context: &Context<'_>, warnings: &mut Vec<String>) {
    let root = Cursor::root(object);
    pod_template::warn(&root.field("spec").field("template"), context, warnings);
}

/// Adds the warnings about a workload whose pods are named after it: about its name when it is new, and about its template
/// when it is new or changed.
pub(crate) fn warn_replicated(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    if write.old().is_none() {
        warn_about_name(object, warnings);
    }
    if is_new_or_changed(object, write) {
        warn(object, &write.context, warnings);
    }
}

/// Returns whether a write creates a workload or increments its generation. Only then there are warnings about its
/// template.
pub(crate) fn is_new_or_changed(object: &Value, write: &Write<'_>) -> bool {
    let generation = |object: &Value| scantling_schema::meta::generation(object.get("metadata"));
    write
        .old()
        .is_none_or(|old| write.subresource == Subresource::None && generation(object) != generation(old))
}

/// An update strategy whose type is unknown; the error shows the whole struct.
pub(crate) fn unsupported_struct(
    at: &Cursor<'_, '_>,
    (package, name): (&str, &str),
    supported: &[&str],
    errors: &mut ErrorList,
) {
    let mut value = at.map().cloned().unwrap_or_default();
    if let Some(rolling) = object_if_set(&mut value, "rollingUpdate") {
        // These are no pointers in the internal type.
        set_default(rolling, "maxUnavailable", 0_i64);
        set_default(rolling, "maxSurge", 0_i64);
    }
    let shown = go::structure(package, name, Some(&value.into()));
    errors.push_with(|| FieldError::not_supported(at.path(), shown, supported.iter().copied()));
}
