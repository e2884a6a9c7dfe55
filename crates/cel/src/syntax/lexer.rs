//! The lexer.
//!
//! It matches the longest token, like the generated lexer of the reference implementation. If none matches, the longest
//! prefix of a token is an error, and lexing resumes behind it. The parser and `diagnose` share the lexer.

use super::token::{Token, TokenKind};

/// A token or error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lexeme {
    /// A token. [`TokenKind::End`] repeats at the end of the source.
    Token(Token),
    /// Text that begins no token.
    Unrecognized(Unrecognized),
}

/// Text that begins no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unrecognized {
    /// The start in code points.
    pub(crate) offset: u32,
    /// The start in bytes.
    pub(crate) start: u32,
    /// The end in bytes, after the first character that does not continue a token.
    pub(crate) end: u32,
}

/// The lexer, for sources of less than 4 GiB.
pub(crate) struct Lexer<'s> {
    source: &'s str,
    bytes: &'s [u8],
    /// The position in bytes.
    position: usize,
    /// The position in code points.
    offset: u32,
}

/// The result of matching one kind of token.
enum ScanResult {
    /// The token ends before this byte.
    Ends(usize),
    /// No token matches: the character at this byte does not fit, or the source ends.
    Stuck(usize),
}

impl<'s> Lexer<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        Lexer {
            source,
            bytes: source.as_bytes(),
            position: 0,
            offset: 0,
        }
    }

    /// The next token or error.
    pub(crate) fn next(&mut self) -> Lexeme {
        let start = self.position;
        let (kind, end) = match self.scan() {
            Ok(found) => found,
            Err(stuck) => {
                // ANTLR drops the character that does not fit together with the text before it.
                let end = stuck + self.char_len(stuck);
                let error = Unrecognized {
                    offset: self.offset,
                    start: start as u32,
                    end: end as u32,
                };
                self.advance(end);
                return Lexeme::Unrecognized(error);
            }
        };
        let token = Token {
            kind,
            offset: self.offset,
            start: start as u32,
            end: end as u32,
        };
        if matches!(kind, TokenKind::String | TokenKind::Bytes | TokenKind::Comment) {
            self.advance(end);
        } else {
            // Every other token is ASCII.
            self.offset += (end - start) as u32;
            self.position = end;
        }
        Lexeme::Token(token)
    }

    fn advance(&mut self, end: usize) {
        let passed = self.source.get(self.position..end).unwrap_or_default();
        self.offset += passed.chars().count() as u32;
        self.position = end;
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    /// The length of the character at this byte; 0 at the end.
    fn char_len(&self, at: usize) -> usize {
        self.source
            .get(at..)
            .and_then(|rest| rest.chars().next())
            .map_or(0, char::len_utf8)
    }

    /// The first byte from `at` on that is not of this class.
    fn skip(&self, at: usize, class: fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(at..).unwrap_or_default();
        at + rest.iter().position(|b| !class(*b)).unwrap_or(rest.len())
    }

    /// The kind and end of the token at the current position, or the position of the mismatch.
    fn scan(&self) -> Result<(TokenKind, usize), usize> {
        use TokenKind as K;
        let start = self.position;
        let Some(first) = self.byte(start) else {
            return Ok((K::End, start));
        };
        let second = self.byte(start + 1);
        let one = |kind| Ok((kind, start + 1));
        let two = |kind| Ok((kind, start + 2));
        match first {
            b'\t' | b' ' | b'\r' | b'\n' | 0x0c => Ok((
                K::Whitespace,
                self.skip(start, |b| matches!(b, b'\t' | b' ' | b'\r' | b'\n' | 0x0c)),
            )),
            b'=' if second == Some(b'=') => two(K::Equals),
            b'!' if second == Some(b'=') => two(K::NotEquals),
            b'<' if second == Some(b'=') => two(K::LessEquals),
            b'>' if second == Some(b'=') => two(K::GreaterEquals),
            b'&' if second == Some(b'&') => two(K::And),
            b'|' if second == Some(b'|') => two(K::Or),
            // These only begin tokens of two characters.
            b'=' | b'&' | b'|' => Err(start + 1),
            b'/' if second == Some(b'/') => Ok((K::Comment, self.skip(start, |b| b != b'\n'))),
            // The longest token wins, so `.5` is a number, although a dot alone is a token, too.
            b'.' if second.is_some_and(|b| b.is_ascii_digit()) => Ok((K::Float, self.fraction(start))),
            b'!' => one(K::Not),
            b'<' => one(K::Less),
            b'>' => one(K::Greater),
            b'[' => one(K::LeftBracket),
            b']' => one(K::RightBracket),
            b'{' => one(K::LeftBrace),
            b'}' => one(K::RightBrace),
            b'(' => one(K::LeftParen),
            b')' => one(K::RightParen),
            b'.' => one(K::Dot),
            b',' => one(K::Comma),
            b'-' => one(K::Minus),
            b'?' => one(K::Question),
            b':' => one(K::Colon),
            b'+' => one(K::Plus),
            b'*' => one(K::Star),
            b'/' => one(K::Slash),
            b'%' => one(K::Percent),
            b'0'..=b'9' => Ok(self.number(start)),
            b'"' | b'\'' => self.quoted(start).map(|end| (K::String, end)),
            b'`' => self
                .escaped_identifier(start)
                .map(|end| (K::EscapedIdentifier, end)),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Ok(self.word(start)),
            _ => Err(start),
        }
    }

    fn number(&self, start: usize) -> (TokenKind, usize) {
        let digits = if self.byte(start) == Some(b'0')
            && self.byte(start + 1) == Some(b'x')
            // Without a digit after it, `0x` is the number `0` and the name `x`.
            && self.byte(start + 2).is_some_and(|b| b.is_ascii_hexdigit())
        {
            self.skip(start + 2, |b| b.is_ascii_hexdigit())
        } else {
            let digits = self.skip(start, |b| b.is_ascii_digit());
            let end = if self.byte(digits) == Some(b'.')
                // A dot without a digit after it is a selection: `1.size()`.
                && self.byte(digits + 1).is_some_and(|b| b.is_ascii_digit())
            {
                self.fraction(digits)
            } else {
                self.exponent(digits)
            };
            if end > digits {
                return (TokenKind::Float, end);
            }
            digits
        };
        match self.byte(digits) {
            Some(b'u' | b'U') => (TokenKind::Uint, digits + 1),
            _ => (TokenKind::Int, digits),
        }
    }

    /// The end of a fraction: dot, digits, and an optional exponent.
    fn fraction(&self, dot: usize) -> usize {
        self.exponent(self.skip(dot + 1, |b| b.is_ascii_digit()))
    }

    /// The end of the exponent at this byte; `at` itself if there is none.
    fn exponent(&self, at: usize) -> usize {
        if !matches!(self.byte(at), Some(b'e' | b'E')) {
            return at;
        }
        let digits = at
            + if matches!(self.byte(at + 1), Some(b'+' | b'-')) {
                2
            } else {
                1
            };
        match self.skip(digits, |b| b.is_ascii_digit()) {
            // An incomplete exponent (`1e+`) belongs to the next token.
            end if end > digits => end,
            _ => at,
        }
    }

    /// An identifier or keyword, or a string with a prefix.
    fn word(&self, start: usize) -> (TokenKind, usize) {
        use TokenKind as K;
        let end = self.skip(start, |b| b.is_ascii_alphanumeric() || b == b'_');
        let word = self.bytes.get(start..end).unwrap_or_default();
        if matches!(self.byte(end), Some(b'"' | b'\'')) {
            // An unterminated string does not fail here: the prefix is then a name, and the quote begins the next
            // token.
            let literal = match word {
                [b'r' | b'R'] => self.raw(end).map(|end| (K::String, end)),
                [b'b' | b'B'] => self.quoted(end).ok().map(|end| (K::Bytes, end)),
                [b'b' | b'B', b'r' | b'R'] => self.raw(end).map(|end| (K::Bytes, end)),
                _ => None,
            };
            if let Some(literal) = literal {
                return literal;
            }
        }
        let kind = match word {
            b"in" => K::In,
            b"true" => K::True,
            b"false" => K::False,
            b"null" => K::Null,
            _ => K::Identifier,
        };
        (kind, end)
    }

    /// The end of the string that begins with the quote at this byte, or the position of the mismatch.
    fn quoted(&self, start: usize) -> Result<usize, usize> {
        let quote = self.byte(start).unwrap_or_default();
        if self.byte(start + 1) == Some(quote) {
            // Three quotes may begin a long string; otherwise two are an empty string.
            if self.byte(start + 2) == Some(quote)
                && let ScanResult::Ends(end) = self.until_three_quotes(start + 3, quote)
            {
                return Ok(end);
            }
            return Ok(start + 2);
        }
        match self.until_quote(start + 1, quote) {
            ScanResult::Ends(end) => Ok(end),
            ScanResult::Stuck(at) => Err(at),
        }
    }

    fn until_quote(&self, mut at: usize, quote: u8) -> ScanResult {
        loop {
            match self.byte(at) {
                Some(b) if b == quote => return ScanResult::Ends(at + 1),
                Some(b'\\') => match self.escape(at) {
                    ScanResult::Ends(end) => at = end,
                    stuck @ ScanResult::Stuck(_) => return stuck,
                },
                // Line breaks are allowed in long strings only.
                Some(b'\n' | b'\r') | None => return ScanResult::Stuck(at),
                Some(_) => at += 1,
            }
        }
    }

    fn until_three_quotes(&self, mut at: usize, quote: u8) -> ScanResult {
        loop {
            match self.byte(at) {
                Some(b) if b == quote && self.three_quotes(at, quote) => return ScanResult::Ends(at + 3),
                Some(b'\\') => match self.escape(at) {
                    ScanResult::Ends(end) => at = end,
                    stuck @ ScanResult::Stuck(_) => return stuck,
                },
                None => return ScanResult::Stuck(at),
                Some(_) => at += 1,
            }
        }
    }

    fn three_quotes(&self, at: usize, quote: u8) -> bool {
        self.byte(at) == Some(quote) && self.byte(at + 1) == Some(quote) && self.byte(at + 2) == Some(quote)
    }

    /// The end of the raw string that begins with the quote at this byte.
    fn raw(&self, start: usize) -> Option<usize> {
        let quote = self.byte(start)?;
        if self.three_quotes(start, quote)
            && let Some(end) = (start + 3..self.bytes.len()).find(|at| self.three_quotes(*at, quote))
        {
            return Some(end + 3);
        }
        let rest = self.bytes.get(start + 1..)?;
        let end = rest
            .iter()
            .position(|b| *b == quote || matches!(b, b'\n' | b'\r'))?;
        (rest.get(end) == Some(&quote)).then_some(start + 1 + end + 1)
    }

    /// The end of the escape sequence that begins with the backslash at this byte.
    fn escape(&self, backslash: usize) -> ScanResult {
        let at = backslash + 1;
        let hex: fn(u8) -> bool = |b| b.is_ascii_hexdigit();
        let (count, class): (usize, fn(u8) -> bool) = match self.byte(at) {
            Some(b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`') => {
                (0, hex)
            }
            Some(b'x' | b'X') => (2, hex),
            Some(b'u') => (4, hex),
            Some(b'U') => (8, hex),
            // Three octal digits up to `\377`, the largest byte.
            Some(b'0'..=b'3') => (2, |b| matches!(b, b'0'..=b'7')),
            _ => return ScanResult::Stuck(at),
        };
        let digits = at + 1..at + 1 + count;
        match digits.clone().find(|d| !self.byte(*d).is_some_and(class)) {
            Some(stuck) => ScanResult::Stuck(stuck),
            None => ScanResult::Ends(digits.end),
        }
    }

    fn escaped_identifier(&self, start: usize) -> Result<usize, usize> {
        let end = self.skip(start + 1, |b| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/' | b' ')
        });
        // An empty name is not a token: the grammar asks for at least one character.
        if end > start + 1 && self.byte(end) == Some(b'`') {
            Ok(end + 1)
        } else {
            Err(end)
        }
    }
}
