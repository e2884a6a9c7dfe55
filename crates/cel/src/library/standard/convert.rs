//! Conversions between types.

use super::A;
use crate::estimate::formula;
use crate::overload::{Estimate, Library, Overload, Ty};
use crate::run::{Actual, Run};
use crate::val::{Arena, Duration, EvalError, Res, Timestamp, Val};
use scantling_notation::{duration, number, timestamp};
use scantling_value::go;

type Convert = for<'a> fn(&'a Arena, Val<'a>) -> Res<'a>;

const fn conversion(
    id: &'static str,
    function: &'static str,
    params: &'static [Ty],
    result: Ty,
    run: Convert,
) -> Overload {
    Overload::global(id, function, params, result, Run::Unary(run))
}

pub(super) static CONVERSIONS: Library = Library {
    name: "conversions",
    overloads: &[
        conversion("type", "type", &[A], Ty::Type(&A), type_of),
        conversion("bool_to_bool", "bool", &[Ty::Bool], Ty::Bool, to_bool),
        conversion("string_to_bool", "bool", &[Ty::String], Ty::Bool, to_bool),
        conversion("bytes_to_bytes", "bytes", &[Ty::Bytes], Ty::Bytes, to_bytes),
        conversion("string_to_bytes", "bytes", &[Ty::String], Ty::Bytes, to_bytes)
            .costing(Estimate::Formula(formula::string_to_bytes), Actual::text_pass(0)),
        conversion("double_to_double", "double", &[Ty::Double], Ty::Double, to_double),
        conversion("int64_to_double", "double", &[Ty::Int], Ty::Double, to_double),
        conversion("string_to_double", "double", &[Ty::String], Ty::Double, to_double),
        conversion("uint64_to_double", "double", &[Ty::Uint], Ty::Double, to_double),
        conversion(
            "duration_to_duration",
            "duration",
            &[Ty::Duration],
            Ty::Duration,
            to_duration,
        ),
        conversion(
            "string_to_duration",
            "duration",
            &[Ty::String],
            Ty::Duration,
            to_duration,
        ),
        conversion("to_dyn", "dyn", &[A], Ty::Dyn, to_dyn),
        conversion("int64_to_int64", "int", &[Ty::Int], Ty::Int, to_int),
        conversion("double_to_int64", "int", &[Ty::Double], Ty::Int, to_int),
        conversion("duration_to_int64", "int", &[Ty::Duration], Ty::Int, to_int),
        conversion("string_to_int64", "int", &[Ty::String], Ty::Int, to_int),
        conversion("timestamp_to_int64", "int", &[Ty::Timestamp], Ty::Int, to_int),
        conversion("uint64_to_int64", "int", &[Ty::Uint], Ty::Int, to_int),
        conversion("string_to_string", "string", &[Ty::String], Ty::String, to_string),
        conversion("bool_to_string", "string", &[Ty::Bool], Ty::String, to_string),
        conversion("bytes_to_string", "string", &[Ty::Bytes], Ty::String, to_string)
            .costing(Estimate::Formula(formula::bytes_to_string), Actual::text_pass(0)),
        conversion("double_to_string", "string", &[Ty::Double], Ty::String, to_string),
        conversion(
            "duration_to_string",
            "string",
            &[Ty::Duration],
            Ty::String,
            to_string,
        ),
        conversion("int64_to_string", "string", &[Ty::Int], Ty::String, to_string),
        conversion(
            "timestamp_to_string",
            "string",
            &[Ty::Timestamp],
            Ty::String,
            to_string,
        ),
        conversion("uint64_to_string", "string", &[Ty::Uint], Ty::String, to_string),
        conversion(
            "timestamp_to_timestamp",
            "timestamp",
            &[Ty::Timestamp],
            Ty::Timestamp,
            to_timestamp,
        ),
        conversion(
            "int64_to_timestamp",
            "timestamp",
            &[Ty::Int],
            Ty::Timestamp,
            to_timestamp,
        ),
        conversion(
            "string_to_timestamp",
            "timestamp",
            &[Ty::String],
            Ty::Timestamp,
            to_timestamp,
        ),
        conversion("uint64_to_uint64", "uint", &[Ty::Uint], Ty::Uint, to_uint),
        conversion("double_to_uint64", "uint", &[Ty::Double], Ty::Uint, to_uint),
        conversion("int64_to_uint64", "uint", &[Ty::Int], Ty::Uint, to_uint),
        conversion("string_to_uint64", "uint", &[Ty::String], Ty::Uint, to_uint),
    ],
    types: &[],
};

#[cold]
fn unreadable(to: &str) -> EvalError {
    EvalError::message(format!("type conversion error from 'string' to '{to}'"))
}

fn type_of<'a>(_: &'a Arena, v: Val<'a>) -> Res<'a> {
    Ok(Val::Type(v.type_name()))
}

