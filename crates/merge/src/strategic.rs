//! Strategic merge patch: a merge patch in which lists merge, too, as the schema says.
//!
//! `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key` drive it, so it is for kinds whose schemas carry
//! them. A patch can say more by directives: `$patch` (`replace`, `delete`, `merge`) in an object or an element of a
//! list, `$retainKeys` in an object, `$deleteFromPrimitiveList/list` and `$setElementOrder/list` beside a list.

use scantling_schema::structural::{PatchStrategy, Structural};
use scantling_value::{Map, Str, Value, go};
use std::fmt;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

/// Why a strategic merge patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrategicError {
    /// A directive is malformed (HTTP 400).
    BadRequest(&'static str),
    /// The patch asks for what strategic merge cannot do (HTTP 422).
    Unprocessable(&'static str),
    /// The patch does not fit the object (HTTP 500).
    Internal(String),
}

impl fmt::Display for StrategicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StrategicError::BadRequest(text) | StrategicError::Unprocessable(text) => f.write_str(text),
            StrategicError::Internal(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for StrategicError {}

const BAD_DOCUMENT: StrategicError = StrategicError::BadRequest("invalid JSON document");
const BAD_DELETE_LIST: StrategicError = StrategicError::BadRequest("invalid patch format of primitive list");
const BAD_RETAIN_KEYS: StrategicError = StrategicError::BadRequest("invalid patch format of retainKeys");
const BAD_ORDER: StrategicError = StrategicError::BadRequest("invalid patch format of setElementOrder list");
const LIST_OF_LISTS: StrategicError = StrategicError::Unprocessable("lists of lists are not supported");

fn no_merge_key(map: &Map, key: &str) -> StrategicError {
    let shown = go::value_v(&Value::Object(map.clone()));
    StrategicError::Internal(format!("map: {shown} does not contain declared merge key: {key}"))
}

fn bad_type(expected: &str, actual: &Value) -> StrategicError {
    // Go has no name for the type of null.
    let actual = match actual {
        Value::Null => "%!s(<nil>)",
        other => go::value_type(other),
    };
    StrategicError::Internal(format!("expected a {expected}, but received a {actual}"))
}

fn bad_directive(directive: &Value, map: &Map) -> StrategicError {
    let map = go::value_v(&Value::Object(map.clone()));
    let directive = match directive {
        Value::String(s) => s.to_string(),
        other => go::value_v(other),
    };
    StrategicError::Internal(format!("unknown patch type: {directive} in map: {map}"))
}

/// Applies a patch to an object of a schema.
pub fn apply(document: Value, patch: Value, schema: &Structural) -> Result<Value, StrategicError> {
    match (document, patch) {
        (Value::Object(document), Value::Object(patch)) => {
            merge_objects(document, patch, Some(schema)).map(Value::Object)
        }
        _ => Err(BAD_DOCUMENT),
    }
}

/// The schema of a member.
fn member<'s>(schema: Option<&'s Structural>, name: &str) -> Option<&'s Structural> {
    let schema = schema?;
    let declared = schema.property(name).map(|s| &**s);
    declared.or_else(|| schema.additional_schema().map(|s| &**s))
}

/// How lists and objects of a schema merge.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strategy {
    Unset,
    Merge,
    Replace,
}

fn strategy(schema: Option<&Structural>) -> (Strategy, Option<&Str>) {
    let patch: Option<&PatchStrategy> = schema.and_then(|s| s.extensions.as_ref()?.patch.as_ref());
    let Some(patch) = patch else {
        return (Strategy::Unset, None);
    };
    let strategy = patch.strategies.iter().find_map(|s| match s.as_str() {
        "merge" => Some(Strategy::Merge),
        "replace" => Some(Strategy::Replace),
        _ => None,
    });
    (strategy.unwrap_or(Strategy::Unset), patch.merge_key.as_ref())
}

fn merge_objects(
    mut original: Map,
    mut patch: Map,
    schema: Option<&Structural>,
) -> Result<Map, StrategicError> {
    match patch.get(PATCH) {
        Some(Value::String(s)) if s == "replace" => {
            patch.remove(PATCH);
            return Ok(patch);
        }
        Some(Value::String(s)) if s == "delete" => return Ok(Map::new()),
        Some(other) => return Err(bad_directive(other, &patch)),
        None => {}
    }
    retain_keys(&mut original, &mut patch)?;
    order_lists(&mut original, &mut patch, schema)?;

    for (key, change) in patch {
        let (key, deletes) = match key.strip_prefix(DELETE_FROM) {
            Some(rest) => (Str::from(rest.strip_prefix('/').ok_or(BAD_DELETE_LIST)?), true),
            None => (key, false),
        };
        if change.is_null() {
            original.remove(&key);
            continue;
        }
        let schema = member(schema, &key);
        let merged = match (original.get_mut(&key).map(std::mem::take), change) {
            (Some(Value::Object(old)), Value::Object(new)) => match strategy(schema).0 {
                Strategy::Replace => Some(Value::Object(new)),
                _ => Some(Value::Object(merge_objects(old, new, schema)?)),
            },
            (Some(Value::Array(old)), Value::Array(new)) => {
                Some(Value::Array(merge_lists(old, new, schema, deletes)?))
            }
            (old, _) if deletes => old,
            (_, mut new) => {
                discard_nulls(&mut new);
                without_directives(new)
            }
        };
        match merged {
            Some(value) => original.insert(key, value),
            None => original.remove(&key),
        };
    }
    Ok(original)
}

