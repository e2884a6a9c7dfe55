//! kube-apiserver with etcd, started for the same load in the same run.

use crate::Failure;
use crate::child::{Processes, Server};
use crate::client::Endpoint;
use base64::Engine as _;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
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
        // etcd first, because kube-apiserver waits for it only for a while.
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
        let keys = TokenKeys::generate()?;
        let private = file("tokens.key", keys.private)?;
        let public = file("tokens.pub", keys.public)?;
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
                .arg(option("service-account-signing-key-file", &private))
                .arg(option("service-account-key-file", &public))
                .arg("--service-cluster-ip-range=10.0.0.0/24"),
        )?);
        loop {
            // The certificate is written during the start, so both steps are tried again.
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

/// The keys that sign and verify service account tokens. kube-apiserver does not start without them.
struct TokenKeys {
    private: String,
    public: String,
}

impl TokenKeys {
    /// The DER of a P-256 public key up to the point on the curve.
    const PUBLIC_HEADER: [u8; 26] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
        0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
    ];

    fn generate() -> Result<TokenKeys, Failure> {
        let (algorithm, random) = (&ECDSA_P256_SHA256_ASN1_SIGNING, SystemRandom::new());
        let failed = |_| "no key could be generated";
        let private = EcdsaKeyPair::generate_pkcs8(algorithm, &random).map_err(failed)?;
        let pair =
            EcdsaKeyPair::from_pkcs8(algorithm, private.as_ref(), &random).map_err(|e| e.to_string())?;
        let public = [&Self::PUBLIC_HEADER, pair.public_key().as_ref()].concat();
        Ok(TokenKeys {
            private: pem("PRIVATE KEY", private.as_ref()),
            public: pem("PUBLIC KEY", &public),
        })
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}
