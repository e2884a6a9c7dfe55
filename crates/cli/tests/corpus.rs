//! Runs the CLI on real CRDs and objects: the results must equal those of Kubernetes' own code.
//!
//! Reads `../shared/conformance/corpus/open.jsonl.gz` beside the workspace: all of it in optimised builds
//! (`cargo test --release -p scantling --test corpus`), a part in others, which are some twenty times slower.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The sampling interval of CRDs.
const STRIDE: usize = if cfg!(debug_assertions) { 16 } else { 1 };

fn corpus() -> Option<Vec<Value>> {
    let lines = scantling_testkit::corpus::lines()?;
    Some(
        lines
            .step_by(STRIDE)
            .map(|line| serde_json::from_slice(&line).unwrap())
            .collect(),
    )
}

#[test]
fn corpus_definitions_match_kubernetes() {
    let Some(corpus) = corpus() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    std::fs::create_dir(at.join("crds")).unwrap();
    for (n, case) in corpus.iter().enumerate() {
        std::fs::write(at.join(format!("crds/{n:04}.json")), case["crd"].to_string()).unwrap();
    }
    let report = run(at, &["lint", "crds", "-o", "json"]);
    let items = list(&report["items"]);
    assert_eq!(items.len(), corpus.len());
    for (case, item) in corpus.iter().zip(items) {
        let wanted = texts(&case["errors"]);
        assert_eq!(item["accepted"], wanted.is_empty());
        assert_eq!(errors(item), wanted);
    }
    let report = run(at, &["cost", "crds", "-o", "json"]);
    let items = list(&report["items"]);
    let mut rules = 0;
    for (n, case) in corpus.iter().enumerate() {
        let file = format!("crds/{n:04}.json");
        let items: Vec<&Value> = items.iter().filter(|i| i["file"] == file.as_str()).collect();
        assert_eq!(items.len(), list(&case["rules"]).len(), "{file}");
        for rule in list(&case["rules"]) {
            let same = |item: &&&Value| ["version", "path", "index"].iter().all(|k| item[k] == rule[k]);
            let item = items.iter().find(same).unwrap();
            for key in ["cost", "cardinality", "messageExpressionCost"] {
                assert_eq!(
                    item[key].as_f64(),
                    rule[key].as_f64().or(Some(0.0)),
                    "{key} of {rule}"
                );
            }
            rules += 1;
        }
    }
    println!("{} definitions, {rules} rules agree", corpus.len());
}

#[test]
fn corpus_objects_match_kubernetes() {
    let Some(corpus) = corpus() else {
        return;
    };
    let (mut objects, mut updates) = (0, 0);
    let mut left: Vec<&Value> = corpus.iter().collect();
    while !left.is_empty() {
        // One CRD of each kind at a time.
        let mut kinds = BTreeSet::new();
        let (round, later): (Vec<&Value>, Vec<&Value>) = left.into_iter().partition(|case| {
            let spec = &case["crd"]["spec"];
            kinds.insert((spec["group"].to_string(), spec["names"]["kind"].to_string()))
        });
        left = later;
        objects += creates(&round);
        updates += changes(&round);
    }
    println!("{objects} objects, {updates} updates agree");
}

fn creates(round: &[&Value]) -> usize {
    let directory = tempfile::tempdir().unwrap();
    let write =
        |name: &str, values: &mut dyn Iterator<Item = &Value>| lines(&directory.path().join(name), values);
    let samples = || round.iter().flat_map(|case| list(&case["objects"]));
    write("crds.json", &mut round.iter().map(|case| &case["crd"]));
    write("new.json", &mut samples().map(|sample| &sample["object"]));
    let arguments = [
        "validate",
        "--field-validation=warn",
        "--crds",
        "crds.json",
        "new.json",
        "--show-object",
        "-o",
        "json",
    ];
    let report = run(directory.path(), &arguments);
    let items = list(&report["items"]);
    assert_eq!(items.len(), samples().count());
    let agreeing = samples().zip(items).filter(|(sample, item)| object(sample, item));
    agreeing.count()
}

