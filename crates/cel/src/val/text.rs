//! Values in error messages.

use super::Val;
use scantling_notation::{duration, timestamp};
use scantling_value::go;
use std::fmt;

/// The name of the Go type in kube-apiserver's messages.
pub(crate) fn go_kind(value: Val<'_>) -> &str {
    match value {
        Val::Null => "types.Null",
        Val::Bool(_) => "types.Bool",
        Val::Int(_) => "types.Int",
        Val::Uint(_) => "types.Uint",
        Val::Double(_) => "types.Double",
        Val::Str(_) => "types.String",
        Val::Bytes(_) => "types.Bytes",
        Val::Duration(_) => "types.Duration",
        Val::Timestamp(_) => "types.Timestamp",
        Val::JsonList(..) | Val::List(_) | Val::OwnedList(_) => "*types.baseList",
        Val::JsonMap(..) | Val::Map(_) | Val::OwnedMap(_) => "*types.baseMap",
        Val::Type(_) => "*types.Type",
        Val::Optional(_) => "*types.Optional",
        Val::Opaque(o) => o.type_name(),
    }
}

/// The text of a value in an error message: `no such key: x`.
impl fmt::Display for Val<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Val::Null => f.write_str("0"),
            Val::Bool(b) => write!(f, "{b}"),
            Val::Int(i) => write!(f, "{i}"),
            Val::Uint(u) => write!(f, "{u}"),
            Val::Double(d) => f.write_str(&go::float_v(*d)),
            Val::Str(s) => f.write_str(s),
            Val::Type(name) => f.write_str(name),
            Val::Duration(d) => f.write_str(&duration::in_units(d.nanos)),
            Val::Timestamp(t) => f.write_str(&timestamp::with_zone((*t).into())),
            Val::Bytes(b) => {
                let bytes: Vec<_> = b.iter().map(u8::to_string).collect();
                write!(f, "[{}]", bytes.join(" "))
            }
            Val::Optional(Some(v)) => write!(f, "optional({v})"),
            Val::Optional(None) => f.write_str("optional.none()"),
            other => f.write_str(other.type_name()),
        }
    }
}
