//! Conditions of the API machinery's type.

use super::{Report, Rule, labels, names};
use crate::Cursor;
use scantling_value::ErrorList;
use std::collections::BTreeSet;

const MAX_REASON: usize = 1024;
const MAX_MESSAGE: usize = 32 * 1024;

/// Checks a list of conditions, whose types are unique.
pub(crate) fn check(conditions: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let mut seen = BTreeSet::new();
    for condition in conditions.items() {
        let kind = condition.field("type");
        if !seen.insert(kind.str()) {
            errors.duplicate(&condition, kind.str());
        }
        check_one(&condition, errors);
    }
}

fn check_one(condition: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let kind = condition.field("type");
    if kind.str().is_empty() {
        errors.required(&kind, "is required");
    } else {
        labels::key(&kind, errors);
    }
    Rule::RequiredOneOf(&["False", "True", "Unknown"]).check(&condition.field("status"), errors);
    let generation = condition.field("observedGeneration");
    if generation.int() < 0 {
        errors.invalid(&generation, "must be greater than or equal to zero");
    }
    Rule::Required.check(&condition.field("lastTransitionTime"), errors);
    let reason = condition.field("reason");
    Rule::RequiredForm(check_reason).check(&reason, errors);
    for (field, max) in [(reason, MAX_REASON), (condition.field("message"), MAX_MESSAGE)] {
        errors.max_bytes(&field, max);
    }
}

fn check_reason(text: &str) -> Vec<String> {
    let is_inner = |b: u8| b.is_ascii_alphanumeric() || b"_,:".contains(&b);
    let is_valid = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.bytes().all(is_inner);
    if is_valid {
        return Vec::new();
    }
    vec![names::format_message(
        "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric \
         characters or '_,:', and must end with an alphanumeric character or '_'",
        &[
            "my_name",
            "MY_NAME",
            "MyName",
            "ReasonA,ReasonB",
            "ReasonA:ReasonB",
        ],
        "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
    )]
}
