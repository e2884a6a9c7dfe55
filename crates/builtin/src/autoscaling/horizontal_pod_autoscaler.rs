//! HorizontalPodAutoscaler, in the form of `autoscaling/v2`.

use super::{
    DEFAULT_CPU_UTILIZATION, autoscaler_from_v1, autoscaler_to_v1, conversion, cpu_utilization, metrics,
};
use crate::checks::update::keep;
use crate::checks::{Report, Rule, numbers, resources};
use crate::prepare::{self, object_if_set, object_in, set_default};
use crate::{Context, Cursor, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_schema::meta::NameRule;
use scantling_value::{ErrorList, Map, Value};

/// Scales a workload by metrics.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    version_to_hub,
    hub_to_version,
    ..KindBehavior::new(KindFacts {
        has_generation: true,
        ..KindFacts::new("autoscaling", "HorizontalPodAutoscaler")
    })
};

const SPEC: prepare::StructName = ("autoscaling/v2", "HorizontalPodAutoscalerSpec");

const MAX_PERIOD_SECONDS: i64 = 1800;
const MAX_STABILIZATION_SECONDS: i64 = 3600;
const SCALE_TO_ZERO: &str = "HPAScaleToZero";
const DIRECTIONS: [&str; 2] = ["scaleUp", "scaleDown"];

fn version_to_hub(version: &str, mut object: Value) -> Value {
    if let ("v1", Some(members)) = (version, object.as_object_mut()) {
        autoscaler_from_v1(members);
    }
    object
}

fn hub_to_version(version: &str, mut object: Value) -> Value {
    if let ("v1", Some(members)) = (version, object.as_object_mut()) {
        autoscaler_to_v1(members);
    }
    object
}

