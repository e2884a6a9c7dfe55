//! `string.format(list)`: replaces the clauses of a format string by arguments.
//!
//! There are two dialects. The older one ([`localized`]) writes numbers as in American English, with
//! thousands separators and powers of ten, and writes members of lists and maps as in CEL source. The newer
//! one ([`limited`]) writes plain numbers, and strings in lists and maps without quotes.

use crate::library::strings::template::{Clause, Dialect, interpolate};
use crate::val::{Arena, EvalError, List, Map, Res, Val};
use scantling_notation::{duration, timestamp};
use scantling_value::deadline;
use scantling_value::go::{float_v, quote};
use std::fmt::Write;

/// The number of decimal places of a clause without a precision.
const DEFAULT_PRECISION: usize = 6;
/// The maximum number of decimal places written: no value has more digits.
const MAX_PLACES: usize = 32_767;
/// The maximum nesting depth of lists and maps.
const MAX_DEPTH: usize = 200;

pub(super) fn localized<'a>(arena: &'a Arena, template: Val<'a>, args: Val<'a>) -> Res<'a> {
    format(arena, template, args, None, localized_clause)
}

/// The newer dialect, with at most 100 decimal places per clause.
pub(super) fn limited<'a>(arena: &'a Arena, template: Val<'a>, args: Val<'a>) -> Res<'a> {
    format(arena, template, args, Some(100), plain_clause)
}

type WriteClause = for<'a> fn(&'a Arena, &mut Vec<u8>, Clause, Val<'a>) -> Result<(), String>;

fn format<'a>(
    arena: &'a Arena,
    template: Val<'a>,
    args: Val<'a>,
    max_precision: Option<usize>,
    write_clause: WriteClause,
) -> Res<'a> {
    let (template, args) = (template.str()?, args.list()?);
    // An error that ends the evaluation must not become text.
    let mut last = None;
    let out = interpolate(template, args.len(), max_precision, |out, index, clause| {
        // The index is below the number of arguments, so the fallback is never used.
        let arg = args.get(arena, index).unwrap_or(Err(EvalError::NoSuchOverload));
        let written = arg.and_then(|arg| {
            let written = write_clause(arena, out, clause, arg).map_err(EvalError::message);
            // After every clause: a few clauses can repeat a long argument many times.
            arena.check_room(out.len())?;
            written
        });
        written.map_err(|e| {
            let text = e.to_string();
            last = Some(e).filter(EvalError::is_final);
            text
        })
    });
    match (out, last) {
        (_, Some(e)) => Err(e),
        // Bytes as arguments may not be UTF-8. Go's strings can hold them; here invalid parts are replaced.
        (Ok(out), None) => arena.str(String::from_utf8_lossy(&out)),
        (Err(message), None) => Err(EvalError::message(message)),
    }
}

fn push(out: &mut Vec<u8>, text: impl AsRef<[u8]>) -> Result<(), String> {
    out.extend_from_slice(text.as_ref());
    Ok(())
}

fn write_timestamp(t: crate::val::Timestamp, offset: i32) -> String {
    timestamp::format(timestamp::Moment {
        seconds: t.seconds,
        nanos: t.nanos,
        offset,
    })
}

/// The message about an argument that does not fit its clause.
fn refusal(clause: Clause, dialect: Dialect, value: Val<'_>) -> String {
    format!("{}, was given {}", clause.takes(dialect), value.type_name())
}

fn localized_clause<'a>(
    arena: &'a Arena,
    out: &mut Vec<u8>,
    clause: Clause,
    value: Val<'a>,
) -> Result<(), String> {
    let text = match clause {
        Clause::Text => Some(localized_text(arena, value, 0)?),
        Clause::Decimal => decimal(value),
        Clause::Fixed(precision) => {
            as_double(value).map(|n| grouped(n, precision.unwrap_or(DEFAULT_PRECISION)))
        }
        // UPSTREAM: the precision is used as the width, and there are always six decimal places.
        Clause::Scientific(precision) => {
            as_double(value).map(|n| power_of_ten(n, precision.unwrap_or(DEFAULT_PRECISION)))
        }
        Clause::Binary | Clause::Hexadecimal | Clause::UpperHexadecimal | Clause::Octal => {
            in_radix(clause, value)
        }
    };
    push(
        out,
        text.ok_or_else(|| refusal(clause, Dialect::Localized, value))?,
    )
}

