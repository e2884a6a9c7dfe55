//! Attributes: a variable or value, and the qualifiers that select from it.

use super::Input;
use super::interpreter::{Computed, Interpreter, LocalValue, as_bool};
use super::op::{Attribute, AttributeMode, AttributeRoot, Conditional, Name, Qualifier, QualifierKey};
use crate::env::Semantics;
use crate::shape::{Shape, ShapeKind};
use crate::val::{DYN, EvalError, List, Val, element_shape, read};
use scantling_value::{Map as JsonObject, Value};
use std::sync::atomic::Ordering;

/// The value that a chain of qualifiers has reached. JSON is converted as late as possible.
#[derive(Clone, Copy)]
enum AttributeCursor<'a> {
    Json(&'a Value, &'a Shape),
    Val(Val<'a>),
}

impl<'a> Interpreter<'a, '_> {
    /// Evaluates an attribute, which costs 1 and 1 for every qualifier.
    #[inline(never)]
    pub(super) fn attribute(&mut self, attribute: &'a Attribute) -> Computed<Val<'a>> {
        if attribute.mode == AttributeMode::Presence {
            return self.presence(attribute).map(Val::Bool);
        }
        match self.declared_value(attribute) {
            Some((value, shape)) => {
                // Charged before the conversion: kube-apiserver counts the attribute even if its value does not fit the
                // schema.
                self.charge(attribute.cost())?;
                read(self.arena, value, shape)
            }
            // Also if a field is absent, because the error and the cost then depend on how far the path got.
            None => self.any_attribute(attribute),
        }
    }

    /// The JSON value of an attribute that starts at JSON and selects declared fields only, as most attributes do.
    /// `None` for any other attribute, and if a field is absent.
    #[inline]
    pub(super) fn declared_value(&self, attribute: &'a Attribute) -> Option<(&'a Value, &'a Shape)> {
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
                Some(LocalValue::Json(value, shape)) => Some((value, shape)),
                _ => None,
            },
            // A computed value must be evaluated, and its cost counted, before anything is selected from it.
            AttributeRoot::Value(_) => None,
        }
    }

    #[inline(never)]
    fn any_attribute(&mut self, attribute: &'a Attribute) -> Computed<Val<'a>> {
        if let AttributeRoot::Local(n) = attribute.root
            && attribute.path.is_empty()
            && let Some(LocalValue::Val(value)) = self.local(n)
        {
            let value = *value;
            self.charge(1)?;
            return Ok(value);
        }
        // The qualifiers have charged for themselves; 1 more is for the attribute as a whole.
        let value = self.resolve_attribute(attribute);
        self.charge_for(value, 1)
    }

    /// `has(a.b)`, which costs 1 for every qualifier.
    #[inline(never)]
    pub(super) fn presence(&mut self, attribute: &'a Attribute) -> Computed<bool> {
        if let Some((last, path)) = attribute.path.split_last()
            && let Some(start) = self.json_root(&attribute.root)
            // Only the last qualifier may be absent. A missing parent is an error, which the general path reports.
            && let Some((value, shape)) = follow(start, path)
            && let Some(member) = last.member(value, shape)
        {
            self.charge(attribute.path.len() as u64)?;
            return match member {
                None => Ok(false),
                Some((value, shape)) => self.check_readable(value, shape).map(|()| true),
            };
        }
        self.resolve_attribute(attribute).and_then(as_bool)
    }

    /// Fails if a value does not fit its shape, which is an error even in a presence test.
    #[inline]
    fn check_readable(&self, value: &'a Value, shape: &'a Shape) -> Computed<()> {
        match (value, &shape.kind) {
            (Value::String(_), ShapeKind::String)
            | (Value::Int(_), ShapeKind::Int)
            | (Value::Bool(_), ShapeKind::Bool) => Ok(()),
            _ => read(self.arena, value, shape).map(|_| ()),
        }
    }

    /// Evaluates an attribute as part of another one: only the qualifiers cost.
    pub(super) fn resolve_attribute(&mut self, attribute: &'a Attribute) -> Computed<Val<'a>> {
        let start = self.root(&attribute.root)?;
        self.qualify(start, &attribute.path, attribute.mode)
    }

    fn root(&mut self, root: &'a AttributeRoot) -> Computed<AttributeCursor<'a>> {
        match root {
            AttributeRoot::Input(n) => match self.inputs.get(*n) {
                Some(Input::Json(value, shape)) => Ok(AttributeCursor::Json(value, shape)),
                Some(Input::Val(v)) => Ok(AttributeCursor::Val(*v)),
                // For example `oldSelf` on a create request.
                Some(Input::Absent) | None => {
                    let name = self.program.inputs.get(*n).map_or("", |name| name.as_ref());
                    Err(EvalError::message(format!("no such attribute(s): {name}")))
                }
            },
            AttributeRoot::Local(n) => {
                // Forced on the first read, like cel-go's accumulator, so that the cost arises where the variable is
                // used.
                if let Some(LocalValue::Lazy(op)) = self.local(*n) {
                    let op = *op;
                    self.force(*n, op);
                }
                match self.local(*n) {
                    Some(LocalValue::Json(value, shape)) => Ok(AttributeCursor::Json(value, shape)),
                    Some(LocalValue::Val(v)) => Ok(AttributeCursor::Val(*v)),
                    Some(LocalValue::Error(e)) => Err(e.clone()),
                    Some(LocalValue::Absent | LocalValue::Lazy(_)) | None => {
                        // Not reached for programs that the checker has accepted: a variable is set before its scope is
                        // evaluated.
                        Err(EvalError::message("no such attribute(s): "))
                    }
                }
            }
            AttributeRoot::Value(op) => Ok(AttributeCursor::Val(self.eval(op)?)),
        }
    }

    /// Applies the qualifiers behind a conditional to the value of its branch.
    pub(super) fn qualify_conditional(
        &mut self,
        conditional: &'a Conditional,
        value: Val<'a>,
    ) -> Computed<Val<'a>> {
        let selected = self.qualify(AttributeCursor::Val(value), &conditional.path, conditional.mode);
        // cel-go subtracts 1 for a presence test. Other attributes cost 1 themselves, so that the two cancel out; a
        // conditional costs nothing itself.
        if conditional.mode == AttributeMode::Presence {
            self.refund(1);
        }
        selected
    }

    fn qualify(
        &mut self,
        start: AttributeCursor<'a>,
        path: &'a [Qualifier],
        mode: AttributeMode,
    ) -> Computed<Val<'a>> {
        let mut cursor = start;
        // Once a qualifier is optional, so are all that follow, as in cel-go's `applyQualifiers`.
        let mut optional = false;
        // True if the cursor is an element of a list. kube-apiserver selects elements before it converts
        // them, so a conversion error costs differently there.
        let mut element = false;
        if let AttributeCursor::Val(Val::Optional(value)) = start
            && !path.is_empty()
        {
            let Some(value) = value else {
                return Ok(absent(mode));
            };
            optional = true;
            cursor = AttributeCursor::Val(*value);
        }
        for (i, qualifier) in path.iter().enumerate() {
            optional |= qualifier.optional;
            let tests_presence = mode == AttributeMode::Presence && i + 1 == path.len();
            // A qualifier of a value that does not fit its shape costs nothing.
            let container = match cursor {
                AttributeCursor::Json(Value::Object(_), shape) if shape.is_keyed() => cursor,
                cursor => match self.read(cursor) {
                    Ok(value) => AttributeCursor::Val(value),
                    Err(e) if element && !optional => return self.charge_for(Err(e), 1),
                    Err(e) => return Err(e),
                },
            };
            element = matches!(container, AttributeCursor::Val(value) if value.as_list().is_some());
            let found = self.select(container, &qualifier.key, optional || tests_presence);
            // An optional qualifier costs only if it selects something.
            if !optional || matches!(found, Ok(Some(next)) if element || self.read(next).is_ok()) {
                self.charge(1)?;
            }
            match found? {
                Some(next) => cursor = next,
                None => return Ok(absent(mode)),
            }
        }
        let value = self.read(cursor)?;
        match mode {
            // The value has been read above, because a value that does not fit its shape is an error even here.
            AttributeMode::Presence => Ok(Val::TRUE),
            AttributeMode::Value if optional => self.arena.some(value),
            AttributeMode::Value => Ok(value),
        }
    }

    fn read(&self, cursor: AttributeCursor<'a>) -> Computed<Val<'a>> {
        match cursor {
            AttributeCursor::Json(value, shape) => read(self.arena, value, shape),
            AttributeCursor::Val(v) => Ok(v),
        }
    }

    /// Applies one qualifier. Returns `None` if nothing is there and `lenient` allows it.
    fn select(
        &mut self,
        cursor: AttributeCursor<'a>,
        key: &'a QualifierKey,
        lenient: bool,
    ) -> Computed<Option<AttributeCursor<'a>>> {
        let key = match key {
            QualifierKey::Name(name) => {
                if let AttributeCursor::Json(Value::Object(object), shape) = cursor
                    && let Some(found) = name.member(object, shape)
                {
                    return match found {
                        None if !lenient => Err(EvalError::no_such_key(&name.name)),
                        found => Ok(found.map(|(value, shape)| AttributeCursor::Json(value, shape))),
                    };
                }
                Val::Str(&name.name)
            }
            QualifierKey::Const(key) => key.val(self.arena)?,
            QualifierKey::Computed(op) => self.resolve(op)?,
        };
        self.select_value(cursor, key, lenient)
    }

    fn select_value(
        &mut self,
        cursor: AttributeCursor<'a>,
        key: Val<'a>,
        lenient: bool,
    ) -> Computed<Option<AttributeCursor<'a>>> {
        // Reached for names only if the container is not a JSON object, or its shape has no members.
        let container = self.read(cursor)?;
        if let Some(map) = container.as_map() {
            return match map.get(self.arena, key) {
                Some(value) => Ok(Some(AttributeCursor::Val(value?))),
                None if lenient => Ok(None),
                None => Err(EvalError::no_such_key(key)),
            };
        }
        if let Some(list) = container.as_list() {
            let index = list_index(key)?;
            return match usize::try_from(index).ok().and_then(|i| self.list_item(list, i)) {
                // UPSTREAM: only lists that the program has made accept unsigned and floating-point indexes.
                Some(_) if matches!(list, List::Json(..)) && !matches!(key, Val::Int(_)) => {
                    Err(EvalError::message(format!("unsupported index: {key}")))
                }
                None if !lenient => Err(EvalError::index_out_of_bounds(key)),
                found => found.transpose(),
            };
        }
        // kube-apiserver runs cel-go with lenient presence tests: a value without members has none.
        let may_have_none =
            self.program.semantics == Semantics::Kubernetes || matches!(container, Val::Optional(_));
        if lenient && may_have_none {
            Ok(None)
        } else {
            Err(EvalError::no_such_key(key))
        }
    }

    fn list_item(&self, list: List<'a>, index: usize) -> Option<Computed<AttributeCursor<'a>>> {
        match list {
            List::Json(items, shape) => {
                let item = items.get(index)?;
                Some(Ok(AttributeCursor::Json(item, element_shape(shape))))
            }
            list => {
                let item = list.get(self.arena, index)?;
                Some(item.map(AttributeCursor::Val))
            }
        }
    }
}

