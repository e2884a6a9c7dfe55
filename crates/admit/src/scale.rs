//! The fields behind `/scale`.

use crate::ScalePaths;
use scantling_value::{ErrorKind, ErrorList, FieldError, Map, Value, go};

/// The values of `/scale` of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScaleValues<'v> {
    /// The desired replicas, if set.
    pub wanted: Option<i64>,
    /// The observed replicas.
    pub actual: i64,
    /// The selector as text.
    pub selector: &'v str,
}

impl ScalePaths {
    /// Reads the values of `/scale` of an object. Fails with a message if a value has the wrong type.
    pub fn read<'v>(&self, object: &'v Value) -> Result<ScaleValues<'v>, String> {
        Ok(ScaleValues {
            wanted: number_at(object, &self.spec_replicas)?,
            actual: number_at(object, &self.status_replicas)?.unwrap_or(0),
            selector: match &self.label_selector {
                Some(path) => text_at(object, path)?.unwrap_or_default(),
                None => "",
            },
        })
    }

    /// Returns the stored object with another number of desired replicas, as a write to `/scale` does; fails
    /// if it has no scale.
    pub fn with_replicas(&self, stored: &Value, replicas: i64) -> Result<Value, String> {
        // Values of the wrong type fail like a read of the scale.
        self.read(stored)?;
        let mut object = stored.clone();
        let mut at = &mut object;
        for (walked, step) in self.spec_replicas_path().enumerate() {
            match at {
                Value::Object(map) => at = map.get_or_insert_with(step, || Value::Object(Map::new())),
                _ => {
                    let path = dotted(self.spec_replicas_path().take(walked));
                    return Err(format!("value cannot be set because {path} is not a {OBJECT}"));
                }
            }
        }
        *at = Value::Int(replicas);
        Ok(object)
    }

    /// The path of the desired replicas, as field names.
    pub fn spec_replicas_path(&self) -> impl Iterator<Item = &str> {
        steps(&self.spec_replicas)
    }
}

/// Checks the desired replicas.
pub(crate) fn check_spec(scale: &ScalePaths, object: &Value, errors: &mut ErrorList) {
    check_number(&scale.spec_replicas, object, errors);
}

/// Checks the observed replicas and the selector.
pub(crate) fn check_status(scale: &ScalePaths, object: &Value, errors: &mut ErrorList) {
    check_number(&scale.status_replicas, object, errors);
    if let Some(path) = &scale.label_selector
        && let Err(why) = text_at(object, path)
    {
        errors.push_with(|| FieldError::with_field(ErrorKind::Invalid, path.as_str(), "", why));
    }
}

fn check_number(path: &str, object: &Value, errors: &mut ErrorList) {
    const MAX: i64 = i32::MAX as i64;
    let mut wrong = |value: i64, why: String| {
        errors.push_with(|| FieldError::with_field(ErrorKind::Invalid, path, value, why));
    };
    match number_at(object, path) {
        // The value cannot be read, so the error shows Go's zero value.
        Err(why) => wrong(0, why),
        Ok(found) => match found.unwrap_or(0) {
            n @ ..0 => wrong(n, "should be a non-negative integer".into()),
            n if n > MAX => wrong(n, format!("should be less than or equal to {MAX}")),
            _ => {}
        },
    }
}

/// The name of an object in the errors of Go's accessors.
const OBJECT: &str = "map[string]interface{}";

fn steps(path: &str) -> impl Iterator<Item = &str> {
    path.strip_prefix('.').unwrap_or(path).split('.')
}

fn number_at(object: &Value, path: &str) -> Result<Option<i64>, String> {
    lookup(object, path, "int64", Value::as_int)
}

fn text_at<'v>(object: &'v Value, path: &str) -> Result<Option<&'v str>, String> {
    lookup(object, path, "string", Value::as_str)
}

/// The value at a path, if it exists. The errors are those of Go's accessors.
fn lookup<'v, T>(
    object: &'v Value,
    path: &str,
    wanted: &str,
    read: impl Fn(&'v Value) -> Option<T>,
) -> Result<Option<T>, String> {
    let mut at = object;
    for (walked, step) in steps(path).enumerate() {
        let next = match at {
            Value::Object(map) => map.get(step),
            // Go's accessors treat null like an absent field.
            Value::Null => None,
            _ => return Err(type_mismatch(steps(path).take(walked + 1), at, OBJECT)),
        };
        let Some(next) = next else {
            return Ok(None);
        };
        at = next;
    }
    match read(at) {
        Some(found) => Ok(Some(found)),
        None => Err(type_mismatch(steps(path), at, wanted)),
    }
}

fn type_mismatch<'p>(walked: impl Iterator<Item = &'p str>, value: &Value, wanted: &str) -> String {
    let (path, ty) = (dotted(walked), go::value_type(value));
    format!(
        "{path} accessor error: {} is of the type {ty}, expected {wanted}",
        go_text(value)
    )
}

fn dotted<'p>(steps: impl Iterator<Item = &'p str>) -> String {
    steps.flat_map(|step| [".", step]).collect()
}

/// Formats a value as Go's `%v` does.
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