/// `$retainKeys`: only the listed members stay; the patch may set no others.
fn retain_keys(original: &mut Map, patch: &mut Map) -> Result<(), StrategicError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let keys = keys.as_array().ok_or(BAD_RETAIN_KEYS)?;
    let listed = |key: &str| keys.iter().any(|k| k.as_str() == Some(key));
    let is_directive = |key: &str| key.starts_with(DELETE_FROM) || key.starts_with(SET_ORDER);
    let all_listed = patch
        .iter()
        .all(|(key, value)| value.is_null() || is_directive(key) || listed(key));
    if !all_listed {
        return Err(BAD_RETAIN_KEYS);
    }
    original.retain(|key, _| listed(key));
    Ok(())
}

/// `$setElementOrder/list`: merges the list and puts its elements into the given order; those that the order does not
/// name stay where they are relative to the ones before them.
fn order_lists(
    original: &mut Map,
    patch: &mut Map,
    schema: Option<&Structural>,
) -> Result<(), StrategicError> {
    let orders: Vec<Str> = patch
        .keys()
        .filter(|k| k.starts_with(SET_ORDER))
        .cloned()
        .collect();
    for directive in orders {
        let order = patch.remove(&directive).unwrap_or_default();
        let Value::Array(order) = order else {
            return Err(bad_type("[]interface {}", &order));
        };
        let key = directive
            .strip_prefix(SET_ORDER)
            .and_then(|rest| rest.strip_prefix('/'));
        let key = key.ok_or(BAD_ORDER)?;
        let list = |map: &mut Map| match map.remove(key) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(bad_type("[]interface {}", &other)),
        };
        let schema = member(schema, key);
        let merge_key = strategy(schema).1.map(Str::as_str);
        let (old, new) = (list(original)?, list(patch)?);
        check_order(new.as_deref().unwrap_or_default(), &order, merge_key)?;
        let before = old.clone().unwrap_or_default();
        let kind = element_kind(&[&before, new.as_deref().unwrap_or_default()]);
        let merged = match (old, new) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => match without_directives(Value::Array(new)) {
                Some(Value::Array(items)) => items,
                _ => continue,
            },
            (Some(old), Some(new)) => merge_lists(old, new, schema, false)?,
        };
        kind?;
        let ordered = interleave(merged, &order, &before, merge_key)?;
        original.insert(key, Value::Array(ordered));
    }
    Ok(())
}

/// Checks that a list in a patch has the order that the patch asks for.
fn check_order(items: &[Value], order: &[Value], merge_key: Option<&str>) -> Result<(), StrategicError> {
    if items.is_empty() || order.is_empty() {
        return Ok(());
    }
    let deleted =
        |item: &&Value| merge_key.is_some() && item.get(PATCH).and_then(Value::as_str) == Some("delete");
    let mut left = items.iter().filter(|item| !deleted(item)).peekable();
    for wanted in order {
        // Other directives have no place in the order.
        while left.next_if(|item| item.get(PATCH).is_some()).is_some() {}
        let Some(item) = left.peek() else { break };
        if identity(item, merge_key)? == identity(wanted, merge_key)? {
            left.next();
        }
    }
    match left.peek() {
        None => Ok(()),
        Some(_) => {
            let shown = |list: &[Value]| go::value_v(&Value::Array(list.to_vec()));
            Err(StrategicError::Internal(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
                shown(items),
                shown(order)
            )))
        }
    }
}

/// What tells an element of a list apart.
fn identity<'v>(item: &'v Value, merge_key: Option<&str>) -> Result<&'v Value, StrategicError> {
    match (merge_key, item) {
        (None, item) => Ok(item),
        (Some(key), Value::Object(map)) => map.get(key).ok_or_else(|| no_merge_key(map, key)),
        (Some(_), other) => Err(bad_type("map[string]interface {}", other)),
    }
}

/// The kinds of elements of lists that merge.
#[derive(PartialEq, Eq)]
enum ElementKind {
    Objects,
    Scalars,
}

