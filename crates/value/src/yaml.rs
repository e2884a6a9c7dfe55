//! YAML decoding and encoding as Kubernetes does it: YAML 1.1 scalars, converted to JSON values.
//!
//! The scanner is hand-written. Kubernetes' decoder descends from libyaml, and so do its error messages. Rust
//! ports of libyaml are unsafe or panic on malformed text; the other crates read YAML 1.2, which differs in
//! corner cases.

mod compose;
mod construct;
mod fast_path;
mod locate;
mod resolve;
mod scalar;
mod scan;
mod stream;
mod tag;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use locate::locate;
pub use stream::{StreamDocument, documents};

use crate::{DecodeError, Decoded, Limits, Value};
use scan::Mark;
use std::borrow::Cow;

/// Decodes the first document of a YAML text. The last occurrence of a repeated key wins.
pub fn decode(text: &[u8], limits: Limits) -> Result<Value, DecodeError> {
    decode_strict(text, limits).map(|d| d.value)
}

/// Decodes the first document of a YAML text and lists repeated keys.
pub fn decode_strict(text: &[u8], limits: Limits) -> Result<Decoded, DecodeError> {
    let text = readable(text)?;
    if let Some(value) = fast_path::read(&text, limits, &mut construct::ValueBuilder::default()) {
        return Ok(Decoded {
            value,
            duplicates: Vec::new(),
        });
    }
    decode_scanned(&text, limits)
}

/// Decodes the first YAML document of a text with the scanner, which reads all of YAML.
fn decode_scanned(text: &str, limits: Limits) -> Result<Decoded, DecodeError> {
    let problem = |p: Problem| p.into_error(text);
    let Some(document) = compose::compose(text, limits).map_err(problem)? else {
        return Ok(Decoded {
            value: Value::Null,
            duplicates: Vec::new(),
        });
    };
    let (value, duplicates) = construct::construct(&document, limits).map_err(problem)?;
    Ok(Decoded { value, duplicates })
}

/// Encodes a document as kube-apiserver does.
pub fn encode(value: &Value) -> String {
    write::write(value)
}

/// Checks that a text consists of characters that YAML allows.
fn readable(bytes: &[u8]) -> Result<Cow<'_, str>, DecodeError> {
    let fail = |problem: &str, offset| Err(DecodeError::new(format!("yaml: {problem}"), Some(offset)));
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => Cow::Owned(utf16(rest, u16::from_le_bytes)?),
        [0xfe, 0xff, rest @ ..] => Cow::Owned(utf16(rest, u16::from_be_bytes)?),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(e) => {
                let at = e.valid_up_to();
                let rest = bytes.get(at..).unwrap_or_default();
                return fail(utf8_problem(rest), at);
            }
        },
    };
    let is_plain = |b: &u8| matches!(b, b'\t' | b'\n' | b'\r' | b' '..=b'~');
    if text.as_bytes().iter().all(is_plain) {
        return Ok(text);
    }
    let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..);
    match text.char_indices().find(|(_, c)| !allowed(*c)) {
        Some((at, _)) => fail("control characters are not allowed", at),
        None => Ok(text),
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, DecodeError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| unit(*pair));
    match char::decode_utf16(units).collect::<Result<String, _>>() {
        Ok(text) if rest.is_empty() => Ok(text),
        Ok(_) => Err(DecodeError::new("yaml: incomplete UTF-16 character", None)),
        Err(_) => Err(DecodeError::new("yaml: unexpected low surrogate area", None)),
    }
}

/// Explains why bytes do not begin with a UTF-8 character.
fn utf8_problem(bytes: &[u8]) -> &'static str {
    let width = match bytes.first() {
        Some(0xc0..0xe0) => 2,
        Some(0xe0..0xf0) => 3,
        Some(0xf0..0xf8) => 4,
        _ => return "invalid leading UTF-8 octet",
    };
    let Some(sequence) = bytes.get(..width) else {
        return "incomplete UTF-8 octet sequence";
    };
    if sequence.iter().skip(1).any(|b| b & 0xc0 != 0x80) {
        return "invalid trailing UTF-8 octet";
    }
    match sequence {
        [0xc0 | 0xc1, ..] | [0xe0, ..0xa0, ..] | [0xf0, ..0x90, ..] => "invalid length of a UTF-8 sequence",
        _ => "invalid Unicode character",
    }
}

/// An error and its position. Boxed, so that results are one word: composing and constructing recurse.
#[derive(Debug)]
struct Problem(Box<ProblemRepr>);

#[derive(Debug)]
struct ProblemRepr {
    source: ProblemOrigin,
    text: Cow<'static, str>,
    at: Mark,
    context: Mark,
}

/// The stage that found a problem. Decides how the message begins and how lines are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProblemOrigin {
    Scanner,
    Parser,
    /// The text has no position.
    Decoder,
    /// The document is valid YAML that JSON cannot represent.
    Json,
}

impl Problem {
    #[cold]
    fn new(source: ProblemOrigin, text: Cow<'static, str>, at: Mark, context: Mark) -> Self {
        Problem(Box::new(ProblemRepr {
            source,
            text,
            at,
            context,
        }))
    }

    fn scanner(text: impl Into<Cow<'static, str>>, at: Mark, context: Mark) -> Self {
        Problem::new(ProblemOrigin::Scanner, text.into(), at, context)
    }

    fn parser(text: impl Into<Cow<'static, str>>, at: Mark, context: Mark) -> Self {
        Problem::new(ProblemOrigin::Parser, text.into(), at, context)
    }

    fn plain(text: impl Into<Cow<'static, str>>) -> Self {
        Problem::new(
            ProblemOrigin::Decoder,
            text.into(),
            Mark::default(),
            Mark::default(),
        )
    }

    fn json(text: impl Into<Cow<'static, str>>) -> Self {
        Problem::new(ProblemOrigin::Json, text.into(), Mark::default(), Mark::default())
    }

    /// Converts the problem to kube-apiserver's message. It counts lines from one if the scanner found the
    /// problem and from zero if the parser did, and names no line if that is zero.
    fn into_error(self, text: &str) -> DecodeError {
        let ProblemRepr {
            source,
            text: problem,
            at,
            context,
        } = *self.0;
        let line = match (at.line, source) {
            (0, _) => context.line,
            (line, ProblemOrigin::Scanner) => line + 1,
            (line, _) => line,
        };
        let message = match (source, line) {
            (ProblemOrigin::Json, _) => problem.into_owned(),
            (_, 0) => format!("yaml: {problem}"),
            _ => format!("yaml: line {line}: {problem}"),
        };
        let offset = match source {
            ProblemOrigin::Scanner | ProblemOrigin::Parser => text
                .char_indices()
                .nth(at.index)
                .map_or(text.len(), |(o, _)| o)
                .into(),
            ProblemOrigin::Decoder | ProblemOrigin::Json => None,
        };
        DecodeError::new(message, offset)
    }
}
