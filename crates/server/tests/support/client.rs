//! A client with one connection and one request at a time.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{HeaderMap, Method, Request};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use scantling_server::Server;
use scantling_value::{Limits, Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The timeout of a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The parts of a request besides its method and path.
#[derive(Clone, Default)]
pub(crate) struct Asking<'a> {
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) content_type: Option<&'a str>,
    pub(crate) accept: Option<&'a str>,
    /// Further headers.
    pub(crate) headers: &'a [(&'a str, &'a str)],
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as an object.
    pub(crate) fn json(&self) -> Value {
        json::decode(&self.body, Limits::SAFE).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    /// The status, and the message of a `Status`.
    pub(crate) fn said(&self) -> (u16, String) {
        let body = json::decode(&self.body, Limits::SAFE).unwrap_or_default();
        let message = body.get("message").and_then(Value::as_str);
        (self.status, message.map_or_else(|| self.text(), str::to_owned))
    }
}

/// A certificate chain and its key, in PEM.
pub(crate) struct Certificate<'a> {
    pub(crate) chain: &'a str,
    pub(crate) key: &'a str,
}

/// A client that trusts the server's own CA.
pub(crate) struct Client {
    address: SocketAddr,
    authorization: Option<String>,
    tls: TlsConnector,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    /// A client of the administrator.
    pub(crate) fn of(server: &Server) -> Client {
        Client::anonymous(server).with_token(server.admin_token())
    }

    /// An anonymous client.
    pub(crate) fn anonymous(server: &Server) -> Client {
        Client::new(server, server.authority(), None)
    }

    /// A client with a certificate and its own CA.
    pub(crate) fn certified(server: &Server, authority: &str, certificate: &Certificate<'_>) -> Client {
        Client::new(server, authority, Some(certificate))
    }

    fn new(server: &Server, authority: &str, certificate: Option<&Certificate<'_>>) -> Client {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
            roots
                .add(certificate.expect("the authority is a certificate"))
                .expect("the authority is valid");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("there are protocol versions")
            .with_root_certificates(roots);
        let config = match certificate {
            None => builder.with_no_client_auth(),
            Some(c) => {
                let chain = CertificateDer::pem_slice_iter(c.chain.as_bytes());
                let key = PrivateKeyDer::from_pem_slice(c.key.as_bytes()).expect("a key");
                builder
                    .with_client_auth_cert(chain.map(|c| c.expect("a certificate")).collect(), key)
                    .expect("certificate and key fit")
            }
        };
        Client {
            address: server.address(),
            authorization: None,
            tls: TlsConnector::from(Arc::new(config)),
            sender: None,
        }
    }

    /// The same with a bearer token.
    pub(crate) fn with_token(self, token: &str) -> Client {
        self.with_authorization(&format!("Bearer {token}"))
    }

    /// The same with an `Authorization` header.
    pub(crate) fn with_authorization(mut self, header: &str) -> Client {
        self.authorization = Some(header.to_owned());
        self
    }

    /// The `Authorization` header, if there is one.
    pub(crate) fn authorization(&self) -> Option<&str> {
        self.authorization.as_deref()
    }

    /// Sends a request and reads the answer.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        asking: Asking<'_>,
    ) -> Result<Answer, String> {
        let asked = tokio::time::timeout(RESPONSE_TIMEOUT, self.exchange(method, path, asking));
        match asked.await {
            Ok(answer) => answer.map_err(|e| format!("{method} {path}: {e}")),
            Err(_) => Err(format!("{method} {path}: no answer within {RESPONSE_TIMEOUT:?}")),
        }
    }

    /// GET
    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        let answer = self.ask("GET", path, Asking::default()).await;
        answer.unwrap_or_else(|e| panic!("{e}"))
    }

    /// A request with a JSON body.
    pub(crate) async fn send(&mut self, method: &str, path: &str, body: &str) -> Answer {
        let asking = Asking {
            body: Some(body.as_bytes().to_vec()),
            content_type: Some(match method {
                "PATCH" => "application/merge-patch+json",
                _ => "application/json",
            }),
            ..Asking::default()
        };
        let answer = self.ask(method, path, asking).await;
        answer.unwrap_or_else(|e| panic!("{e}"))
    }

    async fn exchange(&mut self, method: &str, path: &str, asking: Asking<'_>) -> Result<Answer, Failure> {
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes())?)
            .uri(path)
            .header("Host", self.address.to_string())
            .header("Accept", asking.accept.unwrap_or("application/json"));
        if !asking
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("User-Agent"))
        {
            request = request.header("User-Agent", "replay/1");
        }
        if let Some(authorization) = &self.authorization {
            request = request.header("Authorization", authorization);
        }
        if let Some(kind) = asking.content_type {
            request = request.header("Content-Type", kind);
        }
        for (name, value) in asking.headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::from(asking.body.unwrap_or_default()))?;
        let response = self.connected().await?.send_request(request).await?;
        let (parts, body) = response.into_parts();
        Ok(Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body: body.collect().await?.to_bytes(),
        })
    }

    /// A raw TLS connection.
    pub(crate) async fn open(&self) -> Result<TlsStream<TcpStream>, Failure> {
        let tcp = TcpStream::connect(self.address).await?;
        tcp.set_nodelay(true)?;
        let name = ServerName::from(self.address.ip());
        Ok(self.tls.connect(name, tcp).await?)
    }

    /// The connection, reopened if it was closed.
    async fn connected(&mut self) -> Result<&mut SendRequest<Full<Bytes>>, Failure> {
        let open = match &mut self.sender {
            Some(sender) => sender.ready().await.is_ok(),
            None => false,
        };
        if !open {
            let (sender, connection) = handshake(TokioIo::new(self.open().await?)).await?;
            tokio::spawn(connection);
            self.sender = Some(sender);
        }
        self.sender.as_mut().ok_or_else(|| "no connection".into())
    }
}
