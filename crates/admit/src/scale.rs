//! The fields behind `/scale`.

use crate::Scale;
use scantling_value::{ErrorKind, FieldError, Map, Value, go};

/// The object with another wanted number of replicas at a path (`.spec.replicas`): what a write to `/scale` makes of
/// the stored object. `None` if something on the way to the field is no object.
pub fn with_replicas(path: &str, stored: &Value, replicas: i64) -> Option<Value> {
    let mut object = stored.clone();
    let mut at = object.as_object_mut()?;
    let mut steps = steps(path).peekable();
    while let Some(step) = steps.next() {
        if steps.peek().is_none() {
            at.insert(step, Value::Int(replicas));
            break;
        }
        at = at
            .get_or_insert_with(step, || Value::Object(Map::new()))
            .as_object_mut()?;
    }
    Some(object)
}

/// What is wrong with the wanted number.
pub(crate) fn check_spec(scale: &Scale, object: &Value, errors: &mut Vec<FieldError>) {
    check_number(&scale.spec_replicas, object, errors);
}

/// What is wrong with the actual number and the selector.
pub(crate) fn check_status(scale: &Scale, object: &Value, errors: &mut Vec<FieldError>) {
    check_number(&scale.status_replicas, object, errors);
    if let Some(path) = &scale.label_selector
        && let Err(why) = lookup(object, path, "string", |v| v.as_str().is_some())
    {
        errors.push(FieldError::with_field(ErrorKind::Invalid, path.as_str(), "", why));
    }
}

fn check_number(path: &str, object: &Value, errors: &mut Vec<FieldError>) {
    const MAX: i64 = i32::MAX as i64;
    let mut wrong = |value: i64, why: String| {
        errors.push(FieldError::with_field(ErrorKind::Invalid, path, value, why));
    };
    match lookup(object, path, "int64", |v| v.as_int().is_some()) {
        Err(why) => wrong(0, why),
        Ok(found) => match found.and_then(Value::as_int).unwrap_or(0) {
            n @ ..0 => wrong(n, "should be a non-negative integer".into()),
            n if n > MAX => wrong(n, format!("should be less than or equal to {MAX}")),
            _ => {}
        },
    }
}

fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.strip_prefix('.').unwrap_or(path).split('.')
}

/// The value at a path, if everything on the way is there. The texts are those of Go's accessors.
fn lookup<'v>(
    object: &'v Value,
    path: &str,
    wanted: &str,
    fits: impl Fn(&Value) -> bool,
) -> Result<Option<&'v Value>, String> {
    let mut at = object;
    for (walked, step) in steps(path).enumerate() {
        let Value::Object(map) = at else {
            return Err(misfit(steps(path).take(walked + 1), at, "map[string]interface{}"));
        };
        let Some(next) = map.get(step) else {
            return Ok(None);
        };
        at = next;
    }
    if fits(at) {
        Ok(Some(at))
    } else {
        Err(misfit(steps(path), at, wanted))
    }
}

fn misfit<'p>(walked: impl Iterator<Item = &'p str>, value: &Value, wanted: &str) -> String {
    let path: String = walked.flat_map(|step| [".", step]).collect();
    let ty = go::value_type(value);
    format!(
        "{path} accessor error: {} is of the type {ty}, expected {wanted}",
        go_text(value)
    )
}

/// A value as Go's `%v` writes it.
pub fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".into(),
        Value::Bool(b) => b.to_string(),
        Value::Int(i) => i.to_string(),
        Value::Float(f) => go::float_v(*f),
        Value::String(s) => s.to_string(),
        Value::Array(list) => format!("[{}]", list.iter().map(go_text).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => {
            let members: Vec<String> = map.iter().map(|(k, v)| format!("{k}:{}", go_text(v))).collect();
            format!("map[{}]", members.join(" "))
        }
    }
}
