//! Recorded answers of a real API server, as far as they are about objects of custom kinds: the same verdict, the same
//! causes, the same warnings, the same stored object. What the pure functions do not decide (conflicts, applying,
//! listing) is left to the server's own tests; the recorded answer then tells how things stand.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    reason = "a test may panic and print, and reads best so"
)]

#[path = "scenarios/patch.rs"]
mod patch;
#[path = "scenarios/read.rs"]
mod read;
#[path = "scenarios/world.rs"]
mod world;

use read::{Scenario, scenarios};
use std::path::{Path, PathBuf};
use world::World;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance")
}

/// Steps on which we differ, each with the reason. A step that is listed and agrees fails the run.
const KNOWN: &[(&str, usize, &str)] = &[
    (
        "fieldvalidation/json-patch-findings",
        18,
        "whoever reads a patch finds what is odd in the patch itself",
    ),
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
        "fieldvalidation/other-bodies-to-the-letter",
        15,
        "whoever reads a body holds its namespace against that of the path",
    ),
    ("values/each-type-integer", 6, "the recorder reads -0 as 0"),
    ("values/each-type-number", 6, "the recorder reads -0 as 0"),
    (
        "lifecycle/conversion-none",
        1,
        "the server converts to the stored version, which has fewer fields",
    ),
    (
        "lifecycle/terminating",
        5,
        "the server deletes objects with their definition",
    ),
    (
        "list-types/set-duplicates",
        2,
        "the recorder sent 1.0, which YAML as Kubernetes reads it cannot write",
    ),
];

fn replay(folder: &Path, golden: &Path) {
    let (mut agree, mut skipped, mut differ) = (0, 0, Vec::new());
    for scenario in scenarios(folder, golden) {
        let Scenario { name, steps } = scenario;
        let mut world = World::default();
        for (i, step) in steps.iter().enumerate() {
            let known = KNOWN.iter().find(|(n, s, _)| *n == name && *s == i);
            match (world.step(step), known) {
                (None, _) => skipped += 1,
                (Some(Ok(())), None) | (Some(Err(_)), Some(_)) => agree += 1,
                (Some(Ok(())), Some(_)) => {
                    differ.push(format!("{name} step {i}: listed as different, but agrees"));
                }
                (Some(Err(why)), None) => {
                    differ.push(format!("{name} step {i} {} {}:\n{why}", step.verb, step.path));
                }
            }
        }
    }
    println!(
        "{}: {agree} agree, {skipped} are about other things, {} differ",
        folder.display(),
        differ.len()
    );
    assert!(differ.is_empty(), "{}", differ.join("\n\n"));
}

#[test]
fn values() {
    replay(
        &root().join("scenarios/values"),
        &root().join("scenarios/values/golden"),
    );
}

#[test]
fn ratcheting() {
    replay(
        &root().join("scenarios/ratcheting"),
        &root().join("scenarios/ratcheting/golden"),
    );
}

#[test]
fn structural() {
    replay(
        &root().join("scenarios/structural"),
        &root().join("scenarios/structural/golden"),
    );
}

#[test]
fn cel() {
    replay(
        &root().join("scenarios/cel"),
        &root().join("scenarios/cel/golden"),
    );
}

#[test]
fn fieldvalidation() {
    replay(
        &root().join("scenarios/fieldvalidation"),
        &root().join("scenarios/fieldvalidation/golden"),
    );
}

/// What no server has, and so none was recorded with.
#[test]
fn own() {
    replay(&root().join("own"), &root().join("own"));
}
