//! Calls to an etcd cluster, to any of its members.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::MetadataValue;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::EtcdConfig;
use super::wire::{
    CompactionRequest, CompactionResponse, KeyValue, RangeRequest, RangeResponse, StatusRequest,
    StatusResponse, TxnRequest, TxnResponse, WatchRequest, WatchResponse,
};
use crate::{Entry, MaybeCompressed, ReaderCache, Revision, StoreError};

/// The time after which a read is tried on another member.
const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// The same for writes. It is longer, because the outcome of an abandoned write is unknown.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// The error of a member that has no leader.
const NO_LEADER: &str = "etcdserver: no leader";
/// The error of a member that rejects a request unread.
const TOO_MANY_REQUESTS: &str = "etcdserver: too many requests";
/// The first pause between attempts; it doubles.
const RETRY_DELAY: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct EtcdClient {
    members: Vec<Channel>,
    /// The index of the member that answered last.
    preferred: AtomicUsize,
    /// The timeout of a call, including retries.
    timeout: Duration,
}

/// A response, and whether an earlier attempt may have been executed as well.
#[derive(Debug)]
pub(crate) struct RpcResponse<T> {
    pub(crate) response: T,
    pub(crate) in_doubt: bool,
}

/// The error of a call, and whether the request may have been executed nevertheless.
#[derive(Debug)]
pub(crate) struct RpcError {
    pub(crate) status: Status,
    pub(crate) in_doubt: bool,
}

/// The treatment of an attempt whose outcome is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryPolicy {
    /// Retry: a second execution has no effect.
    Safe,
    /// Do not retry: a second execution might undo the write of another client.
    Unsafe,
}

impl EtcdClient {
    pub(crate) fn new(config: &EtcdConfig) -> Result<Self, StoreError> {
        let member = |address: &String| -> Result<Channel, StoreError> {
            let invalid = |error: tonic::transport::Error| StoreError::Unavailable {
                detail: format!("etcd server `{address}` cannot be used: {}", chain(&error)),
            };
            let scheme = match config.ca_certificate.is_some() || config.client_identity.is_some() {
                true => "https",
                false => "http",
            };
            let uri = if address.contains("://") {
                address.clone()
            } else {
                format!("{scheme}://{address}")
            };
            let secure = uri.starts_with("https://");
            let mut endpoint = Endpoint::from_shared(uri).map_err(invalid)?;
            if secure {
                endpoint = endpoint.tls_config(tls(config)).map_err(invalid)?;
            }
            // Without keep-alive, an idle watch would never notice a member that vanished. The connection is lazy,
            // so that a member that is down does not keep the server from starting.
            Ok(endpoint
                .connect_timeout(Duration::from_secs(2))
                .http2_keep_alive_interval(Duration::from_secs(5))
                .keep_alive_timeout(Duration::from_secs(3))
                .keep_alive_while_idle(true)
                .tcp_nodelay(true)
                .connect_lazy())
        };
        let members = config.servers.iter().map(member).collect::<Result<Vec<_>, _>>()?;
        if members.is_empty() {
            return Err(StoreError::Unavailable {
                detail: "no etcd server was named".to_owned(),
            });
        }
        Ok(Self {
            members,
            preferred: AtomicUsize::new(0),
            timeout: config.timeout,
        })
    }