impl Attribute {
    /// The cost of the value, if all qualifiers select something.
    #[inline]
    pub(super) fn cost(&self) -> u64 {
        self.path.len() as u64 + 1
    }
}

/// Selects declared fields. `None` if a qualifier is not one, or its field is absent.
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
    /// The member of a JSON object that this selects. The outer `None` means that it is not a plain name.
    #[inline]
    fn member<'a>(&'a self, value: &'a Value, shape: &'a Shape) -> Option<Option<(&'a Value, &'a Shape)>> {
        if let Some(declared) = self.declared(value, shape) {
            return Some(declared);
        }
        match (&self.key, value, self.optional) {
            (QualifierKey::Name(name), Value::Object(object), false) => name.member(object, shape),
            _ => None,
        }
    }

    /// The declared field of an object that this selects. The outer `None` means that it is not one.
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
        // The checker's shape may differ from that of the value, for example behind `dyn` or a conditional. Comparing
        // pointers is enough: equal shapes are shared, and a miss only takes the slow path.
        if !std::ptr::eq(known.within.as_ref(), shape) {
            return None;
        }
        // A null member of an object counts as absent.
        let member = name.find(object, &known.json).filter(|v| !v.is_null());
        Some(member.map(|v| (v, known.shape.as_ref())))
    }
}

/// The result of an optional attribute that selects nothing.
fn absent(mode: AttributeMode) -> Val<'static> {
    match mode {
        AttributeMode::Presence => Val::FALSE,
        AttributeMode::Value => Val::NONE,
    }
}

/// Converts a value to a list index.
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
    // `as` saturates: 2^63 and beyond become `i64::MAX`, which converts back to 2^63 and would look lossless.
    (i as f64 == d && i != i64::MAX).then_some(i)
}

impl Name {
    /// The member of a JSON object, with its shape. The outer `None` means that the shape has no members.
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
                // A null member of an object counts as absent.
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
        // Relaxed is enough: a stale hint only makes the lookup slower, because the key is always compared.
        let before = self.hint.load(Ordering::Relaxed);
        let mut hint = before;
        let value = object.get_near(key, &mut hint);
        // The hint is shared between threads, so it is written only when it changes.
        if hint != before {
            self.hint.store(hint, Ordering::Relaxed);
        }
        value
    }
}
