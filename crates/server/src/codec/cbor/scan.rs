//! Heads and strings of CBOR, and the check that bytes are well-formed.

use ciborium_ll::{Decoder, Header};
use scantling_value::Limits;
use std::borrow::Cow;

/// The byte that ends an item of indefinite length.
const BREAK: u8 = 0xff;

/// The last five bits of a head of indefinite length.
const WITHOUT_LENGTH: u8 = 31;

/// The head of a simple value that follows in its own byte.
const LONG_SIMPLE: u8 = 0xf8;

const CUT_OFF: &str = "unexpected EOF";

/// The unread rest of a document.
#[derive(Clone)]
pub(super) struct Scanner<'d> {
    rest: &'d [u8],
}

impl<'d> Scanner<'d> {
    /// Checks that a document is well-formed, so that its heads and strings can be read.
    pub(super) fn new(data: &'d [u8]) -> Result<Scanner<'d>, String> {
        if data.is_empty() {
            return Err("EOF".to_owned());
        }
        let mut all = Scanner::of_sequence(data);
        all.skip(0)?;
        match all.left() {
            0 => Ok(Scanner { rest: data }),
            more => Err(format!(
                "cbor: {more} bytes of extraneous data starting at index {}",
                data.len() - more
            )),
        }
    }

    /// A sequence of items, not checked.
    pub(super) fn of_sequence(data: &'d [u8]) -> Scanner<'d> {
        Scanner { rest: data }
    }

    /// The number of unread bytes.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// The type of the next item, as errors name it.
    pub(super) fn next_type(&self) -> &'static str {
        self.rest.first().map_or("", |byte| type_name(*byte))
    }

    /// The next head.
    pub(super) fn head(&mut self) -> Result<Header, String> {
        // An empty rest fails in the decoder below; the byte serves only error texts.
        let first = self.rest.first().copied().unwrap_or_default();
        // RFC 8949 requires such values in the head itself.
        if let [LONG_SIMPLE, value @ ..=31, ..] = self.rest {
            let ty = type_name(first);
            return Err(format!("cbor: invalid simple value {value} for type {ty}"));
        }
        let mut decoder = Decoder::from(self.rest);
        let head = decoder.pull().map_err(|e| match e {
            ciborium_ll::Error::Io(_) => CUT_OFF.to_owned(),
            ciborium_ll::Error::Syntax(_) => format!(
                "cbor: invalid additional information {} for type {}",
                first & WITHOUT_LENGTH,
                type_name(first)
            ),
        })?;
        self.rest = self.rest.get(decoder.offset()..).unwrap_or_default();
        Ok(head)
    }

    /// Counts the next of the items that a head announced; returns whether there is one.
    pub(super) fn has_more(&mut self, left: &mut Option<usize>) -> bool {
        match left {
            Some(0) => false,
            Some(n) => {
                *n -= 1;
                true
            }
            None => match self.rest.strip_prefix(&[BREAK]) {
                Some(rest) => {
                    self.rest = rest;
                    false
                }
                None => true,
            },
        }
    }

    /// The bytes of a string after its head: one piece, or several of the same type.
    pub(super) fn string(&mut self, length: Option<usize>, ty: &str) -> Result<Cow<'d, [u8]>, String> {
        if let Some(length) = length {
            let (string, rest) = self.rest.split_at_checked(length).ok_or(CUT_OFF)?;
            self.rest = rest;
            return Ok(string.into());
        }
        let mut whole = Vec::new();
        while self.has_more(&mut None) {
            let first = self.rest.first().ok_or(CUT_OFF)?;
            let next = type_name(*first);
            if next != ty {
                return Err(format!(
                    "cbor: wrong element type {next} for indefinite-length {ty}"
                ));
            }
            let (Header::Bytes(Some(length)) | Header::Text(Some(length))) = self.head()? else {
                return Err(format!(
                    "cbor: indefinite-length {ty} chunk is not definite-length"
                ));
            };
            whole.extend_from_slice(&self.string(Some(length), ty)?);
        }
        Ok(whole.into())
    }

    /// Skips the next item.
    pub(super) fn skip(&mut self, depth: usize) -> Result<(), String> {
        // The stack of request threads has room for this depth.
        let most = Limits::SERVER.depth;
        let unacceptable = |ty: &str, what: &str| {
            Err(format!(
                "cbor: data item of cbor type {ty} is not accepted by protocol: {what}"
            ))
        };
        let ty = self.next_type();
        let head = self.head()?;
        if matches!(head, Header::Array(_) | Header::Map(_) | Header::Tag(_)) && depth >= most {
            return Err(format!("cbor: exceeded max nested level {most}"));
        }
        match head {
            Header::Positive(_) | Header::Negative(_) | Header::Simple(_) => Ok(()),
            Header::Float(n) if n.is_nan() => unacceptable(ty, "floating-point NaN"),
            Header::Float(n) if n.is_infinite() => unacceptable(ty, "floating-point infinity"),
            Header::Float(_) => Ok(()),
            Header::Bytes(length) | Header::Text(length) => self.string(length, ty).map(drop),
            Header::Array(mut left) => {
                while self.has_more(&mut left) {
                    self.skip(depth + 1)?;
                }
                Ok(())
            }
            Header::Map(mut left) => {
                while self.has_more(&mut left) {
                    self.skip(depth + 1)?;
                    self.skip(depth + 1)?;
                }
                Ok(())
            }
            Header::Tag(_) if self.rest.is_empty() => Err(CUT_OFF.to_owned()),
            // kube-apiserver has no type for such numbers.
            Header::Tag(2 | 3) => unacceptable(ty, "bignum"),
            Header::Tag(_) => self.skip(depth + 1),
            // The end of an item of indefinite length is consumed by `has_more`.
            Header::Break => Err("cbor: unexpected \"break\" code".to_owned()),
        }
    }
}

/// The name of the type of a head.
fn type_name(first: u8) -> &'static str {
    match first >> 5 {
        0 => "positive integer",
        1 => "negative integer",
        2 => "byte string",
        3 => "UTF-8 text string",
        4 => "array",
        5 => "map",
        6 => "tag",
        _ => "primitives",
    }
}
