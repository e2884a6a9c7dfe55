//! Deployment.

use super::template::{self, MORE_THAN_REPLICAS, StatusLimits};
use super::{GROUP, rolling_update};
use crate::checks::{Report, Rule, check_fields, numbers, update};
use crate::prepare::{self, object_in, set_default, set_default_text};
use crate::{Context, Cursor, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_value::{ErrorList, Map, Value};

/// A replicated workload that is rolled out through ReplicaSets.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    warn: template::warn_replicated,
    ..KindBehavior::new(KindFacts {
        has_generation: true,
        status_keeps: &[&["spec"], &["metadata", "labels"]],
        ..KindFacts::new(GROUP, "Deployment")
    })
};

const SPEC: prepare::StructName = ("apps/v1", "DeploymentSpec");

const STATUS_RULES: &[(&str, Rule)] = &[
    ("observedGeneration", Rule::NonNegative),
    ("replicas", Rule::NonNegative),
    ("updatedReplicas", Rule::NonNegative),
    ("readyReplicas", Rule::NonNegative),
    ("availableReplicas", Rule::NonNegative),
    ("unavailableReplicas", Rule::NonNegative),
    ("terminatingReplicas", Rule::NonNegative),
    ("collisionCount", Rule::NonNegative),
];

const STATUS_LIMITS: StatusLimits = &[
    ("updatedReplicas", "replicas", MORE_THAN_REPLICAS),
    ("readyReplicas", "replicas", MORE_THAN_REPLICAS),
    ("availableReplicas", "replicas", MORE_THAN_REPLICAS),
    (
        "availableReplicas",
        "readyReplicas",
        "cannot be greater than readyReplicas",
    ),
];

fn default(object: &mut Map, context: &Context<'_>) {
    let Some(spec) = object_in(object, "spec") else {
        return;
    };
    set_default(spec, "replicas", 1_i64);
    default_strategy(spec);
    set_default(spec, "revisionHistoryLimit", 10_i64);
    set_default(spec, "progressDeadlineSeconds", 600_i64);
    template::default(spec, context);
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    template::drop_disabled(object, write, &["spec"]);
    prepare::spec_and_status(object, write, SPEC);
    match (write.operation, write.subresource) {
        (Operation::Update(old), Subresource::Status) => prepare::keep_metadata(object, old, "labels"),
        (Operation::Update(old), _) => {
            // Annotations are copied to the ReplicaSets, so their changes count like those of the spec.
            let annotations = |object: Option<&Value>| object.and_then(|m| m.get("annotations")).cloned();
            let annotated = !update::same(
                annotations(object.get("metadata")).as_ref(),
                annotations(old.get("metadata")).as_ref(),
            );
            let changed = annotated || prepare::is_changed(object, old, "spec", SPEC);
            prepare::count_change(object, old, changed);
        }
        (Operation::Create, _) => {}
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    if write.subresource == Subresource::Status {
        check_status(&root.field("status"), write, errors);
        return;
    }
    let spec = root.field("spec");
    check_spec(&spec, write, errors);
    template::check_same_selector(&spec, write, errors);
}

fn default_strategy(spec: &mut Map) {
    let Some(strategy) = object_in(spec, "strategy") else {
        return;
    };
    set_default_text(strategy, "type", "RollingUpdate");
    if strategy.get_str("type") == "RollingUpdate"
        && let Some(rolling) = object_in(strategy, "rollingUpdate")
    {
        set_default(rolling, "maxUnavailable", "25%");
        set_default(rolling, "maxSurge", "25%");
    }
}

fn check_spec(spec: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    numbers::non_negative(&spec.field("replicas"), errors);
    template::check_replicated(spec, write, errors);
    check_strategy(&spec.field("strategy"), errors);
    let min_ready = spec.field("minReadySeconds");
    numbers::non_negative(&min_ready, errors);
    numbers::non_negative(&spec.field("revisionHistoryLimit"), errors);
    let deadline = spec.field("progressDeadlineSeconds");
    if deadline.is_set() {
        numbers::non_negative(&deadline, errors);
        if deadline.int() <= min_ready.int() {
            errors.invalid(&deadline, "must be greater than minReadySeconds");
        }
    }
}

fn check_strategy(strategy: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").str() {
        "Recreate" => {
            if rolling.is_set() {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                errors.forbidden(&rolling, why);
            }
        }
        "RollingUpdate" if rolling.is_set() => check_rolling_update(&rolling, errors),
        "RollingUpdate" => errors.required(&rolling, "this should be defaulted and never be nil"),
        _ => {
            let supported = &["Recreate", "RollingUpdate"];
            template::unsupported_struct(strategy, ("apps/v1", "DeploymentStrategy"), supported, errors);
        }
    }
}

/// Some pods must be allowed to be down or surplus.
fn check_rolling_update(rolling: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
    numbers::non_negative_or_percent(&unavailable, errors);
    numbers::non_negative_or_percent(&surge, errors);
    if rolling_update::is_zero(unavailable.value()) && rolling_update::is_zero(surge.value()) {
        errors.invalid(&unavailable, "may not be 0 when `maxSurge` is 0");
    }
    numbers::at_most_100_percent(&unavailable, errors);
}

fn check_status(status: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    check_fields(STATUS_RULES, status, errors);
    template::check_limits(status, STATUS_LIMITS, errors);
    if let Some(old) = write.old() {
        template::check_collision_count(status, old, errors);
    }
}
