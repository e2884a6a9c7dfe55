//! Node selectors and topology selectors.

use super::labels::{self, Values};
use super::{Report, Rule, names};
use crate::Cursor;
use scantling_value::{ErrorList, Value};
use std::collections::BTreeSet;

/// Checks a node selector that is set.
pub(crate) fn selector(at: &Cursor<'_, '_>, values: Values, errors: &mut ErrorList) {
    let terms = at.field("nodeSelectorTerms");
    if terms.list().is_empty() {
        return errors.required(&terms, "must have at least one node selector term");
    }
    terms.items().for_each(|t| term(&t, values, errors));
}

/// Checks a term of a node selector.
pub(crate) fn term(at: &Cursor<'_, '_>, values: Values, errors: &mut ErrorList) {
    for requirement in at.field("matchExpressions").items() {
        check_requirement(&requirement, values, errors);
    }
    Rule::Each(check_field_requirement).check(&at.field("matchFields"), errors);
}

fn check_requirement(at: &Cursor<'_, '_>, values: Values, errors: &mut ErrorList) {
    match at.field("operator").str() {
        "Gt" | "Lt" => {
            let values = at.field("values");
            if values.list().len() != 1 {
                errors.required(
                    &values,
                    "must be specified single value when `operator` is 'Lt' or 'Gt'",
                );
            }
        }
        _ => labels::check_operator_and_values(at, errors),
    }
    labels::key(&at.field("key"), errors);
    if values == Values::Checked {
        labels::label_values(&at.field("values"), errors);
    }
}

fn check_field_requirement(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (key, operator, values) = (at.field("key"), at.field("operator"), at.field("values"));
    match operator.str() {
        "In" | "NotIn" => {
            if values.list().len() != 1 {
                errors.required(
                    &values,
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
                );
            }
        }
        _ => errors.invalid(&operator, "not a valid selector operator"),
    }
    if key.str() == "metadata.name" {
        for value in values.items() {
            errors.invalid_for(&value, names::dns1123_subdomain(value.str()));
        }
    } else {
        errors.invalid(&key, "not a valid field selector key");
    }
}

/// Checks a term of a topology selector, as storage classes have them. Returns the values of each key.
pub(crate) fn topology_term<'v>(
    at: &Cursor<'v, '_>,
    errors: &mut ErrorList,
) -> Vec<(&'v str, BTreeSet<&'v str>)> {
    let mut expressions: Vec<(&str, BTreeSet<&str>)> = Vec::new();
    for requirement in at.field("matchLabelExpressions").items() {
        let (key, values) = (requirement.field("key"), requirement.field("values"));
        Rule::Required.check(&values, errors);
        let mut seen = BTreeSet::new();
        for value in values.items() {
            errors.unique(&mut seen, &value);
        }
        labels::key(&key, errors);
        match expressions.iter_mut().find(|(known, _)| *known == key.str()) {
            Some((_, values)) => {
                errors.duplicate(&key, key.str());
                // kube-apiserver holds the values by key, so that those of the last requirement stay.
                *values = seen;
            }
            None => expressions.push((key.str(), seen)),
        }
    }
    expressions
}

/// Beta labels of nodes, the stable labels that replaced them, and the release since which the former are deprecated.
const STABLE_LABELS: [(&str, &str, &str); 5] = [
    ("beta.kubernetes.io/arch", "kubernetes.io/arch", "v1.14"),
    (
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "v1.17",
    ),
    ("beta.kubernetes.io/os", "kubernetes.io/os", "v1.14"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
        "v1.17",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/zone",
        "v1.17",
    ),
];

/// Replaces the beta labels in the requirements of a node affinity of a volume where `new` has the stable labels.
pub(crate) fn follow_stable_labels(affinity: &mut Value, new: &Value) {
    fn items<'a>(parent: &'a mut Value, list: &str) -> &'a mut [Value] {
        let list = parent.as_object_mut().and_then(|members| members.get_mut(list));
        list.and_then(Value::as_array_mut)
            .map_or(&mut [], |items| &mut items[..])
    }
    let required = affinity
        .as_object_mut()
        .and_then(|members| members.get_mut("required"));
    let Some(required) = required else { return };
    let new = new.list_at(["required", "nodeSelectorTerms"]);
    for (term, new) in items(required, "nodeSelectorTerms").iter_mut().zip(new) {
        for list in ["matchExpressions", "matchFields"] {
            for (requirement, new) in items(term, list).iter_mut().zip(new.list(list)) {
                let (before, after) = (requirement.get_str("key"), new.get_str("key"));
                // UPSTREAM: a label without successor has the empty one.
                let successor = STABLE_LABELS.iter().find(|(beta, _, _)| *beta == before);
                let is_stable = after == successor.map_or("", |(_, stable, _)| *stable);
                if let Some(members) = requirement.as_object_mut().filter(|_| is_stable) {
                    members.insert("key", new.get_str("key").into());
                }
            }
        }
    }
}

/// The deprecation message of a node label, if it is deprecated.
pub(crate) fn deprecated_label(label: &str) -> Option<String> {
    if let Some((_, stable, since)) = STABLE_LABELS.iter().find(|(beta, _, _)| *beta == label) {
        return Some(format!("deprecated since {since}; use \"{stable}\" instead"));
    }
    let why = match label {
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => {
            "deprecated since v1.22; use Taints and Tolerations instead"
        }
        "node-role.kubernetes.io/master" => "use \"node-role.kubernetes.io/control-plane\" instead",
        _ => return None,
    };
    Some(why.to_owned())
}

/// Adds the warnings about deprecated labels in requirements (`matchExpressions`).
pub(crate) fn warn_about_requirements(requirements: &Cursor<'_, '_>, warnings: &mut Vec<String>) {
    for requirement in requirements.items() {
        let key = requirement.field("key");
        let warning = |why| format!("{}: {} is {why}", key.path(), key.str());
        warnings.extend(deprecated_label(key.str()).map(warning));
    }
}
