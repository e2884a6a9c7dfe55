//! `enum`: which values are listed.

use crate::structural::Json;
use scantling_value::{Value, go, same_text};
use std::cmp::Ordering;

/// The strings of a list: short ones first, those of one length in order.
#[derive(Debug, Default)]
pub(crate) struct Texts(Box<[Box<str>]>);

impl Texts {
    pub(crate) fn of(listed: &[Json]) -> Self {
        let mut texts: Vec<Box<str>> = listed
            .iter()
            .filter_map(|json| Some(json.0.as_str()?.into()))
            .collect();
        texts.sort_by(|a, b| Self::order(a, b));
        Texts(texts.into())
    }

    /// Whether a text is listed. Few are asked one by one, which most of them answer by their length.
    #[inline]
    pub(crate) fn contains(&self, text: &str) -> bool {
        const FEW: usize = 16;
        if self.0.len() <= FEW {
            return self.0.iter().any(|listed| same_text(listed, text));
        }
        self.0
            .binary_search_by(|listed| Self::order(listed, text))
            .is_ok()
    }

    fn order(a: &str, b: &str) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

/// Whether a value is listed. A server compares after converting the value to the type of the listed one where its
/// language converts: floats to integers by cutting off, integers to strings by code point. `null` is never listed.
pub(crate) fn contains(listed: &[Json], texts: &Texts, value: &Value) -> bool {
    match value {
        Value::String(s) => texts.contains(s),
        _ => listed.iter().any(|json| matches(&json.0, value)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "the conversions of a server")]
fn matches(listed: &Value, value: &Value) -> bool {
    match (listed, value) {
        (Value::Null, _) => false,
        (Value::Int(a), Value::Float(b)) => *a == go::cut(*b),
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
