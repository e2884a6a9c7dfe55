//! YAML encoding as kube-apiserver does it: block style, keys in order, lists at the indentation of their
//! key.

use super::resolve::{ResolvedScalar, is_timestamp, resolve};
use crate::{Escape, Map, Value};
use std::fmt::Write as _;

/// Writes a document.
pub(super) fn write(value: &Value) -> String {
    let mut out = String::new();
    let (mut text, mut space) = (0, 0);
    measure(value, 0, &mut text, &mut space);
    if space > FREE_SPACE + SPACE_PER_BYTE * text {
        // JSON is valid YAML.
        out = value.to_json_with(Escape::Minimal);
        out.push('\n');
        return out;
    }
    match value {
        Value::Object(m) if !m.is_empty() => members(&mut out, value, 0),
        Value::Array(a) if !a.is_empty() => elements(&mut out, a, 0),
        other => {
            scalar(&mut out, other, 0);
            out.push('\n');
        }
    }
    out
}

/// The whitespace that every document may have, in bytes.
const FREE_SPACE: usize = 16 << 20;

/// The additional whitespace per byte of text. Indentation grows with the depth and could be thousands of
/// times the text; such documents are written as JSON.
const SPACE_PER_BYTE: usize = 4;

/// Estimates the bytes of text and of indentation that a value takes.
fn measure(value: &Value, level: usize, text: &mut usize, space: &mut usize) {
    *text += 2;
    *space += 2 * level;
    let mut lines = |s: &str| {
        *text += s.len();
        let breaks = s.len() / WIDTH + s.bytes().filter(|b| *b == b'\n').count();
        *space += breaks * 2 * (level + 1);
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {}
        Value::String(s) => lines(s),
        Value::Array(items) => items
            .iter()
            .for_each(|item| measure(item, level + 1, text, space)),
        Value::Object(map) => {
            for (key, member) in map.iter() {
                *text += key.len();
                measure(member, level + 1, text, space);
            }
        }
    }
}

fn indent(out: &mut String, level: usize) {
    out.extend(std::iter::repeat_n("  ", level));
}

fn members(out: &mut String, value: &Value, level: usize) {
    for (i, (key, v)) in value.as_object().into_iter().flat_map(Map::iter).enumerate() {
        // The first key of an element follows its dash.
        if i > 0 || !out.ends_with("- ") {
            indent(out, level);
        }
        write_string(out, key, level, ScalarPosition::Key);
        out.push(':');
        match v {
            Value::Object(m) if !m.is_empty() => {
                out.push('\n');
                members(out, v, level + 1);
            }
            Value::Array(a) if !a.is_empty() => {
                out.push('\n');
                elements(out, a, level);
            }
            other => {
                out.push(' ');
                scalar(out, other, level);
                out.push('\n');
            }
        }
    }
}

fn elements(out: &mut String, list: &[Value], level: usize) {
    for (i, v) in list.iter().enumerate() {
        if i > 0 || !out.ends_with("- ") {
            indent(out, level);
        }
        out.push_str("- ");
        match v {
            Value::Object(m) if !m.is_empty() => members(out, v, level + 1),
            Value::Array(a) if !a.is_empty() => elements(out, a, level + 1),
            other => {
                scalar(out, other, level);
                out.push('\n');
            }
        }
    }
}

fn scalar(out: &mut String, value: &Value, level: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Object(_) => out.push_str("{}"),
        Value::Array(_) => out.push_str("[]"),
        Value::String(s) => write_string(out, s, level, ScalarPosition::Value),
        other => out.push_str(&other.to_json()),
    }
}

/// The position of a string: only values are folded.
#[derive(Clone, Copy, PartialEq)]
enum ScalarPosition {
    Key,
    Value,
}

/// Longer lines are folded at the next space.
const WIDTH: usize = 80;

fn write_string(out: &mut String, s: &str, level: usize, position: ScalarPosition) {
    let is_text = matches!(resolve(s, None, true), Ok(ResolvedScalar::String(_)));
    // go-yaml quotes these for readers that resolve them to other types.
    let looks_otherwise = is_timestamp(s) || is_base_60(s);
    let printable = s
        .chars()
        .all(|c| c == '\n' || (!c.is_control() && c != '\u{feff}'));
    // libyaml does not write a block if a line or the text ends with a space.
    let blocks = position == ScalarPosition::Value && !s.contains(" \n") && !s.ends_with(' ');
    if !printable {
        quoted(out, s, level, position);
    } else if s.contains('\n') && blocks {
        block(out, s, level);
    } else if s.contains('\n') || !is_text || looks_otherwise {
        quoted(out, s, level, position);
    } else if is_plain(s) {
        folded(out, s, level, position, FoldAt::Anywhere);
    } else {
        out.push('\'');
        folded(out, &s.replace('\'', "''"), level, position, FoldAt::Inside);
        out.push('\'');
    }
}

/// Writes a string in double quotes, escaped as in JSON.
fn quoted(out: &mut String, s: &str, level: usize, position: ScalarPosition) {
    let text = Value::from(s).to_json_with(Escape::Minimal);
    let inside = text.get(1..text.len().saturating_sub(1)).unwrap_or_default();
    out.push('"');
    folded(out, inside, level, position, FoldAt::Escaped);
    out.push('"');
}

