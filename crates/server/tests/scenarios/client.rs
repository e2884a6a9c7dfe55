//! A client for one server: one connection, one request at a time.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{HeaderMap, Method, Request};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use scantling_server::Server;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a request says beside its method and path.
#[derive(Default)]
pub(crate) struct Asking<'a> {
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) content_type: Option<&'a str>,
    pub(crate) accept: Option<&'a str>,
}

/// An answer, read to its end.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A client that trusts the server's own authority.
pub(crate) struct Client {
    address: SocketAddr,
    token: String,
    tls: TlsConnector,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    pub(crate) fn of(server: &Server) -> Client {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(server.authority().as_bytes()) {
            roots
                .add(certificate.expect("the authority is a certificate"))
                .expect("the authority is valid");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("there are protocol versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Client {
            address: server.address(),
            token: server.admin_token().to_owned(),
            tls: TlsConnector::from(Arc::new(config)),
            sender: None,
        }
    }

    /// Sends a request and reads the answer.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        asking: Asking<'_>,
    ) -> Result<Answer, String> {
        let asked = tokio::time::timeout(PATIENCE, self.exchange(method, path, asking));
        match asked.await {
            Ok(answer) => answer.map_err(|e| format!("{method} {path}: {e}")),
            Err(_) => Err(format!("{method} {path}: no answer within {PATIENCE:?}")),
        }
    }

    async fn exchange(
        &mut self,
        method: &str,
        path: &str,
        asking: Asking<'_>,
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
        let mut request = Request::builder()
            .method(Method::from_bytes(method.as_bytes())?)
            .uri(path)
            .header("Host", self.address.to_string())
            .header("Accept", asking.accept.unwrap_or("application/json"))
            .header("User-Agent", "replay/1")
            .header("Authorization", format!("Bearer {}", self.token));
        if let Some(kind) = asking.content_type {
            request = request.header("Content-Type", kind);
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

    /// The connection; a new one if the last was closed.
    async fn connected(
        &mut self,
    ) -> Result<&mut SendRequest<Full<Bytes>>, Box<dyn std::error::Error + Send + Sync>> {
        let open = match &mut self.sender {
            Some(sender) => sender.ready().await.is_ok(),
            None => false,
        };
        if !open {
            let tcp = TcpStream::connect(self.address).await?;
            tcp.set_nodelay(true)?;
            let name = ServerName::from(self.address.ip());
            let stream = self.tls.connect(name, tcp).await?;
            let (sender, connection) = handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            self.sender = Some(sender);
        }
        self.sender.as_mut().ok_or_else(|| "no connection".into())
    }
}
