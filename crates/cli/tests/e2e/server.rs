//! A server process for one test.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// A running `scantling serve`. It is killed when it goes out of scope.
pub(crate) struct Process {
    child: Child,
    directory: tempfile::TempDir,
}

pub(crate) fn scantling() -> Command {
    Command::new(env!("CARGO_BIN_EXE_scantling"))
}

/// Sends SIGTERM to a process, as a service manager does.
pub(crate) fn terminate(child: &Child) {
    let asked = Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status();
    assert!(asked.expect("kill runs").success());
}

impl Process {
    /// Starts an in-memory server and waits until it serves.
    pub(crate) fn start(flags: &[&str]) -> Process {
        let mut all = vec!["--in-memory"];
        all.extend(flags);
        Process::start_with(&all, &[], tempfile::tempdir().expect("a directory"))
    }

    /// Starts with flags and environment, with its kubeconfig in a directory.
    pub(crate) fn start_with(
        flags: &[&str],
        environment: &[(&str, &str)],
        directory: tempfile::TempDir,
    ) -> Process {
        let log = std::fs::File::create(directory.path().join("log")).expect("a file");
        let mut command = scantling();
        command
            .args(["serve", "--secure-port", "0", "--write-kubeconfig"])
            .arg(directory.path().join("kubeconfig"))
            .args(flags)
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .stderr(log);
        let mut child = command.spawn().expect("the server starts");
        // It prints the path of its kubeconfig once it serves.
        let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        while !line.starts_with("kubeconfig: ") {
            line.clear();
            let read = said.read_line(&mut line).expect("a line");
            assert!(read > 0, "the server ended: {}", log_of(directory.path()));
        }
        Process { child, directory }
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.directory.path().join("kubeconfig")
    }

    pub(crate) fn log(&self) -> String {
        log_of(self.directory.path())
    }

    /// Creates a client from the server's kubeconfig.
    pub(crate) async fn client(&self) -> kube::Client {
        let written = kube::config::Kubeconfig::read_from(self.kubeconfig()).expect("a kubeconfig");
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(written, &options).await;
        kube::Client::try_from(config.expect("a configuration")).expect("a client")
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        terminate(&self.child);
    }

    /// Kills it at once.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it is there to be killed");
        self.child.wait().expect("it ends");
    }

    /// Waits for its end; returns its directory.
    pub(crate) fn wait(mut self) -> (ExitStatus, tempfile::TempDir) {
        let status = self.child.wait().expect("it ends");
        let empty = tempfile::tempdir().expect("a directory");
        (status, std::mem::replace(&mut self.directory, empty))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn log_of(directory: &Path) -> String {
    let mut log = String::new();
    let _ = std::fs::File::open(directory.join("log")).and_then(|mut f| f.read_to_string(&mut log));
    log
}
