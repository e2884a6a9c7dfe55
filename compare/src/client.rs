//! A client with one connection and one request at a time.

use crate::CompareError;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub(crate) struct ServerClient {
    address: SocketAddr,
    token: String,
    tls: TlsConnector,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl ServerClient {
    /// A client that trusts the certificates in a PEM text.
    pub(crate) fn new(
        address: SocketAddr,
        authority: &[u8],
        token: &str,
    ) -> Result<ServerClient, CompareError> {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority) {
            roots.add(certificate?)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(ServerClient {
            address,
            token: token.to_owned(),
            tls: TlsConnector::from(Arc::new(config)),
            sender: None,
        })
    }

    /// Sends a request and reads the response.
    pub(crate) async fn send(
        &mut self,
        request: hyper::http::request::Builder,
        body: Vec<u8>,
    ) -> Result<Response<Bytes>, CompareError> {
        let request: Request<_> = request
            .header("host", self.address.to_string())
            .header("authorization", format!("Bearer {}", self.token))
            .header("user-agent", "compare/1")
            .body(Full::from(body))?;
        let mut sent = self.connected().await?.send_request(request.clone()).await;
        if sent.is_err() {
            // The server may have closed the connection before the request.
            self.sender = None;
            sent = self.connected().await?.send_request(request).await;
        }
        let Ok(response) = sent else {
            // A handler that panics closes the connection.
            self.sender = None;
            let mut response = Response::new(Bytes::from_static(b"no response"));
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            return Ok(response);
        };
        let (parts, body) = response.into_parts();
        Ok(Response::from_parts(parts, body.collect().await?.to_bytes()))
    }

    /// The connection, reopened if it was closed.
    async fn connected(&mut self) -> Result<&mut SendRequest<Full<Bytes>>, CompareError> {
        let is_open = match &mut self.sender {
            Some(sender) => sender.ready().await.is_ok(),
            None => false,
        };
        if !is_open {
            let socket = TcpStream::connect(self.address).await?;
            socket.set_nodelay(true)?;
            let stream = self
                .tls
                .connect(ServerName::from(self.address.ip()), socket)
                .await?;
            let (sender, connection) = handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            self.sender = Some(sender);
        }
        self.sender.as_mut().ok_or_else(|| "no connection".into())
    }
}
