//! Sets of constants, for `x in [constants]`.

use crate::val::{Owned, Val, find_key, key_order};
use scantling_value::same_text;
use std::sync::Arc;

/// A set of booleans, numbers and strings.
#[derive(Debug)]
pub(super) struct ConstantSet {
    /// The strings, sorted by length, then by content.
    texts: Box<[Arc<str>]>,
    /// A bit for every length of a string.
    lengths: u64,
    /// The integers in order, unless the set contains other numbers.
    ints: Option<Box<[i64]>>,
    /// All members but the strings, sorted by [`key_order`].
    scalars: Box<[Owned]>,
}

/// The bit of the length of a string. Long strings share a bit.
#[inline]
fn length_bit(text: &str) -> u64 {
    1 << text.len().min(63)
}

impl ConstantSet {
    /// Creates a set; `None` if a constant is neither a boolean, a number nor a string.
    pub(super) fn new(constants: &[Owned]) -> Option<ConstantSet> {
        let (mut texts, mut ints, mut scalars) = (Vec::new(), Some(Vec::new()), Vec::new());
        for constant in constants {
            match constant {
                Owned::Str(text) => {
                    texts.push(Arc::clone(text));
                    continue;
                }
                Owned::Int(i) => ints.iter_mut().for_each(|ints| ints.push(*i)),
                // `1u` and `1.0` equal `1`, so a search among the integers alone would miss them.
                Owned::Uint(_) | Owned::Double(_) => ints = None,
                Owned::Bool(_) => {}
                // cel-go builds sets of primitive types other than bytes, and searches all other lists at full cost.
                _ => return None,
            }
            scalars.push(constant.clone());
        }
        // By length first: most comparisons then end without touching the text.
        texts.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        scalars.sort_by(|a, b| key_order(a.key(), b.key()));
        if let Some(ints) = &mut ints {
            ints.sort_unstable();
        }
        Some(ConstantSet {
            lengths: texts.iter().fold(0, |lengths, text| lengths | length_bit(text)),
            texts: texts.into(),
            ints: ints.map(Vec::into_boxed_slice),
            scalars: scalars.into(),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.scalars.is_empty()
    }

    /// Returns whether a string is a member. The bit of its length rules out most strings.
    #[inline]
    pub(super) fn contains_text(&self, text: &str) -> bool {
        self.lengths & length_bit(text) != 0 && self.finds_text(text)
    }

    /// Small sets are searched linearly: the comparison of lengths rejects most members.
    fn finds_text(&self, text: &str) -> bool {
        const FEW: usize = 16;
        if self.texts.len() <= FEW {
            return self.texts.iter().any(|known| same_text(known, text));
        }
        let found = self.texts.binary_search_by(|t| {
            let longer = t.len().cmp(&text.len());
            longer.then_with(|| t.as_bytes().cmp(text.as_bytes()))
        });
        found.is_ok()
    }

    /// Returns whether a value is a member.
    #[inline]
    pub(super) fn contains(&self, value: Val<'_>) -> bool {
        match (value, &self.ints) {
            (Val::Str(text), _) => self.contains_text(text),
            // Sound only while all numbers of the set are integers; booleans never equal one.
            (Val::Int(i), Some(ints)) => ints.binary_search(&i).is_ok(),
            _ => find_key(&self.scalars, value),
        }
    }
}
