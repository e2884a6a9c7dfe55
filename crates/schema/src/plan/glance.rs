//! What can be told of a value at a glance.

use super::{Checks, Types};
use crate::structural::ValueValidation;
use scantling_value::Value;

/// Which values fit, as far as that can be told at a glance: by their type or, of texts, by how many bytes they have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glance {
    /// The types of which every value fits.
    types: Types,
    /// The fewest and the most bytes of texts that fit.
    bytes: (u32, u32),
}

/// No text has so many bytes.
const NO_TEXT: (u32, u32) = (u32::MAX, 0);

impl Glance {
    pub(super) fn of(types: Types, limits: Option<(&ValueValidation, &Checks)>) -> Self {
        let fitting = match types {
            Types::INT_OR_STRING => Types::STRING,
            types @ (Types::STRING | Types::BOOLEAN | Types::INTEGER) => types,
            _ => Types::NONE,
        };
        match limits {
            None => Glance {
                types: fitting,
                bytes: NO_TEXT,
            },
            Some((limits, checks)) if fitting == Types::STRING && checks.is_about_length(limits) => Glance {
                types: Types::NONE,
                bytes: bytes(limits.min_length, limits.max_length),
            },
            Some(_) => Glance {
                types: Types::NONE,
                bytes: NO_TEXT,
            },
        }
    }

    /// Whether a value fits for sure.
    #[inline]
    pub(crate) fn fits(self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.types.contains(Types::STRING) || self.has_fitting_length(text),
            Value::Bool(_) => self.types.contains(Types::BOOLEAN),
            Value::Int(_) => self.types.contains(Types::INTEGER),
            Value::Null | Value::Float(_) | Value::Array(_) | Value::Object(_) => false,
        }
    }

    #[inline]
    fn has_fitting_length(self, text: &str) -> bool {
        let (min, max) = self.bytes;
        u32::try_from(text.len()).is_ok_and(|len| min <= len && len <= max)
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
        _ => NO_TEXT,
    }
}

#[cfg(test)]
mod tests {
    use super::{NO_TEXT, bytes};

    #[test]
    fn so_many_bytes_are_surely_so_many_characters() {
        assert_eq!(bytes(None, None), (0, u32::MAX));
        assert_eq!(bytes(Some(1), Some(63)), (1, 63));
        // Five bytes may be two characters, four may be one.
        assert_eq!(bytes(Some(2), None), (5, u32::MAX));
        assert_eq!(bytes(None, Some(-1)), NO_TEXT);
        assert_eq!(bytes(Some(i64::MAX), None), NO_TEXT);
    }
}
