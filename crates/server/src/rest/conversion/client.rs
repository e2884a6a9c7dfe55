//! Calls to a webhook over HTTPS, with the errors of Go's HTTP client.

use super::trust;
use crate::http::memory::{Budget, Charge};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, USER_AGENT};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use scantling_schema::definition::{Service, WebhookClient};
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The timeout of a call.
const PATIENCE: Duration = Duration::from_secs(30);

/// The maximum length of a response: one object, which is at most as large as the body of a request, and its review.
const MAX_ANSWER: usize = 4 << 20;

/// The maximum number of idle connections.
const MAX_IDLE: usize = 32;

/// The address of a webhook.
#[derive(Debug, PartialEq, Eq)]
struct Address {
    host: String,
    port: u16,
    /// Host and port as the request and errors name them.
    authority: String,
    path: String,
    /// The service, if the webhook is one.
    service: Option<String>,
}

impl Address {
    fn parse(client: &WebhookClient) -> Result<Address, String> {
        match (&client.service, &client.url) {
            (Some(service), _) => Address::of_service(service),
            (None, Some(url)) => Address::of_url(url),
            (None, None) => Err("webhook configuration must have either service or URL".to_owned()),
        }
    }

    fn of_service(service: &Service) -> Result<Address, String> {
        let host = format!("{}.{}.svc", service.name, service.namespace);
        let port = match service.port {
            None | Some(0) => 443,
            Some(port) => u16::try_from(port).map_err(|_| format!("invalid port {port} of the service"))?,
        };
        Ok(Address {
            authority: format!("{host}:{port}"),
            host,
            port,
            path: path(service.path.as_deref().unwrap_or_default()),
            service: Some(service.name.to_string()),
        })
    }

    fn of_url(url: &str) -> Result<Address, String> {
        let uri: Uri = url.parse().map_err(|e| format!("Unparsable URL: {e}"))?;
        let Some(authority) = uri.authority() else {
            return Err(format!("Unparsable URL: {url} names no host"));
        };
        Ok(Address {
            // Addresses and certificates have IPv6 addresses without the brackets of the URL.
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(443),
            authority: authority.to_string(),
            path: path(uri.path()),
            service: None,
        })
    }

    /// The address in the head of a request.
    fn target(&self) -> String {
        format!("{}?timeout={}s", self.path, PATIENCE.as_secs())
    }

    /// The error about a failed call.
    fn failed(&self, why: &str) -> String {
        format!("Post \"https://{}{}\": {why}", self.authority, self.target())
    }
}

/// An absolute path without a trailing slash.
fn path(given: &str) -> String {
    format!("/{}", given.trim_matches('/'))
}

/// The response of a webhook.
#[derive(Debug)]
pub(super) struct WebhookResponse {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// The memory of the body.
    pub(super) _charge: Option<Charge>,
}

impl WebhookResponse {
    /// The media type of the body.
    pub(super) fn content_type(&self) -> Option<&str> {
        self.headers.get(CONTENT_TYPE)?.to_str().ok()
    }
}

/// Calls a webhook over pooled connections.
pub(super) struct WebhookCaller {
    address: Address,
    tls: TlsConnector,
    idle: Mutex<Vec<Connection>>,
}

impl std::fmt::Debug for WebhookCaller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebhookCaller")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// A connection with its addresses.
struct Connection {
    sender: SendRequest<Full<Bytes>>,
    from: SocketAddr,
    to: SocketAddr,
}

/// The reason why a call over a connection failed.
enum Failed {
    /// The connection was closed already, so the webhook did not receive the request.
    Unsent(String),
    Because(String),
}

impl WebhookCaller {
    /// A client for a webhook with a certificate of these authorities, in PEM.
    pub(super) fn new(webhook: &WebhookClient, bundle: &[u8]) -> Result<WebhookCaller, String> {
        Ok(WebhookCaller {
            address: Address::parse(webhook)?,
            tls: TlsConnector::from(Arc::new(trust::client_config(bundle)?)),
            idle: Mutex::default(),
        })
    }

