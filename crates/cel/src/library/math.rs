//! Mathematical functions. The macros `math.least` and `math.greatest` expand to calls of `math.@min` and
//! `math.@max`.

use crate::overload::{Library, Overload, Ty};
use crate::run::Run;
use crate::val::{self, Arena, EvalError, Res, Val};
use std::cmp::Ordering;

/// Version 0: the minimum and maximum of numbers.
pub static EXTREMES: Library = Library {
    name: "math",
    overloads: &[
        Overload::global(
            "math_@min_double",
            "math.@min",
            &[Ty::Double],
            Ty::Double,
            Run::Unary(itself),
        ),
        Overload::global(
            "math_@min_int",
            "math.@min",
            &[Ty::Int],
            Ty::Int,
            Run::Unary(itself),
        ),
        Overload::global(
            "math_@min_uint",
            "math.@min",
            &[Ty::Uint],
            Ty::Uint,
            Run::Unary(itself),
        ),
        Overload::global(
            "math_@min_double_double",
            "math.@min",
            &[Ty::Double, Ty::Double],
            Ty::Double,
            Run::Binary(min),
        ),
        Overload::global(
            "math_@min_int_int",
            "math.@min",
            &[Ty::Int, Ty::Int],
            Ty::Int,
            Run::Binary(min),
        ),
        Overload::global(
            "math_@min_uint_uint",
            "math.@min",
            &[Ty::Uint, Ty::Uint],
            Ty::Uint,
            Run::Binary(min),
        ),
        Overload::global(
            "math_@min_int_uint",
            "math.@min",
            &[Ty::Int, Ty::Uint],
            Ty::Dyn,
            Run::Binary(min),
        ),
        Overload::global(
            "math_@min_int_double",
            "math.@min",
            &[Ty::Int, Ty::Double],
            Ty::Dyn,
            Run::Binary(min),
        ),
        Overload::global(
            "math_@min_double_int",
            "math.@min",
            &[Ty::Double, Ty::Int],
            Ty::Dyn,
            Run::Binary(min),
        ),
        Overload::global(
            "math_@min_double_uint",
            "math.@min",
            &[Ty::Double, Ty::Uint],
            Ty::Dyn,
            Run::Binary(min),
        ),
        Overload::global(
            "math_@min_uint_int",
            "math.@min",
            &[Ty::Uint, Ty::Int],
            Ty::Dyn,
            Run::Binary(min),
        ),
        Overload::global(
            "math_@min_uint_double",
            "math.@min",
            &[Ty::Uint, Ty::Double],
            Ty::Dyn,
            Run::Binary(min),
        ),
        Overload::global(
            "math_@min_list_double",
            "math.@min",
            &[Ty::List(&Ty::Double)],
            Ty::Double,
            Run::Unary(min_of_list),
        ),
        Overload::global(
            "math_@min_list_int",
            "math.@min",
            &[Ty::List(&Ty::Int)],
            Ty::Int,
            Run::Unary(min_of_list),
        ),
        Overload::global(
            "math_@min_list_uint",
            "math.@min",
            &[Ty::List(&Ty::Uint)],
            Ty::Uint,
            Run::Unary(min_of_list),
        ),
        Overload::global(
            "math_@max_double",
            "math.@max",
            &[Ty::Double],
            Ty::Double,
            Run::Unary(itself),
        ),
        Overload::global(
            "math_@max_int",
            "math.@max",
            &[Ty::Int],
            Ty::Int,
            Run::Unary(itself),
        ),
        Overload::global(
            "math_@max_uint",
            "math.@max",
            &[Ty::Uint],
            Ty::Uint,
            Run::Unary(itself),
        ),
        Overload::global(
            "math_@max_double_double",
            "math.@max",
            &[Ty::Double, Ty::Double],
            Ty::Double,
            Run::Binary(max),
        ),
        Overload::global(
            "math_@max_int_int",
            "math.@max",
            &[Ty::Int, Ty::Int],
            Ty::Int,
            Run::Binary(max),
        ),
        Overload::global(
            "math_@max_uint_uint",
            "math.@max",
            &[Ty::Uint, Ty::Uint],
            Ty::Uint,
            Run::Binary(max),
        ),
        Overload::global(
            "math_@max_int_uint",
            "math.@max",
            &[Ty::Int, Ty::Uint],
            Ty::Dyn,
            Run::Binary(max),
        ),
        Overload::global(
            "math_@max_int_double",
            "math.@max",
            &[Ty::Int, Ty::Double],
            Ty::Dyn,
            Run::Binary(max),
        ),
        Overload::global(
            "math_@max_double_int",
            "math.@max",
            &[Ty::Double, Ty::Int],
            Ty::Dyn,
            Run::Binary(max),
        ),
        Overload::global(
            "math_@max_double_uint",
            "math.@max",
            &[Ty::Double, Ty::Uint],
            Ty::Dyn,
            Run::Binary(max),
        ),
        Overload::global(
            "math_@max_uint_int",
            "math.@max",
            &[Ty::Uint, Ty::Int],
            Ty::Dyn,
            Run::Binary(max),
        ),
        Overload::global(
            "math_@max_uint_double",
            "math.@max",
            &[Ty::Uint, Ty::Double],
            Ty::Dyn,
            Run::Binary(max),
        ),
        Overload::global(
            "math_@max_list_double",
            "math.@max",
            &[Ty::List(&Ty::Double)],
            Ty::Double,
            Run::Unary(max_of_list),
        ),
        Overload::global(
            "math_@max_list_int",
            "math.@max",
            &[Ty::List(&Ty::Int)],
            Ty::Int,
            Run::Unary(max_of_list),
        ),
        Overload::global(
            "math_@max_list_uint",
            "math.@max",
            &[Ty::List(&Ty::Uint)],
            Ty::Uint,
            Run::Unary(max_of_list),
        ),
    ],
    types: &[],
};

