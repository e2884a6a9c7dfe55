//! The JSON value.

use crate::map::same_text;
use crate::{Map, Str};

/// A decoded JSON or YAML document.
///
/// Integers that fit `i64` and all other numbers are different values, exactly as in a Kubernetes API server:
/// `1` is not equal to `1.0`. Equality is structural and typed.
#[derive(Clone, Debug, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number written without fraction or exponent that fits 64 bits.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    String(Str),
    /// A list.
    Array(Vec<Value>),
    /// An object.
    Object(Map),
}

impl PartialEq for Value {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Value::String(a), Value::String(b)) => same_text(a, b),
            (Value::Object(a), Value::Object(b)) => a == b,
            (Value::Array(a), Value::Array(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a == b,
            (Value::Null, Value::Null) => true,
            _ => false,
        }
    }
}

impl Value {
    /// The boolean, if this is one.
    #[inline]
    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(b) = self { Some(*b) } else { None }
    }

    /// The integer, if this is one.
    #[inline]
    pub fn as_int(&self) -> Option<i64> {
        if let Value::Int(i) = self { Some(*i) } else { None }
    }

    /// The text, if this is a string.
    #[inline]
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(s) = self {
            Some(s)
        } else {
            None
        }
    }

    /// The elements, if this is a list.
    #[inline]
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Value::Array(a) = self { Some(a) } else { None }
    }

    /// The members, if this is an object.
    #[inline]
    pub fn as_object(&self) -> Option<&Map> {
        if let Value::Object(m) = self {
            Some(m)
        } else {
            None
        }
    }

    /// Consumes the value and returns its members, if this is an object.
    #[inline]
    pub fn into_object(self) -> Option<Map> {
        if let Value::Object(m) = self {
            Some(m)
        } else {
            None
        }
    }

    /// The elements, mutable, if this is a list.
    #[inline]
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        if let Value::Array(a) = self { Some(a) } else { None }
    }

    /// The members, mutable, if this is an object.
    #[inline]
    pub fn as_object_mut(&mut self) -> Option<&mut Map> {
        if let Value::Object(m) = self {
            Some(m)
        } else {
            None
        }
    }

    /// Returns whether this is `null`.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The member with the given name, if this is an object that has it.
    #[inline]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// The value reached by a chain of member names.
    pub fn at<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> Option<&Value> {
        keys.into_iter().try_fold(self, |v, k| v.get(k))
    }

    /// The string member with the given name; empty if it is absent or not a string.
    #[inline]
    pub fn get_str(&self, key: &str) -> &str {
        self.get(key).and_then(Value::as_str).unwrap_or("")
    }

    /// The string reached by a chain of member names; empty if it is absent or not a string.
    pub fn str_at<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> &str {
        self.at(keys).and_then(Value::as_str).unwrap_or("")
    }

    /// The elements of the list member with the given name; empty if it is absent or not a list.
    #[inline]
    pub fn list(&self, key: &str) -> &[Value] {
        self.get(key).and_then(Value::as_array).unwrap_or(&[])
    }

    /// The elements of the list reached by a chain of member names; empty if it is absent or not a list.
    pub fn list_at<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> &[Value] {
        self.at(keys).and_then(Value::as_array).unwrap_or(&[])
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Value::Bool(b)
    }
}
impl From<i64> for Value {
    fn from(i: i64) -> Self {
        Value::Int(i)
    }
}
impl From<f64> for Value {
    fn from(f: f64) -> Self {
        Value::Float(f)
    }
}
impl From<&str> for Value {
    fn from(s: &str) -> Self {
        Value::String(s.into())
    }
}
impl From<String> for Value {
    fn from(s: String) -> Self {
        Value::String(s.into())
    }
}
impl From<Str> for Value {
    fn from(s: Str) -> Self {
        Value::String(s)
    }
}
impl From<Map> for Value {
    fn from(m: Map) -> Self {
        Value::Object(m)
    }
}
impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(v: Vec<T>) -> Self {
        Value::Array(v.into_iter().map(Into::into).collect())
    }
}
