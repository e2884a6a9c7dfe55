//! Selecting from values.

use super::Input;
use super::eval::{Machine, Slot};
use super::node::{Access, Choice, Key, Mode, Name, Qualifier, Root};
use crate::env::Strictness;
use crate::shape::{Kind, Shape};
use crate::val::{DYN, EvalError, List, Map, Res, Val, element_shape, read};
use scantling_value::{Map as JsonObject, Value};
use std::sync::atomic::Ordering;

/// Where a selection has arrived. JSON is read no sooner than it must be.
#[derive(Clone, Copy)]
enum Place<'a> {
    Json(&'a Value, &'a Shape),
    Val(Val<'a>),
}

impl<'a> Machine<'a, '_> {
    /// The value of an access: it costs 1, and 1 for every selection made.
    #[inline(never)]
    pub(super) fn access(&mut self, access: &'a Access) -> Res<'a> {
        match (access.mode, self.place(access)) {
            (Mode::Value, Some((value, shape))) => {
                self.charge(access.cost())?;
                read(self.arena, value, shape)
            }
            (Mode::Value, None) => self.access_otherwise(access),
            (Mode::Presence, place) => self.presence(access, place),
        }
    }

    /// Where an access leads that starts in JSON and follows declared fields, which is what most of them do. `None`
    /// where it does not, or leads nowhere.
    #[inline(never)]
    pub(super) fn place(&self, access: &'a Access) -> Option<(&'a Value, &'a Shape)> {
        follow(self.json_root(&access.root)?, &access.path)
    }

    #[inline]
    fn json_root(&self, root: &Root) -> Option<(&'a Value, &'a Shape)> {
        match root {
            Root::Input(n) => match self.inputs.get(*n) {
                Some(Input::Json(value, shape)) => Some((value, shape)),
                _ => None,
            },
            Root::Local(n) => match self.local(*n) {
                Slot::Json(value, shape) => Some((value, shape)),
                _ => None,
            },
            Root::Value(_) => None,
        }
    }

    #[inline(never)]
    fn access_otherwise(&mut self, access: &'a Access) -> Res<'a> {
        match access.root {
            Root::Local(n) if access.path.is_empty() => match self.local(n) {
                Slot::Val(v) => {
                    let v = *v;
                    self.charge(1)?;
                    Ok(v)
                }
                _ => self.access_slowly(access),
            },
            _ => self.access_slowly(access),
        }
    }

    /// Whether there is what an access asks for.
    #[inline(never)]
    fn presence(&mut self, access: &'a Access, place: Option<(&'a Value, &'a Shape)>) -> Res<'a> {
        if let Some((value, shape)) = place {
            self.charge(access.path.len() as u64)?;
            return read(self.arena, value, shape).map(|_| Val::TRUE);
        }
        if let Some((last, way)) = access.path.split_last()
            && let Some(start) = self.json_root(&access.root)
            && let Some((value, shape)) = follow(start, way)
            && let Some(None) = last.declared(value, shape)
        {
            self.charge(access.path.len() as u64)?;
            return Ok(Val::FALSE);
        }
        self.access_slowly(access)
    }

    #[inline(never)]
    fn access_slowly(&mut self, access: &'a Access) -> Res<'a> {
        let value = self.resolve_access(access);
        // Asking for presence costs what is selected on the way, including the last step, but no more.
        match access.mode {
            Mode::Value => self.charge_for(value, 1),
            Mode::Presence => value,
        }
    }

    /// The value of an access, which costs 1 for every selection made.
    pub(super) fn resolve_access(&mut self, access: &'a Access) -> Res<'a> {
        let start = self.root(&access.root)?;
        self.walk(start, &access.path, access.mode)
    }

    fn root(&mut self, root: &'a Root) -> Result<Place<'a>, EvalError> {
        match root {
            Root::Input(n) => match self.inputs.get(*n) {
                Some(Input::Json(value, shape)) => Ok(Place::Json(value, shape)),
                Some(Input::Val(v)) => Ok(Place::Val(*v)),
                Some(Input::Absent) | None => {
                    let name = self.program.inputs.get(*n).map_or("", |name| name.as_ref());
                    Err(EvalError::text(format!("no such attribute(s): {name}")))
                }
            },
            Root::Local(n) => {
                if let Slot::Lazy(node) = self.local(*n) {
                    let node = *node;
                    self.force(*n, node);
                }
                match self.local(*n) {
                    Slot::Json(value, shape) => Ok(Place::Json(value, shape)),
                    Slot::Val(v) => Ok(Place::Val(*v)),
                    Slot::Error(e) => Err(e.clone()),
                    Slot::Absent | Slot::Lazy(_) => Err(EvalError::text("no such attribute(s): ")),
                }
            }
            Root::Value(node) => Ok(Place::Val(self.eval(node)?)),
        }
    }

    /// What is selected from the chosen branch.
    pub(super) fn walk_choice(&mut self, choice: &'a Choice, value: Val<'a>) -> Res<'a> {
        let selected = self.walk(Place::Val(value), &choice.path, choice.mode);
        if choice.mode == Mode::Presence {
            self.refund(1);
        }
        selected
    }

    fn walk(&mut self, start: Place<'a>, path: &'a [Qualifier], mode: Mode) -> Res<'a> {
        let mut place = start;
        let mut optional = false;
        // Whether the place is an element of a list: those are selected before they are read.
        let mut element = false;
        if let Place::Val(Val::Optional(value)) = start
            && !path.is_empty()
        {
            let Some(value) = value else {
                return Ok(absent(mode));
            };
            optional = true;
            place = Place::Val(*value);
        }
        for (i, qualifier) in path.iter().enumerate() {
            optional |= qualifier.optional;
            let asks = mode == Mode::Presence && i + 1 == path.len();
            // What cannot be read is not selected from, and that selection costs nothing.
            let container = match place {
                Place::Json(Value::Object(_), shape) if shape.is_keyed() => place,
                place => match self.read(place) {
                    Ok(value) => Place::Val(value),
                    unreadable if element && !optional => return self.charge_for(unreadable, 1),
                    unreadable => return unreadable,
                },
            };
            element = matches!(container, Place::Val(value) if value.as_list().is_some());
            let found = self.select(container, &qualifier.key, optional || asks);
            // Where a selection may find nothing, only one that finds something costs anything.
            if !optional || matches!(found, Ok(Some(next)) if element || self.read(next).is_ok()) {
                self.charge(1)?;
            }
            match found? {
                Some(next) => place = next,
                None => return Ok(absent(mode)),
            }
        }
        let value = self.read(place)?;
        match mode {
            Mode::Presence => Ok(Val::TRUE),
            Mode::Value if optional => self.arena.some(value),
            Mode::Value => Ok(value),
        }
    }

    fn read(&self, place: Place<'a>) -> Res<'a> {
        match place {
            Place::Json(value, shape) => read(self.arena, value, shape),
            Place::Val(v) => Ok(v),
        }
    }

    /// One selection; `None` where there is nothing and `lenient` allows it.
    fn select(
        &mut self,
        place: Place<'a>,
        key: &'a Key,
        lenient: bool,
    ) -> Result<Option<Place<'a>>, EvalError> {
        let key = match key {
            Key::Name(name) => {
                if let Place::Json(Value::Object(object), shape) = place
                    && let Some(found) = name.member(object, shape)
                {
                    return match found {
                        None if !lenient => Err(EvalError::no_such_key(&name.name)),
                        found => Ok(found.map(|(value, shape)| Place::Json(value, shape))),
                    };
                }
                Val::Str(&name.name)
            }
            Key::Const(key) => key.val(self.arena)?,
            Key::Node(node) => self.resolve(node)?,
        };
        self.select_value(place, key, lenient)
    }

    fn select_value(
        &mut self,
        place: Place<'a>,
        key: Val<'a>,
        lenient: bool,
    ) -> Result<Option<Place<'a>>, EvalError> {
        let container = self.read(place)?;
        if let Some(map) = container.as_map() {
            return match self.map_entry(map, key)? {
                None if !lenient => Err(EvalError::no_such_key(key)),
                found => Ok(found),
            };
        }
        if let Some(list) = container.as_list() {
            let index = list_index(key)?;
            return match usize::try_from(index).ok().and_then(|i| self.list_item(list, i)) {
                Some(_) if matches!(list, List::Json(..)) && !matches!(key, Val::Int(_)) => {
                    Err(EvalError::text(format!("unsupported index: {key}")))
                }
                None if !lenient => Err(EvalError::index_out_of_bounds(key)),
                found => found.transpose(),
            };
        }
        let may_have_none =
            self.program.strictness == Strictness::Server || matches!(container, Val::Optional(_));
        if lenient && may_have_none {
            Ok(None)
        } else {
            Err(EvalError::no_such_key(key))
        }
    }

    fn map_entry(&self, map: Map<'a>, key: Val<'a>) -> Result<Option<Place<'a>>, EvalError> {
        map.get(self.arena, key).transpose().map(|v| v.map(Place::Val))
    }

    fn list_item(&self, list: List<'a>, index: usize) -> Option<Result<Place<'a>, EvalError>> {
        match list {
            List::Json(items, shape) => {
                let item = items.get(index)?;
                Some(Ok(Place::Json(item, element_shape(shape))))
            }
            list => list.get(self.arena, index).map(|v| v.map(Place::Val)),
        }
    }
}

impl Access {
    /// What it costs to get the value, where all selections are made.
    #[inline]
    pub(super) fn cost(&self) -> u64 {
        self.path.len() as u64 + 1
    }
}

/// Follows declared fields to the end of a path. `None` where it leads elsewhere, or nowhere.
#[inline(always)]
pub(super) fn follow<'a>(
    start: (&'a Value, &'a Shape),
    path: &'a [Qualifier],
) -> Option<(&'a Value, &'a Shape)> {
    let (mut value, mut shape) = start;
    for qualifier in path {
        (value, shape) = qualifier.declared(value, shape)??;
    }
    Some((value, shape))
}

impl Qualifier {
    /// The declared field of an object that this selects. The outer `None` means that it is not that simple.
    #[inline]
    pub(super) fn declared<'a>(
        &'a self,
        value: &'a Value,
        shape: &Shape,
    ) -> Option<Option<(&'a Value, &'a Shape)>> {
        let (Key::Name(name), Value::Object(object), false) = (&self.key, value, self.optional) else {
            return None;
        };
        let known = name.field.as_ref()?;
        if !std::ptr::eq(known.within.as_ref(), shape) {
            return None;
        }
        // A null member of an object is an absent one.
        let member = name.find(object, &known.json).filter(|v| !v.is_null());
        Some(member.map(|v| (v, known.shape.as_ref())))
    }
}

