//! The recorded scenarios of a real API server, replayed against one of ours: each scenario has a server of its own,
//! over TLS on the loopback interface, and every step must be answered as recorded.
//!
//! `known_differences.txt` lists the steps that are answered otherwise, with the reason; a listed step that is answered
//! as recorded fails the run. Scenarios under `conformance/own` say at each step what comes of it (`want`).
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::print_stdout,
    reason = "a test may panic and print"
)]

#[expect(dead_code, reason = "other test programs use more of it")]
#[path = "../support/client.rs"]
mod client;
mod normal;
mod run;
mod scenario;

use client::Client;
use libtest_mimic::{Arguments, Failed, Trial};
use run::Run;
use scantling_server::{Config, Server};
use scantling_store::{MemStore, Store as _, Write};
use scantling_value::{Limits, Value, json, yaml};
use scenario::{Scenario, Step};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::Runtime;

/// How many scenarios run at once: most of their time they wait.
const AT_ONCE: usize = 8;

/// The steps of an area, and how many of them were answered as they should be.
#[derive(Default)]
struct Count {
    passed: AtomicUsize,
    total: AtomicUsize,
}

/// A scenario and what is known about it.
struct Case {
    scenario: Scenario,
    /// The recorded answers; none for scenarios of our own.
    recorded: Option<Vec<Value>>,
    /// The steps that are answered otherwise.
    known: Vec<usize>,
    count: Arc<Count>,
}

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(Limits::SERVER_STACK)
        .build()
        .expect("a runtime can be made");
    let runtime = Arc::new(runtime);
    let mut known = known_differences();
    let mut counts: BTreeMap<String, Arc<Count>> = BTreeMap::new();
    let mut trials = Vec::new();
    for (area, path) in files() {
        let golden = path.with_file_name("golden");
        for scenario in scenarios(&path) {
            let name = scenario.name.clone();
            let recorded = (area != "own").then(|| recording(&golden.join(scenario.recording())));
            let count = counts.entry(area.clone()).or_default();
            count.total.fetch_add(scenario.steps.len(), Ordering::Relaxed);
            let case = Case {
                scenario,
                recorded,
                known: known.remove(&name).unwrap_or_default(),
                count: Arc::clone(count),
            };
            let runtime = Arc::clone(&runtime);
            trials.push(Trial::test(name, move || check(&runtime, case)));
        }
    }
    assert!(
        known.is_empty(),
        "known_differences.txt names scenarios that do not exist: {:?}",
        known.keys()
    );
    let conclusion = libtest_mimic::run(&arguments, trials);
    if conclusion.num_filtered_out == 0 && conclusion.num_ignored == 0 {
        for (area, count) in &counts {
            let (passed, total) = (&count.passed, &count.total);
            println!(
                "conformance: scenarios/{area} {}/{}",
                passed.load(Ordering::Relaxed),
                total.load(Ordering::Relaxed)
            );
        }
    }
    conclusion.exit();
}

/// The files of scenarios, each with its area.
fn files() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let entries = |dir: &Path| {
        let read = std::fs::read_dir(dir).unwrap_or_else(|e| panic!("cannot read {}: {e}", dir.display()));
        let mut paths: Vec<PathBuf> = read.flatten().map(|e| e.path()).collect();
        paths.sort();
        paths
    };
    let mut areas = entries(&root.join("scenarios"));
    areas.push(root.join("own"));
    let mut files = Vec::new();
    for area in areas.iter().filter(|a| a.is_dir()) {
        let name = area.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let yaml = entries(area)
            .into_iter()
            .filter(|p| p.extension().is_some_and(|e| e == "yaml"));
        files.extend(yaml.map(|p| (name.to_owned(), p)));
    }
    files
}

fn scenarios(path: &Path) -> Vec<Scenario> {
    let text = std::fs::read_to_string(path);
    let text = text.unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()));
    scenario::read(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn recording(path: &Path) -> Vec<Value> {
    let text = std::fs::read(path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()));
    let whole = json::decode(&text, Limits::SAFE).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let Value::Array(mut steps) = whole else {
        panic!("{} is no list", path.display());
    };
    for step in &mut steps {
        if let Some(Value::Array(warnings)) = step.as_object_mut().and_then(|s| s.get_mut("warnings")) {
            warnings.sort_by_key(|w| w.as_str().map(str::to_owned));
        }
        *step = normal::ordered(std::mem::take(step));
    }
    steps
}

/// The known differences: `scenario step step…: reason`.
fn known_differences() -> BTreeMap<String, Vec<usize>> {
    let lines = include_str!("known_differences.txt").lines();
    let listed = lines.filter(|l| !l.trim().is_empty() && !l.starts_with('#'));
    listed
        .map(|line| {
            let (what, _) = line
                .split_once(": ")
                .unwrap_or_else(|| panic!("no reason: {line}"));
            let mut words = what.split(' ');
            let name = words.next().unwrap_or_default().to_owned();
            let steps = words.map(|w| w.parse().unwrap_or_else(|_| panic!("no step: {line}")));
            (name, steps.collect())
        })
        .collect()
}

