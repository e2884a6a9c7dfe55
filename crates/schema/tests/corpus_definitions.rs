//! Real definitions of public projects: the same verdict and the same errors as Kubernetes gives.

use flate2::read::GzDecoder;
use scantling_schema::definition::{ApiVersion, Definition, Gates};
use scantling_value::{Limits, Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};

const CORPUS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/conformance/corpus/open.jsonl.gz"
);

#[test]
fn definitions_of_the_corpus_get_the_same_errors() {
    let Ok(file) = std::fs::File::open(CORPUS) else {
        println!("SKIPPED: {CORPUS} is not there");
        return;
    };
    let (mut total, mut same, mut round_trips) = (0, 0, 0);
    let mut differences = Vec::new();
    for line in BufReader::new(GzDecoder::new(file)).lines() {
        let entry = json::decode(line.unwrap().as_bytes(), Limits::SAFE).unwrap();
        let document = entry.get("crd").unwrap().clone();
        let name = document
            .at(["metadata", "name"])
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned();
        let wanted: BTreeSet<String> = entry
            .get("errors")
            .and_then(Value::as_array)
            .unwrap()
            .iter()
            .map(|e| text(e.as_str().unwrap()))
            .collect();
        total += 1;
        let mut definition = match Definition::decode(document, ApiVersion::V1, Gates::default()) {
            Ok(received) => received.definition,
            Err(e) => {
                differences.push(format!("{name}: {e}"));
                continue;
            }
        };
        definition.prepare_create(Gates::default());
        let got: BTreeSet<String> = definition
            .validate(ApiVersion::V1)
            .iter()
            .map(|e| text(&e.to_string()))
            .collect();
        if got == wanted {
            same += 1;
        } else {
            let missing = wanted.difference(&got).map(|e| format!("\n  - {e}"));
            let extra = got.difference(&wanted).map(|e| format!("\n  + {e}"));
            differences.push(format!("{name}:{}", missing.chain(extra).collect::<String>()));
        }
        let again = Definition::decode(
            definition.encode(ApiVersion::V1),
            ApiVersion::V1,
            Gates::default(),
        );
        round_trips += usize::from(
            again.is_ok_and(|r| r.definition.encode(ApiVersion::V1) == definition.encode(ApiVersion::V1)),
        );
    }
    println!("{same} of {total} definitions have the same errors; {round_trips} round-trip");
    for d in &differences {
        println!("{d}");
    }
    assert!(same >= 939, "the two others differ in the costs of rules");
    assert_eq!(round_trips, total);
}

/// Type names in rule errors carry a number of no meaning.
fn text(error: &str) -> String {
    let mut out = String::new();
    let mut rest = error;
    while let Some((before, after)) = rest.split_once("selfType") {
        out.push_str(before);
        out.push_str("selfType");
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    out.push_str(rest);
    out
}
