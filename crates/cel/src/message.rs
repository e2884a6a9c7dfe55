//! Messages that expressions can make: `google.protobuf.Duration{seconds: 1}`.
//!
//! They are the well-known ones of protocol buffers, and hardly any stays a message: a duration is a duration, a
//! wrapper is what it wraps, and JSON is made of lists, maps and scalars. The errors are those of a server, which
//! names the types of its own language.

use crate::data::{duration, timestamp};
use crate::overload::Ty;
use crate::shape::Kind;
use crate::val::{Arena, Duration, EvalError, Opaque, Res, Timestamp, Val};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::sync::Arc;

/// A message type.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [Field],
    make: Make,
}

/// A field of a message type.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    holds: Holds,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
enum Holds {
    Int64,
    Int32,
    Uint64,
    Uint32,
    Double,
    Float,
    Bool,
    String,
    Bytes,
    /// The one value of `google.protobuf.NullValue`, which is a number.
    Null,
    /// JSON values.
    Values,
    /// JSON values by name.
    Members,
    /// A message that holds JSON values.
    List,
    /// A message that holds JSON values by name.
    Struct,
}

/// What becomes of the fields.
#[derive(Clone, Copy, Debug)]
enum Make {
    Duration,
    Timestamp,
    /// The value of the only field.
    Single,
    /// The value of the field that was set last.
    Last,
    Empty,
    /// Nothing: a server makes the message and does not know what to do with it.
    Any,
}

/// `google.protobuf.Empty`, the one that stays a message.
const EMPTY: &str = "google.protobuf.Empty";

static MESSAGES: [Message; 16] = [
    message(
        "google.protobuf.Any",
        Make::Any,
        &[field("type_url", Holds::String), field("value", Holds::Bytes)],
    ),
    message(
        "google.protobuf.BoolValue",
        Make::Single,
        &[field("value", Holds::Bool)],
    ),
    message(
        "google.protobuf.BytesValue",
        Make::Single,
        &[field("value", Holds::Bytes)],
    ),
    message(
        "google.protobuf.DoubleValue",
        Make::Single,
        &[field("value", Holds::Double)],
    ),
    message("google.protobuf.Duration", Make::Duration, &MOMENT),
    message(EMPTY, Make::Empty, &[]),
    message(
        "google.protobuf.FloatValue",
        Make::Single,
        &[field("value", Holds::Float)],
    ),
    message(
        "google.protobuf.Int32Value",
        Make::Single,
        &[field("value", Holds::Int32)],
    ),
    message(
        "google.protobuf.Int64Value",
        Make::Single,
        &[field("value", Holds::Int64)],
    ),
    message(
        "google.protobuf.ListValue",
        Make::Single,
        &[field("values", Holds::Values)],
    ),
    message(
        "google.protobuf.StringValue",
        Make::Single,
        &[field("value", Holds::String)],
    ),
    message(
        "google.protobuf.Struct",
        Make::Single,
        &[field("fields", Holds::Members)],
    ),
    message("google.protobuf.Timestamp", Make::Timestamp, &MOMENT),
    message(
        "google.protobuf.UInt32Value",
        Make::Single,
        &[field("value", Holds::Uint32)],
    ),
    message(
        "google.protobuf.UInt64Value",
        Make::Single,
        &[field("value", Holds::Uint64)],
    ),
    message(
        "google.protobuf.Value",
        Make::Last,
        &[
            field("bool_value", Holds::Bool),
            field("list_value", Holds::List),
            field("null_value", Holds::Null),
            field("number_value", Holds::Double),
            field("string_value", Holds::String),
            field("struct_value", Holds::Struct),
        ],
    ),
];

const MOMENT: [Field; 2] = [field("seconds", Holds::Int64), field("nanos", Holds::Int32)];

const fn message(name: &'static str, make: Make, fields: &'static [Field]) -> Message {
    Message { name, fields, make }
}

const fn field(name: &'static str, holds: Holds) -> Field {
    Field { name, holds }
}

/// The message type of that name.
pub(crate) fn find(name: &str) -> Option<&'static Message> {
    MESSAGES.iter().find(|message| message.name == name)
}

