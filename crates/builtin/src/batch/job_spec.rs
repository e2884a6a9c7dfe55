//! The spec of Jobs and of the templates of CronJobs.

use super::job_policy;
use crate::apps::template;
use crate::checks::{Report, Rule, check_fields, go, labels, names, update};
use crate::core::pod_template;
use crate::prepare::{object_if_set, object_in};
use crate::{Context, Cursor, Write};
use scantling_value::{ErrorList, Map, Value};

/// The greatest parallelism and number of failed indexes of an indexed Job.
const MAX_INDEXED: i64 = 100_000;
/// The number of completions above which the limits are lower.
const MANY_COMPLETIONS: i64 = 100_000;
/// The greatest parallelism and number of failed indexes where there are many completions.
const MAX_WITH_MANY_COMPLETIONS: i64 = 10_000;
const MAX_MANAGED_BY: usize = 63;

const RULES: &[(&str, Rule)] = &[
    ("parallelism", Rule::NonNegative),
    ("completions", Rule::NonNegative),
    ("activeDeadlineSeconds", Rule::NonNegative),
    ("backoffLimit", Rule::NonNegative),
    ("ttlSecondsAfterFinished", Rule::NonNegative),
    ("backoffLimitPerIndex", Rule::NonNegative),
    ("maxFailedIndexes", Rule::NonNegative),
];

/// Checks the spec of a Job with its selector.
pub(super) fn check_with_selector(
    spec: &Cursor<'_, '_>,
    old: Option<&Cursor<'_, '_>>,
    write: &Write<'_>,
    errors: &mut ErrorList,
) {
    check(spec, old, &write.context, errors);
    let selector = spec.field("selector");
    if selector.is_set() {
        let old_selector = old.and_then(|old| old.field("selector").value());
        let values = labels::Values::unless(labels::has_invalid_value(old_selector));
        labels::selector_with(&selector, values, errors);
    } else {
        errors.required(&selector, "");
    }
    if labels::is_valid(selector.value()) {
        template::check_selected(&selector, &spec.field("template"), errors);
    }
}

/// Checks the spec of a Job without its selector.
pub(super) fn check(
    spec: &Cursor<'_, '_>,
    old: Option<&Cursor<'_, '_>>,
    context: &Context<'_>,
    errors: &mut ErrorList,
) {
    check_fields(RULES, spec, errors);
    let per_index = spec.field("backoffLimitPerIndex");
    if spec.field("maxFailedIndexes").is_set() && !per_index.is_set() {
        errors.required(&per_index, "when maxFailedIndexes is specified");
    }
    let managed_by = spec.field("managedBy");
    if managed_by.is_set() {
        names::domain_prefixed_path(&managed_by, errors);
        errors.max_bytes(&managed_by, MAX_MANAGED_BY);
    }
    check_completion_mode(spec, errors);
    let failure = spec.field("podFailurePolicy");
    if failure.is_set() {
        job_policy::check_failure_policy(spec, &failure, errors);
    }
    let success = spec.field("successPolicy");
    if success.is_set() {
        if is_indexed(spec) {
            job_policy::check_success_policy(spec, &success, errors);
        } else {
            let shown = go::structure("batch/v1", "SuccessPolicy", success.value());
            errors.invalid_value(&success, shown, "requires indexed completion mode");
        }
    }
    check_replacement_policy(spec, errors);
    let template = spec.field("template");
    let old_template = old.map(|old| old.field("template"));
    pod_template::validate(&template, old_template.as_ref(), context, errors);
    check_restart_policy(spec, &template, errors);
}

/// Returns whether each pod of a Job has an index.
pub(super) fn is_indexed(spec: &Cursor<'_, '_>) -> bool {
    spec.field("completionMode").str() == "Indexed"
}

fn check_completion_mode(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mode = spec.field("completionMode");
    Rule::OneOf(&["NonIndexed", "Indexed"]).check(&mode, errors);
    if is_indexed(spec) {
        check_indexed(spec, errors);
    }
    if !mode.is_set() || mode.str() == "NonIndexed" {
        for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            let field = spec.field(name);
            if field.is_set() {
                errors.invalid(&field, "requires indexed completion mode");
            }
        }
    }
}

