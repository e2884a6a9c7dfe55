//! Message literals: `google.protobuf.Duration{seconds: 1}`.
//!
//! Only the well-known protobuf types can be constructed, and most become other values: a duration, the wrapped value, or
//! lists, maps and scalars for JSON. Error messages are kube-apiserver's and name Go types.

use crate::overload::Ty;
use crate::shape::ShapeKind;
use crate::val::{Arena, Duration, EvalError, Opaque, Res, Timestamp, Val};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use scantling_notation::{duration, timestamp};
use std::sync::Arc;

/// A message type.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [MessageField],
    make: Constructor,
}

/// A field of a message type.
#[derive(Debug)]
pub(crate) struct MessageField {
    pub(crate) name: &'static str,
    ty: FieldType,
}

/// The type of a field.
#[derive(Clone, Copy, Debug)]
enum FieldType {
    Int64,
    Int32,
    Uint64,
    Uint32,
    Double,
    Float,
    Bool,
    String,
    Bytes,
    /// `google.protobuf.NullValue`, an enumeration.
    Null,
    /// JSON values.
    Values,
    /// JSON values by name.
    Members,
    /// A message with a list of JSON values.
    List,
    /// A message with JSON values by name.
    Struct,
}

/// The value that a literal becomes.
#[derive(Clone, Copy, Debug)]
enum Constructor {
    Duration,
    Timestamp,
    /// The value of the only field.
    Single,
    /// The value of the last field.
    Last,
    Empty,
    /// None: kube-apiserver constructs the message but fails to convert it.
    Any,
}

/// `google.protobuf.Empty`, the only one that remains a message.
const EMPTY: &str = "google.protobuf.Empty";

macro_rules! messages {
    ($($name:literal => $make:ident { $($field:literal: $ty:ident),* })*) => {
        &[$(Message {
            name: concat!("google.protobuf.", $name),
            fields: &[$(MessageField { name: $field, ty: FieldType::$ty }),*],
            make: Constructor::$make,
        }),*]
    };
}

static MESSAGES: &[Message] = messages! {
    "Any" => Any { "type_url": String, "value": Bytes }
    "BoolValue" => Single { "value": Bool }
    "BytesValue" => Single { "value": Bytes }
    "DoubleValue" => Single { "value": Double }
    "Duration" => Duration { "seconds": Int64, "nanos": Int32 }
    "Empty" => Empty {}
    "FloatValue" => Single { "value": Float }
    "Int32Value" => Single { "value": Int32 }
    "Int64Value" => Single { "value": Int64 }
    "ListValue" => Single { "values": Values }
    "StringValue" => Single { "value": String }
    "Struct" => Single { "fields": Members }
    "Timestamp" => Timestamp { "seconds": Int64, "nanos": Int32 }
    "UInt32Value" => Single { "value": Uint32 }
    "UInt64Value" => Single { "value": Uint64 }
    "Value" => Last {
        "bool_value": Bool,
        "list_value": List,
        "null_value": Null,
        "number_value": Double,
        "string_value": String,
        "struct_value": Struct
    }
};

/// Looks up a message type.
pub(crate) fn find(name: &str) -> Option<&'static Message> {
    MESSAGES.iter().find(|message| message.name == name)
}

