//! Resolves the type of a scalar (string, number, boolean or null) by YAML 1.1 rules, as Kubernetes' decoder
//! implements them.

use super::Problem;
use crate::{Str, Value, go};
use std::borrow::Cow;

pub(super) const TAG_PREFIX: &str = "tag:yaml.org,2002:";

/// A scalar's value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ResolvedScalar {
    Null,
    Bool(bool),
    Int(i64),
    /// Integers between 2^63 and 2^64.
    Uint(u64),
    Float(f64),
    String(Str),
}

impl ResolvedScalar {
    /// The scalar as JSON; an infinity or NaN, which JSON does not have, as it is.
    pub(super) fn into_value(self) -> Result<Value, f64> {
        Ok(match self {
            ResolvedScalar::Null => Value::Null,
            ResolvedScalar::Bool(b) => Value::Bool(b),
            ResolvedScalar::Int(i) => Value::Int(i),
            #[expect(clippy::cast_precision_loss, reason = "as JSON reads such numbers")]
            ResolvedScalar::Uint(u) => Value::Float(u as f64),
            ResolvedScalar::Float(f) if !f.is_finite() => return Err(f),
            ResolvedScalar::Float(f) => {
                // Encoded as JSON, a whole float is an integer.
                let mut text = Vec::new();
                go::write_float_json(&mut text, f);
                let whole = std::str::from_utf8(&text).ok().and_then(|t| t.parse().ok());
                whole.map_or(Value::Float(f), Value::Int)
            }
            ResolvedScalar::String(s) => Value::String(s),
        })
    }
}

/// Resolves a scalar. If it is implicit and has no tag, its text decides.
pub(super) fn resolve(text: &str, tag: Option<&str>, implicit: bool) -> Result<ResolvedScalar, Problem> {
    let short = match tag {
        None if implicit => return Ok(by_text(text)),
        None => return Ok(ResolvedScalar::String(text.into())),
        Some(tag) => tag.strip_prefix(TAG_PREFIX).unwrap_or_default(),
    };
    let found = match short {
        "str" => return Ok(ResolvedScalar::String(text.into())),
        "binary" => return binary(text),
        "bool" | "int" | "float" | "null" => by_text(text),
        "timestamp" if is_timestamp(text) => return Ok(ResolvedScalar::String(text.into())),
        "timestamp" => by_text(text),
        // Unknown tags leave the text unchanged.
        _ => return Ok(ResolvedScalar::String(text.into())),
    };
    let name = match &found {
        ResolvedScalar::Null => "null",
        ResolvedScalar::Bool(_) => "bool",
        ResolvedScalar::Int(_) | ResolvedScalar::Uint(_) => "int",
        ResolvedScalar::Float(_) => "float",
        ResolvedScalar::String(_) => "str",
    };
    match (short, found) {
        (_, found) if name == short => Ok(found),
        #[expect(clippy::cast_precision_loss, reason = "the text asks for a float")]
        ("float", ResolvedScalar::Int(i)) => Ok(ResolvedScalar::Float(i as f64)),
        _ => Err(Problem::plain(format!(
            "cannot decode !!{name} `{text}` as a !!{short}"
        ))),
    }
}

fn by_text(text: &str) -> ResolvedScalar {
    non_string(text).unwrap_or_else(|| ResolvedScalar::String(text.into()))
}

/// Resolves a plain text that is not a string; `None` for strings.
pub(super) fn non_string(text: &str) -> Option<ResolvedScalar> {
    // go-yaml decides by the first byte what a text may be; with any other byte it is a string.
    match text.as_bytes().first() {
        None => Some(ResolvedScalar::Null),
        Some(b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~') => word(text),
        Some(b'.') => special_float(text).or_else(|| finite(text)),
        Some(b'+' | b'-' | b'0'..=b'9') => special_float(text).or_else(|| number(text)),
        _ => None,
    }
}

fn word(text: &str) -> Option<ResolvedScalar> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            ResolvedScalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            ResolvedScalar::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => ResolvedScalar::Null,
        _ => return None,
    })
}

fn special_float(text: &str) -> Option<ResolvedScalar> {
    Some(ResolvedScalar::Float(match text {
        ".nan" | ".NaN" | ".NAN" => f64::NAN,
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => f64::INFINITY,
        "-.inf" | "-.Inf" | "-.INF" => f64::NEG_INFINITY,
        _ => return None,
    }))
}

/// Parses a decimal float that is in range.
fn finite(text: &str) -> Option<ResolvedScalar> {
    text.parse::<f64>()
        .ok()
        .filter(|f| f.is_finite())
        .map(ResolvedScalar::Float)
}

