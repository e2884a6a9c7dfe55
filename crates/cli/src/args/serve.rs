//! Flags of `scantling serve`.

use clap::{Arg, Args, ValueEnum};
use scantling_schema::gates;
use std::net::IpAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

// Every flag can also be set by an environment variable: `--data-dir` by `SCANTLING_DATA_DIR`.
#[derive(Args, Clone, Debug)]
#[command(mut_args(with_variable))]
pub(crate) struct Serve {
    /// The address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) bind_address: IpAddr,
    /// The port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 6443)]
    pub(crate) secure_port: u16,
    /// The directory of all data; by default `scantling` in the user's data directory
    #[arg(long, value_name = "DIR", conflicts_with = "in_memory")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Keep all data in memory only
    #[arg(long, conflicts_with = "etcd_servers")]
    pub(crate) in_memory: bool,
    /// The file to write the administrator's kubeconfig to
    #[arg(long, value_name = "FILE")]
    pub(crate) write_kubeconfig: Option<PathBuf>,
    /// A certificate (chain) in PEM; by default the server creates its own
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// The private key of that certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_private_key_file: Option<PathBuf>,
    /// The CA of accepted client certificates
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca_file: Option<PathBuf>,
    /// A file of `token,user,uid,"groups"` lines
    #[arg(long, value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,
    /// Serve requests without a credential as `system:anonymous`, which may only read the version and the
    /// health of the server; otherwise refuse them
    #[arg(long, action = clap::ArgAction::Set, default_value_t = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) anonymous_auth: bool,
    /// The rights of users with a credential; members of `system:masters` may do everything
    #[arg(long, value_enum, default_value_t = AuthorizationMode::AlwaysAllow)]
    pub(crate) authorization_mode: AuthorizationMode,
    /// The members of an etcd cluster to store data in, instead of the data directory
    #[arg(long, value_name = "URL,…", value_delimiter = ',')]
    pub(crate) etcd_servers: Vec<String>,
    /// The CA of etcd's certificates; by default those that the system trusts
    #[arg(long, value_name = "FILE", requires = "etcd_servers")]
    pub(crate) etcd_cafile: Option<PathBuf>,
    /// The client certificate for etcd
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    pub(crate) etcd_certfile: Option<PathBuf>,
    /// The key of that certificate
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    pub(crate) etcd_keyfile: Option<PathBuf>,
    /// The prefix of keys in the store
    #[arg(long, default_value = "/registry")]
    pub(crate) etcd_prefix: String,
    /// Feature gates: `Name=true,Name=false`
    #[arg(long, value_name = "NAME=BOOL,…", value_delimiter = ',', value_parser = gates::parse)]
    pub(crate) feature_gates: Vec<(String, bool)>,
    /// Serve only the built-in kinds that controllers of custom resources need
    #[arg(long)]
    pub(crate) crds_only: bool,
    /// Admission plugins to enable in addition to the default ones: `ServiceAccount,DenyServiceExternalIPs`
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) enable_admission_plugins: Vec<String>,
    /// Default admission plugins to disable
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) disable_admission_plugins: Vec<String>,
    /// The maximum number of concurrent requests, without watches
    #[arg(long, default_value_t = 600)]
    pub(crate) max_requests_inflight: usize,
    /// The timeout of a request: `60s`, `2m`
    #[arg(long, default_value = "60s", value_parser = duration)]
    pub(crate) request_timeout: Duration,
    /// The minimum duration in seconds of watches without a timeout; they last at most twice that
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "1800",
        value_parser = seconds,
        allow_negative_numbers = true
    )]
    pub(crate) min_request_timeout: Duration,
    /// The value of the `Strict-Transport-Security` header: `max-age=31536000,includeSubDomains,preload`
    #[arg(long, value_name = "DIRECTIVE,…", value_delimiter = ',', value_parser = directive)]
    pub(crate) strict_transport_security_directives: Vec<String>,
    /// The time to keep serving after a stop signal, while readiness fails: `5s`
    #[arg(long, default_value = "0s", value_parser = duration)]
    pub(crate) shutdown_delay_duration: Duration,
    /// The time that running requests have to finish when the server stops; then they are cancelled
    #[arg(long, default_value = "10s", value_parser = period)]
    pub(crate) shutdown_grace_period: Duration,
    /// The maximum number of open connections; by default what the limit on open files allows, at most 8192
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_connections: Option<NonZeroUsize>,
    /// The maximum number of open connections from one address; by default half of all
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_connections_per_client: Option<NonZeroUsize>,
    /// The maximum number of concurrent requests on an HTTP/2 connection
    #[arg(long, value_name = "NUMBER", default_value = "100")]
    pub(crate) http2_max_streams_per_connection: NonZeroU32,
    /// The time limit for the first request of a connection, and for the head of any HTTP/1 request
    #[arg(long, default_value = "32s", value_parser = timeout)]
    pub(crate) read_header_timeout: Duration,
    /// The time after which a connection without a request is closed
    #[arg(long, default_value = "90s", value_parser = timeout)]
    pub(crate) idle_timeout: Duration,
    /// The time after which a client that reads nothing of its response or watch is disconnected
    #[arg(long, default_value = "30s", value_parser = timeout)]
    pub(crate) write_timeout: Duration,
    /// The memory for request and response bodies of all clients together, in MiB
    #[arg(long, value_name = "MIB", default_value = "256")]
    pub(crate) max_buffered_mib: NonZeroU32,
    /// The format of log lines, which go to standard error
    #[arg(long, value_enum, default_value_t = LoggingFormat::Text)]
    pub(crate) logging_format: LoggingFormat,
    /// The verbosity of the log: 0 for errors, 2 for events, 3 for every request and connection
    #[arg(short = 'v', long = "v", value_name = "LEVEL", default_value_t = 2)]
    pub(crate) verbosity: u8,
}

