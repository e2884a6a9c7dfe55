//! A total order on values, for use as map keys.

use crate::{Map, Value};
use std::cmp::Ordering;

/// A value as a map key. Integers and floats are different keys.
#[derive(Clone, Copy, Debug)]
pub struct ValueKey<'v>(pub &'v Value);

impl ValueKey<'_> {
    fn rank(self) -> u8 {
        match self.0 {
            Value::Null => 0,
            Value::Bool(_) => 1,
            Value::Int(_) => 2,
            Value::Float(_) => 3,
            Value::String(_) => 4,
            Value::Array(_) => 5,
            Value::Object(_) => 6,
        }
    }
}

impl Ord for ValueKey<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.0, other.0) {
            (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
            (Value::Int(a), Value::Int(b)) => a.cmp(b),
            // A total order must place NaN. It also separates 0.0 from -0.0, which are equal as values.
            (Value::Float(a), Value::Float(b)) => a.total_cmp(b),
            (Value::String(a), Value::String(b)) => a.cmp(b),
            (Value::Array(a), Value::Array(b)) => a.iter().map(ValueKey).cmp(b.iter().map(ValueKey)),
            (Value::Object(a), Value::Object(b)) => {
                let members = |m| Map::iter(m).map(|(k, v)| (k, ValueKey(v)));
                members(a).cmp(members(b))
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for ValueKey<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ValueKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ValueKey<'_> {}
