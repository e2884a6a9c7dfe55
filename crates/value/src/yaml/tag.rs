//! Scans directives, anchors and tags.

use super::Problem;
use super::scan::{Mark, Scanner, TokenKind};

/// The context of a tag.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TagContext {
    Directive,
    Node,
}

fn is_word(b: Option<u8>) -> bool {
    matches!(b, Some(b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' | b'-'))
}

impl<'a> Scanner<'a> {
    fn word(&mut self) -> &'a str {
        let from = self.at;
        while is_word(self.byte(0)) {
            self.advance();
        }
        self.since(from)
    }

    /// Scans `%YAML 1.1` or `%TAG ! prefix`, and the rest of its line.
    pub(super) fn directive(&mut self) -> Result<TokenKind<'a>, Problem> {
        let start = self.mark;
        self.advance();
        let name = self.word();
        if name.is_empty() {
            return Err(self.problem(start, "could not find expected directive name"));
        }
        if !self.is_blank_or_end(0) {
            return Err(self.problem(start, "found unexpected non-alphabetical character"));
        }
        let kind = match name {
            "YAML" => {
                self.skip_blanks();
                let major = self.version_number(start)?;
                if self.byte(0) != Some(b'.') {
                    return Err(self.problem(start, "did not find expected digit or '.' character"));
                }
                self.advance();
                let minor = self.version_number(start)?;
                TokenKind::Version { major, minor }
            }
            "TAG" => {
                self.skip_blanks();
                let handle = self.tag_handle(TagContext::Directive, start)?;
                if !self.is_blank(0) {
                    return Err(self.problem(start, "did not find expected whitespace"));
                }
                self.skip_blanks();
                let prefix = self.tag_uri("", start)?;
                if !self.is_blank_or_end(0) {
                    return Err(self.problem(start, "did not find expected whitespace or line break"));
                }
                TokenKind::TagDirective { handle, prefix }
            }
            _ => return Err(self.problem(start, "found unknown directive name")),
        };
        self.end_line(start)?;
        Ok(kind)
    }

    fn version_number(&mut self, start: Mark) -> Result<u8, Problem> {
        let mut number = None;
        let mut digits = 0;
        while let Some(b @ b'0'..=b'9') = self.byte(0) {
            digits += 1;
            if digits > 2 {
                return Err(self.problem(start, "found extremely long version number"));
            }
            number = Some(number.unwrap_or(0) * 10 + (b - b'0'));
            self.advance();
        }
        number.ok_or_else(|| self.problem(start, "did not find expected version number"))
    }

    /// Scans `&name` or `*name`.
    pub(super) fn anchor(&mut self, sign: u8) -> Result<TokenKind<'a>, Problem> {
        let start = self.mark;
        self.advance();
        let name = self.word();
        let ends = self.is_blank_or_end(0)
            || matches!(
                self.byte(0),
                Some(b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`')
            );
        if name.is_empty() || !ends {
            return Err(self.problem(start, "did not find expected alphabetic or numeric character"));
        }
        Ok(if sign == b'&' {
            TokenKind::Anchor(name)
        } else {
            TokenKind::Alias(name)
        })
    }

    /// Scans `!`, `!suffix`, `!handle!suffix` or `!<uri>`.
    pub(super) fn tag(&mut self) -> Result<TokenKind<'a>, Problem> {
        let start = self.mark;
        let (handle, suffix);
        if self.byte(1) == Some(b'<') {
            self.advance_ascii(2);
            suffix = self.tag_uri("", start)?;
            handle = "";
            if self.byte(0) != Some(b'>') {
                return Err(self.problem(start, "did not find the expected '>'"));
            }
            self.advance();
        } else {
            let head = self.tag_handle(TagContext::Node, start)?;
            if head.len() > 1 && head.ends_with('!') {
                suffix = self.tag_uri("", start)?;
                handle = head;
            } else {
                // The presumed handle is the beginning of the suffix.
                let rest = self.tag_uri(head, start)?;
                (handle, suffix) = if rest.is_empty() {
                    ("", head.to_owned())
                } else {
                    ("!", rest)
                };
            }
        }
        if !self.is_blank_or_end(0) {
            return Err(self.problem(start, "did not find expected whitespace or line break"));
        }
        Ok(TokenKind::Tag { handle, suffix })
    }

    fn tag_handle(&mut self, context: TagContext, start: Mark) -> Result<&'a str, Problem> {
        if self.byte(0) != Some(b'!') {
            return Err(self.problem(start, "did not find expected '!'"));
        }
        let from = self.at;
        self.advance();
        self.word();
        if self.byte(0) == Some(b'!') {
            self.advance();
        } else if context == TagContext::Directive && self.since(from) != "!" {
            return Err(self.problem(start, "did not find expected '!'"));
        }
        Ok(self.since(from))
    }

    /// Scans the rest of a tag; `head` is the part already read, after its `!`.
    fn tag_uri(&mut self, head: &str, start: Mark) -> Result<String, Problem> {
        let mut bytes: Vec<u8> = head.bytes().skip(1).collect();
        let mut found = !head.is_empty();
        loop {
            match self.byte(0) {
                Some(b'%') => self.uri_escape(&mut bytes, start)?,
                Some(
                    b @ (b';' | b'/' | b'?' | b':' | b'@' | b'&' | b'=' | b'+' | b'$' | b',' | b'.' | b'!'
                    | b'~' | b'*' | b'\'' | b'(' | b')' | b'[' | b']'),
                ) => {
                    bytes.push(b);
                    self.advance();
                }
                Some(b) if is_word(Some(b)) => {
                    bytes.push(b);
                    self.advance();
                }
                _ => break,
            }
            found = true;
        }
        if !found {
            return Err(self.problem(start, "did not find expected tag URI"));
        }
        // `uri_escape` checks only the kind of each octet, so the sequence may still be invalid UTF-8.
        Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }

    /// Scans one character given as `%xx` octets.
    fn uri_escape(&mut self, out: &mut Vec<u8>, start: Mark) -> Result<(), Problem> {
        let mut left = None;
        loop {
            let digit = |ahead| self.byte(ahead).and_then(|b| char::from(b).to_digit(16));
            let octet = match (self.byte(0), digit(1), digit(2)) {
                (Some(b'%'), Some(high), Some(low)) => u8::try_from(high * 16 + low).unwrap_or_default(),
                _ => return Err(self.problem(start, "did not find URI escaped octet")),
            };
            left = Some(match (left, octet) {
                (None, 0..0x80) => 0,
                (None, 0xc0..0xe0) => 1,
                (None, 0xe0..0xf0) => 2,
                (None, 0xf0..0xf8) => 3,
                (None, _) => return Err(self.problem(start, "found an incorrect leading UTF-8 octet")),
                (Some(n), 0x80..0xc0) => n - 1,
                (Some(_), _) => return Err(self.problem(start, "found an incorrect trailing UTF-8 octet")),
            });
            out.push(octet);
            self.advance_ascii(3);
            if left == Some(0) {
                return Ok(());
            }
        }
    }
}
