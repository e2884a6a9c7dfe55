//! Maps of all representations.

use super::order::{exact_order, number_order};
use super::{Arena, DYN, EvalError, Owned, Res, Val, read};
use crate::shape::{Shape, ShapeKind};
use scantling_value::Map as JsonObject;
use std::cmp::Ordering;

/// A map.
#[derive(Clone, Copy, Debug)]
pub enum Map<'a> {
    /// An object or map of the input.
    Json(&'a JsonObject, &'a Shape),
    /// A map built during evaluation, sorted by [`key_order`].
    Vals(&'a [(Val<'a>, Val<'a>)]),
    /// A constant of the program, sorted by [`key_order`].
    Owned(&'a [(Owned, Owned)]),
}

impl<'a> Map<'a> {
    /// The number of entries. For an input object, all members count, even undeclared ones.
    pub fn len(self) -> usize {
        match self {
            Map::Json(object, _) => object.len(),
            Map::Vals(entries) => entries.len(),
            Map::Owned(entries) => entries.len(),
        }
    }

    /// Returns whether the map is empty.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The value of a key; an error if it does not fit its shape. A number finds an equal key of any number
    /// type.
    pub fn get(self, arena: &'a Arena, key: Val<'a>) -> Option<Res<'a>> {
        match self {
            Map::Json(object, shape) => {
                let Val::Str(name) = key else {
                    // Members of JSON have string names; kube-apiserver reports any other key as found, but an error.
                    return Some(Err(EvalError::NoSuchOverload));
                };
                match &shape.kind {
                    ShapeKind::Object { .. } => {
                        // By the name in expressions, which is escaped, and not by the name in JSON.
                        let field = shape.field(name)?;
                        // A null member of an object counts as absent.
                        let value = object.get(&field.json).filter(|v| !v.is_null())?;
                        Some(read(arena, value, &field.shape))
                    }
                    ShapeKind::Map { value } => Some(read(arena, object.get(name)?, value)),
                    _ => Some(read(arena, object.get(name)?, &DYN)),
                }
            }
            Map::Vals(entries) => find(entries, key, |(k, _)| *k).map(|(_, v)| Ok(*v)),
            Map::Owned(entries) => find(entries, key, |(k, _)| k.key()).map(|(_, v)| v.val(arena)),
        }
    }

    /// The keys in order, without undeclared members of objects.
    pub fn keys(self) -> impl Iterator<Item = Val<'a>> {
        (0..self.slots()).filter_map(move |i| self.key_at(i))
    }

    /// The entries in key order.
    pub fn entries(self, arena: &'a Arena) -> impl Iterator<Item = (Val<'a>, Res<'a>)> {
        (0..self.slots()).filter_map(move |i| {
            let key = self.key_at(i)?;
            Some((key, self.get(arena, key)?))
        })
    }

    /// The number of positions for [`Map::key_at`].
    pub(crate) fn slots(self) -> usize {
        match self {
            Map::Json(
                _,
                Shape {
                    kind: ShapeKind::Object { fields, .. },
                    ..
                },
            ) => fields.len(),
            _ => self.len(),
        }
    }

    /// The key at a position, in key order; `None` for an absent declared field.
    pub(crate) fn key_at(self, place: usize) -> Option<Val<'a>> {
        match self {
            Map::Json(
                object,
                Shape {
                    kind: ShapeKind::Object { fields, .. },
                    ..
                },
            ) => {
                let field = fields.get(place)?;
                // A null member has a key although it cannot be found: kube-apiserver iterates over the names of all
                // members.
                object.contains_key(&field.json).then_some(Val::Str(&field.name))
            }
            Map::Json(object, _) => object.entries().get(place).map(|(k, _)| Val::Str(k)),
            Map::Vals(entries) => entries.get(place).map(|(k, _)| *k),
            Map::Owned(entries) => entries.get(place).map(|(k, _)| k.key()),
        }
    }
}

/// The order of keys in a map: booleans, numbers by value, strings, then the rest; equal numbers by type.
pub fn key_order(a: Val<'_>, b: Val<'_>) -> Ordering {
    number_order(a, b)
        .filter(|o| o.is_ne())
        .unwrap_or_else(|| exact_order(a, b))
}

/// Returns whether two keys are equal, regardless of number types.
pub(crate) fn is_same_key(a: Val<'_>, b: Val<'_>) -> bool {
    number_order(a, b).unwrap_or_else(|| exact_order(a, b)).is_eq()
}

/// Sorts entries; the last of several equal ones wins.
pub(super) fn sort_entries<E>(entries: &mut Vec<E>, order: impl Fn(&E, &E) -> Ordering) {
    entries.sort_by(|a, b| order(a, b));
    entries.dedup_by(|later, earlier| {
        let same = order(later, earlier).is_eq();
        if same {
            // `dedup_by` removes the later entry, so its content is moved to the earlier one.
            std::mem::swap(later, earlier);
        }
        same
    });
}

/// Finds the entry with an equal key, preferring the same number type.
pub(super) fn find<'a, E>(
    entries: &'a [E],
    key: Val<'a>,
    key_of: impl Fn(&'a E) -> Val<'a>,
) -> Option<&'a E> {
    let loose = |e: &'a E| {
        let k = key_of(e);
        number_order(k, key).unwrap_or_else(|| exact_order(k, key))
    };
    let (mut low, mut high) = (0, entries.len());
    while low < high {
        let middle = low.midpoint(high);
        if entries.get(middle).is_some_and(|e| loose(e).is_lt()) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    // Numbers of different types that are equal may be keys of their own, next to each other.
    let equal = || entries.iter().skip(low).take_while(|e| loose(e).is_eq());
    equal()
        .find(|e| exact_order(key_of(e), key).is_eq())
        .or_else(|| equal().next())
}

/// The shape of a declared field, or of the values of a map, by the member's JSON name.
pub(super) fn json_field_shape<'a>(shape: &'a Shape, json: &str) -> Option<&'a Shape> {
    match &shape.kind {
        // Most fields have the same name in JSON and CEL, so try that first.
        ShapeKind::Object { fields, .. } => shape
            .field(json)
            .filter(|f| f.json.as_ref() == json)
            .or_else(|| fields.iter().find(|f| f.json.as_ref() == json))
            .map(|f| f.shape.as_ref()),
        ShapeKind::Map { value } => Some(value),
        _ => Some(&DYN),
    }
}
