//! What can be told of a value at a glance.

use super::{Types, ValueChecks};
use crate::structural::ValueValidation;
use scantling_value::Value;

/// Which values fit, as far as that can be told at a glance.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FastCheck {
    /// All values of these types.
    Types(Types),
    /// Texts with so many bytes, at least and at most.
    Texts(u32, u32),
}

impl FastCheck {
    pub(super) fn new(types: Types, limits: Option<(&ValueValidation, &ValueChecks)>) -> Self {
        let fitting = match types {
            Types::INT_OR_STRING => Types::STRING,
            types @ (Types::STRING | Types::BOOLEAN | Types::INTEGER) => types,
            _ => Types::NONE,
        };
        match limits {
            None => FastCheck::Types(fitting),
            Some((limits, checks)) if fitting == Types::STRING && checks.is_about_length(limits) => {
                let (min, max) = bytes(limits.min_length, limits.max_length);
                FastCheck::Texts(min, max)
            }
            Some(_) => FastCheck::Types(Types::NONE),
        }
    }

    /// Whether a value fits for sure.
    #[inline]
    pub(crate) fn fits(self, value: &Value) -> bool {
        match (self, value) {
            (FastCheck::Types(types), value) => types.contains(Types::of_value(value)),
            (FastCheck::Texts(min, max), Value::String(text)) => {
                u32::try_from(text.len()).is_ok_and(|len| min <= len && len <= max)
            }
            (FastCheck::Texts(..), _) => false,
        }
    }
}

/// How a value is looked at that does not fit at a glance.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CheckKind {
    /// A text: at its length, its pattern, its format and its enumeration.
    Text,
    /// An object: at the number of its members, and at each of them.
    Object,
    /// A list: at the number of its elements, and at each of them.
    List,
    /// At all that can be said of a value.
    Full,
}

impl CheckKind {
    pub(super) fn new(types: Types, limits: Option<(&ValueValidation, &ValueChecks)>) -> Self {
        let is_about_size = limits.is_none_or(|(limits, checks)| {
            !checks.junctors && checks.format.is_none() && limits.enumeration.is_empty()
        });
        match types {
            Types::STRING | Types::INT_OR_STRING if limits.is_some_and(|(_, checks)| checks.pass_texts()) => {
                CheckKind::Text
            }
            Types::OBJECT if is_about_size => CheckKind::Object,
            Types::ARRAY if is_about_size => CheckKind::List,
            _ => CheckKind::Full,
        }
    }
}

/// The fewest and the most bytes of texts that surely have so many characters: each takes one to four.
fn bytes(min: Option<i64>, max: Option<i64>) -> (u32, u32) {
    let least = match min.unwrap_or(0) {
        ..=0 => 0,
        min => min.saturating_mul(4) - 3,
    };
    let most = max.unwrap_or(i64::MAX).min(i64::from(u32::MAX));
    match (u32::try_from(least), u32::try_from(most)) {
        (Ok(least), Ok(most)) => (least, most),
        // No text has so many bytes, or has so few.
        _ => (u32::MAX, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn so_many_bytes_are_surely_so_many_characters() {
        assert_eq!(bytes(None, None), (0, u32::MAX));
        assert_eq!(bytes(Some(1), Some(63)), (1, 63));
        // Five bytes may be two characters, four may be one.
        assert_eq!(bytes(Some(2), None), (5, u32::MAX));
        assert_eq!(bytes(None, Some(-1)), (u32::MAX, 0));
        assert_eq!(bytes(Some(i64::MAX), None), (u32::MAX, 0));
    }
}
