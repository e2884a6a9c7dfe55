//! `cargo xtask conformance`: runs the conformance suites and prints their counts.

use crate::run::{cargo, output};

/// A conformance set: its name, and the test targets that print its counts.
struct ConformanceSet {
    name: &'static str,
    targets: &'static [(&'static str, &'static str)],
}

const SETS: &[ConformanceSet] = &[
    ConformanceSet {
        name: "cel",
        targets: &[("scantling-cel", "conformance")],
    },
    ConformanceSet {
        name: "corpus",
        targets: &[
            ("scantling-schema", "corpus_definitions"),
            ("scantling-schema", "corpus_rules"),
            ("scantling-admit", "corpus"),
        ],
    },
    ConformanceSet {
        name: "scenarios",
        targets: &[("scantling-server", "scenarios")],
    },
];

/// Runs the named sets (all by default). The tests print lines `conformance: NAME PASSED/TOTAL`.
pub(crate) fn conformance(names: &[&str]) -> Result<(), String> {
    if let Some(unknown) = names.iter().find(|n| SETS.iter().all(|s| s.name != **n)) {
        return Err(format!("no set `{unknown}`: choose from cel, corpus, scenarios"));
    }
    let (mut passed, mut total, mut failed) = (0u64, 0u64, Vec::new());
    for set in SETS
        .iter()
        .filter(|s| names.is_empty() || names.contains(&s.name))
    {
        for (package, target) in set.targets {
            let args = [
                "test",
                "--quiet",
                "--package",
                package,
                "--test",
                target,
                "--",
                "--nocapture",
            ];
            let (ok, printed) = output(&mut cargo(&args))?;
            if !ok {
                failed.push(*target);
            }
            for line in printed.lines() {
                let Some((name, count)) = line
                    .strip_prefix("conformance: ")
                    .and_then(|l| l.rsplit_once(' '))
                else {
                    continue;
                };
                let Some((p, t)) = count
                    .split_once('/')
                    .and_then(|(p, t)| Some((p.parse().ok()?, t.parse().ok()?)))
                else {
                    continue;
                };
                let (p, t): (u64, u64) = (p, t);
                println!("{name} {p}/{t}");
                passed += p;
                total += t;
            }
        }
    }
    println!("sum {passed}/{total}");
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "differences beyond the listed ones in: {}",
            failed.join(", ")
        ))
    }
}
