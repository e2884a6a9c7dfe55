//! DaemonSet.

use super::{GROUP, rolling_update, template};
use crate::checks::update::{keep, same_of};
use crate::checks::{Report, Rule, check_fields, labels, numbers};
use crate::prepare::{self, object_if_set, object_in, set_default, set_default_text};
use crate::{Context, Cursor, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_value::{ErrorList, Map, Value};

/// A pod on every node.
pub(super) const KIND: KindBehavior = KindBehavior {
    default,
    prepare,
    validate,
    warn,
    ..KindBehavior::new(KindFacts {
        has_generation: true,
        ..KindFacts::new(GROUP, "DaemonSet")
    })
};

const SPEC: prepare::StructName = ("apps/v1", "DaemonSetSpec");

/// The annotation in which the generation of the template is stored.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

const STATUS_RULES: &[(&str, Rule)] = &[
    ("currentNumberScheduled", Rule::NonNegative),
    ("numberMisscheduled", Rule::NonNegative),
    ("desiredNumberScheduled", Rule::NonNegative),
    ("numberReady", Rule::NonNegative),
    ("observedGeneration", Rule::NonNegative),
    ("updatedNumberScheduled", Rule::NonNegative),
    ("numberAvailable", Rule::NonNegative),
    ("numberUnavailable", Rule::NonNegative),
    ("collisionCount", Rule::NonNegative),
];

fn default(object: &mut Map, context: &Context<'_>) {
    // kube-apiserver holds the generation of the template in a field of its own, and always writes the annotation.
    let generation = template_generation(object.get("metadata"));
    set_template_generation(object, generation);
    let Some(spec) = object_in(object, "spec") else {
        return;
    };
    default_strategy(spec);
    set_default(spec, "revisionHistoryLimit", 10_i64);
    template::default(spec, context);
    // Every version of the object has the annotation, so that its writer owns it.
    let metadata = object_in(object, "metadata");
    if let Some(annotations) = metadata.and_then(|metadata| object_in(metadata, "annotations")) {
        set_default(annotations, TEMPLATE_GENERATION, "0");
    }
}

fn prepare(object: &mut Map, write: &Write<'_>) {
    template::drop_disabled(object, write, &["spec"]);
    match (write.operation, write.subresource) {
        (Operation::Create, _) => {
            prepare::clear_status(object, SPEC);
            prepare::set_generation(object, 1);
            let generation = template_generation(object.get("metadata"));
            set_template_generation(object, generation.max(1));
        }
        (Operation::Update(old), Subresource::Status) => {
            keep(object, old, "spec");
            set_template_generation(object, template_generation(old.get("metadata")));
        }
        (Operation::Update(old), _) => {
            keep(object, old, "status");
            let changes_template = !same_of(
                "core/v1",
                "PodTemplateSpec",
                object.get("spec").and_then(|spec| spec.get("template")),
                old.at(["spec", "template"]),
            );
            let generation = template_generation(old.get("metadata"));
            set_template_generation(object, generation + i64::from(changes_template));
            let changed = prepare::is_changed(object, old, "spec", SPEC);
            prepare::count_change(object, old, changed);
        }
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    if write.subresource == Subresource::Status {
        let status = root.field("status");
        check_fields(STATUS_RULES, &status, errors);
        if let Some(old) = write.old() {
            template::check_collision_count(&status, old, errors);
        }
        return;
    }
    let spec = root.field("spec");
    template::check_same_selector(&spec, write, errors);
    check_spec(&spec, write, errors);
}

fn warn(object: &Value, write: &Write<'_>, warnings: &mut Vec<String>) {
    let generation = |object: &Value| template_generation(object.get("metadata"));
    match write.old() {
        // The generation of the template tells whether the template has changed.
        Some(old) if write.subresource != Subresource::None || generation(object) == generation(old) => {}
        _ => template::warn(object, &write.context, warnings),
    }
}

/// The generation of the template; 0 where it is absent or malformed.
fn template_generation(metadata: Option<&Value>) -> i64 {
    let annotation = metadata.and_then(|m| m.at(["annotations", TEMPLATE_GENERATION]));
    annotation
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

fn set_template_generation(object: &mut Map, generation: i64) {
    let metadata = object_in(object, "metadata");
    if let Some(annotations) = metadata.and_then(|m| object_in(m, "annotations")) {
        annotations.insert(TEMPLATE_GENERATION, generation.to_string().into());
    }
}

fn default_strategy(spec: &mut Map) {
    let Some(strategy) = object_in(spec, "updateStrategy") else {
        return;
    };
    set_default_text(strategy, "type", "RollingUpdate");
    if strategy.get_str("type") == "RollingUpdate"
        && let Some(rolling) = object_in(strategy, "rollingUpdate")
    {
        set_default(rolling, "maxUnavailable", 1_i64);
        set_default(rolling, "maxSurge", 0_i64);
    } else if let Some(rolling) = object_if_set(strategy, "rollingUpdate") {
        // These are no pointers in the internal type.
        set_default(rolling, "maxUnavailable", 0_i64);
        set_default(rolling, "maxSurge", 0_i64);
    }
}

fn check_spec(spec: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    let (selector, new) = (spec.field("selector"), spec.field("template"));
    let old = write.old().map(Cursor::root);
    let old_spec = old.as_ref().map(|old| old.field("spec"));
    let old_selector = old_spec.as_ref().and_then(|spec| spec.field("selector").value());
    let values = labels::Values::unless(labels::has_invalid_value(old_selector));
    labels::selector_with(&selector, values, errors);
    if labels::is_valid(selector.value()) {
        template::check_selected(&selector, &new, errors);
    }
    if selector.is_set() && labels::is_empty_selector(selector.value()) {
        let shown = template::show_selector(&selector);
        errors.invalid_value(&selector, shown, "empty selector is invalid for daemonset");
    }
    template::check_template(&new, write, errors);
    template::check_runs_forever(&new, "DaemonSet", errors);
    numbers::non_negative(&spec.field("minReadySeconds"), errors);
    check_strategy(&spec.field("updateStrategy"), errors);
    numbers::non_negative(&spec.field("revisionHistoryLimit"), errors);
}

fn check_strategy(strategy: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let rolling = strategy.field("rollingUpdate");
    match strategy.field("type").str() {
        "OnDelete" => {}
        "RollingUpdate" if rolling.is_set() => check_rolling_update(&rolling, errors),
        "RollingUpdate" => errors.required(&rolling, ""),
        _ => {
            let supported = &["RollingUpdate", "OnDelete"];
            template::unsupported_struct(
                strategy,
                ("apps/v1", "DaemonSetUpdateStrategy"),
                supported,
                errors,
            );
        }
    }
}

/// Pods are either allowed to be down or to be surplus, not both.
fn check_rolling_update(rolling: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (unavailable, surge) = (rolling.field("maxUnavailable"), rolling.field("maxSurge"));
    numbers::non_negative_or_percent(&unavailable, errors);
    numbers::non_negative_or_percent(&surge, errors);
    numbers::at_most_100_percent(&unavailable, errors);
    numbers::at_most_100_percent(&surge, errors);
    let is_zero = |at: &Cursor<'_, '_>| rolling_update::is_zero(at.value());
    match (is_zero(&unavailable), is_zero(&surge)) {
        (false, false) => errors.invalid(&surge, "may not be set when maxUnavailable is non-zero"),
        (true, true) => errors.required(&unavailable, "cannot be 0 when maxSurge is 0"),
        _ => {}
    }
}
