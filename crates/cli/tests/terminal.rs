//! What the program does on a terminal: progress, colours, sessions. The terminal is a pseudo one.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use rexpect::session::{PtySession, spawn_command};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// So long is waited for anything: machines may be busy.
const PATIENCE: Option<u64> = Some(120_000);

fn scantling() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scantling"));
    command
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .env("TERM", "xterm")
        .env_remove("NO_COLOR");
    command
}

/// A definition whose rules cost as much as a rule may, and objects of its kind: enough for a while.
fn slow(directory: &Path) {
    let rule = "self.list.all(a, self.list.all(b, self.list.all(c, a + b + c > 0)))";
    let definition = format!(
        r#"{{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {{"name":
        "slows.example.com"}}, "spec": {{"group": "example.com", "scope": "Cluster", "names": {{"plural": "slows",
        "singular": "slow", "kind": "Slow", "listKind": "SlowList"}}, "versions": [{{"name": "v1", "served": true,
        "storage": true, "schema": {{"openAPIV3Schema": {{"type": "object", "x-kubernetes-validations": [{{"rule":
        "{rule}"}}, {{"rule": "{rule} "}}], "properties": {{"list": {{"type": "array", "items": {{"type":
        "integer"}}, "maxItems": 90}}}}}}}}}}]}}}}"#
    );
    std::fs::write(directory.join("definition.json"), definition).unwrap();
    let list: Vec<String> = (1..=90).map(|n| n.to_string()).collect();
    let mut objects = String::new();
    for n in 0..if cfg!(debug_assertions) { 2_000 } else { 20_000 } {
        let list = list.join(", ");
        writeln!(
            objects,
            r#"{{"apiVersion": "example.com/v1", "kind": "Slow", "metadata": {{"name": "a{n}"}}, "list": [{list}]}}"#
        )
        .unwrap();
    }
    std::fs::write(directory.join("objects.json"), objects).unwrap();
}

#[test]
fn long_work_shows_progress() {
    let directory = tempfile::tempdir().unwrap();
    slow(directory.path());
    let program = env!("CARGO_BIN_EXE_scantling");
    let mut shell = Command::new("sh");
    shell
        .args([
            "-c",
            &format!("exec '{program}' validate --crds definition.json objects.json > results"),
        ])
        .current_dir(directory.path())
        .env("TERM", "xterm");
    let mut terminal = spawn_command(shell, PATIENCE).unwrap();
    terminal
        .exp_regex(r"[0-9.]+ [KM]?i?B of [0-9.]+ [KM]?i?B, .* left")
        .unwrap();
    // There is more to do than anybody waits for. Where tests run in the background, keys interrupt nothing.
    drop(terminal);
    let results = std::fs::read_to_string(directory.path().join("results")).unwrap();
    assert!(!results.contains('\u{1b}'), "colours are for terminals");
}

#[test]
fn colours_can_be_disabled() {
    let arguments = [
        "validate",
        "--crds",
        "examples/crontab/definition.yaml",
        "examples/crontab/invalid.yaml",
    ];
    let shown = |command: Command| spawn_command(command, PATIENCE).unwrap().exp_eof().unwrap();
    let mut command = scantling();
    command.args(arguments);
    let text = shown(command);
    assert!(text.contains("\u{1b}[1m\u{1b}[31merror\u{1b}[0m"), "{text:?}");
    let mut command = scantling();
    command.args(arguments).env("NO_COLOR", "1");
    let text = shown(command);
    assert!(text.contains("error: ") && !text.contains('\u{1b}'), "{text:?}");
}

/// A session over the example's definition, in a home of its own.
fn session(home: &Path) -> PtySession {
    let mut command = scantling();
    command
        .args(["eval", "--repl", "--crd", "examples/crontab/definition.yaml"])
        .args(["-f", "examples/crontab/object.yaml"])
        .env("HOME", home);
    let mut terminal = spawn_command(command, PATIENCE).unwrap();
    terminal.exp_string("> ").unwrap();
    terminal
}

fn press(terminal: &mut PtySession, keys: &str) {
    terminal.send(keys).unwrap();
    terminal.flush().unwrap();
}

/// Presses keys that end a line, and waits for what comes of it and for the next line.
fn enter(terminal: &mut PtySession, keys: &str, wanted: &str) {
    press(terminal, keys);
    terminal.exp_string(wanted).unwrap();
    terminal.exp_string("> ").unwrap();
}

#[test]
fn repl_completion_and_history() {
    let home = tempfile::tempdir().unwrap();
    let mut terminal = session(home.path());
    let terminal = &mut terminal;
    press(terminal, "self.spec.cr\t");
    terminal.exp_string("self.spec.cronSpec").unwrap();
    enter(terminal, "\n", "\"0 3 * * *\"");
    press(terminal, ":ty\t");
    terminal.exp_string(":type").unwrap();
    enter(terminal, "self.spec.replicas\n", "\nint");
    enter(terminal, ":cost self.spec.replicas > 1\n", "estimated at most");
    press(terminal, ":load examples/crontab/cha\t");
    terminal.exp_string("examples/crontab/changed.yaml").unwrap();
    enter(terminal, "\n", "\n");
    enter(terminal, "self.spec.image\n", "\"example.com/cron:2\"");
    // A line that is given up is not the end.
    press(terminal, "1 + ");
    terminal.exp_string("1 + ").unwrap();
    terminal.send_control('c').unwrap();
    terminal.exp_string("\n").unwrap();
    terminal.exp_string("> ").unwrap();
    // The line before, once more.
    enter(terminal, "40 + 2\n", "\n42");
    enter(terminal, "\u{1b}[A\n", "\n42");
    terminal.send_control('d').unwrap();
    terminal.exp_eof().unwrap();

    let mut terminal = session(home.path());
    enter(&mut terminal, "\u{1b}[A\n", "\n42");
    press(&mut terminal, ":quit\n");
    terminal.exp_eof().unwrap();
}