fn decimal(value: Val<'_>) -> Option<String> {
    match value {
        Val::Int(n) => Some(n.to_string()),
        Val::Uint(n) => Some(n.to_string()),
        _ => None,
    }
}

/// A double, or one of the three strings that denote doubles without digits.
fn as_double(value: Val<'_>) -> Option<f64> {
    match value {
        Val::Double(number) => Some(number),
        Val::Str("NaN") => Some(f64::NAN),
        Val::Str("Infinity") => Some(f64::INFINITY),
        Val::Str("-Infinity") => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// The localized text of infinity or NaN; `None` for other numbers.
fn symbol(number: f64) -> Option<&'static str> {
    plain_symbol(number).map(|name| match name {
        "Infinity" => "\u{221e}",
        "-Infinity" => "-\u{221e}",
        other => other,
    })
}

/// A number with fixed decimal places and thousands separators.
fn grouped(number: f64, precision: usize) -> String {
    if let Some(symbol) = symbol(number) {
        return symbol.to_owned();
    }
    // Zero has no sign, but numbers that round to zero keep theirs.
    let number = if number == 0.0 { 0.0 } else { number };
    let precision = precision.min(MAX_PLACES);
    let digits = format!("{number:.precision$}");
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    // UPSTREAM: the minimum number of decimal places is stored in eight bits.
    let least = precision % 256;
    let kept = fraction.trim_end_matches('0').len().max(least);
    let fraction = fraction.get(..kept).unwrap_or(fraction);
    let mut out = String::from(sign);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A number with six decimal places and a power of ten, at least `width` characters wide.
fn power_of_ten(number: f64, width: usize) -> String {
    let text = symbol(number).map_or_else(
        || {
            let number = if number == 0.0 { 0.0 } else { number };
            let digits = format!("{number:.6e}");
            let (mantissa, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let sign = if exponent < 0 { "\u{207b}" } else { "" };
            // At least two digits of exponent, as Go's `golang.org/x/text` writes them.
            let raised: String = format!("{:02}", exponent.unsigned_abs())
                .chars()
                .map(superscript)
                .collect();
            format!("{mantissa}\u{d7}10{sign}{raised}")
        },
        str::to_owned,
    );
    let width = width.min(MAX_PLACES);
    format!("{text:>width$}")
}

fn superscript(digit: char) -> char {
    match digit {
        '1' => '\u{b9}',
        '2' => '\u{b2}',
        '3' => '\u{b3}',
        _ => digit
            .to_digit(10)
            .and_then(|d| char::from_u32(0x2070 + d))
            .unwrap_or(digit),
    }
}

fn utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|_| {
        let problem = "invalid UTF-8 in bytes, cannot convert to string";
        format!("could not convert argument {} to string", quote(problem))
    })
}

/// The text of a value on its own.
fn localized_text<'a>(arena: &'a Arena, value: Val<'a>, depth: usize) -> Result<String, String> {
    Ok(match value {
        Val::Null => "null".to_owned(),
        Val::Bool(b) => b.to_string(),
        Val::Int(n) => n.to_string(),
        Val::Uint(n) => n.to_string(),
        Val::Double(n) => float_v(n),
        Val::Str(s) | Val::Type(s) => s.to_owned(),
        Val::Bytes(b) => utf8(b)?.to_owned(),
        Val::Duration(d) => duration::format(d.nanos),
        Val::Timestamp(t) => write_timestamp(t, t.offset),
        _ => match (value.as_list(), value.as_map()) {
            (Some(list), _) => localized_list(arena, list, depth)?,
            (_, Some(map)) => localized_map(arena, map, depth)?,
            (None, None) => return Err(refusal(Clause::Text, Dialect::Localized, value)),
        },
    })
}

