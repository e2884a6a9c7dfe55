//! Long-running commands: the server, its store, sessions; shell completion and terminals.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/program.rs"]
mod program;

use program::{fed, scantling};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_stopped_server_leaves_a_valid_store() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut child = scantling()
        .args(["serve", "--secure-port", "0", "--data-dir"])
        .arg(&data)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said: Vec<String> = lines.take(2).map(|line| line.unwrap()).collect();
    assert!(
        said.first().unwrap().starts_with("serving on https://127.0.0.1:"),
        "{said:?}"
    );
    let kubeconfig = said.last().unwrap().strip_prefix("kubeconfig: ").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(kubeconfig).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let told = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(told.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));

    let store = |directory: &Path, arguments: &[&str]| {
        let mut command = scantling();
        command
            .arg("store")
            .arg("--data-dir")
            .arg(directory)
            .args(arguments);
        let output = command.output().unwrap();
        (text(&output.stdout), text(&output.stderr), output.status.code())
    };
    let (out, err, code) = store(&data, &["check"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("sound: "), "{out}");
    let file = directory.path().join("export.json");
    let (_, err, code) = store(&data, &["export", file.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.starts_with("exported "), "{err}");
    let copy = directory.path().join("copy");
    std::fs::create_dir(&copy).unwrap();
    let (_, err, code) = store(&copy, &["import", file.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{err}");
    let (checked, _, code) = store(&copy, &["check"]);
    assert_eq!(code, Some(0));
    let entries = |text: &str| text.split(" at revision").next().unwrap().to_owned();
    assert_eq!(entries(&checked), entries(&out));
    assert_eq!(store(&copy, &["import", file.to_str().unwrap()]).2, Some(3));
    assert_eq!(store(&data, &["export", "/nowhere/file"]).2, Some(3));
}

#[test]
fn authorization_modes_are_listed() {
    let output = scantling()
        .args(["serve", "--authorization-mode", "RBAC"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("[possible values: AlwaysAllow, AlwaysDeny]"),
        "{said}"
    );
}

#[test]
fn the_repl_keeps_variables() {
    let home = tempfile::tempdir().unwrap();
    let mut command = scantling();
    command
        .args(["eval", "--repl", "--crd", "examples/crontab/definition.yaml"])
        .args(["--at", "spec", "-f", "examples/crontab/object.yaml"])
        .env("HOME", home.path());
    let input = "self.replicas + 1\n:type self.cronSpec\n:cost self.cronSpec == ''\nself.nothing\n:load absent\n:quit\n";
    let output = fed(&mut command, input);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    for wanted in ["3\n", "string\n", "estimated at most"] {
        assert!(out.contains(wanted), "{wanted}: {out}");
    }
    let err = text(&output.stderr);
    assert!(err.contains("undefined field 'nothing'"), "{err}");
    assert!(err.contains("absent: cannot read"), "{err}");
    let history = std::fs::read_to_string(home.path().join(".scantling_history")).unwrap();
    assert!(history.contains("self.replicas + 1"), "{history}");
}

#[test]
fn shell_completion() {
    for (shell, mark) in [
        ("bash", "complete -F _scantling"),
        ("zsh", "#compdef scantling"),
        ("fish", "complete -c scantling"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "edit:completion:arg-completer[scantling]"),
    ] {
        let output = scantling().args(["completion", shell]).output().unwrap();
        assert!(output.status.success());
        let script = text(&output.stdout);
        assert!(script.contains(mark), "{shell}");
        assert!(script.contains("validate"), "{shell}");
    }
    let sourced = format!(
        "source <('{}' completion bash) && COMP_WORDS=(scantling val) COMP_CWORD=1 && _scantling scantling val scantling \
         && echo \"${{COMPREPLY[@]}}\"",
        env!("CARGO_BIN_EXE_scantling")
    );
    match Command::new("bash").args(["-c", &sourced]).output() {
        Ok(output) => assert_eq!(text(&output.stdout), "validate\n", "{}", text(&output.stderr)),
        Err(e) => println!("SKIPPED: the script was not sourced: bash: {e}"),
    }
}

#[test]
fn no_colours_or_progress_without_a_terminal() {
    let colours = |environment: &[(&str, &str)]| {
        let output = scantling()
            .args([
                "validate",
                "--crds",
                "examples/crontab/definition.yaml",
                "examples/crontab",
            ])
            .env_remove("NO_COLOR")
            .envs(environment.iter().copied())
            .output()
            .unwrap();
        let escape = |bytes: &[u8]| bytes.contains(&0x1b);
        escape(&output.stdout) || escape(&output.stderr)
    };
    assert!(!colours(&[]));
    assert!(colours(&[("CLICOLOR_FORCE", "1")]));
    assert!(!colours(&[("NO_COLOR", "1")]));
}

#[test]
fn version_command_and_flag_agree() {
    let said = |arguments: &[&str]| text(&scantling().args(arguments).output().unwrap().stdout);
    assert_eq!(said(&["version"]), said(&["--version"]));
}
