//! Runs every command of the README and of the pages in `docs/`, and compares its output with the page.
//!
//! After a change, `UPDATE_EXPECT=1 cargo test -p scantling --test walkthrough` writes the new output into
//! the pages.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may panic"
)]

#[path = "support/server.rs"]
mod server;
#[path = "support/time.rs"]
mod time;

use scantling_merge::json_patch::JsonPatch;
use scantling_value::{Limits, yaml};
use server::TestServer;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

#[test]
fn readme_examples() {
    check("README.md");
}

#[test]
fn walkthrough_examples() {
    check("docs/walkthrough.md");
}

#[test]
fn beyond_kubernetes_examples() {
    check("docs/beyond-kubernetes.md");
}

#[test]
fn authoring_examples() {
    check("docs/authoring.md");
}

/// The CRD is the output of controller-gen with the patch applied.
#[test]
fn marker_example_is_current() {
    let read = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../examples/markers")
            .join(name);
        yaml::decode(&std::fs::read(path).unwrap(), Limits::SAFE).unwrap()
    };
    let patch = read("extensions.yaml");
    let text = patch.to_json();
    let patch = JsonPatch::from_value(patch, text.as_bytes()).unwrap();
    assert_eq!(
        patch.apply(read("generated.yaml")).unwrap(),
        read("definition.yaml")
    );
}

fn check(page: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = root.join(page);
    let text = std::fs::read_to_string(&page).unwrap();
    let mut fresh = String::new();
    let server = TestServer::start();
    server.fill(1);
    let (mut inside, mut commands) = (false, 0);
    for line in text.lines() {
        match (inside, line) {
            (_, "```console") => inside = true,
            (true, "```") => inside = false,
            (true, line) if !line.starts_with("$ ") => continue,
            _ => {}
        }
        writeln!(fresh, "{line}").unwrap();
        if let Some(command) = line.strip_prefix("$ scantling ").filter(|_| inside) {
            fresh.push_str(&output(&root, command, &server));
            commands += 1;
        }
    }
    assert!(commands > 0, "no command was found");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(page, fresh).unwrap();
    } else {
        assert_eq!(
            fresh,
            text,
            "{} is not up to date: run with UPDATE_EXPECT=1",
            page.display()
        );
    }
}

/// The output of a command, and its exit code if it is not zero.
fn output(root: &Path, command: &str, server: &TestServer) -> String {
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("\"$SCANTLING\" {command} 2>&1"))
        .env("SCANTLING", env!("CARGO_BIN_EXE_scantling"))
        .env("KUBECONFIG", &server.kubeconfig)
        .current_dir(root)
        .output()
        .unwrap();
    let text = time::without_time(&String::from_utf8(output.stdout).unwrap());
    let mut text = text.replace(&server.address, "https://127.0.0.1:6443");
    match output.status.code() {
        Some(0) => {}
        Some(1) => text.push_str("(exit code 1)\n"),
        other => panic!("`scantling {command}` ends with {other:?}:\n{text}"),
    }
    text
}
