//! Answers without what differs from run to run, in the form of the recordings.

use crate::client::Answer;
use regex::Regex;
use scantling_value::{Limits, Map, Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What of an object's metadata is a matter of chance.
const VOLATILE: [&str; 5] = [
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "selfLink",
    "deletionTimestamp",
];

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is valid")
}

/// What is blanked in the texts of failures, which quote whole objects.
static CHANCE: LazyLock<[(Regex, &str); 3]> = LazyLock::new(|| {
    [
        (regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"), "<time>"),
        (
            regex(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
            "<uid>",
        ),
        (regex(r"(resourceVersion\W{1,7})\d+"), "${1}<version>"),
    ]
});

/// A message that lists several errors, and where the next error of the list begins.
static LISTING: LazyLock<(Regex, Regex)> = LazyLock::new(|| {
    (
        regex(r"(?s)^(.*?: )\[(.*)\]$"),
        regex(r#"^, (?:<nil>|[A-Za-z_][\w.\-\[\]"/()]*): "#),
    )
});

/// How a body is read.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Reading {
    Plain,
    /// A stream of events.
    Events,
}

/// The body of an answer.
pub(crate) fn body(answer: &Answer, reading: Reading) -> Value {
    let decode = |text: &[u8]| json::decode(text, Limits::SAFE);
    if reading == Reading::Events {
        let lines = answer
            .body
            .split(|b| *b == b'\n')
            .filter(|l| !l.trim_ascii().is_empty());
        let events: Result<Vec<Value>, _> = lines.map(|l| decode(l).map(|e| normal(e, None))).collect();
        if let Ok(events) = events {
            return Map::from_iter([("events", Value::Array(events))]).into();
        }
    }
    match decode(&answer.body) {
        Ok(whole @ Value::Object(_)) => normal(whole, None),
        Ok(other) => Map::from_iter([("json", other)]).into(),
        Err(_) => {
            let kind = answer.headers.get("content-type");
            let kind = kind.and_then(|v| v.to_str().ok()).unwrap_or_default();
            let text: String = String::from_utf8_lossy(&answer.body).chars().take(2000).collect();
            Map::from_iter([("contentType", Value::from(kind)), ("text", text.into())]).into()
        }
    }
}

/// A value at a key; none at the root.
fn normal(value: Value, key: Option<&str>) -> Value {
    let members = match value {
        Value::Object(members) => members,
        Value::Array(items) => {
            return items
                .into_iter()
                .map(|i| normal(i, Some("item")))
                .collect::<Vec<_>>()
                .into();
        }
        // Numbers compare by value.
        Value::Float(f) if f.fract() == 0.0 && f.abs() < 9e15 => return Value::Int(f as i64),
        scalar => return scalar,
    };
    let managed = members.contains_key("manager");
    let mut out = Map::new();
    for (k, v) in members {
        let volatile = (key == Some("metadata") && VOLATILE.contains(&k.as_str()))
            || matches!(k.as_str(), "lastTransitionTime" | "remainingItemCount")
            || (k == "time" && managed);
        if !volatile {
            let v = normal(v, Some(&k));
            out.insert(k, v);
        }
    }
    let kind = out
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    if kind == "Status" {
        let mut status = Value::Object(out);
        blank_chance(&mut status);
        out = match status {
            Value::Object(m) => m,
            _ => Map::new(),
        };
        normal_status(&mut out);
    }
    if kind == "CustomResourceDefinition"
        && let Some(metadata) = out.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("managedFields");
        if let Some(Value::Array(conditions)) = out
            .get_mut("status")
            .and_then(|s| s.as_object_mut()?.get_mut("conditions"))
        {
            let ty = |c: &Value| {
                c.get("type")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            conditions.sort_by_key(ty);
        }
    }
    if key.is_none()
        && let Some(metadata) = out.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("continue");
    }
    out.into()
}

fn normal_status(status: &mut Map) {
    let Some(details) = status.get_mut("details").and_then(Value::as_object_mut) else {
        return;
    };
    details.remove("uid");
    let several = details
        .get("causes")
        .and_then(Value::as_array)
        .is_some_and(|c| c.len() > 1);
    if several && let Some(message) = status.get("message").and_then(Value::as_str) {
        let message = normal_message(message);
        status.insert("message", message.into());
    }
}

/// The parts of a message that lists several errors come in no fixed order.
fn normal_message(message: &str) -> String {
    let (listing, next) = &*LISTING;
    let Some((_, [head, list])) = listing.captures(message).map(|c| c.extract()) else {
        return message.to_owned();
    };
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, _) in list.match_indices(", ") {
        if at >= from && next.is_match(&list[at..]) {
            parts.push(&list[from..at]);
            from = at + 2;
        }
    }
    parts.push(&list[from..]);
    parts.sort_unstable();
    format!("{head}[{}]", parts.join(" | "))
}

