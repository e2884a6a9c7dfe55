//! The two servers: processes on loopback, and what they have chosen themselves.

use crate::CompareError;
use crate::answer::Answer;
use crate::client::ServerClient;
use crate::request::{JSON, PROTOBUF, PairRequest, SEGMENT, VERSION};
use percent_encoding::utf8_percent_encode;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use regex::Regex;
use scantling_apitypes::{TypeTable, protobuf};
use scantling_testkit::normalize::{self, BodyForm, Captures};
use scantling_value::{Limits, Map, Value, json};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The programs to run.
pub(crate) struct Programs {
    pub(crate) kube_apiserver: PathBuf,
    pub(crate) etcd: PathBuf,
    pub(crate) scantling: PathBuf,
}

const TOKEN: &str = "compare";
/// The maximum time until a server is ready.
const READY: Duration = Duration::from_secs(180);
const RETRY: Duration = Duration::from_millis(100);

/// Plugins that are off by default in `scantling serve`, or that decide by objects which random writes create.
const DISABLED: &str = "--disable-admission-plugins=ServiceAccount,MutatingAdmissionPolicy,\
                        MutatingAdmissionWebhook,ValidatingAdmissionPolicy,ValidatingAdmissionWebhook";

/// kube-apiserver and `scantling serve`. Their processes end with the value.
pub(crate) struct Pair {
    theirs: Server,
    ours: Server,
    _processes: Processes,
    /// All that was sent since the last cleanup: a value in it was not chosen by a server.
    sent: String,
}

/// Processes that end with the value.
struct Processes(Vec<Child>);

