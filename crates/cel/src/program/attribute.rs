//! Selecting from values.

use super::Input;
use super::interpreter::{Interpreter, LocalValue};
use super::op::{Attribute, AttributeMode, AttributeRoot, Conditional, Name, Qualifier, QualifierKey};
use crate::env::Semantics;
use crate::shape::{Shape, ShapeKind};
use crate::val::{DYN, EvalError, List, Map, Res, Val, element_shape, read};
use scantling_value::{Map as JsonObject, Value};
use std::sync::atomic::Ordering;

/// Where a selection has arrived. JSON is read no sooner than it must be.
#[derive(Clone, Copy)]
enum Cursor<'a> {
    Json(&'a Value, &'a Shape),
    Val(Val<'a>),
}

impl<'a> Interpreter<'a, '_> {
    /// The value of an attribute: it costs 1, and 1 for every selection made.
    #[inline(never)]
    pub(super) fn attribute(&mut self, attribute: &'a Attribute) -> Res<'a> {
        match (attribute.mode, self.place(attribute)) {
            (AttributeMode::Value, Some((value, shape))) => {
                self.charge(attribute.cost())?;
                read(self.arena, value, shape)
            }
            (AttributeMode::Value, None) => self.attribute_of_value(attribute),
            (AttributeMode::Presence, place) => self.presence(attribute, place),
        }
    }

    /// Where an attribute leads that starts in JSON and follows declared fields, which is what most of them do. `None`
    /// where it does not, or leads nowhere.
    #[inline(never)]
    pub(super) fn place(&self, attribute: &'a Attribute) -> Option<(&'a Value, &'a Shape)> {
        follow(self.json_root(&attribute.root)?, &attribute.path)
    }

    #[inline]
    fn json_root(&self, root: &AttributeRoot) -> Option<(&'a Value, &'a Shape)> {
        match root {
            AttributeRoot::Input(n) => match self.inputs.get(*n) {
                Some(Input::Json(value, shape)) => Some((value, shape)),
                _ => None,
            },
            AttributeRoot::Local(n) => match self.local(*n) {
                LocalValue::Json(value, shape) => Some((value, shape)),
                _ => None,
            },
            AttributeRoot::Value(_) => None,
        }
    }

    #[inline(never)]
    fn attribute_of_value(&mut self, attribute: &'a Attribute) -> Res<'a> {
        match attribute.root {
            AttributeRoot::Local(n) if attribute.path.is_empty() => match self.local(n) {
                LocalValue::Val(v) => {
                    let v = *v;
                    self.charge(1)?;
                    Ok(v)
                }
                _ => self.attribute_with_qualifiers(attribute),
            },
            _ => self.attribute_with_qualifiers(attribute),
        }
    }

    /// Whether there is what an attribute asks for.
    #[inline(never)]
    fn presence(&mut self, attribute: &'a Attribute, place: Option<(&'a Value, &'a Shape)>) -> Res<'a> {
        if let Some((value, shape)) = place {
            self.charge(attribute.path.len() as u64)?;
            return read(self.arena, value, shape).map(|_| Val::TRUE);
        }
        if let Some((last, way)) = attribute.path.split_last()
            && let Some(start) = self.json_root(&attribute.root)
            && let Some((value, shape)) = follow(start, way)
            && let Some(None) = last.declared(value, shape)
        {
            self.charge(attribute.path.len() as u64)?;
            return Ok(Val::FALSE);
        }
        self.attribute_with_qualifiers(attribute)
    }

    #[inline(never)]
    fn attribute_with_qualifiers(&mut self, attribute: &'a Attribute) -> Res<'a> {
        let value = self.resolve_attribute(attribute);
        // Asking for presence costs what is selected on the way, including the last step, but no more.
        match attribute.mode {
            AttributeMode::Value => self.charge_for(value, 1),
            AttributeMode::Presence => value,
        }
    }

    /// The value of an attribute, which costs 1 for every selection made.
    pub(super) fn resolve_attribute(&mut self, attribute: &'a Attribute) -> Res<'a> {
        let start = self.root(&attribute.root)?;
        self.walk(start, &attribute.path, attribute.mode)
    }

    fn root(&mut self, root: &'a AttributeRoot) -> Result<Cursor<'a>, EvalError> {
        match root {
            AttributeRoot::Input(n) => match self.inputs.get(*n) {
                Some(Input::Json(value, shape)) => Ok(Cursor::Json(value, shape)),
                Some(Input::Val(v)) => Ok(Cursor::Val(*v)),
                Some(Input::Absent) | None => {
                    let name = self.program.inputs.get(*n).map_or("", |name| name.as_ref());
                    Err(EvalError::message(format!("no such attribute(s): {name}")))
                }
            },
            AttributeRoot::Local(n) => {
                if let LocalValue::Lazy(op) = self.local(*n) {
                    let op = *op;
                    self.force(*n, op);
                }
                match self.local(*n) {
                    LocalValue::Json(value, shape) => Ok(Cursor::Json(value, shape)),
                    LocalValue::Val(v) => Ok(Cursor::Val(*v)),
                    LocalValue::Error(e) => Err(e.clone()),
                    LocalValue::Absent | LocalValue::Lazy(_) => {
                        Err(EvalError::message("no such attribute(s): "))
                    }
                }
            }
            AttributeRoot::Value(op) => Ok(Cursor::Val(self.eval(op)?)),
        }
    }

    /// What is selected from the selected_branch branch.
    pub(super) fn qualify_conditional(&mut self, conditional: &'a Conditional, value: Val<'a>) -> Res<'a> {
        let selected = self.walk(Cursor::Val(value), &conditional.path, conditional.mode);
        if conditional.mode == AttributeMode::Presence {
            self.refund(1);
        }
        selected
    }

    fn walk(&mut self, start: Cursor<'a>, path: &'a [Qualifier], mode: AttributeMode) -> Res<'a> {
        let mut place = start;
        let mut optional = false;
        // Whether the place is an element of a list: those are selected before they are read.
        let mut element = false;
        if let Cursor::Val(Val::Optional(value)) = start
            && !path.is_empty()
        {
            let Some(value) = value else {
                return Ok(absent(mode));
            };
            optional = true;
            place = Cursor::Val(*value);
        }
        for (i, qualifier) in path.iter().enumerate() {
            optional |= qualifier.optional;
            let asks = mode == AttributeMode::Presence && i + 1 == path.len();
            // What cannot be read is not selected from, and that selection costs nothing.
            let container = match place {
                Cursor::Json(Value::Object(_), shape) if shape.is_keyed() => place,
                place => match self.read(place) {
                    Ok(value) => Cursor::Val(value),
                    unreadable if element && !optional => return self.charge_for(unreadable, 1),
                    unreadable => return unreadable,
                },
            };
            element = matches!(container, Cursor::Val(value) if value.as_list().is_some());
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
            AttributeMode::Presence => Ok(Val::TRUE),
            AttributeMode::Value if optional => self.arena.some(value),
            AttributeMode::Value => Ok(value),
        }
    }

    fn read(&self, place: Cursor<'a>) -> Res<'a> {
        match place {
            Cursor::Json(value, shape) => read(self.arena, value, shape),
            Cursor::Val(v) => Ok(v),
        }
    }

    /// One selection; `None` where there is nothing and `lenient` allows it.
    fn select(
        &mut self,
        place: Cursor<'a>,
        key: &'a QualifierKey,
        lenient: bool,
    ) -> Result<Option<Cursor<'a>>, EvalError> {
        let key = match key {
            QualifierKey::Name(name) => {
                if let Cursor::Json(Value::Object(object), shape) = place
                    && let Some(found) = name.member(object, shape)
                {
                    return match found {
                        None if !lenient => Err(EvalError::no_such_key(&name.name)),
                        found => Ok(found.map(|(value, shape)| Cursor::Json(value, shape))),
                    };
                }
                Val::Str(&name.name)
            }
            QualifierKey::Const(key) => key.val(self.arena)?,
            QualifierKey::Computed(op) => self.resolve(op)?,
        };
        self.select_value(place, key, lenient)
    }

    fn select_value(
        &mut self,
        place: Cursor<'a>,
        key: Val<'a>,
        lenient: bool,
    ) -> Result<Option<Cursor<'a>>, EvalError> {
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
                    Err(EvalError::message(format!("unsupported index: {key}")))
                }
                None if !lenient => Err(EvalError::index_out_of_bounds(key)),
                found => found.transpose(),
            };
        }
        let may_have_none =
            self.program.semantics == Semantics::Kubernetes || matches!(container, Val::Optional(_));
        if lenient && may_have_none {
            Ok(None)
        } else {
            Err(EvalError::no_such_key(key))
        }
    }

    fn map_entry(&self, map: Map<'a>, key: Val<'a>) -> Result<Option<Cursor<'a>>, EvalError> {
        map.get(self.arena, key).transpose().map(|v| v.map(Cursor::Val))
    }

    fn list_item(&self, list: List<'a>, index: usize) -> Option<Result<Cursor<'a>, EvalError>> {
        match list {
            List::Json(items, shape) => {
                let item = items.get(index)?;
                Some(Ok(Cursor::Json(item, element_shape(shape))))
            }
            list => list.get(self.arena, index).map(|v| v.map(Cursor::Val)),
        }
    }
}

