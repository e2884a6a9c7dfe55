//! etcd clusters for tests: on loopback, with one or several members, with or without TLS.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests fail by panicking, and say what they skip"
)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use scantling_store::{EtcdConfig, EtcdStore};

/// The transport security of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// Connections are not encrypted.
    Plain,
    /// Mutual TLS.
    Mutual,
}

/// A running cluster; it stops when this is dropped.
#[derive(Debug)]
pub struct EtcdCluster {
    members: Vec<EtcdMember>,
    directory: tempfile::TempDir,
    security: Security,
}

#[derive(Debug)]
struct EtcdMember {
    child: Option<Child>,
    client: String,
    peer: String,
}

impl EtcdCluster {
    /// Starts a cluster, or prints that the machine has no etcd.
    pub fn start(size: usize, security: Security) -> Option<Self> {
        if program().is_none() {
            eprintln!("SKIPPED: there is no `etcd` on this machine (Debian: apt-get install etcd-server)");
            return None;
        }
        // All ports are held until all are known, so that they differ.
        let ports: Vec<_> = (0..2 * size)
            .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let scheme = match security {
            Security::Plain => "http",
            Security::Mutual => "https",
        };
        let url = |listener: &TcpListener, scheme| format!("{scheme}://{}", listener.local_addr().unwrap());
        let members = ports
            .chunks(2)
            .map(|pair| EtcdMember {
                child: None,
                client: url(&pair[0], scheme),
                peer: url(&pair[1], "http"),
            })
            .collect();
        let directory = tempfile::tempdir().unwrap();
        if security == Security::Mutual {
            certificates(directory.path());
        }
        // Released only now, so that no other process takes the ports before etcd does.
        drop(ports);
        let mut cluster = Self {
            members,
            directory,
            security,
        };
        for member in 0..size {
            cluster.resume(member);
        }
        Some(cluster)
    }

    /// The connection settings, with the first member first.
    pub fn config(&self) -> EtcdConfig {
        let addresses = self.members.iter().map(|member| member.client.clone()).collect();
        let mut config = EtcdConfig::new(addresses);
        config.timeout = Duration::from_secs(30);
        if self.security == Security::Mutual {
            let pem = |name| std::fs::read(self.directory.path().join(name)).unwrap();
            config.ca_certificate = Some(pem("ca.crt"));
            config.client_identity = Some((pem("client.crt"), pem("client.key")));
        }
        config
    }

    /// Connects a store to the cluster.
    pub async fn connect(&self) -> EtcdStore {
        EtcdStore::connect(self.config()).await.unwrap()
    }

    /// Starts or restarts a member, with its previous data and address.
    pub fn resume(&mut self, member: usize) {
        let all: Vec<_> = self.members.iter().enumerate().collect();
        let all: Vec<_> = all
            .iter()
            .map(|(n, member)| format!("m{n}={}", member.peer))
            .collect();
        // A single member need not wait for others.
        let (heartbeat, election) = if all.len() == 1 {
            ("20", "100")
        } else {
            ("100", "1000")
        };
        let path = |name: String| self.directory.path().join(name);
        let log = std::fs::File::create(path(format!("log-{member}"))).unwrap();
        let EtcdMember { client, peer, .. } = &self.members[member];
        let mut command = Command::new(program().unwrap());
        command
            .args(["--name", &format!("m{member}")])
            .args(["--listen-client-urls", client, "--advertise-client-urls", client])
            .args(["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer])
            .args(["--initial-cluster", &all.join(",")])
            .args(["--heartbeat-interval", heartbeat, "--election-timeout", election])
            .arg("--data-dir")
            .arg(path(format!("data-{member}")));
        if self.security == Security::Mutual {
            command
                .arg("--client-cert-auth")
                .arg("--trusted-ca-file")
                .arg(path("ca.crt".to_owned()))
                .arg("--cert-file")
                .arg(path("server.crt".to_owned()))
                .arg("--key-file")
                .arg(path("server.key".to_owned()));
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        self.members[member].child = Some(child.unwrap());
    }

    /// Kills a member, as a crash would.
    pub fn kill(&mut self, member: usize) {
        if let Some(mut child) = self.members[member].child.take() {
            let _ = child.kill();
            // After this, the ports and the data directory are free for a restart.
            let _ = child.wait();
        }
    }

    /// Suspends a member: it keeps its connections but does not answer.
    pub fn pause(&self, member: usize) {
        self.signal(member, "STOP");
    }

    /// Resumes a suspended member.
    pub fn unpause(&self, member: usize) {
        self.signal(member, "CONT");
    }

    fn signal(&self, member: usize, signal: &str) {
        let pid = self.members[member].child.as_ref().unwrap().id().to_string();
        let sent = Command::new("kill").args([&format!("-{signal}"), &pid]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for a leader and returns it.
    pub fn leader(&self) -> usize {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let leads = |status: &serde_json::Value| {
                let leader = &status["leader"];
                // A member without a leader reports 0.
                leader.is_string() && leader != "0" && *leader == status["header"]["member_id"]
            };
            let statuses = (0..self.members.len()).map(|n| self.post(n, "maintenance/status", "{}"));
            if let Some(leader) = statuses
                .map(|s| s.is_some_and(|s| leads(&s)))
                .position(|leads| leads)
            {
                return leader;
            }
            assert!(Instant::now() < deadline, "there is no leader");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Transfers leadership to another member.
    pub fn move_leader(&self, to: usize) {
        let status = self.post(to, "maintenance/status", "{}").unwrap();
        let target = &status["header"]["member_id"];
        let body = format!("{{\"targetID\":{target}}}");
        self.post(self.leader(), "maintenance/transfer-leadership", &body);
    }

    /// Calls a member through its JSON gateway.
    fn post(&self, member: usize, path: &str, body: &str) -> Option<serde_json::Value> {
        let address = self.members[member].client.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let length = body.len();
        let request =
            format!("POST /v3/{path} HTTP/1.0\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str(body).ok()
    }
}

impl Drop for EtcdCluster {
    fn drop(&mut self) {
        for member in 0..self.members.len() {
            self.kill(member);
        }
    }
}

/// Creates a CA and certificates for members and clients.
fn certificates(directory: &Path) {
    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
    let write = |name: &str, text: String| std::fs::write(directory.join(name), text).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    write("ca.crt", authority.self_signed(&key).unwrap().pem());
    let issuer = Issuer::new(authority, key);
    for (name, subject) in [("server", "127.0.0.1"), ("client", "client.test")] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![subject.to_owned()]).unwrap();
        // etcd's gateway is a client of its own member and uses the member's certificate.
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        write(
            &format!("{name}.crt"),
            params.signed_by(&key, &issuer).unwrap().pem(),
        );
        write(&format!("{name}.key"), key.serialize_pem());
    }
}

fn program() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths)
        .map(|directory| directory.join("etcd"))
        .find(|path| path.is_file())
}
