//! The JSON parser: one pass, no recursion, the error messages of Go's `encoding/json`.

use super::swar;
use crate::{DecodeError, Limits, Map, Str, Value, go};

/// The presence of repeated keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DuplicateKeys {
    None,
    Some,
}

/// A syntactically valid document.
pub(super) struct Parsed {
    pub(super) value: Value,
    pub(super) duplicate_keys: DuplicateKeys,
    /// The error about the first number that is out of range. Such numbers are infinity in the value.
    pub(super) out_of_range: Option<DecodeError>,
}

/// Parses a whole document.
pub(super) fn parse(text: &[u8], limits: Limits) -> Result<Parsed, DecodeError> {
    let mut parser = JsonParser {
        cursor: Cursor::new(text),
        limits,
        open: Vec::new(),
        items: Vec::new(),
        members: Vec::new(),
        duplicate_keys: DuplicateKeys::None,
        number_error: None,
    };
    Ok(Parsed {
        value: parser.document()?,
        duplicate_keys: parser.duplicate_keys,
        out_of_range: parser.number_error,
    })
}

impl Parsed {
    /// Fails if a number is out of range. As in kube-apiserver, syntax errors anywhere take precedence.
    pub(super) fn in_range(self) -> Result<(Value, DuplicateKeys), DecodeError> {
        match self.out_of_range {
            Some(e) => Err(e),
            None => Ok((self.value, self.duplicate_keys)),
        }
    }
}

/// A list or object that is still open. Its contents so far are at the end of a shared buffer.
enum OpenContainer {
    Array { start: usize },
    Object { start: usize },
}

// All open containers share two buffers, so a container allocates once, when it closes and its size is known.
// An explicit stack instead of recursion bounds the depth by `limits` and not by the thread's stack.
struct JsonParser<'a> {
    cursor: Cursor<'a>,
    limits: Limits,
    open: Vec<OpenContainer>,
    items: Vec<Value>,
    // The value of the last member of an open object is a placeholder until it has been read.
    members: Vec<(Str, Value)>,
    duplicate_keys: DuplicateKeys,
    number_error: Option<DecodeError>,
}

