//! The parser for Go's syntax.

use super::class::{self, LetterCase};
use super::{ErrorCode, PatternError};
use regex_syntax::hir::{Class, ClassUnicode, Dot, Hir, Look, Repetition};

/// The maximum product of nested counted repetitions.
const MAX_REPEAT: u32 = 1000;
/// The maximum height of the tree, including capturing groups.
const MAX_HEIGHT: u32 = 1000;
/// The maximum depth of the HIR, without groups: the engine recurses over it.
const MAX_DEPTH: u32 = 250;

/// The flags `i`, `m`, `s` and `U`.
#[derive(Clone, Copy)]
struct Flags {
    case: LetterCase,
    multi_line: bool,
    dot_matches_newline: bool,
    swap_greed: bool,
}

/// A part of the tree, with the measures that limits apply to.
struct Fragment {
    hir: Hir,
    /// The product of the counted repetitions within.
    repeats: u32,
    height: u32,
    depth: u32,
}

impl Fragment {
    fn leaf(hir: Hir) -> Self {
        Self {
            hir,
            repeats: 1,
            height: 1,
            depth: 1,
        }
    }

    fn is_too_deep(&self) -> bool {
        self.height > MAX_HEIGHT || self.depth > MAX_DEPTH
    }

    /// Combines fragments; a single one is returned unchanged.
    fn combine(nodes: Vec<Fragment>, join: fn(Vec<Hir>) -> Hir) -> Self {
        let repeats = nodes.iter().map(|n| n.repeats).max().unwrap_or(1);
        let level = u32::from(nodes.len() != 1);
        let height = nodes.iter().map(|n| n.height).max().unwrap_or(0) + level;
        let depth = nodes.iter().map(|n| n.depth).max().unwrap_or(0) + level;
        let hir = join(nodes.into_iter().map(|n| n.hir).collect());
        Self {
            hir,
            repeats,
            height,
            depth,
        }
    }
}

/// An open group: its complete alternatives and the current sequence.
struct Group {
    alternatives: Vec<Fragment>,
    sequence: Vec<Fragment>,
    /// True if the group captures and thus adds to the height.
    captures: bool,
    /// The flags of the enclosing group.
    outer: Flags,
}

impl Group {
    fn new(captures: bool, outer: Flags) -> Self {
        Self {
            alternatives: Vec::new(),
            sequence: Vec::new(),
            captures,
            outer,
        }
    }

    fn next_alternative(&mut self) {
        let sequence = std::mem::take(&mut self.sequence);
        self.alternatives.push(Fragment::combine(sequence, Hir::concat));
    }

    fn close(mut self) -> Fragment {
        self.next_alternative();
        let mut node = Fragment::combine(self.alternatives, Hir::alternation);
        node.height += u32::from(self.captures);
        node
    }
}

struct RegexParser<'p> {
    pattern: &'p str,
    rest: &'p str,
    flags: Flags,
    /// The enclosing groups of the current one.
    groups: Vec<Group>,
    current: Group,
}

pub(super) fn parse(pattern: &str) -> Result<Hir, PatternError> {
    let flags = Flags {
        case: LetterCase::Sensitive,
        multi_line: false,
        dot_matches_newline: false,
        swap_greed: false,
    };
    let mut parser = RegexParser {
        pattern,
        rest: pattern,
        flags,
        groups: Vec::new(),
        current: Group::new(false, flags),
    };
    let mut last_repeat = None;
    while let Some(c) = parser.rest.chars().next() {
        last_repeat = parser.item(c, last_repeat)?;
    }
    if !parser.groups.is_empty() {
        return fail(ErrorCode::MissingParen, pattern);
    }
    let root = parser.current.close();
    if root.is_too_deep() {
        return fail(ErrorCode::NestingDepth, pattern);
    }
    Ok(root.hir)
}

fn fail<T>(code: ErrorCode, at: &str) -> Result<T, PatternError> {
    Err(PatternError {
        code,
        at: at.to_owned(),
    })
}

/// The part of `from` before its suffix `to`.
fn up_to<'p>(from: &'p str, to: &str) -> &'p str {
    from.get(..from.len() - to.len()).unwrap_or(from)
}

fn skip(text: &str, n: usize) -> &str {
    text.get(n..).unwrap_or("")
}

