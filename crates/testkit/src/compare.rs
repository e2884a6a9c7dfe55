//! Compares results of steps with recordings.

use crate::normalize;
use scantling_value::{FieldError, Value, yaml};

/// Returns a string member, or the empty string.
pub fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Compares lists without regard to their order.
pub fn same(what: &str, mut ours: Vec<String>, mut wanted: Vec<String>) -> Result<(), String> {
    ours.sort_unstable();
    wanted.sort_unstable();
    if ours == wanted {
        return Ok(());
    }
    let join = |lines: &[String]| lines.join("\n         ");
    Err(format!("  {what} {}\n  wanted {}", join(&ours), join(&wanted)))
}

/// Returns a cause of a `Status` as one line.
pub fn cause_line(cause: &Value) -> String {
    format!(
        "{} {}: {}",
        text(cause, "reason"),
        text(cause, "field"),
        text(cause, "message")
    )
}

/// Compares field errors with recorded causes.
pub fn same_causes(errors: &[FieldError], recorded: &[Value]) -> Result<(), String> {
    let line = |e: &FieldError| format!("{} {}: {}", e.reason(), e.field(), e.message());
    let ours = errors.iter().map(|e| normalize::blank_volatile(&line(e)));
    same(
        "causes",
        ours.collect(),
        recorded.iter().map(cause_line).collect(),
    )
}

/// Compares objects without the metadata that differs from server to server, and without `also`.
pub fn same_object(ours: &Value, wanted: &Value, also: &[&str]) -> Result<(), String> {
    let strip = |object: &Value| {
        let mut object = object.clone();
        let metadata = object
            .as_object_mut()
            .and_then(|members| members.get_mut("metadata")?.as_object_mut());
        if let Some(metadata) = metadata {
            for field in normalize::VOLATILE.iter().chain(&["managedFields"]).chain(also) {
                metadata.remove(field);
            }
        }
        object.to_json()
    };
    same("stores", vec![strip(ours)], vec![strip(wanted)])
}

/// Compares a message with the end of a recorded one, which begins with the object's name.
pub fn message_ends_with(why: &str, recorded: &Value) -> Result<(), String> {
    let message = text(recorded, "message");
    if message.ends_with(&format!(": {why}")) {
        return Ok(());
    }
    Err(format!("  says   {why}\n  wanted {message}"))
}

/// Returns whether a value contains everything in `wanted`. Objects may have more fields, and a field that is
/// `null` in `wanted` may be absent.
pub fn holds(value: Option<&Value>, wanted: &Value) -> bool {
    match (value, wanted) {
        (Some(Value::Object(value)), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| holds(value.get(name), wanted))
        }
        (Some(Value::Array(value)), Value::Array(wanted)) => {
            let mut pairs = value.iter().zip(wanted);
            value.len() == wanted.len() && pairs.all(|(value, wanted)| holds(Some(value), wanted))
        }
        (None, wanted) => wanted.is_null(),
        (Some(value), wanted) => value == wanted,
    }
}

/// Returns the lines in which a response differs from its recording.
pub fn difference(recorded: &Value, got: &Value) -> String {
    let (recorded, got) = (yaml::encode(recorded), yaml::encode(got));
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (before, after) = (lines(&recorded), lines(&got));
    let missing = before
        .iter()
        .filter(|line| !after.contains(line))
        .map(|line| format!("- {line}"));
    let extra = after
        .iter()
        .filter(|line| !before.contains(line))
        .map(|line| format!("+ {line}"));
    missing.chain(extra).collect::<Vec<_>>().join("\n")
}
