//! Reads scenarios and the answers recorded for them.

use scantling_value::{Limits, Map, Str, Value, json, yaml};
use std::fs;
use std::path::Path;

/// A sequence of requests.
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
}

/// A request and the answer to it.
pub(crate) struct Step {
    pub(crate) verb: String,
    /// The path without the query.
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) content_type: String,
    /// The bytes that are sent.
    pub(crate) body: Vec<u8>,
    /// Whether the answer is ours: what is stored is then what the pipeline makes.
    pub(crate) ours: bool,
    /// Whether the body gets the version of the stored object.
    pub(crate) current: bool,
    /// Whether the step depends on an earlier answer.
    pub(crate) captured: bool,
    pub(crate) status: i64,
    pub(crate) warnings: Vec<String>,
    pub(crate) answer: Value,
}

/// All scenarios of a folder that were recorded.
pub(crate) fn scenarios(folder: &Path, golden: &Path) -> Vec<Scenario> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|x| x == "yaml"))
        .collect();
    files.sort();
    let mut out = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for document in documents(&text) {
            let scenario = yaml::decode(quote_y_and_n(&document).as_bytes(), Limits::SAFE)
                .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            if !scenario.is_null() {
                out.push(read(&scenario, golden));
            }
        }
    }
    out
}

/// The documents of a YAML file. Scenarios have no line of three dashes but between documents.
fn documents(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        if line.trim_end() == "---" {
            documents.push(String::new());
        } else if let Some(last) = documents.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    documents.retain(|d| !d.trim().is_empty());
    documents
}

/// Puts quotes around the bare words `y` and `n`: scenarios are written for a reader that takes them for strings, where
/// Kubernetes takes them for booleans. Block scalars stay as they are: they are sent as they stand.
fn quote_y_and_n(document: &str) -> String {
    let mut out = String::new();
    let mut block: Option<usize> = None;
    for line in document.lines() {
        let indent = line.len() - line.trim_start().len();
        if block.is_some_and(|outer| indent <= outer && !line.trim().is_empty()) {
            block = None;
        }
        if block.is_some() {
            out.push_str(line);
        } else {
            for (i, c) in line.char_indices() {
                let (before, after) = (line[..i].trim_end(), line[i + c.len_utf8()..].trim_start());
                let begins = line[..i].ends_with([' ', '[', '{', ',']) || i == 0;
                let bare = matches!(c, 'y' | 'n' | 'Y' | 'N')
                    && begins
                    && (before.is_empty() || before.ends_with(['[', '{', ',', ':', '-']))
                    && (after.is_empty() || after.starts_with([',', ']', '}', ':']));
                if bare && !in_prose(line, i) {
                    out.push('"');
                    out.push(c);
                    out.push('"');
                } else {
                    out.push(c);
                }
            }
            if line.trim_end().ends_with(['|', '>']) || line.trim_end().ends_with("|-") {
                block = Some(indent);
            }
        }
        out.push('\n');
    }
    out
}

/// Whether a place of a line is inside of quotes or in a sentence.
fn in_prose(line: &str, at: usize) -> bool {
    let before = &line[..at];
    let sentence = before.trim_start().starts_with("note:") || before.trim_start().starts_with('#');
    sentence || before.matches('"').count() % 2 == 1 || before.matches('\'').count() % 2 == 1
}

fn read(scenario: &Value, golden: &Path) -> Scenario {
    let name = text(scenario, "name");
    let steps = scenario
        .get("steps")
        .and_then(Value::as_array)
        .unwrap_or_default();
    if steps.iter().any(|step| step.get("want").is_some()) {
        let steps = steps.iter().map(|s| step(s, &wanted(s))).collect();
        return Scenario { name, steps };
    }
    let file = golden.join(format!("{}.json", name.replace('/', "__")));
    let recorded = fs::read(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let recorded = json::decode(&recorded, Limits::SAFE).unwrap();
    let answers = recorded.as_array().unwrap();
    let steps = steps.iter().zip(answers).map(|(s, a)| step(s, a)).collect();
    Scenario { name, steps }
}

/// The answer that a step of our own scenarios wants, in the form of a recorded one. Causes are `field: message`.
fn wanted(step: &Value) -> Value {
    let want = step.get("want").unwrap();
    let mut body = Map::new();
    if let Some(causes) = want.get("causes").and_then(Value::as_array) {
        body.insert("wanted", Value::Array(causes.to_vec()));
    }
    let mut answer = Map::new();
    answer.insert("status", want.get("status").cloned().unwrap_or_default());
    answer.insert("body", Value::Object(body));
    Value::Object(answer)
}

fn step(step: &Value, answer: &Value) -> Step {
    let verbs = ["GET", "POST", "PUT", "PATCH", "DELETE"];
    let verb = verbs.into_iter().find(|v| step.get(v).is_some()).unwrap();
    let whole = text(step, verb);
    let (path, query) = whole.split_once('?').unwrap_or((&whole, ""));
    let body = match (step.get("raw"), step.get("body")) {
        (Some(raw), _) => raw.as_str().unwrap().as_bytes().to_vec(),
        (None, Some(body)) => sent(body).into_bytes(),
        (None, None) => Vec::new(),
    };
    let captured = whole.contains("${") || String::from_utf8_lossy(&body).contains("${");
    let content_type = step
        .get("contentType")
        .and_then(Value::as_str)
        .unwrap_or("application/json");
    let warnings = answer
        .get("warnings")
        .and_then(Value::as_array)
        .unwrap_or_default();
    Step {
        verb: verb.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        content_type: content_type.to_owned(),
        body,
        ours: step.get("want").is_some(),
        current: step.get("current").is_some(),
        captured,
        status: answer.get("status").and_then(Value::as_int).unwrap_or(0),
        warnings: warnings.iter().map(|w| w.as_str().unwrap().to_owned()).collect(),
        answer: answer.get("body").cloned().unwrap_or_default(),
    }
}

pub(crate) fn text(v: &Value, key: &str) -> String {
    v.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A body as the recorder sent it: floats keep their fraction, `1.0`.
pub(crate) fn sent(v: &Value) -> String {
    match v {
        Value::Float(f) => format!("{f:?}"),
        Value::Array(list) => format!("[{}]", list.iter().map(sent).collect::<Vec<_>>().join(",")),
        Value::Object(map) => {
            let member = |(k, v): (&Str, &Value)| format!("{}:{}", Value::from(k.clone()).to_json(), sent(v));
            format!("{{{}}}", map.iter().map(member).collect::<Vec<_>>().join(","))
        }
        v => v.to_json(),
    }
}
