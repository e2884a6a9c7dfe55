//! Field errors, worded as kube-apiserver words them.

mod bound;

use crate::{BoundedItem, Path, PathBuf, Value};
use std::borrow::Cow;
use std::fmt;

/// The kind of a field error. Decides its wording, its machine-readable reason, and whether it keeps CEL
/// rules from running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A reference names an object that does not exist.
    NotFound,
    /// A required value is missing.
    Required,
    /// A value that must be unique is repeated.
    Duplicate,
    /// A malformed or out-of-range value.
    Invalid,
    /// A value outside an enumeration.
    NotSupported,
    /// A value that is not allowed here.
    Forbidden,
    /// A value that is longer than its limit.
    TooLong,
    /// A value that is shorter than its limit.
    TooShort,
    /// A list or map with more entries than its limit.
    TooMany,
    /// A list or map with fewer entries than its limit.
    TooFew,
    /// An internal error of the server.
    Internal,
    /// Reports a value of the wrong type.
    TypeInvalid,
}

impl ErrorKind {
    /// Returns the `reason` of the cause in a `Status`.
    pub fn reason(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "FieldValueNotFound",
            ErrorKind::Required => "FieldValueRequired",
            ErrorKind::Duplicate => "FieldValueDuplicate",
            ErrorKind::Invalid => "FieldValueInvalid",
            ErrorKind::NotSupported => "FieldValueNotSupported",
            ErrorKind::Forbidden => "FieldValueForbidden",
            ErrorKind::TooLong => "FieldValueTooLong",
            ErrorKind::TooShort => "FieldValueTooShort",
            ErrorKind::TooMany => "FieldValueTooMany",
            ErrorKind::TooFew => "FieldValueTooFew",
            ErrorKind::Internal => "InternalError",
            ErrorKind::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    /// Returns the first words of a message of this kind.
    pub fn title(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "Not found",
            ErrorKind::Required => "Required value",
            ErrorKind::Duplicate => "Duplicate value",
            ErrorKind::Invalid | ErrorKind::TypeInvalid => "Invalid value",
            ErrorKind::NotSupported => "Unsupported value",
            ErrorKind::Forbidden => "Forbidden",
            ErrorKind::TooLong => "Too long",
            ErrorKind::TooShort => "Too short",
            ErrorKind::TooMany => "Too many",
            ErrorKind::TooFew => "Too few",
            ErrorKind::Internal => "Internal error",
        }
    }

    /// Returns whether a message of this kind shows the value.
    fn shows_value(self) -> bool {
        match self {
            ErrorKind::NotFound
            | ErrorKind::Duplicate
            | ErrorKind::Invalid
            | ErrorKind::NotSupported
            | ErrorKind::TooMany
            | ErrorKind::TooFew
            | ErrorKind::TypeInvalid => true,
            ErrorKind::Required
            | ErrorKind::Forbidden
            | ErrorKind::TooLong
            | ErrorKind::TooShort
            | ErrorKind::Internal => false,
        }
    }
}

/// The value that an error shows.
#[derive(Clone, Debug, PartialEq)]
pub enum BadValue {
    /// No value: the message has no value part.
    Omitted,
    /// A scalar or document: strings are quoted, numbers and booleans are bare, the rest is JSON.
    Value(Value),
    /// Text that is printed verbatim (a value that is already formatted as kube-apiserver would print it).
    Raw(String),
}

impl<T: Into<Value>> From<T> for BadValue {
    fn from(v: T) -> Self {
        BadValue::Value(v.into())
    }
}

/// One error about one field. `Display` is `field: message`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError(Box<Repr>);

// An error is as small as a pointer, so results on paths without errors stay small.
const _: () = assert!(size_of::<FieldError>() == size_of::<usize>());

#[derive(Clone, Debug, PartialEq)]
struct Repr {
    kind: ErrorKind,
    field: String,
    at: PathBuf,
    value: BadValue,
    detail: String,
    /// The number of omitted errors that this entry represents; 0 for an ordinary error.
    omitted: usize,
}

/// Constructors for the common errors, with kube-apiserver's details.
impl FieldError {
    /// A required value is missing.
    #[cold]
    pub fn required(at: &Path<'_>, detail: impl Into<String>) -> Self {
        FieldError::new(ErrorKind::Required, at, BadValue::Omitted, detail)
    }

    /// A malformed or out-of-range value.
    #[cold]
    pub fn invalid(at: &Path<'_>, value: impl Into<BadValue>, detail: impl Into<String>) -> Self {
        FieldError::new(ErrorKind::Invalid, at, value, detail)
    }

    /// A value that must be unique is repeated.
    #[cold]
    pub fn duplicate(at: &Path<'_>, value: impl Into<BadValue>) -> Self {
        FieldError::new(ErrorKind::Duplicate, at, value, "")
    }

