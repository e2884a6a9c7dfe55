//! Equality between values.

use super::list::{List, merge_key, merge_key_order, set_key};
use super::map::{Map, json_field_shape};
use super::order::{exact_order, number_order};
use super::{Arena, EvalError, Res, Val, read};
use crate::shape::{ListType, Shape, ShapeKind};
use scantling_value::{Map as JsonObject, Value, ValueKey};
use std::cmp::Ordering;

/// `left == right`. Values of different types are unequal, except numbers, which compare by value.
///
/// Input lists and objects compare by the shape of the left operand: a set equals any list with the same
/// elements, and comparing an object with anything else is an error.
pub fn equal<'a>(arena: &'a Arena, left: Val<'a>, right: Val<'a>) -> Result<bool, EvalError> {
    if matches!(left, Val::Null) || matches!(right, Val::Null) {
        // cel-go compares null before it asks either value, so that null never is incomparable.
        return Ok(matches!((left, right), (Val::Null, Val::Null)));
    }
    equal_to(arena, left, &Ok(right))
}

/// Like [`equal`], but the right side may be an error, and null is not special.
pub(super) fn equal_to<'a>(arena: &'a Arena, left: Val<'a>, right: &Res<'a>) -> Result<bool, EvalError> {
    if let Some(list) = left.as_list() {
        return equal_lists(arena, list, right);
    }
    if let Some(map) = left.as_map() {
        return equal_maps(arena, map, right);
    }
    let right = match right {
        Ok(right) => *right,
        Err(e) if e.is_final() => return Err(e.clone()),
        Err(_) => return Ok(false),
    };
    Ok(match (left, right) {
        (Val::Null, Val::Null) => true,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        (Val::Str(a), Val::Str(b)) | (Val::Type(a), Val::Type(b)) => a == b,
        (Val::Bytes(a), Val::Bytes(b)) => a == b,
        (Val::Duration(a), Val::Duration(b)) => a == b,
        (Val::Timestamp(a), Val::Timestamp(b)) => a == b,
        // Opaque values decide themselves: for most, another type on the right is an error.
        (Val::Opaque(a), b) => return a.equals(b),
        (Val::Optional(a), Val::Optional(b)) => match (a, b) {
            (Some(a), Some(b)) => return equal_to(arena, *a, &Ok(*b)),
            (a, b) => a.is_none() && b.is_none(),
        },
        (a, b) => number_order(a, b) == Some(Ordering::Equal),
    })
}

/// Returns whether a value has a schema: such lists and maps compare only with others that have one.
fn has_schema(shape: &Shape) -> bool {
    !matches!(shape.kind, ShapeKind::Dyn)
}

fn mismatch(strict: bool, right: &Res<'_>) -> Result<bool, EvalError> {
    match right {
        Err(e) if strict || e.is_final() => Err(e.clone()),
        // kube-apiserver's values with a schema refuse other types, whereas cel-go's own are just unequal.
        _ if strict => Err(EvalError::NoSuchOverload),
        _ => Ok(false),
    }
}

fn equal_lists<'a>(arena: &'a Arena, left: List<'a>, right: &Res<'a>) -> Result<bool, EvalError> {
    let schema = matches!(left, List::Json(_, shape) if has_schema(shape));
    let Some(other) = right.as_ref().ok().and_then(|v| v.as_list()) else {
        return mismatch(schema, right);
    };
    if left.len() != other.len() {
        return Ok(false);
    }
    match left.list_type() {
        ListType::Set => equal_sets(arena, left, other),
        ListType::Map(keys) => equal_map_lists(arena, left, other, keys),
        ListType::Atomic => {
            for (a, b) in left.iter(arena).zip(other.iter(arena)) {
                let equal = if schema {
                    a.and_then(|a| equal_to(arena, a, &b))
                } else {
                    equal_parts(arena, &a, &b)
                };
                match equal {
                    Ok(true) => {}
                    // cel-go's own lists compare as unequal only if an element is definitely unequal; an error counts
                    // as equal.
                    Err(e) if !schema && !e.is_final() => {}
                    unequal => return unequal,
                }
            }
            Ok(true)
        }
    }
}

fn equal_parts<'a>(arena: &'a Arena, a: &Res<'a>, b: &Res<'a>) -> Result<bool, EvalError> {
    match (a, b) {
        (Ok(a), Ok(b)) => equal(arena, *a, *b),
        (Err(e), _) => Err(e.clone()),
        // Null is equal to null only, whatever the other element would have been.
        (Ok(Val::Null), Err(_)) => Ok(false),
        (Ok(a), b) => equal_to(arena, *a, b),
    }
}

/// Returns whether two lists have the same elements. An element that cannot be read equals nothing.
fn equal_sets<'a>(arena: &'a Arena, left: List<'a>, right: List<'a>) -> Result<bool, EvalError> {
    let mut keys = Vec::with_capacity(left.len());
    // An unreadable element is a key of its own, which nothing on the right can match.
    let mut all_readable = true;
    for item in left.iter(arena) {
        match item {
            Ok(item) => keys.push(set_key(item)?),
            Err(e) if e.is_final() => return Err(e),
            Err(_) => all_readable = false,
        }
    }
    // Exact: in a set of kube-apiserver `1` and `1.0` are different keys, although `1 == 1.0`.
    keys.sort_by(|a, b| exact_order(*a, *b));
    keys.dedup_by(|a, b| exact_order(*a, *b).is_eq());
    let mut met = vec![false; keys.len()];
    for item in right.iter(arena) {
        let key = match item {
            Ok(item) => set_key(item)?,
            Err(e) if e.is_final() => return Err(e),
            Err(_) => return Ok(false),
        };
        let found = keys.binary_search_by(|known| exact_order(*known, key));
        match found.ok().and_then(|at| met.get_mut(at)) {
            Some(met) => *met = true,
            None => return Ok(false),
        }
    }
    Ok(all_readable && met.iter().all(|met| *met))
}

