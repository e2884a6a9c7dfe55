//! Opaque types whose values are parsed from text and ordered: quantities, versions.

use crate::overload::{Costs, Estimate};
use crate::run::Actual;
use crate::val::{Arena, EvalError, Opaque, Res, Val};
use std::cmp::Ordering;

/// An opaque value with an order among values of its type.
pub(super) trait Ordered: Opaque {
    /// The sort key.
    type Key: Ord;

    fn key(&self) -> &Self::Key;
}

/// The costs of parsing: a pass over the text.
pub(super) const PARSING: Costs = (Estimate::text_pass(0), Actual::named_text_pass(0));

/// The sort key of a value, or `no such overload`.
pub(super) fn key<T: Ordered>(value: Val<'_>) -> Result<&T::Key, EvalError> {
    Ok(value.opaque::<T>()?.key())
}

pub(super) fn is_greater<'a, T: Ordered>(_: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(key::<T>(a)? > key::<T>(b)?))
}

pub(super) fn is_less<'a, T: Ordered>(_: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(key::<T>(a)? < key::<T>(b)?))
}

pub(super) fn compare_to<'a, T: Ordered>(_: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    Ok(sign_of(key::<T>(a)?.cmp(key::<T>(b)?)))
}

/// `-1`, `0` or `1`
pub(super) fn sign_of(order: Ordering) -> Val<'static> {
    Val::Int(match order {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    })
}
