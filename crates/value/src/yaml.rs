//! YAML text, read as Kubernetes reads it: YAML 1.1 scalars, and JSON for what the document means.
//!
//! The scanner is our own. Kubernetes' decoder descends from libyaml, and so do its error texts; the crates that
//! descend from it, too, are either unsafe or panic on malformed text, and the others read YAML 1.2, which is another
//! language in its corners.

mod compose;
mod construct;
mod locate;
mod resolve;
mod scalar;
mod scan;
mod stream;
mod tag;
mod write;

pub(crate) use locate::locate;
pub use stream::{StreamDocument, documents};

use crate::{DecodeError, Decoded, Limits, Value};
use scan::Mark;
use std::borrow::Cow;

/// Decodes the first YAML document of a text. Of keys that stand twice the last one counts.
pub fn decode(text: &[u8], limits: Limits) -> Result<Value, DecodeError> {
    decode_strict(text, limits).map(|d| d.value)
}

/// Decodes the first YAML document of a text and lists the keys that stand twice.
pub fn decode_strict(text: &[u8], limits: Limits) -> Result<Decoded, DecodeError> {
    let text = readable(text)?;
    let problem = |p: Problem| p.into_error(&text);
    let Some(document) = compose::compose(&text, limits).map_err(problem)? else {
        return Ok(Decoded {
            value: Value::Null,
            duplicates: Vec::new(),
        });
    };
    let (value, duplicates) = construct::construct(&document, limits).map_err(problem)?;
    Ok(Decoded { value, duplicates })
}

/// Writes a document as a Kubernetes API server does.
pub fn encode(value: &Value) -> String {
    write::write(value)
}

/// The duplicates of a YAML document as one text, as a server's strict decoder words them.
pub fn strict_error(duplicates: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", duplicates.join("\n  "))
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

/// Why bytes do not begin with a character.
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

/// What is wrong with a text, and where. It is one word, so that results are small: composing and constructing
/// recurse.
#[derive(Debug)]
struct Problem(Box<ProblemRepr>);

#[derive(Debug)]
struct ProblemRepr {
    source: ProblemOrigin,
    text: Cow<'static, str>,
    at: Mark,
    context: Mark,
}

/// Who found a problem: it decides how the text begins and how lines are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProblemOrigin {
    Scanner,
    Parser,
    /// The text has no place.
    Decoder,
    /// The document is YAML, but what it means is no JSON.
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

    /// The error in a server's words. It counts lines from one where the scanner found the problem, from zero
    /// where the parser did, and names no line if that is zero.
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
