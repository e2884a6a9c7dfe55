//! Normalizes responses: removes values that differ between runs, as the recordings do.

use regex::Regex;
use scantling_value::{Limits, Map, Value, json};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The metadata fields that differ between runs.
pub const VOLATILE: [&str; 5] = [
    "uid",
    "creationTimestamp",
    "resourceVersion",
    "selfLink",
    "deletionTimestamp",
];

/// The table columns that show an age.
const AGE_COLUMNS: [&str; 6] = [
    "Age",
    "Duration",
    "Last Schedule",
    "Created At",
    "First Seen",
    "Last Seen",
];

/// The fields that the server allocates if the client does not set them.
const ALLOCATED: [&str; 4] = ["clusterIP", "clusterIPs", "nodePort", "healthCheckNodePort"];

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is valid")
}

static TIME: LazyLock<Regex> = LazyLock::new(|| regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"));
static UID: LazyLock<Regex> =
    LazyLock::new(|| regex(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static VERSION: LazyLock<Regex> = LazyLock::new(|| regex(r"(resourceVersion\W{1,7})\d+"));
static AGE: LazyLock<Regex> = LazyLock::new(|| regex(r"^(\d+[smhdy])+$"));
static AGO: LazyLock<Regex> = LazyLock::new(|| regex(r"\((\d+[smhdy])+ ago\)"));

/// A message that lists several errors, and the separator of the list.
static LISTING: LazyLock<(Regex, Regex)> = LazyLock::new(|| {
    (
        regex(r"(?s)^(.*?: )\[(.*)\]$"),
        regex(r#"^, (?:<nil>|[A-Za-z_][\w.\-\[\]"/()]*): "#),
    )
});

/// Blanks times and uids, as recordings do in texts that quote objects.
pub fn blank_volatile(text: &str) -> String {
    let text = TIME.replace_all(text, "<time>");
    UID.replace_all(&text, "<uid>").into_owned()
}

/// The form in which a body was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyForm {
    /// One document.
    Document,
    /// A stream of watch events.
    Events,
}

/// Returns the normalized body of a response.
pub fn body(bytes: &[u8], content_type: &str, form: BodyForm) -> Value {
    let decode = |text: &[u8]| json::decode(text, Limits::SAFE);
    if form == BodyForm::Events {
        let lines = bytes
            .split(|b| *b == b'\n')
            .filter(|line| !line.trim_ascii().is_empty());
        let events: Result<Vec<Value>, _> = lines
            .map(|line| decode(line).map(|e| normalize(e, None)))
            .collect();
        if let Ok(events) = events {
            return Map::from_iter([("events", Value::Array(events))]).into();
        }
    }
    match decode(bytes) {
        Ok(whole @ Value::Object(_)) => normalize(whole, None),
        Ok(other) => Map::from_iter([("json", other)]).into(),
        Err(_) => {
            let text: String = String::from_utf8_lossy(bytes).chars().take(2000).collect();
            Map::from_iter([("contentType", Value::from(content_type)), ("text", text.into())]).into()
        }
    }
}

/// Normalizes a value that is the member `key` of another, or the root.
fn normalize(value: Value, key: Option<&str>) -> Value {
    let members = match value {
        Value::Object(members) => members,
        Value::Array(items) => {
            let items = items.into_iter().map(|item| normalize(item, Some("item")));
            return items.collect::<Vec<_>>().into();
        }
        // Numbers compare by value.
        Value::Float(f) if f.fract() == 0.0 && f.abs() < 9e15 => return Value::Int(f as i64),
        scalar => return scalar,
    };
    let is_manager = members.contains_key("manager");
    let mut out = Map::new();
    for (name, value) in members {
        let volatile = (key == Some("metadata") && VOLATILE.contains(&name.as_str()))
            || matches!(name.as_str(), "lastTransitionTime" | "remainingItemCount")
            // An entry of `managedFields` has the time of its last change.
            || (name == "time" && is_manager);
        if !volatile {
            let value = normalize(value, Some(&name));
            out.insert(name, value);
        }
    }
    match out.get("kind").and_then(Value::as_str) {
        Some("Status") => {
            out.iter_mut()
                .for_each(|(_, value)| each_text(value, &blank_status));
            normalize_status(&mut out);
        }
        Some("CustomResourceDefinition") => normalize_definition(&mut out),
        // The requesting user depends on the credentials of the run.
        Some("CertificateSigningRequest") => {
            if let Some(spec) = out.get_mut("spec").and_then(Value::as_object_mut) {
                for field in ["username", "uid", "groups", "extra"] {
                    if let Some(value) = spec.get_mut(field) {
                        *value = "<user>".into();
                    }
                }
            }
        }
        Some("Table") => normalize_table(&mut out),
        _ => {}
    }
    if key.is_none()
        && let Some(metadata) = out.get_mut("metadata").and_then(Value::as_object_mut)
    {
        // A continue token contains a resource version.
        metadata.remove("continue");
    }
    out.into()
}

fn blank_status(text: &str) -> String {
    VERSION
        .replace_all(&blank_volatile(text), "${1}<version>")
        .into_owned()
}

fn normalize_status(status: &mut Map) {
    let Some(details) = status.get_mut("details").and_then(Value::as_object_mut) else {
        return;
    };
    details.remove("uid");
    let causes = details
        .get("causes")
        .and_then(Value::as_array)
        .unwrap_or_default();
    if causes.len() > 1 {
        let part = |cause: &Value| {
            let text = |key| cause.get(key).and_then(Value::as_str).unwrap_or_default();
            format!("{}: {}", text("field"), text("message"))
        };
        let causes: Vec<String> = causes.iter().map(part).collect();
        if let Some(message) = status.get("message").and_then(Value::as_str) {
            let message = normalize_message(message, &causes);
            status.insert("message", message.into());
        }
    }
}

/// Sorts the parts of a message that lists several errors: their order is not fixed.
fn normalize_message(message: &str, causes: &[String]) -> String {
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
    // A field name may contain anything, so the text cannot always be split.
    if parts.len() != causes.len()
        && causes.join(", ").len() == list.len()
        && causes.iter().all(|cause| list.contains(cause.as_str()))
    {
        parts = causes.iter().map(String::as_str).collect();
    }
    parts.sort_unstable();
    format!("{head}[{}]", parts.join(" | "))
}

fn normalize_definition(definition: &mut Map) {
    let Some(metadata) = definition.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    metadata.remove("managedFields");
    let status = definition.get_mut("status").and_then(Value::as_object_mut);
    if let Some(Value::Array(conditions)) = status.and_then(|status| status.get_mut("conditions")) {
        conditions.sort_by_key(|c| {
            c.get("type")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        });
    }
}

/// Blanks what depends on the time or the user of a request in the rows of a table.
pub fn normalize_table(table: &mut Map) {
    let columns = table
        .get("columnDefinitions")
        .and_then(Value::as_array)
        .unwrap_or_default();
    let names: Vec<String> = columns
        .iter()
        .map(|c| {
            c.get("name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    let Some(Value::Array(rows)) = table.get_mut("rows") else {
        return;
    };
    for row in rows {
        let Some(Value::Array(cells)) = row.as_object_mut().and_then(|row| row.get_mut("cells")) else {
            continue;
        };
        for (i, cell) in cells.iter_mut().enumerate() {
            let is_age = cell.as_str().is_some_and(|text| AGE.is_match(text));
            // Only the first event of a watch has the columns.
            let shows_age = || match names.get(i) {
                Some(name) => AGE_COLUMNS.contains(&name.as_str()),
                None => names.is_empty(),
            };
            if names.get(i).is_some_and(|name| name == "Requestor") {
                *cell = "<user>".into();
            } else if is_age && shows_age() {
                *cell = "<age>".into();
            } else if let Some(text) = cell.as_str() {
                // Restarts show their age in parentheses: `3 (6y324d ago)`.
                *cell = AGO.replace(text, "(<age> ago)").as_ref().into();
            }
        }
    }
}

/// Transforms every string in a value.
fn each_text(value: &mut Value, change: &dyn Fn(&str) -> String) {
    match value {
        Value::Object(members) => members.iter_mut().for_each(|(_, value)| each_text(value, change)),
        Value::Array(items) => items.iter_mut().for_each(|value| each_text(value, change)),
        Value::String(text) => *text = change(text).into(),
        _ => {}
    }
}

/// Values of earlier responses by name: those that a scenario captures, and those that the server allocated.
#[derive(Debug, Default)]
pub struct Captures(BTreeMap<String, String>);

impl Captures {
    /// Stores a value under a name.
    pub fn insert(&mut self, name: &str, value: String) {
        self.0.insert(name.to_owned(), value);
    }

    /// Replaces `${name}` by captured values.
    pub fn fill(&self, text: &str) -> String {
        let fill =
            |text: String, (name, value): (&String, &String)| text.replace(&format!("${{{name}}}"), value);
        self.0.iter().fold(text.to_owned(), fill)
    }

    /// Replaces captured values by `${name}`, where they occur as words.
    pub fn blank(&self, value: &mut Value) {
        each_text(value, &|text| {
            let blank = |text: String, (name, value): (&String, &String)| {
                replace_word(&text, value, &format!("${{{name}}}"))
            };
            self.0.iter().fold(text.to_owned(), blank)
        });
        self.blank_numbers(value);
    }

    /// Allocated ports are numbers.
    fn blank_numbers(&self, value: &mut Value) {
        match value {
            Value::Object(members) => members
                .iter_mut()
                .for_each(|(_, value)| self.blank_numbers(value)),
            Value::Array(items) => items.iter_mut().for_each(|value| self.blank_numbers(value)),
            Value::Int(number) => {
                let port = number.to_string();
                let mut ports = self
                    .0
                    .iter()
                    .filter(|(name, _)| name.starts_with("auto:nodePort"));
                if let Some((name, _)) = ports.find(|(_, value)| **value == port) {
                    *value = format!("${{{name}}}").into();
                }
            }
            _ => {}
        }
    }

    /// Captures the names, addresses and ports that the server allocated: those that are not in the
    /// scenario's text.
    pub fn keep_allocated(&mut self, answer: &Value, scenario: &str, key: &str) {
        match answer {
            Value::Object(members) => {
                let text = |name: &str| members.get(name).and_then(Value::as_str);
                if let ("metadata", Some(prefix), Some(name)) = (key, text("generateName"), text("name"))
                    && !prefix.is_empty()
                    && name.starts_with(prefix)
                {
                    self.keep(name, "name", scenario);
                }
                // The recordings number values in the order of the response, where this field is last.
                let is_last = |name: &str| name == "healthCheckNodePort";
                let (last, first): (Vec<_>, Vec<_>) = members.iter().partition(|(name, _)| is_last(name));
                for (name, value) in first.into_iter().chain(last) {
                    self.keep_allocated(value, scenario, name);
                }
            }
            Value::Array(items) => items
                .iter()
                .for_each(|item| self.keep_allocated(item, scenario, key)),
            scalar if ALLOCATED.contains(&key) => {
                let text = match scalar {
                    Value::String(text) => text.to_string(),
                    other => other.to_json(),
                };
                if !matches!(text.as_str(), "" | "0" | "None" | "null") {
                    let kind = if key.ends_with("Port") {
                        "nodePort"
                    } else {
                        "clusterIP"
                    };
                    self.keep(&text, kind, scenario);
                }
            }
            _ => {}
        }
    }

    /// Captures the generated name in an error message.
    pub fn keep_refused_name(&mut self, prefix: &str, answer: &Value, scenario: &str) {
        let name = answer.at(["details", "name"]).and_then(Value::as_str);
        if let Some(name) = name.filter(|name| !prefix.is_empty() && name.starts_with(prefix)) {
            self.keep(name, "name", scenario);
        }
    }

    fn keep(&mut self, value: &str, kind: &str, scenario: &str) {
        // A value that the scenario itself contains is the same in every run.
        if self.0.values().any(|kept| kept == value) || has_word(scenario, value) {
            return;
        }
        let name = format!("auto:{kind}");
        let count = self.0.keys().filter(|kept| kept.starts_with(&name)).count();
        self.0.insert(format!("{name}{}", count + 1), value.to_owned());
    }
}

/// Blanks uids and recent times that are not in the scenario's text.
pub fn blank_fresh(value: &mut Value, scenario: &str) {
    const DAY: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);
    let now = jiff::Timestamp::now();
    let day = |time: jiff::Timestamp| time.strftime("%Y-%m-%d").to_string();
    // A run may cross midnight, and the clock of the server may differ.
    let days = [day(now - DAY), day(now), day(now + DAY)];
    each_text(value, &|text| {
        let keep = |found: &str| scenario.contains(found);
        let uid = |c: &regex::Captures<'_>| {
            if keep(&c[0]) {
                c[0].to_owned()
            } else {
                "<uid>".to_owned()
            }
        };
        let time = |c: &regex::Captures<'_>| {
            let fresh = days.iter().any(|day| c[0].starts_with(day.as_str())) && !keep(&c[0]);
            if fresh {
                "<time>".to_owned()
            } else {
                c[0].to_owned()
            }
        };
        TIME.replace_all(&UID.replace_all(text, uid), time).into_owned()
    });
}

fn is_word(text: &str, at: usize, length: usize) -> bool {
    let joined = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    !joined(text[..at].chars().next_back()) && !joined(text[at + length..].chars().next())
}

fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word)
        .any(|(at, _)| is_word(text, at, word.len()))
}

