//! A parser for the subset of protobuf's text format that the suite uses.

use std::fmt;

/// A message: its fields in order; repeated fields occur several times.
#[derive(Debug, Default)]
pub(crate) struct Message(pub(crate) Vec<(String, Value)>);

/// The value of a field.
#[derive(Debug)]
pub(crate) enum Value {
    /// A number or the name of a constant, as written.
    Word(String),
    /// A quoted string, which need not be UTF-8.
    Bytes(Vec<u8>),
    Message(Message),
}

/// A parse error and its position.
#[derive(Debug)]
pub(crate) struct Error {
    pub(crate) offset: usize,
    pub(crate) message: &'static str,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.message, self.offset)
    }
}

impl Message {
    pub(crate) fn parse(text: &str) -> Result<Message, Error> {
        let mut reader = TextprotoReader {
            text: text.as_bytes(),
            at: 0,
        };
        let message = reader.message(None)?;
        Ok(message)
    }

    /// The values of a field.
    pub(crate) fn all<'m>(&'m self, name: &'m str) -> impl Iterator<Item = &'m Value> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, v)| v)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }

    pub(crate) fn message(&self, name: &str) -> Option<&Message> {
        self.get(name).and_then(Value::as_message)
    }

    pub(crate) fn messages<'m>(&'m self, name: &'m str) -> impl Iterator<Item = &'m Message> {
        self.all(name).filter_map(Value::as_message)
    }

    /// A string field; empty if absent.
    pub(crate) fn text(&self, name: &str) -> String {
        match self.get(name) {
            Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        }
    }

    /// A boolean field; false if absent.
    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.get(name), Some(Value::Word(w)) if w == "true")
    }

    /// Returns whether any name, word or string in it matches the predicate.
    pub(crate) fn any(&self, test: &impl Fn(&str) -> bool) -> bool {
        self.0.iter().any(|(name, value)| {
            test(name)
                || match value {
                    Value::Word(w) => test(w),
                    Value::Bytes(b) => test(&String::from_utf8_lossy(b)),
                    Value::Message(m) => m.any(test),
                }
        })
    }
}

impl Value {
    pub(crate) fn as_message(&self) -> Option<&Message> {
        match self {
            Value::Message(m) => Some(m),
            _ => None,
        }
    }

    pub(crate) fn as_word(&self) -> &str {
        match self {
            Value::Word(w) => w,
            _ => "",
        }
    }
}

struct TextprotoReader<'t> {
    text: &'t [u8],
    at: usize,
}

impl TextprotoReader<'_> {
    fn error<T>(&self, message: &'static str) -> Result<T, Error> {
        Err(Error {
            offset: self.at,
            message,
        })
    }

    /// The next byte that is neither whitespace nor a comment.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.get(self.at)? {
                b'#' => {
                    while self.text.get(self.at).is_some_and(|b| *b != b'\n') {
                        self.at += 1;
                    }
                }
                b if b.is_ascii_whitespace() => self.at += 1,
                b => return Some(*b),
            }
        }
    }

    fn message(&mut self, end: Option<u8>) -> Result<Message, Error> {
        let mut fields = Vec::new();
        loop {
            match self.peek() {
                None if end.is_none() => return Ok(Message(fields)),
                None => return self.error("unclosed message"),
                Some(b',' | b';') => self.at += 1,
                Some(b) if Some(b) == end => {
                    self.at += 1;
                    return Ok(Message(fields));
                }
                Some(_) => {
                    let name = self.name()?;
                    if self.peek() == Some(b':') {
                        self.at += 1;
                    }
                    self.values(&name, &mut fields)?;
                }
            }
        }
    }

    fn values(&mut self, name: &str, fields: &mut Vec<(String, Value)>) -> Result<(), Error> {
        if self.peek() != Some(b'[') {
            let value = self.value()?;
            fields.push((name.to_owned(), value));
            return Ok(());
        }
        self.at += 1;
        loop {
            match self.peek() {
                Some(b']') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b',') => self.at += 1,
                _ => {
                    let value = self.value()?;
                    fields.push((name.to_owned(), value));
                }
            }
        }
    }

    fn value(&mut self) -> Result<Value, Error> {
        match self.peek() {
            Some(b'{') => {
                self.at += 1;
                self.message(Some(b'}')).map(Value::Message)
            }
            Some(b'<') => {
                self.at += 1;
                self.message(Some(b'>')).map(Value::Message)
            }
            Some(b'"' | b'\'') => {
                let mut bytes = Vec::new();
                while let Some(quote @ (b'"' | b'\'')) = self.peek() {
                    self.at += 1;
                    self.quoted(quote, &mut bytes)?;
                }
                Ok(Value::Bytes(bytes))
            }
            _ => self.name().map(Value::Word),
        }
    }

    /// Parses a name, a number, or the bracketed name of an extension.
    fn name(&mut self) -> Result<String, Error> {
        self.peek();
        let start = self.at;
        let bracketed = self.text.get(start) == Some(&b'[');
        let part =
            |b: &u8| b.is_ascii_alphanumeric() || b"_.+-/".contains(b) || (bracketed && b"[]".contains(b));
        while self.text.get(self.at).is_some_and(part) {
            self.at += 1;
        }
        if start == self.at {
            return self.error("expected a name");
        }
        let name = self.text.get(start..self.at).unwrap_or_default();
        Ok(String::from_utf8_lossy(name).into_owned())
    }

    fn quoted(&mut self, quote: u8, out: &mut Vec<u8>) -> Result<(), Error> {
        loop {
            let Some(b) = self.text.get(self.at).copied() else {
                return self.error("unclosed string");
            };
            self.at += 1;
            match b {
                b if b == quote => return Ok(()),
                b'\\' => self.escape(out)?,
                b => out.push(b),
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        let Some(b) = self.text.get(self.at).copied() else {
            return self.error("unclosed string");
        };
        self.at += 1;
        match b {
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'v' => out.push(11),
            b'\\' | b'\'' | b'"' | b'?' => out.push(b),
            b'x' => out.push(self.digits(16, 2)? as u8),
            b'u' | b'U' => {
                let code = self.digits(16, if b == b'u' { 4 } else { 8 })?;
                let Some(c) = char::from_u32(code) else {
                    return self.error("no such character");
                };
                out.extend(c.encode_utf8(&mut [0; 4]).bytes());
            }
            b'0'..=b'7' => {
                self.at -= 1;
                out.push(self.digits(8, 3)? as u8);
            }
            _ => return self.error("unknown escape"),
        }
        Ok(())
    }

    fn digits(&mut self, radix: u32, most: usize) -> Result<u32, Error> {
        let start = self.at;
        let mut code = 0;
        while self.at < start + most
            && let Some(digit) = self
                .text
                .get(self.at)
                .and_then(|b| char::from(*b).to_digit(radix))
        {
            code = code * radix + digit;
            self.at += 1;
        }
        if start == self.at {
            return self.error("expected digits");
        }
        Ok(code)
    }
}