fn changes(round: &[&Value]) -> usize {
    let (mut before, mut after, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
    // Updates have other names, which matters to rules that read the name.
    let judges_names = |case: &Value| case["crd"].to_string().contains("self.metadata.name");
    for case in round.iter().filter(|case| !judges_names(case)) {
        for update in list(&case["updates"]) {
            let named = |key: &str, form: &str| {
                let index = usize::try_from(update[key].as_u64().unwrap()).unwrap();
                let mut object = case["objects"][index][form].clone();
                let name = format!("n{}", wanted.len());
                object["metadata"] = match case["crd"]["spec"]["scope"].as_str() {
                    Some("Cluster") => json!({"name": name}),
                    _ => json!({"name": name, "namespace": "b"}),
                };
                object
            };
            before.push(named("old", "stored"));
            after.push(named("new", "object"));
            wanted.push(update);
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    lines(&at.join("crds.json"), &mut round.iter().map(|case| &case["crd"]));
    lines(&at.join("old.json"), &mut before.iter());
    lines(&at.join("new.json"), &mut after.iter());
    let arguments = [
        "validate",
        "--field-validation=warn",
        "--crds",
        "crds.json",
        "new.json",
        "--old",
        "old.json",
        "-o",
        "json",
    ];
    let report = run(at, &arguments);
    let items = list(&report["items"]);
    assert_eq!(items.len(), wanted.len());
    for (item, update) in items.iter().zip(&wanted) {
        // Objects of the corpus may lack metadata, which was added here.
        let mut wanted = texts(&update["errors"]);
        wanted.retain(|error| error != "metadata: Required value");
        assert_eq!(errors(item), wanted, "{item}");
        let cost = update["celCost"].as_u64().or(Some(0));
        assert_eq!(item["celCost"].as_u64(), cost, "{item}");
    }
    wanted.len()
}

fn lines(path: &Path, values: &mut dyn Iterator<Item = &Value>) {
    let mut text = String::new();
    for value in values {
        writeln!(text, "{value}").unwrap();
    }
    std::fs::write(path, text).unwrap();
}

fn run(directory: &Path, arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_scantling"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns whether the corpus has the same result for an object; it does not cover metadata, and errors there
/// keep rules from running.
fn object(sample: &Value, item: &Value) -> bool {
    let (found, wanted) = (errors(item), texts(&sample["errors"]));
    if found
        .iter()
        .any(|e| e.starts_with("metadata.") && !wanted.contains(e))
    {
        return false;
    }
    assert_eq!(found, wanted, "{item}");
    assert_eq!(
        item["celCost"].as_u64(),
        sample["celCost"].as_u64().or(Some(0)),
        "{item}"
    );
    // The corpus has metadata as sent.
    let plain = |object: &Value| {
        let mut object = object.clone();
        object.as_object_mut().unwrap().remove("metadata");
        object
    };
    assert_eq!(plain(&item["object"]), plain(&sample["stored"]));
    true
}

/// The errors in kube-apiserver's wording, sorted, without values that differ between runs.
fn errors(item: &Value) -> Vec<String> {
    let text = |e: &Value| {
        format!(
            "{}: {}",
            e["field"].as_str().unwrap(),
            e["message"].as_str().unwrap()
        )
    };
    let mut all: Vec<String> = list(&item["errors"]).iter().map(|e| plain(&text(e))).collect();
    all.sort();
    all
}

fn texts(value: &Value) -> Vec<String> {
    let mut all: Vec<String> = list(value).iter().map(|v| plain(v.as_str().unwrap())).collect();
    all.sort();
    all
}

fn plain(text: &str) -> String {
    // Of rules with equal cost, Kubernetes names an arbitrary subset.
    if let Some((_, said)) = text.split_once(".rule: Forbidden: contributed to ") {
        return said.to_owned();
    }
    let mut parts = text.split("selfType");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("selfType");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
