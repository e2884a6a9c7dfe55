//! The fields that an object sets.

use super::ty::{ListKind, MapKind, Shape, TypeRef};
use crate::fields::{Element, Set};
use scantling_value::{Map, Value};
use std::collections::BTreeMap;

pub(super) fn fields_of(value: &Value, ty: TypeRef<'_>) -> Set {
    let mut out = Set::new();
    fields(value, ty, &mut out);
    out
}

/// Collects the fields inside of a value, and says whether the value itself is one.
fn fields(value: &Value, ty: TypeRef<'_>, out: &mut Set) -> bool {
    match (ty.kinds().shape(Some(value)).0, value) {
        (Some(Shape::Scalar(_)), _) => true,
        (Some(Shape::Map(kind)), _) if kind.atomic => true,
        (Some(Shape::List(kind)), _) if kind.is_atomic() => true,
        (Some(Shape::Map(kind)), Value::Object(map)) => {
            members(map, kind, out);
            false
        }
        (Some(Shape::List(kind)), Value::Array(items)) => {
            elements(items, kind, out);
            false
        }
        _ => false,
    }
}

fn members(map: &Map, kind: MapKind<'_>, out: &mut Set) {
    for (name, value) in map.iter() {
        let declared = kind.field(name);
        let Some(ty) = declared.or(kind.element) else {
            continue;
        };
        let mut below = Set::new();
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        // Entries of maps are fields of their own, beside what is inside of them.
        let own = fields(value, ty, &mut below) || is_empty || declared.is_none();
        let element = Element::Field(name.clone());
        if own {
            out.add(&element);
        }
        out.add_below(&element, below);
    }
}

fn elements(items: &[Value], kind: ListKind<'_>, out: &mut Set) {
    let mut found: BTreeMap<Element, Option<&Value>> = BTreeMap::new();
    for item in items {
        if let Ok(element) = kind.element_of(item) {
            found
                .entry(element)
                .and_modify(|seen| *seen = None)
                .or_insert(Some(item));
        }
    }
    for (element, item) in found {
        out.add(&element);
        // Of elements that repeat nothing inside can be told apart.
        if let Some(item) = item {
            let mut below = Set::new();
            fields(item, kind.element, &mut below);
            out.add_below(&element, below);
        }
    }
}