impl Message {
    pub(crate) fn field(&self, name: &str) -> Option<&'static MessageField> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Constructs a message from fields in source order.
    pub(crate) fn make<'a>(&self, arena: &'a Arena, fields: &[(&'static MessageField, Val<'a>)]) -> Res<'a> {
        let mut set = Vec::with_capacity(fields.len());
        for (field, value) in fields {
            // Every value is converted, even if a later one replaces it: a conversion error always counts.
            set.push((field.name, self.read(arena, field, *value)?));
        }
        // cel-go sets the fields one after the other, so the last of several values for one field counts.
        let last = |name: &str| set.iter().rev().find(|(n, _)| *n == name).map(|(_, v)| *v);
        let int = |name| last(name).map_or(Ok(0), Val::int);
        match self.make {
            Constructor::Duration => {
                let nanos = int("seconds")?
                    // Saturates instead of failing, as the conversion of protocol buffers to Go's `time.Duration` does.
                    .saturating_mul(NANOS)
                    .saturating_add(int("nanos")?);
                Ok(Val::Duration(Duration { nanos }))
            }
            Constructor::Timestamp => {
                let nanos = int("nanos")?;
                Ok(Val::Timestamp(Timestamp {
                    // `nanos` may be negative or exceed a second. The remainder is below 10^9, so the conversion cannot
                    // fail.
                    seconds: int("seconds")?.saturating_add(nanos.div_euclid(NANOS)),
                    nanos: u32::try_from(nanos.rem_euclid(NANOS)).unwrap_or_default(),
                    offset: 0,
                }))
            }
            Constructor::Single => match (set.last(), self.fields) {
                (Some((_, value)), _) => Ok(*value),
                (None, [field]) => field.ty.zero(arena),
                // Not reached: messages of this kind have exactly one field.
                (None, _) => Err(EvalError::NoSuchOverload),
            },
            Constructor::Last => Ok(set.last().map_or(Val::Null, |(_, value)| *value)),
            Constructor::Empty => arena.opaque(EmptyMessage),
            Constructor::Any => {
                let display: Vec<String> = set
                    .iter()
                    .map(|(name, v)| format!("{name}:{}", quoted(*v)))
                    .collect();
                Err(EvalError::message(format!(
                    "unsupported conversion to ref.Val: (*dynamicpb.Message){}",
                    display.join(" ")
                )))
            }
        }
    }

    fn read<'a>(&self, arena: &'a Arena, field: &MessageField, value: Val<'a>) -> Res<'a> {
        let iterable = match field.ty {
            FieldType::Values => value.as_list().is_some(),
            FieldType::Members => value.as_map().is_some(),
            _ => true,
        };
        let place = format_args!("{}.{}", self.name, field.name);
        if !iterable {
            let found = match value.as_map() {
                Some(_) => "map(dyn, dyn)",
                None if value.as_list().is_some() => "list(dyn)",
                None => value.type_name(),
            };
            return Err(EvalError::message(format!(
                "unsupported field type for {place}: {found}"
            )));
        }
        field.ty.read(arena, value).map_err(|e| {
            if e.is_final() {
                e
            } else {
                EvalError::message(format!("field type conversion error for {place} value type: {e}"))
            }
        })
    }
}

const NANOS: i64 = 1_000_000_000;

impl MessageField {
    /// The CEL type of the field.
    pub(crate) fn ty(&self) -> Ty {
        match self.ty {
            FieldType::Int64 | FieldType::Int32 | FieldType::Null => Ty::Int,
            FieldType::Uint64 | FieldType::Uint32 => Ty::Uint,
            FieldType::Double | FieldType::Float => Ty::Double,
            FieldType::Bool => Ty::Bool,
            FieldType::String => Ty::String,
            FieldType::Bytes => Ty::Bytes,
            FieldType::Values | FieldType::List => Ty::List(&Ty::Dyn),
            FieldType::Members | FieldType::Struct => Ty::Map(&Ty::String, &Ty::Dyn),
        }
    }
}

impl FieldType {
    /// The value of an unset field.
    fn zero(self, arena: &Arena) -> Res<'_> {
        match self {
            FieldType::Int64 | FieldType::Int32 => Ok(Val::Int(0)),
            FieldType::Uint64 | FieldType::Uint32 => Ok(Val::Uint(0)),
            FieldType::Double | FieldType::Float => Ok(Val::Double(0.0)),
            FieldType::Bool => Ok(Val::FALSE),
            FieldType::String => Ok(Val::Str("")),
            FieldType::Bytes => Ok(Val::Bytes(&[])),
            FieldType::Null => Ok(Val::Null),
            FieldType::Values | FieldType::List => arena.list([]),
            FieldType::Members | FieldType::Struct => arena.map(Vec::new()),
        }
    }

    /// The Go type of the field.
    fn native(self) -> &'static str {
        match self {
            FieldType::Int64 => "int64",
            FieldType::Int32 => "int32",
            FieldType::Uint64 => "uint64",
            FieldType::Uint32 => "uint32",
            FieldType::Double => "float64",
            FieldType::Float => "float32",
            FieldType::Bool => "bool",
            FieldType::String => "string",
            FieldType::Bytes => "[]uint8",
            FieldType::Null => "protoreflect.EnumNumber",
            FieldType::Values | FieldType::Members => "*structpb.Value",
            FieldType::List => "*structpb.ListValue",
            FieldType::Struct => "*structpb.Struct",
        }
    }

    /// Converts a value to the type of the field.
    #[expect(clippy::cast_possible_truncation, reason = "the field has no more digits")]
    fn read<'a>(self, arena: &'a Arena, value: Val<'a>) -> Res<'a> {
        match (self, value) {
            (_, Val::Optional(Some(value))) => self.read(arena, *value),
            (_, Val::Optional(None)) => Err(EvalError::message("optional.none() dereference")),
            (FieldType::Int64, Val::Int(_))
            | (FieldType::Uint64, Val::Uint(_))
            | (FieldType::Double, Val::Double(_))
            | (FieldType::Bool, Val::Bool(_))
            | (FieldType::String, Val::Str(_))
            | (FieldType::Bytes, Val::Bytes(_)) => Ok(value),
            (FieldType::Int32, Val::Int(i)) if i32::try_from(i).is_err() => Err(EvalError::IntOverflow),
            (FieldType::Int32, Val::Int(_)) => Ok(value),
            (FieldType::Uint32, Val::Uint(u)) if u32::try_from(u).is_err() => Err(EvalError::UintOverflow),
            (FieldType::Uint32, Val::Uint(_)) => Ok(value),
            (FieldType::Float, Val::Double(d)) => Ok(Val::Double(f64::from(d as f32))),
            // Any number is accepted for the only value of the enumeration.
            (FieldType::Null, Val::Int(_)) => Ok(Val::Null),
            (FieldType::Values, _) => json_list(arena, value),
            (FieldType::Members, _) => json_object(arena, value),
            (FieldType::List, _) if value.as_list().is_some() && !has_schema(value) => {
                json_list(arena, value)
            }
            (FieldType::Struct, _) if value.as_map().is_some() && !has_schema(value) => {
                json_object(arena, value)
            }
            _ => Err(no_conversion(value, self.native())),
        }
    }
}

