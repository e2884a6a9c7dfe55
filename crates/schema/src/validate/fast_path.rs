//! Whether a value is valid, as quickly as it can be told.
//!
//! Types, sizes, texts and members are looked at here; where a schema asks for more (junctors, numbers, formats of
//! anything but texts), the walk of [`validate`](super::validate) answers for that part.

use super::sink::FirstFailure;
use super::{check, is_longer, is_shorter};
use crate::correlate::UnchangedBelow;
use crate::plan::{CheckKind, Features, FieldLookup, PlanNode};
use crate::structural::Additional;
use scantling_value::{Map, Path, Value, deadline};

/// Returns whether a value keeps every limit of a schema.
pub fn is_valid(node: &PlanNode, value: &Value) -> bool {
    !needs_full_check(node, value) || fits(node, value)
}

#[inline]
fn needs_full_check(node: &PlanNode, value: &Value) -> bool {
    node.has(Features::LIMITS) && !node.fast_check().fits(value)
}

/// As [`is_valid`], save for elements of lists that are known to be what they were: those are forgiven whatever they are.
pub(super) fn is_valid_except(node: &PlanNode, value: &Value, unchanged: &UnchangedBelow<'_>) -> bool {
    match (node.check_kind(), value) {
        (CheckKind::Object, Value::Object(map)) => {
            fits_object(node, map, |name, node, value| match unchanged.member(name) {
                Some(unchanged) => is_valid_except(node, value, &unchanged),
                None => fits(node, value),
            })
        }
        (CheckKind::List, Value::Array(list)) => {
            let mut same = unchanged.elements().unwrap_or_default().iter().copied();
            fits_list(node, list, |items, item| {
                same.next() == Some(true) || is_valid(items, item)
            })
        }
        _ => is_valid(node, value),
    }
}

/// Whether a value fits that needs a closer look.
// Each way to look is a call of its own: most values are texts, which do not pay for the frames of the others.
fn fits(node: &PlanNode, value: &Value) -> bool {
    match (node.check_kind(), value) {
        (CheckKind::Text, Value::String(text)) => fits_text(node, text),
        (CheckKind::Object, Value::Object(map)) => members_fit(node, map),
        (CheckKind::List, Value::Array(list)) => elements_fit(node, list),
        _ => full_check(node, value),
    }
}

#[inline(never)]
fn members_fit(node: &PlanNode, map: &Map) -> bool {
    deadline::tick_for(map.len());
    fits_object(node, map, |_, node, value| fits(node, value))
}

#[inline(never)]
fn elements_fit(node: &PlanNode, list: &[Value]) -> bool {
    deadline::tick_for(list.len());
    fits_list(node, list, is_valid)
}

/// Returns whether a value fits, told by the walk that knows every limit.
#[inline(never)]
pub(super) fn full_check(node: &PlanNode, value: &Value) -> bool {
    check(node, value, None, &Path::ROOT, &mut FirstFailure).is_ok()
}

#[inline(never)]
fn fits_text(node: &PlanNode, text: &str) -> bool {
    let (Some(limits), Some(checks)) = (node.limits(), node.checks()) else {
        return true;
    };
    deadline::tick_over(text);
    limits.max_length.is_none_or(|max| !is_longer(text, max))
        && limits.min_length.is_none_or(|min| !is_shorter(text, min))
        && checks
            .pattern
            .as_ref()
            .is_none_or(|pattern| pattern.is_match(text))
        && checks
            .format
            .as_ref()
            .is_none_or(|format| !format.is_for_strings() || format.matches(text))
        && (limits.enumeration.is_empty() || checks.listed.contains_text(text))
}

/// Returns whether a list fits, of which `fits` looks at the elements.
#[inline]
fn fits_list(node: &PlanNode, list: &[Value], mut fits: impl FnMut(&PlanNode, &Value) -> bool) -> bool {
    if let Some(limits) = node.limits()
        && (!is_within(list.len(), limits.min_items, limits.max_items)
            || (limits.unique_items && super::repeats(list)))
    {
        return false;
    }
    node.items()
        .is_none_or(|items| list.iter().all(|item| fits(items, item)))
}

/// Returns whether an object fits whose members need a closer look by `fits`.
#[inline]
fn fits_object(node: &PlanNode, map: &Map, fits: impl Fn(&str, &PlanNode, &Value) -> bool) -> bool {
    let limits = node.limits();
    if limits.is_some_and(|v| !is_within(map.len(), v.min_properties, v.max_properties)) {
        return false;
    }
    let mut members = FieldLookup::new(node);
    let mut required = 0;
    for (name, value) in map.entries() {
        let fits = if let Some(field) = members.find(name) {
            required += usize::from(field.required);
            field.fast_check.fits(value)
                || !field.has(Features::LIMITS)
                || members.found().is_none_or(|field| fits(name, field, value))
        } else if let Some(additional) = node.additional() {
            !needs_full_check(additional, value) || fits(name, additional, value)
        } else {
            node.schema().additional != Some(Additional::Any(false))
        };
        if !fits {
            return false;
        }
    }
    // A name may be repeated in `required`.
    limits
        .is_none_or(|v| required >= v.required.len() || v.required.iter().all(|name| map.contains_key(name)))
}

fn is_within(size: usize, min: Option<i64>, max: Option<i64>) -> bool {
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    min.is_none_or(|min| size >= min) && max.is_none_or(|max| size <= max)
}