fn default(object: &mut Map, _context: &Context<'_>) {
    conversion::drop_annotations(object);
    let Some(spec) = object_in(object, "spec") else {
        return;
    };
    set_default(spec, "minReplicas", 1_i64);
    if spec
        .get("metrics")
        .and_then(Value::as_array)
        .is_none_or(<[Value]>::is_empty)
    {
        spec.insert("metrics", vec![cpu_utilization(DEFAULT_CPU_UTILIZATION)].into());
    }
    if let Some(behavior) = object_if_set(spec, "behavior") {
        if let Some(rules) = object_in(behavior, "scaleUp") {
            set_default(rules, "stabilizationWindowSeconds", 0_i64);
            default_rules(rules, &[("Pods", 4), ("Percent", 100)]);
        }
        if let Some(rules) = object_in(behavior, "scaleDown") {
            default_rules(rules, &[("Percent", 100)]);
        }
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    drop_disabled_tolerance(object, write);
    if (write.context.enabled)("HPAGeneration") {
        prepare::spec_and_status(object, write, SPEC);
        return;
    }
    // Without the gate, kube-apiserver leaves `metadata.generation` alone.
    match (write.operation, write.subresource) {
        (Operation::Create, _) => prepare::clear_status(object, SPEC),
        (Operation::Update(old), Subresource::Status) => keep(object, old, "spec"),
        (Operation::Update(old), _) => keep(object, old, "status"),
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    if write.subresource == Subresource::Status {
        check_status(&root.field("status"), errors);
        return;
    }
    check_spec(&root.field("spec"), write, errors);
}

/// Fills in the policies of a direction, each for a period of 15 seconds.
fn default_rules(rules: &mut Map, policies: &[(&str, i64)]) {
    set_default(rules, "selectPolicy", "Max");
    let policy = |(kind, value): &(&str, i64)| {
        Map::from_iter([
            ("type", Value::from(*kind)),
            ("value", Value::Int(*value)),
            ("periodSeconds", Value::Int(15)),
        ])
    };
    let policies: Vec<Map> = policies.iter().map(policy).collect();
    set_default(rules, "policies", policies);
}

fn drop_disabled_tolerance(object: &mut Map, write: &Write<'_>) {
    let in_use = |old: &Value| {
        DIRECTIONS
            .iter()
            .any(|direction| old.at(["spec", "behavior", direction, "tolerance"]).is_some())
    };
    if (write.context.enabled)("HPAConfigurableTolerance") || write.old().is_some_and(in_use) {
        return;
    }
    let behavior = object_if_set(object, "spec").and_then(|spec| object_if_set(spec, "behavior"));
    if let Some(behavior) = behavior {
        for direction in DIRECTIONS {
            if let Some(rules) = object_if_set(behavior, direction) {
                rules.remove("tolerance");
            }
        }
    }
}

fn check_spec(spec: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    let (min, max) = (spec.field("minReplicas"), spec.field("maxReplicas"));
    if min.is_set() && max.int() < min.int() {
        errors.invalid_value(&max, max.int(), "must be greater than or equal to `minReplicas`");
    }
    let target = spec.field("scaleTargetRef");
    metrics::check_reference(&target, target_version_rule(&target, write), errors);
    let described = described_version_rule(write);
    metrics::check_all(&spec.field("metrics"), min.as_int() == Some(0), described, errors);
    let behavior = spec.field("behavior");
    for direction in DIRECTIONS {
        check_rules(&behavior.field(direction), errors);
    }
    let had_zero = |old: &Value| old.at(["spec", "minReplicas"]).and_then(Value::as_int) == Some(0);
    let allows_zero = (write.context.enabled)(SCALE_TO_ZERO) || write.old().is_some_and(had_zero);
    let lowest = i64::from(!allows_zero);
    if min.is_set() && min.int() < lowest {
        errors.invalid(&min, format!("must be greater than or equal to {lowest}"));
    }
    match max.int() {
        0 => errors.required(&max, ""),
        ..0 => errors.invalid(&max, "must be greater than or equal to 1"),
        _ => {}
    }
}

/// The version of the target is not checked if an update does not change it.
fn target_version_rule(target: &Cursor<'_, '_>, write: &Write<'_>) -> metrics::VersionRule {
    let is_same = |old: &Value| {
        let old = |name| old.str_at(["spec", "scaleTargetRef", name]);
        ["apiVersion", "kind"]
            .iter()
            .all(|name| old(name) == target.field(name).str())
    };
    if write.old().is_some_and(is_same) {
        metrics::VersionRule::Any
    } else if target.field("kind").str() == "ReplicationController" {
        metrics::VersionRule::GroupOptional
    } else {
        metrics::VersionRule::GroupRequired
    }
}

/// The versions of described objects are not checked where the stored object has an invalid one.
fn described_version_rule(write: &Write<'_>) -> metrics::VersionRule {
    let is_invalid = |metric: &Value| {
        metric.get_str("type") == "Object"
            && metric.get("object").is_some()
            && metric
                .str_at(["object", "describedObject", "apiVersion"])
                .matches('/')
                .count()
                > 1
    };
    let old = write
        .old()
        .map_or(&[][..], |old| old.list_at(["spec", "metrics"]));
    if old.iter().any(is_invalid) {
        metrics::VersionRule::Any
    } else {
        metrics::VersionRule::GroupOptional
    }
}

fn check_rules(rules: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if !rules.is_set() {
        return;
    }
    let window = rules.field("stabilizationWindowSeconds");
    if window.int() < 0 {
        errors.invalid(&window, "must be greater than or equal to zero");
    }
    if window.int() > MAX_STABILIZATION_SECONDS {
        let why = format!("must be less than or equal to {MAX_STABILIZATION_SECONDS}");
        errors.invalid(&window, why);
    }
    Rule::OneOf(&["Disabled", "Max", "Min"]).check(&rules.field("selectPolicy"), errors);
    let policies = rules.field("policies");
    Rule::RequiredFor("must specify at least one Policy").check(&policies, errors);
    Rule::Each(check_policy).check(&policies, errors);
    let tolerance = rules.field("tolerance");
    Rule::IfSet(resources::non_negative).check(&tolerance, errors);
}

fn check_policy(policy: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let kind = policy.field("type");
    if !matches!(kind.str(), "Pods" | "Percent") {
        errors.not_supported(&kind, &["Percent", "Pods"]);
    }
    numbers::positive(&policy.field("value"), errors);
    let period = policy.field("periodSeconds");
    numbers::positive(&period, errors);
    if period.int() > MAX_PERIOD_SECONDS {
        errors.invalid(
            &period,
            format!("must be less than or equal to {MAX_PERIOD_SECONDS}"),
        );
    }
}

fn check_status(status: &Cursor<'_, '_>, errors: &mut ErrorList) {
    for condition in status.field("conditions").items() {
        numbers::non_negative(&condition.field("observedGeneration"), errors);
    }
    numbers::non_negative(&status.field("currentReplicas"), errors);
    numbers::non_negative(&status.field("desiredReplicas"), errors);
}

/// Reports an invalid name in a path.
pub(super) fn check_path_segment(at: &Cursor<'_, '_>, why: &str, errors: &mut ErrorList) {
    if at.str().is_empty() {
        errors.required(at, why);
    } else {
        errors.invalid_for(at, NameRule::PathSegment.check(at.str()));
    }
}
