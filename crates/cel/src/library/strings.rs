//! String functions. All positions count characters.

mod format;
mod newest;
pub(crate) mod template;

pub use newest::NEWEST;

use crate::estimate::{TEXT_FACTOR, formula, text_cost};
use crate::overload::{Costs, Estimate, Library, ResultSize, Ty, overloads};
use crate::run::{Actual, size};
use crate::val::{Arena, EvalError, Res, Val};

const S: Ty = Ty::String;
const I: Ty = Ty::Int;
const STRINGS: Ty = Ty::List(&Ty::String);

const NOMINAL: Costs = (Estimate::NOMINAL, Actual::NOMINAL);

/// A pass over the receiver; the result is at most as long.
const PASS: Costs = (
    Estimate::Pass {
        operand: 0,
        factor: TEXT_FACTOR,
        result: ResultSize::Same,
    },
    Actual::named_text_pass(0),
);

/// The functions of version 0, with the costs of a version in this order: `charAt`, searches, changes of case, `replace`,
/// `split`, `substring`, `trim`, `join`; then further functions.
macro_rules! string_functions {
    ([$char_at:expr, $search:expr, $case:expr, $replace:expr, $split:expr, $substring:expr, $trim:expr, $join:expr]
        $($further:tt)*) => {
        $crate::overload::overloads! {
            "string_char_at_int": member "charAt"(S, I) -> S => Binary(char_at), $char_at;
            "string_index_of_string": member "indexOf"(S, S) -> I
                => Binary(|arena, s, part| index_of(arena, s, part, Val::Int(0))), $search;
            "string_index_of_string_int": member "indexOf"(S, S, I) -> I => Ternary(index_of), $search;
            "string_last_index_of_string": member "lastIndexOf"(S, S) -> I => Binary(last_index_of), $search;
            "string_last_index_of_string_int": member "lastIndexOf"(S, S, I) -> I
                => Ternary(last_index_of_from), $search;
            "string_lower_ascii": member "lowerAscii"(S) -> S => Unary(lower_ascii), $case;
            "string_replace_string_string": member "replace"(S, S, S) -> S
                => Ternary(|arena, s, old, new| replace(arena, &[s, old, new, Val::Int(-1)])), $replace;
            "string_replace_string_string_int": member "replace"(S, S, S, I) -> S => Variadic(replace), $replace;
            "string_split_string": member "split"(S, S) -> STRINGS
                => Binary(|arena, s, separator| split(arena, s, separator, Val::Int(-1))), $split;
            "string_split_string_int": member "split"(S, S, I) -> STRINGS => Ternary(split), $split;
            "string_substring_int": member "substring"(S, I) -> S => Binary(substring_from), $substring;
            "string_substring_int_int": member "substring"(S, I, I) -> S => Ternary(substring), $substring;
            "string_trim": member "trim"(S) -> S => Unary(|_, s| Ok(Val::Str(s.str()?.trim()))), $trim;
            "string_upper_ascii": member "upperAscii"(S) -> S => Unary(upper_ascii), $case;
            "list_join": member "join"(STRINGS) -> S
                => Unary(|arena, list| join(arena, list, Val::Str(""))), $join;
            "list_join_string": member "join"(STRINGS, S) -> S => Binary(join), $join;
            $($further)*
        }
    };
}
use string_functions;

/// Version 0: search, substrings, joining and replacement.
pub static BASE: Library = Library {
    name: "strings",
    overloads: string_functions!([NOMINAL, SEARCH, PASS, REPLACE, SPLIT, PASS, PASS, JOIN]),
    types: &[],
};

/// The additions of version 1: `format`, with numbers in American English, and `strings.quote`.
pub static FORMAT: Library = Library {
    name: "strings format",
    overloads: overloads! {
        "string_format": member "format"(S, List(&Dyn)) -> S => Binary(format::localized), FORMAT_PASS;
        "strings_quote": global "strings.quote"(S) -> S => Unary(quote), QUOTE;
    },
    types: &[],
};

/// The addition of version 3: `reverse`.
pub static REVERSE: Library = Library {
    name: "strings reverse",
    overloads: overloads! {
        "string_reverse": member "reverse"(S) -> S => Unary(reverse);
    },
    types: &[],
};

const FORMAT_PASS: Costs = (Estimate::text_pass(0), Actual::text_pass(0));
const QUOTE: Costs = (Estimate::Formula(formula::quote), Actual::text_pass(0));

