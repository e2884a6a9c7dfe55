//! The configuration of a server as values, without flags and environment.

use crate::codec::media::{Encoding, Encodings};
use hyper::header::HeaderValue;
use scantling_schema::definition::Gates;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

/// The configuration of a server. [`Config::default`] listens on a free loopback port.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on.
    pub bind_address: IpAddr,
    /// The port to listen on; 0 takes a free one.
    pub secure_port: u16,
    /// The directory of the server's generated certificate; without it, a new one is generated on each start.
    pub certificate_dir: Option<PathBuf>,
    /// A certificate (chain) in PEM, instead of a generated one.
    pub tls_cert_file: Option<PathBuf>,
    /// Its key.
    pub tls_private_key_file: Option<PathBuf>,
    /// The authority whose client certificates are accepted.
    pub client_ca_file: Option<PathBuf>,
    /// A file of `token,user,uid,"groups"` lines.
    pub token_auth_file: Option<PathBuf>,
    /// The administrator's token; without it, a random one.
    pub admin_token: Option<Token>,
    /// True if requests without a credential have the user `system:anonymous`; otherwise they are refused.
    pub anonymous_auth: bool,
    /// The rights of users.
    pub authorization_mode: AuthorizationMode,
    /// The maximum number of concurrent requests, not counting watches.
    pub max_requests_inflight: usize,
    /// The timeout of a request.
    pub request_timeout: Duration,
    /// The minimal duration of a watch without a timeout; the maximum is twice that.
    pub min_request_timeout: Duration,
    /// The directives of the `Strict-Transport-Security` header (`max-age=31536000`); none for no header.
    pub strict_transport_security_directives: Vec<String>,
    /// The prefix of all keys in the store.
    pub etcd_prefix: String,
    /// Feature gates that are not at their default.
    pub feature_gates: BTreeMap<String, bool>,
    /// True if to serve only the built-in kinds that controllers of custom resources need.
    pub crds_only: bool,
    /// True to empty terminating namespaces, which kube-apiserver leaves to kube-controller-manager.
    pub empty_namespaces: bool,
    /// Admission plugins to run in addition to those that run by default.
    pub enable_admission_plugins: Vec<String>,
    /// Admission plugins not to run although they run by default.
    pub disable_admission_plugins: Vec<String>,
    /// The time that running requests get to end after a stop.
    pub shutdown_grace_period: Duration,
    /// Limits on connections and on memory held for clients.
    pub connections: ConnectionLimits,
}

/// Limits on connections and on memory held for clients. They apply before authentication.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// The maximum number of open connections; without it, what the limit on open files allows.
    pub max_connections: Option<usize>,
    /// The maximum number of open connections per client address; without it, half of all.
    pub max_connections_per_client: Option<usize>,
    /// The time limit of a TLS handshake.
    pub handshake_timeout: Duration,
    /// The time limit for the first request of a connection, and for the head of any HTTP/1 request.
    pub read_header_timeout: Duration,
    /// The time after which a connection without a request is closed.
    pub idle_timeout: Duration,
    /// The time after which a client that does not read is disconnected.
    pub write_timeout: Duration,
    /// The maximum number of concurrent requests per HTTP/2 connection.
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
            // Go's clients close idle connections after as long by default.
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
            // The sum of kube-apiserver's limits for reads (400) and for writes (200).
            max_requests_inflight: 600,
            request_timeout: Duration::from_secs(60),
            min_request_timeout: Duration::from_secs(1800),
            strict_transport_security_directives: Vec::new(),
            etcd_prefix: "/registry".to_owned(),
            feature_gates: BTreeMap::new(),
            crds_only: false,
            empty_namespaces: true,
            enable_admission_plugins: Vec::new(),
            disable_admission_plugins: Vec::new(),
            shutdown_grace_period: Duration::from_secs(10),
            connections: ConnectionLimits::default(),
        }
    }
}

impl Config {
    /// The `Strict-Transport-Security` header, if it is configured.
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
