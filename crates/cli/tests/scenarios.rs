//! Runs the CLI on the recorded scenarios: created CRDs are linted, and created or changed objects are
//! validated, as a create or against the stored object. Verdict, causes, warnings and stored object must
//! agree.
//!
//! The command line does not decide updates of CRDs, subresources, conflicts and applies: those steps are
//! left to the server's tests. Steps that do not affect each other share a run.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use scantling_testkit::compare::{cause_line, same, same_object, text};
use scantling_testkit::scenario::scenarios;
use scantling_testkit::{KnownDifferences, Replay, ResourcePath, Scenario, ScenarioStep, normalize, patch};
use scantling_value::{Limits, Value, json, yaml};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn structural() {
    replay("structural");
}

#[test]
fn cel() {
    replay("cel");
}

#[test]
fn values() {
    replay("values");
}

#[test]
fn ratcheting() {
    replay("ratcheting");
}

#[test]
fn fieldvalidation() {
    replay("fieldvalidation");
}

fn replay(area: &str) {
    let known = KnownDifferences::parse(include_str!("scenarios/known_differences.txt"));
    let all = scenarios(area);
    let mut run = Replay::new(format!("cli/{area}"), &known);
    let (mut definitions, mut objects) = (Vec::new(), Vec::new());
    for scenario in &all {
        run.begin(scenario);
        let mut state = RecordedState::default();
        for (number, step) in scenario.steps.iter().enumerate() {
            let asked = StepRef {
                scenario,
                number,
                step,
            };
            match state.ask(asked) {
                Some(Question::Definition) => definitions.push(asked),
                Some(Question::Object(case)) => objects.push(*case),
                None => run.step(scenario, number, None),
            }
            state.record(step);
        }
    }
    lint(&definitions, &mut run);
    batches(&objects)
        .iter()
        .for_each(|batch| batch.validate(&mut run));
    assert!(!definitions.is_empty() && !objects.is_empty());
    run.finish(1);
}

/// A step of a scenario.
#[derive(Clone, Copy)]
struct StepRef<'a> {
    scenario: &'a Scenario,
    number: usize,
    step: &'a ScenarioStep,
}

/// The check that the CLI can make for a step.
enum Question<'a> {
    Definition,
    Object(Box<ObjectCase<'a>>),
}

/// An object and its CRD.
struct ObjectCase<'a> {
    asked: StepRef<'a>,
    /// Group and kind, and the definition.
    definition: (String, String),
    /// Group, kind, namespace and name.
    key: String,
    old: Option<String>,
    /// The text, and its notation.
    text: Vec<u8>,
    notation: &'static str,
    mode: &'static str,
}

/// The state of the server, according to the recorded responses.
#[derive(Default)]
struct RecordedState {
    definitions: BTreeMap<String, Value>,
    objects: BTreeMap<String, Value>,
}

fn kind_of(definition: &Value) -> &str {
    definition
        .at(["spec", "names", "kind"])
        .and_then(Value::as_str)
        .unwrap()
}

fn name_of(object: &Value) -> &str {
    object
        .at(["metadata", "name"])
        .and_then(Value::as_str)
        .unwrap_or_default()
}

impl RecordedState {
    /// Records what a step changes.
    fn record(&mut self, step: &ScenarioStep) {
        let Some(target) = ResourcePath::parse(&step.path) else {
            return;
        };
        if step.query_value("dryRun") == Some("All")
            || step.verb == "GET"
            || !matches!(step.status(), 200 | 201)
        {
            return;
        }
        if target.plural == "customresourcedefinitions" {
            let name = target.name.unwrap_or_else(|| name_of(step.answer())).to_owned();
            match step.verb {
                "DELETE" => self.definitions.remove(&name),
                _ if text(step.answer(), "kind") == "CustomResourceDefinition" => {
                    self.definitions.insert(name, step.answer().clone())
                }
                _ => None,
            };
            return;
        }
        if step.verb == "DELETE" {
            if let Some(name) = target.name {
                self.objects.remove(&target.object_key(name));
            }
        } else if target.subresource != Some("scale") && step.answer().get("metadata").is_some() {
            let key = target.object_key(name_of(step.answer()));
            self.objects.insert(key, step.answer().clone());
        }
    }

