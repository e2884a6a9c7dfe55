//! `<`, `<=`, `>` and `>=`.

use super::shorter_pass;
use crate::estimate::formula;
use crate::overload::{Estimate, Library, Overload, Ty};
use crate::run::{Actual, Run};
use crate::val::{Arena, Res, Val, compare};

/// The overloads of the four operators within a type.
macro_rules! within_types {
    ($(($function:literal, $id:literal, $run:ident)),*) => {
        &[$(
            order(concat!($id, "_bool"), $function, &[Ty::Bool, Ty::Bool], $run),
            order(concat!($id, "_int64"), $function, &[Ty::Int, Ty::Int], $run),
            order(concat!($id, "_uint64"), $function, &[Ty::Uint, Ty::Uint], $run),
            order(concat!($id, "_double"), $function, &[Ty::Double, Ty::Double], $run),
            text_order(concat!($id, "_string"), $function, &[Ty::String, Ty::String], $run),
            text_order(concat!($id, "_bytes"), $function, &[Ty::Bytes, Ty::Bytes], $run),
            order(concat!($id, "_timestamp"), $function, &[Ty::Timestamp, Ty::Timestamp], $run),
            order(concat!($id, "_duration"), $function, &[Ty::Duration, Ty::Duration], $run),
        )*]
    };
}

/// The overloads of the four operators between number types.
macro_rules! between_types {
    ($(($function:literal, $id:literal, $run:ident)),*) => {
        &[$(
            order(concat!($id, "_int64_double"), $function, &[Ty::Int, Ty::Double], $run),
            order(concat!($id, "_int64_uint64"), $function, &[Ty::Int, Ty::Uint], $run),
            order(concat!($id, "_uint64_double"), $function, &[Ty::Uint, Ty::Double], $run),
            order(concat!($id, "_uint64_int64"), $function, &[Ty::Uint, Ty::Int], $run),
            order(concat!($id, "_double_int64"), $function, &[Ty::Double, Ty::Int], $run),
            order(concat!($id, "_double_uint64"), $function, &[Ty::Double, Ty::Uint], $run),
        )*]
    };
}

type Compare = for<'a> fn(&'a Arena, Val<'a>, Val<'a>) -> Res<'a>;

const fn order(id: &'static str, function: &'static str, params: &'static [Ty], run: Compare) -> Overload {
    Overload::global(id, function, params, Ty::Bool, Run::Binary(run))
}

const fn text_order(
    id: &'static str,
    function: &'static str,
    params: &'static [Ty],
    run: Compare,
) -> Overload {
    order(id, function, params, run)
        .costing((Estimate::Formula(formula::compare), Actual::Formula(shorter_pass)))
}

pub(super) static ORDER: Library = Library {
    name: "order",
    overloads: within_types![
        ("_<_", "less", less),
        ("_<=_", "less_equals", less_equals),
        ("_>_", "greater", greater),
        ("_>=_", "greater_equals", greater_equals)
    ],
    types: &[],
};

/// `<`, `<=`, `>` and `>=` between numbers of different types.
pub static CROSS_TYPE_ORDER: Library = Library {
    name: "cross-type order",
    overloads: between_types![
        ("_<_", "less", less),
        ("_<=_", "less_equals", less_equals),
        ("_>_", "greater", greater),
        ("_>=_", "greater_equals", greater_equals)
    ],
    types: &[],
};

fn less<'a>(_: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(compare(a, b)?.is_lt()))
}

fn less_equals<'a>(_: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(compare(a, b)?.is_le()))
}

fn greater<'a>(_: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(compare(a, b)?.is_gt()))
}

fn greater_equals<'a>(_: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(compare(a, b)?.is_ge()))
}
