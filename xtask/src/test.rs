//! `cargo xtask test`: runs all tests, also on a fresh machine.

use crate::run::{cargo, root, run};
use std::process::{Command, Stdio};

/// Runs all tests; further arguments go to `cargo test`.
pub(crate) fn test(rest: &[&str]) -> Result<(), String> {
    ensure_etcd();
    if !root().join("../shared/conformance").is_dir() {
        eprintln!(
            "\n!! ../shared/conformance is absent: the corpus and the public CEL suite are NOT tested here\n"
        );
    }
    run(cargo(&["test", "--workspace"]).args(rest))
}

/// Installs etcd if possible: the store's tests run against a real etcd if there is one.
fn ensure_etcd() {
    let there = |name: &str| {
        let quiet = Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        quiet.is_ok_and(|s| s.success())
    };
    if there("etcd") {
        return;
    }
    let apt = |args: &[&str]| {
        let mut c = Command::new("apt-get");
        c.args(args)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        c.status().is_ok_and(|s| s.success())
    };
    // Debian starts a service on installation if an init system runs; the tests start their own.
    if apt(&["install", "-y", "-q", "etcd-server"])
        || (apt(&["update", "-q"]) && apt(&["install", "-y", "-q", "etcd-server"]))
    {
        return;
    }
    eprintln!(
        "\n!! no etcd on this machine and none could be installed: the etcd engine is NOT tested here\n"
    );
}