/// Names the environment variable of a flag.
fn with_variable(flag: Arg) -> Arg {
    let name = flag.get_long().unwrap_or_default().replace('-', "_");
    flag.env(format!("SCANTLING_{}", name.to_ascii_uppercase()))
}

/// The permissions of authenticated users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum AuthorizationMode {
    /// Everything
    AlwaysAllow,
    /// Nothing
    AlwaysDeny,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoggingFormat {
    /// Human-readable text
    Text,
    /// A JSON object per line
    Json,
}

/// Reads a number of seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let number: i64 = text.parse().map_err(|_| format!("`{text}` is no whole number"))?;
    let number =
        u64::try_from(number).map_err(|_| "--min-request-timeout can not be negative value".to_owned())?;
    Ok(Duration::from_secs(number))
}

/// Reads a directive of the header `Strict-Transport-Security`.
fn directive(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("empty value in strict-transport-security-directives".to_owned());
    }
    let is_age = |(name, age): (&str, &str)| name == "max-age" && !age.contains('=');
    if !matches!(text, "includeSubDomains" | "preload") && !text.split_once('=').is_some_and(is_age) {
        return Err(
            "--strict-transport-security-directives invalid, allowed values: max-age=expireTime, includeSubDomains, \
             preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more information"
                .to_owned(),
        );
    }
    Ok(text.to_owned())
}

/// Reads a time to wait for, of at most a year.
fn period(text: &str) -> Result<Duration, String> {
    const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);
    duration(text).and_then(|d| match d {
        d if d > LONGEST => Err("it may not be longer than a year: 8760h".to_owned()),
        d => Ok(d),
    })
}

/// Parses a timeout.
fn timeout(text: &str) -> Result<Duration, String> {
    period(text).and_then(|d| match d {
        Duration::ZERO => Err("it has to be longer than 0s".to_owned()),
        d => Ok(d),
    })
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.strip_prefix(digits) {
        Some("s") => 1,
        Some("m") => 60,
        Some("h") => 3600,
        _ => return Err("a duration is written as 60s, 2m or 1h".to_owned()),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("`{digits}` is no whole number"))?;
    Ok(Duration::from_secs(number.saturating_mul(unit)))
}
