//! How a server is set up: values, no flags and no environment.

use crate::codec::media::{Encoding, Encodings};
use hyper::header::HeaderValue;
use scantling_schema::definition::Gates;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

/// Everything that decides how a server behaves. [`Config::default`] listens on a free loopback port.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on.
    pub bind_address: IpAddr,
    /// The port to listen on; 0 takes a free one.
    pub secure_port: u16,
    /// Where the server's own certificate is kept; without it, one is made for this run alone.
    pub certificate_dir: Option<PathBuf>,
    /// A certificate (chain) in PEM instead of one of the server's own.
    pub tls_cert_file: Option<PathBuf>,
    /// Its key.
    pub tls_private_key_file: Option<PathBuf>,
    /// The authority whose client certificates are accepted.
    pub client_ca_file: Option<PathBuf>,
    /// A file of `token,user,uid,"groups"` lines.
    pub token_auth_file: Option<PathBuf>,
    /// The administrator's token; without it, a random one.
    pub admin_token: Option<Token>,
    /// Whether requests without a credential are those of `system:anonymous`; without it, they are refused.
    pub anonymous_auth: bool,
    /// The rights of users.
    pub authorization_mode: AuthorizationMode,
    /// How many requests are worked on at once; watches do not count.
    pub max_requests_inflight: usize,
    /// How long a request may take.
    pub request_timeout: Duration,
    /// How long a watch lasts at least whose client does not say; it may last twice that.
    pub min_request_timeout: Duration,
    /// What clients are told about the use of TLS (`max-age=31536000`); if nothing, there is no such header.
    pub strict_transport_security_directives: Vec<String>,
    /// Where keys begin in the store.
    pub etcd_prefix: String,
    /// Feature gates that are not at their default.
    pub feature_gates: BTreeMap<String, bool>,
    /// Whether only the built-in kinds are served that controllers of custom resources cannot do without.
    pub crds_only: bool,
    /// The time that running requests get to end after a stop.
    pub shutdown_grace_period: Duration,
    /// Limits on connections and on memory held for clients.
    pub connections: ConnectionLimits,
}

/// Limits on connections and on memory held for clients. They apply before authentication.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// The most open connections; without it, what the limit on open files allows.
    pub max_connections: Option<usize>,
    /// The most open connections of one client address; without it, half of all.
    pub max_connections_per_client: Option<usize>,
    /// The time limit of a TLS handshake.
    pub handshake_timeout: Duration,
    /// The time limit for the first request of a connection, and for the head of any HTTP/1 request.
    pub read_header_timeout: Duration,
    /// The time after which a connection without a request is closed.
    pub idle_timeout: Duration,
    /// The time after which a client is cut off that reads nothing.
    pub write_timeout: Duration,
    /// The most requests at once on an HTTP/2 connection.
    pub http2_max_streams: u32,
    /// The memory for bodies of requests and responses of all clients together, in bytes.
    pub max_buffered_bytes: usize,
}

impl Default for ConnectionLimits {
    /// The times are those of kube-apiserver, where it has one.
    fn default() -> Self {
        ConnectionLimits {
            max_connections: None,
            max_connections_per_client: None,
            handshake_timeout: Duration::from_secs(10),
            read_header_timeout: Duration::from_secs(32),
            idle_timeout: Duration::from_secs(90),
            write_timeout: Duration::from_secs(30),
            http2_max_streams: 100,
            max_buffered_bytes: 256 << 20,
        }
    }
}

/// A secret that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(pub String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// The rights of users. Members of `system:masters` may do everything, and only they may impersonate others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthorizationMode {
    /// Everything, for users that showed a credential; others may ask for the version and the health of the server.
    AlwaysAllow,
    /// Nothing.
    AlwaysDeny,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            bind_address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            secure_port: 0,
            certificate_dir: None,
            tls_cert_file: None,
            tls_private_key_file: None,
            client_ca_file: None,
            token_auth_file: None,
            admin_token: None,
            anonymous_auth: true,
            authorization_mode: AuthorizationMode::AlwaysAllow,
            max_requests_inflight: 600,
            request_timeout: Duration::from_secs(60),
            min_request_timeout: Duration::from_secs(1800),
            strict_transport_security_directives: Vec::new(),
            etcd_prefix: "/registry".to_owned(),
            feature_gates: BTreeMap::new(),
            crds_only: false,
            shutdown_grace_period: Duration::from_secs(10),
            connections: ConnectionLimits::default(),
        }
    }
}

impl Config {
    /// The header that says how TLS is to be used, if there is anything to say.
    pub(crate) fn strict_transport_security(&self) -> Result<Option<HeaderValue>, String> {
        let directives = self.strict_transport_security_directives.join("; ");
        if directives.is_empty() {
            return Ok(None);
        }
        let header = HeaderValue::from_str(&directives);
        header.map(Some).map_err(|e| format!("{directives}: {e}"))
    }
}

/// The encodings of requests and responses.
pub(crate) fn encodings(gates: Gates) -> Encodings {
    match gates.cbor {
        true => Encoding::WITH_CBOR,
        false => Encoding::USUAL,
    }
}
