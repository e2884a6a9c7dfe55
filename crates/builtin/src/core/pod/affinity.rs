//! Affinities and topology spread constraints.

use super::rules::Rules;
use crate::Cursor;
use crate::checks::labels::{self, Values};
use crate::checks::{Report, Rule, names, nodes, numbers};
use scantling_value::{ErrorList, FieldError, Value};
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Checks the affinities of a pod.
pub(super) fn check(at: &Cursor<'_, '_>, rules: &Rules<'_>, errors: &mut ErrorList) {
    if !at.is_set() {
        return;
    }
    let node = at.field("nodeAffinity");
    let required = node.field(REQUIRED);
    if required.is_set() {
        nodes::selector(&required, rules.node_affinity_values(), errors);
    }
    for term in node.field(PREFERRED).items() {
        check_weight(&term.field("weight"), errors);
        nodes::term(&term.field("preference"), Values::Unchecked, errors);
    }
    let values = rules.affinity_values();
    for kind in ["podAffinity", "podAntiAffinity"] {
        let affinity = at.field(kind);
        for term in affinity.field(REQUIRED).items() {
            check_pod_term(&term, values, errors);
        }
        for term in affinity.field(PREFERRED).items() {
            check_weight(&term.field("weight"), errors);
            check_pod_term(&term.field("podAffinityTerm"), values, errors);
        }
    }
}

fn check_weight(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if !(1..=100).contains(&at.int()) {
        errors.invalid_value(at, at.int(), "must be in the range 1-100");
    }
}

fn check_pod_term(at: &Cursor<'_, '_>, values: Values, errors: &mut ErrorList) {
    let selector = at.field("labelSelector");
    labels::selector_with(&selector, values, errors);
    labels::selector_with(&at.field("namespaceSelector"), values, errors);
    for namespace in at.field("namespaces").list() {
        let namespace = namespace.as_str().unwrap_or("");
        for why in names::dns1123_label(namespace) {
            let at = at.path().field("namespace");
            errors.push_with(|| FieldError::invalid(&at, namespace, why));
        }
    }
    match_label_keys(at, errors);
    let topology = at.field("topologyKey");
    Rule::RequiredFor("can not be empty").check(&topology, errors);
    labels::key(&topology, errors);
}

/// Checks the keys of labels whose values the pod's own labels give.
fn match_label_keys(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let [selector, matched, mismatched] =
        ["labelSelector", "matchLabelKeys", "mismatchLabelKeys"].map(|field| at.field(field));
    if matched.list().is_empty() && mismatched.list().is_empty() {
        return;
    }
    for keys in [&matched, &mismatched] {
        if keys.list().is_empty() {
            continue;
        }
        if selector.is_set() {
            Rule::Each(labels::key).check(keys, errors);
        } else {
            errors.forbidden(keys, "must not be specified when labelSelector is not set");
        }
    }
    // The server adds one expression per key. A key that the selector has twice was there before.
    let positions = matched.list().iter().enumerate();
    let positions: BTreeMap<&str, usize> = positions
        .filter_map(|(i, key)| Some((key.as_str()?, i)))
        .collect();
    let labels = selector.field("matchLabels");
    let mut seen: BTreeSet<&str> = labels.entries().map(|(key, _)| key).collect();
    for expression in selector.field("matchExpressions").list() {
        let key = expression.get_str("key");
        if let Some(i) = positions.get(key).copied().filter(|_| seen.contains(key)) {
            let why = "exists in both matchLabelKeys and labelSelector";
            errors.push_with(|| FieldError::invalid(&at.path().index(i), key, why));
        }
        seen.insert(key);
    }
    let mismatched: BTreeSet<&str> = mismatched.list().iter().filter_map(Value::as_str).collect();
    for key in matched.items() {
        if mismatched.contains(key.str()) {
            errors.invalid(&key, "exists in both matchLabelKeys and mismatchLabelKeys");
        }
    }
}

