//! The fast path: documents as people and tools write them, read in one pass.
//!
//! It reads block mappings and sequences, scalars of all styles, and flow collections. At an anchor, an alias, a tag, a
//! directive, a tab, a key that is not a string, and at anything that is wrong, it gives up: the scanner then reads the
//! text, and words the errors.

use super::resolve::non_string;
use super::scan::{MAX_KEY_LENGTH, Style};
use crate::Limits;
use std::borrow::Cow;

/// Deeper documents are left to the scanner.
const MAX_DEPTH: usize = 100;

/// A place in the text: line and column from zero, the column in characters.
pub(super) type Place = (usize, usize);

/// Receives the nodes of a document in the order of the text.
pub(super) trait Builder {
    /// A node that has been read.
    type Node;
    /// A key whose value is read next.
    type Key;
    /// A mapping or sequence that is being read.
    type Frame;
    /// True if the builder records places.
    const PLACES: bool;

    /// Takes the place of the document's first node.
    fn root(&mut self, _: Place) {}
    fn open(&mut self) -> Self::Frame;
    fn begin_member(&mut self, key: Cow<'_, str>, at: Place) -> Self::Key;
    fn member(&mut self, key: Self::Key, value: Self::Node);
    /// Ends a mapping; `None` gives up.
    fn mapping(&mut self, frame: Self::Frame) -> Option<Self::Node>;
    fn begin_element(&mut self, frame: &mut Self::Frame, at: Place);
    fn element(&mut self, value: Self::Node);
    fn sequence(&mut self, frame: Self::Frame) -> Self::Node;
    /// Takes a scalar; `None` gives up.
    fn scalar(&mut self, text: Cow<'_, str>, style: Style) -> Option<Self::Node>;
}

/// Reads the only document of a text, or gives up. The text consists of characters that YAML allows.
pub(super) fn read<B: Builder>(text: &str, limits: Limits, builder: &mut B) -> Option<B::Node> {
    // Other line breaks than LF, and a byte order mark.
    let has_breaks = || {
        ['\u{85}', '\u{2028}', '\u{2029}']
            .iter()
            .any(|c| text.contains(*c))
    };
    if text.contains('\r') || (!text.is_ascii() && (has_breaks() || text.starts_with('\u{feff}'))) {
        return None;
    }
    let mut reader = FastReader {
        text,
        bytes: text.as_bytes(),
        at: 0,
        line: 0,
        line_start: 0,
        counted: (0, 0),
        level: 0,
        started: false,
        // The reader recurses, so its depth is bounded whatever the caller accepts.
        depth: limits.depth.min(MAX_DEPTH),
        builder,
    };
    reader.next_line()?;
    if reader.level == 0 {
        return None;
    }
    let place = reader.place(reader.at);
    reader.builder.root(place);
    let root = reader.block(0)?;
    // Content after the root node is a second document or an error.
    (reader.level == 0).then_some(root)
}

struct FastReader<'t, 'b, B> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    /// The number of the current line, and where it begins.
    line: usize,
    line_start: usize,
    /// An offset whose column is known, and that column.
    counted: (usize, usize),
    /// The column of the first character of the current line, from 1; 0 at the end of the text.
    level: usize,
    /// True if the document has begun.
    started: bool,
    /// The number of levels that may still be opened.
    depth: usize,
    builder: &'b mut B,
}

/// A key, before its colon.
struct ScannedKey<'t> {
    text: Cow<'t, str>,
    place: Place,
}