/// Changes every text in a value.
fn each_text(value: &mut Value, change: &dyn Fn(&str) -> String) {
    match value {
        Value::Object(members) => members.iter_mut().for_each(|(_, v)| each_text(v, change)),
        Value::Array(items) => items.iter_mut().for_each(|v| each_text(v, change)),
        Value::String(text) => *text = change(text).into(),
        _ => {}
    }
}

fn blank_chance(value: &mut Value) {
    each_text(value, &|text| {
        CHANCE.iter().fold(text.to_owned(), |t, (pattern, word)| {
            pattern.replace_all(&t, *word).into_owned()
        })
    });
}

/// Puts names in the place of the values that they stand for, where these stand as words.
pub(crate) fn blank(value: &mut Value, kept: &BTreeMap<String, String>) {
    each_text(value, &|text| {
        kept.iter().fold(text.to_owned(), |t, (name, captured)| {
            replace_word(&t, captured, &format!("${{{name}}}"))
        })
    });
}

fn replace_word(text: &str, word: &str, with: &str) -> String {
    let mut out = String::new();
    let mut from = 0;
    for (at, _) in text.match_indices(word) {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let joined = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        if !joined(before) && !joined(after) {
            out.push_str(&text[from..at]);
            out.push_str(with);
            from = at + word.len();
        }
    }
    out + &text[from..]
}

/// The reverse: puts captured values where `${name}` stands.
pub(crate) fn fill(text: &str, kept: &BTreeMap<String, String>) -> String {
    kept.iter().fold(text.to_owned(), |t, (name, value)| {
        t.replace(&format!("${{{name}}}"), value)
    })
}

/// The texts of the `Warning` headers, sorted.
pub(crate) fn warnings(answer: &Answer) -> Vec<String> {
    let warning = regex(r#"^\s*299 \S+ "((?:[^"\\]|\\.)*)""#);
    let escape = regex(r"(?s)\\(.)");
    let mut out: Vec<String> = answer
        .headers
        .get_all("warning")
        .iter()
        .map(|h| {
            let h = String::from_utf8_lossy(h.as_bytes()).into_owned();
            match warning.captures(&h).map(|c| c.extract()) {
                Some((_, [text])) => escape.replace_all(text, "${1}").into_owned(),
                None => h,
            }
        })
        .collect();
    out.sort();
    out
}

/// Orders what has no order, in answers and recordings alike.
pub(crate) fn ordered(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let sorted = |k: &str, v: Value| match (k, v) {
                ("causes" | "managedFields", Value::Array(mut items)) => {
                    items.sort_by_cached_key(Value::to_json);
                    Value::Array(items)
                }
                (_, v) => v,
            };
            let members = members.into_iter().map(|(k, v)| {
                let v = sorted(&k, ordered(v));
                (k, v)
            });
            Value::Object(members.collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(ordered).collect()),
        Value::Float(f) if f.fract() == 0.0 && f.abs() < 9e15 => Value::Int(f as i64),
        scalar => scalar,
    }
}
