//! The diagnostic notation of RFC 8949, in which errors quote bodies.

use super::scan::Scanner;
use ciborium_ll::{Header, simple};
use scantling_value::{Value, go};
use std::fmt::Write;

/// Formats a well-formed document.
pub(crate) fn notation(data: &[u8]) -> String {
    let mut out = String::new();
    let written = Scanner::new(data).and_then(|mut scanner| write(&mut scanner, &mut out));
    match written {
        Ok(()) => out,
        // Callers pass documents that were checked before, so this is only a fallback.
        Err(_) => go::hex(data),
    }
}

fn write(scanner: &mut Scanner<'_>, out: &mut String) -> Result<(), String> {
    let ty = scanner.next_type();
    match scanner.head()? {
        Header::Positive(n) => put(out, n),
        Header::Negative(n) => put(out, -1 - i128::from(n)),
        // Floats always have a fraction or an exponent.
        Header::Float(n) if n.fract() == 0.0 && n.abs() < 1e21 => put(out, format_args!("{n:.1}")),
        Header::Float(n) => put(out, Value::Float(n).to_json()),
        Header::Simple(simple::NULL) => put(out, "null"),
        Header::Simple(simple::TRUE) => put(out, "true"),
        Header::Simple(simple::FALSE) => put(out, "false"),
        Header::Simple(simple::UNDEFINED) => put(out, "undefined"),
        Header::Simple(n) => put(out, format_args!("simple({n})")),
        Header::Text(length) => {
            let text = scanner.string(length, ty)?;
            put(
                out,
                quoted(std::str::from_utf8(&text).map_err(|e| e.to_string())?, '"'),
            );
        }
        Header::Bytes(length) => {
            let bytes = scanner.string(length, ty)?;
            match std::str::from_utf8(&bytes) {
                Ok(text) if !text.is_empty() => put(out, quoted(text, '\'')),
                _ => put(out, format_args!("h'{}'", go::hex(&bytes))),
            }
        }
        Header::Array(mut left) => {
            out.push_str(if left.is_none() { "[_ " } else { "[" });
            let mut first = true;
            while scanner.has_more(&mut left) {
                separate(out, &mut first);
                write(scanner, out)?;
            }
            out.push(']');
        }
        Header::Map(mut left) => {
            out.push_str(if left.is_none() { "{_ " } else { "{" });
            let mut first = true;
            while scanner.has_more(&mut left) {
                separate(out, &mut first);
                write(scanner, out)?;
                out.push_str(": ");
                write(scanner, out)?;
            }
            out.push('}');
        }
        Header::Tag(tag) => {
            put(out, format_args!("{tag}("));
            write(scanner, out)?;
            out.push(')');
        }
        Header::Break => {}
    }
    Ok(())
}

fn put(out: &mut String, shown: impl std::fmt::Display) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{shown}");
}

fn separate(out: &mut String, first: &mut bool) {
    if !std::mem::take(first) {
        out.push_str(", ");
    }
}

/// Quotes text; all but ASCII is escaped.
fn quoted(text: &str, quote: char) -> String {
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            ' '..='~' => out.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    put(&mut out, format_args!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push(quote);
    out
}
