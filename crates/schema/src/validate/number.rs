//! Numbers: `minimum`, `maximum`, `multipleOf`, and the range of the type and format.
//!
//! With kube-apiserver's arithmetic: integers are compared as integers, which truncates bounds, and floats as
//! floats.

use super::sink::{Sink, Stop};
use crate::format::{Format, FormatKind};
use crate::plan::{PlanNode, Types};
use scantling_value::go::cut;
use scantling_value::{Path, Value};
use std::cmp::Ordering;

/// Returns whether a float counts as an integer. kube-apiserver allows a rounding error of 1e-9.
pub(super) fn is_integral(f: f64) -> bool {
    const MAX_SAFE: f64 = 9_007_199_254_740_991.0;
    if !f.is_finite() || f.abs() > MAX_SAFE {
        return false;
    }
    let rounded = f.round();
    f == rounded || (rounded != 0.0 && (f - rounded).abs() < 1e-9 * rounded.abs())
}

/// Returns whether a number is in the range of the type and format. kube-apiserver formats the number and
/// parses it again.
pub(crate) fn in_range(value: &Value, types: Types, format: Option<&Format>) -> bool {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    let format = format.map(Format::kind);
    if types == Types::INTEGER {
        let (low, high) = match format {
            Some(FormatKind::Int32) => (i64::from(i32::MIN), i64::from(i32::MAX)),
            _ => (i64::MIN, i64::MAX),
        };
        return match value {
            Value::Int(i) => (low..=high).contains(i),
            Value::Float(f) => {
                // The shortest digits of ±2^63 are outside the range.
                #[expect(clippy::cast_precision_loss, reason = "the limits of 32 bits are exact")]
                let within = match format {
                    Some(FormatKind::Int32) => (low as f64..=high as f64).contains(f),
                    _ => f.abs() < TWO_TO_63,
                };
                f.fract() == 0.0 && within
            }
            _ => true,
        };
    }
    if types == Types::NUMBER && format == Some(FormatKind::Float) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "overflow of the narrow type is the question"
        )]
        return match value {
            Value::Int(i) => (*i as f32).is_finite(),
            Value::Float(f) => (*f as f32).is_finite(),
            _ => true,
        };
    }
    true
}

/// Returns whether a format applies to numbers of a type.
fn is_of_type(format: FormatKind, types: Types) -> bool {
    match format {
        FormatKind::Int32 | FormatKind::Int64 => types == Types::INTEGER,
        FormatKind::Float | FormatKind::Double => types == Types::NUMBER,
        _ => false,
    }
}

/// Checks a number.
pub(super) fn check<S: Sink>(
    node: &PlanNode,
    value: &Value,
    at: &Path<'_>,
    sink: &mut S,
) -> Result<(), Stop> {
    let types = node.types();
    let checks = node.checks();
    let format = checks
        .and_then(|c| c.format.as_ref())
        .filter(|f| is_of_type(f.kind(), types));
    let name = format.map(Format::name);
    if !in_range(value, types, format) {
        sink.fail(at, |site| site.out_of_range("Checked", types.names(), name))?;
    }
    let (Some(v), Some(checks)) = (node.limits(), checks) else {
        return Ok(());
    };
    if let Some(factor) = v.multiple_of {
        if checks.out_of_type_bounds.multiple_of {
            sink.fail(at, |site| site.out_of_range("MultipleOf", types.names(), name))?;
        }
        multiple_of(
            &ComparableNumber::for_bound(value, checks.out_of_type_bounds.multiple_of),
            factor.0,
            at,
            sink,
        )?;
    }
    let bounds = [
        (
            v.minimum,
            NumberBound {
                name: "Minimum boundary",
                is_out_of_type: checks.out_of_type_bounds.minimum,
                outside: Ordering::Less,
                exclusive: v.exclusive_minimum,
                relation: "greater than",
            },
        ),
        (
            v.maximum,
            NumberBound {
                name: "Maximum boundary",
                is_out_of_type: checks.out_of_type_bounds.maximum,
                outside: Ordering::Greater,
                exclusive: v.exclusive_maximum,
                relation: "less than",
            },
        ),
    ];
    for (limit, bound) in bounds {
        let Some(limit) = limit else { continue };
        if bound.is_out_of_type {
            sink.fail(at, |site| site.out_of_range(bound.name, types.names(), name))?;
        }
        let number = ComparableNumber::for_bound(value, bound.is_out_of_type);
        if bound.is_violated(&number, limit.0) {
            sink.fail(at, |site| {
                site.out_of_bounds(&number.value(), &bound.relation(), &number.with_kind_of(limit.0))
            })?;
        }
    }
    Ok(())
}

/// A lower or upper bound.
struct NumberBound {
    name: &'static str,
    is_out_of_type: bool,
    /// The order of a number outside the bound and its limit.
    outside: Ordering,
    exclusive: bool,
    /// The relation of a valid number to the limit, if the bound is exclusive.
    relation: &'static str,
}

impl NumberBound {
    fn is_violated(&self, number: &ComparableNumber, limit: f64) -> bool {
        let order = match number {
            ComparableNumber::Int(i) => Some(i.cmp(&cut(limit))),
            ComparableNumber::Float(f) => f.partial_cmp(&limit),
        };
        order == Some(self.outside) || (self.exclusive && order == Some(Ordering::Equal))
    }

    fn relation(&self) -> String {
        let or_equal = if self.exclusive { "" } else { " or equal to" };
        format!("{}{or_equal}", self.relation)
    }
}

fn multiple_of<S: Sink>(
    number: &ComparableNumber,
    factor: f64,
    at: &Path<'_>,
    sink: &mut S,
) -> Result<(), Stop> {
    let shown = number.with_kind_of(factor);
    let positive = match shown {
        Value::Int(i) => i > 0,
        _ => factor > 0.0,
    };
    if !positive {
        return sink.fail(at, |site| site.not_multiple_of(&shown));
    }
    let is_multiple = match *number {
        // The factor is positive here, so the remainder exists.
        ComparableNumber::Int(i) => i.checked_rem(cut(factor)) == Some(0),
        ComparableNumber::Float(f) if factor < 1.0 => is_integral(1.0 / factor * f),
        ComparableNumber::Float(f) => is_integral(f / factor),
    };
    if !is_multiple {
        return sink.fail(at, |site| {
            site.out_of_bounds(&number.value(), "a multiple of", &shown)
        });
    }
    Ok(())
}

/// A number in the form in which it is compared.
enum ComparableNumber {
    Int(i64),
    Float(f64),
}

impl ComparableNumber {
    /// Against a bound that is out of range of the type, integers are compared as floats, too.
    fn for_bound(value: &Value, bound_out_of_type: bool) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a server compares as floats here")]
        match value {
            Value::Int(i) if bound_out_of_type => ComparableNumber::Float(*i as f64),
            Value::Int(i) => ComparableNumber::Int(*i),
            Value::Float(f) => ComparableNumber::Float(*f),
            _ => ComparableNumber::Int(0),
        }
    }

    fn value(&self) -> Value {
        match *self {
            ComparableNumber::Int(i) => Value::Int(i),
            ComparableNumber::Float(f) => Value::Float(f),
        }
    }

    /// Converts a bound to the kind of this number.
    fn with_kind_of(&self, bound: f64) -> Value {
        match self {
            ComparableNumber::Int(_) => Value::Int(cut(bound)),
            ComparableNumber::Float(_) => Value::Float(bound),
        }
    }
}
