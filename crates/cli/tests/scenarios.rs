//! Recorded answers of a real API server, asked of the program: definitions that were created are linted, objects that
//! were created or changed are validated, as a create or against the object as it was stored. The verdict, the causes,
//! the warnings and the stored object must be those of the recording.
//!
//! What the command line does not decide (updates of definitions, subresources, conflicts, applying) is left to the
//! tests of the server. Steps that do not get in each other's way share a run.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "a test may panic and print, and reads best so"
)]

#[path = "../../admit/tests/scenarios/patch.rs"]
mod patch;
#[path = "../../admit/tests/scenarios/read.rs"]
mod read;

use read::{Scenario, Step, scenarios, text};
use scantling_value::{Limits, Value, json, yaml};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Steps on which we differ, each with the reason. A step that is listed and agrees fails the run.
const KNOWN: &[(&str, usize, &str)] = &[
    (
        "fieldvalidation/many-unknown-fields",
        1,
        "whoever writes warnings into headers shortens them",
    ),
    (
        "fieldvalidation/other-bodies-to-the-letter",
        14,
        "whoever reads a body looks at all that it says of its kind",
    ),
    (
        "fieldvalidation/patch-object-holding-dropped-field",
        4,
        "a server makes a patch to what it has read, without the fields that its definition dropped",
    ),
    (
        "fieldvalidation/yaml-multiple-documents",
        1,
        "a server reads the first document of a request, the program all documents of a file",
    ),
    (
        "lifecycle/conversion-none",
        1,
        "the server converts to the stored version, which has fewer fields",
    ),
    (
        "lifecycle/terminating",
        5,
        "a deletion changed the metadata of the stored object, which files are not told",
    ),
    (
        "list-types/set-duplicates",
        2,
        "the recorder sent 1.0, which YAML as Kubernetes reads it cannot write",
    ),
    (
        "pruning/on-update-and-after-schema-change",
        5,
        "a server makes a patch to what it has read, without the fields that its definition dropped",
    ),
    (
        "ratcheting/fields-dropped-by-the-new-schema",
        4,
        "a server makes a patch to what it has read, without the fields that its definition dropped",
    ),
    (
        "ratcheting/scale-update-of-an-invalid-spec",
        7,
        "a write to /scale changed the generation of the stored object, which files are not told",
    ),
];

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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../conformance/scenarios/{area}"));
    let (mut definitions, mut objects, mut others) = (Vec::new(), Vec::new(), 0);
    let all = scenarios(&folder, &folder.join("golden"));
    for scenario in &all {
        let mut world = World::default();
        for (n, step) in scenario.steps.iter().enumerate() {
            let asked = Asked { scenario, n, step };
            match world.ask(asked) {
                Some(Question::Definition) => definitions.push(asked),
                Some(Question::Object(case)) => objects.push(*case),
                None => others += 1,
            }
            world.take(step);
        }
    }
    let mut differ = Vec::new();
    lint(&definitions, &mut differ);
    let runs = batches(&objects);
    runs.iter().for_each(|batch| batch.validate(&mut differ));
    println!(
        "{area}: {} definitions and {} objects in {} runs, {others} steps are about other things, {} differ",
        definitions.len(),
        objects.len(),
        runs.len() + 1,
        differ.len()
    );
    assert!(!definitions.is_empty() && !objects.is_empty());
    assert!(differ.is_empty(), "{}", differ.join("\n\n"));
}

/// A step of a scenario.
#[derive(Clone, Copy)]
struct Asked<'a> {
    scenario: &'a Scenario,
    n: usize,
    step: &'a Step,
}

impl Asked<'_> {
    /// Keeps what was found, unless it is known.
    fn judge(&self, found: Result<(), String>, differ: &mut Vec<String>) {
        let Asked { scenario, n, step } = self;
        let known = KNOWN
            .iter()
            .any(|(name, step, _)| *name == scenario.name && step == n);
        match (found, known) {
            (Ok(()), false) | (Err(_), true) => {}
            (Ok(()), true) => differ.push(format!(
                "{} step {n}: listed as different, but agrees",
                scenario.name
            )),
            (Err(why), false) => {
                differ.push(format!(
                    "{} step {n} {} {}:\n{why}",
                    scenario.name, step.verb, step.path
                ));
            }
        }
    }
}

