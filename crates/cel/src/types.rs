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
    /// `type(T)`: the type of a type.
    Type(Arc<Type>),
    /// A nullable scalar (`wrapper(int)`).
    Wrapper(Arc<Type>),
    /// A type parameter of a declaration, or a variable of inference.
    Param(Arc<str>),
    /// A type with a name and parameters that only functions look into: `optional_type(T)`, `kubernetes.Quantity`, …
    Opaque(Arc<str>, Arc<[Type]>),
    /// An object with declared fields.
    Object(ObjectType),
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