impl JsonParser<'_> {
    // A loop with a stack of open containers instead of recursion: documents may nest 10 000 levels.
    fn document(&mut self) -> Result<Value, DecodeError> {
        loop {
            let Some(mut value) = self.begin_value()? else {
                continue;
            };
            loop {
                match self.open.last() {
                    None => return self.cursor.end().map(|()| value),
                    Some(&OpenContainer::Array { start }) => {
                        self.items.push(value);
                        match self.cursor.skip_space() {
                            Some(b',') => {
                                self.cursor.advance();
                                break;
                            }
                            Some(b']') => {
                                self.cursor.advance();
                                self.open.pop();
                                value = Value::Array(self.items.split_off(start));
                            }
                            other => return Err(self.cursor.unexpected(other, "after array element")),
                        }
                    }
                    Some(&OpenContainer::Object { start }) => {
                        if let Some((_, slot)) = self.members.last_mut() {
                            // `key` has pushed the member with a placeholder.
                            *slot = value;
                        }
                        match self.cursor.skip_space() {
                            Some(b',') => {
                                self.cursor.advance();
                                self.key()?;
                                break;
                            }
                            Some(b'}') => {
                                self.cursor.advance();
                                self.open.pop();
                                value = Value::Object(self.object(start));
                            }
                            other => {
                                return Err(self.cursor.unexpected(other, "after object key:value pair"));
                            }
                        }
                    }
                }
            }
        }
    }

    /// Reads a scalar or an empty container, or opens a container.
    #[inline]
    fn begin_value(&mut self) -> Result<Option<Value>, DecodeError> {
        Ok(Some(match self.cursor.skip_space() {
            Some(b'"') => {
                self.cursor.advance();
                Value::String(self.cursor.string()?)
            }
            Some(b'{') => {
                // Go checks the depth before the contents, so an empty container can be too deep as well.
                self.check_depth(b'{')?;
                self.cursor.advance();
                if self.cursor.skip_space() == Some(b'}') {
                    self.cursor.advance();
                    Value::Object(Map::new())
                } else {
                    self.open.push(OpenContainer::Object {
                        start: self.members.len(),
                    });
                    self.key()?;
                    return Ok(None);
                }
            }
            Some(b'[') => {
                self.check_depth(b'[')?;
                self.cursor.advance();
                if self.cursor.skip_space() == Some(b']') {
                    self.cursor.advance();
                    Value::Array(Vec::new())
                } else {
                    self.open.push(OpenContainer::Array {
                        start: self.items.len(),
                    });
                    return Ok(None);
                }
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.cursor.literal("true", Value::Bool(true))?,
            Some(b'f') => self.cursor.literal("false", Value::Bool(false))?,
            Some(b'n') => self.cursor.literal("null", Value::Null)?,
            other => return Err(self.cursor.unexpected(other, "looking for beginning of value")),
        }))
    }

    fn check_depth(&self, opening: u8) -> Result<(), DecodeError> {
        if self.open.len() < self.limits.depth {
            Ok(())
        } else {
            Err(self.cursor.unexpected(Some(opening), "exceeded max depth"))
        }
    }

    /// Reads `"key":`.
    #[inline]
    fn key(&mut self) -> Result<(), DecodeError> {
        match self.cursor.skip_space() {
            Some(b'"') => self.cursor.advance(),
            other => {
                return Err(self
                    .cursor
                    .unexpected(other, "looking for beginning of object key string"));
            }
        }
        let key = self.cursor.string()?;
        match self.cursor.skip_space() {
            Some(b':') => self.cursor.advance(),
            other => return Err(self.cursor.unexpected(other, "after object key")),
        }
        self.members.push((key, Value::Null));
        Ok(())
    }

    fn object(&mut self, start: usize) -> Map {
        let members = self.members.split_off(start);
        let count = members.len();
        let map = Map::from_unsorted(members);
        // Sorting drops repeated keys, so a smaller map reveals them without a set of keys.
        if map.len() < count {
            self.duplicate_keys = DuplicateKeys::Some;
        }
        map
    }

    fn number(&mut self) -> Result<Value, DecodeError> {
        let start = self.cursor.at;
        let form = self.cursor.number()?;
        let text = self.cursor.ascii(start);
        // An integer beyond 64 bits becomes a float, as in kube-apiserver's decoder.
        if let NumberForm::Integer = form
            && let Ok(i) = text.parse()
        {
            return Ok(Value::Int(i));
        }
        // Rust parses a number out of range as infinity; Go fails.
        match text.parse::<f64>() {
            Ok(f) if f.is_finite() => Ok(Value::Float(f)),
            _ => {
                if self.number_error.is_none() {
                    let message =
                        format!("json: cannot unmarshal number {text} into Go value of type float64");
                    self.number_error = Some(DecodeError::new(message, Some(start)));
                }
                // Parsing continues, because a syntax error further on takes precedence.
                Ok(Value::Float(f64::INFINITY))
            }
        }
    }
}

/// The notation of a number.
pub(super) enum NumberForm {
    Integer,
    Float,
}