/// Checks the limits that keep the lists of indexes in the status short.
fn check_indexed(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let [completions, parallelism, max_failed] =
        ["completions", "parallelism", "maxFailedIndexes"].map(|name| spec.field(name));
    if !completions.is_set() {
        errors.required(&completions, "when completion mode is Indexed");
    }
    if parallelism.int() > MAX_INDEXED {
        let why = format!("must be less than or equal to {MAX_INDEXED} when completion mode is Indexed");
        errors.invalid(&parallelism, why);
    }
    if completions.is_set() && max_failed.is_set() && max_failed.int() > completions.int() {
        errors.invalid(&max_failed, "must be less than or equal to completions");
    }
    if max_failed.int() > MAX_INDEXED {
        errors.invalid(
            &max_failed,
            format!("must be less than or equal to {MAX_INDEXED}"),
        );
    }
    if completions.int() > MANY_COMPLETIONS && spec.field("backoffLimitPerIndex").is_set() {
        if !max_failed.is_set() {
            let why = format!("must be specified when completions is above {MANY_COMPLETIONS}");
            errors.required(&max_failed, &why);
        }
        for field in [parallelism, max_failed] {
            if field.int() > MAX_WITH_MANY_COMPLETIONS {
                let why = format!(
                    "must be less than or equal to {MAX_WITH_MANY_COMPLETIONS} when completions are above \
                     {MANY_COMPLETIONS} and used with backoff limit per index"
                );
                errors.invalid(&field, why);
            }
        }
    }
}

/// With a failure policy, pods are replaced only once they have failed.
fn check_replacement_policy(spec: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let supported: &[&str] = if spec.field("podFailurePolicy").is_set() {
        &["Failed"]
    } else {
        &["Failed", "TerminatingOrFailed"]
    };
    let policy = spec.field("podReplacementPolicy");
    if policy.is_set() && !supported.contains(&policy.str()) {
        errors.not_supported(&policy, supported);
    }
}