fn element_kind(lists: &[&[Value]]) -> Result<ElementKind, StrategicError> {
    let mut found: Option<&Value> = None;
    for item in lists.iter().copied().flatten() {
        if let Value::Array(_) = item {
            return Err(LIST_OF_LISTS);
        }
        match found {
            Some(first) if std::mem::discriminant(first) != std::mem::discriminant(item) => {
                let all = lists.iter().map(|l| Value::Array(l.to_vec())).collect();
                return Err(StrategicError::Internal(format!(
                    "list element types are not identical: {}",
                    go::value_v(&Value::Array(all))
                )));
            }
            _ => found = Some(item),
        }
    }
    match found {
        None => Err(StrategicError::Internal(
            "no elements in any of the given slices".into(),
        )),
        Some(Value::Object(_)) => Ok(ElementKind::Objects),
        Some(_) => Ok(ElementKind::Scalars),
    }
}

fn merge_lists(
    original: Vec<Value>,
    patch: Vec<Value>,
    schema: Option<&Structural>,
    deletes: bool,
) -> Result<Vec<Value>, StrategicError> {
    let (strategy, merge_key) = strategy(schema);
    if strategy != Strategy::Merge && !deletes {
        return Ok(patch);
    }
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    match element_kind(&[&original, &patch])? {
        ElementKind::Scalars if deletes => Ok(original
            .into_iter()
            .filter(|item| !patch.contains(item))
            .collect()),
        ElementKind::Scalars => {
            let mut merged: Vec<Value> = Vec::with_capacity(original.len() + patch.len());
            for item in original.iter().chain(&patch) {
                if !merged.contains(item) {
                    merged.push(item.clone());
                }
            }
            interleave(merged, &patch, &original, None)
        }
        ElementKind::Objects => {
            let Some(key) = merge_key else {
                let text = "cannot merge lists without merge key for ";
                return Err(StrategicError::Internal(text.into()));
            };
            merge_keyed(original, patch, key, schema.and_then(|s| s.items.as_deref()))
        }
    }
}

fn merge_keyed(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
    items: Option<&Structural>,
) -> Result<Vec<Value>, StrategicError> {
    // Elements with directives come first, wherever they stand.
    let mut changes = Vec::with_capacity(patch.len());
    let mut replace = false;
    for item in patch {
        let Value::Object(map) = &item else {
            return Err(bad_type("map[string]interface {}", &item));
        };
        match map.get(PATCH) {
            None => changes.push(item),
            Some(Value::String(s)) if s == "delete" => {
                let value = map.get(key).ok_or_else(|| no_merge_key(map, key))?;
                original.retain(|old| old.get(key) != Some(value));
            }
            Some(Value::String(s)) if s == "replace" => replace = true,
            Some(Value::String(s)) if s == "merge" => {
                let text = "merging lists cannot yet be specified in the patch";
                return Err(StrategicError::Internal(text.into()));
            }
            Some(other) => return Err(bad_directive(other, map)),
        }
    }
    if replace {
        return Ok(changes);
    }
    let order = changes.clone();
    let before = original.clone();
    for change in changes {
        let Value::Object(change) = change else { continue };
        let value = change.get(key).ok_or_else(|| no_merge_key(&change, key))?;
        let slot = original.iter_mut().find(|old| old.get(key) == Some(value));
        match slot {
            Some(slot) => {
                if let Value::Object(old) = std::mem::take(slot) {
                    *slot = Value::Object(merge_objects(old, change, items)?);
                }
            }
            None => original.push(Value::Object(change)),
        }
    }
    interleave(original, &order, &before, Some(key))
}

/// Puts the elements that an order names into that order, and the others between them, as they stood before.
fn interleave(
    items: Vec<Value>,
    order: &[Value],
    before: &[Value],
    merge_key: Option<&str>,
) -> Result<Vec<Value>, StrategicError> {
    let position = |list: &[Value], item: &Value| -> Result<Option<usize>, StrategicError> {
        let wanted = identity(item, merge_key)?;
        for (i, other) in list.iter().enumerate() {
            if identity(other, merge_key)? == wanted {
                return Ok(Some(i));
            }
        }
        Ok(None)
    };
    let mut named = Vec::new();
    let mut others = Vec::new();
    for item in items {
        let before = position(before, &item)?;
        match position(order, &item)? {
            Some(at) => named.push((at, before, item)),
            None => others.push((before.unwrap_or(usize::MAX), before, item)),
        }
    }
    named.sort_by_key(|(at, ..)| *at);
    others.sort_by_key(|(at, ..)| *at);
    let mut out = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let other_first = match (others.peek(), named.peek()) {
            (None, None) => return Ok(out),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some((_, a, _)), Some((_, b, _))) => matches!((a, b), (Some(a), Some(b)) if a < b),
        };
        let next = if other_first { others.next() } else { named.next() };
        out.extend(next.map(|(.., item)| item));
    }
}

/// Removes members that are null from what is new.
fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => map.retain(|_, v| {
            discard_nulls(v);
            !v.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// What is left of something new without the parts that have directives.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(PATCH) => None,
        Value::Object(map) => {
            let members = map.into_iter();
            let kept = members.filter_map(|(k, v)| without_directives(v).map(|v| (k, v)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(
            items.into_iter().filter_map(without_directives).collect(),
        )),
        scalar => Some(scalar),
    }
}
