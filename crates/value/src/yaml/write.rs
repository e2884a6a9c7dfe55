//! YAML text as a Kubernetes API server writes it: block style, keys in order, lists at the level of their key.

use super::resolve::{Scalar, resolve};
use crate::{Escape, Map, Value};
use std::fmt::Write as _;

/// Writes a document.
pub(super) fn write(value: &Value) -> String {
    let mut out = String::new();
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

fn indent(out: &mut String, level: usize) {
    out.extend(std::iter::repeat_n("  ", level));
}

fn members(out: &mut String, value: &Value, level: usize) {
    for (i, (key, v)) in value.as_object().into_iter().flat_map(Map::iter).enumerate() {
        // The first key of an element stands behind its dash.
        if i > 0 || !out.ends_with("- ") {
            indent(out, level);
        }
        text(out, key, level);
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
        Value::String(s) => text(out, s, level),
        other => out.push_str(&other.to_json()),
    }
}

fn text(out: &mut String, s: &str, level: usize) {
    let is_text = matches!(resolve(s, None, true), Ok(Scalar::String(_)));
    let printable = s
        .chars()
        .all(|c| c == '\n' || (!c.is_control() && c != '\u{feff}'));
    if !printable {
        out.push_str(&Value::from(s).to_json_with(Escape::Minimal));
    } else if s.contains('\n') && !s.starts_with([' ', '\n']) {
        block(out, s, level);
    } else if s.contains('\n') || !is_text {
        out.push_str(&Value::from(s).to_json_with(Escape::Minimal));
    } else if is_plain(s) {
        out.push_str(s);
    } else {
        out.push('\'');
        out.push_str(&s.replace('\'', "''"));
        out.push('\'');
    }
}

/// Lines as they are.
fn block(out: &mut String, s: &str, level: usize) {
    let body = s.strip_suffix('\n');
    out.push_str(match body {
        None => "|-",
        Some(b) if b.ends_with('\n') => "|+",
        Some(_) => "|",
    });
    for line in body.unwrap_or(s).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            indent(out, level + 1);
            let _ = out.write_str(line);
        }
    }
}

/// Whether a text can stand without quotes.
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

    #[test]
    fn reads_back_as_written() {
        let document = r##"{"a":"x","b":["1",1,1.5,true,"true",null,"",[],{}],"c":{"d":[{"e":1,"f":[["g"]]}]},
            "m":"line one\nline two\n","n":"no end\nhere","o":"two ends\n\n","p":"yes","q":"- a","r":"a: b","s":"#x",
            "t":"it's","u":"tab\there"," k ":1,"y":"2001-01-01","z":"0x1F"}"##;
        let value = json::decode(document.as_bytes(), Limits::SAFE).unwrap();
        let text = yaml::encode(&value);
        assert_eq!(
            yaml::decode(text.as_bytes(), Limits::SAFE).unwrap(),
            value,
            "{text}"
        );
    }
}