fn check_restart_policy(spec: &Cursor<'_, '_>, template: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let pod = template.field("spec");
    let policy = pod.field("restartPolicy");
    match policy.str() {
        "" | "Always" => errors.required(&policy, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if spec.field("podFailurePolicy").is_set() => {
            errors.invalid(
                &policy,
                "only \"Never\" is supported when podFailurePolicy is specified",
            );
        }
        "OnFailure" | "Never" => {}
        _ => errors.not_supported(&policy, &["OnFailure", "Never"]),
    }
}

/// Checks what an update of a Job may not change.
pub(super) fn check_update(
    spec: &Cursor<'_, '_>,
    old_job: &Cursor<'_, '_>,
    context: &Context<'_>,
    errors: &mut ErrorList,
) {
    let old_spec = old_job.field("spec");
    let old = |name| old_spec.field(name).value();
    check_completions(spec, old("completions"), errors);
    let selector = spec.field("selector");
    update::immutable_struct(&selector, old("selector"), "meta/v1", "LabelSelector", errors);
    check_template_update(spec, old_job, context, errors);
    update::immutable(&spec.field("completionMode"), old("completionMode"), errors);
    check_immutable_policy(
        &spec.field("podFailurePolicy"),
        old("podFailurePolicy"),
        "PodFailurePolicy",
        errors,
    );
    for name in ["backoffLimitPerIndex", "managedBy"] {
        update::immutable(&spec.field(name), old(name), errors);
    }
    check_immutable_policy(
        &spec.field("successPolicy"),
        old("successPolicy"),
        "SuccessPolicy",
        errors,
    );
}

/// A policy may not change. One without rules is not the same as none.
fn check_immutable_policy(policy: &Cursor<'_, '_>, old: Option<&Value>, ty: &str, errors: &mut ErrorList) {
    if policy.is_set() == old.is_some() {
        update::immutable_struct(policy, old, "batch/v1", ty, errors);
    } else {
        errors.invalid_value(
            policy,
            go::pointer("batch/v1", ty, policy.value()),
            update::IMMUTABLE,
        );
    }
}

/// The completions of indexed Jobs change together with the parallelism, others never.
fn check_completions(spec: &Cursor<'_, '_>, old: Option<&Value>, errors: &mut ErrorList) {
    let completions = spec.field("completions");
    if !is_indexed(spec) {
        update::immutable(&completions, old, errors);
    } else if completions.is_set()
        && completions.value() != old
        && completions.int() != spec.field("parallelism").int()
    {
        errors.invalid(
            &completions,
            "can only be modified in tandem with spec.parallelism",
        );
    }
}

/// Pods of a suspended Job without active pods may still be given resources and scheduling directives.
fn check_template_update(
    spec: &Cursor<'_, '_>,
    old_job: &Cursor<'_, '_>,
    context: &Context<'_>,
    errors: &mut ErrorList,
) {
    let (old_spec, old_status) = (old_job.field("spec"), old_job.field("status"));
    let is_suspended = old_spec.field("suspend").bool();
    let has_not_started = !old_status.field("startTime").is_set();
    let is_marked = has_condition(&old_status, "Suspended", "True");
    // Then no pod of the template runs, so that a change cannot make pods differ.
    let is_idle = is_suspended && (has_not_started || is_marked) && old_status.field("active").int() == 0;
    let scheduling_is_mutable = match (context.enabled)("MutableSchedulingDirectivesForSuspendedJobs") {
        true => is_idle,
        false => is_suspended && has_not_started,
    };
    let resources_are_mutable = is_idle && (context.enabled)("MutablePodResourcesForSuspendedJobs");

    let template = spec.field("template");
    let new = template
        .value()
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let mut old = old_spec.field("template").map().cloned().unwrap_or_default();
    // The stored template takes over what may change. What still differs is refused.
    if scheduling_is_mutable {
        take_scheduling_directives(&mut old, &new);
    }
    if is_suspended && resources_are_mutable {
        check_pod_resources_only(&template, old, errors);
        return;
    }
    update::immutable_struct(&template, Some(&old.into()), "core/v1", "PodTemplateSpec", errors);
}

/// Returns whether a status has a condition with that status.
pub(super) fn has_condition(status: &Cursor<'_, '_>, name: &str, value: &str) -> bool {
    let matches = |c: &Value| c.get_str("type") == name && c.get_str("status") == value;
    status.field("conditions").list().iter().any(matches)
}

/// Copies from one template to another what decides where pods run.
fn take_scheduling_directives(old: &mut Map, new: &Map) {
    let none = Map::new();
    let new_metadata = new.get("metadata").and_then(Value::as_object).unwrap_or(&none);
    if let Some(metadata) = object_in(old, "metadata") {
        ["annotations", "labels"]
            .iter()
            .for_each(|member| take(metadata, new_metadata, member));
    }
    let new_pod = new.get("spec").and_then(Value::as_object).unwrap_or(&none);
    let Some(pod) = object_in(old, "spec") else {
        return;
    };
    for member in ["nodeSelector", "tolerations", "schedulingGates"] {
        take(pod, new_pod, member);
    }
    match new_pod.get("affinity").and_then(Value::as_object) {
        Some(affinity) => {
            if let Some(old_affinity) = object_in(pod, "affinity") {
                take(old_affinity, affinity, "nodeAffinity");
            }
        }
        None => {
            // An affinity that only held a node affinity goes away together with it.
            let is_left_empty = object_if_set(pod, "affinity").is_some_and(|affinity| {
                affinity.remove("nodeAffinity");
                affinity.is_empty()
            });
            if is_left_empty {
                pod.remove("affinity");
            }
        }
    }
}

fn take(to: &mut Map, from: &Map, member: &str) {
    match from.get(member) {
        Some(value) => drop(to.insert(member, value.clone())),
        None => drop(to.remove(member)),
    }
}

/// Only the resources of containers may differ in two pod specs.
fn check_pod_resources_only(template: &Cursor<'_, '_>, mut old: Map, errors: &mut ErrorList) {
    let new = template.field("spec");
    if let Some(pod) = object_in(&mut old, "spec") {
        for list in ["containers", "initContainers"] {
            let new_list = new.field(list).list();
            let old_list = pod.get_mut(list).and_then(Value::as_array_mut);
            // Lists of different lengths are left as they are: the comparison below refuses them.
            let Some(old_list) = old_list.filter(|old| old.len() == new_list.len()) else {
                continue;
            };
            for (old, new) in old_list.iter_mut().zip(new_list) {
                if old.get_str("name") == new.get_str("name")
                    && let (Some(old), Some(new)) = (old.as_object_mut(), new.as_object())
                {
                    take(old, new, "resources");
                }
            }
        }
    }
    update::immutable_struct(&new, old.get("spec"), "core/v1", "PodSpec", errors);
}

/// Adds the warnings about the spec of a Job.
pub(super) fn warn(spec: &Cursor<'_, '_>, context: &Context<'_>, warnings: &mut Vec<String>) {
    if is_indexed(spec)
        && spec.field("completions").int() > MANY_COMPLETIONS
        && spec.field("parallelism").int() > MAX_WITH_MANY_COMPLETIONS
    {
        warnings.push(format!(
            "{}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
             Kubernetes might not be able to track completedIndexes when a big number of indexes fail",
            spec.path()
        ));
    }
    pod_template::warn(&spec.field("template"), context, warnings);
}
