//! The types of expressions.

use crate::shape::Shape;
use std::fmt;
use std::sync::Arc;

/// The type of an expression. `Display` is the notation of checker messages: `list(int)`, `map(string, dyn)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Known only at run time.
    Dyn,
    /// The type of an expression that did not check; compatible with everything, so that one mistake is one message.
    Error,
    /// `null_type`
    Null,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `uint`
    Uint,
    /// `double`
    Double,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `google.protobuf.Duration`
    Duration,
    /// `google.protobuf.Timestamp`
    Timestamp,
    /// `list(E)`
    List(Arc<Type>),
    /// `map(K, V)`
    Map(Arc<(Type, Type)>),
    /// `type(T)`: the type of a type; `type` alone where it is not known of which.
    Type(Option<Arc<Type>>),
    /// A type that also allows `null` (`wrapper(int)`); never a wrapper of a wrapper.
    Wrapper(Arc<Type>),
    /// A type parameter of a declaration.
    Param(Arc<str>),
    /// A variable of inference; none is left in what the checker gives.
    Var(u32),
    /// A type with a name and parameters that only functions look into: `optional_type(T)`, `net.IP`, …
    Opaque(Arc<str>, Arc<[Type]>),
    /// A message type that shows no fields: `kubernetes.Quantity`, …
    Message(Arc<str>),
    /// An object with declared fields.
    Object(ObjectType),
}

/// The name of the type of optional values.
pub const OPTIONAL: &str = "optional_type";

impl Type {
    /// `list(element)`
    pub fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    /// `map(key, value)`
    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    /// `optional_type(value)`
    pub fn optional(value: Type) -> Type {
        Type::Opaque(OPTIONAL.into(), Arc::new([value]))
    }

    /// `type(of)`
    pub fn of_type(of: Type) -> Type {
        Type::Type(Some(Arc::new(of)))
    }

    /// The name by which a running expression knows the type: without parameters, in full.
    pub fn name(&self) -> &str {
        match self {
            Type::Dyn | Type::Var(_) => "dyn",
            Type::Error => "error",
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Duration => "google.protobuf.Duration",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::List(_) => "list",
            Type::Map(_) => "map",
            Type::Type(_) => "type",
            Type::Wrapper(of) => of.name(),
            Type::Param(name) | Type::Opaque(name, _) | Type::Message(name) => name,
            Type::Object(object) => &object.name,
        }
    }

    /// The type without the `null` that it also allows, if it does.
    pub fn unwrapped(&self) -> &Type {
        match self {
            Type::Wrapper(of) => of,
            _ => self,
        }
    }

    /// What an optional type may hold; `None` for other types.
    pub fn optional_value(&self) -> Option<&Type> {
        match self {
            Type::Opaque(name, params) if name.as_ref() == OPTIONAL => params.first(),
            _ => None,
        }
    }

    /// The first parameter of a type that has any: a list's element, a map's key, an optional's value.
    pub fn first_param(&self) -> Option<&Type> {
        match self {
            Type::List(element) => Some(element),
            Type::Map(entry) => Some(&entry.0),
            Type::Type(of) => of.as_deref(),
            Type::Opaque(_, params) => params.first(),
            Type::Wrapper(of) => of.first_param(),
            _ => None,
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Dyn => f.write_str("dyn"),
            Type::Error => f.write_str("!error!"),
            Type::Null => f.write_str("null"),
            Type::Bool => f.write_str("bool"),
            Type::Int => f.write_str("int"),
            Type::Uint => f.write_str("uint"),
            Type::Double => f.write_str("double"),
            Type::String => f.write_str("string"),
            Type::Bytes => f.write_str("bytes"),
            Type::Duration => f.write_str("duration"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::List(element) => write!(f, "list({element})"),
            Type::Map(entry) => write!(f, "map({}, {})", entry.0, entry.1),
            Type::Type(Some(of)) => write!(f, "type({of})"),
            Type::Type(None) => f.write_str("type"),
            Type::Wrapper(of) => write!(f, "wrapper({of})"),
            Type::Var(n) => write!(f, "_var{n}"),
            Type::Param(name) | Type::Message(name) => f.write_str(name),
            Type::Opaque(name, params) => {
                f.write_str(name)?;
                for (i, param) in params.iter().enumerate() {
                    f.write_str(if i == 0 { "(" } else { ", " })?;
                    param.fmt(f)?;
                }
                f.write_str(if params.is_empty() { "" } else { ")" })
            }
            Type::Object(object) => f.write_str(&object.name),
        }
    }
}

/// An object type: a name, by which types are told apart, and the shape that says which fields it has.
#[derive(Clone)]
pub struct ObjectType {
    /// The full name; for types made from a schema, the path to the place (`selfType.spec.list.@idx`).
    pub name: Arc<str>,
    /// The fields. Always [`crate::shape::Kind::Object`].
    pub shape: Arc<Shape>,
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
impl Eq for ObjectType {}
impl fmt::Debug for ObjectType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({})", self.name)
    }
}
