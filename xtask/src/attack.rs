//! `cargo xtask attack`: hostile clients against the server. The program is a package of its own (`attack`), so that what
//! it needs does not slow this one down.

use crate::run::{cargo, run};

/// Builds the server, unless a binary is given, and attacks it. The short form takes the debug build, which the tests
/// have made.
pub(crate) fn attack(rest: &[&str]) -> Result<(), String> {
    let given = rest.iter().any(|word| matches!(*word, "--binary" | "--list"));
    if !given {
        let mut build = cargo(&["build", "--quiet", "--package", "scantling"]);
        if !rest.contains(&"--short") {
            build.arg("--release");
        }
        run(&mut build)?;
    }
    run(cargo(&["run", "--quiet", "--package", "scantling-attack", "--"]).args(rest))
}
