//! Strings: `maxLength`, `minLength`, `pattern` and `format`.

use super::sink::{Sink, Stop};
use crate::plan::PlanNode;
use scantling_value::{Path, deadline};

/// Checks a string. Returns the number of matches.
pub(super) fn check<S: Sink>(
    node: &PlanNode,
    text: &str,
    at: &Path<'_>,
    sink: &mut S,
) -> Result<usize, Stop> {
    let (Some(limits), Some(checks)) = (node.limits(), node.checks()) else {
        return Ok(0);
    };
    if checks.strings {
        deadline::tick_over(text);
        // kube-apiserver reports only the first of these.
        if let Some(max) = limits.max_length.filter(|max| is_longer(text, *max)) {
            sink.fail(at, |site| site.too_long(max))?;
        } else if let Some(min) = limits.min_length.filter(|min| is_shorter(text, *min)) {
            sink.fail(at, |site| site.too_short(text, min))?;
        } else if let Some(pattern) = checks.pattern.as_ref().filter(|p| !p.is_match(text)) {
            sink.fail(at, |site| site.no_match(text, pattern))?;
        }
    }
    let Some(format) = checks.format.as_ref().filter(|f| f.is_for_strings()) else {
        return Ok(0);
    };
    if !format.matches(text) {
        // go-openapi reports a format like a type.
        sink.fail(at, |site| site.wrong_type(format.name(), text))?;
    }
    Ok(1)
}

fn characters(text: &str) -> i64 {
    i64::try_from(text.chars().count()).unwrap_or(i64::MAX)
}

fn bytes(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

/// Returns whether a string has more than `max` characters. They are counted only if the byte length does not
/// decide.
fn is_longer(text: &str, max: i64) -> bool {
    bytes(text) > max && characters(text) > max
}

/// Returns whether a string has fewer than `min` characters.
fn is_shorter(text: &str, min: i64) -> bool {
    bytes(text) < min || (bytes(text) < min.saturating_mul(4) && characters(text) < min)
}
