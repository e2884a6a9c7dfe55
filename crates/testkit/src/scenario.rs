//! Scenario files and their recorded responses.
//!
//! A scenario is a YAML document with a `name` and a list of `steps`; each step is one HTTP request. The
//! recording beside it (`golden/<name>.json`) has one response per step. Scenarios for features that only
//! Scantling has state the response in `want` instead.

use crate::normalize::normalize_table;
use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use scantling_value::{Limits, Map, Str, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const VERBS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// The area of the scenarios for features that only Scantling has.
pub const OWN: &str = "own";

/// Placeholder in a request body for the resource version of the object that `current` names.
pub const CURRENT_VERSION: &str = "${the current version}";

/// A sequence of requests with the expected responses.
#[derive(Debug)]
pub struct Scenario {
    /// The folder of the file.
    pub area: String,
    /// The name, `group/title`.
    pub name: String,
    /// Namespaces to create before the first step.
    pub namespaces: Vec<String>,
    /// True if the scenario lists its namespaces, even if there are none. In the recordings of such
    /// scenarios, allocated values are blanked.
    pub blanks_chosen_values: bool,
    /// The text of the scenario, to distinguish its own values from those that a server allocates.
    pub text: String,
    /// The requests in order.
    pub steps: Vec<ScenarioStep>,
}

/// One request of a scenario with the expected response.
#[derive(Debug)]
pub struct ScenarioStep {
    /// The HTTP method.
    pub verb: &'static str,
    /// The path without its query.
    pub path: String,
    /// The query without the question mark.
    pub query: String,
    /// The body: the JSON of `body` in document order, or `raw` verbatim.
    pub body: Option<String>,
    /// The body with [`CURRENT_VERSION`] in its metadata, if the step names a current object.
    pub versioned_body: Option<String>,
    /// The `Content-Type` header.
    pub content_type: Option<String>,
    /// The `Accept` header.
    pub accept: Option<String>,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// The path of the object whose resource version is put into the body.
    pub current: Option<String>,
    /// The values of the response that later steps use: names and paths.
    pub capture: BTreeMap<String, String>,
    /// The parts of the response to compare, if not all of it.
    pub pick: Vec<String>,
    /// The time to wait after the step.
    pub wait: Duration,
    /// The expected response in a scenario of our own.
    pub want: Option<Value>,
    /// The recorded response.
    pub recorded: Option<Value>,
}

impl ScenarioStep {
    /// Returns the path with its query.
    pub fn url(&self) -> String {
        match self.query.as_str() {
            "" => self.path.clone(),
            query => format!("{}?{query}", self.path),
        }
    }

    /// Returns the value of a query parameter.
    pub fn query_value(&self, name: &str) -> Option<&str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .into_iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }

    /// Returns the media type of the body, without parameters.
    pub fn media_type(&self) -> &str {
        let whole = self.content_type.as_deref().unwrap_or("application/json");
        whole.split(';').next().unwrap_or_default()
    }

    /// Returns the body's bytes; empty if the step has no body.
    pub fn body_bytes(&self) -> &[u8] {
        self.body.as_deref().unwrap_or_default().as_bytes()
    }

    /// Returns whether the request depends on an earlier response.
    pub fn uses_captures(&self) -> bool {
        self.url().contains("${") || self.body.as_deref().unwrap_or_default().contains("${")
    }

    /// Returns whether the scenario is one of our own.
    pub fn is_own(&self) -> bool {
        self.want.is_some()
    }

    /// Returns the expected HTTP status.
    pub fn status(&self) -> i64 {
        let answer = self.want.as_ref().or(self.recorded.as_ref());
        answer
            .and_then(|answer| answer.get("status")?.as_int())
            .unwrap_or(0)
    }

    /// Returns whether the request is expected to succeed.
    pub fn succeeds(&self) -> bool {
        (200..300).contains(&self.status())
    }

    /// Returns the recorded warnings.
    pub fn warnings(&self) -> Vec<String> {
        let listed = self
            .recorded
            .as_ref()
            .and_then(|answer| answer.get("warnings")?.as_array());
        listed
            .unwrap_or_default()
            .iter()
            .filter_map(|w| Some(w.as_str()?.to_owned()))
            .collect()
    }

    /// Returns the recorded body.
    pub fn answer(&self) -> &Value {
        static NOTHING: Value = Value::Null;
        self.recorded
            .as_ref()
            .and_then(|answer| answer.get("body"))
            .unwrap_or(&NOTHING)
    }

    /// Returns the recorded causes of a refusal.
    pub fn causes(&self) -> &[Value] {
        self.answer()
            .at(["details", "causes"])
            .and_then(Value::as_array)
            .unwrap_or_default()
    }

    /// Returns the causes that a scenario of our own expects, each `field: message`.
    pub fn wanted_causes(&self) -> Option<Vec<String>> {
        let causes = self.want.as_ref()?.get("causes")?.as_array()?;
        Some(
            causes
                .iter()
                .filter_map(|cause| Some(cause.as_str()?.to_owned()))
                .collect(),
        )
    }
}

