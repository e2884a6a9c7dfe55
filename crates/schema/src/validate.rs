//! Validates values against a schema.
//!
//! A valid object costs no more than a walk that knows the common limits and stops at the first failure (`glance`);
//! only an invalid one is walked again, to collect what a server says about it. That second walk serves the rarer limits
//! of the first one, too: what it does with a failure is up to its [`Sink`]. It also counts what matched, because a
//! server shows the failures of that branch of `anyOf` and `oneOf` of which most matched.

mod error_site;
mod fast_path;
mod junctor;
mod sink;

pub use fast_path::is_valid;
pub use sink::Ratchet;
pub(crate) use sink::{Sink, Stop};

use crate::number;
use crate::plan::{Features, FieldLookup, PlanNode, Types, ValueChecks};
use crate::structural::{Additional, ValueValidation};
use scantling_value::{ErrorList, Map, Path, Value, deadline};
use sink::CollectErrors;
use std::collections::HashMap;

/// What is wrong with a value. Errors are shown below `prefix`; the texts name places from the value on.
///
/// With `ratchet`, a failure is forgiven where the value it stands in is what it was before.
pub fn validate(
    node: &PlanNode,
    value: &Value,
    prefix: &Path<'_>,
    ratchet: Option<(&Ratchet<'_>, &Value)>,
) -> ErrorList {
    let kept = ratchet.and_then(|(ratchet, _)| ratchet.unchanged_elements());
    let valid = match kept {
        Some(unchanged) => fast_path::is_valid_except(node, value, &unchanged.at_root()),
        None => is_valid(node, value),
    };
    if valid {
        debug_assert!(
            match kept {
                Some(_) => collect(node, value, prefix, ratchet).is_empty(),
                None => fast_path::full_check(node, value),
            },
            "both walks agree on {}",
            value.to_json()
        );
        return ErrorList::new();
    }
    collect(node, value, prefix, ratchet)
}

fn collect(
    node: &PlanNode,
    value: &Value,
    prefix: &Path<'_>,
    ratchet: Option<(&Ratchet<'_>, &Value)>,
) -> ErrorList {
    let mut sink = CollectErrors::new(prefix, ratchet.map(|(r, _)| r));
    // Collecting never stops early.
    let _ = check(node, value, ratchet.map(|(_, old)| old), &Path::ROOT, &mut sink);
    sink.into_errors()
}

/// Validates a value that was `old` before, and returns how much matched.
fn check<S: Sink>(
    node: &PlanNode,
    value: &Value,
    old: Option<&Value>,
    at: &Path<'_>,
    sink: &mut S,
) -> Result<usize, Stop> {
    if !S::COLLECTS && !node.has(Features::LIMITS) {
        return Ok(0);
    }
    let before = sink.failures();
    let matched = check_value(node, value, old, at, sink)?;
    if let Some(old) = old
        && sink.failures() > before
        && sink.unchanged(node, old, value)
    {
        sink.forgive(before);
    }
    Ok(matched)
}

fn check_value<S: Sink>(
    node: &PlanNode,
    value: &Value,
    old: Option<&Value>,
    at: &Path<'_>,
    sink: &mut S,
) -> Result<usize, Stop> {
    deadline::tick();
    let limits = node.limits().zip(node.checks());
    let mut matched = 0;
    if value.is_null() {
        let wanted = type_names(node);
        if matches!(wanted, "" | "null") || node.schema().nullable {
            matched += 1;
        } else {
            sink.fail(at, |site| site.wrong_type(wanted, "null"))?;
        }
        check_enum(limits, value, at, sink)?;
        return Ok(matched);
    }

    let format = limits.and_then(|(_, c)| c.format.as_ref());
    if !type_names(node).is_empty() || format.is_some() {
        matched += 1 + usize::from(check_type(node, value, at, sink)?);
    }
    matched += 2;
    if let Some((_, checks)) = limits.filter(|(_, checks)| checks.junctors) {
        matched += junctor::check(checks, value, at, sink)?;
    }
    match value {
        Value::String(s) => {
            matched += 1;
            if let Some((v, checks)) = limits {
                if checks.strings {
                    check_string(v, checks, s, at, sink)?;
                }
                if let Some(format) = format.filter(|f| f.is_for_strings()) {
                    matched += 1;
                    if !format.matches(s) {
                        sink.fail(at, |site| site.wrong_type(format.name(), s))?;
                    }
                }
            }
        }
        Value::Int(_) | Value::Float(_) => {
            matched += 2;
            number::check(node, value, at, sink)?;
        }
        Value::Array(list) => {
            matched += 2 + check_list(node, limits, list, old, at, sink)?;
        }
        Value::Null | Value::Bool(_) | Value::Object(_) => {}
    }
    matched += 1;
    check_enum(limits, value, at, sink)?;
    if let Value::Object(map) = value {
        matched += 1 + check_object(node, limits, map, old, at, sink)?;
    }
    Ok(matched + 1)
}

/// The allowed types as errors list them; empty if any type is allowed.
fn type_names(node: &PlanNode) -> &str {
    match (node.types().names(), node.limits()) {
        ("", Some(limits)) => &limits.unknown_type,
        (names, _) => names,
    }
}

/// The type of a value, and the format that kube-apiserver's decoder assigns to it.
fn kind(value: &Value) -> (Types, &'static str) {
    let format = match value {
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        _ => "",
    };
    (Types::of_value(value), format)
}

/// Checks the type. A format takes part in it: on anything but numbers it admits strings and lists.
fn check_type<S: Sink>(node: &PlanNode, value: &Value, at: &Path<'_>, sink: &mut S) -> Result<bool, Stop> {
    let types = node.types();
    let (actual, actual_format) = kind(value);
    let fits = types.contains(actual)
        || (types.contains(Types::NUMBER) && matches!(value, Value::Int(_)))
        || (types.contains(Types::INTEGER) && matches!(value, Value::Float(f) if number::is_integral(*f)));
    if let Some(format) = node.checks().and_then(|c| c.format.as_ref()) {
        let loose = matches!(value, Value::String(_) | Value::Array(_));
        if !loose && !fits && format.name() != actual_format {
            sink.fail(at, |site| site.wrong_type(format.name(), actual_format))?;
            return Ok(false);
        }
        if loose && !types.contains(Types::NUMBER) && !types.contains(Types::INTEGER) {
            return Ok(true);
        }
    }
    if !fits {
        sink.fail(at, |site| site.wrong_type(type_names(node), actual.names()))?;
    }
    Ok(fits)
}

fn length(s: &str) -> i64 {
    i64::try_from(s.chars().count()).unwrap_or(i64::MAX)
}

fn bytes(s: &str) -> i64 {
    i64::try_from(s.len()).unwrap_or(i64::MAX)
}

/// Returns whether a string has more than `max` characters. They are counted only if the byte length does not
/// decide.
fn is_longer(s: &str, max: i64) -> bool {
    bytes(s) > max && length(s) > max
}

/// Returns whether a string has fewer than `min` characters.
fn is_shorter(s: &str, min: i64) -> bool {
    bytes(s) < min || (bytes(s) < min.saturating_mul(4) && length(s) < min)
}

/// Of the limits on a string, a server reports only the first that fails.
fn check_string<S: Sink>(
    v: &ValueValidation,
    checks: &ValueChecks,
    s: &str,
    at: &Path<'_>,
    sink: &mut S,
) -> Result<(), Stop> {
    deadline::tick_over(s);
    if let Some(max) = v.max_length
        && is_longer(s, max)
    {
        return sink.fail(at, |site| site.too_long(max));
    }
    if let Some(min) = v.min_length
        && is_shorter(s, min)
    {
        return sink.fail(at, |site| site.too_short(s, min));
    }
    if let Some(pattern) = &checks.pattern
        && !pattern.is_match(s)
    {
        return sink.fail(at, |site| site.no_match(s, pattern));
    }
    Ok(())
}

fn check_enum<S: Sink>(
    limits: Option<(&ValueValidation, &ValueChecks)>,
    value: &Value,
    at: &Path<'_>,
    sink: &mut S,
) -> Result<(), Stop> {
    if let Some((v, checks)) = limits
        && !v.enumeration.is_empty()
        && !checks.listed.contains(value)
    {
        sink.fail(at, |site| site.not_in_enum(value, &v.enumeration))?;
    }
    Ok(())
}

fn check_list<S: Sink>(
    node: &PlanNode,
    limits: Option<(&ValueValidation, &ValueChecks)>,
    list: &[Value],
    old: Option<&Value>,
    at: &Path<'_>,
    sink: &mut S,
) -> Result<usize, Stop> {
    let mut matched = 0;
    if let Some(items) = node.items() {
        let old = old.and_then(|old| sink.correlate(node, old));
        for (i, item) in list.iter().enumerate() {
            let before = old.as_ref().and_then(|old| old.get(item));
            matched += check(items, item, before, &at.index(i), sink)?;
        }
    }
    let Some((v, _)) = limits else {
        return Ok(matched);
    };
    let size = i64::try_from(list.len()).unwrap_or(i64::MAX);
    if let Some(min) = v.min_items
        && size < min
    {
        sink.fail(at, |site| site.too_few(size, min, "items"))?;
    }
    if let Some(max) = v.max_items
        && size > max
    {
        sink.fail(at, |site| site.too_many(size, max))?;
    }
    if v.unique_items && repeats(list) {
        sink.fail(at, |site| site.invalid("", "shouldn't contain duplicates"))?;
    }
    Ok(matched)
}

/// Returns whether an element is repeated. Only elements with the same text can be equal.
fn repeats(list: &[Value]) -> bool {
    let mut seen: HashMap<String, Vec<&Value>> = HashMap::with_capacity(list.len());
    list.iter().any(|item| {
        let alike = seen.entry(item.to_json()).or_default();
        let repeats = alike.contains(&item);
        // Few values share a text: only numbers of different types.
        if !repeats {
            alike.push(item);
        }
        repeats
    })
}

fn check_object<S: Sink>(
    node: &PlanNode,
    limits: Option<(&ValueValidation, &ValueChecks)>,
    map: &Map,
    old: Option<&Value>,
    at: &Path<'_>,
    sink: &mut S,
) -> Result<usize, Stop> {
    let mut matched = 0;
    if let Some((v, _)) = limits {
        let size = i64::try_from(map.len()).unwrap_or(i64::MAX);
        if let Some(min) = v.min_properties
            && size < min
        {
            sink.fail(at, |site| site.too_few(size, min, "properties"))?;
        }
        if let Some(max) = v.max_properties
            && size > max
        {
            sink.fail(at, |site| site.too_many(size, max))?;
        }
    }
    let old = old.and_then(Value::as_object);
    let closed = node.schema().additional == Some(Additional::Any(false));
    let mut members = FieldLookup::new(node);
    let mut required = 0;
    for (name, value) in map.iter() {
        // At the root, these name the type that both objects were converted to, so their old value is
        // unknown.
        let hidden = at.is_root() && (name == "kind" || name == "apiVersion");
        let before = || old.filter(|_| !hidden).and_then(|old| old.get(name));
        if let Some(field) = members.find(name)
            && let Some(node) = members.found()
        {
            required += usize::from(field.required);
            matched += check(node, value, before(), &at.field(name), sink)?;
        } else if let Some(additional) = node.additional() {
            matched += check(additional, value, before(), &at.key(name), sink)?;
        } else if closed {
            sink.fail(at, |site| site.not_allowed(name))?;
        }
    }
    if let Some((v, _)) = limits
        && required < v.required.len()
    {
        for name in &v.required {
            if !map.contains_key(name) {
                sink.fail(at, |site| site.required(name))?;
            }
        }
    }
    Ok(matched)
}
