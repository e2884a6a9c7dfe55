//! Mathematical functions. The macros `math.least` and `math.greatest` expand to calls of `math.@min` and
//! `math.@max`.

use crate::overload::{Library, overloads};
use crate::val::{self, Arena, EvalError, Res, Val};
use std::cmp::Ordering;

/// Version 0: the minimum and maximum of numbers.
pub static EXTREMES: Library = Library {
    name: "math",
    overloads: overloads! {
        "math_@min_double": global "math.@min"(Double) -> Double => Unary(|_, x| Ok(x));
        "math_@min_int": global "math.@min"(Int) -> Int => Unary(|_, x| Ok(x));
        "math_@min_uint": global "math.@min"(Uint) -> Uint => Unary(|_, x| Ok(x));
        "math_@min_double_double": global "math.@min"(Double, Double) -> Double => Binary(min);
        "math_@min_int_int": global "math.@min"(Int, Int) -> Int => Binary(min);
        "math_@min_uint_uint": global "math.@min"(Uint, Uint) -> Uint => Binary(min);
        "math_@min_int_uint": global "math.@min"(Int, Uint) -> Dyn => Binary(min);
        "math_@min_int_double": global "math.@min"(Int, Double) -> Dyn => Binary(min);
        "math_@min_double_int": global "math.@min"(Double, Int) -> Dyn => Binary(min);
        "math_@min_double_uint": global "math.@min"(Double, Uint) -> Dyn => Binary(min);
        "math_@min_uint_int": global "math.@min"(Uint, Int) -> Dyn => Binary(min);
        "math_@min_uint_double": global "math.@min"(Uint, Double) -> Dyn => Binary(min);
        "math_@min_list_double": global "math.@min"(List(&Double)) -> Double => Unary(min_of_list);
        "math_@min_list_int": global "math.@min"(List(&Int)) -> Int => Unary(min_of_list);
        "math_@min_list_uint": global "math.@min"(List(&Uint)) -> Uint => Unary(min_of_list);
        "math_@max_double": global "math.@max"(Double) -> Double => Unary(|_, x| Ok(x));
        "math_@max_int": global "math.@max"(Int) -> Int => Unary(|_, x| Ok(x));
        "math_@max_uint": global "math.@max"(Uint) -> Uint => Unary(|_, x| Ok(x));
        "math_@max_double_double": global "math.@max"(Double, Double) -> Double => Binary(max);
        "math_@max_int_int": global "math.@max"(Int, Int) -> Int => Binary(max);
        "math_@max_uint_uint": global "math.@max"(Uint, Uint) -> Uint => Binary(max);
        "math_@max_int_uint": global "math.@max"(Int, Uint) -> Dyn => Binary(max);
        "math_@max_int_double": global "math.@max"(Int, Double) -> Dyn => Binary(max);
        "math_@max_double_int": global "math.@max"(Double, Int) -> Dyn => Binary(max);
        "math_@max_double_uint": global "math.@max"(Double, Uint) -> Dyn => Binary(max);
        "math_@max_uint_int": global "math.@max"(Uint, Int) -> Dyn => Binary(max);
        "math_@max_uint_double": global "math.@max"(Uint, Double) -> Dyn => Binary(max);
        "math_@max_list_double": global "math.@max"(List(&Double)) -> Double => Unary(max_of_list);
        "math_@max_list_int": global "math.@max"(List(&Int)) -> Int => Unary(max_of_list);
        "math_@max_list_uint": global "math.@max"(List(&Uint)) -> Uint => Unary(max_of_list);
    },
    types: &[],
};

