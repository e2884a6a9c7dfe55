//! The values of literals.

use crate::ast::Literal;
use std::borrow::Cow;

/// The error message of an invalid literal.
pub(crate) type LiteralError = &'static str;

const INVALID_INT: LiteralError = "invalid int literal";
const INVALID_UINT: LiteralError = "invalid uint literal";
const INVALID_DOUBLE: LiteralError = "invalid double literal";
const CANNOT_UNESCAPE: LiteralError = "unable to unescape string";
const CANNOT_UNESCAPE_OCTAL: LiteralError = "unable to unescape octal sequence in string";
const INVALID_CODE_POINT: LiteralError = "invalid unicode code point";

/// The sign of a number, which is a token of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    None,
    Minus,
}

/// The value of an integer.
pub(crate) fn int(sign: Sign, text: &str) -> Result<Literal, LiteralError> {
    // Parsed without its sign, because the magnitude of the smallest integer does not fit an `int`.
    let magnitude = magnitude(text).ok_or(INVALID_INT)?;
    let value = match sign {
        Sign::None => i64::try_from(magnitude).ok(),
        Sign::Minus => 0_i64.checked_sub_unsigned(magnitude),
    };
    value.map(Literal::Int).ok_or(INVALID_INT)
}

/// The value of an unsigned integer with its suffix.
pub(crate) fn uint(text: &str) -> Result<Literal, LiteralError> {
    let digits = text.strip_suffix(['u', 'U']).unwrap_or(text);
    magnitude(digits).map(Literal::Uint).ok_or(INVALID_UINT)
}

fn magnitude(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The value of a floating-point number.
pub(crate) fn double(sign: Sign, text: &str) -> Result<Literal, LiteralError> {
    let value: f64 = text.parse().map_err(|_| INVALID_DOUBLE)?;
    match sign {
        // Go's `ParseFloat` reports numbers out of range; Rust's parser returns infinity.
        _ if value.is_infinite() => Err(INVALID_DOUBLE),
        Sign::None => Ok(Literal::Double(value)),
        Sign::Minus => Ok(Literal::Double(-value)),
    }
}

/// The value of a string with its quotes and prefix.
pub(crate) fn string(text: &str) -> Result<Literal, LiteralError> {
    let body = QuotedText::parse(text)?;
    if !body.has_escapes() {
        return Ok(Literal::String(body.text.as_ref().into()));
    }
    let mut value = String::with_capacity(body.text.len());
    body.unescape(|piece| {
        match piece {
            EscapeUnit::Char(c) => value.push(c),
            // In a string, `\x7f` denotes a code point.
            EscapeUnit::Byte(b) => value.push(char::from(b)),
            EscapeUnit::CodePoint(c) => value.push(char::from_u32(c).ok_or(INVALID_CODE_POINT)?),
        }
        Ok(())
    })?;
    Ok(Literal::String(value.into()))
}

/// The value of a byte string with its quotes and prefixes.
pub(crate) fn bytes(text: &str) -> Result<Literal, LiteralError> {
    // The grammar has the prefix `b` before `r`, so the rest is a string literal.
    let body = QuotedText::parse(text.strip_prefix(['b', 'B']).unwrap_or(text))?;
    if !body.has_escapes() {
        return Ok(Literal::Bytes(body.text.as_bytes().into()));
    }
    let mut value = Vec::with_capacity(body.text.len());
    body.unescape(|piece| {
        match piece {
            EscapeUnit::Char(c) => value.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            EscapeUnit::Byte(b) => value.push(b),
            // Code points have no meaning in bytes; cel-go accepts `\x` and octal escapes only.
            EscapeUnit::CodePoint(_) => return Err(CANNOT_UNESCAPE),
        }
        Ok(())
    })?;
    Ok(Literal::Bytes(value.into()))
}

/// The text between the quotes.
struct QuotedText<'s> {
    text: Cow<'s, str>,
    raw: bool,
}

/// A character or escape sequence.
enum EscapeUnit {
    Char(char),
    /// `\x7f`, `\177`
    Byte(u8),
    /// `\u007f`, `\U0000007f`
    CodePoint(u32),
}

impl<'s> QuotedText<'s> {
    fn parse(text: &'s str) -> Result<Self, LiteralError> {
        let (raw, quoted) = match text.strip_prefix(['r', 'R']) {
            Some(quoted) => (true, quoted),
            None => (false, text),
        };
        // Long quotes first, because a long string also begins with a short quote.
        let inner = ["\"\"\"", "'''", "\"", "'"]
            .iter()
            .find_map(|quote| quoted.strip_prefix(quote)?.strip_suffix(quote))
            .ok_or(CANNOT_UNESCAPE)?;
        // All line endings are normalized to a line feed.
        let text = if inner.contains('\r') {
            Cow::Owned(inner.replace("\r\n", "\n").replace('\r', "\n"))
        } else {
            Cow::Borrowed(inner)
        };
        Ok(QuotedText { text, raw })
    }

    fn has_escapes(&self) -> bool {
        !self.raw && self.text.contains('\\')
    }