fn replace_word(text: &str, word: &str, with: &str) -> String {
    let mut out = String::new();
    let mut from = 0;
    for (at, _) in text.match_indices(word) {
        if is_word(text, at, word.len()) {
            out.push_str(&text[from..at]);
            out.push_str(with);
            from = at + word.len();
        }
    }
    out + &text[from..]
}

/// Returns only the parts of a body that a step selects.
pub fn pick(body: &Value, paths: &[String]) -> Value {
    let part = regex(r"\[[^\]]*\]|[^/]+");
    let mut picked = Map::new();
    for path in paths {
        let found = part
            .find_iter(path)
            .try_fold(body, |at, part| pick_part(at, part.as_str()));
        picked.insert(path.as_str(), found.cloned().unwrap_or_default());
    }
    Map::from_iter([("picked", Value::Object(picked))]).into()
}

fn pick_part<'v>(at: &'v Value, part: &str) -> Option<&'v Value> {
    let items = at.as_array();
    match (
        part.strip_prefix('[')
            .and_then(|p| p.strip_suffix(']')?.split_once('=')),
        items,
    ) {
        (Some((keys, wanted)), Some(items)) => items.iter().find(|item| {
            let found = keys.split('.').try_fold(*item, |item, key| item.get(key));
            let display = |value: &Value| value.as_str().map_or_else(|| value.to_json(), str::to_owned);
            found.is_some_and(|value| display(value) == wanted)
        }),
        (_, Some(items)) => items.get(part.parse::<usize>().ok()?),
        _ => at.get(part.replace("~1", "/").as_str()),
    }
}

