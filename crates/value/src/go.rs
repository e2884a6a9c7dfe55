//! Text in the formats of the Go standard library. kube-apiserver writes its messages and documents with it,
//! and clients compare them byte for byte.

use crate::{Map, Value};
use std::fmt::Write as _;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// Parses a decimal integer; the error is that of a function of Go's `strconv`: `Atoi`, `ParseInt` or `ParseUint`.
pub fn parse_integer<T: FromStr<Err = ParseIntError>>(function: &str, text: &str) -> Result<T, String> {
    // Rust accepts a plus sign for every type.
    let is_signed = function != "ParseUint";
    let text_of_type = if is_signed || !text.starts_with('+') {
        text
    } else {
        ""
    };
    text_of_type.parse().map_err(|e: ParseIntError| {
        let why = match e.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.{function}: parsing {}: {why}", quote(text))
    })
}

/// Quotes a string with Go's escapes, as `%q` does.
pub fn quote(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    write_quoted(&mut out, s);
    out
}

/// Appends a string quoted with Go's escapes, as `%q` does.
pub fn write_quoted(out: &mut String, s: &str) {
    out.push('"');
    for c in s.chars() {
        write_escaped(out, c, '"');
    }
    out.push('"');
}

/// Quotes a byte as a character, as JSON syntax errors show it. Bytes over 127 are read as Latin-1.
pub(crate) fn quote_byte(b: u8) -> String {
    let mut out = String::from("'");
    match b {
        // `encoding/json` does not escape a double quote here.
        b'"' => out.push('"'),
        _ => write_escaped(&mut out, char::from(b), '\''),
    }
    out.push('\'');
    out
}

fn write_escaped(out: &mut String, c: char, quote: char) {
    let escape = match c {
        '\x07' => "\\a",
        '\x08' => "\\b",
        '\x0c' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\x0b' => "\\v",
        '\\' => "\\\\",
        _ if c == quote => {
            out.push('\\');
            out.push(c);
            return;
        }
        _ if is_print(c) => {
            out.push(c);
            return;
        }
        _ => {
            // Writing to a string cannot fail.
            let _ = match u32::from(c) {
                n @ (..0x20 | 0x7f) => write!(out, "\\x{n:02x}"),
                n @ ..0x1_0000 => write!(out, "\\u{n:04x}"),
                n => write!(out, "\\U{n:08x}"),
            };
            return;
        }
    };
    out.push_str(escape);
}

/// Returns whether Go prints a character unescaped: letters, marks, numbers, punctuation, symbols and the
/// plain space.
pub fn is_print(c: char) -> bool {
    if c.is_ascii() {
        return matches!(c, ' '..='~');
    }
    matches!(
        c.general_category_group(),
        GeneralCategoryGroup::Letter
            | GeneralCategoryGroup::Mark
            | GeneralCategoryGroup::Number
            | GeneralCategoryGroup::Punctuation
            | GeneralCategoryGroup::Symbol
    )
}

/// Formats a number as `%v` does: shortest digits, with an exponent outside 1e-4..1e6.
pub fn float_v(f: f64) -> String {
    if !f.is_finite() {
        return non_finite(f).into();
    }
    let exponent = decimal_exponent(f);
    if f == 0.0 || (-4..6).contains(&exponent) {
        plain(f)
    } else {
        with_exponent(f, 2)
    }
}

/// Formats a document as `%v` does: `map[a:1 b:[x y]]`, strings bare.
pub fn value_v(value: &Value) -> String {
    let mut out = String::new();
    write_v(&mut out, value);
    out
}

fn write_v(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::String(s) => out.push_str(s),
        Value::Float(f) => out.push_str(&float_v(*f)),
        Value::Array(items) => write_list(out, items, BARE, write_v),
        Value::Object(map) => write_map(out, map, BARE_MAP, write_bare, write_v),
        Value::Bool(_) | Value::Int(_) => out.push_str(&value.to_json()),
    }
}

/// Formats a document as `%s` does: like `%v`, but values that are not strings get Go's `%!s(int=1)` marker.
pub fn value_s(value: &Value) -> String {
    let mut out = String::new();
    write_s(&mut out, value);
    out
}

fn write_s(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("%!s(<nil>)"),
        Value::String(s) => out.push_str(s),
        Value::Array(items) => write_list(out, items, BARE, write_s),
        Value::Object(map) => write_map(out, map, BARE_MAP, write_bare, write_s),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
            let (ty, display) = (value_type(value), value_v(value));
            // Writing to a string cannot fail.
            let _ = write!(out, "%!s({ty}={display})");
        }
    }
}

