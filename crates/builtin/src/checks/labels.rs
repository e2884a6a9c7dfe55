//! Labels, annotations and label selectors.

use super::{Report, Rule, names};
use crate::Cursor;
use scantling_schema::meta;
use scantling_value::{ErrorList, Path, Value};

/// Checks a map of labels. Errors are at the map, not at its entries.
pub(crate) fn labels(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    meta::check_labels(at.value(), at.path(), errors);
}

/// Checks a map of annotations.
pub(crate) fn annotations(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    meta::check_annotations(at.value(), at.path(), errors);
}

/// Checks the key of a label.
pub(crate) fn key(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    errors.invalid_for(at, names::label_key(at.str()));
}

/// The validation of a selector's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// They have to.
    Checked,
    /// The stored object has invalid values already, so they are allowed.
    Unchecked,
}

impl Values {
    /// Values are checked unless the stored object has invalid ones.
    pub(crate) fn unless(is_invalid_already: bool) -> Values {
        if is_invalid_already {
            Values::Unchecked
        } else {
            Values::Checked
        }
    }
}

/// Returns whether a selector can be evaluated: its keys, operators and values are valid.
pub(crate) fn is_valid(selector: Option<&Value>) -> bool {
    let mut errors = ErrorList::new();
    self::selector(&Cursor::at(selector, Path::ROOT), &mut errors);
    errors.is_empty()
}

/// Checks a label selector, where it is set.
pub(crate) fn selector(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    selector_with(at, Values::Checked, errors);
}

/// Checks a label selector, where it is set, with a choice about its values.
pub(crate) fn selector_with(at: &Cursor<'_, '_>, values: Values, errors: &mut ErrorList) {
    labels(&at.field("matchLabels"), errors);
    for requirement in at.field("matchExpressions").items() {
        check_requirement(&requirement, values, errors);
    }
}

fn check_requirement(at: &Cursor<'_, '_>, values: Values, errors: &mut ErrorList) {
    check_operator_and_values(at, errors);
    key(&at.field("key"), errors);
    if values == Values::Checked {
        label_values(&at.field("values"), errors);
    }
}

/// Checks that the values of a requirement fit its operator. Returns whether the operator is one of labels.
pub(super) fn check_operator_and_values(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let (operator, values) = (at.field("operator"), at.field("values"));
    match operator.str() {
        "In" | "NotIn" => {
            Rule::RequiredFor("must be specified when `operator` is 'In' or 'NotIn'").check(&values, errors);
        }
        "Exists" | "DoesNotExist" => {
            if !values.list().is_empty() {
                errors.forbidden(
                    &values,
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                );
            }
        }
        _ => errors.invalid(&operator, "not a valid selector operator"),
    }
}

/// Checks a list of label values.
pub(super) fn label_values(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    for value in at.items() {
        errors.invalid_for(&value, names::label_value(value.str()));
    }
}

/// Returns whether a selector has a value that is not a valid label value. Updates of such objects do not check values.
pub(crate) fn has_invalid_value(selector: Option<&Value>) -> bool {
    let expressions = selector.map_or(&[][..], |s| s.list("matchExpressions"));
    let mut values = expressions.iter().flat_map(|e| e.list("values"));
    values.any(|v| !names::label_value(v.as_str().unwrap_or("")).is_empty())
}

/// Returns whether a selector is absent or selects everything.
pub(crate) fn is_empty_selector(selector: Option<&Value>) -> bool {
    let is_empty = |s: &Value| s.list("matchExpressions").is_empty() && matched_labels(s).is_none();
    selector.is_none_or(is_empty)
}

fn matched_labels(selector: &Value) -> Option<&scantling_value::Map> {
    let labels = selector.get("matchLabels")?.as_object()?;
    (!labels.is_empty()).then_some(labels)
}

/// Returns whether a label selector selects a set of labels. A requirement that is invalid selects nothing.
pub fn selects(selector: Option<&Value>, labels: Option<&Value>) -> bool {
    // An absent selector selects nothing, an empty one everything.
    let Some(selector) = selector else { return false };
    let label = |key: &str| labels.and_then(|l| l.get(key)).and_then(Value::as_str);
    let has = |key: &str, value: Option<&str>| label(key) == value;
    let labels_match = matched_labels(selector)
        .is_none_or(|wanted| wanted.iter().all(|(key, value)| has(key, value.as_str())));
    let meets = |requirement: &Value| {
        let actual = label(requirement.get_str("key"));
        let is_listed = actual.is_some_and(|actual| {
            requirement
                .list("values")
                .iter()
                .any(|v| v.as_str() == Some(actual))
        });
        match requirement.get_str("operator") {
            "In" => is_listed,
            "NotIn" => !is_listed,
            "Exists" => actual.is_some(),
            "DoesNotExist" => actual.is_none(),
            _ => false,
        }
    };
    labels_match && selector.list("matchExpressions").iter().all(meets)
}