impl<'p> RegexParser<'p> {
    /// Parses one item. Returns its start if it is a repetition operator, which must not follow another one.
    fn item(&mut self, c: char, last_repeat: Option<&'p str>) -> Result<Option<&'p str>, PatternError> {
        let start = self.rest;
        let after = skip(start, c.len_utf8());
        self.rest = after;
        match c {
            '(' if after.starts_with('?') => self.open_flags(start)?,
            '(' => self.open(true, self.flags),
            '|' => self.current.next_alternative(),
            ')' => self.close()?,
            '^' if self.flags.multi_line => self.push_look(Look::StartLF),
            '^' => self.push_look(Look::Start),
            '$' if self.flags.multi_line => self.push_look(Look::EndLF),
            '$' => self.push_look(Look::End),
            '.' if self.flags.dot_matches_newline => self.push(Hir::dot(Dot::AnyChar)),
            '.' => self.push(Hir::dot(Dot::AnyCharExceptLF)),
            '[' => self.bracket(start)?,
            '*' => return self.repeat(start, last_repeat, 0, None, false),
            '+' => return self.repeat(start, last_repeat, 1, None, false),
            '?' => return self.repeat(start, last_repeat, 0, Some(1), false),
            '{' => match count(start) {
                None => self.literal(u32::from(c)),
                Some((counts, after)) => {
                    self.rest = after;
                    let Some((min, max)) = counts else {
                        return fail(ErrorCode::RepeatSize, up_to(start, after));
                    };
                    return self.repeat(start, last_repeat, min, max, true);
                }
            },
            '\\' => self.escape(start)?,
            _ => self.literal(u32::from(c)),
        }
        Ok(None)
    }

    fn push(&mut self, hir: Hir) {
        self.current.sequence.push(Fragment::leaf(hir));
    }

    fn push_class(&mut self, class: ClassUnicode) {
        self.push(Hir::class(Class::Unicode(class)));
    }

    fn push_look(&mut self, look: Look) {
        self.push(Hir::look(look));
    }

    fn literal(&mut self, code_point: u32) {
        // With `i`, a character matches in several forms. `Hir::class` turns a class of one into a literal.
        self.push_class(class::range(code_point, code_point, self.flags.case));
    }

    fn open(&mut self, captures: bool, outer: Flags) {
        let group = Group::new(captures, outer);
        self.groups.push(std::mem::replace(&mut self.current, group));
    }

    fn close(&mut self) -> Result<(), PatternError> {
        let Some(outer) = self.groups.pop() else {
            return fail(ErrorCode::UnexpectedParen, self.pattern);
        };
        let group = std::mem::replace(&mut self.current, outer);
        self.flags = group.outer;
        let node = group.close();
        if node.is_too_deep() {
            return fail(ErrorCode::NestingDepth, self.pattern);
        }
        self.current.sequence.push(node);
        Ok(())
    }

    fn repeat(
        &mut self,
        start: &'p str,
        last_repeat: Option<&'p str>,
        min: u32,
        max: Option<u32>,
        counted: bool,
    ) -> Result<Option<&'p str>, PatternError> {
        let mut greedy = !self.flags.swap_greed;
        if let Some(after) = self.rest.strip_prefix('?') {
            self.rest = after;
            greedy = !greedy;
        }
        // Go reports a repeated operator before a missing operand.
        if let Some(last) = last_repeat {
            return fail(ErrorCode::RepeatOp, up_to(last, self.rest));
        }
        let Some(sub) = self.current.sequence.pop() else {
            return fail(ErrorCode::MissingRepeatArgument, up_to(start, self.rest));
        };
        let times = if counted { max.unwrap_or(min) } else { 1 };
        let repeats = if times == 0 {
            1
        } else {
            sub.repeats.saturating_mul(times)
        };
        if counted && times >= 2 && repeats > MAX_REPEAT {
            return fail(ErrorCode::RepeatSize, up_to(start, self.rest));
        }
        let hir = Hir::repetition(Repetition {
            min,
            max,
            greedy,
            sub: Box::new(sub.hir),
        });
        let node = Fragment {
            hir,
            repeats,
            height: sub.height + 1,
            depth: sub.depth + 1,
        };
        if node.is_too_deep() {
            return fail(ErrorCode::NestingDepth, self.pattern);
        }
        self.current.sequence.push(node);
        Ok(Some(start))
    }

