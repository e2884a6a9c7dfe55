//! Texts of cells.

use super::Printing;
use scantling_notation::duration::human_duration;
use scantling_notation::quantity::Quantity;
use scantling_notation::timestamp::{self, Moment};
use scantling_value::{Map, Value};

/// The cell of an unset field.
pub(super) const UNSET: &str = "<unset>";

/// The cell of an empty value.
pub(super) const NONE: &str = "<none>";

/// The name.
pub(super) fn name(object: &Value) -> Value {
    object.str_at(["metadata", "name"]).into()
}

/// The time since an object was created.
pub(super) fn age(object: &Value, printing: &Printing<'_>) -> Value {
    since(object.at(["metadata", "creationTimestamp"]), printing).into()
}

/// The time since a moment, as people read it.
pub(super) fn since(time: Option<&Value>, printing: &Printing<'_>) -> String {
    match moment(time) {
        None => "<unknown>".to_owned(),
        Some(moment) => human_duration(printing.now.saturating_sub(moment.seconds)),
    }
}

/// The moment that a timestamp names.
pub(super) fn moment(time: Option<&Value>) -> Option<Moment> {
    timestamp::parse(time?.as_str()?)
}

/// A string; empty if it is not set.
pub(super) fn text<const N: usize>(object: &Value, path: [&str; N]) -> Value {
    object.str_at(path).into()
}

/// A string, or a placeholder for an empty one.
pub(super) fn text_or<const N: usize>(object: &Value, path: [&str; N], otherwise: &str) -> Value {
    match object.str_at(path) {
        "" => otherwise.into(),
        text => text.into(),
    }
}

/// A text that may be empty; `otherwise` if it is not set.
pub(super) fn set_text_or<const N: usize>(object: &Value, path: [&str; N], otherwise: &str) -> Value {
    let text = object.at(path).and_then(Value::as_str);
    text.unwrap_or(otherwise).into()
}

/// An integer; 0 if it is not set.
pub(super) fn int<const N: usize>(object: &Value, path: [&str; N]) -> i64 {
    object.at(path).and_then(Value::as_int).unwrap_or(0)
}

/// A boolean; false if it is not set.
pub(super) fn flag<const N: usize>(object: &Value, path: [&str; N]) -> bool {
    object.at(path).and_then(Value::as_bool).unwrap_or(false)
}

/// The number of elements of a list.
pub(super) fn length<const N: usize>(object: &Value, path: [&str; N]) -> Value {
    Value::Int(i64::try_from(object.list_at(path).len()).unwrap_or(i64::MAX))
}

/// The strings of a list, joined by commas.
pub(super) fn joined<const N: usize>(object: &Value, path: [&str; N]) -> String {
    let items: Vec<&str> = object.list_at(path).iter().filter_map(Value::as_str).collect();
    items.join(",")
}

/// A quantity as it is stored; 0 if it is not set.
pub(super) fn amount(value: Option<&Value>) -> String {
    let text = value.and_then(Value::as_str).map(Quantity::rewrite);
    text.and_then(Result::ok).unwrap_or_else(|| "0".to_owned())
}

/// Members of a list, joined by commas; at most some of them.
pub(super) fn some_of(items: &[String], most: usize) -> String {
    let shown: Vec<&str> = items.iter().take(most).map(String::as_str).collect();
    let shown = shown.join(",");
    match items.len().checked_sub(most) {
        Some(more @ 1..) => format!("{shown} + {more} more..."),
        _ if shown.is_empty() => UNSET.to_owned(),
        _ => shown,
    }
}

/// Labels as `key=value`, joined by commas.
pub(super) fn labels(labels: Option<&Value>) -> String {
    let entries = labels
        .and_then(Value::as_object)
        .map_or(&[][..], Map::entries)
        .iter();
    let labels: Vec<String> = entries
        .map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or("")))
        .collect();
    match labels.is_empty() {
        true => NONE.to_owned(),
        false => labels.join(","),
    }
}

/// A label selector in the notation of query parameters. An operator that does not exist gives `None`.
pub(super) fn selector(selector: Option<&Value>) -> Option<String> {
    let Some(selector) = selector else {
        return Some(String::new());
    };
    let matched = selector
        .get("matchLabels")
        .and_then(Value::as_object)
        .map_or(&[][..], Map::entries)
        .iter();
    let mut requirements: Vec<(String, String)> = matched
        .map(|(key, value)| (key.to_string(), format!("{key}={}", value.as_str().unwrap_or(""))))
        .collect();
    for requirement in selector.list("matchExpressions") {
        let key = requirement.get_str("key");
        let mut values: Vec<&str> = requirement
            .list("values")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match requirement.get_str("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return None,
        };
        requirements.push((key.to_owned(), text));
    }
    // Requirements are sorted by key only. The sort is stable, so that those with the same key keep their order.
    requirements.sort_by(|(a, _), (b, _)| a.cmp(b));
    let texts: Vec<String> = requirements.into_iter().map(|(_, text)| text).collect();
    Some(texts.join(","))
}

/// A label selector, or a placeholder for one that selects nothing or everything.
pub(super) fn selector_or_none(value: Option<&Value>) -> Value {
    match selector(value).as_deref() {
        None => "<error>".into(),
        Some("") => NONE.into(),
        Some(text) => text.into(),
    }
}

/// The names and the images of containers.
pub(super) fn containers(containers: &[Value]) -> [Value; 2] {
    ["name", "image"].map(|field| {
        let texts: Vec<&str> = containers.iter().map(|c| c.get_str(field)).collect();
        texts.join(",").into()
    })
}

/// The status of a condition; empty if the object does not have it.
pub(super) fn condition<'v>(object: &'v Value, kind: &str) -> &'v str {
    let mut conditions = object.list_at(["status", "conditions"]).iter();
    conditions
        .find(|c| c.get_str("type") == kind)
        .map_or("", |c| c.get_str("status"))
}

/// Returns whether an object is being deleted.
pub(super) fn is_deleted(object: &Value) -> bool {
    object.at(["metadata", "deletionTimestamp"]).is_some()
}
