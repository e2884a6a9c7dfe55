//! `enum`: which values are listed.

use crate::structural::Json;
use scantling_value::{Value, same_text};

/// Whether a value is listed. A server compares after converting the value to the type of the listed one where its
/// language converts: floats to integers by cutting off, integers to strings by code point. `null` is never listed.
pub(crate) fn contains(listed: &[Json], sorted: &[u32], value: &Value) -> bool {
    match value {
        Value::String(s) if !sorted.is_empty() => sorted
            .binary_search_by(|&i| string_at(listed, i).cmp(s.as_str()))
            .is_ok(),
        Value::String(s) => listed
            .iter()
            .any(|json| json.0.as_str().is_some_and(|listed| same_text(listed, s))),
        _ => listed.iter().any(|json| matches(&json.0, value)),
    }
}

/// The positions of the listed strings in their order, where comparing with each of them would take long.
pub(crate) fn sorted(listed: &[Json]) -> Box<[u32]> {
    const MANY: usize = 8;
    let strings = listed
        .iter()
        .zip(0u32..)
        .filter(|(json, _)| json.0.as_str().is_some());
    let mut positions: Vec<u32> = strings.map(|(_, i)| i).collect();
    if positions.len() < MANY {
        return Box::default();
    }
    positions.sort_by(|&a, &b| string_at(listed, a).cmp(string_at(listed, b)));
    positions.into()
}

fn string_at(listed: &[Json], i: u32) -> &str {
    usize::try_from(i)
        .ok()
        .and_then(|i| listed.get(i))
        .and_then(|json| json.0.as_str())
        .unwrap_or_default()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "the conversions of a server"
)]
fn matches(listed: &Value, value: &Value) -> bool {
    match (listed, value) {
        (Value::Null, _) => false,
        (Value::Int(a), Value::Float(b)) => *a == *b as i64,
        (Value::Float(a), Value::Int(b)) => *a == *b as f64,
        (Value::String(a), Value::Int(b)) => {
            let c = u32::try_from(*b)
                .ok()
                .and_then(char::from_u32)
                .unwrap_or(char::REPLACEMENT_CHARACTER);
            let mut chars = a.chars();
            chars.next() == Some(c) && chars.next().is_none()
        }
        (a, b) => a == b,
    }
}
