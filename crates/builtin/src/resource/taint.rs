//! Taints of devices, tolerations of them, and conditions of their binding.

use crate::Cursor;
use crate::checks::{Report, Rule, labels, names};
use crate::prepare::set_default;
use scantling_value::{ErrorList, FieldError, Map, Value};
use std::collections::BTreeSet;

const MAX_CONDITIONS: usize = 4;
const EFFECTS: &[&str] = &["NoExecute", "NoSchedule", "None"];

/// Sets the time of a new taint.
pub(super) fn set_time(taint: &mut Map, now: &str) {
    set_default(taint, "timeAdded", now);
}

/// Sets the time of a taint whose effect changes, unless the client sets another time.
pub(super) fn follow_effect(taint: &mut Map, old: Option<&Value>, now: &str) {
    let Some(old) = old else { return };
    let is_same = |field: &str| taint.get_str(field) == old.get_str(field);
    if !is_same("effect") && is_same("timeAdded") {
        taint.insert("timeAdded", now.into());
    }
}

/// Checks a taint. An effect that was stored is not checked again.
pub(super) fn check(taint: &Cursor<'_, '_>, old_effect: Option<&str>, errors: &mut ErrorList) {
    labels::key(&taint.field("key"), errors);
    let value = taint.field("value");
    errors.invalid_for(&value, names::label_value(value.str()));
    let effect = taint.field("effect");
    if old_effect != Some(effect.str()) {
        Rule::RequiredOneOf(EFFECTS).check(&effect, errors);
    }
}

/// Checks a toleration.
pub(super) fn check_toleration(toleration: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let [key, operator, value, effect] =
        ["key", "operator", "value", "effect"].map(|name| toleration.field(name));
    if !key.str().is_empty() {
        labels::key(&key, errors);
    }
    match operator.str() {
        "Exists" if !value.str().is_empty() => errors.invalid(&value, "must be empty for operator `Exists`"),
        "Exists" => {}
        "Equal" => errors.invalid_for(&value, names::label_value(value.str())),
        "" => errors.required(&operator, ""),
        _ => errors.not_supported(&operator, &["Equal", "Exists"]),
    }
    if !effect.str().is_empty() && !EFFECTS.contains(&effect.str()) {
        errors.not_supported(&effect, EFFECTS);
    }
}

/// Checks the conditions of success and failure of a device: unique, distinct, and both or none.
pub(super) fn check_binding(device: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let binding = device.field("bindingConditions");
    let failure = device.field("bindingFailureConditions");
    for list in [&binding, &failure] {
        let count = list.list().len();
        if count > MAX_CONDITIONS {
            errors.push_with(|| FieldError::too_many(list.path(), count, MAX_CONDITIONS));
        } else {
            Rule::Each(labels::key).check(list, errors);
        }
    }
    let mut seen = BTreeSet::new();
    for condition in binding.items() {
        errors.unique(&mut seen, &condition);
    }
    let mut seen_failures = BTreeSet::new();
    for condition in failure.items() {
        errors.unique(&mut seen_failures, &condition);
        if seen.contains(condition.str()) {
            errors.invalid(
                &condition,
                "bindingFailureConditions must not overlap with bindingConditions",
            );
        }
    }
    let shown = |list: &Cursor<'_, '_>| list.value().cloned().unwrap_or(Value::Null);
    match (binding.list().is_empty(), failure.list().is_empty()) {
        (true, false) => {
            let why = "bindingConditions are required to use bindingFailureConditions";
            errors.invalid_value(&binding, shown(&binding), why);
        }
        (false, true) => {
            let why = "bindingFailureConditions are required to use bindingConditions";
            errors.invalid_value(&failure, shown(&failure), why);
        }
        _ => {}
    }
}