/// Returns the folder of recordings and scenarios.
pub fn conformance() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance")
}

/// Returns the names of all areas of recorded scenarios, and [`OWN`].
pub fn areas() -> Vec<String> {
    let folders = entries(&conformance().join("scenarios"))
        .into_iter()
        .filter(|path| path.is_dir());
    let names = folders.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    names.chain([OWN.to_owned()]).collect()
}

/// Reads all scenarios of an area with their recordings.
pub fn scenarios(area: &str) -> Vec<Scenario> {
    let folder = if area == OWN {
        conformance().join(OWN)
    } else {
        conformance().join("scenarios").join(area)
    };
    let files = entries(&folder)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"));
    files.flat_map(|file| read_file(area, &file)).collect()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("cannot read {}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = read
        .map(|entry| entry.expect("a readable folder").path())
        .collect();
    // The order of a directory differs between file systems.
    paths.sort();
    paths
}

fn read_file(area: &str, file: &Path) -> Vec<Scenario> {
    let fail = |why: String| -> ! { panic!("{}: {why}", file.display()) };
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| fail(e.to_string()));
    let documents = Yaml::load_from_str(&text).unwrap_or_else(|e| fail(e.to_string()));
    let documents = documents.iter().filter(|document| document.is_mapping());
    documents
        .map(|document| {
            let mut scenario = parse(area, document).unwrap_or_else(|why| fail(why));
            if area != OWN {
                let name = format!("{}.json", scenario.name.replace('/', "__"));
                attach(&mut scenario, &file.with_file_name("golden").join(name));
            }
            scenario
        })
        .collect()
}

/// Attaches the recorded response to each step.
fn attach(scenario: &mut Scenario, golden: &Path) {
    let bytes = std::fs::read(golden).unwrap_or_else(|e| panic!("cannot read {}: {e}", golden.display()));
    let recorded = json::decode(&bytes, Limits::SAFE);
    let Ok(Value::Array(answers)) = recorded else {
        panic!("{} is not a list of answers", golden.display());
    };
    assert_eq!(
        answers.len(),
        scenario.steps.len(),
        "{}: one answer per step",
        golden.display()
    );
    for (step, mut answer) in scenario.steps.iter_mut().zip(answers) {
        // Some recordings have the ages of past events.
        if let Some(Value::Object(body)) = answer.as_object_mut().and_then(|answer| answer.get_mut("body")) {
            tables(body).for_each(normalize_table);
        }
        step.recorded = Some(answer);
    }
}

/// The tables of a response: its body, or the objects of the events of a watch.
fn tables(body: &mut Map) -> impl Iterator<Item = &mut Map> {
    let is_table = |object: &Map| object.get("kind").and_then(Value::as_str) == Some("Table");
    let (own, events) = match is_table(body) {
        true => (Some(body), None),
        false => (None, body.get_mut("events").and_then(Value::as_array_mut)),
    };
    let events = events.into_iter().flatten();
    let objects = events.filter_map(|event| event.as_object_mut()?.get_mut("object")?.as_object_mut());
    own.into_iter()
        .chain(objects.filter(move |object| is_table(object)))
}

fn parse(area: &str, document: &Yaml<'_>) -> Result<Scenario, String> {
    let name = string(document, "name").ok_or("a scenario without a name")?;
    let steps = member(document, "steps").and_then(Yaml::as_sequence);
    let steps = steps.ok_or_else(|| format!("{name} has no steps"))?;
    let steps: Result<Vec<_>, String> = steps.iter().map(parse_step).collect();
    let namespaces = match member(document, "namespace") {
        Some(Yaml::Sequence(names)) => names
            .iter()
            .filter_map(|n| Some(n.as_str()?.to_owned()))
            .collect(),
        Some(name) => name.as_str().map(str::to_owned).into_iter().collect(),
        None => Vec::new(),
    };
    Ok(Scenario {
        area: area.to_owned(),
        namespaces,
        blanks_chosen_values: member(document, "namespace").is_some(),
        text: to_json(document),
        steps: steps.map_err(|e| format!("{name}: {e}"))?,
        name,
    })
}