/// Returns the texts of `Warning` headers, sorted.
pub fn warnings<'h>(headers: impl Iterator<Item = &'h [u8]>) -> Vec<String> {
    let warning = regex(r#"^\s*299 \S+ "((?:[^"\\]|\\.)*)""#);
    let escape = regex(r"(?s)\\(.)");
    let text = |header: &[u8]| {
        let header = String::from_utf8_lossy(header).into_owned();
        match warning.captures(&header).map(|c| c.extract()) {
            Some((_, [text])) => escape.replace_all(text, "${1}").into_owned(),
            None => header,
        }
    };
    let mut out: Vec<String> = headers.map(text).collect();
    out.sort();
    out
}

/// Sorts the parts of a message that lists several errors. Recordings of different ages use different
/// separators, so the message is split at all of them.
fn sort_listing(message: &str) -> String {
    let Some((_, [head, list])) = LISTING.0.captures(message).map(|c| c.extract()) else {
        return message.to_owned();
    };
    let mut pieces: Vec<&str> = list.split(" | ").flat_map(|part| part.split(", ")).collect();
    pieces.sort_unstable();
    format!("{head}[{}]", pieces.join(" | "))
}

/// Sorts lists without a fixed order, in responses and recordings alike.
pub fn sort_unordered(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let is_status = members.get("kind").and_then(Value::as_str) == Some("Status");
            // Picked members are named by their path.
            let sorted = |name: &str, value: Value| match (name.rsplit('/').next().unwrap_or(name), value) {
                ("causes" | "managedFields", Value::Array(mut items)) => {
                    items.sort_by_cached_key(Value::to_json);
                    Value::Array(items)
                }
                ("message", Value::String(text)) if is_status => sort_listing(&text).into(),
                (_, value) => value,
            };
            let members = members.into_iter().map(|(name, value)| {
                let value = sorted(&name, sort_unordered(value));
                (name, value)
            });
            Value::Object(members.collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sort_unordered).collect()),
        Value::Float(f) if f.fract() == 0.0 && f.abs() < 9e15 => Value::Int(f as i64),
        scalar => scalar,
    }
}
