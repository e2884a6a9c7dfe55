//! What is wrong with a field, in the words of a Kubernetes API server.

use crate::{Path, PathBuf, Value};
use std::fmt;

/// The kind of a field error; decides its words, its machine-readable reason, and whether it blocks rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// What a reference names is not there.
    NotFound,
    /// A value must be given.
    Required,
    /// A value stands twice where it may stand once.
    Duplicate,
    /// A malformed or out-of-range value.
    Invalid,
    /// A value outside an enumeration.
    NotSupported,
    /// A value that is not allowed here.
    Forbidden,
    /// A value that is longer than its limit.
    TooLong,
    /// A list or map with more entries than its limit.
    TooMany,
    /// The server's own failure.
    Internal,
    /// A value of the wrong type.
    TypeInvalid,
}

impl ErrorKind {
    /// The `reason` of the cause in a `Status`.
    pub fn reason(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "FieldValueNotFound",
            ErrorKind::Required => "FieldValueRequired",
            ErrorKind::Duplicate => "FieldValueDuplicate",
            ErrorKind::Invalid => "FieldValueInvalid",
            ErrorKind::NotSupported => "FieldValueNotSupported",
            ErrorKind::Forbidden => "FieldValueForbidden",
            ErrorKind::TooLong => "FieldValueTooLong",
            ErrorKind::TooMany => "FieldValueTooMany",
            ErrorKind::Internal => "InternalError",
            ErrorKind::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    /// How a message of this kind begins.
    pub fn title(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "Not found",
            ErrorKind::Required => "Required value",
            ErrorKind::Duplicate => "Duplicate value",
            ErrorKind::Invalid | ErrorKind::TypeInvalid => "Invalid value",
            ErrorKind::NotSupported => "Unsupported value",
            ErrorKind::Forbidden => "Forbidden",
            ErrorKind::TooLong => "Too long",
            ErrorKind::TooMany => "Too many",
            ErrorKind::Internal => "Internal error",
        }
    }
}

/// The value that an error shows.
#[derive(Clone, Debug, PartialEq)]
pub enum BadValue {
    /// None: the message has no value part.
    Omitted,
    /// A scalar or document: strings are quoted, numbers and booleans are bare, the rest is JSON.
    Value(Value),
    /// Text that stands as it is (a value already written in the form that a server would print).
    Raw(String),
}

impl<T: Into<Value>> From<T> for BadValue {
    fn from(v: T) -> Self {
        BadValue::Value(v.into())
    }
}

/// One thing that is wrong with one field. `Display` is `field: message`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError(Box<Repr>);

const _: () = assert!(size_of::<FieldError>() == size_of::<usize>());

#[derive(Clone, Debug, PartialEq)]
struct Repr {
    kind: ErrorKind,
    field: String,
    at: PathBuf,
    value: BadValue,
    detail: String,
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
        let at = PathBuf::from(at);
        FieldError(Box::new(Repr {
            kind,
            field: at.to_string(),
            at,
            value: value.into(),
            detail: detail.into(),
        }))
    }

    /// An error whose field text is given as it stands (a server prints some paths in forms of their own).
    #[cold]
    pub fn with_field(
        kind: ErrorKind,
        field: impl Into<String>,
        value: impl Into<BadValue>,
        detail: impl Into<String>,
    ) -> Self {
        FieldError(Box::new(Repr {
            kind,
            field: field.into(),
            at: PathBuf::default(),
            value: value.into(),
            detail: detail.into(),
        }))
    }

    /// Points the error at a document place without changing its field text.
    #[must_use]
    pub fn located(mut self, at: &Path<'_>) -> Self {
        self.0.at = PathBuf::from(at);
        self
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The field as the server prints it.
    pub fn field(&self) -> &str {
        &self.0.field
    }

    /// The place in the document, where known: tools show line and column by it.
    pub fn at(&self) -> &PathBuf {
        &self.0.at
    }

    /// The value shown.
    pub fn value(&self) -> &BadValue {
        &self.0.value
    }

    /// The text after the value.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }

    /// The `reason` of the cause in a `Status`.
    pub fn reason(&self) -> &'static str {
        self.0.kind.reason()
    }
}