/// The additions of version 1: rounding, signs and bit operations.
pub static ROUNDING_AND_BITS: Library = Library {
    name: "math 1",
    overloads: &[
        Overload::global(
            "math_ceil_double",
            "math.ceil",
            &[Ty::Double],
            Ty::Double,
            Run::Unary(ceil),
        ),
        Overload::global(
            "math_floor_double",
            "math.floor",
            &[Ty::Double],
            Ty::Double,
            Run::Unary(floor),
        ),
        Overload::global(
            "math_round_double",
            "math.round",
            &[Ty::Double],
            Ty::Double,
            Run::Unary(round),
        ),
        Overload::global(
            "math_trunc_double",
            "math.trunc",
            &[Ty::Double],
            Ty::Double,
            Run::Unary(trunc),
        ),
        Overload::global(
            "math_isInf_double",
            "math.isInf",
            &[Ty::Double],
            Ty::Bool,
            Run::Unary(is_inf),
        ),
        Overload::global(
            "math_isNaN_double",
            "math.isNaN",
            &[Ty::Double],
            Ty::Bool,
            Run::Unary(is_nan),
        ),
        Overload::global(
            "math_isFinite_double",
            "math.isFinite",
            &[Ty::Double],
            Ty::Bool,
            Run::Unary(is_finite),
        ),
        Overload::global(
            "math_abs_double",
            "math.abs",
            &[Ty::Double],
            Ty::Double,
            Run::Unary(abs),
        ),
        Overload::global("math_abs_int", "math.abs", &[Ty::Int], Ty::Int, Run::Unary(abs)),
        Overload::global(
            "math_abs_uint",
            "math.abs",
            &[Ty::Uint],
            Ty::Uint,
            Run::Unary(abs),
        ),
        Overload::global(
            "math_sign_double",
            "math.sign",
            &[Ty::Double],
            Ty::Double,
            Run::Unary(sign),
        ),
        Overload::global(
            "math_sign_int",
            "math.sign",
            &[Ty::Int],
            Ty::Int,
            Run::Unary(sign),
        ),
        Overload::global(
            "math_sign_uint",
            "math.sign",
            &[Ty::Uint],
            Ty::Uint,
            Run::Unary(sign),
        ),
        Overload::global(
            "math_bitAnd_int_int",
            "math.bitAnd",
            &[Ty::Int, Ty::Int],
            Ty::Int,
            Run::Binary(bit_and),
        ),
        Overload::global(
            "math_bitAnd_uint_uint",
            "math.bitAnd",
            &[Ty::Uint, Ty::Uint],
            Ty::Uint,
            Run::Binary(bit_and),
        ),
        Overload::global(
            "math_bitOr_int_int",
            "math.bitOr",
            &[Ty::Int, Ty::Int],
            Ty::Int,
            Run::Binary(bit_or),
        ),
        Overload::global(
            "math_bitOr_uint_uint",
            "math.bitOr",
            &[Ty::Uint, Ty::Uint],
            Ty::Uint,
            Run::Binary(bit_or),
        ),
        Overload::global(
            "math_bitXor_int_int",
            "math.bitXor",
            &[Ty::Int, Ty::Int],
            Ty::Int,
            Run::Binary(bit_xor),
        ),
        Overload::global(
            "math_bitXor_uint_uint",
            "math.bitXor",
            &[Ty::Uint, Ty::Uint],
            Ty::Uint,
            Run::Binary(bit_xor),
        ),
        Overload::global(
            "math_bitNot_int_int",
            "math.bitNot",
            &[Ty::Int],
            Ty::Int,
            Run::Unary(bit_not),
        ),
        Overload::global(
            "math_bitNot_uint_uint",
            "math.bitNot",
            &[Ty::Uint],
            Ty::Uint,
            Run::Unary(bit_not),
        ),
        Overload::global(
            "math_bitShiftLeft_int_int",
            "math.bitShiftLeft",
            &[Ty::Int, Ty::Int],
            Ty::Int,
            Run::Binary(shift_left),
        ),
        Overload::global(
            "math_bitShiftLeft_uint_int",
            "math.bitShiftLeft",
            &[Ty::Uint, Ty::Int],
            Ty::Uint,
            Run::Binary(shift_left),
        ),
        Overload::global(
            "math_bitShiftRight_int_int",
            "math.bitShiftRight",
            &[Ty::Int, Ty::Int],
            Ty::Int,
            Run::Binary(shift_right),
        ),
        Overload::global(
            "math_bitShiftRight_uint_int",
            "math.bitShiftRight",
            &[Ty::Uint, Ty::Int],
            Ty::Uint,
            Run::Binary(shift_right),
        ),
    ],
    types: &[],
};

