//! PodDisruptionBudget.

use crate::apps::rolling_update;
use crate::checks::{Report, Rule, check_fields, conditions, go, labels, update};
use crate::prepare::{self, object_if_set};
use crate::{Cursor, KindBehavior, KindFacts, Operation, Subresource, Write};
use scantling_schema::meta::NameRule;
use scantling_value::{ErrorList, Map, Value};

/// Limits how many pods may be down at once.
pub(super) const KIND: KindBehavior = KindBehavior {
    prepare,
    validate,
    ..KindBehavior::new(KindFacts {
        // kube-apiserver only requires that the name can be part of a path.
        names: NameRule::PathSegment,
        unconditional_update: false,
        has_generation: true,
        validates_metadata: false,
        qualifies_finalizers: false,
        ..KindFacts::new("policy", "PodDisruptionBudget")
    })
};

const SPEC: prepare::StructName = ("policy/v1", "PodDisruptionBudgetSpec");

/// The key by which v1beta1 distinguished selectors of everything and of nothing.
const MATCH_KEY: &str = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";

const STATUS_RULES: &[(&str, Rule)] = &[
    ("conditions", Rule::Check(conditions::check)),
    ("disruptionsAllowed", Rule::NonNegative),
    ("currentHealthy", Rule::NonNegative),
    ("desiredHealthy", Rule::NonNegative),
    ("expectedPods", Rule::NonNegative),
];

fn prepare(object: &mut Map, write: &Write<'_>) {
    prepare::spec_and_status(object, write, SPEC);
    if write.subresource == Subresource::None {
        strip_match_key(object, write);
    }
}

fn validate(object: &Value, write: &Write<'_>, errors: &mut ErrorList) {
    let root = Cursor::root(object);
    if write.subresource == Subresource::Status {
        check_fields(STATUS_RULES, &root.field("status"), errors);
        return;
    }
    check_spec(&root.field("spec"), write, errors);
}

/// Removes requirements of the key of v1beta1 from selectors that have others, too.
fn strip_match_key(object: &mut Map, write: &Write<'_>) {
    let selector = object.get("spec").and_then(|spec| spec.get("selector"));
    if let Operation::Update(old) = write.operation
        && update::same(selector, old.at(["spec", "selector"]))
    {
        return;
    }
    let Some(selector) = selector else { return };
    // This selector as a whole says that nothing is selected, so that it stays.
    let matches_none = matches!(
        selector.list("matchExpressions"),
        [only] if only.get_str("key") == MATCH_KEY && only.get_str("operator") == "Exists" && only.list("values").is_empty()
    ) && selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .is_none_or(Map::is_empty);
    if matches_none {
        return;
    }
    let expressions = object_if_set(object, "spec")
        .and_then(|spec| object_if_set(spec, "selector"))
        .and_then(|selector| selector.get_mut("matchExpressions"))
        .and_then(Value::as_array_mut);
    if let Some(expressions) = expressions {
        expressions.retain(|expression| expression.get_str("key") != MATCH_KEY);
    }
}

fn check_spec(spec: &Cursor<'_, '_>, write: &Write<'_>, errors: &mut ErrorList) {
    let (available, unavailable) = (spec.field("minAvailable"), spec.field("maxUnavailable"));
    if available.is_set() && unavailable.is_set() {
        let shown = go::structure(SPEC.0, SPEC.1, spec.value());
        errors.invalid_value(spec, shown, "minAvailable and maxUnavailable cannot be both set");
    }
    for count in [available, unavailable] {
        Rule::IfSet(rolling_update::check_count).check(&count, errors);
    }
    let was_invalid = write
        .old()
        .is_some_and(|old| !labels::is_valid(old.at(["spec", "selector"])));
    labels::selector_with(
        &spec.field("selector"),
        labels::Values::unless(was_invalid),
        errors,
    );
    Rule::OneOf(&["AlwaysAllow", "IfHealthyBudget"]).check(&spec.field("unhealthyPodEvictionPolicy"), errors);
}
