//! Numbers, ports and percentages.

use super::{Report, names};
use crate::Cursor;
use scantling_value::{ErrorList, Value};

/// The reason for refusing a negative number.
pub(crate) const NEGATIVE: &str = "must be greater than or equal to 0";

/// The reason for refusing a number below 1.
pub(crate) const NOT_POSITIVE: &str = "must be greater than zero";

/// The number is at least 0; absent counts as 0.
pub(crate) fn non_negative(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if at.int() < 0 {
        errors.invalid(at, NEGATIVE);
    }
}

/// The number is at least 1; absent counts as 0.
pub(crate) fn positive(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if at.int() <= 0 {
        errors.invalid_value(at, at.int(), NOT_POSITIVE);
    }
}

/// The number is within bounds; absent counts as 0.
pub(crate) fn between(at: &Cursor<'_, '_>, low: i64, high: i64, errors: &mut ErrorList) {
    if !(low..=high).contains(&at.int()) {
        errors.invalid_value(at, at.int(), range(low, high));
    }
}

/// The text that names inclusive bounds.
pub(crate) fn range(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

/// A port number, not 0.
pub(crate) fn port(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    between(at, 1, 65535, errors);
}

/// A port number or the name of a port.
pub(crate) fn port_or_name(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    match at.value() {
        Some(Value::String(name)) => errors.invalid_for(at, names::port_name(name)),
        _ => port(at, errors),
    }
}

/// A user or group ID.
pub(crate) fn id(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    between(at, 0, i64::from(i32::MAX), errors);
}

/// A non-negative number or a percentage.
pub(crate) fn non_negative_or_percent(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    match at.value() {
        Some(Value::String(text)) => errors.invalid_for(at, names::percent(text)),
        _ => non_negative(at, errors),
    }
}

/// The percentage that a string names, if it is one.
pub(crate) fn percentage(value: Option<&Value>) -> Option<i64> {
    let text = value?.as_str()?;
    let number = text.strip_suffix('%')?;
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    // A number that does not fit is certainly above 100 %.
    is_number.then(|| number.parse().unwrap_or(i64::MAX))
}

/// A percentage is at most 100 %.
pub(crate) fn at_most_100_percent(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    if percentage(at.value()).is_some_and(|percent| percent > 100) {
        errors.invalid(at, "must not be greater than 100%");
    }
}

/// The lifetime of a token in seconds, where it is set.
pub(crate) fn token_seconds(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    let Some(seconds) = at.as_int() else { return };
    if seconds < 600 {
        errors.invalid(at, "may not specify a duration less than 10 minutes");
    }
    if seconds > 1 << 32 {
        errors.invalid(at, "may not specify a duration larger than 2^32 seconds");
    }
}