    /// A reference names an object that does not exist.
    #[cold]
    pub fn not_found(at: &Path<'_>, value: impl Into<BadValue>) -> Self {
        FieldError::new(ErrorKind::NotFound, at, value, "")
    }

    /// A value outside an enumeration; the message lists the supported values in the given order.
    #[cold]
    pub fn not_supported<'s>(
        at: &Path<'_>,
        value: impl Into<BadValue>,
        supported: impl IntoIterator<Item = &'s str>,
    ) -> Self {
        let detail = bound::supported_values(supported, Into::into);
        FieldError::new(ErrorKind::NotSupported, at, value, detail)
    }

    /// A value that is not allowed here.
    #[cold]
    pub fn forbidden(at: &Path<'_>, detail: impl Into<String>) -> Self {
        FieldError::new(ErrorKind::Forbidden, at, BadValue::Omitted, detail)
    }

    /// A value longer than `max` bytes.
    #[cold]
    pub fn too_long(at: &Path<'_>, max: usize) -> Self {
        let detail = format!("may not be more than {max} {}", plural(max, "byte", "bytes"));
        FieldError::new(ErrorKind::TooLong, at, BadValue::Omitted, detail)
    }

    /// A value shorter than `min` characters.
    #[cold]
    pub fn too_short(at: &Path<'_>, min: usize) -> Self {
        let detail = format!(
            "must be at least {min} {}",
            plural(min, "character", "characters")
        );
        FieldError::new(ErrorKind::TooShort, at, BadValue::Omitted, detail)
    }

    /// A list or map with more than `max` entries.
    #[cold]
    pub fn too_many(at: &Path<'_>, actual: usize, max: usize) -> Self {
        let detail = format!("must have at most {max} {}", plural(max, "item", "items"));
        FieldError::new(ErrorKind::TooMany, at, BadValue::Raw(actual.to_string()), detail)
    }

    /// An internal error of the server.
    #[cold]
    pub fn internal(at: &Path<'_>, error: impl Into<String>) -> Self {
        FieldError::new(ErrorKind::Internal, at, BadValue::Omitted, error)
    }
}

fn plural(n: usize, one: &'static str, many: &'static str) -> &'static str {
    if n == 1 { one } else { many }
}

impl FieldError {
    /// An error at a path.
    #[cold]
    pub fn new(
        kind: ErrorKind,
        at: &Path<'_>,
        value: impl Into<BadValue>,
        detail: impl Into<String>,
    ) -> Self {
        FieldError(Box::new(Repr {
            kind,
            field: bound::display(at),
            at: bound::bounded_path(at),
            value: bound::bounded_value(value.into()),
            detail: bound::truncate(detail.into()),
            omitted: 0,
        }))
    }

    /// An error whose field text is given verbatim (kube-apiserver prints some paths in special forms).
    #[cold]
    pub fn with_field(
        kind: ErrorKind,
        field: impl Into<String>,
        value: impl Into<BadValue>,
        detail: impl Into<String>,
    ) -> Self {
        FieldError(Box::new(Repr {
            kind,
            field: bound::truncate(field.into()),
            at: PathBuf::default(),
            value: bound::bounded_value(value.into()),
            detail: bound::truncate(detail.into()),
            omitted: 0,
        }))
    }

    /// Returns the text that lists the supported values, truncated to what an error can hold.
    pub fn supported_values<'s, T>(
        values: impl IntoIterator<Item = T>,
        text: impl Fn(T) -> Cow<'s, str>,
    ) -> String {
        bound::supported_values(values, text)
    }

    /// Sets the path that the error points at, without changing its field text.
    #[must_use]
    pub fn located(mut self, at: &Path<'_>) -> Self {
        self.0.at = bound::bounded_path(at);
        self
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The field as kube-apiserver prints it.
    pub fn field(&self) -> &str {
        &self.0.field
    }

    /// The path in the document, if known. Tools derive line and column from it.
    pub fn at(&self) -> &PathBuf {
        &self.0.at
    }

    /// The value that the message shows.
    pub fn value(&self) -> &BadValue {
        &self.0.value
    }

    /// The text after the value.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// Returns the `reason` of the cause in a `Status`.
    pub fn reason(&self) -> &'static str {
        self.0.kind.reason()
    }

    /// The text without the field: kind, value, detail.
    pub fn message(&self) -> String {
        let mut out = String::from(self.0.kind.title());
        if self.0.kind.shows_value() {
            match &self.0.value {
                BadValue::Omitted => {}
                BadValue::Value(value) => {
                    out.push_str(": ");
                    bound::write_value(&mut out, value);
                }
                BadValue::Raw(text) => {
                    out.push_str(": ");
                    out.push_str(text);
                }
            }
        }
        if !self.0.detail.is_empty() {
            out.push_str(": ");
            out.push_str(&self.0.detail);
        }
        out
    }
}

