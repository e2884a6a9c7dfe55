//! What can be told of a value at a glance.

use super::{Checks, Types};
use crate::structural::ValueValidation;
use scantling_value::Value;

/// Which values fit, as far as that can be told at a glance: by their type and, of texts, by how many bytes they have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Glance {
    types: Types,
    /// The fewest and the most bytes of such texts.
    bytes: (u32, u32),
}

impl Glance {
    const NOTHING: Glance = Glance {
        types: Types::NONE,
        bytes: (0, 0),
    };

    pub(super) fn of(types: Types, limits: Option<(&ValueValidation, &Checks)>) -> Self {
        let types = match types {
            Types::INT_OR_STRING => Types::STRING,
            types @ (Types::STRING | Types::BOOLEAN | Types::INTEGER) => types,
            _ => return Glance::NOTHING,
        };
        match limits {
            None => Glance {
                types,
                bytes: (0, u32::MAX),
            },
            Some((limits, checks)) if types == Types::STRING && checks.is_about_length(limits) => Glance {
                types,
                bytes: bytes(limits.min_length, limits.max_length),
            },
            Some(_) => Glance::NOTHING,
        }
    }

    /// Whether a value fits for sure.
    #[inline]
    pub(crate) fn fits(self, value: &Value) -> bool {
        match value {
            Value::String(text) => {
                let (min, max) = self.bytes;
                self.types.contains(Types::STRING)
                    && u32::try_from(text.len()).is_ok_and(|len| min <= len && len <= max)
            }
            Value::Bool(_) => self.types.contains(Types::BOOLEAN),
            Value::Int(_) => self.types.contains(Types::INTEGER),
            Value::Null | Value::Float(_) | Value::Array(_) | Value::Object(_) => false,
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
        // No text is so long, or none is so short.
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
        assert_eq!(bytes(Some(-1), Some(-1)), (u32::MAX, 0));
        assert_eq!(bytes(Some(i64::MAX), None), (u32::MAX, 0));
    }
}