/// The spaces at which a string may be folded.
#[derive(Clone, Copy, PartialEq)]
enum FoldAt {
    /// At any single space.
    Anywhere,
    /// At single spaces that are neither first nor last.
    Inside,
    /// At spaces that are neither first nor last; a backslash protects a following space.
    Escaped,
}

/// Writes a string and folds long lines.
fn folded(out: &mut String, s: &str, level: usize, position: ScalarPosition, fold: FoldAt) {
    let mut column = out.rsplit('\n').next().unwrap_or_default().chars().count();
    let mut after_space = false;
    let mut chars = s.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        let inside = fold == FoldAt::Anywhere || (i > 0 && next.is_some());
        let single = fold == FoldAt::Escaped || next != Some(' ');
        let breaks = position == ScalarPosition::Value
            && c == ' '
            && !after_space
            && column > WIDTH
            && inside
            && single;
        after_space = c == ' ';
        if !breaks {
            out.push(c);
            column += 1;
            continue;
        }
        out.push('\n');
        indent(out, level + 1);
        column = 2 * (level + 1);
        // A space at the beginning of a continuation line would be lost.
        if next == Some(' ') {
            out.push('\\');
            column += 1;
        }
    }
}

/// Returns whether YAML 1.1 would read a string as a base-60 number, such as `10:30`.
fn is_base_60(s: &str) -> bool {
    let unsigned = s.strip_prefix(['-', '+']).unwrap_or(s);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let sexagesimal = |t: &str| match t.as_bytes() {
        [a] => a.is_ascii_digit(),
        [a, b] => (b'0'..=b'5').contains(a) && b.is_ascii_digit(),
        _ => false,
    };
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let mut rest = parts.peekable();
    rest.peek().is_some()
        && first.starts_with(|c: char| c.is_ascii_digit())
        && digits(first)
        && rest.all(sexagesimal)
        && digits(fraction)
}

/// Writes a literal block scalar.
fn block(out: &mut String, s: &str, level: usize) {
    let body = s.strip_suffix('\n');
    out.push('|');
    // The first line cannot show the indentation if it is empty or begins with a space.
    if s.starts_with([' ', '\n']) {
        out.push('2');
    }
    out.push_str(match body {
        None => "-",
        Some(b) if b.is_empty() || b.ends_with('\n') => "+",
        Some(_) => "",
    });
    for line in body.unwrap_or(s).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            indent(out, level + 1);
            let _ = out.write_str(line);
        }
    }
}

/// Returns whether a string can be written without quotes.
fn is_plain(s: &str) -> bool {
    let Some(first) = s.chars().next() else {
        return false;
    };
    let mut rest = s.chars();
    rest.next();
    let begins = match first {
        '-' | '?' | ':' => rest.next().is_some_and(|c| c != ' '),
        ',' | '[' | ']' | '{' | '}' | '#' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`'
        | ' ' => false,
        _ => true,
    };
    begins
        && !s.ends_with([' ', ':'])
        && !s.contains(": ")
        && !s.contains(" #")
        && !s.starts_with("---")
        && !s.starts_with("...")
}

#[cfg(test)]
mod tests {
    use crate::{Limits, json, yaml};

    /// The expected texts were recorded from kube-apiserver.
    #[test]
    fn folding_and_quoting_match_kube_apiserver() {
        let long = "Name must be unique within a namespace. Is required when creating resources, although some \
                    resources may allow a client to request the generation: of";
        let document = crate::Map::from_iter([
            ("a", crate::Value::from("2026-11-16T04:03:52Z")),
            ("b", "10:30".into()),
            ("c", long.into()),
        ]);
        let text = yaml::encode(&document.into());
        let want = "a: \"2026-11-16T04:03:52Z\"\nb: \"10:30\"\nc: 'Name must be unique within a namespace. Is \
                    required when creating resources, although\n  some resources may allow a client to request the \
                    generation: of'\n";
        assert_eq!(text, want);
    }

    #[test]
    fn yaml_round_trips() {
        let document = r##"{"a":"x","b":["1",1,1.5,true,"true",null,"",[],{}],"c":{"d":[{"e":1,"f":[["g"]]}]},
            "m":"line one\nline two\n","n":"no end\nhere","o":"two ends\n\n","p":"yes","q":"- a","r":"a: b","s":"#x",
            "t":"it's","u":"tab\there"," k ":1,"y":"2001-01-01","z":"0x1F","v":" lead\\nx","w":"\\n","x":"a \\nb",
            "long":"WORDS","longer":"it's  WORDS"}"##;
        let document = document.replace("WORDS", &"some words ".repeat(30));
        let value = json::decode(document.as_bytes(), Limits::SAFE).unwrap();
        let text = yaml::encode(&value);
        assert_eq!(
            yaml::decode(text.as_bytes(), Limits::SAFE).unwrap(),
            value,
            "{text}"
        );
    }
}
