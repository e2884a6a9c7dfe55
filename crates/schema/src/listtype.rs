//! Uniqueness of elements in sets and keyed lists.

use crate::fingerprint;
use crate::plan::{Features, PlanNode};
use crate::structural::ListType;
use scantling_value::{ErrorList, FieldError, Map, Path, Str, Value, deadline};
use std::collections::HashMap;

/// Returns the errors about duplicates in the sets and keyed lists of a value.
pub fn duplicates(node: &PlanNode, value: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    check_value(node, value, &Path::ROOT, &mut errors);
    errors
}

/// Checks the sets and keyed lists in a value.
fn check_value(node: &PlanNode, value: &Value, at: &Path<'_>, errors: &mut ErrorList) {
    if !node.has(Features::KEYED) {
        return;
    }
    deadline::tick();
    match value {
        Value::Object(map) => {
            node.all_members(map.iter(), Features::KEYED, |member| {
                check_value(member.node, member.value, &member.at(at), errors);
                true
            });
        }
        Value::Array(list) => {
            deadline::tick_for(list.len());
            match node.schema().list_type() {
                Some(ListType::Set) => check_set(list, at, errors),
                Some(ListType::Map) => check_keyed_list(node.schema().list_map_keys(), list, at, errors),
                Some(ListType::Atomic) | None => {}
            }
            if let Some(items) = node.items() {
                for (i, item) in list.iter().enumerate() {
                    check_value(items, item, &at.index(i), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_set(list: &[Value], at: &Path<'_>, errors: &mut ErrorList) {
    let prints_differ =
        || fingerprint::all_differ(list.iter().map(|item| fingerprint::fingerprint(Some(item))));
    if all_differ(list, are_equal_elements, prints_differ) {
        return;
    }
    for i in repeated_elements(list.len(), |i| list.get(i).map(identity)) {
        if let Some(item) = list.get(i) {
            errors.push_with(|| FieldError::duplicate(&at.index(i), item.clone()));
        }
    }
}

fn check_keyed_list(keys: &[Str], list: &[Value], at: &Path<'_>, errors: &mut ErrorList) {
    let misfit = |item: &&Value| !matches!(item, Value::Null | Value::Object(_));
    // kube-apiserver reports the first of these and then does not look for duplicates.
    if let Some((i, item)) = list.iter().enumerate().find(|(_, item)| misfit(item)) {
        errors.push_with(|| {
            FieldError::invalid(
                &at.index(i),
                item.clone(),
                "must be an object for an array of list-type map",
            )
        });
        return;
    }
    let same_keys = |a: &Value, b: &Value| {
        keys.iter().all(|key| match (a.get(key), b.get(key)) {
            (Some(a), Some(b)) => are_equal_elements(a, b),
            (a, b) => a.is_none() && b.is_none(),
        })
    };
    let prints_differ = || {
        let mut keys = fingerprint::KeyFingerprinter::new(keys);
        fingerprint::all_differ(list.iter().map(|item| keys.fingerprint(item, |_| true).0))
    };
    if all_differ(list, same_keys, prints_differ) {
        return;
    }
    let identity = |i: usize| {
        let item = list.get(i)?.as_object();
        Some(match (keys, item) {
            // A single key counts by its value, several keys as the JSON of an object.
            ([key], item) => item.and_then(|item| item.get(key)).map(identity),
            (_, item) => Some(ElementKey::Json(keys_of(keys, item).to_json())),
        })
    };
    for i in repeated_elements(list.len(), identity) {
        let item = list.get(i).and_then(Value::as_object);
        errors.push_with(|| FieldError::duplicate(&at.index(i), keys_of(keys, item)));
    }
}

fn keys_of(keys: &[Str], item: Option<&Map>) -> Value {
    let key = |name: &Str| Some((name.clone(), item?.get(name)?.clone()));
    Value::Object(keys.iter().filter_map(key).collect())
}

/// Returns whether all elements differ, if that is cheap to decide: small lists by comparing all pairs, large
/// ones by their fingerprints. This is so for almost every list.
fn all_differ(
    list: &[Value],
    same: impl Fn(&Value, &Value) -> bool,
    prints_differ: impl FnOnce() -> bool,
) -> bool {
    // Equal fingerprints do not prove a duplicate; the caller then looks closer.
    const FEW: usize = 8;
    if list.len() > FEW {
        return prints_differ();
    }
    let differs = |(i, item): (usize, &Value)| !list.iter().skip(i + 1).any(|other| same(item, other));
    list.iter().enumerate().all(differs)
}

/// Returns whether two values may be equal. Numbers are compared by value, lists and objects not at all.
fn are_equal_elements(a: &Value, b: &Value) -> bool {
    match (a, b) {
        #[expect(clippy::cast_precision_loss, reason = "a closer look follows")]
        (Value::Int(i), Value::Float(f)) | (Value::Float(f), Value::Int(i)) => *i as f64 == *f,
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => true,
        (a, b) => a == b,
    }
}

/// The identity of an element.
#[derive(Debug, PartialEq, Eq, Hash)]
enum ElementKey<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Float(u64),
    String(&'v str),
    /// Lists and objects are equal if their JSON is, in which `1` equals `1.0`.
    Json(String),
}

fn identity(v: &Value) -> ElementKey<'_> {
    match v {
        Value::Null => ElementKey::Null,
        Value::Bool(b) => ElementKey::Bool(*b),
        Value::Int(i) => ElementKey::Int(*i),
        // Both zeros are equal.
        Value::Float(f) => ElementKey::Float((f + 0.0).to_bits()),
        Value::String(s) => ElementKey::String(s),
        Value::Array(_) | Value::Object(_) => ElementKey::Json(v.to_json()),
    }
}

/// The positions of second occurrences. Third and later occurrences are not reported again.
fn repeated_elements<T: std::hash::Hash + Eq>(
    len: usize,
    identity: impl Fn(usize) -> Option<T>,
) -> Vec<usize> {
    if len < 2 {
        return Vec::new();
    }
    let mut seen = HashMap::with_capacity(len);
    let mut second = Vec::new();
    for i in 0..len {
        if let Some(what) = identity(i) {
            let times = seen.entry(what).or_insert(0u32);
            *times = times.saturating_add(1);
            if *times == 2 {
                second.push(i);
            }
        }
    }
    second
}
