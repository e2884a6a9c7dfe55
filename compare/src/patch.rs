//! Patches that change one object into another.

use crate::rng::Rng;
use scantling_value::{Map, Value};

pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// The merge patch from one object to another. With `by_item`, lists contain new and changed items only.
pub(crate) fn merge(old: &Map, new: &Map, by_item: bool) -> Map {
    let mut patch = Map::new();
    for name in old.keys().filter(|name| !new.contains_key(name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, value) in new.iter() {
        let changed = match (old.get(name), value) {
            (Some(old), new) if old == new => continue,
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new, by_item).into(),
            (Some(Value::Array(old)), Value::Array(new)) if by_item => {
                let changed = new.iter().filter(|item| !old.contains(item)).cloned();
                changed.collect::<Vec<_>>().into()
            }
            _ => value.clone(),
        };
        patch.insert(name.clone(), changed);
    }
    patch
}

/// Adds a directive of strategic merge patches to one of the objects of a patch.
pub(crate) fn add_directive(patch: &mut Value, rng: &mut Rng) {
    let inner = match patch {
        Value::Object(members) => members.iter_mut().map(|(_, value)| value).collect::<Vec<_>>(),
        Value::Array(items) => items.iter_mut().collect(),
        _ => return,
    };
    let mut containers: Vec<&mut Value> = inner
        .into_iter()
        .filter(|value| matches!(value, Value::Object(_) | Value::Array(_)))
        .collect();
    let at = rng.below(containers.len());
    if rng.chance(65)
        && let Some(below) = containers.get_mut(at)
    {
        return add_directive(below, rng);
    }
    let Value::Object(members) = patch else {
        return;
    };
    let names: Vec<String> = members.keys().map(ToString::to_string).collect();
    let Some(name) = rng.pick(&names) else {
        return;
    };
    let texts: Value = Value::Array(vec![name.as_str().into(), "a".into()]);
    match rng.below(5) {
        0 => members.insert("$patch", "replace".into()),
        1 => members.insert("$patch", "delete".into()),
        2 => members.insert("$retainKeys", texts),
        3 => members.insert(format!("$setElementOrder/{name}"), texts),
        _ => members.insert(format!("$deleteFromPrimitiveList/{name}"), texts),
    };
}

/// A JSON patch from one object to another.
pub(crate) fn operations(old: &Value, new: &Value, at: &str, out: &mut Vec<Value>) {
    let mut push = |op: &str, path: String, value: Option<&Value>| {
        let mut operation = Map::from_iter([("op", Value::from(op)), ("path", path.into())]);
        if let Some(value) = value {
            operation.insert("value", value.clone());
        }
        out.push(operation.into());
    };
    match (old, new) {
        (old, new) if old == new => {}
        (Value::Object(old), Value::Object(new)) => {
            let place = |name: &str| format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
            for name in old.keys().filter(|name| !new.contains_key(name)) {
                push("remove", place(name), None);
            }
            for (name, value) in new.iter() {
                match old.get(name) {
                    Some(old) => operations(old, value, &place(name), out),
                    None => {
                        let mut operation =
                            Map::from_iter([("op", Value::from("add")), ("path", place(name).into())]);
                        operation.insert("value", value.clone());
                        out.push(operation.into());
                    }
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (i, (old, new)) in old.iter().zip(new).enumerate() {
                operations(old, new, &format!("{at}/{i}"), out);
            }
        }
        (_, new) => push("replace", at.to_owned(), Some(new)),
    }
}
