//! Converts input values according to their shapes.

use super::{Arena, Duration, EvalError, Res, Val};
use crate::shape::{Shape, ShapeKind};
use scantling_notation::{base64, duration, timestamp};
use scantling_value::{Value, go};

/// The shape of JSON without a schema.
pub static DYN: Shape = Shape {
    kind: ShapeKind::Dyn,
    nullable: true,
    min_serialized_size: 1,
    max_elements: u64::MAX,
};

/// Converts an input value. If it does not fit its shape, returns kube-apiserver's error.
#[inline]
pub fn read<'a>(arena: &'a Arena, value: &'a Value, shape: &'a Shape) -> Res<'a> {
    match (&shape.kind, value) {
        (ShapeKind::Int | ShapeKind::IntOrString, Value::Int(i)) => Ok(Val::Int(*i)),
        (ShapeKind::String | ShapeKind::IntOrString, Value::String(s)) => Ok(Val::Str(s)),
        (ShapeKind::Bool, Value::Bool(b)) => Ok(Val::Bool(*b)),
        (ShapeKind::Object { .. } | ShapeKind::Map { .. }, Value::Object(object)) => {
            Ok(Val::JsonMap(object, shape))
        }
        (ShapeKind::List { .. }, Value::Array(items)) => Ok(Val::JsonList(items, shape)),
        (ShapeKind::Double, Value::Float(d)) => Ok(Val::Double(*d)),
        #[expect(
            clippy::cast_precision_loss,
            reason = "a number is a double, however it is written"
        )]
        (ShapeKind::Double, Value::Int(i)) => Ok(Val::Double(*i as f64)),
        (ShapeKind::Dyn, value) => Ok(read_dyn(value)),
        // After the common types, because few values are null. Without `nullable`, null fits no shape with a type.
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
        return Err(type_mismatch(value, shape));
    };
    // Validation has not necessarily checked the format: stored objects may be older than the schema.
    let bad = |what: &str, why: String| EvalError::message(format!("Invalid {what} {text}: {why}"));
    match shape.kind {
        ShapeKind::Duration => duration::parse_format(text)
            .map(|nanos| Val::Duration(Duration { nanos }))
            .map_err(|e| bad("duration", e)),
        ShapeKind::Date => timestamp::parse_date(text)
            .map(|moment| Val::Timestamp(moment.into()))
            .map_err(|e| bad("date formatted string", e)),
        ShapeKind::DateTime => timestamp::parse_date_time(text)
            .map(|moment| Val::Timestamp(moment.into()))
            .map_err(|e| bad("date-time formatted string", e)),
        ShapeKind::Bytes => base64::parse(text)
            .map_err(|e| bad("byte formatted string", e))
            .and_then(|bytes| arena.bytes(bytes)),
        _ => Err(type_mismatch(value, shape)),
    }
}

#[cold]
fn type_mismatch(value: &Value, shape: &Shape) -> EvalError {
    if value.is_null() {
        // kube-apiserver checks for null before the type, so the message is the same for all types.
        return EvalError::message("invalid data, got null for schema with nullable=false");
    }
    let expected = match shape.kind {
        ShapeKind::Object { .. } | ShapeKind::Map { .. } => {
            return EvalError::message(
                "invalid data, expected a map for the provided schema with type=object",
            );
        }
        ShapeKind::List { .. } => {
            return EvalError::message(
                "invalid data, expected an array for the provided schema with type=array",
            );
        }
        ShapeKind::IntOrString => {
            return EvalError::message(
                "invalid data, expected XIntOrString value to be either a string or integer",
            );
        }
        ShapeKind::Int => "int",
        ShapeKind::Double => "float",
        ShapeKind::Bool => "bool",
        _ => "string",
    };
    EvalError::message(format!(
        "invalid data, expected {expected}, got {}",
        go::value_type(value)
    ))
}