    /// Sends a body; fails unless the complete response arrives in time.
    pub(super) async fn post(&self, body: Bytes, memory: &Budget) -> Result<WebhookResponse, String> {
        let called = tokio::time::timeout(PATIENCE, self.call(body, memory)).await;
        let called = called.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()));
        called.map_err(|why| self.address.failed(&why))
    }

    async fn call(&self, body: Bytes, memory: &Budget) -> Result<WebhookResponse, String> {
        // The peer may have closed a kept connection meanwhile: the call goes on with the next one.
        while let Some(mut kept) = self.take_idle() {
            match self.exchange(&mut kept, body.clone(), memory).await {
                Ok(answer) => {
                    self.keep(kept).await;
                    return Ok(answer);
                }
                Err(Failed::Unsent(_)) => {}
                Err(Failed::Because(why)) => return Err(why),
            }
        }
        let mut new = self.connect().await?;
        match self.exchange(&mut new, body, memory).await {
            Ok(answer) => {
                self.keep(new).await;
                Ok(answer)
            }
            Err(Failed::Unsent(why) | Failed::Because(why)) => Err(why),
        }
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|connection| !connection.sender.is_closed());
        // The most recently used connection is the least likely to have been closed by the peer.
        idle.pop()
    }

    /// Keeps a connection for the next call, if it is still open.
    async fn keep(&self, mut connection: Connection) {
        // A connection is ready only once its response was read to the end, so the next response cannot begin
        // with a rest of it.
        if connection.sender.ready().await.is_ok() {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            if idle.len() < MAX_IDLE {
                idle.push(connection);
            }
        }
    }

    async fn exchange(
        &self,
        connection: &mut Connection,
        body: Bytes,
        memory: &Budget,
    ) -> Result<WebhookResponse, Failed> {
        let request = Request::post(self.address.target())
            .header(HOST, &self.address.authority)
            // kube-apiserver builds its conversion client with the settings of admission webhooks.
            .header(USER_AGENT, "kube-apiserver-admission")
            .header(ACCEPT, "application/json, */*")
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|e| Failed::Because(e.to_string()))?;
        let response = connection.sender.try_send_request(request).await;
        let response = response.map_err(|e| match e.message() {
            Some(_) => Failed::Unsent(connection.broken(e.error())),
            None => Failed::Because(connection.broken(e.error())),
        })?;
        let (head, mut body) = response.into_parts();
        let mut read = Vec::new();
        let mut charge = memory.empty();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Failed::Because("unexpected EOF".to_owned()))?;
            let data = frame.data_ref().map_or(&[][..], |data| data);
            if read.len() + data.len() > MAX_ANSWER {
                let why = format!("the answer has more than {MAX_ANSWER} bytes");
                return Err(Failed::Because(why));
            }
            if !charge.grow(data.len()) {
                let why = "the answers of webhooks take too much memory, please try again later";
                return Err(Failed::Because(why.to_owned()));
            }
            read.extend_from_slice(data);
        }
        Ok(WebhookResponse {
            status: head.status.as_u16(),
            headers: head.headers,
            body: read.into(),
            _charge: Some(charge),
        })
    }

    async fn connect(&self) -> Result<Connection, String> {
        let tcp = self.dial().await?;
        // Requests are small, and the caller waits for each.
        let _ = tcp.set_nodelay(true);
        let ends = tcp.local_addr().and_then(|from| Ok((from, tcp.peer_addr()?)));
        let (from, to) = ends.map_err(|e| in_words(&e))?;
        let name = ServerName::try_from(self.address.host.clone()).map_err(|e| e.to_string())?;
        let tls = self.tls.connect(name, tcp).await;
        let tls = tls.map_err(|e| no_handshake(&e, from, to))?;
        let handshake = http1::handshake(TokioIo::new(tls)).await;
        let (sender, connection) = handshake.map_err(|e| e.to_string())?;
        // It ends when the sender is dropped, or the peer closes it; the next call then fails.
        tokio::spawn(connection);
        Ok(Connection { sender, from, to })
    }

    /// Connects to the first address of the host that accepts.
    async fn dial(&self) -> Result<TcpStream, String> {
        let Address {
            host, port, service, ..
        } = &self.address;
        let found = tokio::net::lookup_host((host.as_str(), *port)).await;
        // A failed lookup is an empty list, whose error is the initial value of `failed`.
        let addresses: Vec<SocketAddr> = found.map(Iterator::collect).unwrap_or_default();
        let mut failed = match service {
            Some(service) => format!("service {service:?} not found"),
            None => format!("dial tcp: lookup {host}: no such host"),
        };
        for address in addresses {
            match TcpStream::connect(address).await {
                Ok(connected) => return Ok(connected),
                Err(e) => failed = format!("dial tcp {address}: connect: {}", in_words(&e)),
            }
        }
        Err(failed)
    }
}

