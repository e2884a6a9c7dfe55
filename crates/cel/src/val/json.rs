//! Reading values of the input as their shape says.

use super::{Arena, Duration, EvalError, Res, Val};
use crate::data::{base64, duration, timestamp};
use crate::shape::{Kind, Shape};
use scantling_value::{Value, go};

/// The shape of JSON that no schema describes.
pub static DYN: Shape = Shape {
    kind: Kind::Dyn,
    nullable: true,
    min_serialized_size: 1,
    max_elements: u64::MAX,
};

/// Reads a value of the input. One that does not fit its shape is an error, in a server's words.
#[inline]
pub fn read<'a>(arena: &'a Arena, value: &'a Value, shape: &'a Shape) -> Res<'a> {
    match (&shape.kind, value) {
        (Kind::Int | Kind::IntOrString, Value::Int(i)) => Ok(Val::Int(*i)),
        (Kind::String | Kind::IntOrString, Value::String(s)) => Ok(Val::Str(s)),
        (Kind::Bool, Value::Bool(b)) => Ok(Val::Bool(*b)),
        (Kind::Object { .. } | Kind::Map { .. }, Value::Object(object)) => Ok(Val::JsonMap(object, shape)),
        (Kind::List { .. }, Value::Array(items)) => Ok(Val::JsonList(items, shape)),
        (Kind::Double, Value::Float(d)) => Ok(Val::Double(*d)),
        #[expect(
            clippy::cast_precision_loss,
            reason = "a number is a double, however it is written"
        )]
        (Kind::Double, Value::Int(i)) => Ok(Val::Double(*i as f64)),
        (Kind::Dyn, value) => Ok(read_dyn(value)),
        (_, Value::Null) if shape.nullable => Ok(Val::Null),
        _ => read_format(arena, value, shape),
    }
}

fn read_dyn(value: &Value) -> Val<'_> {
    match value {
        Value::Null => Val::Null,
        Value::Bool(b) => Val::Bool(*b),
        Value::Int(i) => Val::Int(*i),
        Value::Float(d) => Val::Double(*d),
        Value::String(s) => Val::Str(s),
        Value::Array(items) => Val::JsonList(items, &DYN),
        Value::Object(object) => Val::JsonMap(object, &DYN),
    }
}

#[inline(never)]
fn read_format<'a>(arena: &'a Arena, value: &'a Value, shape: &'a Shape) -> Res<'a> {
    let Value::String(text) = value else {
        return Err(misfit(value, shape));
    };
    let bad = |what: &str, why: String| EvalError::text(format!("Invalid {what} {text}: {why}"));
    match shape.kind {
        Kind::Duration => duration::parse_format(text)
            .map(|nanos| Val::Duration(Duration { nanos }))
            .map_err(|e| bad("duration", e)),
        Kind::Date => timestamp::parse_date(text)
            .map(|moment| Val::Timestamp(moment.into()))
            .map_err(|e| bad("date formatted string", e)),
        Kind::DateTime => timestamp::parse_date_time(text)
            .map(|moment| Val::Timestamp(moment.into()))
            .map_err(|e| bad("date-time formatted string", e)),
        Kind::Bytes => base64::parse(text)
            .map_err(|e| bad("byte formatted string", e))
            .and_then(|bytes| arena.bytes(bytes)),
        _ => Err(misfit(value, shape)),
    }
}

#[cold]
fn misfit(value: &Value, shape: &Shape) -> EvalError {
    if value.is_null() {
        return EvalError::text("invalid data, got null for schema with nullable=false");
    }
    let expected = match shape.kind {
        Kind::Object { .. } | Kind::Map { .. } => {
            return EvalError::text("invalid data, expected a map for the provided schema with type=object");
        }
        Kind::List { .. } => {
            return EvalError::text(
                "invalid data, expected an array for the provided schema with type=array",
            );
        }
        Kind::IntOrString => {
            return EvalError::text(
                "invalid data, expected XIntOrString value to be either a string or integer",
            );
        }
        Kind::Int => "int",
        Kind::Double => "float",
        Kind::Bool => "bool",
        _ => "string",
    };
    EvalError::text(format!(
        "invalid data, expected {expected}, got {}",
        go::value_type(value)
    ))
}