/// Returns whether a list or map comes from an object with a schema. kube-apiserver does not convert these to messages.
fn has_schema(value: Val<'_>) -> bool {
    matches!(value, Val::JsonList(_, shape) | Val::JsonMap(_, shape) if !matches!(shape.kind, ShapeKind::Dyn))
}

fn json_list<'a>(arena: &'a Arena, list: Val<'a>) -> Res<'a> {
    let items = list.list()?.iter(arena).map(|item| json(arena, item?));
    arena.list(items.collect::<Result<Vec<_>, _>>()?)
}

fn json_object<'a>(arena: &'a Arena, map: Val<'a>) -> Res<'a> {
    let members = map.map()?.entries(arena).map(|(name, value)| {
        let name = FieldType::String.read(arena, name)?;
        Ok((name, json(arena, value?)?))
    });
    arena.map(members.collect::<Result<Vec<_>, EvalError>>()?)
}

/// Converts a value to JSON; types without a JSON form become strings.
fn json<'a>(arena: &'a Arena, value: Val<'a>) -> Res<'a> {
    // A double represents every integer up to here exactly.
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
        Val::Optional(None) => Err(EvalError::message("optional.none() dereference")),
        _ if value.as_list().is_some() && !has_schema(value) => json_list(arena, value),
        _ if value.as_map().is_some() && !has_schema(value) => json_object(arena, value),
        // JSON has no form for types, opaque values, and input with a schema.
        _ => Err(no_conversion(value, FieldType::Values.native())),
    }
}

/// The error for a value that does not convert to the type of a field.
#[cold]
fn no_conversion(value: Val<'_>, to: &str) -> EvalError {
    let from = match value {
        Val::Int(_) => return EvalError::message(format!("unsupported type conversion from 'int' to {to}")),
        Val::Uint(_) => {
            return EvalError::message(format!("unsupported type conversion from 'uint' to {to}"));
        }
        Val::Str(_) => {
            return EvalError::message(format!("unsupported native conversion from string to '{to}'"));
        }
        Val::Type(_) => return EvalError::message("type conversion not supported for 'type'"),
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
            return EvalError::message(format!("type conversion error from '{name}' to '{to}'"));
        }
    };
    EvalError::message(format!("type conversion error from {from} to '{to}'"))
}

/// A value in protobuf text format.
fn quoted(value: Val<'_>) -> String {
    match value {
        Val::Str(text) => format!("{text:?}"),
        Val::Bytes(bytes) => format!("\"{}\"", bytes.escape_ascii()),
        _ => value.to_string(),
    }
}

/// The message without fields.
#[derive(Debug)]
struct EmptyMessage;

impl Opaque for EmptyMessage {
    fn type_name(&self) -> &'static str {
        EMPTY
    }

    fn equals(&self, other: Val<'_>) -> Result<bool, EvalError> {
        Ok(matches!(other, Val::Opaque(o) if o.downcast::<EmptyMessage>().is_some()))
    }

    fn share(&self) -> Arc<dyn Opaque> {
        Arc::new(EmptyMessage)
    }
}