/// The additions of version 2: the square root.
pub static ROOTS: Library = Library {
    name: "math 2",
    overloads: &[
        Overload::global(
            "math_sqrt_double",
            "math.sqrt",
            &[Ty::Double],
            Ty::Double,
            Run::Unary(sqrt),
        ),
        Overload::global(
            "math_sqrt_int",
            "math.sqrt",
            &[Ty::Int],
            Ty::Double,
            Run::Unary(sqrt),
        ),
        Overload::global(
            "math_sqrt_uint",
            "math.sqrt",
            &[Ty::Uint],
            Ty::Double,
            Run::Unary(sqrt),
        ),
    ],
    types: &[],
};

fn itself<'a>(_: &'a Arena, x: Val<'a>) -> Res<'a> {
    Ok(x)
}

/// Returns the second value if the first compares to it as `wrong`, and the first otherwise.
fn preferred<'a>(first: Val<'a>, second: Val<'a>, wrong: Ordering, name: &str) -> Res<'a> {
    match val::compare(first, second) {
        Ok(order) if order == wrong => Ok(second),
        Ok(_) => Ok(first),
        // cel-go adds the function to the message of the comparison.
        Err(e) => Err(EvalError::message(format!("{e}: {name}"))),
    }
}

fn min<'a>(_: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    preferred(a, b, Ordering::Greater, "math.@min")
}

fn max<'a>(_: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    preferred(a, b, Ordering::Less, "math.@max")
}

fn of_list<'a>(arena: &'a Arena, list: Val<'a>, wrong: Ordering, name: &str) -> Res<'a> {
    let mut best = None;
    for item in list.list()?.iter(arena) {
        let item = item?;
        best = Some(match best {
            Some(best) => preferred(best, item, wrong, name)?,
            None => item,
        });
    }
    match best {
        // A list of one element has been compared with nothing, so its type is checked here.
        Some(Val::Int(_) | Val::Uint(_) | Val::Double(_)) => best.ok_or(EvalError::NoSuchOverload),
        Some(_) => Err(EvalError::message(format!("no such overload: {name}"))),
        None => Err(EvalError::message(format!(
            "{name}(list) argument must not be empty"
        ))),
    }
}

fn min_of_list<'a>(arena: &'a Arena, list: Val<'a>) -> Res<'a> {
    of_list(arena, list, Ordering::Greater, "math.@min")
}

fn max_of_list<'a>(arena: &'a Arena, list: Val<'a>) -> Res<'a> {
    of_list(arena, list, Ordering::Less, "math.@max")
}