fn check(runtime: &Runtime, case: Case) -> Result<(), Failed> {
    runtime
        .block_on(runtime.spawn(replay(case)))
        .map_err(|e| Failed::from(e.to_string()))?
        .map_err(Failed::from)
}

async fn replay(case: Case) -> Result<(), String> {
    let mut config = Config::default();
    if case.recorded.is_none() {
        for gate in [
            "CustomResourceImmutability",
            "CustomResourceRulesOnCreate",
            "CustomResourceUnions",
        ] {
            config.feature_gates.insert(gate.to_owned(), true);
        }
    }
    let store = Arc::new(MemStore::default());
    age(&store).await?;
    let server = Server::start(config, store).await.map_err(|e| e.to_string())?;
    let mut run = Run::new(Client::of(&server));
    let mut problems = Vec::new();
    for (i, step) in case.scenario.steps.iter().enumerate() {
        let recorded = case.recorded.as_ref().map(|r| &r[i]);
        let got = run.step(step, recorded).await;
        let verdict = got.and_then(|got| match recorded {
            Some(recorded) if got == *recorded => Ok(()),
            Some(recorded) => Err(difference(recorded, &got)),
            None => wanted(step, &got),
        });
        if verdict.is_ok() {
            case.count.passed.fetch_add(1, Ordering::Relaxed);
        }
        match (verdict, case.known.contains(&i)) {
            (Ok(()), false) | (Err(_), true) => {}
            (Err(e), false) => problems.push(format!("step {i}:\n{e}")),
            (Ok(()), true) => problems.push(format!("step {i} passes: take it off known_differences.txt")),
        }
    }
    server.stop().await;
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.join("\n"))
    }
}

/// Brings a store to versions of some length: what is captured should not look like any other number.
async fn age(store: &MemStore) -> Result<(), String> {
    let mut expected = 0;
    for _ in 0..1000 {
        let value = Default::default();
        let write = match expected {
            0 => Write::Create { value },
            _ => Write::Update { value, expected },
        };
        let written = store.write("/age", write).await;
        expected = written.map_err(|e| e.to_string())?.revision;
    }
    Ok(())
}

/// Whether an answer is what a scenario of our own wants.
fn wanted(step: &Step, got: &Value) -> Result<(), String> {
    let want = step.want.as_ref().ok_or("a step that wants nothing")?;
    let status = want.get("status") == got.get("status");
    let causes = match want.get("causes").and_then(Value::as_array) {
        None => true,
        Some(causes) => {
            let mut causes: Vec<&str> = causes.iter().filter_map(Value::as_str).collect();
            let got = got.at(["body", "details", "causes"]).and_then(Value::as_array);
            let text = |c: &Value, k: &str| c.get(k).and_then(Value::as_str).unwrap_or_default().to_owned();
            let mut got: Vec<String> = got
                .unwrap_or_default()
                .iter()
                .map(|c| format!("{}: {}", text(c, "field"), text(c, "message")))
                .collect();
            causes.sort_unstable();
            got.sort();
            causes == got
        }
    };
    let body = want.get("body").is_none_or(|body| holds(got.get("body"), body));
    if status && causes && body {
        Ok(())
    } else {
        Err(format!("wanted {}\ngot {}", want.to_json(), got.to_json()))
    }
}

/// Returns whether a value has everything that is wanted; objects may have more fields. A field that is wanted to be
/// `null` may also be absent.
fn holds(value: Option<&Value>, wanted: &Value) -> bool {
    match (value, wanted) {
        (Some(Value::Object(value)), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| holds(value.get(name), wanted))
        }
        (Some(Value::Array(value)), Value::Array(wanted)) => {
            let mut pairs = value.iter().zip(wanted);
            value.len() == wanted.len() && pairs.all(|(value, wanted)| holds(Some(value), wanted))
        }
        (None, wanted) => wanted.is_null(),
        (Some(value), wanted) => value == wanted,
    }
}

/// The lines in which an answer differs from its recording.
fn difference(recorded: &Value, got: &Value) -> String {
    let (recorded, got) = (yaml::encode(recorded), yaml::encode(got));
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let (before, after) = (lines(&recorded), lines(&got));
    let missing = before
        .iter()
        .filter(|l| !after.contains(l))
        .map(|l| format!("- {l}"));
    let extra = after
        .iter()
        .filter(|l| !before.contains(l))
        .map(|l| format!("+ {l}"));
    missing.chain(extra).collect::<Vec<_>>().join("\n")
}
