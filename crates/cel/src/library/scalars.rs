//! Hash sets of scalars, which avoid the quadratic comparison of lists.

use crate::val::{Arena, List, Val};
use std::collections::HashSet;

/// A scalar of a type in which equality is identity. Numbers compare within one type only.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ScalarKey<'a> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Str(&'a str),
}

impl<'a> ScalarKey<'a> {
    fn from_val(value: Val<'a>) -> Option<Self> {
        match value {
            Val::Bool(b) => Some(Self::Bool(b)),
            Val::Int(n) => Some(Self::Int(n)),
            Val::Uint(n) => Some(Self::Uint(n)),
            Val::Str(s) => Some(Self::Str(s)),
            _ => None,
        }
    }

    fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// A set of scalars of one type. It is only used for membership tests, so the hash order is not observable.
pub(super) struct ScalarSet<'a> {
    members: HashSet<ScalarKey<'a>>,
    sample: ScalarKey<'a>,
}

/// For shorter lists, building a set costs more than a linear search.
const WORTHWHILE: usize = 16;

impl<'a> ScalarSet<'a> {
    /// Builds a set from a list, if it is long and its elements are scalars of one type.
    pub(super) fn of_list(arena: &'a Arena, list: List<'a>) -> Option<Self> {
        if list.len() < WORTHWHILE {
            return None;
        }
        // Doubles are no keys: NaN is not equal to itself, and 0.0 equals -0.0.
        let sample = ScalarKey::from_val(list.get(arena, 0)?.ok()?)?;
        let members = list
            .iter(arena)
            // Any element of another type ends the attempt, because `1 == 1u` would need a comparison across types.
            .map(|item| ScalarKey::from_val(item.ok()?).filter(|s| s.is_like(sample)))
            .collect::<Option<_>>()?;
        Some(Self { members, sample })
    }

    /// Returns whether a value is in the set; `None` if it has another type, because it may still be equal to
    /// a member.
    pub(super) fn contains(&self, value: Val<'a>) -> Option<bool> {
        let scalar = ScalarKey::from_val(value).filter(|s| s.is_like(self.sample))?;
        Some(self.members.contains(&scalar))
    }

    /// Removes a value and returns whether it was present.
    pub(super) fn take(&mut self, value: Val<'a>) -> bool {
        ScalarKey::from_val(value).is_some_and(|scalar| self.members.remove(&scalar))
    }
}
