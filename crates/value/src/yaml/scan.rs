//! The scanner: turns YAML 1.1 text into tokens.
//!
//! A token can change the meaning of tokens before it: `a` is a key only once `:` follows. The scanner
//! therefore holds tokens back while one of them may still turn out to begin a key.

use super::Problem;
use crate::Limits;
use std::borrow::Cow;
use std::collections::VecDeque;

/// The maximum length of a simple key. It must also end on its line.
pub(super) const MAX_KEY_LENGTH: usize = 1024;

/// A position in the text. All counts are zero-based and in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) index: usize,
    pub(super) line: usize,
    pub(super) column: usize,
}

#[derive(Clone, Debug)]
pub(super) struct YamlToken<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) start: Mark,
    pub(super) end: Mark,
}

#[derive(Clone, Debug)]
pub(super) enum TokenKind<'a> {
    StreamEnd,
    DocumentStart,
    DocumentEnd,
    Version { major: u8, minor: u8 },
    TagDirective { handle: &'a str, prefix: String },
    BlockSequence,
    BlockMapping,
    BlockEnd,
    FlowSequence,
    FlowSequenceEnd,
    FlowMapping,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(&'a str),
    Anchor(&'a str),
    Tag { handle: &'a str, suffix: String },
    ResolvedScalar { value: Cow<'a, str>, style: Style },
}

/// The style of a scalar. Only plain scalars are resolved to numbers, booleans and null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Other,
}

/// A possible simple key. There is one per level of `[` and `{`, and one for the surrounding block.
#[derive(Clone, Copy, Debug, Default)]
struct SimpleKey {
    possible: bool,
    /// True if this must be a key, because it has the indentation of the keys of a block.
    required: bool,
    /// True if tokens are held back for it. An empty `[]` or `{}` does not hold tokens back: Kubernetes'
    /// decoder ends a document after it, whatever follows.
    awaited: bool,
    /// The sequence number of the token that begins it.
    token: usize,
    mark: Mark,
}

pub(super) struct Scanner<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) mark: Mark,
    limits: Limits,
    queue: VecDeque<YamlToken<'a>>,
    /// The number of tokens taken from the queue.
    taken: usize,
    ready: bool,
    simple_keys: Vec<SimpleKey>,
    pub(super) key_allowed: bool,
    /// The column of the current block; -1 outside any block.
    pub(super) indent: isize,
    indents: Vec<isize>,
    pub(super) flow_depth: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str, limits: Limits) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Scanner {
            text,
            at: 0,
            mark: Mark::default(),
            limits,
            queue: VecDeque::new(),
            taken: 0,
            ready: false,
            simple_keys: vec![SimpleKey::default()],
            key_allowed: true,
            indent: -1,
            indents: Vec::new(),
            flow_depth: 0,
        }
    }

    /// Returns the next token without taking it.
    pub(super) fn peek(&mut self) -> Result<&YamlToken<'a>, Problem> {
        while !self.ready {
            self.ready = !self.queue.is_empty() && !self.head_may_be_key()?;
            if !self.ready {
                self.fetch()?;
            }
        }
        let end = self.mark;
        self.queue
            .front()
            .ok_or_else(|| Problem::scanner("did not find expected token", end, end))
    }

    /// Takes the token that was peeked at.
    pub(super) fn take(&mut self) -> Option<YamlToken<'a>> {
        let token = self.queue.pop_front()?;
        self.taken += 1;
        self.ready = false;
        Some(token)
    }

    /// Returns whether the first token in the queue may still turn out to begin a key.
    fn head_may_be_key(&mut self) -> Result<bool, Problem> {
        // Token numbers ascend with the levels.
        let head = self.taken;
        let first = self.simple_keys.partition_point(|c| c.token < head);
        for level in first..self.simple_keys.len() {
            match self.simple_keys.get(level) {
                Some(c) if c.token == head => {
                    if c.awaited && self.is_valid(level)? {
                        return Ok(true);
                    }
                }
                _ => break,
            }
        }
        Ok(false)
    }

    /// Returns whether a key can still begin at this level, and clears the candidate if not.
    fn is_valid(&mut self, level: usize) -> Result<bool, Problem> {
        let (line, index) = (self.mark.line, self.mark.index);
        let Some(c) = self.simple_keys.get_mut(level) else {
            return Ok(false);
        };
        if !c.possible {
            return Ok(false);
        }
        if c.mark.line < line || c.mark.index + MAX_KEY_LENGTH < index {
            if c.required {
                let mark = c.mark;
                return Err(self.problem(mark, "could not find expected ':'"));
            }
            c.possible = false;
            return Ok(false);
        }
        Ok(true)
    }

    /// Records that a key may begin here.
    fn save_simple_key(&mut self) -> Result<(), Problem> {
        if self.key_allowed {
            let required = self.flow_depth == 0 && self.indent == self.column();
            let token = self.taken + self.queue.len();
            self.drop_simple_key()?;
            if let Some(c) = self.simple_keys.last_mut() {
                *c = SimpleKey {
                    possible: true,
                    required,
                    awaited: true,
                    token,
                    mark: self.mark,
                };
            }
        }
        Ok(())
    }

    /// Clears the key candidate of this level.
    fn drop_simple_key(&mut self) -> Result<(), Problem> {
        if let Some(c) = self.simple_keys.last_mut()
            && c.possible
        {
            if c.required {
                let mark = c.mark;
                return Err(self.problem(mark, "could not find expected ':'"));
            }
            c.possible = false;
        }
        Ok(())
    }

    pub(super) fn problem(&self, context: Mark, text: impl Into<Cow<'static, str>>) -> Problem {
        Problem::scanner(text, self.mark, context)
    }

    pub(super) fn column(&self) -> isize {
        isize::try_from(self.mark.column).unwrap_or(isize::MAX)
    }

    /// Opens a block if the column is greater than the current one. Its token is inserted before the token
    /// with the given number, or at the end.
    fn open_block(
        &mut self,
        column: isize,
        before: Option<usize>,
        kind: TokenKind<'a>,
        mark: Mark,
    ) -> Result<(), Problem> {
        if self.flow_depth > 0 || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        // go-yaml limits blocks and brackets separately, each to the full depth.
        if self.indents.len() > self.limits.depth {
            return Err(self.too_deep());
        }
        let token = YamlToken {
            kind,
            start: mark,
            end: mark,
        };
        self.insert(before, token);
        Ok(())
    }

    /// Inserts a token before the one with the given number, or at the end if that one is already taken.
    fn insert(&mut self, before: Option<usize>, token: YamlToken<'a>) {
        match before.and_then(|number| number.checked_sub(self.taken)) {
            Some(position) if position < self.queue.len() => self.queue.insert(position, token),
            _ => self.queue.push_back(token),
        }
    }

    fn too_deep(&self) -> Problem {
        let context = self.simple_keys.last().map_or(self.mark, |c| c.mark);
        self.problem(context, format!("exceeded max depth of {}", self.limits.depth))
    }

    /// Closes the blocks to the right of the column.
    fn close_blocks(&mut self, column: isize) {
        if self.flow_depth > 0 {
            return;
        }
        while self.indent > column {
            self.push(TokenKind::BlockEnd, self.mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn push(&mut self, kind: TokenKind<'a>, start: Mark) {
        self.queue.push_back(YamlToken {
            kind,
            start,
            end: self.mark,
        });
    }

    /// Scans one more token, including the tokens of blocks that open or close with it.
    fn fetch(&mut self) -> Result<(), Problem> {
        self.skip_to_token();
        self.close_blocks(self.column());
        let start = self.mark;
        let Some(b) = self.byte(0) else {
            return self.end_of_stream();
        };
        if self.mark.column == 0 {
            if b == b'%' {
                self.leave_blocks()?;
                let kind = self.directive()?;
                self.push(kind, start);
                return Ok(());
            }
            if self.at_document_indicator() {
                self.leave_blocks()?;
                for _ in 0..3 {
                    self.advance();
                }
                let kind = if b == b'-' {
                    TokenKind::DocumentStart
                } else {
                    TokenKind::DocumentEnd
                };
                self.push(kind, start);
                return Ok(());
            }
        }
        let in_block = self.flow_depth == 0;
        match b {
            b'[' => self.open_flow(TokenKind::FlowSequence),
            b'{' => self.open_flow(TokenKind::FlowMapping),
            b']' => self.close_flow(TokenKind::FlowSequenceEnd),
            b'}' => self.close_flow(TokenKind::FlowMappingEnd),
            b',' => {
                self.drop_simple_key()?;
                self.key_allowed = true;
                self.advance();
                self.push(TokenKind::FlowEntry, start);
                Ok(())
            }
            b'-' if self.is_blank_or_end(1) => self.block_entry(),
            // Inside brackets, libyaml requires no space after `?` and `:`.
            b'?' if !in_block || self.is_blank_or_end(1) => self.key(),
            b':' if !in_block || self.is_blank_or_end(1) => self.value(),
            b'*' | b'&' => {
                self.save_simple_key()?;
                self.key_allowed = false;
                let kind = self.anchor(b)?;
                self.push(kind, start);
                Ok(())
            }
            b'!' => {
                self.save_simple_key()?;
                self.key_allowed = false;
                let kind = self.tag()?;
                self.push(kind, start);
                Ok(())
            }
            b'|' | b'>' if in_block => {
                self.drop_simple_key()?;
                self.key_allowed = true;
                let value = self.block_scalar(b == b'|')?;
                self.push_scalar(value, Style::Other, start);
                Ok(())
            }
            b'\'' | b'"' => {
                self.save_simple_key()?;
                self.key_allowed = false;
                let value = self.quoted_scalar(b)?;
                self.push_scalar(value, Style::Other, start);
                Ok(())
            }
            _ if self.begins_plain(b) => {
                self.save_simple_key()?;
                self.key_allowed = false;
                let value = self.plain_scalar()?;
                self.push_scalar(value, Style::Plain, start);
                Ok(())
            }
            _ => Err(self.problem(self.mark, "found character that cannot start any token")),
        }
    }

    fn push_scalar(&mut self, value: Cow<'a, str>, style: Style, start: Mark) {
        self.push(TokenKind::ResolvedScalar { value, style }, start);
    }

    fn begins_plain(&self, b: u8) -> bool {
        match b {
            b'-' => !matches!(self.byte(1), Some(b' ' | b'\t')),
            b'?' | b':' => self.flow_depth == 0 && !self.is_blank_or_end(1),
            b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\'' | b'"'
            | b'%' | b'@' | b'`' => false,
            _ => !self.is_blank_or_end(0),
        }
    }

    /// Closes all blocks before a directive or a document.
    fn leave_blocks(&mut self) -> Result<(), Problem> {
        self.close_blocks(-1);
        self.drop_simple_key()?;
        self.key_allowed = false;
        Ok(())
    }

    fn end_of_stream(&mut self) -> Result<(), Problem> {
        // libyaml ends the last line even if it has no break, which shows in the positions of errors.
        if self.mark.column != 0 {
            self.mark.column = 0;
            self.mark.line += 1;
        }
        self.leave_blocks()?;
        self.push(TokenKind::StreamEnd, self.mark);
        Ok(())
    }

    fn open_flow(&mut self, kind: TokenKind<'a>) -> Result<(), Problem> {
        self.save_simple_key()?;
        self.simple_keys.push(SimpleKey {
            token: self.taken + self.queue.len(),
            mark: self.mark,
            ..SimpleKey::default()
        });
        self.flow_depth += 1;
        if self.flow_depth > self.limits.depth {
            return Err(self.too_deep());
        }
        self.key_allowed = true;
        let start = self.mark;
        self.advance();
        self.push(kind, start);
        Ok(())
    }

    fn close_flow(&mut self, kind: TokenKind<'a>) -> Result<(), Problem> {
        self.drop_simple_key()?;
        if self.flow_depth > 0 {
            self.flow_depth -= 1;
            let inner = self.simple_keys.pop();
            if let (Some(inner), Some(outer)) = (inner, self.simple_keys.last_mut())
                && inner.token == outer.token
            {
                outer.awaited = false;
            }
        }
        self.key_allowed = false;
        let start = self.mark;
        self.advance();
        self.push(kind, start);
        Ok(())
    }

    fn block_entry(&mut self) -> Result<(), Problem> {
        if self.flow_depth == 0 {
            if !self.key_allowed {
                let text = "block sequence entries are not allowed in this context";
                return Err(self.problem(self.mark, text));
            }
            self.open_block(self.column(), None, TokenKind::BlockSequence, self.mark)?;
        }
        self.drop_simple_key()?;
        self.key_allowed = true;
        let start = self.mark;
        self.advance();
        self.push(TokenKind::BlockEntry, start);
        Ok(())
    }

    /// Scans `?` before a key.
    fn key(&mut self) -> Result<(), Problem> {
        if self.flow_depth == 0 {
            if !self.key_allowed {
                return Err(self.problem(self.mark, "mapping keys are not allowed in this context"));
            }
            self.open_block(self.column(), None, TokenKind::BlockMapping, self.mark)?;
        }
        self.drop_simple_key()?;
        self.key_allowed = self.flow_depth == 0;
        let start = self.mark;
        self.advance();
        self.push(TokenKind::Key, start);
        Ok(())
    }

    /// Scans `:` after a key.
    fn value(&mut self) -> Result<(), Problem> {
        let level = self.simple_keys.len() - 1;
        if self.is_valid(level)?
            && let Some(c) = self.simple_keys.get_mut(level)
        {
            c.possible = false;
            let SimpleKey { token, mark, .. } = *c;
            let key = YamlToken {
                kind: TokenKind::Key,
                start: mark,
                end: mark,
            };
            self.insert(Some(token), key);
            let column = isize::try_from(mark.column).unwrap_or(isize::MAX);
            self.open_block(column, Some(token), TokenKind::BlockMapping, mark)?;
            self.key_allowed = false;
        } else {
            if self.flow_depth == 0 {
                if !self.key_allowed {
                    return Err(self.problem(self.mark, "mapping values are not allowed in this context"));
                }
                self.open_block(self.column(), None, TokenKind::BlockMapping, self.mark)?;
            }
            self.key_allowed = self.flow_depth == 0;
        }
        let start = self.mark;
        self.advance();
        self.push(TokenKind::Value, start);
        Ok(())
    }

    /// Skips spaces, comments and line breaks.
    fn skip_to_token(&mut self) {
        loop {
            loop {
                match self.byte(0) {
                    Some(b' ') => self.advance(),
                    // A tab before a key would hide the column of the key.
                    Some(b'\t') if self.flow_depth > 0 || !self.key_allowed => self.advance(),
                    _ => break,
                }
            }
            if self.byte(0) == Some(b'#') {
                self.skip_line_rest();
            }
            if self.break_width(0) == 0 {
                return;
            }
            self.skip_break();
            if self.flow_depth == 0 {
                self.key_allowed = true;
            }
        }
    }
}

/// Character access.
impl<'a> Scanner<'a> {
    /// The byte at an offset from the current position.
    #[inline]
    pub(super) fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// Advances past one character that is not a line break.
    #[inline]
    pub(super) fn advance(&mut self) {
        // The text is valid UTF-8, so the first byte gives the width.
        let width = match self.byte(0) {
            None => return,
            Some(..0x80) => 1,
            Some(..0xe0) => 2,
            Some(..0xf0) => 3,
            Some(_) => 4,
        };
        self.at += width;
        self.mark.index += 1;
        self.mark.column += 1;
    }

    /// Advances past `count` ASCII characters.
    pub(super) fn advance_ascii(&mut self, count: usize) {
        self.at += count;
        self.mark.index += count;
        self.mark.column += count;
    }

    /// The length of the line break at an offset from the current position; 0 if there is none. NEL, LS and
    /// PS are line breaks, too.
    #[inline]
    pub(super) fn break_width(&self, ahead: usize) -> usize {
        match self.byte(ahead) {
            Some(b'\n') => 1,
            Some(b'\r') if self.byte(ahead + 1) == Some(b'\n') => 2,
            Some(b'\r') => 1,
            Some(0xc2) if self.byte(ahead + 1) == Some(0x85) => 2,
            Some(0xe2) if self.byte(ahead + 1) == Some(0x80) => match self.byte(ahead + 2) {
                Some(0xa8 | 0xa9) => 3,
                _ => 0,
            },
            _ => 0,
        }
    }

    pub(super) fn is_blank(&self, ahead: usize) -> bool {
        matches!(self.byte(ahead), Some(b' ' | b'\t'))
    }

    pub(super) fn is_break_or_end(&self, ahead: usize) -> bool {
        self.byte(ahead).is_none() || self.break_width(ahead) > 0
    }

    #[inline]
    pub(super) fn is_blank_or_end(&self, ahead: usize) -> bool {
        self.is_blank(ahead) || self.is_break_or_end(ahead)
    }

    /// Returns whether `---` or `...` begins the current line and is followed by a space or a break.
    pub(super) fn at_document_indicator(&self) -> bool {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.mark.column == 0
            && (rest.starts_with(b"---") || rest.starts_with(b"..."))
            && self.is_blank_or_end(3)
    }

    /// Advances past the rest of a line, which may hold only a comment.
    pub(super) fn end_line(&mut self, start: Mark) -> Result<(), Problem> {
        self.skip_blanks();
        if self.byte(0) == Some(b'#') {
            self.skip_line_rest();
        }
        if !self.is_break_or_end(0) {
            return Err(self.problem(start, "did not find expected comment or line break"));
        }
        self.skip_break();
        Ok(())
    }

    pub(super) fn skip_line_rest(&mut self) {
        while !self.is_break_or_end(0) {
            self.advance();
        }
    }

    pub(super) fn skip_blanks(&mut self) {
        while self.is_blank(0) {
            self.advance();
        }
    }

    /// Advances past a line break.
    pub(super) fn skip_break(&mut self) {
        let width = self.break_width(0);
        if width == 0 {
            return;
        }
        // libyaml counts CR LF as two characters and every other break as one.
        self.mark.index += if self.byte(0) == Some(b'\r') { width } else { 1 };
        self.at += width;
        self.mark.column = 0;
        self.mark.line += 1;
    }

    /// Advances past a line break and appends it. All breaks but LS and PS are read as LF.
    pub(super) fn read_break(&mut self, out: &mut String) {
        match (self.break_width(0), self.byte(2)) {
            (0, _) => return,
            (3, Some(0xa8)) => out.push('\u{2028}'),
            (3, _) => out.push('\u{2029}'),
            _ => out.push('\n'),
        }
        self.skip_break();
    }

    /// The text from `start` to the current position.
    pub(super) fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }
}
