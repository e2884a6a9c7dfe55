//! The order of values.

use super::{EvalError, Val};
use std::cmp::Ordering;

/// The order of `<`, `<=`, `>` and `>=`: within a type, and between numbers of all types.
pub fn compare(a: Val<'_>, b: Val<'_>) -> Result<Ordering, EvalError> {
    let order = match (a, b) {
        // Operands of one type come first, because almost all comparisons have them.
        (Val::Int(a), Val::Int(b)) => a.cmp(&b),
        (Val::Str(a), Val::Str(b)) => a.cmp(b),
        (Val::Bool(a), Val::Bool(b)) => a.cmp(&b),
        (Val::Uint(a), Val::Uint(b)) => a.cmp(&b),
        (Val::Bytes(a), Val::Bytes(b)) => a.cmp(b),
        (Val::Duration(a), Val::Duration(b)) => a.cmp(&b),
        (Val::Timestamp(a), Val::Timestamp(b)) => a.cmp(&b),
        (Val::Double(d), Val::Int(_) | Val::Uint(_) | Val::Double(_))
        | (Val::Int(_) | Val::Uint(_), Val::Double(d))
            if d.is_nan() =>
        {
            return Err(EvalError::message("NaN values cannot be ordered"));
        }
        _ => match number_order(a, b) {
            Some(order) => order,
            None if matches!((a, b), (Val::Double(_), Val::Double(_))) => {
                return Err(EvalError::message("NaN values cannot be ordered"));
            }
            None => return Err(EvalError::NoSuchOverload),
        },
    };
    Ok(order)
}

/// Compares two numbers; `None` if either is not a number or is NaN.
pub(super) fn number_order(a: Val<'_>, b: Val<'_>) -> Option<Ordering> {
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => Some(a.cmp(&b)),
        (Val::Uint(a), Val::Uint(b)) => Some(a.cmp(&b)),
        (Val::Double(a), Val::Double(b)) => a.partial_cmp(&b),
        // Both types fit 128 bits, so no bound needs a special case.
        (Val::Int(a), Val::Uint(b)) => Some(i128::from(a).cmp(&i128::from(b))),
        (Val::Uint(a), Val::Int(b)) => Some(i128::from(a).cmp(&i128::from(b))),
        (Val::Int(a), Val::Double(b)) => int_double(a, b),
        (Val::Double(a), Val::Int(b)) => int_double(b, a).map(Ordering::reverse),
        (Val::Uint(a), Val::Double(b)) => uint_double(a, b),
        (Val::Double(a), Val::Uint(b)) => uint_double(b, a).map(Ordering::reverse),
        _ => None,
    }
}

// Integers beyond 53 bits are rounded, as on kube-apiserver.
#[expect(
    clippy::cast_precision_loss,
    reason = "the rounding is part of the comparison"
)]
fn int_double(a: i64, b: f64) -> Option<Ordering> {
    (a as f64).partial_cmp(&b)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the rounding is part of the comparison"
)]
fn uint_double(a: u64, b: f64) -> Option<Ordering> {
    (a as f64).partial_cmp(&b)
}

/// A total order. Values of different types are never equal; all lists are equal, and so are all maps.
pub(super) fn exact_order(a: Val<'_>, b: Val<'_>) -> Ordering {
    match (a, b) {
        // Total also for NaN, because sorting and bisection require a consistent order.
        (Val::Double(a), Val::Double(b)) => a.total_cmp(&b),
        (Val::Type(a), Val::Type(b)) => a.cmp(b),
        _ if rank(a) == rank(b) => compare(a, b).unwrap_or(Ordering::Equal),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn rank(v: Val<'_>) -> u8 {
    match v {
        Val::Null => 0,
        Val::Bool(_) => 1,
        Val::Int(_) => 2,
        Val::Uint(_) => 3,
        Val::Double(_) => 4,
        Val::Str(_) => 5,
        Val::Bytes(_) => 6,
        Val::Duration(_) => 7,
        Val::Timestamp(_) => 8,
        Val::Type(_) => 9,
        Val::Optional(_) => 10,
        Val::Opaque(_) => 11,
        Val::JsonList(..) | Val::List(_) | Val::OwnedList(_) => 12,
        Val::JsonMap(..) | Val::Map(_) | Val::OwnedMap(_) => 13,
    }
}