impl Connection {
    /// The error about a failed connection.
    fn broken(&self, e: &hyper::Error) -> String {
        match e.source().and_then(|e| e.downcast_ref::<io::Error>()) {
            Some(e) => broken(e, self.from, self.to),
            None if e.is_incomplete_message() || e.is_canceled() => "EOF".to_owned(),
            None => format!("net/http: HTTP/1.x transport connection broken: {e}"),
        }
    }
}

/// The error about a broken connection.
fn broken(e: &io::Error, from: SocketAddr, to: SocketAddr) -> String {
    match e.kind() {
        io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        _ => format!("read tcp {from}->{to}: read: {}", in_words(e)),
    }
}

/// The error about a failed handshake.
fn no_handshake(e: &io::Error, from: SocketAddr, to: SocketAddr) -> String {
    match e.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::General(why)) => format!("tls: {why}"),
        Some(rustls::Error::InvalidMessage(_)) => {
            "tls: first record does not look like a TLS handshake".to_owned()
        }
        Some(rustls::Error::AlertReceived(alert)) => format!("remote error: tls: {alert:?}"),
        Some(other) => format!("tls: {other}"),
        None => broken(e, from, to),
    }
}

/// An error of the operating system as Go prints it: in lower case and without its number.
fn in_words(e: &io::Error) -> String {
    let text = e.to_string();
    let text = text
        .split_once(" (os error")
        .map_or(text.as_str(), |(text, _)| text);
    text.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webhook_addresses() {
        let url = |url: &str| WebhookClient {
            url: Some(url.into()),
            ..WebhookClient::default()
        };
        let service = |path: Option<&str>, port| WebhookClient {
            service: Some(Service {
                namespace: "n".into(),
                name: "s".into(),
                path: path.map(Into::into),
                port,
            }),
            ..WebhookClient::default()
        };
        let table = [
            (
                url("https://a.example"),
                "a.example",
                443,
                "https://a.example/?timeout=30s",
            ),
            (
                url("https://a:8443/b/c"),
                "a",
                8443,
                "https://a:8443/b/c?timeout=30s",
            ),
            (
                url("https://[::1]:9/b/"),
                "::1",
                9,
                "https://[::1]:9/b?timeout=30s",
            ),
            (
                service(None, None),
                "s.n.svc",
                443,
                "https://s.n.svc:443/?timeout=30s",
            ),
            (
                service(Some("/x"), Some(8443)),
                "s.n.svc",
                8443,
                "https://s.n.svc:8443/x?timeout=30s",
            ),
        ];
        for (client, host, port, shown) in table {
            let address = Address::parse(&client).unwrap();
            assert_eq!((address.host.as_str(), address.port), (host, port));
            assert_eq!(address.failed("why"), format!("Post \"{shown}\": why"));
        }
    }
}