    fn member(&self, number: usize) -> Result<Grpc<Channel>, Status> {
        // `preferred` only counts up, so it is reduced to an index here.
        let channel = self.members.get(number % self.members.len().max(1));
        let channel = channel.ok_or_else(|| Status::unavailable("no etcd server was named"))?;
        // etcd enforces the message size limits.
        Ok(Grpc::new(channel.clone())
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX))
    }

    /// Calls one member once.
    async fn attempt<Q, A>(&self, number: usize, path: &'static str, request: Q) -> Result<A, RpcError>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let unsent = |status| RpcError {
            status,
            in_doubt: false,
        };
        let mut member = self.member(number).map_err(unsent)?;
        // Nothing is sent before the member is ready, so a failure up to here leaves no doubt.
        member
            .ready()
            .await
            .map_err(|error| unsent(Status::unavailable(chain(&error))))?;
        let codec = ProstCodec::<Q, A>::default();
        let answer = member
            .unary(with_leader(request), PathAndQuery::from_static(path), codec)
            .await;
        answer
            .map(tonic::Response::into_inner)
            .map_err(|status| RpcError {
                in_doubt: is_transient(&status) && !was_rejected_unread(&status),
                status,
            })
    }

    /// Calls members until one answers or the timeout expires.
    async fn call<Q, A>(
        &self,
        path: &'static str,
        request: Q,
        limit: Duration,
        repeat: RetryPolicy,
    ) -> Result<RpcResponse<A>, RpcError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let deadline = Instant::now() + self.timeout;
        let mut pause = RETRY_DELAY;
        let mut in_doubt = false;
        loop {
            let number = self.preferred.load(Ordering::Relaxed);
            let limit = limit.min(deadline.saturating_duration_since(Instant::now()));
            let attempt = self.attempt(number, path, request.clone());
            let refusal = match tokio::time::timeout(limit, attempt).await {
                Ok(Ok(response)) => return Ok(RpcResponse { response, in_doubt }),
                Ok(Err(refusal)) => refusal,
                // An attempt that timed out may still be executed.
                Err(_) => RpcError {
                    status: Status::deadline_exceeded("no answer in time"),
                    in_doubt: true,
                },
            };
            // A later error does not tell whether an earlier attempt was executed, so doubt persists.
            in_doubt |= refusal.in_doubt;
            let status = refusal.status;
            if !is_transient(&status) {
                return Err(RpcError { status, in_doubt });
            }
            self.skip_member(number);
            if Instant::now() + pause >= deadline || in_doubt && repeat == RetryPolicy::Unsafe {
                return Err(RpcError { status, in_doubt });
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// Prefers another member from now on, unless another task has already switched.
    fn skip_member(&self, number: usize) {
        // The number is only a hint: a stale one costs one attempt.
        let _ = self.preferred.compare_exchange(
            number,
            number.wrapping_add(1),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    /// Makes a call that may be retried and whose earlier attempts do not matter.
    async fn call_once_safe<Q, A>(
        &self,
        path: &'static str,
        request: Q,
        about: Revision,
    ) -> Result<A, StoreError>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        match self.call(path, request, READ_TIMEOUT, RetryPolicy::Safe).await {
            Ok(answer) => Ok(answer.response),
            Err(refusal) => Err(failure(&refusal.status, about)),
        }
    }

    pub(crate) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, StoreError> {
        let requested = from_wire(request.revision);
        self.call_once_safe("/etcdserverpb.KV/Range", request, requested)
            .await
    }

    pub(crate) async fn transaction(
        &self,
        request: TxnRequest,
        repeat: RetryPolicy,
    ) -> Result<RpcResponse<TxnResponse>, RpcError> {
        self.call("/etcdserverpb.KV/Txn", request, WRITE_TIMEOUT, repeat)
            .await
    }

    pub(crate) async fn compact(&self, at: Revision) -> Result<(), StoreError> {
        let request = CompactionRequest {
            revision: to_wire(at),
        };
        let done: Result<CompactionResponse, _> =
            self.call_once_safe("/etcdserverpb.KV/Compact", request, at).await;
        done.map(drop)
    }

    pub(crate) async fn version(&self) -> Result<String, StoreError> {
        let status: StatusResponse = self
            .call_once_safe("/etcdserverpb.Maintenance/Status", StatusRequest {}, 0)
            .await?;
        Ok(status.version)
    }

    /// Opens a watch stream to the preferred member. The stream ends when that member loses its leader,
    /// because it would not receive events any more.
    pub(crate) async fn watch(
        &self,
        requests: mpsc::Receiver<WatchRequest>,
    ) -> Result<Streaming<WatchResponse>, StoreError> {
        let number = self.preferred.load(Ordering::Relaxed);
        let open = async {
            let mut member = self.member(number)?;
            member
                .ready()
                .await
                .map_err(|error| Status::unavailable(chain(&error)))?;
            let request = with_leader(ReceiverStream::new(requests));
            let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
            let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
            member.streaming(request, path, codec).await
        };
        match tokio::time::timeout(READ_TIMEOUT, open).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => {
                self.skip_member(number);
                Err(failure(&status, 0))
            }
            Err(_) => {
                self.skip_member(number);
                Err(failure(&Status::deadline_exceeded("no answer in time"), 0))
            }
        }
    }

    /// Prefers another member after a failed stream.
    pub(crate) fn skip_preferred(&self) {
        self.skip_member(self.preferred.load(Ordering::Relaxed));
    }
}

/// Requests that a member without a leader fails immediately, instead of waiting for one.
fn with_leader<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request
        .metadata_mut()
        .insert("hasleader", MetadataValue::from_static("true"));
    request
}

