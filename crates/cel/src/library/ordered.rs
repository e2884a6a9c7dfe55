//! What types have in common whose values are read from text and have an order.

use crate::overload::{Estimate, Overload};
use crate::run::Actual;
use crate::val::{Arena, EvalError, Opaque, Res, Val};
use std::cmp::Ordering;

/// A value that only functions look into, and that is before or after others of its type.
pub(super) trait Ordered: Opaque {
    /// What decides the order.
    type Key: Ord;

    fn key(&self) -> &Self::Key;
}

/// Reading a text costs a pass over it.
pub(super) const fn reading(row: Overload) -> Overload {
    row.costing(Estimate::text_pass(0), Actual::named_text_pass(0))
}

/// What decides the order of a value, or the error of a call that wants one.
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
