//! Limits of inputs: the error of a larger input names the flag that raises the limit.
#![expect(clippy::expect_used, reason = "a test may panic")]

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

fn scantling(arguments: &[&str], input: Stdio) -> (String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_scantling"))
        .args(arguments)
        .stdin(input)
        .output()
        .expect("the program runs");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (text.into_owned(), output.status.code().unwrap_or(-1))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path")
}

#[test]
fn endless_inputs_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let sparse = directory.path().join("sparse.yaml");
    let file = File::create(&sparse).expect("a file");
    file.set_len(4 << 30).expect("it is large");
    let sparse = text(&sparse);
    let small = directory.path().join("small.yaml");
    std::fs::write(&small, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n").expect("a file");
    let small = text(&small);
    let limit = "--max-input-bytes=1Mi";
    let cases: &[&[&str]] = &[
        &["validate", sparse],
        &["validate", "/dev/zero", limit],
        &["validate", text(directory.path())],
        &["validate", small, "--crds", sparse],
        &["validate", small, "--crds", "/dev/zero", limit],
        &["validate", small, "--old", "/dev/zero", limit],
        &["validate", small, "--old", sparse],
        &["lint", "/dev/zero", limit],
        &["cost", "/dev/zero", limit],
        &["cost", sparse],
        &["upgrade", "--from", "/dev/zero", "--to", small, limit],
        &["upgrade", "--from", small, "--to", "/dev/zero", limit],
        &["eval", "self", "--filename", "/dev/zero", limit],
        &["eval", "self", "--old", sparse],
        &["eval", "self", "--crd", "/dev/zero", limit],
    ];
    for arguments in cases {
        let (said, code) = scantling(arguments, Stdio::null());
        assert_eq!(code, 3, "{arguments:?}: {said}");
        assert!(
            said.contains(": raise the limit with --max-input-bytes"),
            "{arguments:?}: {said}"
        );
    }
    let zero = File::open("/dev/zero").expect("a device");
    let (said, code) = scantling(&["lint", "-", limit], zero.into());
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("standard input: error: cannot read: it is larger than 1048576 bytes"),
        "{said}"
    );
}

#[test]
fn a_file_of_exactly_the_limit_is_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("object.yaml");
    let object = "{a: 1}\n";
    std::fs::write(&path, object).expect("a file");
    for (limit, want) in [(object.len() - 1, 3), (object.len(), 0), (object.len() + 1, 0)] {
        let limit = format!("--max-input-bytes={limit}");
        let (said, code) = scantling(&["eval", "self.a", "-f", text(&path), &limit], Stdio::null());
        assert_eq!(code, want, "{limit}: {said}");
    }
}

#[test]
fn directory_size_is_limited() {
    let directory = tempfile::tempdir().expect("a directory");
    for n in 0..20 {
        std::fs::write(directory.path().join(format!("{n}.txt")), "").expect("a file");
    }
    let (said, code) = scantling(
        &["lint", text(directory.path()), "--max-input-files", "10"],
        Stdio::null(),
    );
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("there are more than 10 files and directories")
            && said.contains("hint: raise the limit with --max-input-files"),
        "{said}"
    );
}

#[test]
fn kubeconfig_size_is_limited() {
    let directory = tempfile::tempdir().expect("a directory");
    let sparse = directory.path().join("config");
    let file = File::create(&sparse).expect("a file");
    file.set_len(4 << 30).expect("it is large");
    for path in [text(&sparse), "/dev/zero"] {
        let (said, code) = scantling(
            &["upgrade", "--kubeconfig", path, "--to", "/dev/null"],
            Stdio::null(),
        );
        assert_eq!(code, 3, "{said}");
        assert!(
            said.contains("more than 16777216") || said.contains("larger than 16777216"),
            "{said}"
        );
    }
}