/// The text of a value in a list or map, as in CEL source.
fn localized_member<'a>(arena: &'a Arena, value: Val<'a>, depth: usize) -> Result<String, String> {
    Ok(match value {
        Val::Str(s) => quote(s),
        Val::Bytes(b) => format!("b{}", quote(utf8(b)?)),
        Val::Double(n) if !n.is_finite() => quote(&float_v(n)),
        Val::Double(n) => format!("{n:.DEFAULT_PRECISION$}"),
        Val::Duration(d) => format!("duration({})", quote(&duration::format(d.nanos))),
        Val::Timestamp(t) => format!("timestamp({})", quote(&write_timestamp(t, t.offset))),
        Val::Optional(_) | Val::Opaque(_) => {
            return Err(format!("no formatting function for {}", value.type_name()));
        }
        _ => localized_text(arena, value, depth)?,
    })
}

fn deeper(depth: usize) -> Result<usize, String> {
    if depth < MAX_DEPTH {
        Ok(depth + 1)
    } else {
        Err("lists and maps nest too deeply".to_owned())
    }
}

fn localized_list<'a>(arena: &'a Arena, list: List<'a>, depth: usize) -> Result<String, String> {
    let depth = deeper(depth)?;
    let mut out = String::from("[");
    for (i, item) in list.iter(arena).enumerate() {
        deadline::tick();
        if i > 0 {
            out.push_str(", ");
        }
        let item = item.map_err(|_| "no formatting function for error".to_owned())?;
        out.push_str(&localized_member(arena, item, depth)?);
    }
    out.push(']');
    Ok(out)
}

fn localized_map<'a>(arena: &'a Arena, map: Map<'a>, depth: usize) -> Result<String, String> {
    let depth = deeper(depth)?;
    let mut entries = Vec::with_capacity(map.len());
    for key in map.keys() {
        deadline::tick();
        let name = match key {
            Val::Str(s) => quote(s),
            Val::Bool(b) => b.to_string(),
            Val::Int(n) => n.to_string(),
            Val::Uint(n) => n.to_string(),
            _ => {
                return Err(format!(
                    "no formatting function for map key of type {}",
                    key.type_name()
                ));
            }
        };
        let value = map
            .get(arena, key)
            .ok_or_else(|| format!("could not find key: {}", quote(&key.to_string())))?;
        let value = value.map_err(|_| "no formatting function for error".to_owned())?;
        entries.push((name, localized_member(arena, value, depth)?));
    }
    // UPSTREAM: undeclared members leave empty entries.
    entries.resize(entries.len().max(map.len()), (String::new(), String::new()));
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(braced(&entries, ":"))
}

fn braced(entries: &[(String, String)], colon: &str) -> String {
    let entries: Vec<_> = entries
        .iter()
        .map(|(name, value)| format!("{name}{colon}{value}"))
        .collect();
    format!("{{{}}}", entries.join(", "))
}

/// The result of the clauses `%b`, `%o`, `%x` and `%X`: digits with a sign, or the bytes of text.
fn in_radix(clause: Clause, value: Val<'_>) -> Option<String> {
    let (negative, magnitude) = match (value, clause) {
        (Val::Int(n), _) => (n < 0, n.unsigned_abs()),
        (Val::Uint(n), _) => (false, n),
        (Val::Bool(b), Clause::Binary) => (false, u64::from(b)),
        (Val::Str(s), _) => return hexadecimal(clause, s.as_bytes()),
        (Val::Bytes(b), _) => return hexadecimal(clause, b),
        _ => return None,
    };
    let sign = if negative { "-" } else { "" };
    match clause {
        Clause::Binary => Some(format!("{sign}{magnitude:b}")),
        Clause::Octal => Some(format!("{sign}{magnitude:o}")),
        Clause::Hexadecimal => Some(format!("{sign}{magnitude:x}")),
        Clause::UpperHexadecimal => Some(format!("{sign}{magnitude:X}")),
        Clause::Text | Clause::Decimal | Clause::Fixed(_) | Clause::Scientific(_) => None,
    }
}

fn hexadecimal(clause: Clause, bytes: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(bytes.len() * 2);
    for b in bytes {
        // Writing to a string cannot fail.
        let _ = match clause {
            Clause::Hexadecimal => write!(text, "{b:02x}"),
            Clause::UpperHexadecimal => write!(text, "{b:02X}"),
            _ => return None,
        };
    }
    matches!(clause, Clause::Hexadecimal | Clause::UpperHexadecimal).then_some(text)
}

