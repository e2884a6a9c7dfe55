//! Policies of Jobs: what counts as failure and as success.

use super::indexes;
use crate::Cursor;
use crate::checks::names::label_key;
use crate::checks::{Report, Rule, numbers};
use scantling_value::{BadValue, ErrorList, FieldError, Value};
use std::collections::BTreeSet;

const MAX_RULES: usize = 20;
const MAX_EXIT_CODES: usize = 255;
const MAX_CONDITIONS: usize = 20;
const MAX_INDEXES_LENGTH: usize = 64 * 1024;

const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];
const OPERATORS: &[&str] = &["In", "NotIn"];
const STATUSES: &[&str] = &["False", "True", "Unknown"];

/// Checks an enumeration whose absence is reported with the valid values.
fn check_required_value(at: &Cursor<'_, '_>, supported: &[&str], errors: &mut ErrorList) {
    if at.str().is_empty() {
        let quoted: Vec<String> = supported.iter().map(|value| format!("\"{value}\"")).collect();
        errors.required(at, &format!("valid values: [{}]", quoted.join(" ")));
    } else if !supported.contains(&at.str()) {
        errors.not_supported(at, supported);
    }
}

/// Checks the rules of a pod failure policy.
pub(super) fn check_failure_policy(spec: &Cursor<'_, '_>, policy: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let rules = policy.field("rules");
    errors.max_items(&rules, MAX_RULES);
    let template = spec.field("template");
    let pod = template.field("spec");
    let lists = [pod.field("containers").list(), pod.field("initContainers").list()];
    let containers: BTreeSet<&str> = lists
        .iter()
        .flat_map(|l| l.iter())
        .map(|c| c.get_str("name"))
        .collect();
    let has_index_limit = spec.field("backoffLimitPerIndex").is_set();
    for rule in rules.items() {
        check_failure_rule(&rule, has_index_limit, &containers, errors);
    }
}

fn check_failure_rule(
    rule: &Cursor<'_, '_>,
    has_index_limit: bool,
    containers: &BTreeSet<&str>,
    errors: &mut ErrorList,
) {
    let action = rule.field("action");
    if action.str() == "FailIndex" && !has_index_limit {
        errors.invalid(&action, "requires the backoffLimitPerIndex to be set");
    }
    check_required_value(&action, ACTIONS, errors);
    let (exit_codes, conditions) = (rule.field("onExitCodes"), rule.field("onPodConditions"));
    if exit_codes.is_set() {
        check_exit_codes(&exit_codes, containers, errors);
    }
    errors.max_items(&conditions, MAX_CONDITIONS);
    for condition in conditions.items() {
        Rule::FormIfSet(label_key).check(&condition.field("type"), errors);
        check_required_value(&condition.field("status"), STATUSES, errors);
    }
    match (exit_codes.is_set(), !conditions.list().is_empty()) {
        (true, true) => {
            let why = "specifying both OnExitCodes and OnPodConditions is not supported";
            errors.invalid_value(rule, BadValue::Omitted, why);
        }
        (false, false) => {
            let why = "specifying one of OnExitCodes and OnPodConditions is required";
            errors.invalid_value(rule, BadValue::Omitted, why);
        }
        _ => {}
    }
}

/// Exit codes are ordered, unique and not 0, which is success.
fn check_exit_codes(requirement: &Cursor<'_, '_>, containers: &BTreeSet<&str>, errors: &mut ErrorList) {
    let operator = requirement.field("operator");
    check_required_value(&operator, OPERATORS, errors);
    let container = requirement.field("containerName");
    if container.is_set() && !containers.contains(container.str()) {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.invalid(&container, why);
    }
    let values = requirement.field("values");
    let shown = || values.value().cloned().unwrap_or_default();
    if values.list().is_empty() {
        errors.invalid_value(&values, shown(), "at least one value is required");
    }
    errors.max_items(&values, MAX_EXIT_CODES);
    let mut seen = BTreeSet::new();
    for value in values.items() {
        if operator.str() == "In" && value.int() == 0 {
            errors.invalid(&value, "must not be 0 for the In operator");
        }
        if !seen.insert(value.int()) {
            errors.duplicate(&value, value.int());
        }
    }
    if !values.list().is_sorted_by_key(Value::as_int) {
        errors.invalid_value(&values, shown(), "must be ordered");
    }
}

/// Checks the rules of a success policy.
pub(super) fn check_success_policy(spec: &Cursor<'_, '_>, policy: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let rules = policy.field("rules");
    if rules.list().is_empty() {
        let why = "at least one rules must be specified when the successPolicy is specified";
        errors.required(&rules, why);
    }
    errors.max_items(&rules, MAX_RULES);
    let completions = spec.field("completions").int();
    for rule in rules.items() {
        check_success_rule(&rule, completions, errors);
    }
}

fn check_success_rule(rule: &Cursor<'_, '_>, completions: i64, errors: &mut ErrorList) {
    let (count, indexes) = (rule.field("succeededCount"), rule.field("succeededIndexes"));
    if !count.is_set() && !indexes.is_set() {
        let why = "at least one of succeededCount or succeededIndexes must be specified";
        errors.required(rule, why);
    }
    let mut total = 0;
    if let Some(text) = indexes.value().and_then(Value::as_str) {
        if text.len() > MAX_INDEXES_LENGTH {
            errors.push_with(|| FieldError::too_long(indexes.path(), MAX_INDEXES_LENGTH));
        }
        match indexes::count(text, completions) {
            Ok(number) => total = number,
            Err(why) => errors.invalid(&indexes, format!("error parsing succeededIndexes: {why}")),
        }
    }
    if count.is_set() {
        numbers::non_negative(&count, errors);
        if count.int() > completions {
            let why =
                format!("must be less than or equal to {completions} (the number of specified completions)");
            errors.invalid(&count, why);
        }
        if indexes.is_set() && count.int() > total {
            let why = format!(
                "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
            );
            errors.invalid(&count, why);
        }
    }
}