impl<'t, B: Builder> FastReader<'t, '_, B> {
    fn byte(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn byte_at(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    fn slice(&self, from: usize, to: usize) -> &'t str {
        self.text.get(from..to).unwrap_or_default()
    }

    /// Where the current line ends: at its break, or at the end of the text.
    fn line_end(&self, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        memchr::memchr(b'\n', rest).map_or(self.bytes.len(), |n| from + n)
    }

    /// Moves to the beginning of the line after the one that ends at `end`.
    fn start_line(&mut self, end: usize) {
        self.at = self.bytes.len().min(end + 1);
        if end < self.bytes.len() {
            self.line += 1;
        }
        self.line_start = self.at;
    }

    /// The place of an offset in the current line. Offsets ascend, so that each character is counted once.
    fn place(&mut self, at: usize) -> Place {
        if !B::PLACES {
            return (0, 0);
        }
        let (from, column) = match self.counted {
            (from, column) if (self.line_start..=at).contains(&from) => (from, column),
            _ => (self.line_start, 0),
        };
        self.counted = (at, column + self.slice(from, at).chars().count());
        (self.line, self.counted.1)
    }

    fn spaces(&self, from: usize) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        rest.iter().take_while(|b| **b == b' ').count()
    }

    fn skip_spaces(&mut self) {
        self.at += self.spaces(self.at);
    }

    /// Returns whether a line may begin with `---`, `...` or a directive.
    fn is_marker(&self, line_start: usize) -> bool {
        let rest = self.bytes.get(line_start..).unwrap_or_default();
        rest.starts_with(b"---") || rest.starts_with(b"...") || rest.starts_with(b"%")
    }

    /// Moves from the beginning of a line to the first character of the next line with content.
    fn next_line(&mut self) -> Option<()> {
        loop {
            let first = self.at + self.spaces(self.at);
            match self.byte_at(first) {
                None => {
                    (self.at, self.level) = (first, 0);
                    return Some(());
                }
                Some(b'\n') => self.start_line(first),
                Some(b'#') => {
                    let end = self.line_end(first);
                    self.start_line(end);
                }
                Some(b'\t') => return None,
                Some(_) if first == self.at && self.is_marker(first) => {
                    let end = self.line_end(first);
                    let line = self.slice(first, end).strip_prefix("---")?;
                    let is_separator = line.is_empty() || line.starts_with(' ');
                    let rest = line.trim_start_matches(' ');
                    // A second document, or a node on the line of the separator, is left to the scanner.
                    if self.started || !is_separator || !(rest.is_empty() || rest.starts_with('#')) {
                        return None;
                    }
                    self.started = true;
                    self.start_line(end);
                }
                Some(_) => {
                    self.level = first - self.at + 1;
                    self.at = first;
                    self.started = true;
                    return Some(());
                }
            }
        }
    }

    /// Moves past the rest of a line that holds nothing more than a comment.
    fn end_line(&mut self) -> Option<()> {
        let first = self.at + self.spaces(self.at);
        match self.byte_at(first) {
            None | Some(b'\n') => self.start_line(first),
            Some(b'#') if first > self.at => {
                let end = self.line_end(first);
                self.start_line(end);
            }
            Some(_) => return None,
        }
        self.next_line()
    }

    /// Returns whether an entry of a block sequence begins here.
    fn at_dash(&self) -> bool {
        self.byte() == Some(b'-') && matches!(self.byte_at(self.at + 1), None | Some(b' ' | b'\n'))
    }

    fn enter(&mut self) -> Option<()> {
        self.depth = self.depth.checked_sub(1)?;
        Some(())
    }

    /// A node that begins on a line of its own, inside of a block of the level `parent`.
    fn block(&mut self, parent: usize) -> Option<B::Node> {
        if self.at_dash() {
            return self.block_sequence(self.level, SequenceIndent::Own);
        }
        match self.key()? {
            Some(key) => self.block_mapping(self.level, key),
            None => self.inline(parent),
        }
    }

    fn block_mapping(&mut self, level: usize, first: ScannedKey<'t>) -> Option<B::Node> {
        self.enter()?;
        let frame = self.builder.open();
        let mut scanned = first;
        loop {
            let key = self.builder.begin_member(scanned.text, scanned.place);
            let value = self.block_value(level)?;
            self.builder.member(key, value);
            if self.level < level {
                break;
            }
            if self.level > level {
                return None;
            }
            scanned = self.key()??;
        }
        self.depth += 1;
        self.builder.mapping(frame)
    }

    /// The value after the colon of a key in a block mapping.
    fn block_value(&mut self, level: usize) -> Option<B::Node> {
        let first = self.at + self.spaces(self.at);
        match self.byte_at(first) {
            None | Some(b'\n' | b'#') => {
                self.end_line()?;
                if self.level > level {
                    self.block(level)
                } else if self.level == level && self.at_dash() {
                    self.block_sequence(level, SequenceIndent::OfParent)
                } else {
                    self.builder.scalar(Cow::Borrowed(""), Style::Plain)
                }
            }
            Some(_) => {
                self.at = first;
                self.inline(level)
            }
        }
    }

    fn block_sequence(&mut self, level: usize, indent: SequenceIndent) -> Option<B::Node> {
        self.enter()?;
        let mut frame = self.builder.open();
        loop {
            self.at += 1;
            let first = self.at + self.spaces(self.at);
            let value = match self.byte_at(first) {
                None | Some(b'\n' | b'#') => {
                    self.end_line()?;
                    if self.level <= level {
                        return None;
                    }
                    let place = self.place(self.at);
                    self.builder.begin_element(&mut frame, place);
                    self.block(level)?
                }
                Some(_) => {
                    self.at = first;
                    let inner = first - self.line_start + 1;
                    let place = self.place(first);
                    self.builder.begin_element(&mut frame, place);
                    if self.at_dash() {
                        self.block_sequence(inner, SequenceIndent::Own)?
                    } else {
                        match self.key()? {
                            Some(key) => self.block_mapping(inner, key)?,
                            None => self.inline(level)?,
                        }
                    }
                }
            };
            self.builder.element(value);
            if self.level < level {
                break;
            }
            if self.level > level {
                return None;
            }
            if !self.at_dash() {
                match indent {
                    SequenceIndent::Own => return None,
                    SequenceIndent::OfParent => break,
                }
            }
        }
        self.depth += 1;
        Some(self.builder.sequence(frame))
    }

    /// Reads a key and moves past its colon. Returns `Some(None)` and stays if there is none.
    fn key(&mut self) -> Option<Option<ScannedKey<'t>>> {
        let start = self.at;
        let place = self.place(start);
        let (text, colon) = match self.byte()? {
            quote @ (b'"' | b'\'') => {
                let Some((end, is_simple)) = self.closing_quote(start, quote) else {
                    return Some(None);
                };
                let colon = end + 1 + self.spaces(end + 1);
                if self.byte_at(colon) != Some(b':') {
                    return Some(None);
                }
                if !is_simple {
                    return None;
                }
                (self.slice(start + 1, end), colon)
            }
            _ if !self.begins_plain(start) => return Some(None),
            _ => {
                let Some(colon) = self.plain_key_end(start)? else {
                    return Some(None);
                };
                let text = self.slice(start, colon);
                // A key of another type becomes text in its own way, which the constructor knows.
                if non_string(text).is_some() || text.ends_with(' ') {
                    return None;
                }
                (text, colon)
            }
        };
        let is_colon = matches!(self.byte_at(colon + 1), None | Some(b' ' | b'\n'));
        if !is_colon || text == "<<" || colon - start > MAX_KEY_LENGTH {
            return None;
        }
        self.at = colon + 1;
        Some(Some(ScannedKey {
            text: Cow::Borrowed(text),
            place,
        }))
    }

    /// Finds the colon after a plain key; `Some(None)` if the line has none, `None` where a tab makes it doubtful.
    fn plain_key_end(&self, start: usize) -> Option<Option<usize>> {
        let rest = self.bytes.get(start..).unwrap_or_default();
        let mut previous = 0;
        for (n, b) in rest.iter().enumerate() {
            match b {
                b':' if matches!(rest.get(n + 1), None | Some(b' ' | b'\n')) => return Some(Some(start + n)),
                b'\n' => return Some(None),
                b'#' if previous == b' ' => return Some(None),
                b'\t' => return None,
                _ => {}
            }
            previous = *b;
        }
        Some(None)
    }

    /// Finds the quote on the same line that ends a scalar, and tells whether nothing in it is escaped.
    fn closing_quote(&self, start: usize, quote: u8) -> Option<(usize, bool)> {
        let (mut at, mut is_simple) = (start + 1, true);
        loop {
            match self.byte_at(at)? {
                b'\n' => return None,
                b'\\' if quote == b'"' => {
                    is_simple = false;
                    at += 1;
                }
                b if b == quote => {
                    if quote == b'"' || self.byte_at(at + 1) != Some(quote) {
                        return Some((at, is_simple));
                    }
                    is_simple = false;
                    at += 1;
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Returns whether a plain scalar begins here. Some that do are left to the scanner.
    fn begins_plain(&self, at: usize) -> bool {
        match self.byte_at(at) {
            Some(b'-') => !matches!(self.byte_at(at + 1), None | Some(b' ' | b'\t' | b'\n')),
            Some(
                b'?' | b':' | b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>'
                | b'\'' | b'"' | b'%' | b'@' | b'`' | b' ' | b'\t' | b'\n',
            )
            | None => false,
            Some(_) => true,
        }
    }

    /// A scalar or flow collection that begins in a line; `level` is that of the block around it.
    fn inline(&mut self, level: usize) -> Option<B::Node> {
        match self.byte()? {
            b'[' | b'{' => {
                let node = self.flow()?;
                self.end_line()?;
                Some(node)
            }
            // A document that is a scalar.
            _ if level == 0 => None,
            quote @ (b'"' | b'\'') => {
                let text = self.quoted(quote)?;
                self.end_line()?;
                self.builder.scalar(text, Style::Other)
            }
            style @ (b'|' | b'>') => {
                let text = self.block_scalar(level, style == b'|')?;
                self.next_line()?;
                self.builder.scalar(text, Style::Other)
            }
            _ if self.begins_plain(self.at) => {
                let text = self.plain(level)?;
                self.builder.scalar(text, Style::Plain)
            }
            _ => None,
        }
    }

    /// A plain scalar in a block. Its further lines are further right than the block.
    fn plain(&mut self, level: usize) -> Option<Cow<'t, str>> {
        let mut text: Option<String> = None;
        loop {
            let line_end = self.line_end(self.at);
            let (end, has_comment) = self.plain_end(line_end)?;
            let part = self.slice(self.at, end);
            let first = match &mut text {
                Some(text) => {
                    text.push_str(part);
                    None
                }
                None => Some(part),
            };
            self.start_line(line_end);
            let folded = if has_comment {
                None
            } else {
                self.continuation(level)?
            };
            let Some(breaks) = folded else {
                self.next_line()?;
                return Some(match (text, first) {
                    (Some(text), _) => Cow::Owned(text),
                    (None, part) => Cow::Borrowed(part.unwrap_or_default()),
                });
            };
            fold(
                text.get_or_insert_with(|| first.unwrap_or_default().to_owned()),
                breaks,
            );
        }
    }

    /// Where the text of a plain scalar ends on a line, and whether a comment follows.
    fn plain_end(&self, line_end: usize) -> Option<(usize, bool)> {
        let line = self.bytes.get(self.at..line_end)?;
        let (mut end, mut has_comment) = (line.len(), false);
        for (n, b) in line.iter().enumerate() {
            match b {
                // A second colon is an error in a block, as in `a: b: c`.
                b':' if matches!(line.get(n + 1), None | Some(b' ' | b'\t')) => return None,
                b'\t' => return None,
                b'#' if n > 0 && line.get(n - 1) == Some(&b' ') => {
                    (end, has_comment) = (n, true);
                    break;
                }
                _ => {}
            }
        }
        let text = line.get(..end)?.trim_ascii_end();
        Some((self.at + text.len(), has_comment))
    }

    /// Moves to the next line of a plain scalar and returns the number of breaks before it; `Some(None)` if the scalar has
    /// ended.
    fn continuation(&mut self, level: usize) -> Option<Option<usize>> {
        let (mut at, mut breaks) = (self.at, 1);
        loop {
            let first = at + self.spaces(at);
            match self.byte_at(first) {
                Some(b'\n') => {
                    at = first + 1;
                    breaks += 1;
                }
                Some(b'\t') => return None,
                Some(b) if b != b'#' && first - at + 1 > level => {
                    self.line += breaks - 1;
                    self.line_start = at;
                    self.at = first;
                    return Some(Some(breaks));
                }
                _ => return Some(None),
            }
        }
    }

    /// A scalar in quotes, which may have several lines.
    fn quoted(&mut self, quote: u8) -> Option<Cow<'t, str>> {
        let start = self.at + 1;
        if let Some((end, true)) = self.closing_quote(self.at, quote) {
            self.at = end + 1;
            return Some(Cow::Borrowed(self.slice(start, end)));
        }
        let mut out = String::new();
        // The text from `from` to `at` has not been copied yet.
        let (mut from, mut at) = (start, start);
        loop {
            let b = self.byte_at(at)?;
            match b {
                b'\n' => {
                    out.push_str(self.slice(from, at).trim_end_matches(' '));
                    let mut breaks = 0;
                    while self.byte_at(at) == Some(b'\n') {
                        breaks += 1;
                        self.start_line(at);
                        at = self.at + self.spaces(self.at);
                    }
                    if self.byte_at(at) == Some(b'\t') || (at == self.at && self.is_marker(at)) {
                        return None;
                    }
                    fold(&mut out, breaks);
                    from = at;
                }
                b'\t' => return None,
                b'\\' if quote == b'"' => {
                    out.push_str(self.slice(from, at));
                    out.push(match self.byte_at(at + 1)? {
                        b @ (b'"' | b'\\' | b'\'') => char::from(b),
                        b'n' => '\n',
                        b't' => '\t',
                        b'r' => '\r',
                        _ => return None,
                    });
                    at += 2;
                    from = at;
                }
                b if b == quote => {
                    out.push_str(self.slice(from, at));
                    if quote == b'"' || self.byte_at(at + 1) != Some(quote) {
                        self.at = at + 1;
                        return Some(Cow::Owned(out));
                    }
                    out.push('\'');
                    at += 2;
                    from = at;
                }
                _ => at += 1,
            }
        }
    }

    /// A scalar after `|` or `>`, up to the beginning of the line after it.
    fn block_scalar(&mut self, level: usize, literal: bool) -> Option<Cow<'t, str>> {
        let end = self.line_end(self.at);
        let header = self.slice(self.at + 1, end).trim_end_matches(' ');
        self.start_line(end);
        // Empty lines in front.
        let (mut breaks, mut widest) = (0, 0);
        let indent = loop {
            let spaces = self.spaces(self.at);
            match self.byte_at(self.at + spaces)? {
                b'\n' => {
                    widest = widest.max(spaces);
                    breaks += 1;
                    self.start_line(self.at + spaces);
                }
                b'\t' => return None,
                _ => break spaces,
            }
        };
        // In libyaml, a leading empty line that is wider than the text decides the indentation.
        if indent < level || widest > indent {
            return None;
        }
        let mut out = String::new();
        let (mut has_break, mut previous_blank) = (false, false);
        while self.spaces(self.at) >= indent && self.byte_at(self.at + indent).is_some() {
            let start = self.at + indent;
            let blank = matches!(self.byte_at(start), Some(b' ' | b'\t'));
            if has_break {
                match !literal && !previous_blank && !blank {
                    true if breaks == 0 => out.push(' '),
                    true => {}
                    false => out.push('\n'),
                }
            }
            out.extend(std::iter::repeat_n('\n', breaks));
            breaks = 0;
            previous_blank = blank;
            let end = self.line_end(start);
            out.push_str(self.slice(start, end));
            has_break = end < self.bytes.len();
            self.start_line(end);
            // Empty lines; those with more spaces than the indentation are content.
            loop {
                let spaces = self.spaces(self.at);
                match self.byte_at(self.at + spaces) {
                    Some(b'\n') if spaces <= indent => {
                        breaks += 1;
                        self.start_line(self.at + spaces);
                    }
                    Some(b'\t') if spaces < indent => return None,
                    _ => break,
                }
            }
        }
        let (clip, keep) = match header {
            "" => (has_break, false),
            "-" => (false, false),
            "+" => (has_break, true),
            _ => return None,
        };
        if clip {
            out.push('\n');
        }
        if keep {
            out.extend(std::iter::repeat_n('\n', breaks));
        }
        Some(Cow::Owned(out))
    }

    /// A collection in brackets.
    fn flow(&mut self) -> Option<B::Node> {
        self.enter()?;
        let is_mapping = self.byte() == Some(b'{');
        let closing = if is_mapping { b'}' } else { b']' };
        let mut frame = self.builder.open();
        self.at += 1;
        loop {
            if self.flow_space()? == closing {
                break;
            }
            if is_mapping {
                let key = self.flow_key()?;
                let key = self.builder.begin_member(key.text, key.place);
                let value = self.flow_node()?;
                self.builder.member(key, value);
            } else {
                let place = self.place(self.at);
                self.builder.begin_element(&mut frame, place);
                let value = self.flow_node()?;
                self.builder.element(value);
            }
            match self.flow_space()? {
                b',' => self.at += 1,
                b if b == closing => break,
                _ => return None,
            }
        }
        self.at += 1;
        self.depth += 1;
        match is_mapping {
            true => self.builder.mapping(frame),
            false => Some(self.builder.sequence(frame)),
        }
    }

    /// Moves to the next token in brackets and returns its first byte.
    fn flow_space(&mut self) -> Option<u8> {
        loop {
            self.skip_spaces();
            match self.byte()? {
                b'\n' => {
                    self.start_line(self.at);
                    if self.is_marker(self.at) {
                        return None;
                    }
                }
                b'\t' | b'#' => return None,
                b => return Some(b),
            }
        }
    }

    /// Reads a key in brackets and moves past its colon to its value.
    fn flow_key(&mut self) -> Option<ScannedKey<'t>> {
        let start = self.at;
        let place = self.place(start);
        let text = match self.byte()? {
            quote @ (b'"' | b'\'') => {
                let (end, is_simple) = self.closing_quote(start, quote)?;
                self.at = end + 1;
                is_simple.then(|| self.slice(start + 1, end))?
            }
            _ => {
                let text = self.flow_plain()?;
                non_string(text).is_none().then_some(text)?
            }
        };
        self.skip_spaces();
        if self.byte()? != b':' || text == "<<" || self.at - start > MAX_KEY_LENGTH {
            return None;
        }
        self.at += 1;
        self.flow_space()?;
        Some(ScannedKey {
            text: Cow::Borrowed(text),
            place,
        })
    }

    fn flow_node(&mut self) -> Option<B::Node> {
        match self.byte()? {
            b'[' | b'{' => self.flow(),
            quote @ (b'"' | b'\'') => {
                let text = self.quoted(quote)?;
                self.builder.scalar(text, Style::Other)
            }
            _ => {
                let text = self.flow_plain()?;
                self.builder.scalar(Cow::Borrowed(text), Style::Plain)
            }
        }
    }

    /// A plain scalar in brackets that ends on its line.
    fn flow_plain(&mut self) -> Option<&'t str> {
        let start = self.at;
        if !self.begins_plain(start) {
            return None;
        }
        loop {
            match self.byte()? {
                b',' | b'[' | b']' | b'{' | b'}' => break,
                b':' if matches!(self.byte_at(self.at + 1), None | Some(b' ' | b'\n')) => break,
                b'\n' => {
                    let rest = self.bytes.get(self.at..).unwrap_or_default();
                    // A scalar that continues on the next line is left to the scanner.
                    match rest.trim_ascii_start().first() {
                        Some(b',' | b']' | b'}') => break,
                        _ => return None,
                    }
                }
                b'?' | b'\t' | b'#' => return None,
                _ => self.at += 1,
            }
        }
        Some(self.slice(start, self.at).trim_end_matches(' '))
    }
}

/// The indentation of a block sequence.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SequenceIndent {
    /// Further right than the block around it.
    Own,
    /// That of the key whose value the sequence is.
    OfParent,
}

/// Appends line breaks folded: one is a space, more are one break less.
fn fold(out: &mut String, breaks: usize) {
    match breaks {
        1 => out.push(' '),
        _ => out.extend(std::iter::repeat_n('\n', breaks - 1)),
    }
}