/// The additions of version 1: rounding, signs and bit operations.
pub static ROUNDING_AND_BITS: Library = Library {
    name: "math 1",
    overloads: overloads! {
        "math_ceil_double": global "math.ceil"(Double) -> Double
            => Unary(|_, x| Ok(Val::Double(double(x)?.ceil())));
        "math_floor_double": global "math.floor"(Double) -> Double
            => Unary(|_, x| Ok(Val::Double(double(x)?.floor())));
        // Halves away from zero, in Rust as in Go.
        "math_round_double": global "math.round"(Double) -> Double
            => Unary(|_, x| Ok(Val::Double(double(x)?.round())));
        "math_trunc_double": global "math.trunc"(Double) -> Double
            => Unary(|_, x| Ok(Val::Double(double(x)?.trunc())));
        "math_isInf_double": global "math.isInf"(Double) -> Bool
            => Unary(|_, x| Ok(Val::Bool(double(x)?.is_infinite())));
        "math_isNaN_double": global "math.isNaN"(Double) -> Bool
            => Unary(|_, x| Ok(Val::Bool(double(x)?.is_nan())));
        "math_isFinite_double": global "math.isFinite"(Double) -> Bool
            => Unary(|_, x| Ok(Val::Bool(double(x)?.is_finite())));
        "math_abs_double": global "math.abs"(Double) -> Double => Unary(abs);
        "math_abs_int": global "math.abs"(Int) -> Int => Unary(abs);
        "math_abs_uint": global "math.abs"(Uint) -> Uint => Unary(abs);
        "math_sign_double": global "math.sign"(Double) -> Double => Unary(sign);
        "math_sign_int": global "math.sign"(Int) -> Int => Unary(sign);
        "math_sign_uint": global "math.sign"(Uint) -> Uint => Unary(sign);
        "math_bitAnd_int_int": global "math.bitAnd"(Int, Int) -> Int
            => Binary(|_, a, b| bitwise(a, b, |a, b| a & b));
        "math_bitAnd_uint_uint": global "math.bitAnd"(Uint, Uint) -> Uint
            => Binary(|_, a, b| bitwise(a, b, |a, b| a & b));
        "math_bitOr_int_int": global "math.bitOr"(Int, Int) -> Int
            => Binary(|_, a, b| bitwise(a, b, |a, b| a | b));
        "math_bitOr_uint_uint": global "math.bitOr"(Uint, Uint) -> Uint
            => Binary(|_, a, b| bitwise(a, b, |a, b| a | b));
        "math_bitXor_int_int": global "math.bitXor"(Int, Int) -> Int
            => Binary(|_, a, b| bitwise(a, b, |a, b| a ^ b));
        "math_bitXor_uint_uint": global "math.bitXor"(Uint, Uint) -> Uint
            => Binary(|_, a, b| bitwise(a, b, |a, b| a ^ b));
        "math_bitNot_int_int": global "math.bitNot"(Int) -> Int => Unary(bit_not);
        "math_bitNot_uint_uint": global "math.bitNot"(Uint) -> Uint => Unary(bit_not);
        "math_bitShiftLeft_int_int": global "math.bitShiftLeft"(Int, Int) -> Int
            => Binary(|_, x, by| shift(x, by, "math.bitShiftLeft", u64::checked_shl));
        "math_bitShiftLeft_uint_int": global "math.bitShiftLeft"(Uint, Int) -> Uint
            => Binary(|_, x, by| shift(x, by, "math.bitShiftLeft", u64::checked_shl));
        "math_bitShiftRight_int_int": global "math.bitShiftRight"(Int, Int) -> Int
            => Binary(|_, x, by| shift(x, by, "math.bitShiftRight", u64::checked_shr));
        "math_bitShiftRight_uint_int": global "math.bitShiftRight"(Uint, Int) -> Uint
            => Binary(|_, x, by| shift(x, by, "math.bitShiftRight", u64::checked_shr));
    },
    types: &[],
};

/// The additions of version 2: the square root.
pub static ROOTS: Library = Library {
    name: "math 2",
    overloads: overloads! {
        "math_sqrt_double": global "math.sqrt"(Double) -> Double => Unary(sqrt);
        "math_sqrt_int": global "math.sqrt"(Int) -> Double => Unary(sqrt);
        "math_sqrt_uint": global "math.sqrt"(Uint) -> Double => Unary(sqrt);
    },
    types: &[],
};

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

fn sqrt<'a>(_: &'a Arena, x: Val<'a>) -> Res<'a> {
    let x = match x {
        Val::Double(x) => x,
        Val::Int(x) => x as f64,
        Val::Uint(x) => x as f64,
        _ => return Err(EvalError::message("no such overload: sqrt")),
    };
    Ok(Val::Double(x.sqrt()))
}
