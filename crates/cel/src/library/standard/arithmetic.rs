//! `+`, `-`, `*`, `/`, `%` and negation.

use super::LIST;
use crate::estimate::text_cost;
use crate::overload::{Costs, Estimate, Library, overloads};
use crate::run::{Actual, size};
use crate::val::{self, Arena, Duration, EvalError, Res, Val};

/// Concatenation of strings or bytes.
const CONCAT: Costs = (Estimate::ConcatText, Actual::Formula(both_pass));
const CONCAT_LISTS: Costs = (Estimate::ConcatList, Actual::NOMINAL);

pub(super) static ARITHMETIC: Library = Library {
    name: "arithmetic",
    overloads: overloads! {
        "add_bytes": global "_+_"(Bytes, Bytes) -> Bytes => Binary(add), CONCAT;
        "add_double": global "_+_"(Double, Double) -> Double => Binary(add);
        "add_duration_duration": global "_+_"(Duration, Duration) -> Duration => Binary(add);
        "add_duration_timestamp": global "_+_"(Duration, Timestamp) -> Timestamp => Binary(add);
        "add_timestamp_duration": global "_+_"(Timestamp, Duration) -> Timestamp => Binary(add);
        "add_int64": global "_+_"(Int, Int) -> Int => Binary(add);
        "add_list": global "_+_"(LIST, LIST) -> LIST => Binary(add), CONCAT_LISTS;
        "add_string": global "_+_"(String, String) -> String => Binary(add), CONCAT;
        "add_uint64": global "_+_"(Uint, Uint) -> Uint => Binary(add);
        "divide_double": global "_/_"(Double, Double) -> Double => Binary(divide);
        "divide_int64": global "_/_"(Int, Int) -> Int => Binary(divide);
        "divide_uint64": global "_/_"(Uint, Uint) -> Uint => Binary(divide);
        "modulo_int64": global "_%_"(Int, Int) -> Int => Binary(modulo);
        "modulo_uint64": global "_%_"(Uint, Uint) -> Uint => Binary(modulo);
        "multiply_double": global "_*_"(Double, Double) -> Double => Binary(multiply);
        "multiply_int64": global "_*_"(Int, Int) -> Int => Binary(multiply);
        "multiply_uint64": global "_*_"(Uint, Uint) -> Uint => Binary(multiply);
        "negate_double": global "-_"(Double) -> Double => Unary(negate);
        "negate_int64": global "-_"(Int) -> Int => Unary(negate);
        "subtract_double": global "_-_"(Double, Double) -> Double => Binary(subtract);
        "subtract_duration_duration": global "_-_"(Duration, Duration) -> Duration => Binary(subtract);
        "subtract_int64": global "_-_"(Int, Int) -> Int => Binary(subtract);
        "subtract_timestamp_duration": global "_-_"(Timestamp, Duration) -> Timestamp => Binary(subtract);
        "subtract_timestamp_timestamp": global "_-_"(Timestamp, Timestamp) -> Duration => Binary(subtract);
        "subtract_uint64": global "_-_"(Uint, Uint) -> Uint => Binary(subtract);
    },
    types: &[],
};

/// The cost of a pass over both operands.
fn both_pass<'a>(args: &[Option<Val<'a>>], _: Option<Val<'a>>) -> u64 {
    let size = match args {
        [Some(Val::Str(a)), Some(Val::Str(b))] => val::text_size(a) + val::text_size(b),
        _ => args.iter().copied().map(size).fold(0, u64::saturating_add),
    };
    text_cost(size)
}

pub(crate) fn add<'a>(arena: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => a.checked_add(b).map(Val::Int).ok_or(EvalError::IntOverflow),
        (Val::Uint(a), Val::Uint(b)) => a.checked_add(b).map(Val::Uint).ok_or(EvalError::UintOverflow),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a + b)),
        (Val::Str(a), Val::Str(b)) => arena.concat_strings(a, b).map(Val::Str),
        (Val::Bytes(a), Val::Bytes(b)) => arena.bytes([a, b].concat()),
        (Val::Duration(a), Val::Duration(b)) => duration(a.nanos.checked_add(b.nanos)),
        (Val::Timestamp(t), Val::Duration(d)) | (Val::Duration(d), Val::Timestamp(t)) => {
            t.shifted(i128::from(d.nanos)).map(Val::Timestamp)
        }
        // Also refuses everything else: a value that is not a list has no such overload.
        _ => val::add(arena, a.list()?, b.list()?),
    }
}

fn subtract<'a>(_: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => a.checked_sub(b).map(Val::Int).ok_or(EvalError::IntOverflow),
        (Val::Uint(a), Val::Uint(b)) => a.checked_sub(b).map(Val::Uint).ok_or(EvalError::UintOverflow),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a - b)),
        (Val::Duration(a), Val::Duration(b)) => duration(a.nanos.checked_sub(b.nanos)),
        // Negated in 128 bits, where the smallest duration has a counterpart.
        (Val::Timestamp(t), Val::Duration(d)) => t.shifted(-i128::from(d.nanos)).map(Val::Timestamp),
        (Val::Timestamp(a), Val::Timestamp(b)) => a.since(b).map(Val::Duration),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn multiply<'a>(_: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => a.checked_mul(b).map(Val::Int).ok_or(EvalError::IntOverflow),
        (Val::Uint(a), Val::Uint(b)) => a.checked_mul(b).map(Val::Uint).ok_or(EvalError::UintOverflow),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a * b)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn divide<'a>(_: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    match (a, b) {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => Err(EvalError::DivisionByZero),
        // Only the smallest integer divided by -1 overflows.
        (Val::Int(a), Val::Int(b)) => a.checked_div(b).map(Val::Int).ok_or(EvalError::IntOverflow),
        (Val::Uint(a), Val::Uint(b)) => Ok(Val::Uint(a / b)),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a / b)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn modulo<'a>(_: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    match (a, b) {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => Err(EvalError::ModulusByZero),
        (Val::Int(a), Val::Int(b)) => a.checked_rem(b).map(Val::Int).ok_or(EvalError::IntOverflow),
        (Val::Uint(a), Val::Uint(b)) => Ok(Val::Uint(a % b)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn negate<'a>(_: &'a Arena, v: Val<'a>) -> Res<'a> {
    match v {
        Val::Int(i) => i.checked_neg().map(Val::Int).ok_or(EvalError::IntOverflow),
        Val::Double(d) => Ok(Val::Double(-d)),
        // The checker has no such overload; at run time cel-go negates durations, which `dyn` makes possible.
        Val::Duration(d) => duration(d.nanos.checked_neg()),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn duration(nanos: Option<i64>) -> Res<'static> {
    match nanos {
        Some(nanos) => Ok(Val::Duration(Duration { nanos })),
        None => Err(EvalError::IntOverflow),
    }
}
