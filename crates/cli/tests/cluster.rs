//! CRDs and objects from a cluster.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

#[path = "support/server.rs"]
mod server;

use serde_json::Value;
use server::TestServer;
use std::path::Path;
use std::process::Command;

/// More than one page.
const OBJECTS: usize = 501;

fn run(arguments: &[&str]) -> (String, String, i32) {
    let output = Command::new(env!("CARGO_BIN_EXE_scantling"))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .env_remove("KUBECONFIG")
        .env("HOME", "/nowhere")
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        text(output.stdout),
        text(output.stderr),
        output.status.code().unwrap(),
    )
}

#[test]
fn a_named_cluster_is_read() {
    let server = TestServer::start();
    server.fill(OBJECTS);
    let kubeconfig = server.kubeconfig.to_str().unwrap();

    let tightened = "examples/crontab/tightened.yaml";
    let (out, err, code) = run(&[
        "upgrade",
        "--kubeconfig",
        kubeconfig,
        "--to",
        tightened,
        "-o",
        "json",
    ]);
    assert_eq!((err.as_str(), code), ("", 0));
    let report: Value = serde_json::from_str(&out).unwrap();
    let changes = report["definitions"][0]["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 2, "{changes:?}");
    let items = report["items"].as_array().unwrap();
    assert_eq!(items.len(), OBJECTS);
    let ratcheted: Vec<&Value> = items.iter().filter(|i| i["outcome"] == "ratcheted").collect();
    assert_eq!(ratcheted.len(), 1);
    assert_eq!(ratcheted[0]["name"], "backup");
    let file = format!("{}/apis/stable.example.com/v1/crontabs", server.address);
    assert_eq!(ratcheted[0]["file"], file.as_str());

    let definition = "examples/crontab/definition.yaml";
    let (out, err, code) = run(&["cost", "--kubeconfig", kubeconfig, definition, "-o", "json"]);
    assert_eq!((err.as_str(), code), ("", 0));
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["items"][0]["measured"]["evaluations"], OBJECTS);
    assert_eq!(report["objects"].as_array().unwrap().len(), OBJECTS);

    let invalid = "examples/crontab/invalid.yaml";
    let (out, err, code) = run(&[
        "validate",
        "--field-validation=warn",
        "--kubeconfig",
        kubeconfig,
        invalid,
    ]);
    assert_eq!((err.as_str(), code), ("", 1));
    assert!(out.contains("spec.cronSpec: Invalid value"), "{out}");

    // With the flag, the old object comes from the cluster: the image may not change.
    let changed = "examples/crontab/changed.yaml";
    let (out, err, code) = run(&["validate", "--kubeconfig", kubeconfig, changed]);
    assert_eq!((err.as_str(), code), ("", 0), "{out}");
    let update = ["validate", "--kubeconfig", kubeconfig, "--old-from-cluster"];
    let (out, err, code) = run(&[&update[..], &[changed]].concat());
    assert_eq!((err.as_str(), code), ("", 1), "{out}");
    assert!(
        out.contains("the image may only change while there are no replicas"),
        "{out}"
    );
    assert!(out.contains("= old: {"), "{out}");
    // Objects that do not exist are created, and `--old` takes precedence.
    let (out, err, code) = run(&[&update[..], &[invalid, "-o", "json"]].concat());
    assert_eq!((err.as_str(), code), ("", 1), "{out}");
    let (out, err, code) = run(&[&update[..], &["--old", changed, changed]].concat());
    assert_eq!((err.as_str(), code), ("", 0), "{out}");
    let (_, err, code) = run(&["validate", "--old-from-cluster", changed]);
    assert_eq!(code, 2);
    assert!(err.contains("--old-from-cluster needs a cluster"), "{err}");

    // Flags override the kubeconfig one by one.
    for (arguments, wanted) in [
        (
            &["--kubeconfig", kubeconfig, "--token", "wrong"][..],
            "Unauthorized",
        ),
        (
            &["--kubeconfig", kubeconfig, "--context", "none"],
            "cannot use the kubeconfig",
        ),
        (&["--kubeconfig", "absent"], "cannot use the kubeconfig"),
        (
            &["--kubeconfig", kubeconfig, "--server", "127.0.0.1:1"],
            "cannot list https://127.0.0.1:1",
        ),
        (
            &[
                "--server",
                &server.address,
                "--token",
                "wrong",
                "--insecure-skip-tls-verify",
            ],
            "Unauthorized",
        ),
    ] {
        let mut all = vec!["upgrade", "--to", tightened];
        all.extend(arguments);
        let (_, err, code) = run(&all);
        assert_eq!(code, 3, "{arguments:?}: {err}");
        assert!(err.contains(wanted), "{arguments:?}: {err}");
    }
}