/// What the command line can be asked about a step.
enum Question<'a> {
    Definition,
    Object(Box<Case<'a>>),
}

/// An object, and what it is judged by.
struct Case<'a> {
    asked: Asked<'a>,
    /// Group and kind, and the definition.
    definition: (String, String),
    /// Group, kind, namespace and name.
    key: String,
    old: Option<String>,
    /// The text, and what it is written in.
    text: Vec<u8>,
    notation: &'static str,
    mode: &'static str,
}

/// How things stand, by the recorded answers.
#[derive(Default)]
struct World {
    definitions: BTreeMap<String, Value>,
    objects: BTreeMap<String, Value>,
}

/// The resource that a request is about: `group/version/plural`, and where in it.
struct Target<'a> {
    group: &'a str,
    version: &'a str,
    plural: &'a str,
    namespace: Option<&'a str>,
    name: Option<&'a str>,
    subresource: Option<&'a str>,
}

impl<'a> Target<'a> {
    fn of(path: &'a str) -> Option<Self> {
        let mut parts = path.strip_prefix("/apis/")?.split('/');
        let (group, version, mut plural) = (parts.next()?, parts.next()?, parts.next()?);
        let mut namespace = None;
        if plural == "namespaces" {
            namespace = Some(parts.next()?);
            plural = parts.next()?;
        }
        Some(Target {
            group,
            version,
            plural,
            namespace,
            name: parts.next(),
            subresource: parts.next(),
        })
    }

    fn key(&self, kind: &str, name: &str) -> String {
        format!(
            "{}/{kind}/{}/{name}",
            self.group,
            self.namespace.unwrap_or_default()
        )
    }
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

impl World {
    /// Keeps what a step changes.
    fn take(&mut self, step: &Step) {
        let Some(target) = Target::of(&step.path) else {
            return;
        };
        if step.query.contains("dryRun=All") || step.verb == "GET" || !matches!(step.status, 200 | 201) {
            return;
        }
        if target.plural == "customresourcedefinitions" {
            let name = target.name.unwrap_or_else(|| name_of(&step.answer)).to_owned();
            match step.verb.as_str() {
                "DELETE" => self.definitions.remove(&name),
                _ if text(&step.answer, "kind") == "CustomResourceDefinition" => {
                    self.definitions.insert(name, step.answer.clone())
                }
                _ => None,
            };
            return;
        }
        let kind = text(&step.answer, "kind");
        if step.verb == "DELETE" {
            let definition = self
                .definitions
                .get(&format!("{}.{}", target.plural, target.group));
            if let (Some(definition), Some(name)) = (definition, target.name) {
                self.objects.remove(&target.key(kind_of(definition), name));
            }
        } else if target.subresource != Some("scale") && step.answer.get("metadata").is_some() {
            let key = target.key(&kind, name_of(&step.answer));
            self.objects.insert(key, step.answer.clone());
        }
    }

