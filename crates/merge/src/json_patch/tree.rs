//! Documents that operations change.
//!
//! A patch of few operations changes the decoded document as it is. In one of many, each insertion into a long list would
//! move all elements behind it, and likewise the members of a large object; there, what operations look into is opened
//! into trees that find, insert and remove in logarithmic time.

use imbl::Vector;
use scantling_value::{Str, Value};
use std::collections::BTreeMap;

/// What stands at a place.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Object,
    /// A list of that many elements.
    List(usize),
    Scalar,
}

/// A document that operations change. What is not of the kind that an access is for has no such member or element.
pub(super) trait Tree: Clone + Default + From<Value> {
    fn kind(&self) -> Kind;
    fn member(&mut self, name: &str) -> Option<&mut Self>;
    fn element(&mut self, at: usize) -> Option<&mut Self>;
    fn set_member(&mut self, name: Str, value: Self);
    fn remove_member(&mut self, name: &str) -> Option<Self>;
    fn insert_element(&mut self, at: usize, value: Self);
    fn remove_element(&mut self, at: usize) -> Option<Self>;
    fn into_value(self) -> Value;
}

impl Tree for Value {
    fn kind(&self) -> Kind {
        match self {
            Value::Object(_) => Kind::Object,
            Value::Array(items) => Kind::List(items.len()),
            _ => Kind::Scalar,
        }
    }

    fn member(&mut self, name: &str) -> Option<&mut Self> {
        self.as_object_mut()?.get_mut(name)
    }

    fn element(&mut self, at: usize) -> Option<&mut Self> {
        match self {
            Value::Array(items) => items.get_mut(at),
            _ => None,
        }
    }

    fn set_member(&mut self, name: Str, value: Self) {
        if let Value::Object(members) = self {
            members.insert(name, value);
        }
    }

    fn remove_member(&mut self, name: &str) -> Option<Self> {
        self.as_object_mut()?.remove(name)
    }

    fn insert_element(&mut self, at: usize, value: Self) {
        if let Value::Array(items) = self
            && at <= items.len()
        {
            items.insert(at, value);
        }
    }

    fn remove_element(&mut self, at: usize) -> Option<Self> {
        match self {
            Value::Array(items) if at < items.len() => Some(items.remove(at)),
            _ => None,
        }
    }

    fn into_value(self) -> Value {
        self
    }
}

/// A document that is opened where an operation looks into it.
#[derive(Clone)]
pub(super) enum Opened {
    Closed(Value),
    List(Box<Vector<Opened>>),
    Object(BTreeMap<Str, Opened>),
}

impl Default for Opened {
    fn default() -> Self {
        Opened::Closed(Value::Null)
    }
}

impl From<Value> for Opened {
    fn from(value: Value) -> Self {
        Opened::Closed(value)
    }
}

impl Opened {
    fn list(&mut self) -> Option<&mut Vector<Opened>> {
        if let Opened::Closed(Value::Array(items)) = self {
            let items = std::mem::take(items).into_iter().map(Opened::Closed);
            *self = Opened::List(Box::new(items.collect()));
        }
        match self {
            Opened::List(items) => Some(items),
            Opened::Closed(_) | Opened::Object(_) => None,
        }
    }

    fn object(&mut self) -> Option<&mut BTreeMap<Str, Opened>> {
        if let Opened::Closed(Value::Object(members)) = self {
            let members = std::mem::take(members).into_iter();
            *self = Opened::Object(
                members
                    .map(|(name, value)| (name, Opened::Closed(value)))
                    .collect(),
            );
        }
        match self {
            Opened::Object(members) => Some(members),
            Opened::Closed(_) | Opened::List(_) => None,
        }
    }
}

impl Tree for Opened {
    fn kind(&self) -> Kind {
        match self {
            Opened::Closed(value) => value.kind(),
            Opened::List(items) => Kind::List(items.len()),
            Opened::Object(_) => Kind::Object,
        }
    }

    fn member(&mut self, name: &str) -> Option<&mut Self> {
        self.object()?.get_mut(name)
    }

    fn element(&mut self, at: usize) -> Option<&mut Self> {
        self.list()?.get_mut(at)
    }

    fn set_member(&mut self, name: Str, value: Self) {
        if let Some(members) = self.object() {
            members.insert(name, value);
        }
    }

    fn remove_member(&mut self, name: &str) -> Option<Self> {
        self.object()?.remove(name)
    }

    fn insert_element(&mut self, at: usize, value: Self) {
        if let Some(items) = self.list()
            && at <= items.len()
        {
            items.insert(at, value);
        }
    }

    fn remove_element(&mut self, at: usize) -> Option<Self> {
        let items = self.list()?;
        (at < items.len()).then(|| items.remove(at))
    }

    fn into_value(self) -> Value {
        match self {
            Opened::Closed(value) => value,
            Opened::List(items) => Value::Array(items.into_iter().map(Opened::into_value).collect()),
            Opened::Object(members) => {
                let members = members.into_iter();
                Value::Object(members.map(|(name, value)| (name, value.into_value())).collect())
            }
        }
    }
}
