//! Conversions between types.

use super::A;
use crate::estimate::formula;
use crate::overload::{Costs, Estimate, Library, overloads};
use crate::run::Actual;
use crate::val::{Arena, Duration, EvalError, Res, Timestamp, Val};
use scantling_notation::{duration, number, timestamp};
use scantling_value::go;

const ENCODE: Costs = (Estimate::Formula(formula::string_to_bytes), Actual::text_pass(0));
const DECODE: Costs = (Estimate::Formula(formula::bytes_to_string), Actual::text_pass(0));

pub(super) static CONVERSIONS: Library = Library {
    name: "conversions",
    overloads: overloads! {
        "type": global "type"(A) -> Type(&A) => Unary(|_, v| Ok(Val::Type(v.type_name())));
        "bool_to_bool": global "bool"(Bool) -> Bool => Unary(to_bool);
        "string_to_bool": global "bool"(String) -> Bool => Unary(to_bool);
        "bytes_to_bytes": global "bytes"(Bytes) -> Bytes => Unary(to_bytes);
        "string_to_bytes": global "bytes"(String) -> Bytes => Unary(to_bytes), ENCODE;
        "double_to_double": global "double"(Double) -> Double => Unary(to_double);
        "int64_to_double": global "double"(Int) -> Double => Unary(to_double);
        "string_to_double": global "double"(String) -> Double => Unary(to_double);
        "uint64_to_double": global "double"(Uint) -> Double => Unary(to_double);
        "duration_to_duration": global "duration"(Duration) -> Duration => Unary(to_duration);
        "string_to_duration": global "duration"(String) -> Duration => Unary(to_duration);
        "to_dyn": global "dyn"(A) -> Dyn => Unary(|_, v| Ok(v));
        "int64_to_int64": global "int"(Int) -> Int => Unary(to_int);
        "double_to_int64": global "int"(Double) -> Int => Unary(to_int);
        "duration_to_int64": global "int"(Duration) -> Int => Unary(to_int);
        "string_to_int64": global "int"(String) -> Int => Unary(to_int);
        "timestamp_to_int64": global "int"(Timestamp) -> Int => Unary(to_int);
        "uint64_to_int64": global "int"(Uint) -> Int => Unary(to_int);
        "string_to_string": global "string"(String) -> String => Unary(to_string);
        "bool_to_string": global "string"(Bool) -> String => Unary(to_string);
        "bytes_to_string": global "string"(Bytes) -> String => Unary(to_string), DECODE;
        "double_to_string": global "string"(Double) -> String => Unary(to_string);
        "duration_to_string": global "string"(Duration) -> String => Unary(to_string);
        "int64_to_string": global "string"(Int) -> String => Unary(to_string);
        "timestamp_to_string": global "string"(Timestamp) -> String => Unary(to_string);
        "uint64_to_string": global "string"(Uint) -> String => Unary(to_string);
        "timestamp_to_timestamp": global "timestamp"(Timestamp) -> Timestamp => Unary(to_timestamp);
        "int64_to_timestamp": global "timestamp"(Int) -> Timestamp => Unary(to_timestamp);
        "string_to_timestamp": global "timestamp"(String) -> Timestamp => Unary(to_timestamp);
        "uint64_to_uint64": global "uint"(Uint) -> Uint => Unary(to_uint);
        "double_to_uint64": global "uint"(Double) -> Uint => Unary(to_uint);
        "int64_to_uint64": global "uint"(Int) -> Uint => Unary(to_uint);
        "string_to_uint64": global "uint"(String) -> Uint => Unary(to_uint);
    },
    types: &[],
};

#[cold]
fn unreadable(to: &str) -> EvalError {
    EvalError::message(format!("type conversion error from 'string' to '{to}'"))
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
