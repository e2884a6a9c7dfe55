//! Compares decoding and encoding of real documents with `serde_json`.
//!
//! `cargo run --release --bin decode [corpus.jsonl.gz]` reads the corpus of real CRDs and objects.

use scantling_value::{Limits, json, yaml};
use std::hint::black_box;
use std::io::Read as _;
use std::time::{Duration, Instant};

fn main() {
    let corpus = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "../../shared/conformance/corpus/open.jsonl.gz".into());
    let Ok(file) = std::fs::File::open(&corpus) else {
        eprintln!("no corpus at {corpus}: give its path");
        std::process::exit(1);
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("the corpus is readable");

    let (mut definitions, mut objects) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let case: serde_json::Value = serde_json::from_str(line).expect("the corpus is JSON");
        definitions.push(case["crd"].to_string());
        let of_case = case["objects"].as_array().into_iter().flatten();
        objects.extend(of_case.map(|o| o["object"].to_string()));
    }
    // One large document: a list of all objects.
    let large = format!(
        "[{}]",
        objects.iter().take(600).cloned().collect::<Vec<_>>().join(",")
    );

    println!(
        "{:<24}{:>12}{:>12}{:>12}{:>8}{:>12}{:>12}",
        "documents", "bytes", "ours MB/s", "serde MB/s", "ratio", "write MB/s", "serde MB/s"
    );
    compare("definitions", &definitions);
    compare("objects", &objects);
    compare("one large list", &[large]);
    println!();
    yaml_rate("definitions", &definitions);
    yaml_rate("objects", &objects);
}

/// Prints how fast the documents are decoded as YAML in block style.
fn yaml_rate(name: &str, documents: &[String]) {
    let texts: Vec<String> = documents
        .iter()
        .map(|d| yaml::encode(&json::decode(d.as_bytes(), Limits::SAFE).expect("the corpus is JSON")))
        .collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        for text in &texts {
            black_box(yaml::decode(black_box(text.as_bytes()), Limits::SAFE)).ok();
        }
        best = best.min(start.elapsed());
    }
    println!(
        "{name} in YAML: {:.0} MB/s, {:.0} documents/s",
        bytes as f64 / best.as_secs_f64() / 1e6,
        texts.len() as f64 / best.as_secs_f64()
    );
}

/// Decodes all documents with both decoders alternately, and prints the best rounds.
fn compare(name: &str, documents: &[String]) {
    let bytes: usize = documents.iter().map(String::len).sum();
    // About 400 MB per decoder, whatever the size of the documents.
    let rounds = (400_000_000 / bytes.max(1)).clamp(4, 200);
    let mut best = [Duration::MAX; 4];
    let ours: Vec<_> = documents
        .iter()
        .map(|d| json::decode(d.as_bytes(), Limits::SAFE).expect("the corpus is JSON"))
        .collect();
    let theirs: Vec<serde_json::Value> = documents
        .iter()
        .map(|d| serde_json::from_str(d).expect("the corpus is JSON"))
        .collect();
    for _ in 0..rounds {
        let runs: [&dyn Fn(); 4] = [
            &|| {
                for d in documents {
                    black_box(json::decode(black_box(d.as_bytes()), Limits::SAFE)).ok();
                }
            },
            &|| {
                for d in documents {
                    black_box(serde_json::from_slice::<serde_json::Value>(black_box(
                        d.as_bytes(),
                    )))
                    .ok();
                }
            },
            &|| {
                for v in &ours {
                    black_box(v.to_json());
                }
            },
            &|| {
                for v in &theirs {
                    black_box(v.to_string());
                }
            },
        ];
        // In turn, so that other load affects all of them alike.
        for (run, best) in runs.iter().zip(&mut best) {
            let start = Instant::now();
            run();
            *best = start.elapsed().min(*best);
        }
    }
    let rate = |d: Duration| bytes as f64 / d.as_secs_f64() / 1e6;
    println!(
        "{name:<24}{bytes:>12}{:>12.0}{:>12.0}{:>8.2}{:>12.0}{:>12.0}",
        rate(best[0]),
        rate(best[1]),
        best[0].as_secs_f64() / best[1].as_secs_f64(),
        rate(best[2]),
        rate(best[3]),
    );
}
