//! Limits on numbers, with the arithmetic of a server: it compares integers as integers, which cuts the fraction off
//! a bound, and floats as floats.

use crate::format::{Format, FormatKind};
use crate::plan::{Node, Types};
use crate::validate::{Sink, Stop};
use scantling_value::go::cut;
use scantling_value::{Path, Value};

/// Whether a float counts as an integer. Servers allow for a rounding error of 1e-9.
pub(crate) fn is_integral(f: f64) -> bool {
    const MAX_SAFE: f64 = 9_007_199_254_740_991.0;
    if !f.is_finite() || f.abs() > MAX_SAFE {
        return false;
    }
    let rounded = f.round();
    f == rounded || (rounded != 0.0 && (f - rounded).abs() < 1e-9 * rounded.abs())
}

/// Whether a number is one of the type and format. A server decides it by writing the number out and reading it again.
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
                // The shortest digits of ±2^63 lie beyond the range.
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

/// Whether a format is one of numbers of that type. Any other says nothing about them.
fn is_of_type(format: FormatKind, types: Types) -> bool {
    match format {
        FormatKind::Int32 | FormatKind::Int64 => types == Types::INTEGER,
        FormatKind::Float | FormatKind::Double => types == Types::NUMBER,
        _ => false,
    }
}

/// Checks the limits on a number.
pub(crate) fn check<S: Sink>(node: &Node, value: &Value, at: &Path<'_>, sink: &mut S) -> Result<(), Stop> {
    let types = node.types();
    let checks = node.checks();
    let format = checks
        .and_then(|c| c.format.as_ref())
        .filter(|f| is_of_type(f.kind(), types));
    let name = format.map(Format::name);
    if !in_range(value, types, format) {
        sink.fail(at, |spot| spot.out_of_range("Checked", types.names(), name))?;
    }
    let (Some(v), Some(checks)) = (node.limits(), checks) else {
        return Ok(());
    };
    if let Some(factor) = v.multiple_of {
        if checks.odd_bounds.multiple_of {
            sink.fail(at, |spot| spot.out_of_range("MultipleOf", types.names(), name))?;
        }
        multiple_of(
            &Number::of(value, checks.odd_bounds.multiple_of),
            factor.0,
            at,
            sink,
        )?;
    }
    if let Some(min) = v.minimum {
        if checks.odd_bounds.minimum {
            sink.fail(at, |spot| {
                spot.out_of_range("Minimum boundary", types.names(), name)
            })?;
        }
        let number = Number::of(value, checks.odd_bounds.minimum);
        let exclusive = v.exclusive_minimum;
        let below = match number {
            Number::Int(i) => i < cut(min.0) || (exclusive && i == cut(min.0)),
            Number::Float(f) => f < min.0 || (exclusive && f <= min.0),
        };
        if below {
            let relation = if exclusive {
                "greater than"
            } else {
                "greater than or equal to"
            };
            sink.fail(at, |spot| {
                spot.beyond(&number.value(), relation, &number.like(min.0))
            })?;
        }
    }
    if let Some(max) = v.maximum {
        if checks.odd_bounds.maximum {
            sink.fail(at, |spot| {
                spot.out_of_range("Maximum boundary", types.names(), name)
            })?;
        }
        let number = Number::of(value, checks.odd_bounds.maximum);
        let exclusive = v.exclusive_maximum;
        let above = match number {
            Number::Int(i) => i > cut(max.0) || (exclusive && i == cut(max.0)),
            Number::Float(f) => f > max.0 || (exclusive && f >= max.0),
        };
        if above {
            let relation = if exclusive {
                "less than"
            } else {
                "less than or equal to"
            };
            sink.fail(at, |spot| {
                spot.beyond(&number.value(), relation, &number.like(max.0))
            })?;
        }
    }
    Ok(())
}

fn multiple_of<S: Sink>(number: &Number, factor: f64, at: &Path<'_>, sink: &mut S) -> Result<(), Stop> {
    let shown = number.like(factor);
    let positive = match shown {
        Value::Int(i) => i > 0,
        _ => factor > 0.0,
    };
    if !positive {
        return sink.fail(at, |spot| spot.bad_factor(&shown));
    }
    let is_multiple = match *number {
        Number::Int(i) => i.checked_rem(cut(factor)) == Some(0),
        Number::Float(f) if factor < 1.0 => is_integral(1.0 / factor * f),
        Number::Float(f) => is_integral(f / factor),
    };
    if !is_multiple {
        return sink.fail(at, |spot| spot.beyond(&number.value(), "a multiple of", &shown));
    }
    Ok(())
}

/// A number as it is compared.
enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    /// Against a bound that is none of the type, integers compare as floats, too.
    fn of(value: &Value, odd_bound: bool) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a server compares as floats here")]
        match value {
            Value::Int(i) if odd_bound => Number::Float(*i as f64),
            Value::Int(i) => Number::Int(*i),
            Value::Float(f) => Number::Float(*f),
            _ => Number::Int(0),
        }
    }

    fn value(&self) -> Value {
        match *self {
            Number::Int(i) => Value::Int(i),
            Number::Float(f) => Value::Float(f),
        }
    }

    /// A bound as it is compared with this number.
    fn like(&self, bound: f64) -> Value {
        match self {
            Number::Int(_) => Value::Int(cut(bound)),
            Number::Float(_) => Value::Float(bound),
        }
    }
}
