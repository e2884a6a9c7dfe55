//! Calls to an etcd cluster, whichever of its members answers.

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
use crate::{Entry, Revision, StoreError};

/// How long one member may take to answer before another is asked.
const ATTEMPT: Duration = Duration::from_secs(5);
/// The first pause between attempts; it doubles.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct Client {
    members: Vec<Channel>,
    /// The member that answered last.
    preferred: AtomicUsize,
    /// How long a call is tried.
    patience: Duration,
}

/// An answer, and whether an earlier attempt may have been carried out without our hearing of it.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    pub(crate) response: T,
    pub(crate) repeated: bool,
}

impl Client {
    pub(crate) fn new(config: &EtcdConfig) -> Result<Self, StoreError> {
        let member = |address: &String| -> Result<Channel, StoreError> {
            let invalid = |error: tonic::transport::Error| StoreError::Unavailable {
                detail: format!("etcd server `{address}` cannot be used: {}", chain(&error)),
            };
            let uri = if address.contains("://") {
                address.clone()
            } else {
                format!("http://{address}")
            };
            let secure = uri.starts_with("https://");
            let mut endpoint = Endpoint::from_shared(uri).map_err(invalid)?;
            if secure {
                endpoint = endpoint.tls_config(tls(config)).map_err(invalid)?;
            }
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
            patience: config.patience,
        })
    }

    fn member(&self, number: usize) -> Result<Grpc<Channel>, Status> {
        let channel = self.members.get(number % self.members.len().max(1));
        let channel = channel.ok_or_else(|| Status::unavailable("no etcd server was named"))?;
        // The limits are etcd's to set.
        Ok(Grpc::new(channel.clone())
            .max_decoding_message_size(usize::MAX)
            .max_encoding_message_size(usize::MAX))
    }

    /// Asks until one member answers. Every request that a store makes may be repeated: reads change nothing,
    /// and writes have conditions that their own success makes false.
    async fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<Answer<A>, Status>
    where
        Q: Message + Clone + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let deadline = Instant::now() + self.patience;
        let mut pause = PAUSE;
        let mut repeated = false;
        loop {
            let number = self.preferred.load(Ordering::Relaxed);
            let attempt = async {
                let mut member = self.member(number)?;
                member
                    .ready()
                    .await
                    .map_err(|error| Status::unavailable(chain(&error)))?;
                let codec = ProstCodec::<Q, A>::default();
                member
                    .unary(
                        Request::new(request.clone()),
                        PathAndQuery::from_static(path),
                        codec,
                    )
                    .await
            };
            let limit = ATTEMPT.min(deadline.saturating_duration_since(Instant::now()));
            let outcome = tokio::time::timeout(limit, attempt).await;
            let status = match outcome {
                Ok(Ok(response)) => {
                    return Ok(Answer {
                        response: response.into_inner(),
                        repeated,
                    });
                }
                Ok(Err(status)) if !is_transient(&status) => return Err(status),
                Ok(Err(status)) => status,
                Err(_) => Status::deadline_exceeded("no answer in time"),
            };
            repeated = true;
            self.turn_from(number);
            if Instant::now() + pause >= deadline {
                return Err(status);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// Asks another member next time, unless someone has turned away already.
    fn turn_from(&self, number: usize) {
        let _ = self.preferred.compare_exchange(
            number,
            number.wrapping_add(1),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
    }

    pub(crate) async fn range(&self, request: RangeRequest) -> Result<RangeResponse, StoreError> {
        let requested = revision(request.revision);
        let answer = self.call("/etcdserverpb.KV/Range", request).await;
        answer
            .map(|answer| answer.response)
            .map_err(|status| failure(&status, requested))
    }

    pub(crate) async fn transaction(&self, request: TxnRequest) -> Result<Answer<TxnResponse>, Status> {
        self.call("/etcdserverpb.KV/Txn", request).await
    }

    pub(crate) async fn compact(&self, at: Revision) -> Result<(), StoreError> {
        let request = CompactionRequest { revision: number(at) };
        let answer = self
            .call::<_, CompactionResponse>("/etcdserverpb.KV/Compact", request)
            .await;
        answer.map(drop).map_err(|status| failure(&status, at))
    }

    pub(crate) async fn version(&self) -> Result<String, StoreError> {
        let answer = self
            .call::<_, StatusResponse>("/etcdserverpb.Maintenance/Status", StatusRequest {})
            .await;
        answer
            .map(|answer| answer.response.version)
            .map_err(|status| failure(&status, 0))
    }

    /// Opens a stream of watches with the member that answers now. The stream ends when that member loses
    /// its leader, so that nobody waits for news from one that gets none.
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
            let mut request = Request::new(ReceiverStream::new(requests));
            request
                .metadata_mut()
                .insert("hasleader", MetadataValue::from_static("true"));
            let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
            let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
            member.streaming(request, path, codec).await
        };
        match tokio::time::timeout(ATTEMPT, open).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => {
                self.turn_from(number);
                Err(failure(&status, 0))
            }
            Err(_) => {
                self.turn_from(number);
                Err(failure(&Status::deadline_exceeded("no answer in time"), 0))
            }
        }
    }

    /// A stream has failed: the next one goes to another member.
    pub(crate) fn turn(&self) {
        self.turn_from(self.preferred.load(Ordering::Relaxed));
    }
}

fn tls(config: &EtcdConfig) -> ClientTlsConfig {
    let mut tls = ClientTlsConfig::new();
    if let Some(authority) = &config.ca_certificate {
        tls = tls.ca_certificate(Certificate::from_pem(authority));
    }
    if let Some((certificate, key)) = &config.client_identity {
        tls = tls.identity(Identity::from_pem(certificate, key));
    }
    tls
}

/// Whether another attempt, or another member, may do better.
fn is_transient(status: &Status) -> bool {
    match status.code() {
        Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded | Code::Aborted => true,
        Code::Unknown | Code::Internal => !status.message().starts_with("etcdserver: "),
        _ => false,
    }
}

/// What a refusal by etcd means to a store.
pub(crate) fn failure(status: &Status, requested: Revision) -> StoreError {
    let message = status.message();
    if message.contains("required revision has been compacted") {
        // etcd does not say what is left; the next revision is the least that can be.
        return StoreError::Compacted {
            requested,
            oldest: requested + 1,
        };
    }
    if message.contains("required revision is a future revision") {
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
    message.contains("request is too large") || message.contains("larger than max")
}

fn describe(status: &Status) -> String {
    match std::error::Error::source(status) {
        Some(source) => format!("{}: {}", status.message(), chain(source)),
        None if status.message().is_empty() => status.code().to_string(),
        None => status.message().to_owned(),
    }
}

/// An error with all that caused it: transport errors say nothing by themselves.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// etcd's revisions are signed and never negative.
pub(crate) fn revision(number: i64) -> Revision {
    u64::try_from(number).unwrap_or(0)
}

pub(crate) fn number(revision: Revision) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

/// An entry as etcd has it. Keys that are no text are none of ours.
pub(crate) fn entry(kv: KeyValue) -> Option<Arc<Entry>> {
    let key = String::from_utf8(kv.key).ok()?;
    Some(Arc::new(Entry {
        key: key.into(),
        value: Bytes::from(kv.value),
        create_revision: revision(kv.create_revision),
        mod_revision: revision(kv.mod_revision),
        version: revision(kv.version),
    }))
}