/// Formats a document as `%#v` does: `map[string]interface {}{"a":1, "b":[]interface {}{"x"}}`.
pub fn value_syntax(value: &Value) -> String {
    let mut out = String::new();
    write_syntax(&mut out, value, "map[string]interface {}{");
    out
}

/// Like [`value_syntax`], for a document read from YAML, whose keys may have any type.
pub(crate) fn value_syntax_of_yaml(value: &Value) -> String {
    let mut out = String::new();
    write_syntax(&mut out, value, "map[interface {}]interface {}{");
    out
}

fn write_syntax(out: &mut String, value: &Value, map_type: &'static str) {
    let syntax = |opening| ListDelimiters {
        opening,
        closing: "}",
        separator: ", ",
    };
    let nested = |out: &mut String, value: &Value| write_syntax(out, value, map_type);
    match value {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::String(s) => write_quoted(out, s),
        Value::Float(f) => out.push_str(&float_v(*f)),
        Value::Array(items) => write_list(out, items, syntax("[]interface {}{"), nested),
        Value::Object(map) => write_map(out, map, syntax(map_type), write_quoted, nested),
        Value::Bool(_) | Value::Int(_) => out.push_str(&value.to_json()),
    }
}

/// The delimiters of lists and maps.
#[derive(Clone, Copy)]
struct ListDelimiters {
    opening: &'static str,
    closing: &'static str,
    separator: &'static str,
}

const BARE: ListDelimiters = ListDelimiters {
    opening: "[",
    closing: "]",
    separator: " ",
};

const BARE_MAP: ListDelimiters = ListDelimiters {
    opening: "map[",
    ..BARE
};

fn write_bare(out: &mut String, key: &str) {
    out.push_str(key);
}

fn write_list(
    out: &mut String,
    items: &[Value],
    brackets: ListDelimiters,
    write: impl Fn(&mut String, &Value),
) {
    out.push_str(brackets.opening);
    for (i, item) in items.iter().enumerate() {
        out.push_str(if i > 0 { brackets.separator } else { "" });
        write(out, item);
    }
    out.push_str(brackets.closing);
}

fn write_map(
    out: &mut String,
    map: &Map,
    brackets: ListDelimiters,
    write_key: impl Fn(&mut String, &str),
    write: impl Fn(&mut String, &Value),
) {
    out.push_str(brackets.opening);
    for (i, (key, value)) in map.iter().enumerate() {
        out.push_str(if i > 0 { brackets.separator } else { "" });
        write_key(out, key);
        out.push(':');
        write(out, value);
    }
    out.push_str(brackets.closing);
}

/// The name of a value's type in the errors of Go's JSON decoder.
pub fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Formats bytes in hexadecimal, as `%x` does.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        // Writing to a string cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// The name of a document's Go type, as `%T` prints it.
pub fn value_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// Formats a 32-bit float as `strconv.FormatFloat` does with format `g`.
pub(crate) fn float32_g(f: f32) -> String {
    let text = format!("{f:e}");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    match exponent.parse::<i32>() {
        Ok(e) if f != 0.0 && !(-4..6).contains(&e) => {
            let sign = if e < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", e.unsigned_abs())
        }
        _ => format!("{f}"),
    }
}

/// Writes a number as `encoding/json` does: shortest digits, with an exponent outside 1e-6..1e21.
///
/// A document cannot hold infinities or NaN, because no decoder produces them; they would be written as
/// `null`.
pub fn write_float_json(out: &mut Vec<u8>, f: f64) {
    let text = if !f.is_finite() {
        "null".into()
    } else if f == 0.0 || (1e-6..1e21).contains(&f.abs()) {
        plain(f)
    } else {
        with_exponent(f, 1)
    };
    out.extend_from_slice(text.as_bytes());
}

/// Converts a float to an integer by truncation. Out-of-range values give what an x86 processor gives.
pub fn cut(number: f64) -> i64 {
    const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
    if !(-TWO_TO_63..TWO_TO_63).contains(&number) {
        return i64::MIN;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
    let cut = number as i64;
    cut
}

fn non_finite(f: f64) -> &'static str {
    if f.is_nan() {
        "NaN"
    } else if f > 0.0 {
        "+Inf"
    } else {
        "-Inf"
    }
}

