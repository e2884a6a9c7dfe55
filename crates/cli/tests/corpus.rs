//! Real definitions and objects through the program: the same answers as Kubernetes' own code gave.
//!
//! Reads `../shared/conformance/corpus/open.jsonl.gz` beside the workspace. The libraries are held against all of it;
//! here a part of the definitions shows that nothing is lost on the way to the user.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;

const CORPUS: &str = "../../../shared/conformance/corpus/open.jsonl.gz";
const STRIDE: usize = 40;

#[test]
fn answers_are_those_of_the_libraries() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(CORPUS);
    let Ok(file) = std::fs::File::open(&path) else {
        println!("SKIPPED: the corpus is not at {}", path.display());
        return;
    };
    let (mut definitions, mut objects, mut updates) = (0, 0, 0);
    for line in BufReader::new(GzDecoder::new(file)).lines().step_by(STRIDE) {
        let case: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let write = |name: String, value: &Value| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, value.to_string()).unwrap();
        };
        write("crd.json".to_owned(), &case["crd"]);
        definition(directory.path(), &case);
        definitions += 1;
        let samples = list(&case["objects"]);
        if samples.is_empty() {
            continue;
        }
        for (n, sample) in samples.iter().enumerate() {
            write(format!("new/{n:03}.json"), &sample["object"]);
        }
        let report = run(
            directory.path(),
            &[
                "validate",
                "--crds",
                "crd.json",
                "new",
                "--show-object",
                "-o",
                "json",
            ],
        );
        for (sample, item) in samples.iter().zip(list(&report["items"])) {
            object(sample, item);
            objects += 1;
        }
        for update in list(&case["updates"]).iter().take(3) {
            let index = |key: &str| usize::try_from(update[key].as_u64().unwrap()).unwrap();
            let cluster = case["crd"]["spec"]["scope"] == "Cluster";
            let metadata = if cluster {
                json!({"name": "a"})
            } else {
                json!({"name": "a", "namespace": "b"})
            };
            let with_metadata = |object: &Value| {
                let mut object = object.clone();
                object["metadata"] = metadata.clone();
                object
            };
            write(
                "old.json".to_owned(),
                &with_metadata(&samples[index("old")]["stored"]),
            );
            write(
                "update.json".to_owned(),
                &with_metadata(&samples[index("new")]["object"]),
            );
            let arguments = [
                "validate",
                "--crds",
                "crd.json",
                "update.json",
                "--old",
                "old.json",
                "-o",
                "json",
            ];
            let report = run(directory.path(), &arguments);
            let item = &report["items"][0];
            assert_eq!(errors(item), texts(&update["errors"]));
            assert_eq!(item["celCost"].as_u64(), update["celCost"].as_u64().or(Some(0)));
            updates += 1;
        }
    }
    println!("{definitions} definitions, {objects} objects, {updates} updates agree");
}

fn run(directory: &Path, arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_scantling"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

fn definition(directory: &Path, case: &Value) {
    let report = run(directory, &["lint", "crd.json", "-o", "json"]);
    let item = &report["items"][0];
    let wanted = texts(&case["errors"]);
    assert_eq!(item["accepted"], wanted.is_empty());
    assert_eq!(errors(item), wanted);
    let report = run(directory, &["cost", "crd.json", "-o", "json"]);
    let items = list(&report["items"]);
    assert_eq!(items.len(), list(&case["rules"]).len());
    for rule in list(&case["rules"]) {
        let same = |item: &&Value| {
            ["version", "path", "index"]
                .iter()
                .all(|key| item[key] == rule[key])
        };
        let item = items.iter().find(same).unwrap();
        for key in ["cost", "cardinality", "messageExpressionCost"] {
            assert_eq!(
                item[key].as_f64(),
                rule[key].as_f64().or(Some(0.0)),
                "{key} of {rule}"
            );
        }
    }
}

fn object(sample: &Value, item: &Value) {
    let (found, wanted) = (errors(item), texts(&sample["errors"]));
    // The corpus says nothing of an object's own metadata; errors there keep rules from running.
    if found
        .iter()
        .any(|e| e.starts_with("metadata.") && !wanted.contains(e))
    {
        return;
    }
    assert_eq!(found, wanted);
    assert_eq!(item["celCost"].as_u64(), sample["celCost"].as_u64().or(Some(0)));
    assert_eq!(item["object"], sample["stored"]);
}

/// The errors as a server words them, sorted, without the numbers in names of types.
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
