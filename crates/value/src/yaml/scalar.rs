//! Scans scalars.

use super::Problem;
use super::scan::{Mark, Scanner};
use std::borrow::Cow;

/// The line breaks and spaces between two lines of a scalar.
#[derive(Default)]
struct LineBreaks {
    first: String,
    rest: String,
}

impl LineBreaks {
    /// Appends the breaks folded: a single break becomes a space, n breaks become n - 1.
    fn write(&mut self, out: &mut String) {
        if self.first == "\n" {
            if self.rest.is_empty() {
                out.push(' ');
            }
        } else {
            out.push_str(&self.first);
        }
        out.push_str(&self.rest);
        self.first.clear();
        self.rest.clear();
    }
}

/// The treatment of trailing breaks of a block scalar.
#[derive(PartialEq, Eq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

impl<'a> Scanner<'a> {
    /// Scans a plain scalar. A single-line one is borrowed from the text.
    pub(super) fn plain_scalar(&mut self) -> Result<Cow<'a, str>, Problem> {
        let start = self.mark;
        let indent = self.indent + 1;
        let mut lines = None::<String>;
        // The part of the current line that belongs to the scalar.
        let (mut from, mut to) = (self.at, self.at);
        let mut fold = LineBreaks::default();
        let mut after_break = false;
        loop {
            if self.at_document_indicator() || self.byte(0) == Some(b'#') {
                break;
            }
            while !self.is_blank_or_end(0) && !self.ends_plain() {
                if after_break {
                    let lines = lines.get_or_insert_default();
                    lines.push_str(self.text.get(from..to).unwrap_or_default());
                    fold.write(lines);
                    from = self.at;
                    after_break = false;
                }
                self.advance();
                to = self.at;
            }
            if !self.is_blank(0) && self.break_width(0) == 0 {
                break;
            }
            loop {
                if self.is_blank(0) {
                    if after_break && self.column() < indent && self.byte(0) == Some(b'\t') {
                        return Err(self.problem(start, "found a tab character that violates indentation"));
                    }
                    self.advance();
                } else if self.break_width(0) > 0 {
                    if after_break {
                        self.read_break(&mut fold.rest);
                    } else {
                        self.read_break(&mut fold.first);
                        after_break = true;
                    }
                } else {
                    break;
                }
            }
            if self.flow_depth == 0 && self.column() < indent {
                break;
            }
        }
        if after_break {
            self.key_allowed = true;
        }
        let last = self.text.get(from..to).unwrap_or_default();
        Ok(match lines {
            None => Cow::Borrowed(last),
            Some(mut lines) => {
                lines.push_str(last);
                Cow::Owned(lines)
            }
        })
    }

    fn ends_plain(&self) -> bool {
        match self.byte(0) {
            Some(b':') => self.is_blank_or_end(1),
            Some(b',' | b'?' | b'[' | b']' | b'{' | b'}') => self.flow_depth > 0,
            _ => false,
        }
    }

    /// Scans a quoted scalar. A single-line one without escapes is borrowed from the text.
    pub(super) fn quoted_scalar(&mut self, quote: u8) -> Result<Cow<'a, str>, Problem> {
        let start = self.mark;
        self.advance();
        if let Some(simple) = self.simple_quoted(quote) {
            return Ok(simple);
        }
        let mut out = String::new();
        let mut blanks = String::new();
        let mut fold = LineBreaks::default();
        loop {
            if self.at_document_indicator() {
                return Err(self.problem(start, "found unexpected document indicator"));
            }
            if self.byte(0).is_none() {
                return Err(self.problem(start, "found unexpected end of stream"));
            }
            let mut after_break = false;
            while !self.is_blank_or_end(0) {
                match self.byte(0) {
                    Some(b'\'') if quote == b'\'' && self.byte(1) == Some(b'\'') => {
                        out.push('\'');
                        self.advance_ascii(2);
                    }
                    Some(b) if b == quote => break,
                    Some(b'\\') if quote == b'"' && self.break_width(1) > 0 => {
                        self.advance();
                        // An escaped break joins the lines without a space.
                        self.skip_break();
                        after_break = true;
                        break;
                    }
                    Some(b'\\') if quote == b'"' => self.escape(start, &mut out)?,
                    _ => {
                        let from = self.at;
                        self.advance();
                        out.push_str(self.since(from));
                    }
                }
            }
            if self.byte(0) == Some(quote) {
                break;
            }
            loop {
                if self.is_blank(0) {
                    if !after_break {
                        blanks.push(char::from(self.byte(0).unwrap_or(b' ')));
                    }
                    self.advance();
                } else if self.break_width(0) > 0 {
                    if after_break {
                        self.read_break(&mut fold.rest);
                    } else {
                        // Blanks before a break do not count.
                        blanks.clear();
                        self.read_break(&mut fold.first);
                        after_break = true;
                    }
                } else {
                    break;
                }
            }
            if after_break {
                fold.write(&mut out);
            } else {
                out.push_str(&blanks);
                blanks.clear();
            }
        }
        self.advance();
        Ok(Cow::Owned(out))
    }

    /// Scans the rest of a quoted scalar if it is ASCII, on one line and without escapes.
    fn simple_quoted(&mut self, quote: u8) -> Option<Cow<'a, str>> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let length = rest.iter().position(|&b| {
            b == quote || !matches!(b, b'\t' | b' '..=b'~') || (b == b'\\' && quote == b'"')
        })?;
        let doubled = quote == b'\'' && rest.get(length + 1) == Some(&quote);
        if rest.get(length) != Some(&quote) || doubled {
            return None;
        }
        let from = self.at;
        self.advance_ascii(length);
        let value = self.since(from);
        self.advance();
        Some(Cow::Borrowed(value))
    }

    fn escape(&mut self, start: Mark, out: &mut String) -> Result<(), Problem> {
        let digits = match self.byte(1) {
            Some(b'x') => 2,
            Some(b'u') => 4,
            Some(b'U') => 8,
            other => {
                out.push(match other {
                    Some(b'0') => '\0',
                    Some(b'a') => '\x07',
                    Some(b'b') => '\x08',
                    Some(b't' | b'\t') => '\t',
                    Some(b'n') => '\n',
                    Some(b'v') => '\x0b',
                    Some(b'f') => '\x0c',
                    Some(b'r') => '\r',
                    Some(b'e') => '\x1b',
                    Some(b @ (b' ' | b'"' | b'\'' | b'\\')) => char::from(b),
                    Some(b'N') => '\u{85}',
                    Some(b'_') => '\u{a0}',
                    Some(b'L') => '\u{2028}',
                    Some(b'P') => '\u{2029}',
                    _ => return Err(self.problem(start, "found unknown escape character")),
                });
                self.advance_ascii(2);
                return Ok(());
            }
        };
        self.advance_ascii(2);
        let mut code = 0u32;
        for ahead in 0..digits {
            let digit = self.byte(ahead).and_then(|b| char::from(b).to_digit(16));
            let Some(digit) = digit else {
                // The misspelling is libyaml's.
                return Err(self.problem(start, "did not find expected hexdecimal number"));
            };
            code = code << 4 | digit;
        }
        let Some(c) = char::from_u32(code) else {
            return Err(self.problem(start, "found invalid Unicode character escape code"));
        };
        out.push(c);
        self.advance_ascii(digits);
        Ok(())
    }

    /// Scans a block scalar after `|` or `>`.
    pub(super) fn block_scalar(&mut self, literal: bool) -> Result<Cow<'a, str>, Problem> {
        let start = self.mark;
        self.advance();
        let (chomping, increment) = self.block_header(start)?;
        let mut indent = match increment {
            0 => 0,
            // Outside any block the indentation is -1, but the increment counts from 0.
            n => self.indent.max(0) + n,
        };

        let mut out = String::new();
        let mut last_break = String::new();
        let mut breaks = String::new();
        self.block_breaks(&mut indent, &mut breaks, start)?;
        let mut previous_blank = false;
        while self.column() == indent && self.byte(0).is_some() {
            let blank = self.is_blank(0);
            // Folding keeps the breaks around lines that begin with a blank.
            if !literal && !previous_blank && !blank && last_break == "\n" {
                if breaks.is_empty() {
                    out.push(' ');
                }
            } else {
                out.push_str(&last_break);
            }
            last_break.clear();
            out.push_str(&breaks);
            breaks.clear();
            previous_blank = blank;
            let from = self.at;
            self.skip_line_rest();
            out.push_str(self.since(from));
            self.read_break(&mut last_break);
            self.block_breaks(&mut indent, &mut breaks, start)?;
        }
        if chomping != Chomping::Strip {
            out.push_str(&last_break);
        }
        if chomping == Chomping::Keep {
            out.push_str(&breaks);
        }
        Ok(Cow::Owned(out))
    }

    /// Scans the rest of the line after `|` or `>`: the chomping indicator and the indentation (0 if the
    /// first line decides).
    fn block_header(&mut self, start: Mark) -> Result<(Chomping, isize), Problem> {
        let mut chomping = Chomping::Clip;
        let mut increment = 0;
        let (mut seen_chomping, mut seen_digit) = (false, false);
        loop {
            match self.byte(0) {
                Some(b @ (b'+' | b'-')) if !seen_chomping => {
                    chomping = if b == b'+' {
                        Chomping::Keep
                    } else {
                        Chomping::Strip
                    };
                    seen_chomping = true;
                }
                Some(b @ b'0'..=b'9') if !seen_digit => {
                    if b == b'0' {
                        return Err(self.problem(start, "found an indentation indicator equal to 0"));
                    }
                    increment = isize::from(b - b'0');
                    seen_digit = true;
                }
                _ => break,
            }
            self.advance();
        }
        self.end_line(start)?;
        Ok((chomping, increment))
    }

    /// Skips indentation and empty lines; finds the indentation if it is not known yet.
    fn block_breaks(&mut self, indent: &mut isize, breaks: &mut String, start: Mark) -> Result<(), Problem> {
        let mut widest = 0;
        loop {
            while (*indent == 0 || self.column() < *indent) && self.byte(0) == Some(b' ') {
                self.advance();
            }
            widest = widest.max(self.column());
            if (*indent == 0 || self.column() < *indent) && self.byte(0) == Some(b'\t') {
                let text = "found a tab character where an indentation space is expected";
                return Err(self.problem(start, text));
            }
            if self.break_width(0) == 0 {
                break;
            }
            self.read_break(breaks);
        }
        if *indent == 0 {
            // The text is indented by at least one space, at the top level, too.
            *indent = widest.max(self.indent + 1).max(1);
        }
        Ok(())
    }
}