#[expect(clippy::unnecessary_wraps, reason = "a row's implementation may fail")]
fn to_dyn<'a>(_: &'a Arena, v: Val<'a>) -> Res<'a> {
    Ok(v)
}

fn to_bool<'a>(_: &'a Arena, v: Val<'a>) -> Res<'a> {
    match v {
        Val::Bool(_) => Ok(v),
        // The texts that Go's `strconv.ParseBool` accepts.
        Val::Str("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(Val::TRUE),
        Val::Str("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(Val::FALSE),
        Val::Str(_) => Err(unreadable("bool")),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn to_bytes<'a>(_: &'a Arena, v: Val<'a>) -> Res<'a> {
    match v {
        Val::Bytes(_) => Ok(v),
        Val::Str(s) => Ok(Val::Bytes(s.as_bytes())),
        _ => Err(EvalError::NoSuchOverload),
    }
}

#[expect(clippy::cast_precision_loss, reason = "doubles round")]
fn to_double<'a>(_: &'a Arena, v: Val<'a>) -> Res<'a> {
    match v {
        Val::Double(_) => Ok(v),
        Val::Int(i) => Ok(Val::Double(i as f64)),
        Val::Uint(u) => Ok(Val::Double(u as f64)),
        Val::Str(s) => number::parse_double(s)
            .map(Val::Double)
            .ok_or_else(|| unreadable("double")),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn to_duration<'a>(_: &'a Arena, v: Val<'a>) -> Res<'a> {
    match v {
        Val::Duration(_) => Ok(v),
        Val::Str(s) => duration::parse(s)
            .map(|nanos| Val::Duration(Duration { nanos }))
            .ok_or_else(|| unreadable("google.protobuf.Duration")),
        _ => Err(EvalError::NoSuchOverload),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the range is checked; the fraction is dropped"
)]
fn to_int<'a>(_: &'a Arena, v: Val<'a>) -> Res<'a> {
    // Both bounds are refused, although the lower one would fit an `int`.
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    match v {
        Val::Int(_) => Ok(v),
        Val::Uint(u) => i64::try_from(u).map(Val::Int).map_err(|_| EvalError::IntOverflow),
        Val::Double(d) if d > -BOUND && d < BOUND => Ok(Val::Int(d as i64)),
        Val::Double(_) => Err(EvalError::IntOverflow),
        Val::Duration(d) => Ok(Val::Int(d.nanos)),
        Val::Timestamp(t) => Ok(Val::Int(t.seconds)),
        Val::Str(s) => s.parse().map(Val::Int).map_err(|_| unreadable("int")),
        _ => Err(EvalError::NoSuchOverload),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked; the fraction is dropped"
)]
fn to_uint<'a>(_: &'a Arena, v: Val<'a>) -> Res<'a> {
    const BOUND: f64 = 18_446_744_073_709_551_616.0;
    match v {
        Val::Uint(_) => Ok(v),
        Val::Int(i) => u64::try_from(i)
            .map(Val::Uint)
            .map_err(|_| EvalError::UintOverflow),
        Val::Double(d) if (0.0..BOUND).contains(&d) => Ok(Val::Uint(d as u64)),
        Val::Double(_) => Err(EvalError::UintOverflow),
        // Rust's parser accepts the sign, Go's `ParseUint` does not.
        Val::Str(s) if s.starts_with('+') => Err(unreadable("uint")),
        Val::Str(s) => s.parse().map(Val::Uint).map_err(|_| unreadable("uint")),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn to_string<'a>(arena: &'a Arena, v: Val<'a>) -> Res<'a> {
    match v {
        Val::Str(_) => Ok(v),
        Val::Bool(b) => Ok(Val::Str(if b { "true" } else { "false" })),
        Val::Int(i) => arena.str(i.to_string()),
        Val::Uint(u) => arena.str(u.to_string()),
        // As Go's `%g` prints it; Rust writes large and small numbers without an exponent.
        Val::Double(d) => arena.str(go::float_v(d)),
        Val::Bytes(b) => std::str::from_utf8(b)
            .map(Val::Str)
            .map_err(|_| EvalError::message("invalid UTF-8 in bytes, cannot convert to string")),
        Val::Duration(d) => arena.str(duration::format(d.nanos)),
        Val::Timestamp(t) => arena.str(timestamp::format(t.into())),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn to_timestamp<'a>(_: &'a Arena, v: Val<'a>) -> Res<'a> {
    match v {
        Val::Timestamp(_) => Ok(v),
        Val::Int(seconds) => Timestamp::new(seconds, 0).map(Val::Timestamp),
        Val::Str(s) => timestamp::parse(s)
            .ok_or_else(|| unreadable("google.protobuf.Timestamp"))
            // The notation has offsets, so a valid text may still denote a moment before year 1 or after year 9999.
            .and_then(|moment| Timestamp::from(moment).in_range().map(Val::Timestamp)),
        _ => Err(EvalError::NoSuchOverload),
    }
}