fn double(x: Val<'_>) -> Result<f64, EvalError> {
    match x {
        Val::Double(x) => Ok(x),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn ceil<'a>(_: &'a Arena, x: Val<'a>) -> Res<'a> {
    Ok(Val::Double(double(x)?.ceil()))
}

fn floor<'a>(_: &'a Arena, x: Val<'a>) -> Res<'a> {
    Ok(Val::Double(double(x)?.floor()))
}

fn round<'a>(_: &'a Arena, x: Val<'a>) -> Res<'a> {
    // Halves away from zero, in Rust as in Go.
    Ok(Val::Double(double(x)?.round()))
}

fn trunc<'a>(_: &'a Arena, x: Val<'a>) -> Res<'a> {
    Ok(Val::Double(double(x)?.trunc()))
}

fn is_inf<'a>(_: &'a Arena, x: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(double(x)?.is_infinite()))
}

fn is_nan<'a>(_: &'a Arena, x: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(double(x)?.is_nan()))
}

fn is_finite<'a>(_: &'a Arena, x: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(double(x)?.is_finite()))
}

fn abs<'a>(_: &'a Arena, x: Val<'a>) -> Res<'a> {
    match x {
        Val::Double(x) => Ok(Val::Double(x.abs())),
        // The smallest integer has no positive counterpart.
        Val::Int(x) => x.checked_abs().map(Val::Int).ok_or(EvalError::IntOverflow),
        Val::Uint(_) => Ok(x),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn sign<'a>(_: &'a Arena, x: Val<'a>) -> Res<'a> {
    Ok(match x {
        Val::Double(x) if x.is_nan() => Val::Double(x),
        // Matches -0.0 as well, whose sign is dropped.
        Val::Double(0.0) => Val::Double(0.0),
        Val::Double(x) => Val::Double(x.signum()),
        Val::Int(x) => Val::Int(x.signum()),
        Val::Uint(x) => Val::Uint(x.min(1)),
        _ => return Err(EvalError::NoSuchOverload),
    })
}

fn bitwise<'a>(a: Val<'a>, b: Val<'a>, op: fn(u64, u64) -> u64) -> Res<'a> {
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => Ok(Val::Int(op(a.cast_unsigned(), b.cast_unsigned()).cast_signed())),
        (Val::Uint(a), Val::Uint(b)) => Ok(Val::Uint(op(a, b))),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn bit_and<'a>(_: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    bitwise(a, b, |a, b| a & b)
}

fn bit_or<'a>(_: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    bitwise(a, b, |a, b| a | b)
}

fn bit_xor<'a>(_: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    bitwise(a, b, |a, b| a ^ b)
}

fn bit_not<'a>(_: &'a Arena, x: Val<'a>) -> Res<'a> {
    match x {
        Val::Int(x) => Ok(Val::Int(!x)),
        Val::Uint(x) => Ok(Val::Uint(!x)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// Shifts the bits of a number logically, regardless of its sign.
fn shift<'a>(x: Val<'a>, by: Val<'a>, name: &str, op: fn(u64, u32) -> Option<u64>) -> Res<'a> {
    let by = by.int()?;
    if by < 0 {
        return Err(EvalError::message(format!("{name}() negative offset: {by}")));
    }
    // Shifting by the width or more gives 0, as in Go, whereas Rust's operators do not allow it.
    let shifted = |bits: u64| u32::try_from(by).ok().and_then(|by| op(bits, by)).unwrap_or(0);
    match x {
        Val::Int(x) => Ok(Val::Int(shifted(x.cast_unsigned()).cast_signed())),
        Val::Uint(x) => Ok(Val::Uint(shifted(x))),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn shift_left<'a>(_: &'a Arena, x: Val<'a>, by: Val<'a>) -> Res<'a> {
    shift(x, by, "math.bitShiftLeft", u64::checked_shl)
}

fn shift_right<'a>(_: &'a Arena, x: Val<'a>, by: Val<'a>) -> Res<'a> {
    shift(x, by, "math.bitShiftRight", u64::checked_shr)
}

fn sqrt<'a>(_: &'a Arena, x: Val<'a>) -> Res<'a> {
    let x = match x {
        Val::Double(x) => x,
        Val::Int(x) => x as f64,
        Val::Uint(x) => x as f64,
        _ => return Err(EvalError::message("no such overload: sqrt")),
    };
    Ok(Val::Double(x.sqrt()))
}
