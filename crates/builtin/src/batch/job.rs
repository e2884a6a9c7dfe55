//! Job.

use super::{GROUP, job_spec, job_status};
use crate::apps::template;
use crate::checks::{Report, labels, names};
use crate::prepare::{self, object_if_set, object_in, objects_in, set_default, set_default_text};
use crate::{Context, Cursor, GarbageCollection, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_value::{ErrorList, Map, Value};

/// Pods that run to completion.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    warn,
    selectable_field,
    ..KindBehavior::new(KindFacts {
        selectable: &["status.successful"],
        has_generation: true,
        // batch/v1 keeps this default for compatibility.
        garbage_collection: GarbageCollection::Orphan,
        orphan_warning: Some(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set \
         propagationPolicy=Orphan to suppress this warning",
        ),
        ..KindFacts::new(GROUP, "Job")
    })
};

/// The labels of a Job's pods that hold its name.
const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];

/// The labels of a Job's pods that hold its UID. The second one is in the generated selector.
const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

fn default(object: &mut Map, context: &Context<'_>) {
    if let Some(spec) = object_in(object, "spec") {
        default_spec(spec);
        template::default(spec, context);
        default_failure_policy(spec);
    }
    template::default_labels(object, &[("metadata", "labels")]);
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    if matches!(write.operation, Operation::Create) {
        generate_selector(object);
        // Reading the stored object fills in defaults again, now with the generated labels. They are not validated
        // a second time: an invalid name is reported for the labels of the pods.
        let name = object
            .get("metadata")
            .map_or("", |metadata| metadata.get_str("name"));
        if names::label_value(name).is_empty() {
            template::default_labels(object, &[("metadata", "labels")]);
        }
    }
    drop_disabled_fields(object, write, &["spec"]);
    template::drop_disabled(object, write, &["spec"]);
    prepare::spec_and_status(object, write, ("batch/v1", "JobSpec"));
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    if write.subresource == Subresource::Status {
        if let Some(old) = write.old() {
            job_status::check(&root, &Cursor::root(old), errors);
        }
        return;
    }
    let spec = root.field("spec");
    match write.old() {
        None => {
            check_generated_selector(&root, errors);
            job_spec::check_with_selector(&spec, None, write, errors);
        }
        Some(old) => {
            let old = Cursor::root(old);
            job_spec::check_with_selector(&spec, Some(&old.field("spec")), write, errors);
            job_spec::check_update(&spec, &old, &write.context, errors);
        }
    }
    check_name_fits_indexes(&root, errors);
}

fn warn(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    if write.old().is_none() {
        template::warn_about_name(object, warnings);
    }
    if template::is_new_or_changed(object, write) {
        job_spec::warn(&Cursor::root(object).field("spec"), &write.context, warnings);
    }
}

fn selectable_field(object: &Value, field: &str) -> String {
    match field {
        "status.successful" => {
            let succeeded = object.at(["status", "succeeded"]).and_then(Value::as_int);
            succeeded.unwrap_or(0).to_string()
        }
        _ => object.str_at(field.split('.')).to_owned(),
    }
}

fn default_spec(spec: &mut Map) {
    let is_set = |spec: &Map, member| spec.contains_key(member);
    if !is_set(spec, "completions") && !is_set(spec, "parallelism") {
        spec.insert("completions", Value::Int(1));
    }
    set_default(spec, "parallelism", 1_i64);
    let limit = if is_set(spec, "backoffLimitPerIndex") {
        i64::from(i32::MAX)
    } else {
        6
    };
    set_default(spec, "backoffLimit", limit);
    set_default(spec, "completionMode", "NonIndexed");
    set_default(spec, "suspend", false);
    let replacement = if is_set(spec, "podFailurePolicy") {
        "Failed"
    } else {
        "TerminatingOrFailed"
    };
    set_default(spec, "podReplacementPolicy", replacement);
    set_default(spec, "manualSelector", false);
}

/// Fills in the status that patterns of pod conditions match, also for jobs in the templates of CronJobs.
pub(super) fn default_failure_policy(spec: &mut Map) {
    let policy = object_if_set(spec, "podFailurePolicy");
    for rule in policy.into_iter().flat_map(|policy| objects_in(policy, "rules")) {
        for pattern in objects_in(rule, "onPodConditions") {
            set_default_text(pattern, "status", "True");
        }
    }
}

