//! kube-apiserver with etcd, started for the same load in the same run.

use crate::Failure;
use crate::child::{Processes, Server};
use crate::client::Endpoint;
use base64::Engine as _;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The programs of a real server.
pub struct Peer {
    pub kube_apiserver: PathBuf,
    pub etcd: PathBuf,
}

const TOKEN: &str = "bench-token";
/// The maximum time until a server is ready.
const READY: Duration = Duration::from_secs(120);
/// The time between two attempts to reach it.
const RETRY: Duration = Duration::from_millis(50);

impl Peer {
    /// Starts etcd and kube-apiserver on free loopback ports, and waits until they are ready.
    pub async fn start(&self, directory: &Path) -> Result<Server, Failure> {
        let begin = Instant::now();
        let [clients, peers, secure] = free_ports()?;
        let etcd = spawn(
            Command::new(&self.etcd)
                .arg("--data-dir")
                .arg(directory.join("etcd"))
                .arg(format!("--listen-client-urls=http://{clients}"))
                .arg(format!("--advertise-client-urls=http://{clients}"))
                .arg(format!("--listen-peer-urls=http://{peers}"))
                .arg(format!("--initial-advertise-peer-urls=http://{peers}"))
                .arg(format!("--initial-cluster=default=http://{peers}")),
        )?;
        let mut processes = Processes::new();
        processes.push(etcd);
        let file = |name: &str, text: String| -> Result<PathBuf, Failure> {
            let path = directory.join(name);
            std::fs::write(&path, text)?;
            Ok(path)
        };
        let key = file("service-accounts.pem", signing_key()?)?;
        let tokens = file("tokens.csv", format!("{TOKEN},admin,1,\"system:masters\"\n"))?;
        let certificates = directory.join("certificates");
        let option = |name: &str, value: &Path| format!("--{name}={}", value.display());
        processes.push(spawn(
            Command::new(&self.kube_apiserver)
                .arg(format!("--etcd-servers=http://{clients}"))
                .arg(format!("--bind-address={}", secure.ip()))
                .arg(format!("--secure-port={}", secure.port()))
                .arg(option("cert-dir", &certificates))
                .arg(option("token-auth-file", &tokens))
                .arg("--service-account-issuer=https://kubernetes.default.svc")
                .arg(option("service-account-signing-key-file", &key))
                .arg(option("service-account-key-file", &key))
                .arg("--service-cluster-ip-range=10.0.0.0/24"),
        )?);
        loop {
            if let Ok(endpoint) = reach(secure, &certificates.join("apiserver.crt")).await {
                return Ok(Server::of_peer(processes, endpoint, begin.elapsed()));
            }
            if begin.elapsed() > READY {
                return Err("kube-apiserver did not become ready".into());
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Connects to a server that has written its certificate and is ready.
async fn reach(address: SocketAddr, certificate: &Path) -> Result<Endpoint, Failure> {
    let endpoint = Endpoint::new(address, &std::fs::read(certificate)?, TOKEN.to_owned())?;
    endpoint
        .connect()
        .await?
        .send(&endpoint.get("/readyz"))
        .await?
        .expect(200)?;
    Ok(endpoint)
}

fn spawn(command: &mut Command) -> Result<std::process::Child, Failure> {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    let program = quiet.get_program().to_owned();
    quiet
        .spawn()
        .map_err(|e| format!("{}: {e}", program.display()).into())
}

/// Free loopback addresses. All are held until the last is known, so that they differ.
fn free_ports<const N: usize>() -> Result<[SocketAddr; N], Failure> {
    let mut held = Vec::new();
    for _ in 0..N {
        held.push(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?);
    }
    let addresses = held.iter().map(TcpListener::local_addr);
    let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
    Ok(addresses.try_into().map_err(|_| "too few ports")?)
}

/// A private key for service account tokens, which kube-apiserver does not start without.
fn signing_key() -> Result<String, Failure> {
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new())
        .map_err(|_| "no key could be generated")?;
    let text = base64::engine::general_purpose::STANDARD.encode(key);
    Ok(format!(
        "-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n"
    ))
}
