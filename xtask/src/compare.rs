//! `cargo xtask compare`: random writes, compared with a kube-apiserver. The program is a separate package
//! (`compare`), so that its dependencies do not slow down building this one.

use crate::run::{cargo, run};

/// Builds the server and compares it. The debug build checks fast paths against the full ones.
pub(crate) fn compare(rest: &[&str]) -> Result<(), String> {
    run(&mut cargo(&["build", "--quiet", "--package", "scantling"]))?;
    let program = ["run", "--quiet", "--package", "scantling-compare", "--"];
    run(cargo(&program).args(rest))
}