    /// The check that the CLI can make for a step, if any.
    fn ask<'a>(&self, asked: StepRef<'a>) -> Option<Question<'a>> {
        let step = asked.step;
        let target = ResourcePath::parse(&step.path)?;
        if step.uses_captures() || step.is_own() || target.subresource.is_some() {
            return None;
        }
        if target.plural != "customresourcedefinitions" {
            return self
                .case(asked, &target)
                .map(|case| Question::Object(Box::new(case)));
        }
        let definition = json::decode(step.body_bytes(), Limits::SAFE).ok()?;
        // Name conflicts and strict decoding are checked with the server.
        let plain = matches!(step.status(), 201 | 422) && step.query_value("fieldValidation").is_none();
        let is_definition = text(&definition, "kind") == "CustomResourceDefinition"
            && text(&definition, "apiVersion") == "apiextensions.k8s.io/v1";
        (step.verb == "POST" && plain && is_definition).then_some(Question::Definition)
    }

    fn case<'a>(&self, asked: StepRef<'a>, target: &ResourcePath<'_>) -> Option<ObjectCase<'a>> {
        let step = asked.step;
        let definition = self.definitions.get(&target.definition_name())?;
        let kind = kind_of(definition);
        let mode = match step.query_value("fieldValidation") {
            None | Some("" | "Warn") => "warn",
            Some("Strict") => "strict",
            Some("Ignore") => "ignore",
            Some(_) => return None,
        };
        if !matches!(step.status(), 200 | 201 | 400 | 422) {
            return None;
        }
        let old = target
            .name
            .and_then(|name| self.objects.get(&target.object_key(name)));
        let (mut object, bytes, notation) = match (step.verb, old) {
            ("POST", None) | ("PUT", Some(_)) if step.media_type().contains("yaml") => (
                yaml::decode(step.body_bytes(), Limits::SAFE).ok()?,
                Some(step.body_bytes().to_vec()),
                "yaml",
            ),
            ("POST", None) | ("PUT", Some(_)) => (
                json::decode(step.body_bytes(), Limits::SAFE).ok()?,
                Some(step.body_bytes().to_vec()),
                "json",
            ),
            ("PATCH", Some(old)) => {
                let body = json::decode_strict(step.body_bytes(), Limits::SAFE).ok()?;
                if !body.duplicates.is_empty() {
                    return None;
                }
                let object = patch::apply(step.media_type(), old, &body.value)?;
                // Findings of strict decoding are errors of the patch there.
                if step.causes().iter().any(|cause| text(cause, "field") == "patch") {
                    return None;
                }
                (object, None, "json")
            }
            _ => return None,
        };
        let api_version = format!("{}/{}", target.group, target.version);
        if text(&object, "kind") != kind || text(&object, "apiVersion") != api_version {
            return None;
        }
        let said = |field: &str| {
            object
                .at(["metadata", field])
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (name, version) = (said("name").to_owned(), said("resourceVersion"));
        let versioned = step.current.is_some() || !version.is_empty() || step.verb == "PATCH";
        if (step.verb == "PUT" && !versioned) || (step.verb == "POST" && versioned) {
            return None;
        }
        if target.name.is_some_and(|wanted| wanted != name) {
            return None;
        }
        let namespace = said("namespace").to_owned();
        let text = match (bytes, target.namespace) {
            (_, None) if !namespace.is_empty() => return None,
            (_, Some(wanted)) if !namespace.is_empty() && namespace != wanted => return None,
            (Some(bytes), None | Some("default")) => bytes,
            (_, Some(wanted)) if namespace.is_empty() => {
                let metadata = object.as_object_mut()?.get_mut("metadata")?.as_object_mut()?;
                metadata.insert("namespace", wanted.into());
                to_json_with_fractions(&object).into_bytes()
            }
            (Some(bytes), _) => bytes,
            (None, _) => to_json_with_fractions(&object).into_bytes(),
        };
        Some(ObjectCase {
            asked,
            definition: (format!("{}/{kind}", target.group), definition.to_json()),
            key: target.object_key(&name),
            old: old.map(Value::to_json),
            text,
            notation,
            mode,
        })
    }
}

/// JSON in which floats keep their fraction, as clients send them: `1.0`.
fn to_json_with_fractions(value: &Value) -> String {
    match value {
        Value::Float(f) => format!("{f:?}"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(to_json_with_fractions).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            let member = |(name, value): (&scantling_value::Str, &Value)| {
                format!(
                    "{}:{}",
                    Value::from(name.clone()).to_json(),
                    to_json_with_fractions(value)
                )
            };
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{{{}}}", members.join(","))
        }
        other => other.to_json(),
    }
}

/// Cases of one run.
struct Batch<'a, 's> {
    mode: &'static str,
    definitions: BTreeMap<&'a str, &'a str>,
    olds: BTreeMap<&'a str, &'a str>,
    /// Objects that must not exist.
    new: BTreeSet<&'a str>,
    cases: Vec<&'a ObjectCase<'s>>,
}

fn batches<'a, 's>(cases: &'a [ObjectCase<'s>]) -> Vec<Batch<'a, 's>> {
    let mut all: Vec<Batch<'a, 's>> = Vec::new();
    for case in cases {
        if !all.iter_mut().any(|batch| batch.takes(case)) {
            let mut batch = Batch {
                mode: case.mode,
                definitions: BTreeMap::new(),
                olds: BTreeMap::new(),
                new: BTreeSet::new(),
                cases: Vec::new(),
            };
            assert!(batch.takes(case));
            all.push(batch);
        }
    }
    all
}