/// Searching costs a pass over the bytes of the text, rounded down.
const SEARCH: Costs = (
    Estimate::Formula(formula::search),
    Actual::NamedFormula(|args, _| super::traversal_cost(args.first().copied().flatten())),
);

/// Splitting costs one pass over the text and another one to build the result.
const TWO_PASSES: Actual = Actual::NamedFormula(|args, _| two_passes(size(args.first().copied().flatten())));
const REPLACE: Costs = (Estimate::Formula(formula::replace), TWO_PASSES);
const SPLIT: Costs = (Estimate::Formula(formula::split), TWO_PASSES);
const JOIN: Costs = (
    Estimate::Formula(formula::join),
    Actual::NamedFormula(|_, result| two_passes(size(result))),
);

pub(super) fn two_passes(size: u64) -> u64 {
    // The factors are applied separately, which rounds differently from their product.
    text_cost(size.saturating_mul(2))
}

fn out_of_range(index: i64) -> EvalError {
    EvalError::message(format!("index out of range: {index}"))
}

/// The byte offset of a character index; the end is a valid index.
fn byte_at(s: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    s.char_indices().map(|(at, _)| at).chain([s.len()]).nth(index)
}

/// The character index of a byte offset.
fn index_at(s: &str, byte: usize) -> Val<'static> {
    let n = s.get(..byte).map_or(0, |before| before.chars().count());
    Val::Int(i64::try_from(n).unwrap_or(i64::MAX))
}

fn char_at<'a>(_: &'a Arena, s: Val<'a>, index: Val<'a>) -> Res<'a> {
    let (s, index) = (s.str()?, index.int()?);
    let rest = byte_at(s, index)
        .and_then(|at| s.get(at..))
        .ok_or_else(|| out_of_range(index))?;
    // The index of the end is allowed and gives the empty string.
    let n = rest.chars().next().map_or(0, char::len_utf8);
    Ok(Val::Str(rest.get(..n).unwrap_or("")))
}

fn index_of<'a>(_: &'a Arena, s: Val<'a>, part: Val<'a>, from: Val<'a>) -> Res<'a> {
    let (s, part, from) = (s.str()?, part.str()?, from.int()?);
    if from < 0 {
        return Err(out_of_range(from));
    }
    // A start behind the end does not fail: cel-go finds the empty string at the end, and nothing else.
    let Some(start) = byte_at(s, from) else {
        return Ok(if part.is_empty() {
            index_at(s, s.len())
        } else {
            Val::Int(-1)
        });
    };
    let found = s.get(start..).and_then(|rest| rest.find(part));
    Ok(found.map_or(Val::Int(-1), |at| index_at(s, start + at)))
}

fn last_index_of<'a>(_: &'a Arena, s: Val<'a>, part: Val<'a>) -> Res<'a> {
    let (s, part) = (s.str()?, part.str()?);
    Ok(s.rfind(part).map_or(Val::Int(-1), |at| index_at(s, at)))
}

fn last_index_of_from<'a>(_: &'a Arena, s: Val<'a>, part: Val<'a>, from: Val<'a>) -> Res<'a> {
    let (s, part, from) = (s.str()?, part.str()?, from.int()?);
    if from < 0 {
        return Err(out_of_range(from));
    }
    let place = byte_at(s, from);
    if part.is_empty() {
        return Ok(index_at(s, place.unwrap_or(s.len())));
    }
    // The match must begin at or before this position.
    let Some(start) = place.filter(|at| *at < s.len()) else {
        return Ok(Val::Int(-1));
    };
    // Bytes may be cut within a character here; a match of valid text still begins and ends between characters.
    let end = start.saturating_add(part.len()).min(s.len());
    let found = s
        .as_bytes()
        .get(..end)
        .and_then(|head| memchr::memmem::rfind(head, part.as_bytes()));
    Ok(found.map_or(Val::Int(-1), |at| index_at(s, at)))
}

fn lower_ascii<'a>(arena: &'a Arena, s: Val<'a>) -> Res<'a> {
    let s = s.str()?;
    // Most texts need no change, and then nothing is copied.
    if s.bytes().any(|b| b.is_ascii_uppercase()) {
        arena.str(s.to_ascii_lowercase())
    } else {
        Ok(Val::Str(s))
    }
}