    /// Parses `(?…`: a named group, a group with flags, or flags for the rest of the enclosing group.
    fn open_flags(&mut self, start: &'p str) -> Result<(), PatternError> {
        // Go requires something after the angle bracket; without it, the error is another one.
        let named = (start.len() > 4).then(|| start.strip_prefix("(?P<")).flatten();
        let named = named.or_else(|| (start.len() > 3).then(|| start.strip_prefix("(?<")).flatten());
        if let Some(named) = named {
            let Some((name, after)) = named.split_once('>') else {
                return fail(ErrorCode::NamedCapture, start);
            };
            if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
                return fail(ErrorCode::NamedCapture, up_to(start, after));
            }
            self.open(true, self.flags);
            self.rest = after;
            return Ok(());
        }
        let mut flags = self.flags;
        let mut on = true;
        let mut any = true;
        let mut chars = skip(start, 2).chars();
        while let Some(c) = chars.next() {
            match c {
                'i' => {
                    flags.case = if on {
                        LetterCase::Folded
                    } else {
                        LetterCase::Sensitive
                    }
                }
                'm' => flags.multi_line = on,
                's' => flags.dot_matches_newline = on,
                'U' => flags.swap_greed = on,
                '-' if on => {
                    (on, any) = (false, false);
                    continue;
                }
                ':' | ')' if any => {
                    self.rest = chars.as_str();
                    if c == ':' {
                        self.open(false, self.flags);
                    }
                    self.flags = flags;
                    return Ok(());
                }
                _ => return fail(ErrorCode::PerlOp, up_to(start, chars.as_str())),
            }
            any = true;
        }
        fail(ErrorCode::PerlOp, start)
    }

    fn escape(&mut self, start: &'p str) -> Result<(), PatternError> {
        let letter = skip(start, 1).chars().next();
        self.rest = skip(start, 1 + letter.map_or(0, char::len_utf8));
        match letter {
            Some('A') => self.push_look(Look::Start),
            Some('b') => self.push_look(Look::WordAscii),
            Some('B') => self.push_look(Look::WordAsciiNegate),
            Some('z') => self.push_look(Look::End),
            // In RE2 it matches a single byte, which Go does not support.
            Some('C') => return fail(ErrorCode::Escape, up_to(start, self.rest)),
            Some('Q') => {
                // Without `\E`, the literal text reaches to the end of the pattern.
                let (text, after) = self.rest.split_once("\\E").unwrap_or((self.rest, ""));
                self.rest = after;
                text.chars().for_each(|c| self.literal(u32::from(c)));
            }
            Some(_) => match self.class_escape(start)? {
                Some((class, after)) => {
                    self.push_class(class);
                    self.rest = after;
                }
                None => {
                    let (code_point, after) = code_point(start)?;
                    self.literal(code_point);
                    self.rest = after;
                }
            },
            None => return fail(ErrorCode::TrailingBackslash, ""),
        }
        Ok(())
    }

    /// Parses an escape that denotes a class, if `start` is one.
    fn class_escape(&self, start: &'p str) -> Result<Option<(ClassUnicode, &'p str)>, PatternError> {
        let mut chars = start.chars();
        let (Some('\\'), Some(letter)) = (chars.next(), chars.next()) else {
            return Ok(None);
        };
        if !matches!(letter, 'p' | 'P') {
            return Ok(class::perl(letter, self.flags.case).map(|class| (class, chars.as_str())));
        }
        let named = chars.as_str();
        let (name, after) = match named.strip_prefix('{') {
            Some(named) => match named.split_once('}') {
                Some(parts) => parts,
                None => return fail(ErrorCode::CharRange, start),
            },
            None => {
                chars.next();
                (up_to(named, chars.as_str()), chars.as_str())
            }
        };
        match class::unicode(name, letter == 'P', self.flags.case) {
            Some(class) => Ok(Some((class, after))),
            None => fail(ErrorCode::CharRange, up_to(start, after)),
        }
    }

    /// Parses a bracketed class.
    fn bracket(&mut self, start: &'p str) -> Result<(), PatternError> {
        let (mut rest, negated) = match self.rest.strip_prefix('^') {
            Some(rest) => (rest, true),
            None => (self.rest, false),
        };
        let case = self.flags.case;
        let mut class = ClassUnicode::empty();
        let mut first = true;
        // A bracket in first place is a member of the class, not its end.
        while first || !rest.starts_with(']') {
            first = false;
            if let Some((name, after)) = rest.strip_prefix("[:").and_then(|named| named.split_once(":]")) {
                match class::posix(name, case) {
                    Some(named) => class.union(&named),
                    None => return fail(ErrorCode::CharRange, up_to(rest, after)),
                }
                rest = after;
                continue;
            }
            if let Some((escaped, after)) = self.class_escape(rest)? {
                class.union(&escaped);
                rest = after;
                continue;
            }
            let range = rest;
            let (lo, after) = class_char(rest, start)?;
            rest = after;
            let mut hi = lo;
            if let Some(after) = rest
                .strip_prefix('-')
                .filter(|after| !after.is_empty() && !after.starts_with(']'))
            {
                (hi, rest) = class_char(after, start)?;
                if hi < lo {
                    return fail(ErrorCode::CharRange, up_to(range, rest));
                }
            }
            class.union(&class::range(lo, hi, case));
        }
        if negated {
            class.negate();
        }
        self.push_class(class);
        self.rest = skip(rest, 1);
        Ok(())
    }
}