fn parse_step(document: &Yaml<'_>) -> Result<ScenarioStep, String> {
    let (verb, url) = VERBS
        .iter()
        .find_map(|verb| Some((*verb, string(document, verb)?)))
        .ok_or("a step without a request")?;
    let (path, query) = url.split_once('?').unwrap_or((&url, ""));
    let current = string(document, "current");
    let raw = string(document, "raw");
    let structured = member(document, "body").filter(|_| raw.is_none());
    let versioned_body = structured.filter(|_| current.is_some()).map(|body| {
        let mut out = String::new();
        write(&mut out, body, VersionSlot::Root);
        out
    });
    let want = member(document, "want").map(|want| json::decode(to_json(want).as_bytes(), Limits::SAFE));
    let wait = member(document, "wait")
        .map(to_json)
        .and_then(|text| text.parse::<f64>().ok());
    let pick = member(document, "pick")
        .and_then(Yaml::as_sequence)
        .into_iter()
        .flatten();
    Ok(ScenarioStep {
        verb,
        path: path.to_owned(),
        query: query.to_owned(),
        body: raw.or_else(|| structured.map(to_json)),
        versioned_body,
        content_type: string(document, "contentType"),
        accept: string(document, "accept"),
        headers: strings(document, "headers"),
        current,
        capture: strings(document, "capture"),
        pick: pick.filter_map(|path| Some(path.as_str()?.to_owned())).collect(),
        wait: Duration::from_secs_f64(wait.unwrap_or(0.0)),
        want: want.transpose().map_err(|e| e.to_string())?,
        recorded: None,
    })
}

fn member<'y>(node: &'y Yaml<'y>, key: &str) -> Option<&'y Yaml<'y>> {
    let mut members = node.as_mapping()?.iter();
    members.find(|(k, _)| k.as_str() == Some(key)).map(|(_, v)| v)
}

fn string(node: &Yaml<'_>, key: &str) -> Option<String> {
    member(node, key)?.as_str().map(str::to_owned)
}

fn strings(node: &Yaml<'_>, key: &str) -> BTreeMap<String, String> {
    let members = member(node, key).and_then(Yaml::as_mapping).into_iter().flatten();
    members
        .map(|(name, value)| (key_text(name), key_text(value)))
        .collect()
}

/// The position of a mapping in a body that takes the current resource version.
#[derive(Clone, Copy, PartialEq)]
enum VersionSlot {
    Root,
    Metadata,
    Elsewhere,
}

fn to_json(node: &Yaml<'_>) -> String {
    let mut out = String::new();
    write(&mut out, node, VersionSlot::Elsewhere);
    out
}

/// Writes JSON as the recorder sent it: members in document order, floats with their fraction.
fn write(out: &mut String, node: &Yaml<'_>, slot: VersionSlot) {
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
                // Replaced by the current version below.
                if slot == VersionSlot::Metadata && key == "resourceVersion" {
                    continue;
                }
                let below = match slot {
                    VersionSlot::Root if key == "metadata" => VersionSlot::Metadata,
                    _ => VersionSlot::Elsewhere,
                };
                has_metadata |= below == VersionSlot::Metadata;
                begin(out, &key);
                write(out, value, below);
            }
            if slot == VersionSlot::Metadata {
                begin(out, "resourceVersion");
                out.push_str(&quoted(CURRENT_VERSION));
            }
            if slot == VersionSlot::Root && !has_metadata {
                begin(out, "metadata");
                write(out, &Yaml::Mapping(Default::default()), VersionSlot::Metadata);
            }
            out.push('}');
        }
        Yaml::Sequence(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                write(out, item, VersionSlot::Elsewhere);
            }
            out.push(']');
        }
        Yaml::Value(scalar) => out.push_str(&match scalar {
            Scalar::Null => "null".to_owned(),
            Scalar::Boolean(b) => b.to_string(),
            Scalar::Integer(i) => i.to_string(),
            // The recorder reads integers beyond 64 bits exactly; 1.0 stays 1.0.
            Scalar::FloatingPoint(f) if f.0.fract() == 0.0 && f.0.abs() >= 1e16 => f.0.to_string(),
            Scalar::FloatingPoint(f) => format!("{:?}", f.0),
            Scalar::String(s) => quoted(s),
        }),
        _ => out.push_str("null"),
    }
}

/// Returns a key as a string. Keys that are not strings are written as JSON.
fn key_text(key: &Yaml<'_>) -> String {
    key.as_str().map_or_else(|| to_json(key), str::to_owned)
}

fn quoted(text: &str) -> String {
    Value::String(Str::from(text)).to_json()
}

/// Returns a response in the format of the recordings.
pub fn record(step: &ScenarioStep, status: u16, warnings: Vec<String>, body: Value) -> Value {
    Map::from_iter([
        ("step", Value::from(format!("{} {}", step.verb, step.url()))),
        ("status", Value::Int(status.into())),
        ("warnings", Value::from(warnings)),
        ("body", body),
    ])
    .into()
}
