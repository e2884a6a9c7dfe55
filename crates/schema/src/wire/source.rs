//! What typed documents are decoded from: values, or texts as they were written.

use scantling_value::json::Written;
use scantling_value::{Str, Value};

/// A document, or a part of one.
pub(crate) trait Source: Sized {
    /// Whether a member may stand more than once.
    const REPEATS: bool;

    /// Whether it is nothing.
    fn is_null(&self) -> bool;
    /// The first number in it that is out of all range, as it was written.
    fn out_of_range(&self) -> Option<Str>;
    /// What it is.
    fn node(self) -> Node<Self>;
    /// The value that it is, whatever its type.
    fn into_value(self) -> Value;
}

/// One level of a document.
pub(crate) enum Node<S: Source> {
    Null,
    Bool(bool),
    Number(Number),
    Text(Str),
    List(Vec<S>),
    /// The members, in the order in which they are looked at.
    Object(std::vec::IntoIter<(Str, S)>),
}

/// A number and, where it is known, how it was written.
pub(crate) struct Number {
    pub(crate) value: Value,
    text: Option<Str>,
}

impl Number {
    /// The number as it was written, as far as that is known.
    pub(crate) fn literal(&self) -> String {
        match &self.text {
            Some(text) => text.to_string(),
            None => self.value.to_json(),
        }
    }
}

impl<S: Source> Node<S> {
    /// What the server's decoder calls it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Node::Null => "null",
            Node::Bool(_) => "bool",
            Node::Number(_) => "number",
            Node::Text(_) => "string",
            Node::List(_) => "array",
            Node::Object(_) => "object",
        }
    }
}

impl Source for Value {
    const REPEATS: bool = false;

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
            Value::String(s) => Node::Text(s),
            Value::Array(items) => Node::List(items),
            Value::Object(members) => Node::Object(members.into_iter()),
        }
    }

    fn into_value(self) -> Value {
        self
    }
}

impl Source for Written {
    const REPEATS: bool = true;

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
            Written::Text(s) => Node::Text(s),
            Written::Array(items) => Node::List(items),
            Written::Object(members) => Node::Object(members.into_iter()),
        }
    }

    fn into_value(self) -> Value {
        self.into()
    }
}
