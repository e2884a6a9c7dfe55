//! As much of patching as the scenarios need.

use scantling_value::{Map, Value};

/// A merge patch.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !matches!(target, Value::Object(_)) {
        *target = Value::Object(Map::new());
    }
    let map = target.as_object_mut().unwrap();
    for (key, value) in patch.iter() {
        match (value, map.get_mut(key)) {
            (Value::Null, _) => {
                map.remove(key);
            }
            (Value::Object(_), Some(existing)) => merge(existing, value),
            _ => {
                // Servers drop nulls in what a patch brings, in lists as well.
                let mut value = value.clone();
                drop_nulls(&mut value);
                map.insert(key.clone(), value);
            }
        }
    }
}

fn drop_nulls(v: &mut Value) {
    match v {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.iter_mut().for_each(|(_, v)| drop_nulls(v));
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// A JSON patch. `None` if it does not apply.
pub(crate) fn json(target: &mut Value, operations: &Value) -> Option<()> {
    for operation in operations.as_array()? {
        let path = operation.get("path")?.as_str()?;
        let steps: Vec<String> = path.split('/').skip(1).map(unescape).collect();
        let (last, way) = steps.split_last()?;
        let mut at = &mut *target;
        for step in way {
            at = match at {
                Value::Object(map) => map.get_mut(step)?,
                Value::Array(list) => list.get_mut(step.parse::<usize>().ok()?)?,
                _ => return None,
            };
        }
        let value = operation.get("value").cloned().unwrap_or_default();
        match (operation.get("op")?.as_str()?, at) {
            ("add" | "replace", Value::Object(map)) => {
                map.insert(last.as_str(), value);
            }
            ("remove", Value::Object(map)) => {
                map.remove(last)?;
            }
            ("add", Value::Array(list)) if last == "-" => list.push(value),
            ("add", Value::Array(list)) => {
                let i: usize = last.parse().ok()?;
                (i <= list.len()).then(|| list.insert(i, value))?;
            }
            ("replace", Value::Array(list)) => *list.get_mut(last.parse::<usize>().ok()?)? = value,
            ("remove", Value::Array(list)) => {
                let i: usize = last.parse().ok()?;
                (i < list.len()).then(|| list.remove(i))?;
            }
            _ => return None,
        }
    }
    Some(())
}

fn unescape(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}
