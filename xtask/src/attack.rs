//! `cargo xtask attack`: hostile clients against the server. The program is a package of its own (`attack`), so that what
//! it needs does not slow this one down.

use crate::run::{cargo, run, target};
use std::process::Command;

/// Builds the server, unless a binary is given, and attacks it.
pub(crate) fn attack(rest: &[&str]) -> Result<(), String> {
    if rest.contains(&"--short") {
        // All targets together, as the tests build them: another selection would build the dependencies again.
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
    run(cargo(&["run", "--quiet", "--package", "scantling-attack", "--"]).args(rest))
}