fn class_char<'p>(rest: &'p str, bracket: &str) -> Result<(u32, &'p str), PatternError> {
    match rest.chars().next() {
        None => fail(ErrorCode::MissingBracket, bracket),
        Some('\\') => code_point(rest),
        Some(c) => Ok((u32::from(c), skip(rest, c.len_utf8()))),
    }
}

/// The code point of an escape.
fn code_point(start: &str) -> Result<(u32, &str), PatternError> {
    let mut chars = start.chars();
    chars.next();
    let Some(c) = chars.next() else {
        return fail(ErrorCode::TrailingBackslash, "");
    };
    let rest = chars.as_str();
    let octal = |n: usize| {
        rest.bytes()
            .take(n)
            .take_while(|b| (b'0'..=b'7').contains(b))
            .count()
    };
    let simple = |code_point: u32| Ok((code_point, rest));
    match c {
        // A single digit from 1 to 7 would be a back reference, which RE2 does not support.
        '0'..='7' if c == '0' || octal(1) == 1 => {
            let (digits, after) = rest.split_at_checked(octal(2)).unwrap_or(("", rest));
            let value = digits
                .bytes()
                .fold(u32::from(c) - u32::from('0'), |n, b| n * 8 + u32::from(b - b'0'));
            Ok((value, after))
        }
        'x' => hexadecimal(start, rest),
        'a' => simple(0x07),
        'f' => simple(0x0c),
        'n' => simple(0x0a),
        'r' => simple(0x0d),
        't' => simple(0x09),
        'v' => simple(0x0b),
        _ if c.is_ascii() && !c.is_ascii_alphanumeric() => simple(u32::from(c)),
        _ => fail(ErrorCode::Escape, up_to(start, rest)),
    }
}

/// Parses `\x7f` or `\x{10ffff}`; `rest` follows the `x`.
fn hexadecimal<'p>(start: &'p str, rest: &'p str) -> Result<(u32, &'p str), PatternError> {
    let mut chars = rest.chars();
    let bad = |after: &str| fail(ErrorCode::Escape, up_to(start, after));
    let Some(first) = chars.next() else {
        return bad(rest);
    };
    if first != '{' {
        let Some(second) = chars.next() else {
            // UPSTREAM: a missing second digit is reported as a decoding error of its own.
            return bad(chars.as_str());
        };
        return match (first.to_digit(16), second.to_digit(16)) {
            (Some(high), Some(low)) => Ok((high * 16 + low, chars.as_str())),
            _ => bad(chars.as_str()),
        };
    }
    let mut value = None;
    while let Some(c) = chars.next() {
        match (c, value) {
            ('}', Some(value)) => return Ok((value, chars.as_str())),
            _ => match c.to_digit(16).map(|digit| value.unwrap_or(0) * 16 + digit) {
                Some(larger) if larger <= u32::from(char::MAX) => value = Some(larger),
                _ => return bad(chars.as_str()),
            },
        }
    }
    bad(chars.as_str())
}

/// The minimum and maximum of a repetition, where no maximum means unbounded; `None` if they are out of
/// range.
type Counts = Option<(u32, Option<u32>)>;

/// Parses a counted repetition. `None` if the brace is a literal.
fn count(start: &str) -> Option<(Counts, &str)> {
    let (min, rest) = number(start.strip_prefix('{')?)?;
    let (max, rest) = match rest.strip_prefix(',') {
        None => (Some(min), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => number(rest).map(|(max, rest)| (Some(max), rest))?,
    };
    let after = rest.strip_prefix('}')?;
    let in_bounds = min <= MAX_REPEAT && max.is_none_or(|max| min <= max && max <= MAX_REPEAT);
    Some((in_bounds.then_some((min, max)), after))
}

/// Parses a decimal number without leading zeros, saturating.
fn number(text: &str) -> Option<(u32, &str)> {
    let n = text.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at_checked(n)?;
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some((digits.parse().unwrap_or(u32::MAX), rest))
}
