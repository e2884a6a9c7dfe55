//! Numbers of pods that may be down or surplus, as a count or a percentage.

use crate::Cursor;
use crate::checks::numbers;
use scantling_value::{ErrorList, Value};

/// Checks a count or a percentage; a percentage may not exceed 100 %.
pub(crate) fn check_count(at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    numbers::non_negative_or_percent(at, errors);
    numbers::at_most_100_percent(at, errors);
}

/// Returns whether a count or percentage is 0, absent or malformed.
pub(crate) fn is_zero(value: Option<&Value>) -> bool {
    number(value) == 0
}

/// The number before the percent sign, or the count. A text that is a number counts as one.
fn number(value: Option<&Value>) -> i64 {
    match (numbers::percentage(value), value) {
        (Some(percent), _) => percent,
        (None, Some(Value::Int(count))) => *count,
        (None, Some(Value::String(text))) => text.parse().unwrap_or(0),
        (None, _) => 0,
    }
}
