//! Selecting from values.

use super::{Local, Plain};
use crate::program::Input;
use crate::program::access::follow;
use crate::program::node::{Access, Key, Qualifier, Root};
use crate::shape::{Kind, Shape};
use crate::val::{List, Val, element_shape, read};
use scantling_value::Value;

/// Where a selection has arrived.
#[derive(Clone, Copy)]
enum Place<'a> {
    Json(&'a Value, &'a Shape),
    Val(Val<'a>),
}

impl<'a> Plain<'a, '_> {
    #[inline]
    pub(super) fn json_root(&self, root: &Root) -> Option<(&'a Value, &'a Shape)> {
        match root {
            Root::Input(n) => match self.inputs.get(*n) {
                Some(Input::Json(value, shape)) => Some((value, shape)),
                _ => None,
            },
            Root::Local(n) => match self.locals.get(*n) {
                Some(Local::Json(value, shape)) => Some((value, shape)),
                _ => None,
            },
            Root::Value(_) => None,
        }
    }

    /// Where an access leads that starts in JSON and follows declared fields.
    #[inline]
    pub(super) fn place(&self, access: &'a Access) -> Option<(&'a Value, &'a Shape)> {
        follow(self.json_root(&access.root)?, &access.path)
    }

    #[inline(never)]
    pub(super) fn access(&mut self, access: &'a Access) -> Option<Val<'a>> {
        if let Some((value, shape)) = self.place(access) {
            self.charge(access.cost());
            return read(self.arena, value, shape).ok();
        }
        self.walk(access)
    }

    /// The value of an access that leads through more than declared fields: it costs 1, and 1 for every selection that
    /// finds something.
    #[inline(never)]
    pub(super) fn walk(&mut self, access: &'a Access) -> Option<Val<'a>> {
        let value = self.selected(access)?;
        self.charge(1);
        Some(value)
    }

    /// What an access selects. Where it may find nothing, that is an optional.
    fn selected(&mut self, access: &'a Access) -> Option<Val<'a>> {
        let mut place = self.start(&access.root)?;
        let mut optional = false;
        if let Place::Val(Val::Optional(value)) = place
            && !access.path.is_empty()
        {
            let Some(value) = value else {
                return Some(Val::NONE);
            };
            (optional, place) = (true, Place::Val(*value));
        }
        for qualifier in &access.path {
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

    fn start(&mut self, root: &'a Root) -> Option<Place<'a>> {
        if let Some((value, shape)) = self.json_root(root) {
            return Some(Place::Json(value, shape));
        }
        match root {
            Root::Input(n) => match self.inputs.get(*n)? {
                Input::Val(value) => Some(Place::Val(*value)),
                Input::Absent | Input::Json(..) => None,
            },
            Root::Local(n) => match *self.locals.get(*n)? {
                Local::Val(value) => Some(Place::Val(value)),
                Local::Lazy(node) => {
                    let value = self.val(node)?;
                    self.set(*n, Local::Val(value));
                    Some(Place::Val(value))
                }
                Local::Absent | Local::Json(..) => None,
            },
            Root::Value(node) => self.val(node).map(Place::Val),
        }
    }

    fn read(&self, place: Place<'a>) -> Option<Val<'a>> {
        match place {
            Place::Json(value, shape) => read(self.arena, value, shape).ok(),
            Place::Val(value) => Some(value),
        }
    }

    /// One selection, and what it finds. The outer `None` means that it is not that simple.
    fn select(&mut self, place: Place<'a>, qualifier: &'a Qualifier) -> Option<Option<Place<'a>>> {
        let key = match &qualifier.key {
            Key::Name(name) => {
                if let Place::Json(Value::Object(object), shape) = place {
                    let found = name.member(object, shape)?;
                    return Some(found.map(|(value, shape)| Place::Json(value, shape)));
                }
                Val::Str(&name.name)
            }
            Key::Const(key) => key.key(),
            Key::Node(node) => {
                let key = self.val(node)?;
                self.refund_access(node);
                key
            }
        };
        let container = self.read(place)?;
        if let Some(map) = container.as_map() {
            return match map.get(self.arena, key) {
                Some(value) => value.ok().map(|value| Some(Place::Val(value))),
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
                item.map(|item| Place::Json(item, element_shape(shape)))
            }
            list => match list.get(self.arena, index) {
                Some(item) => Some(Place::Val(item.ok()?)),
                None => None,
            },
        })
    }

    /// Whether there is what an access asks for.
    #[inline(never)]
    pub(super) fn presence(&mut self, access: &'a Access) -> Option<bool> {
        let (last, way) = access.path.split_last()?;
        let (value, shape) = follow(self.json_root(&access.root)?, way)?;
        self.charge(access.path.len() as u64);
        match last.declared(value, shape) {
            Some(None) => Some(false),
            Some(Some((value, shape))) => self.is_readable(value, shape),
            None => match (&last.key, value) {
                (Key::Name(name), Value::Object(object)) => match name.member(object, shape)? {
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
            (Value::String(_), Kind::String) | (Value::Int(_), Kind::Int) | (Value::Bool(_), Kind::Bool) => {
                Some(true)
            }
            _ => read(self.arena, value, shape).is_ok().then_some(true),
        }
    }
}
