//! Rules about single fields, as data.

use super::{Check, Report, numbers};
use crate::Cursor;
use scantling_value::ErrorList;

/// A rule about one field.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    /// Must not be empty.
    Required,
    /// Must not be empty; the error says why.
    RequiredFor(&'static str),
    /// Must not be set; the error says why.
    Forbidden(&'static str),
    /// One of these values, where it is set.
    OneOf(&'static [&'static str]),
    /// One of these values, even if it is empty.
    In(&'static [&'static str]),
    /// One of these values; an empty one is reported as missing.
    RequiredOneOf(&'static [&'static str]),
    /// At least 0.
    NonNegative,
    /// A number between these bounds, inclusive, where it is set.
    Between(i64, i64),
    /// A string of this form, where it is not empty.
    Form(fn(&str) -> Vec<String>),
    /// A string of this form, where it is set, even if it is empty.
    FormIfSet(fn(&str) -> Vec<String>),
    /// A string of this form; an empty one is reported as missing.
    RequiredForm(fn(&str) -> Vec<String>),
    /// Any other check of the value.
    Check(Check),
    /// A check of the value, where it is set.
    IfSet(Check),
    /// The rules of the fields of a struct, where it is set.
    Struct(&'static [(&'static str, Rule)]),
    /// A check of each element of a list.
    Each(Check),
}

/// Applies the rules of a struct to its fields, in order.
pub(crate) fn check_fields(rules: &[(&str, Rule)], at: &Cursor<'_, '_>, errors: &mut ErrorList) {
    for (name, rule) in rules {
        rule.check(&at.field(name), errors);
    }
}

impl Rule {
    /// Checks a field.
    pub(crate) fn check(self, at: &Cursor<'_, '_>, errors: &mut ErrorList) {
        match self {
            Rule::Required if at.is_empty() => errors.required(at, ""),
            Rule::RequiredFor(why) if at.is_empty() => errors.required(at, why),
            Rule::Forbidden(why) if at.is_set() => errors.forbidden(at, why),
            Rule::OneOf(values) if at.is_set() && !values.contains(&at.str()) => {
                errors.not_supported(at, values);
            }
            Rule::In(values) if !values.contains(&at.str()) => errors.not_supported(at, values),
            Rule::RequiredOneOf(values) => match at.str() {
                "" => errors.required(at, ""),
                value if values.contains(&value) => {}
                _ => errors.not_supported(at, values),
            },
            Rule::NonNegative => numbers::non_negative(at, errors),
            Rule::Between(low, high) if at.is_set() => numbers::between(at, low, high, errors),
            Rule::Form(form) if !at.str().is_empty() => errors.invalid_for(at, form(at.str())),
            Rule::FormIfSet(form) if at.is_set() => errors.invalid_for(at, form(at.str())),
            Rule::RequiredForm(form) => match at.str() {
                "" => errors.required(at, ""),
                text => errors.invalid_for(at, form(text)),
            },
            Rule::Check(check) => check(at, errors),
            Rule::IfSet(check) if at.is_set() => check(at, errors),
            Rule::Struct(rules) if at.is_set() => check_fields(rules, at, errors),
            Rule::Each(check) => at.items().for_each(|item| check(&item, errors)),
            Rule::Required
            | Rule::RequiredFor(_)
            | Rule::Forbidden(_)
            | Rule::OneOf(_)
            | Rule::In(_)
            | Rule::Between(..)
            | Rule::Form(_)
            | Rule::FormIfSet(_)
            | Rule::IfSet(_)
            | Rule::Struct(_) => {}
        }
    }
}