/// What an access gives that found nothing where it may.
fn absent(mode: Mode) -> Val<'static> {
    match mode {
        Mode::Presence => Val::FALSE,
        Mode::Value => Val::NONE,
    }
}

/// The index that a value means.
fn list_index(key: Val<'_>) -> Result<i64, EvalError> {
    let index = match key {
        Val::Int(i) => Some(i),
        Val::Uint(u) => i64::try_from(u).ok(),
        Val::Double(d) => lossless(d),
        other => {
            return Err(EvalError::text(format!(
                "unsupported index type '{}' in list",
                other.type_name()
            )));
        }
    };
    index.ok_or_else(|| EvalError::text(format!("unsupported index value {key} in list")))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::float_cmp,
    reason = "the result is compared with what it was made from"
)]
fn lossless(d: f64) -> Option<i64> {
    let i = d as i64;
    (i as f64 == d && i != i64::MAX).then_some(i)
}

impl Name {
    /// The member of a JSON object, with its shape. The outer `None` means that the object is not to be read so.
    #[inline]
    pub(super) fn member<'a>(
        &self,
        object: &'a JsonObject,
        shape: &'a Shape,
    ) -> Option<Option<(&'a Value, &'a Shape)>> {
        match &shape.kind {
            Kind::Object { .. } => {
                let Some(field) = shape.select(&self.name) else {
                    return Some(None);
                };
                // A null member of an object is an absent one.
                let value = self.find(object, &field.json).filter(|v| !v.is_null());
                Some(value.map(|v| (v, field.shape.as_ref())))
            }
            Kind::Map { value: shape } => Some(self.find(object, &self.name).map(|v| (v, shape.as_ref()))),
            Kind::Dyn => Some(self.find(object, &self.name).map(|v| (v, &DYN))),
            _ => None,
        }
    }

    #[inline]
    fn find<'a>(&self, object: &'a JsonObject, key: &str) -> Option<&'a Value> {
        let before = self.hint.load(Ordering::Relaxed);
        let mut hint = before;
        let value = object.get_near(key, &mut hint);
        // What is shared is written only where it changes.
        if hint != before {
            self.hint.store(hint, Ordering::Relaxed);
        }
        value
    }
}
