//! Values at run time.
//!
//! A [`Val`] is three words and [`Copy`]. Scalars are stored inline; everything else is borrowed from the input (JSON with
//! its [`Shape`]), from the program (constants), or from the [`Arena`] of the evaluation, which owns intermediate values.
//! Values are not reference-counted, and a rule that only reads its input allocates nothing.

mod arena;
mod equal;
mod error;
mod json;
mod list;
mod map;
mod order;
mod owned;
mod text;
mod time;

pub use arena::Arena;
pub use equal::equal;
pub use error::EvalError;
pub use json::{DYN, read};
pub(crate) use list::element_shape;
pub use list::{List, ListData, add, contains};
pub(crate) use map::is_same_key;
pub use map::{Map, key_order};
pub use order::compare;
pub(crate) use owned::find_key;
pub use owned::{Owned, OwnedMap};
pub(crate) use text::go_kind;
pub use time::{Duration, Timestamp};

use crate::shape::Shape;
use scantling_value::{Map as JsonObject, Value};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// The result of an operation.
pub type Res<'a> = Result<Val<'a>, EvalError>;

/// A value.
#[derive(Clone, Copy, Debug)]
pub enum Val<'a> {
    /// `null`
    Null,
    /// `bool`
    Bool(bool),
    /// `int`
    Int(i64),
    /// `uint`
    Uint(u64),
    /// `double`
    Double(f64),
    /// `string`
    Str(&'a str),
    /// `bytes`
    Bytes(&'a [u8]),
    /// `google.protobuf.Duration`
    Duration(Duration),
    /// `google.protobuf.Timestamp`
    Timestamp(Timestamp),
    /// A list of the input. [`Val::as_list`] covers all representations.
    JsonList(&'a Vec<Value>, &'a Shape),
    /// A list made by the program.
    List(&'a ListData<'a>),
    /// A constant list.
    OwnedList(&'a [Owned]),
    /// An object or map of the input. [`Val::as_map`] covers all representations.
    JsonMap(&'a JsonObject, &'a Shape),
    /// A map made by the program: sorted by [`key_order`].
    Map(&'a [(Val<'a>, Val<'a>)]),
    /// A constant map, sorted by [`key_order`].
    OwnedMap(&'a [(Owned, Owned)]),
    /// A type, by its name.
    Type(&'a str),
    /// `optional_type`
    Optional(Option<&'a Val<'a>>),
    /// A value that only functions can inspect.
    Opaque(&'a dyn Opaque),
}

// A larger value would slow down every op, because values and results are copied all the time.
const _: () = assert!(size_of::<Val<'_>>() == 24);
const _: () = assert!(size_of::<Res<'_>>() == 24);

/// A value that only functions can inspect: a quantity, an IP address.
pub trait Opaque: fmt::Debug + Send + Sync + Any {
    /// The name of its type: `kubernetes.Quantity`.
    fn type_name(&self) -> &'static str;

    /// Compares with a value of any type; an error if the two are not comparable.
    fn equals(&self, other: Val<'_>) -> Result<bool, EvalError>;

    /// The size for the cost; `None` if it has no size.
    fn size(&self) -> Option<u64> {
        None
    }

    /// A copy that outlives the evaluation.
    fn share(&self) -> Arc<dyn Opaque>;
}

/// Implements [`Opaque`] for a type whose values are equal if `==` says so, and have the given size.
macro_rules! opaque {
    ($type:ty, $name:expr $(, size: $size:expr)?) => {
        impl $crate::val::Opaque for $type {
            fn type_name(&self) -> &'static str {
                $name
            }

            fn equals(&self, other: Val<'_>) -> Result<bool, EvalError> {
                other.opaque::<$type>().map(|other| self == other)
            }
            $(
                fn size(&self) -> Option<u64> {
                    let size: fn(&$type) -> u64 = $size;
                    Some(size(self))
                }
            )?

            fn share(&self) -> std::sync::Arc<dyn $crate::val::Opaque> {
                std::sync::Arc::new(self.clone())
            }
        }
    };
}
pub(crate) use opaque;

impl dyn Opaque {
    /// The value itself, if it is a `T`.
    pub fn downcast<T: Opaque>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

impl<'a> Val<'a> {
    /// `true`
    pub const TRUE: Val<'static> = Val::Bool(true);
    /// `false`
    pub const FALSE: Val<'static> = Val::Bool(false);
    /// `optional.none()`
    pub const NONE: Val<'static> = Val::Optional(None);

    /// The name of the value's type.
    pub fn type_name(self) -> &'a str {
        match self {
            Val::Null => "null_type",
            Val::Bool(_) => "bool",
            Val::Int(_) => "int",
            Val::Uint(_) => "uint",
            Val::Double(_) => "double",
            Val::Str(_) => "string",
            Val::Bytes(_) => "bytes",
            Val::Duration(_) => "google.protobuf.Duration",
            Val::Timestamp(_) => "google.protobuf.Timestamp",
            Val::JsonList(..) | Val::List(_) | Val::OwnedList(_) => "list",
            Val::JsonMap(..) | Val::Map(_) | Val::OwnedMap(_) => "map",
            Val::Type(_) => "type",
            Val::Optional(_) => "optional_type",
            Val::Opaque(o) => o.type_name(),
        }
    }

    /// The list, if this is one.
    pub fn as_list(self) -> Option<List<'a>> {
        match self {
            Val::JsonList(items, shape) => Some(List::Json(items, shape)),
            Val::List(data) => Some(List::Data(data)),
            Val::OwnedList(items) => Some(List::Owned(items)),
            _ => None,
        }
    }

    /// The map, if this is one.
    pub fn as_map(self) -> Option<Map<'a>> {
        match self {
            Val::JsonMap(object, shape) => Some(Map::Json(object, shape)),
            Val::Map(entries) => Some(Map::Vals(entries)),
            Val::OwnedMap(entries) => Some(Map::Owned(entries)),
            _ => None,
        }
    }

    /// The list, or `no such overload`.
    pub fn list(self) -> Result<List<'a>, EvalError> {
        self.as_list().ok_or(EvalError::NoSuchOverload)
    }

    /// The map, or `no such overload`.
    pub fn map(self) -> Result<Map<'a>, EvalError> {
        self.as_map().ok_or(EvalError::NoSuchOverload)
    }

    /// The boolean, or `no such overload`.
    pub fn bool(self) -> Result<bool, EvalError> {
        let Val::Bool(b) = self else {
            return Err(EvalError::NoSuchOverload);
        };
        Ok(b)
    }

    /// The integer, or `no such overload`.
    pub fn int(self) -> Result<i64, EvalError> {
        let Val::Int(i) = self else {
            return Err(EvalError::NoSuchOverload);
        };
        Ok(i)
    }

    /// The string, or `no such overload`.
    pub fn str(self) -> Result<&'a str, EvalError> {
        let Val::Str(s) = self else {
            return Err(EvalError::NoSuchOverload);
        };
        Ok(s)
    }

    /// The bytes, or `no such overload`.
    pub fn bytes(self) -> Result<&'a [u8], EvalError> {
        let Val::Bytes(b) = self else {
            return Err(EvalError::NoSuchOverload);
        };
        Ok(b)
    }

    /// The value of an optional, or `no such overload`.
    pub fn optional(self) -> Result<Option<Val<'a>>, EvalError> {
        let Val::Optional(o) = self else {
            return Err(EvalError::NoSuchOverload);
        };
        Ok(o.copied())
    }

    /// The opaque value of type `T`, or `no such overload`.
    pub fn opaque<T: Opaque>(self) -> Result<&'a T, EvalError> {
        if let Val::Opaque(o) = self {
            o.downcast().ok_or(EvalError::NoSuchOverload)
        } else {
            Err(EvalError::NoSuchOverload)
        }
    }

    /// The size for the cost: characters, bytes, elements or entries; 1 for values without a size.
    pub fn cost_size(self) -> u64 {
        let size = match self {
            Val::Str(s) => return text_size(s),
            Val::Bytes(b) => b.len(),
            Val::JsonList(items, _) => items.len(),
            Val::List(data) => data.len(),
            Val::OwnedList(items) => items.len(),
            Val::JsonMap(object, _) => object.len(),
            Val::Map(entries) => entries.len(),
            Val::OwnedMap(entries) => entries.len(),
            // cel-go looks through optionals; an empty one has no size and counts as 1.
            Val::Optional(Some(v)) => return v.cost_size(),
            Val::Opaque(o) => return o.size().unwrap_or(1),
            _ => 1,
        };
        size as u64
    }
}

/// The size of a string in characters.
pub(crate) fn text_size(text: &str) -> u64 {
    // Most text is ASCII, and checking that is faster than counting characters.
    let size = if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    };
    size as u64
}

impl<'a> From<List<'a>> for Val<'a> {
    fn from(list: List<'a>) -> Self {
        match list {
            List::Json(items, shape) => Val::JsonList(items, shape),
            List::Data(data) => Val::List(data),
            List::Owned(items) => Val::OwnedList(items),
        }
    }
}

impl<'a> From<Map<'a>> for Val<'a> {
    fn from(map: Map<'a>) -> Self {
        match map {
            Map::Json(object, shape) => Val::JsonMap(object, shape),
            Map::Vals(entries) => Val::Map(entries),
            Map::Owned(entries) => Val::OwnedMap(entries),
        }
    }
}
