//! kube-apiserver's messages about a value.
//!
//! Two notations of a path are used: the field of an error is the whole path; the path inside the message
//! starts at the validated value (the object, a status, a default) and writes map keys like fields,
//! `spec.map.key`.

use crate::pattern::Pattern;
use crate::structural::Json;
use scantling_value::{BadValue, ErrorKind, FieldError, Path, Segment, Value, go};
use std::borrow::Cow;
use std::fmt::Write as _;

/// The location of an error.
pub(crate) struct ErrorSite<'a> {
    /// The path of the validated value.
    pub(super) prefix: &'a Path<'a>,
    /// The path within the validated value.
    pub(super) at: &'a Path<'a>,
}

impl ErrorSite<'_> {
    /// The path as the message writes it.
    pub(crate) fn name(&self) -> String {
        let mut out = String::new();
        for segment in self.at.segments() {
            // Writing to a string cannot fail.
            let _ = match segment {
                Segment::Field(name) if out.is_empty() => write!(out, "{name}"),
                Segment::Field(name) | Segment::Key(name) => write!(out, ".{name}"),
                Segment::Index(i) => write!(out, "[{i}]"),
            };
        }
        out
    }

    /// An error whose field is this path.
    pub(crate) fn error(
        &self,
        kind: ErrorKind,
        value: impl Into<BadValue>,
        detail: impl Into<String>,
    ) -> FieldError {
        self.error_at(kind, &self.name(), value, detail)
    }

    fn error_at(
        &self,
        kind: ErrorKind,
        name: &str,
        value: impl Into<BadValue>,
        detail: impl Into<String>,
    ) -> FieldError {
        // A key of the root has a leading dot in the message but not in the field.
        let name = name.strip_prefix('.').unwrap_or(name);
        let field = match (self.prefix.is_root(), name.is_empty()) {
            (_, true) => self.prefix.to_string(),
            (true, false) => name.to_owned(),
            (false, false) => format!("{}.{name}", self.prefix),
        };
        let error = FieldError::with_field(kind, field, value, detail);
        let mut steps = self.prefix.segments();
        steps.extend(self.at.segments());
        locate(error, &Path::ROOT, &steps)
    }

    /// An error without a field; the message names the path.
    fn general(&self, detail: impl Into<String>) -> FieldError {
        // go-openapi gives these errors no field, so they are reported at the validated value.
        FieldError::with_field(ErrorKind::Invalid, self.prefix.to_string(), "", detail).located(self.at)
    }

    pub(super) fn invalid(&self, value: impl Into<BadValue>, text: &str) -> FieldError {
        self.error(
            ErrorKind::Invalid,
            value,
            format!("{} in body {text}", self.name()),
        )
    }

    pub(super) fn wrong_type(&self, wanted: &str, actual: &str) -> FieldError {
        let quoted = go::quote(actual);
        self.error(
            ErrorKind::TypeInvalid,
            actual,
            format!("{} in body must be of type {wanted}: {quoted}", self.name()),
        )
    }

    pub(super) fn too_long(&self, max: i64) -> FieldError {
        // UPSTREAM: the limit is in characters, but the text says bytes.
        let detail = match max {
            ..=-1 => "value is too long".into(),
            1 => "may not be more than 1 byte".into(),
            _ => format!("may not be more than {max} bytes"),
        };
        self.error(ErrorKind::TooLong, BadValue::Omitted, detail)
    }

    pub(super) fn too_short(&self, s: &str, min: i64) -> FieldError {
        self.invalid(s, &format!("should be at least {min} chars long"))
    }

    pub(super) fn no_match(&self, s: &str, pattern: &Pattern) -> FieldError {
        self.invalid(s, &format!("should match '{}'", pattern.as_shown()))
    }

    pub(super) fn not_in_enum(&self, value: &Value, listed: &[Json]) -> FieldError {
        let detail = FieldError::supported_values(listed, |json| match &*json.0 {
            Value::String(s) => Cow::from(s.as_str()),
            v => v.to_json().into(),
        });
        self.error(ErrorKind::NotSupported, value.clone(), detail)
    }

    pub(super) fn too_few(&self, size: i64, min: i64, what: &str) -> FieldError {
        self.invalid(size, &format!("should have at least {min} {what}"))
    }

    pub(super) fn too_many(&self, size: i64, max: i64) -> FieldError {
        // UPSTREAM: properties are called items, too.
        let detail = match max {
            ..=-1 => "has too many items".into(),
            1 => "must have at most 1 item".into(),
            _ => format!("must have at most {max} items"),
        };
        self.error(ErrorKind::TooMany, size, detail)
    }

    pub(super) fn not_allowed(&self, name: &str) -> FieldError {
        let detail = format!("{}.{name} in body is a forbidden property", self.name());
        self.error(ErrorKind::Invalid, name, detail)
    }

    pub(super) fn required(&self, name: &str) -> FieldError {
        let whole = format!("{}.{name}", self.name());
        self.error_at(ErrorKind::Required, &whole, BadValue::Omitted, "")
    }

    pub(super) fn junctor(&self, text: &str) -> FieldError {
        self.general(format!("{} {text}", go::quote(&self.name())))
    }

    /// A number, or a bound on numbers, that is out of range of its type.
    pub(crate) fn out_of_range(&self, what: &str, ty: &str, format: Option<&str>) -> FieldError {
        let place = self.name();
        self.general(match format {
            Some(format) => {
                format!("{what} value must be of type {ty} with format {format} in {place}")
            }
            None => format!("{what} value must be of type {ty} (default format) in {place}"),
        })
    }

    /// The error about a number outside its bounds.
    pub(crate) fn out_of_bounds(&self, value: &Value, relation: &str, bound: &Value) -> FieldError {
        self.invalid(
            value.clone(),
            &format!("should be {relation} {}", number_v(bound)),
        )
    }

    /// An invalid `multipleOf`.
    pub(crate) fn not_multiple_of(&self, factor: &Value) -> FieldError {
        let detail = format!(
            "factor MultipleOf declared for {} must be positive: {}",
            self.name(),
            number_v(factor)
        );
        self.error(ErrorKind::Invalid, factor.clone(), detail)
    }
}

fn number_v(v: &Value) -> String {
    match v {
        Value::Float(f) => go::float_v(*f),
        v => v.to_json(),
    }
}

/// Sets the location of an error.
fn locate(error: FieldError, at: &Path<'_>, steps: &[Segment<'_>]) -> FieldError {
    match steps {
        [] => error.located(at),
        [step, rest @ ..] => locate(error, &at.push(*step), rest),
    }
}