impl Drop for Processes {
    fn drop(&mut self) {
        for process in &mut self.0 {
            // A process that has ended by itself needs no stop.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Pair {
    /// Starts both servers in a directory, and waits until they are ready.
    pub(crate) async fn start(programs: &Programs, directory: &Path) -> Result<Pair, CompareError> {
        let [clients, peers, secure, own] = free_ports()?;
        let write = |name: &str, text: String| -> Result<PathBuf, CompareError> {
            let path = directory.join(name);
            std::fs::write(&path, text)?;
            Ok(path)
        };
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let private = write("tokens.key", key.serialize_pem())?;
        let public = write("tokens.pub", key.public_key_pem())?;
        let tokens = write("tokens.csv", format!("{TOKEN},admin,1,\"system:masters\"\n"))?;
        let option = |name: &str, value: &Path| format!("--{name}={}", value.display());
        let mut processes = Processes(Vec::new());
        let mut spawn = |name: &str, command: &mut Command| -> Result<(), CompareError> {
            let log = std::fs::File::create(directory.join(name))?;
            command.stdout(log.try_clone()?).stderr(log).stdin(Stdio::null());
            let process = command.spawn();
            processes
                .0
                .push(process.map_err(|e| format!("{}: {e}", command.get_program().display()))?);
            Ok(())
        };
        spawn(
            "etcd.log",
            Command::new(&programs.etcd)
                .arg(option("data-dir", &directory.join("etcd")))
                .arg(format!("--listen-client-urls=http://{clients}"))
                .arg(format!("--advertise-client-urls=http://{clients}"))
                .arg(format!("--listen-peer-urls=http://{peers}"))
                .arg(format!("--initial-advertise-peer-urls=http://{peers}"))
                .arg(format!("--initial-cluster=default=http://{peers}"))
                .arg("--unsafe-no-fsync"),
        )?;
        spawn(
            "kube-apiserver.log",
            Command::new(&programs.kube_apiserver)
                .arg(format!("--etcd-servers=http://{clients}"))
                .arg(format!("--bind-address={}", secure.ip()))
                .arg(format!("--secure-port={}", secure.port()))
                .arg(option("cert-dir", &directory.join("certificates")))
                .arg(option("token-auth-file", &tokens))
                .arg("--service-account-issuer=https://kubernetes.default.svc.cluster.local")
                .arg(option("service-account-signing-key-file", &private))
                .arg(option("service-account-key-file", &public))
                .arg("--service-cluster-ip-range=10.0.0.0/24")
                .arg("--authorization-mode=AlwaysAllow")
                .arg("--allow-privileged=true")
                // Random FlowSchemas must not delay requests.
                .arg("--enable-priority-and-fairness=false")
                .arg(DISABLED),
        )?;
        let certificate = directory.join("certificates/apiserver.crt");
        let theirs = ready(secure, &certificate).await;
        let theirs = theirs.ok_or_else(|| log(directory, "kube-apiserver.log"))?;
        spawn(
            "scantling.log",
            Command::new(&programs.scantling)
                .args(["serve", "--in-memory", "--secure-port", &own.port().to_string()])
                .arg(option("token-auth-file", &tokens))
                .arg(option("tls-cert-file", &certificate))
                .arg(option("tls-private-key-file", &certificate.with_extension("key")))
                .arg(option("write-kubeconfig", &directory.join("kubeconfig"))),
        )?;
        let ours = ready(own, &certificate).await;
        Ok(Pair {
            theirs: Server::new("kube-apiserver", theirs),
            ours: Server::new("scantling", ours.ok_or_else(|| log(directory, "scantling.log"))?),
            _processes: processes,
            sent: String::new(),
        })
    }

    /// Sends a request to both servers. Returns kube-apiserver's answer first.
    pub(crate) async fn send(&mut self, request: &PairRequest) -> Result<[Answer; 2], CompareError> {
        self.sent.push_str(&request.path);
        self.sent
            .push_str(&request.body.as_ref().map(Value::to_json).unwrap_or_default());
        let (theirs, ours) = tokio::join!(
            self.theirs.send(request, &self.sent),
            self.ours.send(request, &self.sent)
        );
        Ok([theirs?, ours?])
    }

    /// Deletes the objects that were created.
    pub(crate) async fn clean_up(&mut self) -> Result<(), CompareError> {
        self.sent.clear();
        let (theirs, ours) = tokio::join!(self.theirs.clean_up(), self.ours.clean_up());
        theirs.and(ours)
    }
}

struct Server {
    name: &'static str,
    client: ServerClient,
    captures: Captures,
    /// The version of the object in the last response.
    version: String,
    /// The paths of objects that were created.
    created: BTreeSet<String>,
}

impl Server {
    fn new(name: &'static str, client: ServerClient) -> Server {
        Server {
            name,
            client,
            captures: Captures::default(),
            version: String::new(),
            created: BTreeSet::new(),
        }
    }

    /// Returns the status, the media type, the warnings and the body of a response.
    async fn raw(
        &mut self,
        request: &PairRequest,
    ) -> Result<(u16, String, Vec<String>, Vec<u8>), CompareError> {
        let fill = |text: &str| self.captures.fill(&text.replace(VERSION, &self.version));
        let head = hyper::Request::builder()
            .method(request.method)
            .uri(fill(&request.path))
            .header("content-type", request.media)
            .header("accept", request.accept);
        let body = request.bytes(fill);
        let failed = |e| format!("{}: {} {}: {e}", self.name, request.method, request.path);
        let response = self.client.send(head, body).await.map_err(failed)?;
        let status = response.status().as_u16();
        let headers = response.headers();
        let media = headers.get("content-type").and_then(|v| v.to_str().ok());
        let media = media.unwrap_or_default().to_owned();
        let warnings = headers.get_all("warning").iter();
        let warnings = normalize::warnings(warnings.map(hyper::header::HeaderValue::as_bytes));
        let body = response.into_body().to_vec();
        Ok((status, media, warnings, body))
    }

    async fn send(&mut self, request: &PairRequest, sent: &str) -> Result<Answer, CompareError> {
        let (status, media, warnings, bytes) = self.raw(request).await?;
        let (bytes, media) = match media.starts_with(PROTOBUF) {
            true => (decoded_protobuf(&bytes)?.to_json().into_bytes(), JSON),
            false => (bytes, media.as_str()),
        };
        let raw = json::decode(&bytes, Limits::SAFE).unwrap_or_default();
        if status < 300 && raw.get_str("kind") != "Status" {
            self.remember(request, &raw, status == 201);
        }
        self.captures.keep_allocated(&raw, sent, "");
        let prefix = request
            .body
            .as_ref()
            .map(|body| body.str_at(["metadata", "generateName"]));
        self.captures
            .keep_refused_name(prefix.unwrap_or_default(), &raw, sent);
        let mut body = normalize::body(&bytes, media, BodyForm::Document);
        self.captures.blank(&mut body);
        normalize::blank_fresh(&mut body, sent);
        blank_secrets(&mut body);
        Ok(Answer {
            status,
            warnings,
            body: normalize::sort_unordered(body),
        })
    }

    /// Keeps what later requests need of an object.
    fn remember(&mut self, request: &PairRequest, object: &Value, created: bool) {
        let metadata = |name: &str| object.str_at(["metadata", name]);
        let name = metadata("name");
        if !metadata("resourceVersion").is_empty() {
            self.version = metadata("resourceVersion").to_owned();
        }
        if !metadata("uid").is_empty() {
            self.captures.insert("uid", metadata("uid").to_owned());
        }
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let is_stored = !metadata("resourceVersion").is_empty() && !query.contains("dryRun");
        if created && is_stored && !name.is_empty() {
            let name = utf8_percent_encode(name, SEGMENT).to_string();
            let path = self.captures.fill(path);
            let path = match (request.method, path.rsplit_once('/')) {
                ("POST", _) => format!("{path}/{name}"),
                // An apply to a subresource may create the object.
                (_, Some((object, last))) if last != name => object.to_owned(),
                _ => path,
            };
            self.created.insert(path);
        }
    }

    async fn clean_up(&mut self) -> Result<(), CompareError> {
        for path in std::mem::take(&mut self.created) {
            let finalizers =
                Map::from_iter([("metadata", Map::from_iter([("finalizers", Value::Null)]).into())]);
            let mut patch = PairRequest::new("PATCH", path.clone(), Some(finalizers.into()));
            patch.media = crate::patch::MERGE;
            let query = "gracePeriodSeconds=0&propagationPolicy=Background";
            self.raw(&patch).await?;
            // A delete that meets a write of the server itself is a conflict.
            let mut last = String::new();
            for _ in 0..5 {
                let delete = PairRequest::new("DELETE", format!("{path}?{query}"), None);
                let (status, _, _, body) = self.raw(&delete).await?;
                last = String::from_utf8_lossy(&body).into_owned();
                if matches!(status, 200 | 202 | 404) {
                    last.clear();
                    break;
                }
            }
            if !last.is_empty() {
                return Err(format!("{} does not delete {path}: {last}", self.name).into());
            }
            if path.starts_with("/api/v1/namespaces/") && path.matches('/').count() == 4 {
                let finalized = format!("{path}/finalize");
                self.raw(&PairRequest::new(
                    "PUT",
                    finalized,
                    Some(spec_without_finalizers(&path)),
                ))
                .await?;
            }
        }
        self.captures = Captures::default();
        Ok(())
    }
}

/// A namespace that nothing has to finalize.
fn spec_without_finalizers(path: &str) -> Value {
    let name = path.rsplit('/').next().unwrap_or_default();
    let text =
        format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}},"spec":{{}}}}"#);
    json::decode(text.as_bytes(), Limits::SAFE).unwrap_or_default()
}

