//! `+`, `-`, `*`, `/`, `%` and negation.

use super::LIST;
use crate::estimate::text_cost;
use crate::overload::{Estimate, Library, Overload, Ty};
use crate::run::{Actual, Run, size};
use crate::val::{self, Arena, Duration, EvalError, Res, Val};

const INTS: &[Ty] = &[Ty::Int, Ty::Int];
const UINTS: &[Ty] = &[Ty::Uint, Ty::Uint];
const DOUBLES: &[Ty] = &[Ty::Double, Ty::Double];
const DURATIONS: &[Ty] = &[Ty::Duration, Ty::Duration];

const fn plus(id: &'static str, params: &'static [Ty], result: Ty) -> Overload {
    Overload::global(id, "_+_", params, result, Run::Binary(add))
}

const fn minus(id: &'static str, params: &'static [Ty], result: Ty) -> Overload {
    Overload::global(id, "_-_", params, result, Run::Binary(subtract))
}

pub(super) static ARITHMETIC: Library = Library {
    name: "arithmetic",
    overloads: &[
        plus("add_bytes", &[Ty::Bytes, Ty::Bytes], Ty::Bytes)
            .costing(Estimate::ConcatText, Actual::Formula(both_pass)),
        plus("add_double", DOUBLES, Ty::Double),
        plus("add_duration_duration", DURATIONS, Ty::Duration),
        plus(
            "add_duration_timestamp",
            &[Ty::Duration, Ty::Timestamp],
            Ty::Timestamp,
        ),
        plus(
            "add_timestamp_duration",
            &[Ty::Timestamp, Ty::Duration],
            Ty::Timestamp,
        ),
        plus("add_int64", INTS, Ty::Int),
        plus("add_list", &[LIST, LIST], LIST).costing(Estimate::ConcatList, Actual::NOMINAL),
        plus("add_string", &[Ty::String, Ty::String], Ty::String)
            .costing(Estimate::ConcatText, Actual::Formula(both_pass)),
        plus("add_uint64", UINTS, Ty::Uint),
        Overload::global("divide_double", "_/_", DOUBLES, Ty::Double, Run::Binary(divide)),
        Overload::global("divide_int64", "_/_", INTS, Ty::Int, Run::Binary(divide)),
        Overload::global("divide_uint64", "_/_", UINTS, Ty::Uint, Run::Binary(divide)),
        Overload::global("modulo_int64", "_%_", INTS, Ty::Int, Run::Binary(modulo)),
        Overload::global("modulo_uint64", "_%_", UINTS, Ty::Uint, Run::Binary(modulo)),
        Overload::global(
            "multiply_double",
            "_*_",
            DOUBLES,
            Ty::Double,
            Run::Binary(multiply),
        ),
        Overload::global("multiply_int64", "_*_", INTS, Ty::Int, Run::Binary(multiply)),
        Overload::global("multiply_uint64", "_*_", UINTS, Ty::Uint, Run::Binary(multiply)),
        Overload::global(
            "negate_double",
            "-_",
            &[Ty::Double],
            Ty::Double,
            Run::Unary(negate),
        ),
        Overload::global("negate_int64", "-_", &[Ty::Int], Ty::Int, Run::Unary(negate)),
        minus("subtract_double", DOUBLES, Ty::Double),
        minus("subtract_duration_duration", DURATIONS, Ty::Duration),
        minus("subtract_int64", INTS, Ty::Int),
        minus(
            "subtract_timestamp_duration",
            &[Ty::Timestamp, Ty::Duration],
            Ty::Timestamp,
        ),
        minus(
            "subtract_timestamp_timestamp",
            &[Ty::Timestamp, Ty::Timestamp],
            Ty::Duration,
        ),
        minus("subtract_uint64", UINTS, Ty::Uint),
    ],
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
