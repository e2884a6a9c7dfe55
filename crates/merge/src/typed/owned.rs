//! The fields that an object sets.

use super::object_type::{ChosenType, ListSchema, MapSchema, TypeRef};
use crate::fields::{Element, Set, SetBuilder};
use scantling_value::{Map, Value, deadline};

pub(super) fn fields_of(value: &Value, ty: TypeRef<'_>) -> Set {
    fields(value, ty).1
}

/// Returns whether a value is a field itself, and the fields inside.
fn fields(value: &Value, ty: TypeRef<'_>) -> (bool, Set) {
    deadline::tick();
    match (ty.kinds().shape(Some(value)).0, value) {
        (Some(ChosenType::Scalar(_)), _) => (true, Set::new()),
        (Some(ChosenType::Map(kind)), _) if kind.atomic => (true, Set::new()),
        (Some(ChosenType::List(kind)), _) if kind.is_atomic() => (true, Set::new()),
        (Some(ChosenType::Map(kind)), Value::Object(map)) => (false, members(map, kind)),
        (Some(ChosenType::List(kind)), Value::Array(items)) => (false, elements(items, kind)),
        _ => (false, Set::new()),
    }
}

/// Returns whether a value is set by its mere presence, whatever it contains.
fn is_empty(value: &Value) -> bool {
    // structured-merge-diff treats null and `{}` alike here, but not `[]`.
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

fn members(map: &Map, kind: MapSchema<'_>) -> Set {
    let mut out = SetBuilder::default();
    for (name, value) in map.iter() {
        let declared = kind.field(name);
        let Some(ty) = declared.or(kind.element) else {
            continue;
        };
        let (own, below) = fields(value, ty);
        // Entries of maps are fields themselves, besides their contents.
        let own = own || is_empty(value) || declared.is_none();
        out.push(Element::Field(name.clone()), own, below);
    }
    out.finish()
}

fn elements(items: &[Value], kind: ListSchema<'_>) -> Set {
    let mut out = SetBuilder::default();
    for group in kind.sorted(items).chunk_by(|(a, _), (b, _)| a == b) {
        match group {
            [(element, item)] => out.push(element.clone(), true, fields(item, kind.element).1),
            // The contents of repeated elements cannot be distinguished.
            [(element, _), ..] => out.push(element.clone(), true, Set::new()),
            [] => {}
        }
    }
    out.finish()
}

/// Returns whether a field set would contain the value or any field inside it.
fn sets_anything(value: &Value, ty: TypeRef<'_>) -> bool {
    deadline::tick();
    match (ty.kinds().shape(Some(value)).0, value) {
        (Some(ChosenType::Scalar(_)), _) => true,
        (Some(ChosenType::Map(kind)), _) if kind.atomic => true,
        (Some(ChosenType::List(kind)), _) if kind.is_atomic() => true,
        (Some(ChosenType::Map(kind)), Value::Object(map)) => {
            map.iter().any(|(name, value)| sets_member(name, value, kind))
        }
        // Even an element that cannot be identified (pruning leaves nulls behind) counts as set.
        (Some(ChosenType::List(_)), Value::Array(items)) => !items.is_empty(),
        _ => false,
    }
}

/// Returns whether the field set of an object would contain a member or any field inside it.
pub(super) fn sets_member(name: &str, value: &Value, kind: MapSchema<'_>) -> bool {
    match (kind.field(name), kind.element) {
        (Some(ty), _) => is_empty(value) || sets_anything(value, ty),
        (None, element) => element.is_some(),
    }
}
