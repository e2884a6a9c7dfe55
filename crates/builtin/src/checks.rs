//! Checks that many kinds share.
//!
//! A struct's plain rules are a table of fields and [`Rule`]s, applied by [`apply`]. Rules that span fields are functions
//! in the file of their kind. Errors are reported through [`Report`], which takes the position from a [`Cursor`].

pub(crate) mod amounts;
pub(crate) mod conditions;
pub(crate) mod defaults;
pub(crate) mod diff;
pub(crate) mod gates;
pub(crate) mod go;
pub(crate) mod ip;
pub(crate) mod labels;
pub(crate) mod metadata;
pub(crate) mod names;
pub(crate) mod nodes;
pub(crate) mod numbers;
pub(crate) mod pem;
pub(crate) mod resources;
pub(crate) mod rule;
pub(crate) mod tolerations;
pub(crate) mod update;

pub(crate) use rule::{Rule, check_fields};

use crate::Cursor;
use scantling_value::{BadValue, ErrorList, FieldError, Value};
use std::collections::BTreeSet;

/// A check of the value at a position.
pub(crate) type Check = fn(&Cursor<'_, '_>, &mut ErrorList);

/// Reports errors at the position of a cursor.
/// Deviations from the usual wording or path are kube-apiserver's; they are marked `UPSTREAM`.
pub(crate) trait Report {
    /// The value must be given.
    fn required(&mut self, at: &Cursor<'_, '_>, detail: &str);
    /// The value is malformed or out of range; the error shows the value at the position.
    fn invalid(&mut self, at: &Cursor<'_, '_>, detail: impl Into<String>);
    /// As [`Report::invalid`], but the error shows the given value.
    fn invalid_value(&mut self, at: &Cursor<'_, '_>, shown: impl Into<BadValue>, detail: impl Into<String>);
    /// The value is not allowed here.
    fn forbidden(&mut self, at: &Cursor<'_, '_>, detail: impl Into<String>);
    /// The value is outside an enumeration. The message lists the supported values in the given order.
    fn not_supported(&mut self, at: &Cursor<'_, '_>, supported: &[&str]);
    /// The value occurs twice; the error shows the given value.
    fn duplicate(&mut self, at: &Cursor<'_, '_>, shown: impl Into<BadValue>);
    /// Reports the string at a position if it has been seen before.
    fn unique<'v>(&mut self, seen: &mut BTreeSet<&'v str>, at: &Cursor<'v, '_>);
    /// Reports a string that is longer.
    fn max_bytes(&mut self, at: &Cursor<'_, '_>, max: usize);
    /// Reports a list with more elements. Returns whether it is short enough.
    fn max_items(&mut self, at: &Cursor<'_, '_>, max: usize) -> bool;
    /// Every text is a reason why the value at the position is invalid.
    fn invalid_for(&mut self, at: &Cursor<'_, '_>, reasons: Vec<String>);
}

impl Report for ErrorList {
    fn required(&mut self, at: &Cursor<'_, '_>, detail: &str) {
        self.push_with(|| FieldError::required(at.path(), detail));
    }

    fn invalid(&mut self, at: &Cursor<'_, '_>, detail: impl Into<String>) {
        self.push_with(|| FieldError::invalid(at.path(), at.shown(), detail));
    }

    fn invalid_value(&mut self, at: &Cursor<'_, '_>, shown: impl Into<BadValue>, detail: impl Into<String>) {
        self.push_with(|| FieldError::invalid(at.path(), shown, detail));
    }

    fn forbidden(&mut self, at: &Cursor<'_, '_>, detail: impl Into<String>) {
        self.push_with(|| FieldError::forbidden(at.path(), detail));
    }

    fn not_supported(&mut self, at: &Cursor<'_, '_>, supported: &[&str]) {
        let supported = supported.iter().copied();
        self.push_with(|| FieldError::not_supported(at.path(), at.str(), supported));
    }

    fn duplicate(&mut self, at: &Cursor<'_, '_>, shown: impl Into<BadValue>) {
        self.push_with(|| FieldError::duplicate(at.path(), shown));
    }

    fn unique<'v>(&mut self, seen: &mut BTreeSet<&'v str>, at: &Cursor<'v, '_>) {
        if !seen.insert(at.str()) {
            self.duplicate(at, at.str());
        }
    }

    fn max_bytes(&mut self, at: &Cursor<'_, '_>, max: usize) {
        if at.str().len() > max {
            self.push_with(|| FieldError::too_long(at.path(), max));
        }
    }

    fn max_items(&mut self, at: &Cursor<'_, '_>, max: usize) -> bool {
        let count = at.list().len();
        if count > max {
            self.push_with(|| FieldError::too_many(at.path(), count, max));
        }
        count <= max
    }

    fn invalid_for(&mut self, at: &Cursor<'_, '_>, reasons: Vec<String>) {
        for reason in reasons {
            self.invalid(at, reason);
        }
    }
}

impl Cursor<'_, '_> {
    /// The value as an error shows it. A field that is absent shows as an empty string: most fields are strings.
    fn shown(&self) -> BadValue {
        match self.value() {
            None => "".into(),
            Some(value) => value.clone().into(),
        }
    }

    /// Returns whether the value is what a Go field holds that was never set: absent, or empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.value().is_none_or(is_zero)
    }
}

/// Returns whether a value is the zero value of its type.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Int(0) => true,
        Value::Bool(true) | Value::Int(_) => false,
        Value::Float(f) => *f == 0.0,
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(m) => m.is_empty(),
    }
}
