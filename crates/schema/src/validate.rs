//! Validates values against a schema.
//!
//! Two paths check a value; the checks of a type are side by side in one file for both (`string`, `list`, `object`):
//!
//! - The fast path ([`is_valid`]) returns whether a value is valid. It knows the common keywords, stops at the first
//!   failure and builds no messages. Junctors, numbers and rare keywords are left to the full walk.
//! - The full walk (`check`) knows all keywords. Its [`Sink`] decides whether a failure ends the walk or becomes an error
//!   with kube-apiserver's message. It also counts matches: for `anyOf` and `oneOf`, kube-apiserver reports the errors of
//!   the branch with the most matches.
//!
//! [`validate`] takes the fast path first. Debug builds compare both.

mod error_site;
mod junctor;
mod list;
pub(crate) mod number;
mod object;
mod sink;
mod string;

pub use sink::Ratchet;

use crate::correlate::UnchangedBelow;
use crate::plan::{CheckKind, Features, PlanNode, Types};
use scantling_value::{ErrorList, Path, Value, deadline};
use sink::{CollectErrors, FirstFailure, Sink, Stop};

/// Returns the errors of a value whose path is `prefix`. Paths inside messages start at the value.
///
/// With a ratchet and the old value, errors inside unchanged values are dropped.
pub fn validate(
    node: &PlanNode,
    value: &Value,
    prefix: &Path<'_>,
    ratchet: Option<(&Ratchet<'_>, &Value)>,
) -> ErrorList {
    let unchanged = ratchet.and_then(|(ratchet, _)| ratchet.unchanged_elements());
    let valid = match unchanged {
        Some(unchanged) => is_valid_except(node, value, &unchanged.at_root()),
        None => is_valid(node, value),
    };
    if valid {
        debug_assert!(
            match unchanged {
                Some(_) => collect(node, value, prefix, ratchet).is_empty(),
                None => passes_full_check(node, value),
            },
            "the fast path accepts what the full walk refuses: {}",
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

/// Returns whether a value is valid.
pub fn is_valid(node: &PlanNode, value: &Value) -> bool {
    !needs_check(node, value) || is_valid_kind(node, value)
}

/// Returns whether a value is not accepted by its type or byte length alone.
#[inline]
fn needs_check(node: &PlanNode, value: &Value) -> bool {
    node.has(Features::LIMITS) && !node.fast_check().accepts(value)
}

/// Like [`is_valid`], but accepts unchanged elements of lists: ratcheting tolerates their errors.
fn is_valid_except(node: &PlanNode, value: &Value, unchanged: &UnchangedBelow<'_>) -> bool {
    match (node.check_kind(), value) {
        (CheckKind::Object, Value::Object(map)) => {
            object::is_valid(node, map, |name, node, value| match unchanged.member(name) {
                Some(unchanged) => is_valid_except(node, value, &unchanged),
                None => is_valid_kind(node, value),
            })
        }
        (CheckKind::List, Value::Array(list)) => {
            let mut unchanged = unchanged.elements().unwrap_or_default().iter().copied();
            list::is_valid(node, list, |items, item| {
                unchanged.next() == Some(true) || is_valid(items, item)
            })
        }
        _ => is_valid(node, value),
    }
}

/// Checks a value with the checks of its kind.
// Each kind is a call of its own: most values are strings, which must not pay for the stack frames of the others.
fn is_valid_kind(node: &PlanNode, value: &Value) -> bool {
    match (node.check_kind(), value) {
        (CheckKind::Text, Value::String(text)) => string::is_valid(node, text),
        (CheckKind::Object, Value::Object(map)) => object::is_valid_with_members(node, map),
        (CheckKind::List, Value::Array(list)) => list::is_valid_with_elements(node, list),
        _ => passes_full_check(node, value),
    }
}

#[inline(never)]
fn passes_full_check(node: &PlanNode, value: &Value) -> bool {
    check(node, value, None, &Path::ROOT, &mut FirstFailure).is_ok()
}

/// Validates a value that was `old` before. Returns the number of matches.
fn check<S: Sink>(
    node: &PlanNode,
    value: &Value,
    old: Option<&Value>,
    at: &Path<'_>,
    sink: &mut S,
) -> Result<usize, Stop> {
    // Collecting walks go on: they count matches even where nothing can fail.
    if !S::COLLECTS && !node.has(Features::LIMITS) {
        return Ok(0);
    }
    let before = sink.failures();
    let matched = check_value(node, value, old, at, sink)?;
    // Compared only after a failure: most values are valid, and comparing them costs as much as checking them.
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
    let mut matched = 0;
    if value.is_null() {
        let wanted = type_names(node);
        if matches!(wanted, "" | "null") || node.schema().nullable {
            matched += 1;
        } else {
            sink.fail(at, |site| site.wrong_type(wanted, "null"))?;
        }
        check_enum(node, value, at, sink)?;
        return Ok(matched);
    }

    // The order of the validators of go-openapi, which is the order of the errors. Each validator that applies counts as one
    // match, whatever it finds: the sums only serve to compare the branches of `anyOf` and `oneOf`.
    let checks = node.checks();
    let has_format = checks.is_some_and(|checks| checks.format.is_some());
    if !type_names(node).is_empty() || has_format {
        matched += 1 + usize::from(check_type(node, value, at, sink)?);
    }
    // The validator of junctors counts once more in its own result; those of numbers and lists below do so, too.
    matched += 2;
    if let Some(checks) = checks.filter(|checks| checks.junctors) {
        matched += junctor::check(checks, value, at, sink)?;
    }
    match value {
        Value::String(text) => {
            matched += 1 + string::check(node, text, at, sink)?;
        }
        Value::Int(_) | Value::Float(_) => {
            matched += 2;
            number::check(node, value, at, sink)?;
        }
        Value::Array(list) => {
            matched += 2 + list::check(node, list, old, at, sink)?;
        }
        Value::Null | Value::Bool(_) | Value::Object(_) => {}
    }
    matched += 1;
    check_enum(node, value, at, sink)?;
    if let Value::Object(map) = value {
        matched += 1 + object::check(node, map, old, at, sink)?;
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

/// Checks the type. A format takes part in it: on anything but numbers it admits strings and lists.
fn check_type<S: Sink>(node: &PlanNode, value: &Value, at: &Path<'_>, sink: &mut S) -> Result<bool, Stop> {
    let types = node.types();
    let actual = Types::of_value(value);
    let fits = types.contains(actual)
        || (types.contains(Types::NUMBER) && matches!(value, Value::Int(_)))
        || (types.contains(Types::INTEGER) && matches!(value, Value::Float(f) if number::is_integral(*f)));
    if let Some(format) = node.checks().and_then(|c| c.format.as_ref()) {
        // The format that kube-apiserver's decoder assigns to the value.
        let actual_format = match value {
            Value::Int(_) => "int64",
            Value::Float(_) => "float64",
            _ => "",
        };
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

fn check_enum<S: Sink>(node: &PlanNode, value: &Value, at: &Path<'_>, sink: &mut S) -> Result<(), Stop> {
    if let (Some(limits), Some(checks)) = (node.limits(), node.checks())
        && !limits.enumeration.is_empty()
        && !checks.listed.contains(value)
    {
        sink.fail(at, |site| site.not_in_enum(value, &limits.enumeration))?;
    }
    Ok(())
}

/// The limits on the number of elements or members.
type SizeLimits = (Option<i64>, Option<i64>);

fn is_size_valid(size: usize, (min, max): SizeLimits) -> bool {
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    min.is_none_or(|min| size >= min) && max.is_none_or(|max| size <= max)
}

/// Checks the number of elements or members; `what` names them.
fn check_size<S: Sink>(
    size: usize,
    (min, max): SizeLimits,
    what: &str,
    at: &Path<'_>,
    sink: &mut S,
) -> Result<(), Stop> {
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    if let Some(min) = min.filter(|min| size < *min) {
        sink.fail(at, |site| site.too_few(size, min, what))?;
    }
    if let Some(max) = max.filter(|max| size > *max) {
        sink.fail(at, |site| site.too_many(size, max))?;
    }
    Ok(())
}
