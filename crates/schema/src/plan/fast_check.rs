//! Validity checks that read only the type or the byte length of a value.

use super::{Types, ValueChecks};
use crate::structural::ValueValidation;
use scantling_value::Value;

/// A check that accepts valid values by their type or byte length alone. What it does not accept needs a full
/// check.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FastCheck {
    /// Accepts all values of these types.
    Types(Types),
    /// Accepts strings with a byte length in this range.
    Texts(u32, u32),
}

impl FastCheck {
    pub(super) fn new(types: Types, limits: Option<(&ValueValidation, &ValueChecks)>) -> Self {
        let accepted = match types {
            Types::INT_OR_STRING => Types::STRING,
            types @ (Types::STRING | Types::BOOLEAN | Types::INTEGER) => types,
            _ => Types::NONE,
        };
        match limits {
            None => FastCheck::Types(accepted),
            Some((limits, checks)) if accepted == Types::STRING && checks.is_about_length() => {
                let (min, max) = byte_range(limits.min_length, limits.max_length);
                FastCheck::Texts(min, max)
            }
            Some(_) => FastCheck::Types(Types::NONE),
        }
    }

    /// Returns whether a value is certainly valid.
    #[inline]
    pub(crate) fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (FastCheck::Types(types), value) => types.contains(Types::of_value(value)),
            (FastCheck::Texts(min, max), Value::String(text)) => {
                u32::try_from(text.len()).is_ok_and(|len| min <= len && len <= max)
            }
            (FastCheck::Texts(..), _) => false,
        }
    }
}

/// The byte lengths that guarantee the character limits: a character takes one to four bytes.
fn byte_range(min: Option<i64>, max: Option<i64>) -> (u32, u32) {
    let least = match min.unwrap_or(0) {
        // `min` - 1 characters take at most 4 × (`min` - 1) bytes, so one byte more proves `min` characters.
        ..=0 => 0,
        min => min.saturating_mul(4) - 3,
    };
    let most = max.unwrap_or(i64::MAX).min(i64::from(u32::MAX));
    match (u32::try_from(least), u32::try_from(most)) {
        (Ok(least), Ok(most)) => (least, most),
        // No string has such a length, so the fast check never accepts.
        _ => (u32::MAX, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::byte_range;

    #[test]
    fn byte_length_bounds_the_character_count() {
        assert_eq!(byte_range(None, None), (0, u32::MAX));
        assert_eq!(byte_range(Some(1), Some(63)), (1, 63));
        // Five bytes are at least two characters; four may be one.
        assert_eq!(byte_range(Some(2), None), (5, u32::MAX));
        assert_eq!(byte_range(None, Some(-1)), (u32::MAX, 0));
        assert_eq!(byte_range(Some(i64::MAX), None), (u32::MAX, 0));
    }
}