/// The decimal exponent of a finite number in scientific notation.
fn decimal_exponent(f: f64) -> i32 {
    let text = format!("{f:e}");
    text.split_once('e')
        .and_then(|(_, e)| e.parse().ok())
        .unwrap_or(0)
}

/// From this number of digits on, two shortest representations can be equally near.
const TIE_DIGITS: usize = 16;

/// Scientific notation with the shortest digits that identify the number. Of two equally near candidates,
/// Rust takes the upper one and Go the even one; this function returns Go's.
fn scientific(f: f64) -> String {
    let text = format!("{f:e}");
    let n_digits = text
        .bytes()
        .take_while(|b| *b != b'e')
        .filter(u8::is_ascii_digit)
        .count();
    if n_digits < TIE_DIGITS {
        return text;
    }
    // With an explicit precision, Rust rounds to even.
    let even = format!("{f:.0$e}", n_digits - 1);
    if even.parse() == Ok(f) { even } else { text }
}

/// Decimal notation with the digits of [`scientific`].
fn plain(f: f64) -> String {
    let text = format!("{f}");
    let n_digits = text.bytes().filter(u8::is_ascii_digit).count();
    let Some((_, fraction)) = text.split_once('.').filter(|_| n_digits >= TIE_DIGITS) else {
        return text;
    };
    let even = format!("{f:.0$}", fraction.len());
    if even.parse() == Ok(f) { even } else { text }
}

/// Scientific notation with a signed exponent of at least `digits` digits.
fn with_exponent(f: f64, digits: usize) -> String {
    let text = scientific(f);
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let (sign, magnitude) = match exponent.strip_prefix('-') {
        Some(m) => ('-', m),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{magnitude:0>digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    // The expected values were printed by the Go standard library.
    #[test]
    fn floats() {
        let json = |f| {
            let mut out = Vec::new();
            write_float_json(&mut out, f);
            String::from_utf8(out).unwrap()
        };
        for (f, v, j) in [
            (1.0, "1", "1"),
            (100_000.0, "100000", "100000"),
            (999_999.0, "999999", "999999"),
            (1e6, "1e+06", "1000000"),
            (123_456_789.0, "1.23456789e+08", "123456789"),
            (12_345_678.9, "1.23456789e+07", "12345678.9"),
            (1e20, "1e+20", "100000000000000000000"),
            (1e21, "1e+21", "1e+21"),
            (1.25e300, "1.25e+300", "1.25e+300"),
            (f64::MAX, "1.7976931348623157e+308", "1.7976931348623157e+308"),
            (0.0001, "0.0001", "0.0001"),
            (0.000_012_345, "1.2345e-05", "0.000012345"),
            (1e-6, "1e-06", "0.000001"),
            (1.5e-7, "1.5e-07", "1.5e-7"),
            (5e-324, "5e-324", "5e-324"),
            (1.0 / 3.0, "0.3333333333333333", "0.3333333333333333"),
            (-0.0, "-0", "-0"),
            (
                1_092_901_817_325_998.2,
                "1.0929018173259982e+15",
                "1092901817325998.2",
            ),
            (0.000_030_517_578_125, "3.0517578125e-05", "0.000030517578125"),
        ] {
            assert_eq!((float_v(f).as_str(), json(f).as_str()), (v, j));
        }
    }

    #[test]
    fn quotes() {
        for (s, q) in [
            ("plain", r#""plain""#),
            ("a\"b'c\\", r#""a\"b'c\\""#),
            (
                "\0\x07\x08\x0b\x0c\n\r\t\x1f\x7f",
                r#""\x00\a\b\v\f\n\r\t\x1f\x7f""#,
            ),
            (
                "\u{80}\u{a0}\u{ad}\u{2028}\u{200b}\u{feff}\u{3000}\u{e000}",
                r#""\u0080\u00a0\u00ad\u2028\u200b\ufeff\u3000\ue000""#,
            ),
            ("é\u{fffd}\u{1f600}\u{300}", "\"é\u{fffd}\u{1f600}\u{300}\""),
            ("\u{e0001}", r#""\U000e0001""#),
        ] {
            assert_eq!(quote(s), q);
        }
        for (b, q) in [
            (b'}', "'}'"),
            (b'"', "'\"'"),
            (b'\'', r"'\''"),
            (b'\\', r"'\\'"),
            (b'\n', r"'\n'"),
            (0, r"'\x00'"),
            (0xc3, "'Ã'"),
            (0xff, "'ÿ'"),
        ] {
            assert_eq!(quote_byte(b), q);
        }
    }
}
