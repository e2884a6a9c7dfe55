//! What objects are decoded from: values, or texts as they were written.

use scantling_value::json::RawJson;
use scantling_value::{Str, Value};

/// A document, or a part of one.
pub trait DecodeSource: Sized {
    /// Whether a member may occur more than once.
    const HAS_DUPLICATES: bool;

    /// Whether it is `null`.
    fn is_null(&self) -> bool;
    /// The first number in it that no floating-point number holds, as it was written.
    fn out_of_range(&self) -> Option<Str>;
    /// Its outermost level.
    fn node(self) -> SourceNode<Self>;
    /// The value that it is, whatever its type.
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
    /// The members of an object, in the order in which they are decoded.
    Object(std::vec::IntoIter<(Str, S)>),
}

/// A number and, where it is known, how it was written.
#[derive(Debug)]
pub struct SourceNumber {
    /// The number.
    pub value: Value,
    text: Option<Str>,
}

impl SourceNumber {
    /// The number as it was written, as far as that is known.
    pub(super) fn literal(&self) -> String {
        match &self.text {
            Some(text) => text.to_string(),
            None => self.value.to_json(),
        }
    }
}

impl<S: DecodeSource> SourceNode<S> {
    /// What Go's decoder calls it.
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
