//! Strategic merge patch: a merge patch that also merges lists, as the schema specifies.
//!
//! `x-kubernetes-patch-strategy` and `x-kubernetes-patch-merge-key` drive it, so it applies only to kinds
//! whose schemas have them. A patch can contain directives: `$patch` (`replace`, `delete`, `merge`) in an
//! object or an element of a list, `$retainKeys` in an object, `$deleteFromPrimitiveList/list` and
//! `$setElementOrder/list` beside a list.
//!
//! One accident of kube-apiserver is not reproduced. It works in place, so a list of scalars that a patch
//! adds and then merges again may come out in another order, depending on spare slice capacity.

mod lists;

use crate::members::MergeMembers;
use crate::merge_patch::prune_nulls;
use lists::{ListGroup, MergedList, arrange, check_order, merge_lists};
use scantling_schema::structural::{PatchStrategy, Structural};
use scantling_value::{Map, Str, Value, deadline, go};
use std::collections::BTreeSet;
use std::fmt;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

/// The error of a strategic merge patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrategicError {
    /// A directive is malformed (HTTP 400).
    BadRequest(&'static str),
    /// Strategic merge does not support the patch (HTTP 422).
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
    let display = go::value_v(&Value::Object(map.clone()));
    StrategicError::Internal(format!(
        "map: {display} does not contain declared merge key: {key}"
    ))
}

fn bad_type(expected: &str, actual: &Value) -> StrategicError {
    // Go has no type name for null.
    let actual = match actual {
        Value::Null => "%!s(<nil>)",
        other => go::value_type(other),
    };
    StrategicError::Internal(format!("expected a {expected}, but received a {actual}"))
}

fn bad_directive(directive: &Value, map: &Map) -> StrategicError {
    let map = go::value_v(&Value::Object(map.clone()));
    let directive = go::value_s(directive);
    StrategicError::Internal(format!("unknown patch type: {directive} in map: {map}"))
}

/// Applies a patch to an object with a schema.
pub fn apply(document: Value, patch: Value, schema: &Structural) -> Result<Value, StrategicError> {
    match (document, patch) {
        (Value::Object(document), Value::Object(patch)) => {
            merge_objects(document, patch, Some(schema)).map(Value::Object)
        }
        _ => Err(BAD_DOCUMENT),
    }
}

/// Returns the patch as kube-apiserver leaves it after applying it: executed directives and deletions without
/// a target are removed.
pub fn patch_after_apply(document: &Value, mut patch: Value) -> Value {
    if let (Value::Object(document), Value::Object(patch)) = (document, &mut patch) {
        remove_executed(document, patch);
    }
    patch
}

fn remove_executed(original: &Map, patch: &mut Map) {
    // The directive decides about the whole object, so nothing below it is executed.
    if let Some(directive) = patch.get(PATCH) {
        if directive.as_str() == Some("replace") {
            patch.remove(PATCH);
        }
        return;
    }
    let orders: BTreeSet<Str> = patch
        .keys()
        .filter_map(|key| key.strip_prefix(SET_ORDER))
        .map(|list| list.strip_prefix('/').unwrap_or_default().into())
        .collect();
    patch.retain(|key, _| key != RETAIN_KEYS && !key.starts_with(SET_ORDER) && !orders.contains(key));
    for (key, change) in patch.iter_mut() {
        match (original.get(key), change) {
            (Some(Value::Object(old)), Value::Object(new)) => remove_executed(old, new),
            (Some(Value::Array(_)), Value::Array(_)) => {}
            (_, new) => prune_nulls(new),
        }
    }
}

/// The schema of a member.
fn member<'s>(schema: Option<&'s Structural>, name: &str) -> Option<&'s Structural> {
    let schema = schema?;
    let declared = schema.property(name).map(|s| &**s);
    declared.or_else(|| schema.additional_schema().map(|s| &**s))
}

/// The patch strategy of a schema node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListStrategy {
    Unset,
    Merge,
    Replace,
}

fn strategy(schema: Option<&Structural>) -> (ListStrategy, Option<&Str>) {
    let patch: Option<&PatchStrategy> = schema.and_then(|s| s.extensions.as_ref()?.patch.as_ref());
    let Some(patch) = patch else {
        return (ListStrategy::Unset, None);
    };
    let strategy = patch.strategies.iter().find_map(|s| match s.as_str() {
        "merge" => Some(ListStrategy::Merge),
        "replace" => Some(ListStrategy::Replace),
        _ => None,
    });
    (strategy.unwrap_or(ListStrategy::Unset), patch.merge_key.as_ref())
}

