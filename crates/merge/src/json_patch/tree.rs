//! The document that operations change.
//!
//! A patch with few operations changes the decoded document in place. With many operations, each insertion into a long
//! list or a large object would move everything behind it; there, inspected nodes become trees that find, insert and
//! remove in logarithmic time.

use imbl::Vector;
use scantling_value::{Str, Value};
use std::collections::BTreeMap;

/// The kind of a node.
#[derive(Clone, Copy)]
pub(super) enum TreeKind {
    Object,
    /// A list of that many elements.
    List(usize),
    Scalar,
}

/// A document that operations change. Accesses of the wrong kind find no member or element.
pub(super) trait Tree: Clone + Default + From<Value> {
    fn kind(&self) -> TreeKind;
    fn member(&mut self, name: &str) -> Option<&mut Self>;
    fn element(&mut self, at: usize) -> Option<&mut Self>;
    fn set_member(&mut self, name: Str, value: Self);
    fn remove_member(&mut self, name: &str) -> Option<Self>;
    fn insert_element(&mut self, at: usize, value: Self);
    fn remove_element(&mut self, at: usize) -> Option<Self>;
    fn into_value(self) -> Value;
}

impl Tree for Value {
    fn kind(&self) -> TreeKind {
        match self {
            Value::Object(_) => TreeKind::Object,
            Value::Array(items) => TreeKind::List(items.len()),
            _ => TreeKind::Scalar,
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

/// A document whose nodes are opened when an operation inspects them.
#[derive(Clone)]
pub(super) enum LazyTree {
    Unopened(Value),
    List(Box<Vector<LazyTree>>),
    Object(BTreeMap<Str, LazyTree>),
}

impl Default for LazyTree {
    fn default() -> Self {
        LazyTree::Unopened(Value::Null)
    }
}

impl From<Value> for LazyTree {
    fn from(value: Value) -> Self {
        LazyTree::Unopened(value)
    }
}

impl LazyTree {
    fn list(&mut self) -> Option<&mut Vector<LazyTree>> {
        if let LazyTree::Unopened(Value::Array(items)) = self {
            // The elements stay unopened until an operation reaches them.
            let items = std::mem::take(items).into_iter().map(LazyTree::Unopened);
            *self = LazyTree::List(Box::new(items.collect()));
        }
        match self {
            LazyTree::List(items) => Some(items),
            LazyTree::Unopened(_) | LazyTree::Object(_) => None,
        }
    }

    fn object(&mut self) -> Option<&mut BTreeMap<Str, LazyTree>> {
        if let LazyTree::Unopened(Value::Object(members)) = self {
            let members = std::mem::take(members).into_iter();
            *self = LazyTree::Object(
                members
                    .map(|(name, value)| (name, LazyTree::Unopened(value)))
                    .collect(),
            );
        }
        match self {
            LazyTree::Object(members) => Some(members),
            LazyTree::Unopened(_) | LazyTree::List(_) => None,
        }
    }
}

impl Tree for LazyTree {
    fn kind(&self) -> TreeKind {
        match self {
            LazyTree::Unopened(value) => value.kind(),
            LazyTree::List(items) => TreeKind::List(items.len()),
            LazyTree::Object(_) => TreeKind::Object,
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
            LazyTree::Unopened(value) => value,
            LazyTree::List(items) => Value::Array(items.into_iter().map(LazyTree::into_value).collect()),
            LazyTree::Object(members) => {
                let members = members.into_iter();
                Value::Object(members.map(|(name, value)| (name, value.into_value())).collect())
            }
        }
    }
}