fn plain_clause<'a>(
    arena: &'a Arena,
    out: &mut Vec<u8>,
    clause: Clause,
    value: Val<'a>,
) -> Result<(), String> {
    let text = match clause {
        Clause::Text => return plain_text(arena, out, value, 0),
        Clause::Decimal => match value {
            Val::Double(n) => Some(plain_double(n)),
            _ => decimal(value),
        },
        Clause::Fixed(precision) => {
            plain_number(value).map(|n| fixed(n, precision.unwrap_or(DEFAULT_PRECISION)))
        }
        Clause::Scientific(precision) => {
            plain_number(value).map(|n| scientific(n, precision.unwrap_or(DEFAULT_PRECISION)))
        }
        Clause::Binary | Clause::Hexadecimal | Clause::UpperHexadecimal | Clause::Octal => {
            in_radix(clause, value)
        }
    };
    push(out, text.ok_or_else(|| refusal(clause, Dialect::Plain, value))?)
}

fn plain_double(number: f64) -> String {
    plain_symbol(number).map_or_else(|| number.to_string(), str::to_owned)
}

fn plain_number(value: Val<'_>) -> Option<f64> {
    match value {
        Val::Int(n) => Some(n as f64),
        Val::Uint(n) => Some(n as f64),
        Val::Double(n) => Some(n),
        _ => None,
    }
}

/// The plain text of infinity or NaN; `None` for other numbers.
fn plain_symbol(number: f64) -> Option<&'static str> {
    match number {
        n if n.is_nan() => Some("NaN"),
        f64::INFINITY => Some("Infinity"),
        f64::NEG_INFINITY => Some("-Infinity"),
        _ => None,
    }
}

fn fixed(number: f64, precision: usize) -> String {
    let precision = precision.min(MAX_PLACES);
    plain_symbol(number).map_or_else(|| format!("{number:.precision$}"), str::to_owned)
}

fn scientific(number: f64, precision: usize) -> String {
    if let Some(symbol) = plain_symbol(number) {
        return symbol.to_owned();
    }
    let precision = precision.min(MAX_PLACES);
    let digits = format!("{number:.precision$e}");
    let (mantissa, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

fn plain_text<'a>(arena: &'a Arena, out: &mut Vec<u8>, value: Val<'a>, depth: usize) -> Result<(), String> {
    match value {
        Val::Null => push(out, "null"),
        Val::Bool(b) => push(out, b.to_string()),
        Val::Int(n) => push(out, n.to_string()),
        Val::Uint(n) => push(out, n.to_string()),
        Val::Double(n) => push(out, plain_double(n)),
        Val::Str(s) | Val::Type(s) => push(out, s),
        Val::Bytes(b) => push(out, b),
        Val::Duration(d) => push(out, duration::format(d.nanos)),
        Val::Timestamp(t) => push(out, write_timestamp(t, 0)),
        _ => match (value.as_list(), value.as_map()) {
            (Some(list), _) => plain_list(arena, out, list, depth),
            (_, Some(map)) => plain_map(arena, out, map, depth),
            (None, None) => Err(refusal(Clause::Text, Dialect::Plain, value)),
        },
    }
}

fn plain_list<'a>(arena: &'a Arena, out: &mut Vec<u8>, list: List<'a>, depth: usize) -> Result<(), String> {
    let depth = deeper(depth)?;
    out.push(b'[');
    for (i, item) in list.iter(arena).enumerate() {
        deadline::tick();
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        let item = item.map_err(|_| "no formatting function for error".to_owned())?;
        plain_text(arena, out, item, depth)?;
    }
    out.push(b']');
    Ok(())
}

fn plain_map<'a>(arena: &'a Arena, out: &mut Vec<u8>, map: Map<'a>, depth: usize) -> Result<(), String> {
    let depth = deeper(depth)?;
    let text = |value| {
        let mut out = Vec::new();
        plain_text(arena, &mut out, value, depth)?;
        Ok::<_, String>(String::from_utf8_lossy(&out).into_owned())
    };
    let mut entries = Vec::with_capacity(map.len());
    for key in map.keys() {
        deadline::tick();
        let value = map
            .get(arena, key)
            .ok_or_else(|| format!("key missing from map: '{key}'"))?;
        let value = value.map_err(|_| "no formatting function for error".to_owned())?;
        entries.push((text(key)?, text(value)?));
    }
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    push(out, braced(&entries, ": "))
}
