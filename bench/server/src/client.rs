//! A cheap client: HTTP/1.1 over TLS, with precomputed requests, reading responses into one buffer.

use crate::Failure;
use base64::Engine as _;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The address of the server and the credentials.
#[derive(Clone)]
pub struct Endpoint {
    address: SocketAddr,
    connector: TlsConnector,
    token: String,
}

/// One connection.
pub struct Client {
    stream: TlsStream<TcpStream>,
    /// Bytes read but not yet consumed; a response begins at the front.
    buffer: Vec<u8>,
    /// The length of the last response, consumed with the next request.
    taken: usize,
    /// The body of the last response, if it came in chunks.
    chunks: Vec<u8>,
}

/// A response.
pub struct Answer<'a> {
    pub status: u16,
    pub body: &'a [u8],
}

impl Answer<'_> {
    /// Returns the response if it has that status.
    pub fn expect(self, status: u16) -> Result<Self, Failure> {
        if self.status == status {
            return Ok(self);
        }
        let text = String::from_utf8_lossy(self.body.get(..400).unwrap_or(self.body)).into_owned();
        Err(format!("{} instead of {status}: {text}", self.status).into())
    }
}

impl Endpoint {
    /// Reads the endpoint from the administrator's kubeconfig.
    pub fn from_kubeconfig(address: SocketAddr, text: &str) -> Result<Endpoint, Failure> {
        let field = |name: &str| {
            let line = text.lines().find_map(|l| l.trim().strip_prefix(name));
            line.map(str::trim)
                .ok_or_else(|| format!("the kubeconfig has no {name}"))
        };
        let authority =
            base64::engine::general_purpose::STANDARD.decode(field("certificate-authority-data:")?)?;
        Endpoint::new(address, &authority, field("token:")?.to_owned())
    }

    /// An endpoint with the PEM of its certificate authority and a bearer token.
    pub fn new(address: SocketAddr, authority: &[u8], token: String) -> Result<Endpoint, Failure> {
        let mut roots = rustls::RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority) {
            roots.add(certificate?)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Endpoint {
            address,
            connector: TlsConnector::from(Arc::new(config)),
            token,
        })
    }

    /// A new connection.
    pub async fn connect(&self) -> Result<Client, Failure> {
        let socket = TcpStream::connect(self.address).await?;
        // Small requests must not wait for more data.
        socket.set_nodelay(true)?;
        let name = ServerName::from(self.address.ip());
        Ok(Client {
            stream: self.connector.connect(name, socket).await?,
            buffer: Vec::with_capacity(64 << 10),
            taken: 0,
            chunks: Vec::new(),
        })
    }

    /// The bytes of a request without a body.
    pub fn get(&self, path: &str) -> Vec<u8> {
        self.accepting(path, "application/json")
    }

    /// The same, with another media type.
    pub fn accepting(&self, path: &str, accept: &str) -> Vec<u8> {
        let token = &self.token;
        format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench/1\r\nAccept: {accept}\r\nAuthorization: Bearer \
             {token}\r\n\r\n"
        )
        .into_bytes()
    }

    /// The bytes of a request with a body.
    pub fn sending(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
        let (token, length) = (&self.token, body.len());
        let mut out = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: bench/1\r\nAccept: application/json\r\n\
             Authorization: Bearer {token}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
        )
        .into_bytes();
        out.extend_from_slice(body);
        out
    }
}

impl Client {
    /// Sends a request and reads the complete response.
    pub async fn send(&mut self, request: &[u8]) -> Result<Answer<'_>, Failure> {
        let (status, head, length) = self.begin(request).await?;
        let Some(length) = length else {
            self.taken = self.read_chunks(head).await?;
            let body = &self.chunks;
            return Ok(Answer { status, body });
        };
        while self.buffer.len() < head + length {
            // The length is known, so the buffer grows once.
            self.buffer.reserve(head + length - self.buffer.len());
            self.fill().await?;
        }
        self.taken = head + length;
        let body = self.buffer.get(head..head + length).unwrap_or_default();
        Ok(Answer { status, body })
    }

    /// Reads a body in chunks that begins at an offset of the buffer; returns the offset of its end.
    async fn read_chunks(&mut self, mut at: usize) -> Result<usize, Failure> {
        self.chunks.clear();
        loop {
            let rest = self.buffer.get(at..).unwrap_or_default();
            if let httparse::Status::Complete((head, length)) =
                httparse::parse_chunk_size(rest).map_err(|_| "an invalid chunk size")?
            {
                let end = head + usize::try_from(length)?;
                // A chunk ends with a line break of its own.
                if let Some(content) = rest.get(head..end).filter(|_| rest.len() >= end + 2) {
                    self.chunks.extend_from_slice(content);
                    at += end + 2;
                    if length == 0 {
                        return Ok(at);
                    }
                    continue;
                }
            }
            self.fill().await?;
        }
    }

    /// Sends a request and reads the response head: its status, its size, and the size of the body.
    async fn begin(&mut self, request: &[u8]) -> Result<(u16, usize, Option<usize>), Failure> {
        // The previous response is dropped only now, because the caller may still have borrowed it.
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.stream.write_all(request).await?;
        self.stream.flush().await?;
        loop {
            // Parsed from the beginning each time: heads are short and mostly arrive at once.
            let mut headers = [httparse::EMPTY_HEADER; 32];
            let mut answer = httparse::Response::new(&mut headers);
            if let httparse::Status::Complete(head) = answer.parse(&self.buffer)? {
                let length = answer
                    .headers
                    .iter()
                    .find(|h| h.name.eq_ignore_ascii_case("content-length"));
                let length = length.map(|h| std::str::from_utf8(h.value)).transpose()?;
                let length = length.map(str::parse).transpose()?;
                return Ok((answer.code.unwrap_or(0), head, length));
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> Result<(), Failure> {
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err("the server closed the connection".into()),
            _ => Ok(()),
        }
    }

    /// Starts a watch.
    pub async fn watch(mut self, request: &[u8]) -> Result<Events, Failure> {
        let (status, head, _) = self.begin(request).await?;
        if status != 200 {
            return Err(format!("the watch answered {status}").into());
        }
        self.buffer.drain(..head);
        Ok(Events {
            client: self,
            lines: Vec::new(),
        })
    }
}

/// The events of a watch, line by line.
pub struct Events {
    client: Client,
    /// The content of chunks, from the last complete line on.
    lines: Vec<u8>,
}

impl Events {
    /// The line of the next event.
    pub async fn next(&mut self) -> Result<Vec<u8>, Failure> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.lines) {
                return Ok(self.lines.drain(..=end).collect());
            }
            while !self.chunk()? {
                self.client.fill().await?;
            }
        }
    }

    /// Takes one chunk from the buffer, if it is complete.
    fn chunk(&mut self) -> Result<bool, Failure> {
        let buffer = &mut self.client.buffer;
        let Ok(httparse::Status::Complete((head, length))) = httparse::parse_chunk_size(buffer) else {
            return Ok(false);
        };
        let end = head + usize::try_from(length)?;
        let Some(content) = buffer.get(head..end).filter(|_| buffer.len() >= end + 2) else {
            return Ok(false);
        };
        if content.is_empty() {
            return Err("the server ended the watch".into());
        }
        self.lines.extend_from_slice(content);
        buffer.drain(..end + 2);
        Ok(true)
    }
}