fn tls(config: &EtcdConfig) -> ClientTlsConfig {
    let mut tls = match &config.ca_certificate {
        Some(authority) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority)),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    if let Some((certificate, key)) = &config.client_identity {
        tls = tls.identity(Identity::from_pem(certificate, key));
    }
    tls
}

/// Returns whether a retry, or another member, may succeed.
fn is_transient(status: &Status) -> bool {
    match status.code() {
        Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded | Code::Aborted => true,
        // etcd's own errors have this prefix and would recur; others come from the transport or a proxy.
        Code::Unknown | Code::Internal => !status.message().starts_with("etcdserver: "),
        Code::ResourceExhausted => status.message() == TOO_MANY_REQUESTS,
        _ => false,
    }
}

/// Returns whether a request without a response was certainly not executed.
fn was_rejected_unread(status: &Status) -> bool {
    [NO_LEADER, TOO_MANY_REQUESTS].contains(&status.message())
        || causes(status).any(<dyn std::error::Error>::is::<tonic::ConnectError>)
}

/// Converts an error of etcd.
pub(crate) fn failure(status: &Status, requested: Revision) -> StoreError {
    let message = status.message();
    // etcd has one gRPC code for both errors, so the text decides.
    if message.contains("required revision has been compacted") {
        // etcd does not report the oldest revision; the next one is a lower bound.
        return StoreError::Compacted {
            requested,
            oldest: requested + 1,
        };
    }
    if message.contains("required revision is a future revision") {
        // etcd does not report its current revision; this is an upper bound.
        return StoreError::FutureRevision {
            requested,
            current: requested.saturating_sub(1),
        };
    }
    StoreError::Unavailable {
        detail: format!("etcd: {}", describe(status)),
    }
}

pub(crate) fn is_too_large(status: &Status) -> bool {
    let message = status.message();
    // The first text is etcd's own limit; the second is that of its gRPC server, which rejects the message unread.
    message.contains("request is too large") || message.contains("larger than max")
}

fn describe(status: &Status) -> String {
    match std::error::Error::source(status) {
        Some(source) => format!("{}: {}", status.message(), chain(source)),
        None if status.message().is_empty() => status.code().to_string(),
        None => status.message().to_owned(),
    }
}

/// Formats an error with its causes: transport errors alone say nothing.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let texts: Vec<_> = std::iter::once(error)
        .chain(causes(error))
        .map(ToString::to_string)
        .collect();
    texts.join(": ")
}

/// Returns the chain of causes of an error.
fn causes<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(error.source(), |cause| cause.source())
}

/// Converts a revision of etcd, which is signed and never negative.
pub(crate) fn from_wire(number: i64) -> Revision {
    u64::try_from(number).unwrap_or(0)
}

pub(crate) fn to_wire(revision: Revision) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

/// Converts an entry of etcd. Skips keys that are not UTF-8, which are never ours.
pub(crate) fn entry(kv: KeyValue) -> Option<Arc<Entry>> {
    let key = String::from_utf8(kv.key).ok()?;
    Some(Arc::new(Entry {
        key: key.into(),
        value: MaybeCompressed::new(Bytes::from(kv.value)),
        create_revision: from_wire(kv.create_revision),
        mod_revision: from_wire(kv.mod_revision),
        version: from_wire(kv.version),
        reader_cache: ReaderCache::default(),
    }))
}