/// The purpose of a list in a patch: elements to set or elements to delete.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ListDirective {
    Set,
    Delete,
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
    let changes = patch.len();
    let mut original = MergeMembers::new(original, changes);
    let patch = order_lists(&mut original, patch, schema)?;

    for (key, change) in patch {
        deadline::tick();
        let (key, purpose) = match key.strip_prefix(DELETE_FROM) {
            Some(rest) => (
                Str::from(rest.strip_prefix('/').ok_or(BAD_DELETE_LIST)?),
                ListDirective::Delete,
            ),
            None => (key, ListDirective::Set),
        };
        if change.is_null() {
            original.remove(&key);
            continue;
        }
        let schema = member(schema, &key);
        // Moved out to be merged by value; below, it is either replaced or removed.
        let merged = match (original.get_mut(&key).map(std::mem::take), change) {
            (Some(Value::Object(old)), Value::Object(new)) => match strategy(schema).0 {
                ListStrategy::Replace => Some(Value::Object(new)),
                _ => Some(Value::Object(merge_objects(old, new, schema)?)),
            },
            (Some(Value::Array(old)), Value::Array(new)) => {
                Some(Value::Array(merge_lists(old, new, schema, purpose)?.items))
            }
            // As on kube-apiserver, deleting from an absent list or from a value of another type changes
            // nothing.
            (old, _) if purpose == ListDirective::Delete => old,
            (_, mut new) => {
                prune_nulls(&mut new);
                without_directives(new)
            }
        };
        match merged {
            Some(value) => original.insert(key, value),
            None => drop(original.remove(&key)),
        }
    }
    Ok(original.into_map())
}

/// `$retainKeys`: keeps only the listed members; the patch must not set others.
fn retain_keys(original: &mut Map, patch: &mut Map) -> Result<(), StrategicError> {
    let Some(keys) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let keys = keys.as_array().ok_or(BAD_RETAIN_KEYS)?;
    let listed: BTreeSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let is_directive = |key: &str| key.starts_with(DELETE_FROM) || key.starts_with(SET_ORDER);
    let all_listed = patch
        .iter()
        .all(|(key, value)| value.is_null() || is_directive(key) || listed.contains(key.as_str()));
    if !all_listed {
        return Err(BAD_RETAIN_KEYS);
    }
    original.retain(|key, _| listed.contains(key));
    Ok(())
}

/// `$setElementOrder/list`: merges the list and orders its elements. Elements that the order does not name
/// stay in place relative to their predecessors. Returns the rest of the patch.
fn order_lists(
    original: &mut MergeMembers,
    patch: Map,
    schema: Option<&Structural>,
) -> Result<Map, StrategicError> {
    let directives: Vec<Str> = patch
        .keys()
        .filter(|k| k.starts_with(SET_ORDER))
        .cloned()
        .collect();
    if directives.is_empty() {
        return Ok(patch);
    }
    let mut patch = MergeMembers::new(patch, directives.len());
    for directive in directives {
        deadline::tick();
        let order = patch.remove(&directive).unwrap_or(Value::Null);
        let Value::Array(order) = order else {
            return Err(bad_type("[]interface {}", &order));
        };
        let key = directive
            .strip_prefix(SET_ORDER)
            .and_then(|rest| rest.strip_prefix('/'));
        let key = key.ok_or(BAD_ORDER)?;
        let list = |members: &mut MergeMembers| match members.remove(key) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(bad_type("[]interface {}", &other)),
        };
        let schema = member(schema, key);
        let merge_key = strategy(schema).1.map(Str::as_str);
        let (old, new) = (list(original)?, list(&mut patch)?);
        check_order(new.as_deref().unwrap_or_default(), &order, merge_key)?;
        // An error is kept for `arrange`, which reports it after the errors of the merge.
        let kind = ListGroup(&[
            old.as_deref().unwrap_or_default(),
            new.as_deref().unwrap_or_default(),
        ])
        .kind();
        let merged = match (old, new) {
            (None, None) => continue,
            (Some(old), None) => MergedList {
                before: old.clone(),
                items: old,
            },
            (None, Some(new)) => match without_directives(Value::Array(new)) {
                Some(Value::Array(items)) => MergedList {
                    before: Vec::new(),
                    items,
                },
                _ => continue,
            },
            (Some(old), Some(new)) => merge_lists(old, new, schema, ListDirective::Set)?,
        };
        let ordered = arrange(merged, &order, merge_key, kind)?;
        original.insert(key.into(), Value::Array(ordered));
    }
    Ok(patch.into_map())
}

/// Returns a new value without its directives.
fn without_directives(value: Value) -> Option<Value> {
    deadline::tick();
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
