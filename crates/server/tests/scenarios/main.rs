//! Replays the recorded scenarios against a server: each scenario has its own server, over TLS on loopback,
//! and every response must equal the recording.
//!
//! `known_differences.txt` lists the steps with different responses and the reasons; a listed step that
//! agrees fails the run. Scenarios under `conformance/own` state the response of each step (`want`).
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may panic and print"
)]

#[expect(dead_code, reason = "other test programs use more of it")]
#[path = "../support/client.rs"]
mod client;
mod run;

use client::Client;
use libtest_mimic::{Arguments, Failed, Trial};
use run::ScenarioRun;
use scantling_server::{Config, Server};
use scantling_store::{MemStore, Store as _, Write};
use scantling_testkit::{KnownDifferences, Scenario, ScenarioStep, compare, normalize, scenario};
use scantling_value::{Limits, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::Runtime;

/// The number of scenarios that run in parallel: they mostly wait.
const AT_ONCE: usize = 8;

/// The steps of an area, and how many responses were correct.
#[derive(Default)]
struct Count {
    passed: AtomicUsize,
    total: AtomicUsize,
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
    let known = Arc::new(KnownDifferences::parse(include_str!("known_differences.txt")));
    let mut counts: BTreeMap<String, Arc<Count>> = BTreeMap::new();
    let mut trials = Vec::new();
    let all: Vec<Scenario> = scenario::areas()
        .iter()
        .flat_map(|area| scenario::scenarios(area))
        .collect();
    let names: Vec<&str> = all.iter().map(|scenario| scenario.name.as_str()).collect();
    let missing = known.missing(&names);
    assert!(
        missing.is_empty(),
        "known_differences.txt names scenarios that do not exist: {missing:?}"
    );
    for scenario in all {
        let count = Arc::clone(counts.entry(scenario.area.clone()).or_default());
        count.total.fetch_add(scenario.steps.len(), Ordering::Relaxed);
        let (runtime, known) = (Arc::clone(&runtime), Arc::clone(&known));
        let name = scenario.name.clone();
        trials.push(Trial::test(name, move || check(&runtime, scenario, known, count)));
    }
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

fn check(
    runtime: &Runtime,
    scenario: Scenario,
    known: Arc<KnownDifferences>,
    count: Arc<Count>,
) -> Result<(), Failed> {
    let replayed = runtime.spawn(async move { replay(&scenario, &known, &count).await });
    runtime
        .block_on(replayed)
        .map_err(|e| Failed::from(e.to_string()))?
        .map_err(Failed::from)
}

async fn replay(scenario: &Scenario, known: &KnownDifferences, count: &Count) -> Result<(), String> {
    // No kube-controller-manager ran during the recordings.
    let mut config = Config {
        empty_namespaces: false,
        ..Config::default()
    };
    if scenario.area == scenario::OWN {
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
    let mut run = ScenarioRun::new(Client::of(&server), scenario);
    run.prepare().await?;
    let mut problems = Vec::new();
    for (number, step) in scenario.steps.iter().enumerate() {
        let found = run.step(step).await.and_then(|got| verdict(step, &got));
        count
            .passed
            .fetch_add(usize::from(found.is_ok()), Ordering::Relaxed);
        problems.extend(known.judge(&scenario.name, number, found).err());
    }
    server.stop().await;
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.join("\n"))
    }
}

/// Advances a store to long revisions, so that captured values do not look like other numbers.
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

/// Compares a response with the recorded one, or with `want` in a scenario of our own.
fn verdict(step: &ScenarioStep, got: &Value) -> Result<(), String> {
    let Some(recorded) = &step.recorded else {
        return wanted(step, got);
    };
    let recorded = normalize::sort_unordered(recorded.clone());
    if *got == recorded {
        return Ok(());
    }
    Err(compare::difference(&recorded, got))
}

fn wanted(step: &ScenarioStep, got: &Value) -> Result<(), String> {
    let want = step.want.as_ref().ok_or("a step without an expected answer")?;
    let status = want.get("status") == got.get("status");
    let body = want
        .get("body")
        .is_none_or(|body| compare::holds(got.get("body"), body));
    if !(status && body) {
        return Err(format!("wanted {}\ngot {}", want.to_json(), got.to_json()));
    }
    let Some(causes) = step.wanted_causes() else {
        return Ok(());
    };
    let got = got
        .at(["body", "details", "causes"])
        .and_then(Value::as_array)
        .unwrap_or_default();
    let line = |c: &Value| format!("{}: {}", compare::text(c, "field"), compare::text(c, "message"));
    compare::same("causes", got.iter().map(line).collect(), causes)
}
