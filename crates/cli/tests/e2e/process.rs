//! Flags, environment, logs, and the end of the process.

use crate::kube_client::{define, widgets};
use crate::server::{Process, scantling, terminate};
use futures_util::StreamExt as _;
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::core::Request;
use std::process::Stdio;
use std::time::Duration;

/// Longer than anything should take; not an assertion about time.
const WATCHDOG: Duration = Duration::from_secs(300);

fn refusal(flags: &[&str]) -> (Option<i32>, String) {
    let output = scantling()
        .args(["serve", "--in-memory", "--secure-port", "0"])
        .args(flags)
        .output();
    let output = output.expect("it runs");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn wrong_flags_are_refused() {
    for (flags, said) in [
        (
            &["--feature-gates", "Perpetuum=true"][..],
            "unrecognized feature gate: Perpetuum",
        ),
        (&["--feature-gates", "Perpetuum"], "Perpetuum"),
        (&["--authorization-mode", "RBAC"], "AlwaysAllow, AlwaysDeny"),
        (&["--logging-format", "xml"], "text, json"),
        (&["--request-timeout", "soon"], "soon"),
        (&["--idle-timeout", "0s"], "it has to be longer than 0s"),
        (
            &["--write-timeout", "9999999h"],
            "it may not be longer than a year",
        ),
        (&["--max-connections", "0"], "--max-connections"),
        // The last of several wins.
        (
            &[
                "--authorization-mode",
                "AlwaysAllow",
                "--authorization-mode",
                "RBAC",
            ],
            "'RBAC'",
        ),
        (
            &[
                "--etcd-prefix",
                "/a",
                "--etcd-prefix",
                "/b",
                "--feature-gates",
                "CustomResourceUnions=true",
                "--feature-gates",
                "Perpetuum=true",
            ],
            "unrecognized feature gate: Perpetuum",
        ),
        (
            &["--min-request-timeout", "-1"],
            "--min-request-timeout can not be negative value",
        ),
        (&["--min-request-timeout", "soon"], "soon"),
        (
            &["--strict-transport-security-directives", "max-age=1,,"],
            "empty value in strict-transport-security-directives",
        ),
        (
            &["--strict-transport-security-directives", "max-age=1=2"],
            "allowed values: max-age=expireTime, includeSubDomains, preload.",
        ),
        (&["--tls-cert-file", "x.pem"], "--tls-private-key-file"),
        (
            &["--token-auth-file", "/nonexistent/tokens"],
            "cannot read /nonexistent/tokens",
        ),
        (&["--data-dir", "x"], "cannot be used with"),
    ] {
        let (code, stderr) = refusal(flags);
        assert!(matches!(code, Some(2 | 3)), "{flags:?}: {code:?} {stderr}");
        assert!(stderr.contains(said), "{flags:?}: {stderr}");
    }
}

/// The server runs even if its output is not read.
#[test]
fn unreachable_addresses_are_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let kubeconfig = directory.path().join("kubeconfig");
    let mut server = scantling()
        .args(["serve", "--in-memory", "--secure-port", "0", "--write-kubeconfig"])
        .arg(&kubeconfig)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    drop(server.stdout.take());
    while !kubeconfig.exists() {
        assert_eq!(server.try_wait().expect("it is there"), None, "the server ended");
        std::thread::sleep(Duration::from_millis(10));
    }
    terminate(&server);
    let status = server.wait().expect("it ends");
    assert!(status.success(), "{status}");
}

#[tokio::test]
async fn flags_come_from_the_environment() {
    let environment = [
        ("SCANTLING_IN_MEMORY", "true"),
        ("SCANTLING_LOGGING_FORMAT", "json"),
        ("SCANTLING_V", "3"),
        ("SCANTLING_FEATURE_GATES", "CustomResourceImmutability=true"),
    ];
    let directory = tempfile::tempdir().expect("a directory");
    let server = Process::start_with(&[], &environment, directory);
    let client = server.client().await;
    let version = client.apiserver_version().await.expect("a version");
    assert!(version.git_version.starts_with("v1."), "{version:?}");
    // Each line of the log is a JSON object with user and request.
    let log = server.log();
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")))
        .collect();
    let request = lines
        .iter()
        .find(|l| l["fields"]["path"] == "/version")
        .expect("the request is logged");
    assert_eq!(request["fields"]["user"], "admin", "{request}");
    assert_eq!(request["fields"]["status"], 200, "{request}");
    assert!(request["fields"]["id"].is_string(), "{request}");
    let kubeconfig = std::fs::read_to_string(server.kubeconfig()).expect("a kubeconfig");
    let token = kubeconfig
        .lines()
        .find_map(|l| l.trim().strip_prefix("token: "))
        .expect("a token");
    assert!(!log.contains(token), "the token is in the log");
}

#[tokio::test]
async fn logs_that_are_files_have_no_colours() {
    let server = Process::start(&["-v=3"]);
    let version = server.client().await.apiserver_version().await;
    version.expect("a version");
    let log = server.log();
    assert!(log.contains("path=\"/version\""), "{log}");
    assert!(!log.contains('\u{1b}'), "{log}");
}