    /// What can be asked about a step, if anything.
    fn ask<'a>(&self, asked: Asked<'a>) -> Option<Question<'a>> {
        let step = asked.step;
        let target = Target::of(&step.path)?;
        if step.captured || step.ours || target.subresource.is_some() {
            return None;
        }
        if target.plural != "customresourcedefinitions" {
            return self
                .case(asked, &target)
                .map(|case| Question::Object(Box::new(case)));
        }
        let definition = json::decode(&step.body, Limits::SAFE).ok()?;
        // Names that are taken and strict decoding are the server's affair.
        let plain = matches!(step.status, 201 | 422) && !step.query.contains("fieldValidation=");
        let is_definition = text(&definition, "kind") == "CustomResourceDefinition"
            && text(&definition, "apiVersion") == "apiextensions.k8s.io/v1";
        (step.verb == "POST" && plain && is_definition).then_some(Question::Definition)
    }

    fn case<'a>(&self, asked: Asked<'a>, target: &Target<'_>) -> Option<Case<'a>> {
        let step = asked.step;
        let definition = self
            .definitions
            .get(&format!("{}.{}", target.plural, target.group))?;
        let kind = kind_of(definition);
        let mode = match step
            .query
            .split('&')
            .find_map(|p| p.strip_prefix("fieldValidation="))
        {
            None | Some("" | "Warn") => "warn",
            Some("Strict") => "strict",
            Some("Ignore") => "ignore",
            Some(_) => return None,
        };
        if !matches!(step.status, 200 | 201 | 400 | 422) {
            return None;
        }
        let old = target
            .name
            .and_then(|name| self.objects.get(&target.key(kind, name)));
        let (mut object, text, notation) = match (step.verb.as_str(), old) {
            ("POST", None) | ("PUT", Some(_)) if step.content_type.contains("yaml") => (
                yaml::decode(&step.body, Limits::SAFE).ok()?,
                Some(step.body.clone()),
                "yaml",
            ),
            ("POST", None) | ("PUT", Some(_)) => (
                json::decode(&step.body, Limits::SAFE).ok()?,
                Some(step.body.clone()),
                "json",
            ),
            ("PATCH", Some(old)) => {
                let body = json::decode_strict(&step.body, Limits::SAFE).ok()?;
                let mut object = old.clone();
                match step.content_type.as_str() {
                    "application/merge-patch+json" if body.duplicates.is_empty() => {
                        patch::merge(&mut object, &body.value);
                    }
                    "application/json-patch+json" if body.duplicates.is_empty() => {
                        patch::json(&mut object, &body.value)?;
                    }
                    _ => return None,
                }
                // What strict decoding finds is the patch's fault there.
                let causes = step.answer.at(["details", "causes"]).and_then(Value::as_array);
                if causes
                    .unwrap_or_default()
                    .iter()
                    .any(|cause| read::text(cause, "field") == "patch")
                {
                    return None;
                }
                (object, None, "json")
            }
            _ => return None,
        };
        let api_version = format!("{}/{}", target.group, target.version);
        if read::text(&object, "kind") != kind || read::text(&object, "apiVersion") != api_version {
            return None;
        }
        let said = |field: &str| {
            object
                .at(["metadata", field])
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (name, version) = (said("name").to_owned(), said("resourceVersion"));
        let versioned = step.current || !version.is_empty() || step.verb == "PATCH";
        if (step.verb == "PUT" && !versioned) || (step.verb == "POST" && versioned) {
            return None;
        }
        if target.name.is_some_and(|wanted| wanted != name) {
            return None;
        }
        let namespace = said("namespace").to_owned();
        let text = match (text, target.namespace) {
            (_, None) if !namespace.is_empty() => return None,
            (_, Some(wanted)) if !namespace.is_empty() && namespace != wanted => return None,
            (Some(text), None | Some("default")) => text,
            (_, Some(wanted)) if namespace.is_empty() => {
                let metadata = object.as_object_mut()?.get_mut("metadata")?.as_object_mut()?;
                metadata.insert("namespace", wanted.into());
                read::sent(&object).into_bytes()
            }
            (Some(text), _) => text,
            (None, _) => read::sent(&object).into_bytes(),
        };
        Some(Case {
            asked,
            definition: (format!("{}/{kind}", target.group), definition.to_json()),
            key: target.key(kind, &name),
            old: old.map(Value::to_json),
            text,
            notation,
            mode,
        })
    }
}

/// Cases that one run answers.
struct Batch<'a, 's> {
    mode: &'static str,
    definitions: BTreeMap<&'a str, &'a str>,
    olds: BTreeMap<&'a str, &'a str>,
    /// Those that must not be there.
    new: BTreeSet<&'a str>,
    cases: Vec<&'a Case<'s>>,
}