fn decoded_protobuf(bytes: &[u8]) -> Result<Value, CompareError> {
    let opened = protobuf::open(bytes)?;
    let object = TypeTable::latest().read_envelope(&opened);
    Ok(object.ok_or("a response of an unknown kind")??)
}

/// Blanks tokens, and the addresses of Go values in memory, which some error texts contain.
fn blank_secrets(value: &mut Value) {
    static SECRET: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"0x[0-9a-f]{6,}|^eyJ[\w-]+\.[\w-]+\.[\w-]+$").ok());
    match value {
        Value::Object(members) => members.iter_mut().for_each(|(_, value)| blank_secrets(value)),
        Value::Array(items) => items.iter_mut().for_each(blank_secrets),
        Value::String(text) => {
            if let Some(secret) = &*SECRET {
                *text = secret.replace_all(text, "<secret>").as_ref().into();
            }
        }
        _ => {}
    }
}

/// A client of a server that is ready; `None` if it does not become ready.
async fn ready(address: SocketAddr, certificate: &Path) -> Option<ServerClient> {
    let begin = Instant::now();
    while begin.elapsed() < READY {
        // kube-apiserver writes its certificate during the start, so all steps are tried again.
        if let Ok(authority) = std::fs::read(certificate)
            && let Ok(mut client) = ServerClient::new(address, &authority, TOKEN)
            && let Ok(response) = client.send(hyper::Request::get("/readyz"), Vec::new()).await
            && response.status() == 200
        {
            return Some(client);
        }
        tokio::time::sleep(RETRY).await;
    }
    None
}

/// The end of a server's log.
fn log(directory: &Path, name: &str) -> String {
    let text = std::fs::read_to_string(directory.join(name)).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(10).collect();
    let lines: Vec<&str> = lines.into_iter().rev().collect();
    format!(
        "the server does not start; {name} ends with\n{}",
        lines.join("\n")
    )
}

/// Free loopback addresses. All are held until the last is known, so that they differ.
fn free_ports<const N: usize>() -> Result<[SocketAddr; N], CompareError> {
    let mut held = Vec::new();
    for _ in 0..N {
        held.push(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?);
    }
    let addresses = held.iter().map(TcpListener::local_addr);
    let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
    Ok(addresses.try_into().map_err(|_| "too few ports")?)
}
