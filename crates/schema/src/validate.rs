//! Validates values against a schema.
//!
//! One walk knows all keywords. Its [`Sink`] decides whether a failure ends the walk or becomes an error with
//! kube-apiserver's message. It also counts matches: for `anyOf` and `oneOf`, kube-apiserver reports the errors of the
//! branch with the most matches.
//!
//! [`validate`] walks until the first failure, without paths of errors and old values. Only if there is one, it walks
//! again and collects the errors.

mod error_site;
mod junctor;
mod list;
pub(crate) mod number;
mod object;
mod sink;
mod string;

pub use sink::Ratchet;

use crate::plan::{Features, PlanNode, Types, ValueChecks};
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
    let mut first = FirstFailure { prefix, unchanged };
    if check(node, value, None, &Path::ROOT, &mut first).is_ok() {
        return ErrorList::new();
    }
    let mut sink = CollectErrors::new(prefix, ratchet.map(|(ratchet, _)| ratchet));
    // Collecting never stops early.
    let _ = check(node, value, ratchet.map(|(_, old)| old), &Path::ROOT, &mut sink);
    sink.into_errors()
}

/// Validates a value that was `old` before. Returns the number of matches.
// Inlined: most values are accepted here, and a call would take longer.
#[inline(always)]
fn check<S: Sink>(
    node: &PlanNode,
    value: &Value,
    old: Option<&Value>,
    at: &Path<'_>,
    sink: &mut S,
) -> Result<usize, Stop> {
    // Collecting walks go on: they count matches even where nothing can fail.
    if !S::COLLECTS && (!node.has(Features::LIMITS) || node.fast_check().accepts(value)) {
        return Ok(0);
    }
    check_limited(node, value, old, at, sink)
}

/// Validates a value that may be invalid.
#[inline(never)]
fn check_limited<S: Sink>(
    node: &PlanNode,
    value: &Value,
    old: Option<&Value>,
    at: &Path<'_>,
    sink: &mut S,
) -> Result<usize, Stop> {
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
    let checks = node.checks();
    // Where matches are not counted, a type without junctors is a shortcut to its own checks.
    if !S::COLLECTS {
        match (node.types(), value) {
            (Types::STRING | Types::INT_OR_STRING, Value::String(text))
                if checks.is_none_or(ValueChecks::pass_texts) =>
            {
                string::check(node, text, at, sink)?;
                check_enum(node, value, at, sink)?;
                return Ok(0);
            }
            (Types::OBJECT, Value::Object(map)) if checks.is_none_or(ValueChecks::are_about_parts) => {
                deadline::tick_for(map.len());
                return object::check(node, map, None, at, sink);
            }
            (Types::ARRAY, Value::Array(list)) if checks.is_none_or(ValueChecks::are_about_parts) => {
                deadline::tick_for(list.len());
                return list::check(node, list, None, at, sink);
            }
            _ => {}
        }
    }
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
    let has_format = checks.is_some_and(|checks| checks.format.is_some());
    let has_type = !node.types().is_empty() || !type_names(node).is_empty();
    if has_type || has_format {
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
        && checks
            .listed
            .as_ref()
            .is_some_and(|listed| !listed.contains(value))
    {
        sink.fail(at, |site| site.not_in_enum(value, &limits.enumeration))?;
    }
    Ok(())
}

/// The limits on the number of elements or members.
type SizeLimits = (Option<i64>, Option<i64>);

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
