//! The input of decoding: values, or raw JSON text.

use scantling_value::json::RawJson;
use scantling_value::{Str, Value};

/// A document, or a part of one.
pub trait DecodeSource: Sized {
    /// True if a member may occur more than once.
    const HAS_DUPLICATES: bool;

    /// Returns whether it is `null`.
    fn is_null(&self) -> bool;
    /// The first number out of the range of a float, as written.
    fn out_of_range(&self) -> Option<Str>;
    /// The outermost level.
    fn node(self) -> SourceNode<Self>;
    /// Converts it to a value, regardless of its type.
    fn into_value(self) -> Value;
}

/// One level of a document.
#[derive(Debug)]
pub enum SourceNode<S: DecodeSource> {
    /// `null`
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(SourceNumber),
    /// A string.
    String(Str),
    /// The elements of an array.
    List(Vec<S>),
    /// The members of an object, in decoding order.
    Object(std::vec::IntoIter<(Str, S)>),
}

/// A number and its notation, if known.
#[derive(Debug)]
pub struct SourceNumber {
    /// The number.
    pub value: Value,
    text: Option<Str>,
}

impl SourceNumber {
    /// The number as written, if known.
    pub(super) fn literal(&self) -> String {
        match &self.text {
            Some(text) => text.to_string(),
            None => self.value.to_json(),
        }
    }
}

impl<S: DecodeSource> SourceNode<S> {
    /// The name of the value's type in the errors of Go's decoder.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            SourceNode::Null => "null",
            SourceNode::Bool(_) => "bool",
            SourceNode::Number(_) => "number",
            SourceNode::String(_) => "string",
            SourceNode::List(_) => "array",
            SourceNode::Object(_) => "object",
        }
    }
}

impl DecodeSource for Value {
    const HAS_DUPLICATES: bool = false;

    fn is_null(&self) -> bool {
        Value::is_null(self)
    }

    fn out_of_range(&self) -> Option<Str> {
        None
    }

    fn node(self) -> SourceNode<Value> {
        match self {
            Value::Null => SourceNode::Null,
            Value::Bool(b) => SourceNode::Bool(b),
            value @ (Value::Int(_) | Value::Float(_)) => {
                SourceNode::Number(SourceNumber { value, text: None })
            }
            Value::String(s) => SourceNode::String(s),
            Value::Array(items) => SourceNode::List(items),
            Value::Object(members) => SourceNode::Object(members.into_iter()),
        }
    }

    fn into_value(self) -> Value {
        self
    }
}

impl DecodeSource for RawJson {
    const HAS_DUPLICATES: bool = true;

    fn is_null(&self) -> bool {
        matches!(self, RawJson::Null)
    }

    fn out_of_range(&self) -> Option<Str> {
        RawJson::out_of_range(self).cloned()
    }

    fn node(self) -> SourceNode<RawJson> {
        match self {
            RawJson::Null => SourceNode::Null,
            RawJson::Bool(b) => SourceNode::Bool(b),
            RawJson::Number(number) => SourceNode::Number(SourceNumber {
                value: number.value,
                text: Some(number.text),
            }),
            RawJson::Text(s) => SourceNode::String(s),
            RawJson::Array(items) => SourceNode::List(items),
            RawJson::Object(members) => SourceNode::Object(members.into_iter()),
        }
    }

    fn into_value(self) -> Value {
        self.into()
    }
}