fn upper_ascii<'a>(arena: &'a Arena, s: Val<'a>) -> Res<'a> {
    let s = s.str()?;
    if s.bytes().any(|b| b.is_ascii_lowercase()) {
        arena.str(s.to_ascii_uppercase())
    } else {
        Ok(Val::Str(s))
    }
}

fn replace<'a>(arena: &'a Arena, args: &[Val<'a>]) -> Res<'a> {
    let &[s, old, new, limit] = args else {
        return Err(EvalError::NoSuchOverload);
    };
    let (s, old, new, limit) = (s.str()?, old.str()?, new.str()?, limit.int()?);
    // A negative limit means no limit.
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // Checked before replacing: a result of many gigabytes must not be built first.
    let most = if old.is_empty() {
        s.len() + 1
    } else {
        s.len() / old.len()
    }
    .min(limit);
    arena.check_room(s.len().saturating_add(most.saturating_mul(new.len())))?;
    arena.str(s.replacen(old, new, limit))
}

fn split<'a>(arena: &'a Arena, s: Val<'a>, separator: Val<'a>, limit: Val<'a>) -> Res<'a> {
    let (s, separator, limit) = (s.str()?, separator.str()?, limit.int()?);
    // A negative limit means no limit; the last part contains the rest.
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if !separator.is_empty() {
        return arena.list(s.splitn(limit, separator).map(Val::Str).collect::<Vec<_>>());
    }
    let mut parts = Vec::new();
    let mut rest = s;
    // Go splits around characters for an empty separator, whereas Rust's `split` adds empty parts at both ends.
    while let Some(c) = rest.chars().next().filter(|_| parts.len() < limit) {
        let n = if parts.len() + 1 == limit {
            rest.len()
        } else {
            c.len_utf8()
        };
        let (part, after) = rest.split_at_checked(n).unwrap_or((rest, ""));
        parts.push(Val::Str(part));
        rest = after;
    }
    arena.list(parts)
}

fn substring_from<'a>(_: &'a Arena, s: Val<'a>, start: Val<'a>) -> Res<'a> {
    let (s, start) = (s.str()?, start.int()?);
    let rest = byte_at(s, start).and_then(|at| s.get(at..));
    rest.map(Val::Str).ok_or_else(|| out_of_range(start))
}

fn substring<'a>(_: &'a Arena, s: Val<'a>, start: Val<'a>, end: Val<'a>) -> Res<'a> {
    let (s, start, end) = (s.str()?, start.int()?, end.int()?);
    if start > end {
        return Err(EvalError::message(format!(
            "invalid substring range. start: {start}, end: {end}"
        )));
    }
    let rest = byte_at(s, start)
        .and_then(|at| s.get(at..))
        .ok_or_else(|| out_of_range(start))?;
    // `start` is not negative here, so the difference cannot overflow.
    let part = byte_at(rest, end - start).and_then(|at| rest.get(..at));
    part.map(Val::Str).ok_or_else(|| out_of_range(end))
}

fn reverse<'a>(arena: &'a Arena, s: Val<'a>) -> Res<'a> {
    arena.str(s.str()?.chars().rev().collect::<String>())
}

fn join<'a>(arena: &'a Arena, list: Val<'a>, separator: Val<'a>) -> Res<'a> {
    let (list, separator) = (list.list()?, separator.str()?);
    let mut out = String::new();
    for (i, item) in list.iter(arena).enumerate() {
        if i > 0 {
            out.push_str(separator);
        }
        match item {
            Ok(Val::Str(part)) => out.push_str(part),
            // The first element decides whether this is a list of strings.
            Ok(_) if i == 0 => return Err(EvalError::NoSuchOverload),
            Ok(other) => return Err(EvalError::message(format!("join: invalid input: {other}"))),
            Err(e) if e.is_final() => return Err(e),
            Err(e) => return Err(EvalError::message(format!("join: invalid input: {e}"))),
        }
        arena.check_room(out.len())?;
    }
    arena.str(out)
}

fn quote<'a>(arena: &'a Arena, s: Val<'a>) -> Res<'a> {
    let s = s.str()?;
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        let escape = match c {
            '\x07' => 'a',
            '\x08' => 'b',
            '\x0c' => 'f',
            '\n' => 'n',
            '\r' => 'r',
            '\t' => 't',
            '\x0b' => 'v',
            '\\' | '"' => c,
            _ => {
                out.push(c);
                continue;
            }
        };
        out.extend(['\\', escape]);
    }
    out.push('"');
    arena.str(out)
}