/// Compares associative lists, whatever the order of their elements.
fn equal_map_lists<'a>(
    arena: &'a Arena,
    left: List<'a>,
    right: List<'a>,
    keys: &'a [Box<str>],
) -> Result<bool, EvalError> {
    if !matches!(left, List::Json(..)) {
        let key = |item: &Res<'a>| Ok(Some(merge_key(arena, item.clone(), keys)?));
        return equal_by_key(arena, left, right, key, |a, b| merge_key_order(a, b));
    }
    // UPSTREAM: the members are looked up by the names of the keys in expressions, so a key whose name is escaped is
    // null. Only input objects have a key.
    let key = |item: &Res<'a>| {
        let object: &'a JsonObject = match item {
            Ok(Val::JsonMap(object, _)) => object,
            Err(e) if e.is_final() => return Err(e.clone()),
            _ => return Ok(None),
        };
        let members = keys.iter().map(|key| object.get(key).unwrap_or(&Value::Null));
        Ok(Some(members.map(ValueKey).collect()))
    };
    equal_by_key(arena, left, right, key, |a: &Vec<_>, b| a.cmp(b))
}

/// Returns whether every element on the right has an equal one on the left, and every key on the left is
/// matched. An element without a key equals nothing.
fn equal_by_key<'a, K>(
    arena: &'a Arena,
    left: List<'a>,
    right: List<'a>,
    key: impl Fn(&Res<'a>) -> Result<Option<K>, EvalError>,
    order: impl Fn(&K, &K) -> Ordering,
) -> Result<bool, EvalError> {
    let mut elements = Vec::with_capacity(left.len());
    for item in left.iter(arena) {
        elements.extend(key(&item)?.map(|key| (key, item)));
    }
    let all_have_keys = elements.len() == left.len();
    elements.sort_by(|(a, _), (b, _)| order(a, b));
    let mut met = vec![false; elements.len()];
    for item in right.iter(arena) {
        let Some(key) = key(&item)? else {
            return Ok(false);
        };
        // The sort is stable, so the last of several equal keys on the left wins.
        let end = elements.partition_point(|(k, _)| order(k, &key).is_le());
        let at = end.wrapping_sub(1);
        match elements.get(at).zip(met.get_mut(at)) {
            Some(((k, own), met)) if order(k, &key).is_eq() => {
                if !equal_to(arena, own.clone()?, &item)? {
                    return Ok(false);
                }
                *met = true;
            }
            _ => return Ok(false),
        }
    }
    // Elements with repeated keys on the left count once, because kube-apiserver keeps one element per key.
    let distinct = elements.chunk_by(|(a, _), (b, _)| order(a, b).is_eq()).count();
    Ok(all_have_keys && met.iter().filter(|m| **m).count() == distinct)
}

fn equal_maps<'a>(arena: &'a Arena, left: Map<'a>, right: &Res<'a>) -> Result<bool, EvalError> {
    let schema = match left {
        Map::Json(object, shape) if has_schema(shape) => Some((object, shape)),
        _ => None,
    };
    let Some(other) = right.as_ref().ok().and_then(|v| v.as_map()) else {
        return mismatch(schema.is_some(), right);
    };
    if left.len() != other.len() {
        return Ok(false);
    }
    if let Some((object, shape)) = schema {
        return equal_objects(arena, object, shape, other);
    }
    for key in left.keys() {
        let (Some(a), Some(b)) = (left.get(arena, key), other.get(arena, key)) else {
            return Ok(false);
        };
        match equal_parts(arena, &a, &b) {
            Ok(false) => return Ok(false),
            Err(e) if e.is_final() => return Err(e),
            // As in cel-go, values that cannot be compared do not make maps different.
            _ => {}
        }
    }
    Ok(true)
}

/// Compares an input object or map with any map of the same size.
///
/// As on kube-apiserver, undeclared members are compared if both sides have them, and ignored if only one
/// side has them.
fn equal_objects<'a>(
    arena: &'a Arena,
    object: &'a JsonObject,
    shape: &'a Shape,
    other: Map<'a>,
) -> Result<bool, EvalError> {
    let is_object = matches!(shape.kind, ShapeKind::Object { .. });
    for (key, value) in object.iter() {
        // An undeclared member has no conversion, so the JSON values are compared.
        let Some(field) = json_field_shape(shape, key) else {
            let Map::Json(other, _) = other else {
                return Err(EvalError::NoSuchOverload);
            };
            if other.get(key).is_some_and(|o| o != value) {
                return Ok(false);
            }
            continue;
        };
        // A null member of an object counts as absent, but a null value of a map does not.
        let mine = (!is_object || !value.is_null()).then(|| read(arena, value, field));
        let theirs = member(arena, other, key);
        match (mine, theirs) {
            (None, None) => {}
            (Some(mine), Some(theirs)) => {
                // An unreadable value of the left side is the result, one of the right side is only unequal to a
                // scalar.
                if !equal_to(arena, mine?, &theirs)? {
                    return Ok(false);
                }
            }
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// Looks up a member by its JSON name.
fn member<'a>(arena: &'a Arena, map: Map<'a>, json: &'a str) -> Option<Res<'a>> {
    match map {
        Map::Json(object, shape) => {
            let value = object.get(json)?;
            if matches!(shape.kind, ShapeKind::Object { .. }) && value.is_null() {
                return None;
            }
            Some(read(arena, value, json_field_shape(shape, json)?))
        }
        other => other.get(arena, Val::Str(json)),
    }
}
