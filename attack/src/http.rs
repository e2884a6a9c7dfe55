//! Blocking HTTP/1.1 over TLS. Requests are bytes, so that an attack can send what no client library would.

use crate::AttackError;
use base64::Engine as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use socket2::{Domain, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The address that the attacker connects from. The second client uses 127.0.0.1, so that per-address limits
/// distinguish them.
pub(crate) const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// The address of the second client.
pub(crate) const BYSTANDER: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// The number of bytes of a response body that are kept; the rest is only counted.
const KEPT: usize = 64 << 10;

/// The negotiated application protocol.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// The server's address and the client's credential.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
}

/// One request of HTTP/1.1.
#[derive(Clone, Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// The response to a request.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    /// The size of the body.
    pub(crate) length: usize,
    /// The beginning of the body.
    pub(crate) body: Vec<u8>,
}

pub(crate) type Tls = StreamOwned<ClientConnection, TcpStream>;

/// One connection.
pub(crate) struct RawConnection {
    pub(crate) stream: Tls,
    buffer: Vec<u8>,
}

impl Endpoint {
    /// Reads the endpoint from the administrator's kubeconfig.
    pub(crate) fn from_kubeconfig(address: SocketAddr, text: &str) -> Result<Endpoint, AttackError> {
        let field = |name: &str| {
            let line = text.lines().find_map(|l| l.trim().strip_prefix(name));
            line.map(str::trim)
                .ok_or_else(|| format!("the kubeconfig has no {name}"))
        };
        let authority =
            base64::engine::general_purpose::STANDARD.decode(field("certificate-authority-data:")?)?;
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&authority) {
            roots.add(certificate?)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut http2 = config.clone();
        http2.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Endpoint {
            address,
            token: field("token:")?.to_owned(),
            http1: Arc::new(config),
            http2: Arc::new(http2),
        })
    }

    /// The same server with another token.
    pub(crate) fn with_token(&self, token: &str) -> Endpoint {
        Endpoint {
            token: token.to_owned(),
            ..self.clone()
        }
    }

    /// A TCP connection from an address, before any TLS.
    pub(crate) fn tcp(&self, source: Ipv4Addr, timeout: Duration) -> Result<TcpStream, AttackError> {
        self.tcp_with_window(source, timeout, None)
    }

    /// The same with the given receive buffer size, which bounds what a client that does not read can buffer.
    pub(crate) fn tcp_with_window(
        &self,
        source: Ipv4Addr,
        timeout: Duration,
        window: Option<usize>,
    ) -> Result<TcpStream, AttackError> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        // Before the connection: the window is negotiated with the first packet.
        if let Some(bytes) = window {
            socket.set_recv_buffer_size(bytes)?;
        }
        // Linux routes all of 127.0.0.0/8 to this machine, so a client can have many addresses.
        socket.bind(&SocketAddr::from((source, 0)).into())?;
        socket.connect_timeout(&self.address.into(), timeout)?;
        socket.set_tcp_nodelay(true)?;
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        Ok(socket.into())
    }

    /// Performs the TLS handshake.
    pub(crate) fn tls(&self, socket: TcpStream, protocol: Protocol) -> Result<Tls, AttackError> {
        let config = match protocol {
            Protocol::Http1 => &self.http1,
            Protocol::Http2 => &self.http2,
        };
        let mut socket = socket;
        // The certificate names localhost, whatever address the client connects to.
        let mut session = ClientConnection::new(config.clone(), ServerName::try_from("localhost")?)?;
        while session.is_handshaking() {
            session.complete_io(&mut socket)?;
        }
        // Without ALPN, the server would read the frames as HTTP/1.1.
        if protocol == Protocol::Http2 && session.alpn_protocol() != Some(b"h2") {
            return Err("the server does not speak HTTP/2".into());
        }
        Ok(StreamOwned::new(session, socket))
    }

    /// Opens an HTTP/1.1 connection; reads and writes time out after `timeout`.
    pub(crate) fn connect(&self, source: Ipv4Addr, timeout: Duration) -> Result<RawConnection, AttackError> {
        let stream = self.tls(self.tcp(source, timeout)?, Protocol::Http1)?;
        Ok(RawConnection {
            stream,
            buffer: Vec::new(),
        })
    }

    /// The head of a request without `Content-Length` and without the empty line.
    pub(crate) fn head(&self, method: &str, path: &str) -> String {
        let token = &self.token;
        let credentials = if token.is_empty() {
            String::new()
        } else {
            format!("Authorization: Bearer {token}\r\n")
        };
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: attack/1\r\n{credentials}")
    }

    /// The bytes of a request.
    pub(crate) fn bytes(&self, request: &HttpRequest) -> Vec<u8> {
        let mut head = self.head(request.method, &request.path);
        for (name, value) in &request.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        // A request without a body has no length, as clients send it.
        if !request.body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", request.body.len()));
        }
        head.push_str("\r\n");
        let mut out = head.into_bytes();
        out.extend_from_slice(&request.body);
        out
    }

    /// Sends one request on its own connection.
    pub(crate) fn ask(&self, request: &HttpRequest, timeout: Duration) -> Result<HttpResponse, AttackError> {
        let mut connection = self.connect(ATTACKER, timeout)?;
        connection.ask(&self.bytes(request), Instant::now() + timeout)
    }
}