impl<'a, 's> Batch<'a, 's> {
    fn takes(&mut self, case: &'a ObjectCase<'s>) -> bool {
        let (kind, definition) = (case.definition.0.as_str(), case.definition.1.as_str());
        let fits = self.mode == case.mode
            && self
                .definitions
                .get(kind)
                .is_none_or(|there| *there == definition)
            && match &case.old {
                Some(old) => {
                    let there = self.olds.get(case.key.as_str());
                    there.is_none_or(|there| there == old) && !self.new.contains(case.key.as_str())
                }
                None => !self.olds.contains_key(case.key.as_str()),
            };
        if fits {
            self.definitions.insert(kind, definition);
            match &case.old {
                Some(old) => drop(self.olds.insert(&case.key, old)),
                None => drop(self.new.insert(&case.key)),
            }
            self.cases.push(case);
        }
        fits
    }

    fn validate(&self, run: &mut Replay<'_>) {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        let write = |folder: &str, n: usize, ending: &str, text: &[u8]| {
            fs::create_dir_all(at.join(folder)).unwrap();
            fs::write(at.join(format!("{folder}/{n:04}.{ending}")), text).unwrap();
        };
        for (n, definition) in self.definitions.values().enumerate() {
            write("crds", n, "json", definition.as_bytes());
        }
        for (n, old) in self.olds.values().enumerate() {
            write("old", n, "json", old.as_bytes());
        }
        for (n, case) in self.cases.iter().enumerate() {
            write("new", n, case.notation, &case.text);
        }
        let mut arguments = vec![
            "validate",
            "--crds",
            "crds",
            "--field-validation",
            self.mode,
            "--show-object",
            "new",
        ];
        if !self.olds.is_empty() {
            arguments.extend(["--old", "old"]);
        }
        let items = items(at, &arguments);
        for (n, case) in self.cases.iter().enumerate() {
            let item = items.get(&format!("new/{n:04}.{}", case.notation));
            let found = item.ok_or("  there is no answer".to_owned());
            let StepRef {
                scenario,
                number,
                step,
            } = case.asked;
            run.step(
                scenario,
                number,
                Some(found.and_then(|item| same_verdict(step, item))),
            );
        }
    }
}

fn lint(definitions: &[StepRef<'_>], run: &mut Replay<'_>) {
    let directory = tempfile::tempdir().unwrap();
    for (n, asked) in definitions.iter().enumerate() {
        fs::write(
            directory.path().join(format!("{n:04}.json")),
            asked.step.body_bytes(),
        )
        .unwrap();
    }
    let items = items(directory.path(), &["lint", "."]);
    for (n, asked) in definitions.iter().enumerate() {
        let item = items.get(&format!("{n:04}.json"));
        let found = item.ok_or("  there is no answer".to_owned());
        let StepRef {
            scenario,
            number,
            step,
        } = *asked;
        run.step(
            scenario,
            number,
            Some(found.and_then(|item| same_verdict(step, item))),
        );
    }
}

/// Runs the CLI; returns the items of its report by file.
fn items(directory: &Path, arguments: &[&str]) -> BTreeMap<String, Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_scantling"))
        .args(arguments)
        .args(["-o", "json"])
        .current_dir(directory)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{arguments:?}: {said}"
    );
    let report = json::decode(&output.stdout, Limits::SERVER).unwrap();
    let items = report.get("items").and_then(Value::as_array).unwrap();
    items
        .iter()
        .map(|item| (text(item, "file").to_owned(), item.clone()))
        .collect()
}

fn same_verdict(step: &ScenarioStep, item: &Value) -> Result<(), String> {
    let accepted = item.get("accepted").and_then(Value::as_bool).unwrap();
    let errors = item.get("errors").and_then(Value::as_array).unwrap();
    if accepted != step.succeeds() {
        return Err(format!(
            "  {}
  wanted {}",
            item.to_json(),
            step.answer().to_json()
        ));
    }
    assert_eq!(accepted, errors.is_empty());
    if step.status() == 400 {
        let wanted = text(step.answer(), "message");
        // kube-apiserver stops after strict decoding; the CLI goes on and reports what validation finds, too.
        let is_strict = |message: &&str| message.contains("strict decoding error");
        let all = errors.iter().map(|e| text(e, "message"));
        let ours = all.filter(|message| !is_strict(&wanted) || is_strict(message));
        same(
            "message",
            ours.map(str::to_owned).collect(),
            vec![wanted.to_owned()],
        )?;
    } else if !accepted {
        let ours = errors
            .iter()
            .map(|e| normalize::blank_volatile(&cause_line(e)))
            .collect();
        same("causes", ours, step.causes().iter().map(cause_line).collect())?;
    }
    let warnings = item.get("warnings").and_then(Value::as_array).unwrap_or_default();
    let warnings = warnings.iter().map(|w| w.as_str().unwrap().to_owned()).collect();
    same("warnings", warnings, step.warnings())?;
    match item.get("object") {
        Some(object) if accepted => {
            // A file may omit name and namespace.
            let mut unsaid = vec!["name", "namespace"];
            unsaid.retain(|field| object.at(["metadata", field]).is_none());
            same_object(object, step.answer(), &unsaid)
        }
        _ => Ok(()),
    }
}
