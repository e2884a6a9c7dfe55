//! Selecting from values.

use super::{FastPath, LocalValue};
use crate::program::Input;
use crate::program::attribute::follow;
use crate::program::op::{Attribute, AttributeRoot, Qualifier, QualifierKey};
use crate::shape::{Shape, ShapeKind};
use crate::val::{List, Val, element_shape, read};
use scantling_value::Value;

/// Where a selection has arrived.
#[derive(Clone, Copy)]
enum Cursor<'a> {
    Json(&'a Value, &'a Shape),
    Val(Val<'a>),
}

impl<'a> FastPath<'a, '_> {
    #[inline]
    pub(super) fn json_root(&self, root: &AttributeRoot) -> Option<(&'a Value, &'a Shape)> {
        match root {
            AttributeRoot::Input(n) => match self.inputs.get(*n) {
                Some(Input::Json(value, shape)) => Some((value, shape)),
                _ => None,
            },
            AttributeRoot::Local(n) => match self.locals.get(*n) {
                Some(LocalValue::Json(value, shape)) => Some((value, shape)),
                _ => None,
            },
            AttributeRoot::Value(_) => None,
        }
    }

    /// Where an attribute leads that starts in JSON and follows declared fields.
    #[inline]
    pub(super) fn place(&self, attribute: &'a Attribute) -> Option<(&'a Value, &'a Shape)> {
        follow(self.json_root(&attribute.root)?, &attribute.path)
    }

    #[inline(never)]
    pub(super) fn attribute(&mut self, attribute: &'a Attribute) -> Option<Val<'a>> {
        if let Some((value, shape)) = self.place(attribute) {
            self.charge(attribute.cost());
            return read(self.arena, value, shape).ok();
        }
        self.walk(attribute)
    }

    /// The value of an attribute that leads through more than declared fields: it costs 1, and 1 for every selection that
    /// finds something.
    #[inline(never)]
    pub(super) fn walk(&mut self, attribute: &'a Attribute) -> Option<Val<'a>> {
        let value = self.selected(attribute)?;
        self.charge(1);
        Some(value)
    }

    /// What an attribute selects. Where it may find nothing, that is an optional.
    fn selected(&mut self, attribute: &'a Attribute) -> Option<Val<'a>> {
        let mut place = self.start(&attribute.root)?;
        let mut optional = false;
        if let Cursor::Val(Val::Optional(value)) = place
            && !attribute.path.is_empty()
        {
            let Some(value) = value else {
                return Some(Val::NONE);
            };
            (optional, place) = (true, Cursor::Val(*value));
        }
        for qualifier in &attribute.path {
            optional |= qualifier.optional;
            match self.select(place, qualifier)? {
                Some(next) => place = next,
                None => return optional.then_some(Val::NONE),
            }
            self.charge(1);
        }
        let value = self.read(place)?;
        if optional {
            self.arena.some(value).ok()
        } else {
            Some(value)
        }
    }

    fn start(&mut self, root: &'a AttributeRoot) -> Option<Cursor<'a>> {
        if let Some((value, shape)) = self.json_root(root) {
            return Some(Cursor::Json(value, shape));
        }
        match root {
            AttributeRoot::Input(n) => match self.inputs.get(*n)? {
                Input::Val(value) => Some(Cursor::Val(*value)),
                Input::Absent | Input::Json(..) => None,
            },
            AttributeRoot::Local(n) => match *self.locals.get(*n)? {
                LocalValue::Val(value) => Some(Cursor::Val(value)),
                LocalValue::Lazy(op) => {
                    let value = self.val(op)?;
                    self.set(*n, LocalValue::Val(value));
                    Some(Cursor::Val(value))
                }
                LocalValue::Absent | LocalValue::Json(..) => None,
            },
            AttributeRoot::Value(op) => self.val(op).map(Cursor::Val),
        }
    }

    fn read(&self, place: Cursor<'a>) -> Option<Val<'a>> {
        match place {
            Cursor::Json(value, shape) => read(self.arena, value, shape).ok(),
            Cursor::Val(value) => Some(value),
        }
    }

    /// One selection, and what it finds. The outer `None` means that it is not that simple.
    fn select(&mut self, place: Cursor<'a>, qualifier: &'a Qualifier) -> Option<Option<Cursor<'a>>> {
        let key = match &qualifier.key {
            QualifierKey::Name(name) => {
                if let Cursor::Json(Value::Object(object), shape) = place {
                    let found = name.member(object, shape)?;
                    return Some(found.map(|(value, shape)| Cursor::Json(value, shape)));
                }
                Val::Str(&name.name)
            }
            QualifierKey::Const(key) => key.key(),
            QualifierKey::Computed(op) => {
                let key = self.val(op)?;
                self.refund_attribute(op);
                key
            }
        };
        let container = self.read(place)?;
        if let Some(map) = container.as_map() {
            return match map.get(self.arena, key) {
                Some(value) => value.ok().map(|value| Some(Cursor::Val(value))),
                None => Some(None),
            };
        }
        let (list, Val::Int(index)) = (container.as_list()?, key) else {
            return None;
        };
        let Ok(index) = usize::try_from(index) else {
            return Some(None);
        };
        Some(match list {
            List::Json(items, shape) => {
                let item = items.get(index);
                item.map(|item| Cursor::Json(item, element_shape(shape)))
            }
            list => match list.get(self.arena, index) {
                Some(item) => Some(Cursor::Val(item.ok()?)),
                None => None,
            },
        })
    }

    /// Whether there is what an attribute asks for.
    #[inline(never)]
    pub(super) fn presence(&mut self, attribute: &'a Attribute) -> Option<bool> {
        let (last, way) = attribute.path.split_last()?;
        let (value, shape) = follow(self.json_root(&attribute.root)?, way)?;
        self.charge(attribute.path.len() as u64);
        match last.declared(value, shape) {
            Some(None) => Some(false),
            Some(Some((value, shape))) => self.is_readable(value, shape),
            None => match (&last.key, value) {
                (QualifierKey::Name(name), Value::Object(object)) => match name.member(object, shape)? {
                    Some((value, shape)) => self.is_readable(value, shape),
                    None => Some(false),
                },
                _ => None,
            },
        }
    }

    /// What cannot be read is an error, even if nobody wants to know more than that it is there.
    #[inline]
    fn is_readable(&self, value: &'a Value, shape: &'a Shape) -> Option<bool> {
        match (value, &shape.kind) {
            (Value::String(_), ShapeKind::String)
            | (Value::Int(_), ShapeKind::Int)
            | (Value::Bool(_), ShapeKind::Bool) => Some(true),
            _ => read(self.arena, value, shape).is_ok().then_some(true),
        }
    }
}