/// A position in the text.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    /// The same text, if all of it is valid UTF-8: the usual case, checked once.
    text: Option<&'a str>,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Cursor {
            bytes,
            text: std::str::from_utf8(bytes).ok(),
            at: 0,
        }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Moves past a string of a valid text.
    pub(super) fn skip_string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            let rest = self.bytes.get(self.at..)?;
            let found = memchr::memchr2(b'"', b'\\', rest)?;
            self.at += found;
            if self.peek() == Some(b'"') {
                self.at += 1;
                return Some(());
            }
            // An escaped character cannot end the string, and the digits of a `\u` escape contain no quote.
            self.at += 2;
        }
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    /// Skips whitespace and returns the next byte.
    #[inline]
    pub(super) fn skip_space(&mut self) -> Option<u8> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    /// Fails if anything but whitespace follows.
    fn end(&mut self) -> Result<(), DecodeError> {
        match self.skip_space() {
            None => Ok(()),
            other => Err(self.unexpected(other, "after top-level value")),
        }
    }

    #[cold]
    pub(super) fn unexpected(&self, byte: Option<u8>, context: &str) -> DecodeError {
        let message = match byte {
            Some(b) => format!("invalid character {} {context}", go::quote_byte(b)),
            None => "unexpected end of JSON input".into(),
        };
        DecodeError::new(message, Some(self.at))
    }

    /// Returns the error for an unexpected byte inside a literal. Go's decoder reads the end of the text as a
    /// space here.
    #[cold]
    fn unexpected_in_literal(&self, context: &str) -> DecodeError {
        self.unexpected(Some(self.peek().unwrap_or(b' ')), context)
    }

    /// Returns the bytes from `start` to the cursor, which are ASCII.
    pub(super) fn ascii(&self, start: usize) -> &'a str {
        let bytes = self.bytes.get(start..self.at).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    pub(super) fn literal<T>(&mut self, word: &'static str, value: T) -> Result<T, DecodeError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(value);
        }
        let same = rest.iter().zip(word.bytes()).take_while(|(a, b)| *a == b).count();
        self.at += same;
        let expected = word.as_bytes().get(same).map_or(' ', |b| char::from(*b));
        Err(self.unexpected_in_literal(&format!("in literal {word} (expecting '{expected}')")))
    }

    /// Reads a number and returns its notation.
    pub(super) fn number(&mut self) -> Result<NumberForm, DecodeError> {
        let mut form = NumberForm::Integer;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.unexpected_in_literal("in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            form = NumberForm::Float;
            self.at += 1;
            if !matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.unexpected_in_literal("after decimal point in numeric literal"));
            }
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            form = NumberForm::Float;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !matches!(self.peek(), Some(b'0'..=b'9')) {
                return Err(self.unexpected_in_literal("in exponent of numeric literal"));
            }
            self.digits();
        }
        Ok(form)
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    /// Reads a string after its opening quote.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Str, DecodeError> {
        let start = self.at;
        self.skip_plain();
        if self.peek() != Some(b'"') {
            return self.string_with_escapes(start);
        }
        let end = self.at;
        self.at += 1;
        Ok(match self.text.and_then(|t| t.get(start..end)) {
            Some(s) => Str::new(s),
            None => {
                // Go's decoder replaces invalid UTF-8 instead of rejecting it.
                let mut out = String::new();
                push_coerced(&mut out, self.bytes.get(start..end).unwrap_or_default());
                Str::from(out)
            }
        })
    }

    /// Skips to the next quote, backslash or control character, eight bytes at a time.
    #[inline]
    fn skip_plain(&mut self) {
        while let Some(word) = self.bytes.get(self.at..).and_then(swar::load_word) {
            let marks = swar::bytes_equal(word, b'"')
                | swar::bytes_equal(word, b'\\')
                | swar::bytes_below(word, 0x20);
            if marks != 0 {
                // Marks above the lowest one may be false, so only the lowest is used.
                self.at += swar::bytes_before_mark(marks);
                return;
            }
            self.at += 8;
        }
        while !matches!(self.peek(), None | Some(b'"' | b'\\' | 0..=0x1f)) {
            self.at += 1;
        }
    }

    #[cold]
    fn string_with_escapes(&mut self, start: usize) -> Result<Str, DecodeError> {
        let mut out = String::new();
        let mut run = start;
        loop {
            self.skip_plain();
            push_coerced(&mut out, self.bytes.get(run..self.at).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Str::from(out));
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape(&mut out)?;
                    run = self.at;
                }
                other => return Err(self.unexpected(other, "in string literal")),
            }
        }
    }

    /// Reads an escape after its backslash.
    fn escape(&mut self, out: &mut String) -> Result<(), DecodeError> {
        let c = match self.peek() {
            Some(b @ (b'"' | b'\\' | b'/')) => char::from(b),
            Some(b'b') => '\x08',
            Some(b'f') => '\x0c',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                let first = self.hex4()?;
                out.push(self.unit(first));
                return Ok(());
            }
            _ => return Err(self.unexpected_in_literal("in string escape code")),
        };
        self.at += 1;
        out.push(c);
        Ok(())
    }

    /// Returns the character of a UTF-16 unit. Consumes the second half of a surrogate pair if it follows.
    /// Unpaired surrogates become replacement characters.
    fn unit(&mut self, first: u32) -> char {
        if let 0xd800..=0xdbff = first {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let second = match rest {
                [b'\\', b'u', a, b, c, d, ..] => hex(&[*a, *b, *c, *d]),
                _ => None,
            };
            // A unit that is not the second half is left to be decoded on its own, as in Go.
            if let Some(second @ 0xdc00..=0xdfff) = second {
                self.at += 6;
                let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            }
        }
        char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    fn hex4(&mut self) -> Result<u32, DecodeError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|b| char::from(b).to_digit(16));
            let Some(digit) = digit else {
                return Err(self.unexpected_in_literal("in \\u hexadecimal character escape"));
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}

fn hex(digits: &[u8; 4]) -> Option<u32> {
    digits
        .iter()
        .try_fold(0, |code, b| Some(code * 16 + char::from(*b).to_digit(16)?))
}

/// Appends bytes as text. Each byte that is not valid UTF-8 becomes its own replacement character.
pub(crate) fn push_coerced(out: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
}
