//! Whether a value is valid, as quickly as it can be told.
//!
//! Types, sizes, texts and members are looked at here; where a schema asks for more (junctors, numbers, formats of
//! anything but texts), the walk of [`validate`](super::validate) answers for that part.

use super::sink::First;
use super::{check, is_longer, is_shorter};
use crate::correlate::KeptBelow;
use crate::plan::{Checks, Features, Members, Node, Types};
use crate::structural::{Additional, ValueValidation};
use scantling_value::{Map, Path, Value};

/// Whether a value keeps every limit of a schema.
pub fn is_valid(node: &Node, value: &Value) -> bool {
    !needs_a_look(node, value) || fits(node, value)
}

#[inline]
fn needs_a_look(node: &Node, value: &Value) -> bool {
    node.has(Features::LIMITS) && !node.glance().fits(value)
}

/// As [`is_valid`], save for elements of lists that are known to be what they were: those are forgiven whatever they are.
pub(super) fn is_valid_save(node: &Node, value: &Value, kept: &KeptBelow<'_>) -> bool {
    let limits = node.limits().zip(node.checks());
    match (value, node.types()) {
        (Value::Object(map), Types::OBJECT) if limits.is_none_or(is_about_size) => {
            let limits = limits.map(|(limits, _)| limits);
            fits_object(node, limits, map, |name, node, value| match kept.member(name) {
                Some(kept) => is_valid_save(node, value, &kept),
                None => fits(node, value),
            })
        }
        (Value::Array(list), Types::ARRAY) if limits.is_none_or(is_about_size) => {
            let mut same = kept.elements().unwrap_or_default().iter().copied();
            let mut fits_item = |items, item| same.next() == Some(true) || is_valid(items, item);
            limits.is_none_or(|(limits, _)| fits_list(limits, list))
                && node
                    .items()
                    .is_none_or(|items| list.iter().all(|item| fits_item(items, item)))
        }
        _ => is_valid(node, value),
    }
}

/// Whether a value fits that needs a closer look.
fn fits(node: &Node, value: &Value) -> bool {
    let limits = node.limits().zip(node.checks());
    match (value, node.types()) {
        (Value::String(text), Types::STRING) => match limits {
            Some((limits, checks)) if !checks.junctors => fits_text(limits, checks, text),
            _ => fits_at_length(node, value),
        },
        (Value::Object(map), Types::OBJECT) if limits.is_none_or(is_about_size) => {
            let limits = limits.map(|(limits, _)| limits);
            fits_object(node, limits, map, |_, node, value| fits(node, value))
        }
        (Value::Array(list), Types::ARRAY) if limits.is_none_or(is_about_size) => {
            limits.is_none_or(|(limits, _)| fits_list(limits, list))
                && node
                    .items()
                    .is_none_or(|items| list.iter().all(|item| is_valid(items, item)))
        }
        _ => fits_at_length(node, value),
    }
}

/// Whether a value fits, told by the walk that knows every limit.
#[inline(never)]
pub(super) fn fits_at_length(node: &Node, value: &Value) -> bool {
    check(node, value, None, &Path::ROOT, &mut First).is_ok()
}

/// Whether all limits on an object or a list are such as these walks know.
fn is_about_size((limits, checks): (&ValueValidation, &Checks)) -> bool {
    !checks.junctors && checks.format.is_none() && limits.enumeration.is_empty()
}

fn fits_text(limits: &ValueValidation, checks: &Checks, text: &str) -> bool {
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
        && (limits.enumeration.is_empty() || checks.listed_texts.contains(text))
}

fn fits_list(limits: &ValueValidation, list: &[Value]) -> bool {
    is_within(list.len(), limits.min_items, limits.max_items)
        && !(limits.unique_items && super::repeats(list))
}

/// Whether an object fits whose members need a closer look by `fits`.
#[inline]
fn fits_object(
    node: &Node,
    limits: Option<&ValueValidation>,
    map: &Map,
    fits: impl Fn(&str, &Node, &Value) -> bool,
) -> bool {
    if limits.is_some_and(|v| !is_within(map.len(), v.min_properties, v.max_properties)) {
        return false;
    }
    let mut members = Members::of(node);
    for (name, value) in map.entries() {
        let fits = if let Some((slot, field)) = members.find(name) {
            field.glance.fits(value)
                || !field.has(Features::LIMITS)
                || node.field(slot).is_none_or(|field| fits(name, field, value))
        } else if let Some(additional) = node.additional() {
            !needs_a_look(additional, value) || fits(name, additional, value)
        } else {
            node.schema().additional != Some(Additional::Any(false))
        };
        if !fits {
            return false;
        }
    }
    // A name may stand twice among those that are required.
    limits.is_none_or(|v| {
        members.required() >= v.required.len() || v.required.iter().all(|name| map.contains_key(name))
    })
}

fn is_within(size: usize, min: Option<i64>, max: Option<i64>) -> bool {
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    min.is_none_or(|min| size >= min) && max.is_none_or(|max| size <= max)
}