/// The bytes that an error takes besides its texts.
const OVERHEAD: usize = 64;

impl BoundedItem for FieldError {
    fn bytes(&self) -> usize {
        let value = match &self.0.value {
            BadValue::Omitted => 0,
            BadValue::Raw(text) => text.len(),
            BadValue::Value(value) => bound::displayed_len(value),
        };
        OVERHEAD + self.0.field.len() + value + self.0.detail.len() + self.0.at.bytes()
    }

    fn omission(count: usize) -> Self {
        let errors = plural(count, "error was", "errors were");
        let detail = format!("{count} more {errors} omitted");
        let mut entry = FieldError::invalid(&Path::ROOT, Value::Null, detail);
        entry.0.omitted = count;
        entry
    }

    fn omitted(&self) -> usize {
        self.0.omitted
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.field, self.message())
    }
}

impl std::error::Error for FieldError {}

/// Joins several messages into one, as kube-apiserver does: repeated ones appear once, several are bracketed.
pub fn aggregate<T: fmt::Display>(errors: impl IntoIterator<Item = T>) -> String {
    let mut seen = std::collections::BTreeSet::new();
    let mut out = String::new();
    for e in errors {
        let text = e.to_string();
        if seen.contains(&text) {
            continue;
        }
        if !seen.is_empty() {
            out.push_str(", ");
        }
        out.push_str(&text);
        seen.insert(text);
    }
    if seen.len() > 1 { format!("[{out}]") } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Map;

    #[test]
    fn messages() {
        let spec = Path::ROOT.field("spec");
        let at = spec.field("a");
        let doc = Value::Object(Map::from_iter([("x", Value::from("<"))]));
        for (error, text) in [
            (FieldError::required(&at, ""), "spec.a: Required value"),
            (
                FieldError::required(&at, "must be set"),
                "spec.a: Required value: must be set",
            ),
            (
                FieldError::invalid(&at, "a\"b", "bad"),
                r#"spec.a: Invalid value: "a\"b": bad"#,
            ),
            (
                FieldError::invalid(&at, 7i64, "bad"),
                "spec.a: Invalid value: 7: bad",
            ),
            (
                FieldError::invalid(&at, 1e6, "bad"),
                "spec.a: Invalid value: 1e+06: bad",
            ),
            (
                FieldError::invalid(&at, true, "bad"),
                "spec.a: Invalid value: true: bad",
            ),
            (
                FieldError::invalid(&at, Value::Null, "bad"),
                "spec.a: Invalid value: null: bad",
            ),
            (
                FieldError::invalid(&at, doc, "bad"),
                r#"spec.a: Invalid value: {"x":"\u003c"}: bad"#,
            ),
            (
                FieldError::invalid(&at, BadValue::Omitted, "bad"),
                "spec.a: Invalid value: bad",
            ),
            (FieldError::duplicate(&at, "x"), r#"spec.a: Duplicate value: "x""#),
            (FieldError::not_found(&at, "x"), r#"spec.a: Not found: "x""#),
            (
                FieldError::not_supported(&at, "x", ["a", "b"]),
                r#"spec.a: Unsupported value: "x": supported values: "a", "b""#,
            ),
            (
                FieldError::not_supported(&at, "x", []),
                r#"spec.a: Unsupported value: "x""#,
            ),
            (FieldError::forbidden(&at, "no"), "spec.a: Forbidden: no"),
            (
                FieldError::too_long(&at, 3),
                "spec.a: Too long: may not be more than 3 bytes",
            ),
            (
                FieldError::too_long(&at, 1),
                "spec.a: Too long: may not be more than 1 byte",
            ),
            (
                FieldError::too_short(&at, 2),
                "spec.a: Too short: must be at least 2 characters",
            ),
            (
                FieldError::too_many(&at, 3, 2),
                "spec.a: Too many: 3: must have at most 2 items",
            ),
            (FieldError::internal(&at, "boom"), "spec.a: Internal error: boom"),
            (
                FieldError::new(ErrorKind::TypeInvalid, &at, "integer", "must be string"),
                r#"spec.a: Invalid value: "integer": must be string"#,
            ),
            (
                FieldError::invalid(&Path::ROOT, "", "x"),
                r#"<nil>: Invalid value: "": x"#,
            ),
        ] {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn aggregates() {
        for (errors, text) in [
            (vec![], ""),
            (vec!["a"], "a"),
            (vec!["a", "a"], "a"),
            (vec!["b", "a", "b"], "[b, a]"),
        ] {
            assert_eq!(aggregate(errors), text);
        }
    }
}