fn number(text: &str) -> Option<ResolvedScalar> {
    let plain = match text.contains('_') {
        // go-yaml ignores underscores, wherever they are in a number.
        true => Cow::Owned(text.replace('_', "")),
        false => Cow::Borrowed(text),
    };
    integer(&plain).or_else(|| is_float(&plain).then(|| finite(&plain)).flatten())
}

/// Parses an integer with a sign, and a base if it begins with 0.
fn integer(text: &str) -> Option<ResolvedScalar> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..)?),
        Some(b'+') => (false, text.get(1..)?),
        _ => (false, text),
    };
    let signed = digits.len() != text.len();
    let (base, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, digits.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, digits.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, digits.get(2..)?),
        // In YAML 1.1 a leading zero means octal.
        [b'0', _, ..] => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    // `from_str_radix` would accept a second sign here.
    if !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, base).ok()?;
    if negative {
        return 0i64.checked_sub_unsigned(magnitude).map(ResolvedScalar::Int);
    }
    match i64::try_from(magnitude) {
        Ok(i) => Some(ResolvedScalar::Int(i)),
        // go-yaml reads these with `strconv.ParseUint`, which accepts no sign.
        Err(_) if !signed => Some(ResolvedScalar::Uint(magnitude)),
        Err(_) => None,
    }
}

/// Returns whether the text is a decimal number: `-1`, `1.`, `.5e+3`.
fn is_float(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((m, e)) => (m, Some(e.strip_prefix(['-', '+']).unwrap_or(e))),
        None => (text, None),
    };
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let mantissa_ok = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && digits(fraction),
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => !mantissa.is_empty() && digits(mantissa),
    };
    mantissa_ok && exponent.is_none_or(|e| !e.is_empty() && digits(e))
}

/// `!!binary`: decodes base64; the bytes become text.
fn binary(text: &str) -> Result<ResolvedScalar, Problem> {
    use base64::Engine as _;
    // Go's base64 decoder ignores line breaks.
    let packed: String = text.chars().filter(|c| !matches!(c, '\n' | '\r')).collect();
    match base64::engine::general_purpose::STANDARD.decode(packed) {
        Ok(bytes) => {
            let mut out = String::new();
            crate::json::push_coerced(&mut out, &bytes);
            Ok(ResolvedScalar::String(out.into()))
        }
        Err(_) => Err(Problem::plain("!!binary value contains invalid base64 data")),
    }
}

/// Returns whether the text is a date, or a date and a time: `2001-1-2`, `2001-12-14t21:59:43.10-05:00`,
/// `2001-12-14 21:59:43`.
pub(super) fn is_timestamp(text: &str) -> bool {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let number = |s: &str, widths: std::ops::RangeInclusive<usize>| {
        (widths.contains(&s.len()) && s.bytes().all(|b| b.is_ascii_digit()))
            .then(|| s.parse::<u32>().ok())
            .flatten()
    };
    let mut parts = date.splitn(3, '-');
    let mut part = |widths| parts.next().and_then(|p| number(p, widths));
    let (Some(year), Some(month), Some(day)) = (part(4..=4), part(1..=2), part(1..=2)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => 0,
    };
    if day == 0 || day > days {
        return false;
    }
    let Some(time) = time else { return true };
    let spaced = text.contains(' ');
    let (clock, zone) = match time.find(['Z', '+', '-']) {
        Some(at) => (time.get(..at).unwrap_or_default(), time.get(at..)),
        None => (time, None),
    };
    // Of go-yaml's formats, the one with a space has no zone and those with `T` require one.
    let zone_ok = match zone {
        None => spaced,
        Some("Z") => !spaced,
        Some(z) => {
            let hm = z.get(1..).and_then(|z| z.split_once(':'));
            let hm = hm.and_then(|(h, m)| Some((number(h, 2..=2)?, number(m, 2..=2)?)));
            !spaced && hm.is_some_and(|(h, m)| h < 24 && m < 60)
        }
    };
    let (clock, fraction_ok) = match clock.split_once('.') {
        Some((clock, f)) => (clock, !f.is_empty() && f.bytes().all(|b| b.is_ascii_digit())),
        None => (clock, true),
    };
    let mut parts = clock.splitn(3, ':');
    let mut part = |max: u32| {
        let found = parts.next().and_then(|p| number(p, 1..=2));
        found.is_some_and(|n| n < max)
    };
    zone_ok && fraction_ok && part(24) && part(60) && part(60)
}