    fn unescape(
        &self,
        mut put: impl FnMut(EscapeUnit) -> Result<(), LiteralError>,
    ) -> Result<(), LiteralError> {
        let mut rest = self.text.chars();
        while let Some(c) = rest.next() {
            let piece = if c == '\\' {
                escape(&mut rest)?
            } else {
                EscapeUnit::Char(c)
            };
            put(piece)?;
        }
        Ok(())
    }
}

/// Parses an escape sequence behind its backslash.
fn escape(rest: &mut std::str::Chars<'_>) -> Result<EscapeUnit, LiteralError> {
    Ok(match rest.next().ok_or(CANNOT_UNESCAPE)? {
        'a' => EscapeUnit::Char('\u{7}'),
        'b' => EscapeUnit::Char('\u{8}'),
        'f' => EscapeUnit::Char('\u{c}'),
        'n' => EscapeUnit::Char('\n'),
        'r' => EscapeUnit::Char('\r'),
        't' => EscapeUnit::Char('\t'),
        'v' => EscapeUnit::Char('\u{b}'),
        c @ ('\\' | '\'' | '"' | '`' | '?') => EscapeUnit::Char(c),
        'x' | 'X' => EscapeUnit::Byte(digits(rest, 0, 2, 16).ok_or(CANNOT_UNESCAPE)? as u8),
        'u' => EscapeUnit::CodePoint(digits(rest, 0, 4, 16).ok_or(CANNOT_UNESCAPE)?),
        'U' => EscapeUnit::CodePoint(digits(rest, 0, 8, 16).ok_or(CANNOT_UNESCAPE)?),
        c @ '0'..='3' => {
            let first = c.to_digit(8).unwrap_or(0);
            EscapeUnit::Byte(digits(rest, first, 2, 8).ok_or(CANNOT_UNESCAPE_OCTAL)? as u8)
        }
        _ => return Err(CANNOT_UNESCAPE),
    })
}

/// Parses a number of `first` and the given number of further digits.
fn digits(rest: &mut std::str::Chars<'_>, first: u32, count: usize, radix: u32) -> Option<u32> {
    (0..count).try_fold(first, |value, _| {
        Some(
            value
                // At most eight hexadecimal digits, so the number never wraps.
                .wrapping_mul(radix)
                .wrapping_add(rest.next()?.to_digit(radix)?),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        let ok = |v| Ok(Literal::Int(v));
        assert_eq!(int(Sign::None, "9223372036854775807"), ok(i64::MAX));
        assert_eq!(int(Sign::None, "9223372036854775808"), Err(INVALID_INT));
        assert_eq!(int(Sign::Minus, "9223372036854775808"), ok(i64::MIN));
        assert_eq!(int(Sign::Minus, "0x8000000000000000"), ok(i64::MIN));
        assert_eq!(int(Sign::Minus, "9223372036854775809"), Err(INVALID_INT));
        assert_eq!(int(Sign::None, "007"), ok(7));
        assert_eq!(uint("0xFfu"), Ok(Literal::Uint(255)));
        assert_eq!(uint("18446744073709551616u"), Err(INVALID_UINT));
    }

    #[test]
    fn doubles() {
        assert_eq!(double(Sign::Minus, ".5"), Ok(Literal::Double(-0.5)));
        assert_eq!(double(Sign::None, "1e-400"), Ok(Literal::Double(0.0)));
        assert_eq!(double(Sign::None, "1e400"), Err(INVALID_DOUBLE));
    }

    #[test]
    fn strings() {
        let check = |text: &str, value: Result<&str, LiteralError>| {
            assert_eq!(string(text), value.map(|v| Literal::String(v.into())), "{text}");
        };
        check("''", Ok(""));
        check("''''''", Ok(""));
        check("'''it's'''", Ok("it's"));
        check("\"\"\"a\r\nb\rc\"\"\"", Ok("a\nb\nc"));
        check(r#"r"\n""#, Ok(r"\n"));
        check(
            r#"'\a\b\f\n\r\t\v\\\'\"\`\?'"#,
            Ok("\u{7}\u{8}\u{c}\n\r\t\u{b}\\'\"`?"),
        );
        check(r"'\x41\377\u00e9\U0001F600'", Ok("A\u{ff}é😀"));
        check(r"'\ud800'", Err(INVALID_CODE_POINT));
        check(r"'\U00110000'", Err(INVALID_CODE_POINT));
        check(r"'\UFFFFFFFF'", Err(INVALID_CODE_POINT));
    }

    #[test]
    fn byte_strings() {
        let check = |text: &str, value: Result<&[u8], LiteralError>| {
            assert_eq!(bytes(text), value.map(|v| Literal::Bytes(v.into())), "{text}");
        };
        check(r"b'\xff\377é'", Ok(b"\xff\xff\xc3\xa9"));
        check(r"bR'\xff'", Ok(br"\xff"));
        check(r"b'\u00ff'", Err(CANNOT_UNESCAPE));
        check(r"b'\ud800'", Err(CANNOT_UNESCAPE));
        check(r"b'\U000000ff'", Err(CANNOT_UNESCAPE));
    }
}
