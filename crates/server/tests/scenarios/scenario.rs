//! Scenario files. Bodies keep the order of their members and the form of their numbers.

use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use scantling_value::{Limits, Map, Str, Value, json};
use std::collections::BTreeMap;

const VERBS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// Where the version of the object that `current` names goes in a body.
pub(crate) const CURRENT: &str = "the current version";

/// A sequence of requests.
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

/// One request.
pub(crate) struct Step {
    pub(crate) verb: &'static str,
    pub(crate) path: String,
    pub(crate) body: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) accept: Option<String>,
    /// The object whose version goes into the body.
    pub(crate) current: Option<String>,
    /// What to keep of the answer: names, and where their values stand.
    pub(crate) capture: BTreeMap<String, String>,
    /// What a scenario of our own wants.
    pub(crate) want: Option<Value>,
}

/// The scenarios of a file.
pub(crate) fn read(text: &str) -> Result<Vec<Scenario>, String> {
    let documents = Yaml::load_from_str(text).map_err(|e| e.to_string())?;
    let there = documents.iter().filter(|d| d.is_mapping());
    there.map(scenario).collect()
}

fn scenario(document: &Yaml<'_>) -> Result<Scenario, String> {
    let name = text(document, "name").ok_or("a scenario without a name")?;
    let steps = member(document, "steps").and_then(Yaml::as_sequence);
    let steps = steps.ok_or_else(|| format!("{name} has no steps"))?;
    let steps: Result<Vec<Step>, String> = steps.iter().map(step).collect();
    let steps = steps.map_err(|e| format!("{name}: {e}"))?;
    Ok(Scenario { name, steps })
}

fn step(document: &Yaml<'_>) -> Result<Step, String> {
    let (verb, path) = VERBS
        .iter()
        .find_map(|v| Some((*v, text(document, v)?)))
        .ok_or("a step without a request")?;
    let current = text(document, "current");
    let body = match (text(document, "raw"), member(document, "body")) {
        (Some(raw), _) => Some(raw),
        (None, Some(body)) => {
            let mut out = String::new();
            let place = if current.is_some() {
                Place::Root
            } else {
                Place::Elsewhere
            };
            write(&mut out, body, place);
            Some(out)
        }
        (None, None) => None,
    };
    let capture = member(document, "capture").and_then(Yaml::as_mapping);
    let capture = capture
        .into_iter()
        .flatten()
        .filter_map(|(name, place)| Some((name.as_str()?.to_owned(), place.as_str()?.to_owned())))
        .collect();
    let want = member(document, "want").map(|want| {
        let mut out = String::new();
        write(&mut out, want, Place::Elsewhere);
        json::decode(out.as_bytes(), Limits::SAFE).map_err(|e| e.to_string())
    });
    Ok(Step {
        verb,
        path,
        body,
        content_type: text(document, "contentType"),
        accept: text(document, "accept"),
        current,
        capture,
        want: want.transpose()?,
    })
}

fn member<'y>(node: &'y Yaml<'y>, key: &str) -> Option<&'y Yaml<'y>> {
    let members = node.as_mapping()?.iter();
    members
        .into_iter()
        .find(|(k, _)| k.as_str() == Some(key))
        .map(|(_, v)| v)
}

fn text(node: &Yaml<'_>, key: &str) -> Option<String> {
    member(node, key)?.as_str().map(str::to_owned)
}

/// Where in a body that needs the current version something stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    Metadata,
    Elsewhere,
}

fn write(out: &mut String, node: &Yaml<'_>, place: Place) {
    match node {
        Yaml::Mapping(members) => {
            out.push('{');
            let mut first = true;
            let mut begin = |out: &mut String, key: &str| {
                out.push_str(if std::mem::take(&mut first) { "" } else { ", " });
                out.push_str(&quoted(key));
                out.push_str(": ");
            };
            let mut has_metadata = false;
            for (key, value) in members {
                let key = key_text(key);
                if place == Place::Metadata && key == "resourceVersion" {
                    continue;
                }
                let below = match place {
                    Place::Root if key == "metadata" => Place::Metadata,
                    _ => Place::Elsewhere,
                };
                has_metadata |= below == Place::Metadata;
                begin(out, &key);
                write(out, value, below);
            }
            if place == Place::Metadata {
                begin(out, "resourceVersion");
                out.push_str(&quoted(&format!("${{{CURRENT}}}")));
            }
            if place == Place::Root && !has_metadata {
                begin(out, "metadata");
                write(out, &Yaml::Mapping(Default::default()), Place::Metadata);
            }
            out.push('}');
        }
        Yaml::Sequence(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                write(out, item, Place::Elsewhere);
            }
            out.push(']');
        }
        Yaml::Value(scalar) => out.push_str(&match scalar {
            Scalar::Null => "null".to_owned(),
            Scalar::Boolean(b) => b.to_string(),
            Scalar::Integer(i) => i.to_string(),
            // Whole numbers beyond 64 bits are read as such; 1.0 stays 1.0.
            Scalar::FloatingPoint(f) if f.0.fract() == 0.0 && f.0.abs() >= 1e16 => f.0.to_string(),
            Scalar::FloatingPoint(f) => format!("{:?}", f.0),
            Scalar::String(s) => quoted(s),
        }),
        _ => out.push_str("null"),
    }
}

/// A key; those that are no text are written as JSON has them.
fn key_text(key: &Yaml<'_>) -> String {
    if let Some(text) = key.as_str() {
        return text.to_owned();
    }
    let mut out = String::new();
    write(&mut out, key, Place::Elsewhere);
    out
}

fn quoted(text: &str) -> String {
    Value::String(Str::from(text)).to_json()
}

impl Scenario {
    /// The recording of this scenario's answers, as a file's name.
    pub(crate) fn recording(&self) -> String {
        format!("{}.json", self.name.replace('/', "__"))
    }
}

/// A record of a step's answer.
pub(crate) fn record(step: &Step, status: u16, warnings: Vec<String>, body: Value) -> Value {
    Map::from_iter([
        ("step", Value::from(format!("{} {}", step.verb, step.path))),
        ("status", Value::Int(status.into())),
        ("warnings", Value::from(warnings)),
        ("body", body),
    ])
    .into()
}