impl Attribute {
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
        let (QualifierKey::Name(name), Value::Object(object), false) = (&self.key, value, self.optional)
        else {
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

/// What an attribute result_kind that found nothing where it may.
fn absent(mode: AttributeMode) -> Val<'static> {
    match mode {
        AttributeMode::Presence => Val::FALSE,
        AttributeMode::Value => Val::NONE,
    }
}

/// The index that a value means.
fn list_index(key: Val<'_>) -> Result<i64, EvalError> {
    let index = match key {
        Val::Int(i) => Some(i),
        Val::Uint(u) => i64::try_from(u).ok(),
        Val::Double(d) => lossless(d),
        other => {
            return Err(EvalError::message(format!(
                "unsupported index type '{}' in list",
                other.type_name()
            )));
        }
    };
    index.ok_or_else(|| EvalError::message(format!("unsupported index value {key} in list")))
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
            ShapeKind::Object { .. } => {
                let Some(field) = shape.select(&self.name) else {
                    return Some(None);
                };
                // A null member of an object is an absent one.
                let value = self.find(object, &field.json).filter(|v| !v.is_null());
                Some(value.map(|v| (v, field.shape.as_ref())))
            }
            ShapeKind::Map { value: shape } => {
                Some(self.find(object, &self.name).map(|v| (v, shape.as_ref())))
            }
            ShapeKind::Dyn => Some(self.find(object, &self.name).map(|v| (v, &DYN))),
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