impl Message {
    pub(crate) fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// A message with these fields, in the order in which they are set.
    pub(crate) fn make<'a>(&self, arena: &'a Arena, fields: &[(&'static Field, Val<'a>)]) -> Res<'a> {
        let mut set = Vec::with_capacity(fields.len());
        for (field, value) in fields {
            set.push((field.name, self.read(arena, field, *value)?));
        }
        let last = |name: &str| set.iter().rev().find(|(n, _)| *n == name).map(|(_, v)| *v);
        let int = |name| last(name).map_or(Ok(0), Val::int);
        match self.make {
            Make::Duration => {
                let nanos = int("seconds")?
                    .saturating_mul(NANOS)
                    .saturating_add(int("nanos")?);
                Ok(Val::Duration(Duration { nanos }))
            }
            Make::Timestamp => {
                let nanos = int("nanos")?;
                Ok(Val::Timestamp(Timestamp {
                    seconds: int("seconds")?.saturating_add(nanos.div_euclid(NANOS)),
                    nanos: u32::try_from(nanos.rem_euclid(NANOS)).unwrap_or_default(),
                    offset: 0,
                }))
            }
            Make::Single => match (set.last(), self.fields) {
                (Some((_, value)), _) => Ok(*value),
                (None, [field]) => field.holds.zero(arena),
                (None, _) => Err(EvalError::NoSuchOverload),
            },
            Make::Last => Ok(set.last().map_or(Val::Null, |(_, value)| *value)),
            Make::Empty => arena.opaque(Empty),
            Make::Any => {
                let shown: Vec<String> = set
                    .iter()
                    .map(|(name, v)| format!("{name}:{}", quoted(*v)))
                    .collect();
                Err(EvalError::text(format!(
                    "unsupported conversion to ref.Val: (*dynamicpb.Message){}",
                    shown.join(" ")
                )))
            }
        }
    }

    fn read<'a>(&self, arena: &'a Arena, field: &Field, value: Val<'a>) -> Res<'a> {
        let iterable = match field.holds {
            Holds::Values => value.as_list().is_some(),
            Holds::Members => value.as_map().is_some(),
            _ => true,
        };
        let place = format_args!("{}.{}", self.name, field.name);
        if !iterable {
            let found = match value.as_map() {
                Some(_) => "map(dyn, dyn)",
                None if value.as_list().is_some() => "list(dyn)",
                None => value.type_name(),
            };
            return Err(EvalError::text(format!(
                "unsupported field type for {place}: {found}"
            )));
        }
        field.holds.read(arena, value).map_err(|e| {
            if e.is_final() {
                e
            } else {
                EvalError::text(format!("field type conversion error for {place} value type: {e}"))
            }
        })
    }
}

const NANOS: i64 = 1_000_000_000;

impl Field {
    /// The type of what the field holds.
    pub(crate) fn ty(&self) -> Ty {
        match self.holds {
            Holds::Int64 | Holds::Int32 | Holds::Null => Ty::Int,
            Holds::Uint64 | Holds::Uint32 => Ty::Uint,
            Holds::Double | Holds::Float => Ty::Double,
            Holds::Bool => Ty::Bool,
            Holds::String => Ty::String,
            Holds::Bytes => Ty::Bytes,
            Holds::Values | Holds::List => Ty::List(&Ty::Dyn),
            Holds::Members | Holds::Struct => Ty::Map(&Ty::String, &Ty::Dyn),
        }
    }
}

impl Holds {
    /// What stands in the field where it is not set.
    fn zero(self, arena: &Arena) -> Res<'_> {
        match self {
            Holds::Int64 | Holds::Int32 => Ok(Val::Int(0)),
            Holds::Uint64 | Holds::Uint32 => Ok(Val::Uint(0)),
            Holds::Double | Holds::Float => Ok(Val::Double(0.0)),
            Holds::Bool => Ok(Val::FALSE),
            Holds::String => Ok(Val::Str("")),
            Holds::Bytes => Ok(Val::Bytes(&[])),
            Holds::Null => Ok(Val::Null),
            Holds::Values | Holds::List => arena.list([]),
            Holds::Members | Holds::Struct => arena.map(Vec::new()),
        }
    }

    /// The name of the field's type in a server's own language.
    fn native(self) -> &'static str {
        match self {
            Holds::Int64 => "int64",
            Holds::Int32 => "int32",
            Holds::Uint64 => "uint64",
            Holds::Uint32 => "uint32",
            Holds::Double => "float64",
            Holds::Float => "float32",
            Holds::Bool => "bool",
            Holds::String => "string",
            Holds::Bytes => "[]uint8",
            Holds::Null => "protoreflect.EnumNumber",
            Holds::Values | Holds::Members => "*structpb.Value",
            Holds::List => "*structpb.ListValue",
            Holds::Struct => "*structpb.Struct",
        }
    }

    /// A value as the field holds it.
    #[expect(clippy::cast_possible_truncation, reason = "the field has no more digits")]
    fn read<'a>(self, arena: &'a Arena, value: Val<'a>) -> Res<'a> {
        match (self, value) {
            (_, Val::Optional(Some(value))) => self.read(arena, *value),
            (_, Val::Optional(None)) => Err(EvalError::text("optional.none() dereference")),
            (Holds::Int64, Val::Int(_))
            | (Holds::Uint64, Val::Uint(_))
            | (Holds::Double, Val::Double(_))
            | (Holds::Bool, Val::Bool(_))
            | (Holds::String, Val::Str(_))
            | (Holds::Bytes, Val::Bytes(_)) => Ok(value),
            (Holds::Int32, Val::Int(i)) if i32::try_from(i).is_err() => Err(EvalError::IntOverflow),
            (Holds::Int32, Val::Int(_)) => Ok(value),
            (Holds::Uint32, Val::Uint(u)) if u32::try_from(u).is_err() => Err(EvalError::UintOverflow),
            (Holds::Uint32, Val::Uint(_)) => Ok(value),
            (Holds::Float, Val::Double(d)) => Ok(Val::Double(f64::from(d as f32))),
            (Holds::Null, Val::Int(_)) => Ok(Val::Null),
            (Holds::Values, _) => json_list(arena, value),
            (Holds::Members, _) => json_object(arena, value),
            (Holds::List, _) if value.as_list().is_some() && !has_schema(value) => json_list(arena, value),
            (Holds::Struct, _) if value.as_map().is_some() && !has_schema(value) => json_object(arena, value),
            _ => Err(no_conversion(value, self.native())),
        }
    }
}

