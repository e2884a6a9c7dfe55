//! An etcd server of one member for a test.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A running etcd; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Etcd {
    child: Option<Child>,
    directory: tempfile::TempDir,
    client: String,
    peer: String,
}

impl Etcd {
    /// Starts one, or says loudly that the machine has none.
    pub(crate) fn start() -> Option<Self> {
        if program().is_none() {
            eprintln!("SKIPPED: there is no `etcd` on this machine (Debian: apt-get install etcd-server)");
            return None;
        }
        // Both are held until both are known, so that they differ.
        let ports = [
            TcpListener::bind("127.0.0.1:0").unwrap(),
            TcpListener::bind("127.0.0.1:0").unwrap(),
        ];
        let [client, peer] = ports.map(|port| format!("http://{}", port.local_addr().unwrap()));
        let mut etcd = Self {
            child: None,
            directory: tempfile::tempdir().unwrap(),
            client,
            peer,
        };
        etcd.resume();
        Some(etcd)
    }

    /// The address of the member.
    pub(crate) fn address(&self) -> String {
        self.client.clone()
    }

    /// Starts the member again, on the data and the address that it had.
    pub(crate) fn resume(&mut self) {
        let log = std::fs::File::create(self.directory.path().join("log")).unwrap();
        let child = Command::new(program().unwrap())
            .args([
                "--name",
                "test",
                "--listen-client-urls",
                &self.client,
                "--advertise-client-urls",
                &self.client,
            ])
            .args([
                "--listen-peer-urls",
                &self.peer,
                "--initial-advertise-peer-urls",
                &self.peer,
            ])
            .args(["--initial-cluster", &format!("test={}", self.peer)])
            .args(["--heartbeat-interval", "20", "--election-timeout", "100"])
            .arg("--data-dir")
            .arg(self.directory.path().join("data"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
    }

    /// Kills the member, as a crash would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}

fn program() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths)
        .map(|directory| directory.join("etcd"))
        .find(|path| path.is_file())
}
