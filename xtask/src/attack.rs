//! `cargo xtask attack`: runs hostile clients against the server. The program is a separate package
//! (`attack`), so that its dependencies do not slow down building this one.

use crate::run::{cargo, run, target};
use std::process::Command;

/// Builds the server, unless a binary is given, and attacks it.
pub(crate) fn attack(rest: &[&str]) -> Result<(), String> {
    if rest.contains(&"--short") {
        // All targets together, as the tests build them: another selection would rebuild the dependencies.
        run(&mut cargo(&["build", "--quiet", "--workspace", "--all-targets"]))?;
        return run(Command::new(target().join("debug/scantling-attack")).args(rest));
    }
    let given = rest.iter().any(|word| matches!(*word, "--binary" | "--list"));
    if !given {
        run(&mut cargo(&[
            "build",
            "--quiet",
            "--release",
            "--package",
            "scantling",
        ]))?;
    }
    // The attacker shares the machine with the server: a debug build would add its own slowness to the waits.
    run(cargo(&[
        "run",
        "--quiet",
        "--release",
        "--package",
        "scantling-attack",
        "--",
    ])
    .args(rest))
}
