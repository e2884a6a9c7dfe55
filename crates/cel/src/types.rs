//! The types of expressions.

use crate::shape::Shape;
use std::fmt;
use std::sync::Arc;

/// The type of an expression. `Display` is the notation of checker messages: `list(int)`, `map(string, dyn)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CelType {
    /// Known only at run time.
    Dyn,
    /// The type of an expression with an error. It is compatible with every type, so that one mistake gives one error.
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
    List(Arc<CelType>),
    /// `map(K, V)`
    Map(Arc<(CelType, CelType)>),
    /// `type(T)`, or `type` if `T` is unknown.
    Type(Option<Arc<CelType>>),
    /// A type that also allows `null` (`wrapper(int)`); never a wrapper of a wrapper.
    Wrapper(Arc<CelType>),
    /// A type parameter of a declaration.
    Param(Arc<str>),
    /// A type variable. The result of the checker contains none.
    Var(u32),
    /// A named type with parameters that only functions can inspect: `optional_type(T)`, `net.IP`, …
    Opaque(Arc<str>, Arc<[CelType]>),
    /// A message type without visible fields: `kubernetes.Quantity`, …
    Message(Arc<str>),
    /// An object with declared fields.
    Object(ObjectType),
}

/// The name of the type of optional values.
pub const OPTIONAL: &str = "optional_type";

impl CelType {
    /// `list(element)`
    pub fn list(element: CelType) -> CelType {
        CelType::List(Arc::new(element))
    }

    /// `map(key, value)`
    pub fn map(key: CelType, value: CelType) -> CelType {
        CelType::Map(Arc::new((key, value)))
    }

    /// `optional_type(value)`
    pub fn optional(value: CelType) -> CelType {
        CelType::Opaque(OPTIONAL.into(), Arc::new([value]))
    }

    /// `type(of)`
    pub fn of_type(of: CelType) -> CelType {
        CelType::Type(Some(Arc::new(of)))
    }

    /// The qualified name at run time, without parameters.
    pub fn name(&self) -> &str {
        match self {
            CelType::Dyn | CelType::Var(_) => "dyn",
            CelType::Error => "error",
            CelType::Null => "null_type",
            CelType::Bool => "bool",
            CelType::Int => "int",
            CelType::Uint => "uint",
            CelType::Double => "double",
            CelType::String => "string",
            CelType::Bytes => "bytes",
            CelType::Duration => "google.protobuf.Duration",
            CelType::Timestamp => "google.protobuf.Timestamp",
            CelType::List(_) => "list",
            CelType::Map(_) => "map",
            CelType::Type(_) => "type",
            CelType::Wrapper(of) => of.name(),
            CelType::Param(name) | CelType::Opaque(name, _) | CelType::Message(name) => name,
            CelType::Object(object) => &object.name,
        }
    }

    /// The wrapped type of a wrapper, or the type itself.
    pub fn unwrapped(&self) -> &CelType {
        match self {
            CelType::Wrapper(of) => of,
            _ => self,
        }
    }

    /// The value type of an optional type; `None` for other types.
    pub fn optional_value(&self) -> Option<&CelType> {
        match self {
            CelType::Opaque(name, params) if name.as_ref() == OPTIONAL => params.first(),
            _ => None,
        }
    }

    /// The first parameter of a type that has any: a list's element, a map's key, an optional's value.
    pub fn first_param(&self) -> Option<&CelType> {
        match self {
            CelType::List(element) => Some(element),
            CelType::Map(entry) => Some(&entry.0),
            CelType::Type(of) => of.as_deref(),
            CelType::Opaque(_, params) => params.first(),
            CelType::Wrapper(of) => of.first_param(),
            _ => None,
        }
    }
}

impl fmt::Display for CelType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CelType::Dyn => f.write_str("dyn"),
            CelType::Error => f.write_str("!error!"),
            // Messages of the checker use cel-go's short names; at run time the type is called `null_type`.
            CelType::Null => f.write_str("null"),
            CelType::Bool => f.write_str("bool"),
            CelType::Int => f.write_str("int"),
            CelType::Uint => f.write_str("uint"),
            CelType::Double => f.write_str("double"),
            CelType::String => f.write_str("string"),
            CelType::Bytes => f.write_str("bytes"),
            CelType::Duration => f.write_str("duration"),
            CelType::Timestamp => f.write_str("timestamp"),
            CelType::List(element) => write!(f, "list({element})"),
            CelType::Map(entry) => write!(f, "map({}, {})", entry.0, entry.1),
            CelType::Type(Some(of)) => write!(f, "type({of})"),
            CelType::Type(None) => f.write_str("type"),
            CelType::Wrapper(of) => write!(f, "wrapper({of})"),
            // The names that cel-go gives to its type variables; they appear in messages about mismatches.
            CelType::Var(n) => write!(f, "_var{n}"),
            CelType::Param(name) | CelType::Message(name) => f.write_str(name),
            CelType::Opaque(name, params) => {
                f.write_str(name)?;
                for (i, param) in params.iter().enumerate() {
                    f.write_str(if i == 0 { "(" } else { ", " })?;
                    param.fmt(f)?;
                }
                f.write_str(if params.is_empty() { "" } else { ")" })
            }
            CelType::Object(object) => f.write_str(&object.name),
        }
    }
}

/// An object type. Its name is its identity; its shape has the fields.
#[derive(Clone)]
pub struct ObjectType {
    /// The qualified name; for schema types the path to the schema node (`selfType.spec.list.@idx`).
    pub name: Arc<str>,
    /// The fields. Always [`crate::shape::ShapeKind::Object`].
    pub shape: Arc<Shape>,
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &Self) -> bool {
        // Names are unique within an environment, and comparing shapes would walk whole schemas.
        self.name == other.name
    }
}
impl Eq for ObjectType {}
impl fmt::Debug for ObjectType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({})", self.name)
    }
}