/// Checks topology spread constraints.
pub(super) fn check_spread_constraints(at: &Cursor<'_, '_>, rules: &Rules<'_>, errors: &mut ErrorList) {
    const POLICY: Rule = Rule::OneOf(&["Honor", "Ignore"]);
    const ACTIONS: &[&str] = &["DoNotSchedule", "ScheduleAnyway"];
    let pair = |constraint: &'_ Value| -> (String, String) {
        let text = |field: &str| constraint.get_str(field).to_owned();
        (text("topologyKey"), text("whenUnsatisfiable"))
    };
    // The last constraint of each pair of key and action; earlier ones are reported as repeated.
    let last: BTreeMap<(String, String), usize> = match at.list() {
        [] | [_] => BTreeMap::new(),
        list => list.iter().enumerate().map(|(i, c)| (pair(c), i)).collect(),
    };
    // Both look at all stored constraints.
    let merged_rule = LazyCell::new(|| uses_merged_rule(rules));
    let checks_selectors = LazyCell::new(|| rules.old.is_none() || rules.checks_spread_selectors());
    for (i, constraint) in at.items().enumerate() {
        numbers::positive(&constraint.field("maxSkew"), errors);
        let [topology, action] = ["topologyKey", "whenUnsatisfiable"].map(|field| constraint.field(field));
        Rule::RequiredFor("can not be empty").check(&topology, errors);
        Rule::In(ACTIONS).check(&action, errors);
        let key = (topology.str().to_owned(), action.str().to_owned());
        if last.get(&key).is_some_and(|last| *last > i) {
            let shown = format!("{{{}, {}}}", topology.str(), action.str());
            errors.duplicate(&constraint.field("{topologyKey, whenUnsatisfiable}"), shown);
        }
        check_min_domains(&constraint.field("minDomains"), action.str(), errors);
        POLICY.check(&constraint.field("nodeAffinityPolicy"), errors);
        POLICY.check(&constraint.field("nodeTaintsPolicy"), errors);
        if !constraint.field("matchLabelKeys").list().is_empty() {
            match *merged_rule {
                true => match_label_keys(&constraint, errors),
                false => separate_label_keys(&constraint, errors),
            }
        }
        let selector = constraint.field("labelSelector");
        if selector.is_set() && *checks_selectors {
            labels::selector(&selector, errors);
        }
    }
}

fn check_min_domains(at: &Cursor<'_, '_>, action: &str, errors: &mut ErrorList) {
    if !at.is_set() {
        return;
    }
    numbers::positive(at, errors);
    if action != "DoNotSchedule" {
        let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        errors.invalid(at, why);
    }
}

/// Returns whether the keys of constraints follow the rule for servers that merge them into the selector. A stored pod
/// that violates this rule keeps the other one.
fn uses_merged_rule(rules: &Rules<'_>) -> bool {
    let merges = rules.enabled("MatchLabelKeysInPodTopologySpreadSelectorMerge");
    let breaks = |check: fn(&Cursor<'_, '_>, &mut ErrorList)| {
        let constraints = rules
            .old
            .map_or(&[][..], |old| old.list("topologySpreadConstraints"));
        constraints.iter().any(|constraint| {
            let mut errors = ErrorList::new();
            check(&Cursor::root(constraint), &mut errors);
            !errors.is_empty()
        })
    };
    match (rules.enabled("MatchLabelKeysInPodTopologySpread"), merges) {
        (false, _) => false,
        (true, true) => !breaks(match_label_keys),
        (true, false) => breaks(separate_label_keys),
    }
}

/// Checks keys that are not merged into the selector: it may not have them.
fn separate_label_keys(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (selector, keys) = (at.field("labelSelector"), at.field("matchLabelKeys"));
    if keys.list().is_empty() {
        return;
    }
    if !selector.is_set() {
        errors.forbidden(&keys, "must not be specified when labelSelector is not set");
    }
    let labels = selector.field("matchLabels");
    let expressions = selector.field("matchExpressions");
    let mut selected: BTreeSet<&str> = labels.entries().map(|(key, _)| key).collect();
    selected.extend(expressions.list().iter().map(|e| e.get_str("key")));
    for key in keys.items() {
        labels::key(&key, errors);
        if selected.contains(key.str()) {
            errors.invalid(&key, "exists in both matchLabelKeys and labelSelector");
        }
    }
}