/// Reads available bytes without writing first, as the TLS stream itself would: a server that has closed its
/// end after an early response accepts no more bytes, but its response can still be read.
pub(crate) fn read(stream: &mut Tls, into: &mut Vec<u8>) -> std::io::Result<usize> {
    let mut chunk = [0; 16 << 10];
    loop {
        match stream.conn.reader().read(&mut chunk) {
            Ok(n) => {
                into.extend_from_slice(chunk.get(..n).unwrap_or_default());
                return Ok(n);
            }
            // The session has no plain text yet; more has to come from the socket.
            Err(e) if e.kind() == ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
        stream.conn.read_tls(&mut stream.sock)?;
        stream.conn.process_new_packets().map_err(std::io::Error::other)?;
    }
}

impl RawConnection {
    /// Sends a request and reads the complete response.
    pub(crate) fn ask(&mut self, request: &[u8], deadline: Instant) -> Result<HttpResponse, AttackError> {
        self.set_timeouts(deadline)?;
        // A server that refuses a body may stop reading it; its response counts.
        let sent = self.send(request);
        match (self.answer(deadline), sent) {
            (Ok(answer), _) => Ok(answer),
            (Err(e), Err(sent)) => Err(format!("sending: {sent}; then {e}").into()),
            (Err(e), Ok(())) => Err(e),
        }
    }

    /// Sends bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), AttackError> {
        self.stream.write_all(bytes)?;
        self.stream.flush()?;
        Ok(())
    }

    fn set_timeouts(&self, deadline: Instant) -> Result<(), AttackError> {
        let left = deadline
            .saturating_duration_since(Instant::now())
            // A timeout of zero means none.
            .max(Duration::from_millis(1));
        self.stream.sock.set_read_timeout(Some(left))?;
        self.stream.sock.set_write_timeout(Some(left))?;
        Ok(())
    }

    /// Reads more bytes; false at the end of the stream.
    fn fill(&mut self, deadline: Instant) -> Result<bool, AttackError> {
        if Instant::now() >= deadline {
            return Err("no answer in time".into());
        }
        self.set_timeouts(deadline)?;
        match read(&mut self.stream, &mut self.buffer) {
            Ok(0) => Ok(false),
            Ok(_) => Ok(true),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err("no answer in time".into())
            }
            // A peer that closes the socket without closing TLS sends nothing more.
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Takes bytes up to and including a mark from the buffer.
    fn take_until(&mut self, mark: &[u8], deadline: Instant) -> Result<Vec<u8>, AttackError> {
        let mut searched = 0;
        loop {
            let rest = self.buffer.get(searched..).unwrap_or_default();
            if let Some(at) = rest.windows(mark.len()).position(|w| w == mark) {
                return Ok(self.buffer.drain(..searched + at + mark.len()).collect());
            }
            // The mark may begin in the bytes that are already known.
            searched = self.buffer.len().saturating_sub(mark.len());
            if !self.fill(deadline)? {
                return Err("the server closed the connection".into());
            }
        }
    }

    /// Takes `length` bytes of a body and keeps the first ones.
    fn take(&mut self, mut length: usize, kept: &mut Vec<u8>, deadline: Instant) -> Result<(), AttackError> {
        while length > 0 {
            if self.buffer.is_empty() && !self.fill(deadline)? {
                return Err("the server closed the connection in a body".into());
            }
            let n = length.min(self.buffer.len());
            let room = KEPT.saturating_sub(kept.len()).min(n);
            kept.extend_from_slice(self.buffer.get(..room).unwrap_or_default());
            self.buffer.drain(..n);
            length -= n;
        }
        Ok(())
    }

    /// Reads one response.
    pub(crate) fn answer(&mut self, deadline: Instant) -> Result<HttpResponse, AttackError> {
        let head = self.take_until(b"\r\n\r\n", deadline)?;
        let head = String::from_utf8_lossy(&head).into_owned();
        let status: u16 = head
            .split(' ')
            .nth(1)
            .and_then(|s| s.parse().ok())
            .ok_or_else(|| format!("no status line: {head}"))?;
        let header = |name: &str| {
            head.lines().find_map(|line| {
                let (n, value) = line.split_once(':')?;
                n.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let mut body = Vec::new();
        // These statuses have no body, whatever the headers say.
        let length = if status < 200 || status == 204 || status == 304 {
            0
        } else if let Some(length) = header("content-length") {
            let length = length.parse()?;
            self.take(length, &mut body, deadline)?;
            length
        } else if header("transfer-encoding").is_some() {
            // The only transfer coding of HTTP/1.1 that servers send is `chunked`.
            let mut all = 0;
            loop {
                let line = self.take_until(b"\r\n", deadline)?;
                let line = String::from_utf8_lossy(&line).into_owned();
                let length = usize::from_str_radix(line.trim(), 16)?;
                self.take(length, &mut body, deadline)?;
                self.take(2, &mut Vec::new(), deadline)?;
                all += length;
                if length == 0 {
                    break all;
                }
            }
        } else {
            // Without a length, the body ends with the connection.
            while self.fill(deadline)? {}
            let rest = std::mem::take(&mut self.buffer);
            body.extend_from_slice(rest.get(..rest.len().min(KEPT)).unwrap_or_default());
            rest.len()
        };
        Ok(HttpResponse { status, length, body })
    }
}

impl HttpResponse {
    /// The beginning of the body as text.
    pub(crate) fn body_text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the response if it has one of these statuses.
    pub(crate) fn expect(self, statuses: &[u16]) -> Result<HttpResponse, AttackError> {
        if statuses.contains(&self.status) {
            return Ok(self);
        }
        let text: String = self.body_text().chars().take(300).collect();
        Err(format!("{} instead of {statuses:?}: {text}", self.status).into())
    }
}

impl HttpRequest {
    pub(crate) fn get(path: impl Into<String>) -> HttpRequest {
        HttpRequest::new("GET", path, "", Vec::new())
    }

    /// A request with a body of some media type.
    pub(crate) fn new(
        method: &'static str,
        path: impl Into<String>,
        media_type: &str,
        body: impl Into<Vec<u8>>,
    ) -> HttpRequest {
        let mut headers = Vec::new();
        if !media_type.is_empty() {
            headers.push(("Content-Type".to_owned(), media_type.to_owned()));
        }
        HttpRequest {
            method,
            path: path.into(),
            headers,
            body: body.into(),
        }
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> HttpRequest {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}
