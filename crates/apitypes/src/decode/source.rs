//! What objects are decoded from: values, or texts as they were written.

use scantling_value::json::Written;
use scantling_value::{Str, Value};

/// A document, or a part of one.
pub trait Source: Sized {
    /// Whether a member may occur more than once.
    const HAS_DUPLICATES: bool;

    /// Whether it is `null`.
    fn is_null(&self) -> bool;
    /// The first number in it that no floating-point number holds, as it was written.
    fn out_of_range(&self) -> Option<Str>;
    /// Its outermost level.
    fn node(self) -> Node<Self>;
    /// The value that it is, whatever its type.
    fn into_value(self) -> Value;
}

/// One level of a document.
#[derive(Debug)]
pub enum Node<S: Source> {
    /// `null`
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    String(Str),
    /// The elements of an array.
    List(Vec<S>),
    /// The members of an object, in the order in which they are decoded.
    Object(std::vec::IntoIter<(Str, S)>),
}

/// A number and, where it is known, how it was written.
#[derive(Debug)]
pub struct Number {
    /// The number.
    pub value: Value,
    text: Option<Str>,
}

impl Number {
    /// The number as it was written, as far as that is known.
    pub(super) fn literal(&self) -> String {
        match &self.text {
            Some(text) => text.to_string(),
            None => self.value.to_json(),
        }
    }
}

impl<S: Source> Node<S> {
    /// What Go's decoder calls it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Node::Null => "null",
            Node::Bool(_) => "bool",
            Node::Number(_) => "number",
            Node::String(_) => "string",
            Node::List(_) => "array",
            Node::Object(_) => "object",
        }
    }
}

impl Source for Value {
    const HAS_DUPLICATES: bool = false;

    fn is_null(&self) -> bool {
        Value::is_null(self)
    }

    fn out_of_range(&self) -> Option<Str> {
        None
    }

    fn node(self) -> Node<Value> {
        match self {
            Value::Null => Node::Null,
            Value::Bool(b) => Node::Bool(b),
            value @ (Value::Int(_) | Value::Float(_)) => Node::Number(Number { value, text: None }),
            Value::String(s) => Node::String(s),
            Value::Array(items) => Node::List(items),
            Value::Object(members) => Node::Object(members.into_iter()),
        }
    }

    fn into_value(self) -> Value {
        self
    }
}

impl Source for Written {
    const HAS_DUPLICATES: bool = true;

    fn is_null(&self) -> bool {
        matches!(self, Written::Null)
    }

    fn out_of_range(&self) -> Option<Str> {
        Written::out_of_range(self).cloned()
    }

    fn node(self) -> Node<Written> {
        match self {
            Written::Null => Node::Null,
            Written::Bool(b) => Node::Bool(b),
            Written::Number(number) => Node::Number(Number {
                value: number.value,
                text: Some(number.text),
            }),
            Written::Text(s) => Node::String(s),
            Written::Array(items) => Node::List(items),
            Written::Object(members) => Node::Object(members.into_iter()),
        }
    }

    fn into_value(self) -> Value {
        self.into()
    }
}
