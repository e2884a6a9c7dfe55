//! Runs the public conformance suite of CEL (github.com/google/cel-spec), each test under its own name.
//!
//! Tests of protobuf messages are skipped: whole files about messages, and tests in other files that mention
//! a message type (see [`needs_messages`]). `known_failures.txt` lists the tests that do not pass, with the
//! reason; a listed test that passes fails the run.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test with a harness of its own, which the lints do not take for one"
)]

mod case;
mod textproto;

use case::Case;
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use textproto::Message;

/// Files that are entirely about messages.
const MESSAGE_FILES: [&str; 6] = ["dynamic", "enums", "proto2", "proto2_ext", "proto3", "wrappers"];

/// Returns whether a test needs messages: it names a message type other than timestamps and durations. The
/// tests of `cel.block` all count; those that need messages are known failures.
fn needs_messages(file: &str, test: &Message) -> bool {
    file != "block_ext"
        && test.any(&|word| {
            let messages = ["TestAllTypes", "object_value", "message_type"];
            messages.iter().any(|m| word.contains(m))
                || word
                    .split("google.protobuf.")
                    .skip(1)
                    .any(|rest| !rest.starts_with("Timestamp") && !rest.starts_with("Duration"))
        })
}

fn main() {
    let arguments = Arguments::from_args();
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance/cel-spec");
    let Ok(files) = std::fs::read_dir(&suite) else {
        eprintln!("SKIPPED: the conformance suite is not at {}", suite.display());
        return;
    };
    let known = known_failures();
    let mut trials = Vec::new();
    let mut counts: BTreeMap<String, Arc<Count>> = BTreeMap::new();
    let mut unused = known.clone();
    let mut paths: Vec<_> = files.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let Some(file) = path
            .file_name()
            .and_then(|n| n.to_str()?.strip_suffix(".textproto"))
        else {
            continue;
        };
        let text = std::fs::read_to_string(&path).expect("the suite is text");
        let message = Message::parse(&text).unwrap_or_else(|e| panic!("{file}: {e}"));
        for section in message.messages("section") {
            for test in section.messages("test") {
                let count = counts.entry(file.to_owned()).or_default();
                count.total.fetch_add(1, Ordering::Relaxed);
                if MESSAGE_FILES.contains(&file) || needs_messages(file, test) {
                    continue;
                }
                count.applicable.fetch_add(1, Ordering::Relaxed);
                let name = format!("{file}::{}::{}", section.text("name"), test.text("name"));
                let reason = known.get(&name).cloned();
                unused.remove(&name);
                let case = Case::read(file, test);
                let count = Arc::clone(count);
                trials.push(Trial::test(name, move || {
                    outcome(&case, reason.as_deref(), &count)
                }));
            }
        }
    }
    assert!(
        unused.is_empty(),
        "known_failures.txt names tests that do not exist: {unused:?}"
    );
    let conclusion = libtest_mimic::run(&arguments, trials);
    if arguments.filter.is_none() && !arguments.list {
        print_counts(&counts);
    }
    conclusion.exit();
}

/// The number of tests of a file in total, applicable, and passing.
#[derive(Default)]
struct Count {
    total: AtomicUsize,
    applicable: AtomicUsize,
    passed: AtomicUsize,
}

fn outcome(case: &Case, known: Option<&str>, count: &Count) -> Result<(), Failed> {
    match (case.run(), known) {
        (Ok(()), None) => {
            count.passed.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        (Ok(()), Some(_)) => Err("passes, but is listed in known_failures.txt".into()),
        (Err(_), Some(_)) => Ok(()),
        (Err(why), None) => Err(why.into()),
    }
}

/// The tests that fail, with the reason: `name: reason` per line, `#` begins a comment.
fn known_failures() -> BTreeMap<String, String> {
    include_str!("known_failures.txt")
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (name, reason) = line.split_once(": ").expect("every known failure has a reason");
            (name.to_owned(), reason.to_owned())
        })
        .collect()
}

fn print_counts(counts: &BTreeMap<String, Arc<Count>>) {
    println!(
        "{:<16} {:>6} {:>10} {:>6}",
        "file", "passed", "applicable", "total"
    );
    let mut sums = [0; 3];
    for (file, count) in counts {
        let row = [&count.passed, &count.applicable, &count.total].map(|n| n.load(Ordering::Relaxed));
        println!("{file:<16} {:>6} {:>10} {:>6}", row[0], row[1], row[2]);
        if row[1] > 0 {
            println!("conformance: cel/{file} {}/{}", row[0], row[1]);
        }
        for (sum, n) in sums.iter_mut().zip(row) {
            *sum += n;
        }
    }
    println!("{:<16} {:>6} {:>10} {:>6}", "all", sums[0], sums[1], sums[2]);
}
