//! Bounds on the texts of one error.
//!
//! An error may quote a value, a path or a pattern of several megabytes. Each of these texts is truncated, so
//! a few errors cannot fill a response .

use super::BadValue;
use crate::{Path, PathBuf, Segment, Value, go};
use std::borrow::Cow;
use std::fmt::{self, Write as _};

/// The maximum length of the field, value or detail of an error, in bytes. Most responses of kube-apiserver
/// stay below 20 kB; only those that show a whole object are larger.
const MAX_TEXT: usize = 256 << 10;

/// The maximum length of a list of supported values, in bytes: about four thousand values of typical length.
const MAX_SUPPORTED: usize = 64 << 10;

/// Values up to this size are kept as values, larger ones as text: a value takes many times more memory than
/// its text.
const MAX_VALUE: usize = 4 << 10;

/// The mark after a truncated text.
const MARK: &str = "... (cut at 262144 bytes)";

/// Truncates a text that is too long.
pub(super) fn truncate(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        text.push_str(MARK);
        text.shrink_to_fit();
    }
    text
}

/// Formats a value, truncated. Formatting stops at the limit.
pub(super) fn display(value: &dyn fmt::Display) -> String {
    let mut out = TruncatingWriter(String::new());
    // The writer fails at its limit, which ends the formatting early.
    let _ = write!(out, "{value}");
    truncate(out.0)
}

/// Accepts a little more than [`MAX_TEXT`] bytes, then fails.
struct TruncatingWriter(String);

impl fmt::Write for TruncatingWriter {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        // One byte more than the limit tells `truncate` that the text was longer.
        let room = (MAX_TEXT + 1).saturating_sub(self.0.len());
        if s.len() <= room {
            self.0.push_str(s);
            return Ok(());
        }
        self.0.push_str(s.get(..s.ceil_char_boundary(room)).unwrap_or(s));
        Err(fmt::Error)
    }
}

/// Returns the path, or the root if its keys are too long to keep.
pub(super) fn bounded_path(at: &Path<'_>) -> PathBuf {
    let mut bytes = 0usize;
    let mut frame = Some(at);
    while let Some(path) = frame {
        bytes += match path.segment() {
            Some(Segment::Field(name) | Segment::Key(name)) => name.len(),
            Some(Segment::Index(_)) | None => 0,
        };
        frame = path.parent();
    }
    if bytes > MAX_TEXT {
        PathBuf::default()
    } else {
        PathBuf::from(at)
    }
}

/// Converts a large value to text.
pub(super) fn bounded_value(value: BadValue) -> BadValue {
    match value {
        BadValue::Value(value) if size(&value, MAX_VALUE) > MAX_VALUE => {
            let mut out = String::new();
            write_value(&mut out, &value);
            BadValue::Raw(truncate(out))
        }
        BadValue::Raw(raw) => BadValue::Raw(truncate(raw)),
        value => value,
    }
}

/// Writes a value as an error shows it: strings quoted, numbers and booleans bare, anything else as JSON.
/// Stops after a little more than [`MAX_TEXT`] bytes.
pub(super) fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::String(s) => go::write_quoted(out, truncate_quoted(s)),
        Value::Float(f) => out.push_str(&go::float_v(*f)),
        value => {
            let mut json = Vec::new();
            write_json(&mut json, value);
            out.push_str(&String::from_utf8_lossy(&json));
        }
    }
}

/// The length in bytes of a value as an error shows it.
pub(super) fn displayed_len(value: &Value) -> usize {
    let mut out = String::new();
    write_value(&mut out, value);
    out.len()
}

/// Truncates a string before it is quoted.
fn truncate_quoted(s: &str) -> &str {
    // One byte more than the limit makes `truncate` mark the text as cut.
    s.get(..s.ceil_char_boundary(MAX_TEXT + 1)).unwrap_or(s)
}

fn write_json(out: &mut Vec<u8>, value: &Value) {
    if out.len() > MAX_TEXT {
        return;
    }
    match value {
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if out.len() > MAX_TEXT {
                    return;
                }
                if i > 0 {
                    out.push(b',');
                }
                write_json(out, item);
            }
            out.push(b']');
        }
        Value::Object(map) => {
            out.push(b'{');
            for (i, (key, member)) in map.iter().enumerate() {
                if out.len() > MAX_TEXT {
                    return;
                }
                if i > 0 {
                    out.push(b',');
                }
                Value::from(truncate_quoted(key)).write_json(out);
                out.push(b':');
                write_json(out, member);
            }
            out.push(b'}');
        }
        Value::String(s) if s.len() > MAX_TEXT => Value::from(truncate_quoted(s)).write_json(out),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::String(_) => {
            value.write_json(out);
        }
    }
}

/// Estimates the memory that a value takes, in bytes. Counting stops above the limit.
fn size(value: &Value, limit: usize) -> usize {
    let mut bytes = size_of::<Value>();
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {}
        Value::String(s) => bytes += s.len(),
        Value::Array(items) => {
            for item in items {
                if bytes > limit {
                    break;
                }
                bytes += size(item, limit - bytes);
            }
        }
        Value::Object(map) => {
            for (key, member) in map.iter() {
                bytes += size_of::<crate::Str>() + key.len();
                if bytes > limit {
                    break;
                }
                bytes += size(member, limit - bytes);
            }
        }
    }
    bytes
}

/// Formats `supported values: "a", "b"`, and the number of omitted ones if the list is too long. Empty
/// without values.
pub(super) fn supported_values<'s, T>(
    values: impl IntoIterator<Item = T>,
    text: impl Fn(T) -> Cow<'s, str>,
) -> String {
    let mut out = String::new();
    let mut omitted = 0usize;
    for value in values {
        if out.len() > MAX_SUPPORTED {
            omitted += 1;
            continue;
        }
        out.push_str(if out.is_empty() {
            "supported values: "
        } else {
            ", "
        });
        go::write_quoted(&mut out, truncate_quoted(&text(value)));
    }
    if omitted > 0 {
        // Writing to a string cannot fail.
        let _ = write!(out, ", and {omitted} more");
    }
    out
}
