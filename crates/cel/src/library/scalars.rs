//! Sets of scalars, so that lists are compared without every element meeting every other.

use crate::val::{Arena, List, Val};
use std::collections::HashSet;

/// A value of a type in which equality is identity: of numbers, those of one type alone.
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

/// A set of scalars of one type. Only asked for membership, so that the order of hashing shows nowhere.
pub(super) struct ScalarSet<'a> {
    members: HashSet<ScalarKey<'a>>,
    sample: ScalarKey<'a>,
}

/// Shorter lists are gone through faster than a set is made.
const WORTHWHILE: usize = 16;

impl<'a> ScalarSet<'a> {
    /// The elements of a list, if it is long and they are scalars of one type.
    pub(super) fn of_list(arena: &'a Arena, list: List<'a>) -> Option<Self> {
        if list.len() < WORTHWHILE {
            return None;
        }
        let sample = ScalarKey::from_val(list.get(arena, 0)?.ok()?)?;
        let members = list
            .iter(arena)
            .map(|item| ScalarKey::from_val(item.ok()?).filter(|s| s.is_like(sample)))
            .collect::<Option<_>>()?;
        Some(Self { members, sample })
    }

    /// Whether a value is in the set; `None` if it is of another type, and may be equal to a member even so.
    pub(super) fn contains(&self, value: Val<'a>) -> Option<bool> {
        let scalar = ScalarKey::from_val(value).filter(|s| s.is_like(self.sample))?;
        Some(self.members.contains(&scalar))
    }

    /// Takes a value out; whether it was there.
    pub(super) fn take(&mut self, value: Val<'a>) -> bool {
        ScalarKey::from_val(value).is_some_and(|scalar| self.members.remove(&scalar))
    }
}
