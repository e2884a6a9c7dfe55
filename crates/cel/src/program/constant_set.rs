//! Sets of constants, for `x in [constants]`.

use crate::val::{Owned, Val, find_key, key_order};
use scantling_value::TextSet;
use std::sync::Arc;

/// A set of booleans, numbers and strings.
#[derive(Debug)]
pub(super) struct ConstantSet {
    texts: TextSet<Arc<str>>,
    /// All members but the strings, sorted by [`key_order`].
    scalars: Box<[Owned]>,
}

impl ConstantSet {
    /// Creates a set; `None` if a constant is neither a boolean, a number nor a string.
    pub(super) fn new(constants: &[Owned]) -> Option<ConstantSet> {
        let (mut texts, mut scalars) = (Vec::new(), Vec::new());
        for constant in constants {
            match constant {
                Owned::Str(text) => texts.push(Arc::clone(text)),
                Owned::Bool(_) | Owned::Int(_) | Owned::Uint(_) | Owned::Double(_) => {
                    scalars.push(constant.clone());
                }
                // cel-go builds sets of primitive types other than bytes, and searches all other lists at full cost.
                _ => return None,
            }
        }
        scalars.sort_by(|a, b| key_order(a.key(), b.key()));
        Some(ConstantSet {
            texts: texts.into_iter().collect(),
            scalars: scalars.into(),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.scalars.is_empty()
    }

    /// Returns whether a value is a member.
    #[inline]
    pub(super) fn contains(&self, value: Val<'_>) -> bool {
        match value {
            Val::Str(text) => self.texts.contains(text),
            _ => find_key(&self.scalars, value),
        }
    }
}