/// Whether a list or map came in under a schema: a server does not make messages of these.
fn has_schema(value: Val<'_>) -> bool {
    matches!(value, Val::JsonList(_, shape) | Val::JsonMap(_, shape) if !matches!(shape.kind, Kind::Dyn))
}

fn json_list<'a>(arena: &'a Arena, list: Val<'a>) -> Res<'a> {
    let items = list.list()?.iter(arena).map(|item| json(arena, item?));
    arena.list(items.collect::<Result<Vec<_>, _>>()?)
}

fn json_object<'a>(arena: &'a Arena, map: Val<'a>) -> Res<'a> {
    let members = map.map()?.entries(arena).map(|(name, value)| {
        let name = Holds::String.read(arena, name)?;
        Ok((name, json(arena, value?)?))
    });
    arena.map(members.collect::<Result<Vec<_>, EvalError>>()?)
}

/// A value as JSON has it: what JSON has no form for is text.
fn json<'a>(arena: &'a Arena, value: Val<'a>) -> Res<'a> {
    // Beyond, a double does not hold every integer.
    const EXACT: u64 = (1 << 53) - 1;
    #[expect(
        clippy::cast_precision_loss,
        reason = "numbers in the exact range lose nothing"
    )]
    match value {
        Val::Null | Val::Bool(_) | Val::Double(_) | Val::Str(_) => Ok(value),
        Val::Int(i) if i.unsigned_abs() <= EXACT => Ok(Val::Double(i as f64)),
        Val::Int(i) => arena.str(i.to_string()),
        Val::Uint(u) if u <= EXACT => Ok(Val::Double(u as f64)),
        Val::Uint(u) => arena.str(u.to_string()),
        Val::Bytes(b) => arena.str(BASE64_STANDARD.encode(b)),
        Val::Duration(d) => arena.str(duration::format(d.nanos)),
        Val::Timestamp(t) => arena.str(timestamp::format(t.into())),
        Val::Optional(Some(value)) => json(arena, *value),
        Val::Optional(None) => Err(EvalError::text("optional.none() dereference")),
        _ if value.as_list().is_some() && !has_schema(value) => json_list(arena, value),
        _ if value.as_map().is_some() && !has_schema(value) => json_object(arena, value),
        _ => Err(no_conversion(value, Holds::Values.native())),
    }
}

/// What a server says of a value that it cannot make a field of.
#[cold]
fn no_conversion(value: Val<'_>, to: &str) -> EvalError {
    let from = match value {
        Val::Int(_) => return EvalError::text(format!("unsupported type conversion from 'int' to {to}")),
        Val::Uint(_) => return EvalError::text(format!("unsupported type conversion from 'uint' to {to}")),
        Val::Str(_) => {
            return EvalError::text(format!("unsupported native conversion from string to '{to}'"));
        }
        Val::Type(_) => return EvalError::text("type conversion not supported for 'type'"),
        Val::Bool(_) => "bool",
        Val::Double(_) => "Double",
        Val::Bytes(_) => "Bytes",
        Val::Duration(_) => "'Duration'",
        Val::Timestamp(_) => "'Timestamp'",
        Val::JsonList(..) if has_schema(value) => "'list(dyn)'",
        Val::JsonMap(..) if has_schema(value) => "'map(dyn, dyn)'",
        Val::JsonList(..) | Val::List(_) | Val::OwnedList(_) => "list",
        Val::JsonMap(..) | Val::Map(_) | Val::OwnedMap(_) => "map",
        Val::Null | Val::Optional(_) | Val::Opaque(_) => {
            let name = value.type_name();
            let name = name.rsplit_once('.').map_or(name, |(_, last)| last);
            return EvalError::text(format!("type conversion error from '{name}' to '{to}'"));
        }
    };
    EvalError::text(format!("type conversion error from {from} to '{to}'"))
}

/// Text as the notation of messages has it.
fn quoted(value: Val<'_>) -> String {
    match value {
        Val::Str(text) => format!("{text:?}"),
        Val::Bytes(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        _ => value.to_string(),
    }
}

/// The message without fields.
#[derive(Debug)]
struct Empty;

impl Opaque for Empty {
    fn type_name(&self) -> &'static str {
        EMPTY
    }

    fn equals(&self, other: Val<'_>) -> Result<bool, EvalError> {
        Ok(matches!(other, Val::Opaque(o) if o.downcast::<Empty>().is_some()))
    }

    fn share(&self) -> Arc<dyn Opaque> {
        Arc::new(Empty)
    }
}