/// Acknowledged writes exist after a restart.
#[tokio::test]
async fn graceful_termination() {
    let directory = tempfile::tempdir().expect("a directory");
    let data = tempfile::tempdir().expect("a directory");
    let flags = ["--data-dir", data.path().to_str().expect("a path")];
    let server = Process::start_with(&flags, &[], directory);
    let client = server.client().await;
    define(&client).await;
    let api = widgets(&client);
    let mut watch = Box::pin(api.watch(&WatchParams::default(), "0").await.expect("a watch"));
    let made = api
        .create(&PostParams::default(), &crate::kube_client::widget("kept", 3))
        .await
        .expect("made");
    loop {
        match watch.next().await.expect("it goes on").expect("an event") {
            WatchEvent::Added(w) if w.name_any() == "kept" => break,
            WatchEvent::Bookmark(_) => {}
            other => panic!("{other:?}"),
        }
    }
    server.terminate();
    // The watch ends without an error.
    while let Some(event) = watch.next().await {
        event.expect("no error");
    }
    let (status, directory) = server.wait();
    assert!(status.success(), "{status}");
    let server = Process::start_with(&flags, &[], directory);
    let again = widgets(&server.client().await)
        .get("kept")
        .await
        .expect("it is there");
    assert_eq!(again.metadata.uid, made.metadata.uid);
}

#[test]
fn the_temporary_kubeconfig_is_removed() {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::fs::PermissionsExt as _;
    for signal in ["-TERM", "-INT"] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut child = scantling()
            .args(["serve", "--in-memory", "--secure-port", "0"])
            .env("TMPDIR", directory.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let output = child.stdout.take().expect("an output");
        let mut lines = BufReader::new(output).lines().map(|line| line.expect("a line"));
        let path = lines
            .find_map(|line| line.strip_prefix("kubeconfig: ").map(std::path::PathBuf::from))
            .expect("a kubeconfig");
        let data = path.metadata().expect("it is there");
        assert_eq!(data.permissions().mode() & 0o777, 0o600);
        let sent = std::process::Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(sent.expect("it runs").success());
        assert!(child.wait().expect("it ends").success());
        let left = std::fs::read_dir(directory.path()).expect("a directory").count();
        assert_eq!(left, 0, "{signal}");
    }
}

/// A shutdown ends in time whatever clients do, and keeps acknowledged writes.
#[tokio::test]
async fn termination_with_misbehaving_clients() {
    const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
    let directory = tempfile::tempdir().expect("a directory");
    let data = tempfile::tempdir().expect("a directory");
    let flags = [
        "--data-dir",
        data.path().to_str().expect("a path"),
        "--shutdown-grace-period",
        "1s",
    ];
    let server = Process::start_with(&flags, &[], directory);
    let client = server.client().await;
    define(&client).await;
    let api = widgets(&client);
    for i in 0..60 {
        let mut object = crate::kube_client::widget(&format!("kept-{i}"), 3);
        let text = "0123456789abcdef".repeat(12 * 1024);
        object.annotations_mut().insert("text".to_owned(), text);
        api.create(&PostParams::default(), &object).await.expect("made");
    }
    // Clients that do not read.
    let watch = format!("{WIDGETS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    let mut unread = Vec::new();
    for path in [WIDGETS, WIDGETS, watch.as_str(), watch.as_str()] {
        let mut asked = Request::new(WIDGETS)
            .list(&ListParams::default())
            .expect("a request");
        *asked.uri_mut() = path.parse().expect("a path");
        let answer = client.send(asked.map(Into::into)).await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        unread.push(answer);
    }
    // Clients that send nothing.
    let kubeconfig = std::fs::read_to_string(server.kubeconfig()).expect("a kubeconfig");
    let address = kubeconfig
        .split("https://")
        .nth(1)
        .and_then(|rest| rest.lines().next());
    let address = address.expect("an address");
    let silent: Vec<_> = (0..20)
        .map(|_| std::net::TcpStream::connect(address).expect("a connection"))
        .collect();
    // Clients that keep every thread busy.
    let zeros = vec!["0"; 200_000].join(",");
    let shift = ",{\"op\":\"add\",\"path\":\"/spec/l/0\",\"value\":1}".repeat(5_000);
    let patch = format!("[{{\"op\":\"add\",\"path\":\"/spec/l\",\"value\":[{zeros}]}}{shift}]");
    let busy: Vec<_> = (0..8)
        .map(|_| {
            let client = client.clone();
            let nothing = Patch::Merge(());
            let mut asked = Request::new(WIDGETS)
                .patch("kept-0", &PatchParams::default(), &nothing)
                .expect("a request");
            let content_type = "application/json-patch+json".parse().expect("a header");
            asked.headers_mut().insert("content-type", content_type);
            *asked.body_mut() = patch.clone().into_bytes();
            tokio::spawn(async move { client.send(asked.map(Into::into)).await.map(drop) })
        })
        .collect();
    // A client that writes until the end.
    let writing = async {
        let mut acknowledged = Vec::new();
        for i in 0.. {
            let name = format!("late-{i}");
            let object = crate::kube_client::widget(&name, 1);
            if api.create(&PostParams::default(), &object).await.is_err() {
                break;
            }
            acknowledged.push(name);
            if i == 3 {
                server.terminate();
            }
        }
        acknowledged
    };
    let acknowledged = tokio::time::timeout(WATCHDOG, writing).await;
    let acknowledged = acknowledged.expect("the server ends");
    let (status, directory) = server.wait();
    assert!(status.success(), "{status}");
    drop((unread, silent));
    for task in busy {
        let _ = task.await;
    }
    let server = Process::start_with(&flags, &[], directory);
    let api = widgets(&server.client().await);
    let kept = (0..60).map(|i| format!("kept-{i}"));
    for name in kept.chain(acknowledged) {
        api.get(&name).await.unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}