/// Drops `scheduling` unless its feature is on or the stored object uses it.
pub(super) fn drop_disabled_fields(object: &mut Map, write: &Write<'_>, path: &[&str]) {
    let in_use = |old: &Value| {
        old.at(path.iter().copied())
            .is_some_and(|spec| spec.get("scheduling").is_some())
    };
    if (write.context.enabled)("WorkloadWithJob") || write.old().is_some_and(in_use) {
        return;
    }
    let spec = path
        .iter()
        .try_fold(object, |at, member| object_if_set(at, member));
    if let Some(spec) = spec {
        spec.remove("scheduling");
    }
}

/// Adds labels with the name and the UID to the pods, and a selector of the UID, unless the user manages selectors.
fn generate_selector(object: &mut Map) {
    let metadata = object.get("metadata");
    let text = |field| scantling_schema::meta::string_field(metadata, field).to_owned();
    let (name, uid) = (text("name"), text("uid"));
    let labels = metadata.and_then(|m| m.get("labels")).cloned();
    let Some(spec) = object_if_set(object, "spec") else {
        return;
    };
    if spec.get("manualSelector").and_then(Value::as_bool) == Some(true) {
        return;
    }
    let template = object_in(spec, "template").and_then(|template| object_in(template, "metadata"));
    let Some(pod_labels) = template.and_then(|metadata| object_in(metadata, "labels")) else {
        return;
    };
    // Labels that were defaulted are the same map in kube-apiserver, so that the Job has the new labels as well.
    let shares_labels = labels.as_ref().and_then(Value::as_object) == Some(&*pod_labels);
    for label in NAME_LABELS {
        pod_labels.get_or_insert_with(label, || name.as_str().into());
    }
    for label in UID_LABELS {
        pod_labels.get_or_insert_with(label, || uid.as_str().into());
    }
    let pod_labels = pod_labels.clone();
    let selector = object_in(spec, "selector").and_then(|selector| object_in(selector, "matchLabels"));
    if let Some(selector) = selector {
        selector.get_or_insert_with(UID_LABELS[1], || uid.as_str().into());
    }
    if shares_labels && let Some(metadata) = object_if_set(object, "metadata") {
        metadata.insert("labels", pod_labels.into());
    }
}

/// The labels and the selector of a new Job must be those that are generated, unless the user manages selectors.
fn check_generated_selector(root: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (metadata, spec) = (root.field("metadata"), root.field("spec"));
    let selector = spec.field("selector");
    if spec.field("manualSelector").bool() || !selector.is_set() {
        return;
    }
    let (name, uid) = (metadata.field("name").str(), metadata.field("uid").str());
    if uid.is_empty() {
        errors.required(&metadata.field("uid"), "");
    }
    let template = spec.field("template");
    let template_metadata = template.field("metadata");
    let pod_labels = template_metadata.field("labels");
    let expected = [
        (UID_LABELS[0], uid),
        (NAME_LABELS[0], name),
        (UID_LABELS[1], uid),
        (NAME_LABELS[1], name),
    ];
    for (label, value) in expected {
        let at = pod_labels.with_path(pod_labels.path().key(label));
        let why = format!("must be '{value}'");
        match pod_labels.field(label).value().and_then(Value::as_str) {
            None => errors.required(&at, &why),
            Some(actual) if actual != value => errors.invalid(&at, why),
            Some(_) => {}
        }
    }
    let expected: Map = expected
        .iter()
        .map(|(label, value)| (*label, Value::from(*value)))
        .collect();
    if labels::is_valid(selector.value()) && !labels::selects(selector.value(), Some(&expected.into())) {
        let shown = template::show_selector(&selector);
        errors.invalid_value(&selector, shown, "`selector` not auto-generated");
    }
}

/// The name with the highest index must be a valid hostname.
fn check_name_fits_indexes(root: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (metadata, spec) = (root.field("metadata"), root.field("spec"));
    let completions = spec.field("completions").int();
    if spec.field("completionMode").str() == "Indexed" && completions > 0 {
        let name = metadata.field("name");
        let hostname = format!("{}-{}", name.str(), completions - 1);
        if !names::dns1123_label(&hostname).is_empty() {
            let why = format!("will not able to create pod with invalid DNS label: {hostname}");
            errors.invalid(&name, why);
        }
    }
}