fn batches<'a, 's>(cases: &'a [Case<'s>]) -> Vec<Batch<'a, 's>> {
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
    fn takes(&mut self, case: &'a Case<'s>) -> bool {
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

    fn validate(&self, differ: &mut Vec<String>) {
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
            case.asked
                .judge(found.and_then(|item| same_verdict(case.asked.step, item)), differ);
        }
    }
}

fn lint(definitions: &[Asked<'_>], differ: &mut Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    for (n, asked) in definitions.iter().enumerate() {
        fs::write(directory.path().join(format!("{n:04}.json")), &asked.step.body).unwrap();
    }
    let items = items(directory.path(), &["lint", "."]);
    for (n, asked) in definitions.iter().enumerate() {
        let item = items.get(&format!("./{n:04}.json"));
        let found = item.ok_or("  there is no answer".to_owned());
        asked.judge(found.and_then(|item| same_verdict(asked.step, item)), differ);
    }
}

/// Runs the program: the items of its report, by their files.
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
        .map(|item| (text(item, "file"), item.clone()))
        .collect()
}

fn same_verdict(step: &Step, item: &Value) -> Result<(), String> {
    let same = |what: &str, mut ours: Vec<String>, mut wanted: Vec<String>| {
        ours.sort_unstable();
        wanted.sort_unstable();
        if ours == wanted {
            return Ok(());
        }
        Err(format!(
            "  {what} {}\n  wanted {}",
            ours.join("\n         "),
            wanted.join("\n         ")
        ))
    };
    let accepted = item.get("accepted").and_then(Value::as_bool).unwrap();
    let errors = item.get("errors").and_then(Value::as_array).unwrap();
    if accepted != matches!(step.status, 200 | 201) {
        return Err(format!(
            "  {}\n  wanted {}",
            item.to_json(),
            step.answer.to_json()
        ));
    }
    assert_eq!(accepted, errors.is_empty());
    let cause = |c: &Value| {
        format!(
            "{} {}: {}",
            text(c, "reason"),
            text(c, "field"),
            text(c, "message")
        )
    };
    if step.status == 400 {
        let ours = errors.iter().map(|e| text(e, "message")).collect();
        same("message", ours, vec![text(&step.answer, "message")])?;
    } else if !accepted {
        let causes = step
            .answer
            .at(["details", "causes"])
            .and_then(Value::as_array)
            .unwrap_or_default();
        let ours = errors.iter().map(|e| blank(&cause(e))).collect();
        same("causes", ours, causes.iter().map(cause).collect())?;
    }
    let strings = |v: Option<&Value>| -> Vec<String> {
        let list = v.and_then(Value::as_array).unwrap_or_default();
        list.iter().map(|w| w.as_str().unwrap().to_owned()).collect()
    };
    same("warnings", strings(item.get("warnings")), step.warnings.clone())?;
    match item.get("object") {
        Some(object) if accepted => {
            // What differs from server to server, and what an object may leave to whoever sends it.
            let unknown = ["uid", "creationTimestamp", "resourceVersion", "managedFields"].into_iter();
            let unsaid = ["name", "namespace"]
                .into_iter()
                .filter(|field| object.at(["metadata", field]).is_none());
            let unknown: Vec<&str> = unknown.chain(unsaid).collect();
            let plain = |v: &Value| {
                let mut v = v.clone();
                let metadata = v.as_object_mut().unwrap().get_mut("metadata").unwrap();
                unknown.iter().for_each(|field| {
                    metadata.as_object_mut().unwrap().remove(field);
                });
                v.to_json()
            };
            same("stores", vec![plain(object)], vec![plain(&step.answer)])
        }
        _ => Ok(()),
    }
}

/// Recordings blank what looks as if it differed from run to run.
fn blank(text: &str) -> String {
    let time = regex::Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").unwrap();
    let uid = regex::Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").unwrap();
    let text = time.replace_all(text, "<time>");
    uid.replace_all(&text, "<uid>").into_owned()
}
