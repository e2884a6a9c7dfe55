//! Tolerations and taints.

use super::{Report, Rule, names};
use crate::Cursor;
use scantling_value::{ErrorList, go};

/// The effects of a taint.
pub(crate) const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The effect of a taint, which must be given.
pub(crate) const EFFECT: Rule = Rule::RequiredOneOf(EFFECTS);

/// Checks a list of tolerations. `compares` says whether the operators `Lt` and `Gt` may be used.
pub(crate) fn tolerations(at: &Cursor<'_, '_>, compares: bool, errors: &mut ErrorList) {
    at.items().for_each(|t| check_toleration(&t, compares, errors));
}

fn check_toleration(at: &Cursor<'_, '_>, compares: bool, errors: &mut ErrorList) {
    let [key, operator, value, effect] = ["key", "operator", "value", "effect"].map(|name| at.field(name));
    Rule::Form(names::label_key).check(&key, errors);
    if key.str().is_empty() && operator.str() != "Exists" {
        errors.invalid(
            &operator,
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"",
        );
    }
    if at.field("tolerationSeconds").is_set() && effect.str() != "NoExecute" {
        errors.invalid(
            &effect,
            "effect must be 'NoExecute' when `tolerationSeconds` is set",
        );
    }
    match operator.str() {
        "Equal" | "" => {
            // UPSTREAM: errors in the value are reported at the operator.
            let wrong = names::label_value(value.str());
            if !wrong.is_empty() {
                errors.invalid_value(&operator, value.str(), wrong.join(";"));
            }
        }
        "Exists" => {
            if !value.str().is_empty() {
                errors.invalid_value(
                    &operator,
                    value.str(),
                    "value must be empty when `operator` is 'Exists'",
                );
            }
        }
        "Lt" | "Gt" if compares => check_compared_value(&value, errors),
        "Lt" | "Gt" => errors.not_supported(&operator, &["Equal", "Exists", "Lt", "Gt"]),
        _ => errors.not_supported(&operator, &["Equal", "Exists"]),
    }
    if !effect.str().is_empty() {
        EFFECT.check(&effect, errors);
    }
}

/// A value that a taint is compared with is a 64-bit integer in canonical form.
fn check_compared_value(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    errors.invalid_for(at, names::decimal_integer(at.str()));
    if let Err(why) = go::parse_integer::<i64>("ParseInt", at.str()) {
        errors.invalid(at, why);
    }
}
