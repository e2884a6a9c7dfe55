//! The fields that an object sets.

use super::object_type::{ChosenType, ListSchema, MapSchema, TypeRef};
use crate::fields::NodeBuilder;
use scantling_value::{Map, Value, deadline};

/// Returns whether a value is a field itself, and the fields inside.
pub(super) fn fields_of(value: &Value, ty: TypeRef<'_>) -> (bool, NodeBuilder) {
    deadline::tick();
    match (ty.kinds().choose(Some(value)).0, value) {
        (Some(ChosenType::Scalar(_)), _) => (true, NodeBuilder::default()),
        (Some(ChosenType::Map(kind)), _) if kind.atomic => (true, NodeBuilder::default()),
        (Some(ChosenType::List(kind)), _) if kind.is_atomic() => (true, NodeBuilder::default()),
        (Some(ChosenType::Map(kind)), Value::Object(map)) => (false, members(map, kind)),
        (Some(ChosenType::List(kind)), Value::Array(items)) => (false, elements(items, kind)),
        _ => (false, NodeBuilder::default()),
    }
}

/// Returns whether a value is set by its mere presence, whatever it contains.
fn is_empty(value: &Value) -> bool {
    // structured-merge-diff treats null and `{}` alike here, but not `[]`.
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

fn members(map: &Map, kind: MapSchema<'_>) -> NodeBuilder {
    let mut out = NodeBuilder::with_capacity(map.len());
    for (name, value) in map.iter() {
        let declared = kind.field(name);
        let Some(ty) = declared.or(kind.element) else {
            continue;
        };
        let (own, below) = fields_of(value, ty);
        // Entries of maps are fields themselves, besides their contents.
        let own = own || is_empty(value) || declared.is_none();
        out.field(name, own, below);
    }
    out
}

fn elements(items: &[Value], kind: ListSchema<'_>) -> NodeBuilder {
    let mut out = NodeBuilder::with_capacity(items.len());
    for group in kind.sorted(items).chunk_by(|(a, _), (b, _)| a == b) {
        match group {
            [(element, item)] => out.element(element, true, fields_of(item, kind.element).1),
            // The contents of repeated elements cannot be distinguished.
            [(element, _), ..] => out.element(element, true, NodeBuilder::default()),
            [] => {}
        }
    }
    out
}

/// Returns whether a field set would contain the value or any field inside it.
fn sets_anything(value: &Value, ty: TypeRef<'_>) -> bool {
    deadline::tick();
    match (ty.kinds().choose(Some(value)).0, value) {
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
