//! The etcd engine: any number of servers share one cluster.
//!
//! Writes are transactions conditional on the revision of the key. Lists, watches and reads of the past come
//! from a cache, which a [reflector] keeps up to date by one watch of the whole prefix.

mod client;
mod compactor;
mod reflector;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use prost::Message;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use self::client::{EtcdClient, RetryPolicy, entry, failure, from_wire, is_too_large, to_wire};
use self::reflector::{ProgressSupport, Reflector};
use self::wire::{
    Compare, CompareTarget, CompareWith, DeleteRangeRequest, PutRequest, RangeRequest, RequestKind,
    RequestOp, ResponseKind, TxnRequest, TxnResponse,
};
use crate::cache::Cache;
use crate::state::{check_write, too_large};
use crate::{
    Entry, EntryChange, Event, HistoryLimits, KeySpace, ListRequest, Page, ReadAt, ReaderCache, Revision,
    Store, StoreError, Watch, Write, key,
};

/// The connection settings of an etcd cluster.
#[derive(Debug, Clone)]
pub struct EtcdConfig {
    /// The endpoints, as `http://host:port` or `https://host:port`. Without a scheme, `https` is used if
    /// certificates are given.
    pub servers: Vec<String>,
    /// The keys of the API. All of them are cached in memory.
    pub keys: KeySpace,
    /// The CA certificates of the members, in PEM; the system's if `None`.
    pub ca_certificate: Option<Vec<u8>>,
    /// The client certificate and its key, in PEM.
    pub client_identity: Option<(Vec<u8>, Vec<u8>)>,
    /// The history to keep for watches and for reads at older revisions.
    pub history: HistoryLimits,
    /// The timeout of a call, including retries.
    pub timeout: Duration,
    /// The time a read waits for a revision that this server has not seen yet.
    pub catch_up: Duration,
    /// The interval at which etcd is compacted, as kube-apiserver does it; `None` to never compact.
    pub compaction_interval: Option<Duration>,
}

impl EtcdConfig {
    /// The default settings for some endpoints.
    #[must_use]
    pub fn new(servers: Vec<String>) -> Self {
        Self {
            servers,
            keys: KeySpace::default(),
            ca_certificate: None,
            client_identity: None,
            history: HistoryLimits::default(),
            timeout: Duration::from_secs(10),
            catch_up: Duration::from_secs(3),
            compaction_interval: Some(Duration::from_secs(300)),
        }
    }
}

/// A [`Store`] in an etcd cluster.
#[derive(Debug)]
pub struct EtcdStore {
    client: Arc<EtcdClient>,
    cache: Arc<Cache>,
    prefix: String,
    wanted: Arc<Notify>,
    progress: ProgressSupport,
    catch_up: Duration,
    tasks: Vec<AbortHandle>,
}

impl EtcdStore {
    /// Connects to a cluster and reads its state. Background tasks run on the current runtime.
    pub async fn connect(config: EtcdConfig) -> Result<Self, StoreError> {
        let client = Arc::new(EtcdClient::new(&config)?);
        let progress = ProgressSupport::from_version(&client.version().await?);
        let prefix = config.keys.prefix();
        let begin = reflector::begin(&client, &prefix, config.history.events as u64).await?;
        let compacted = begin.revision;
        let cache = Arc::new(Cache::new(begin, Vec::new(), compacted, config.history));
        let wanted = Arc::new(Notify::new());
        let feed = Reflector {
            client: Arc::clone(&client),
            cache: Arc::clone(&cache),
            prefix: prefix.clone(),
            wanted: Arc::clone(&wanted),
            progress,
        };
        let mut tasks = vec![tokio::spawn(feed.run()).abort_handle()];
        if let Some(interval) = config.compaction_interval {
            let compactor = compactor::run(Arc::clone(&client), Arc::clone(&cache), interval);
            tasks.push(tokio::spawn(compactor).abort_handle());
        }
        let catch_up = config.catch_up;
        let store = Self {
            client,
            cache,
            prefix,
            wanted,
            progress,
            catch_up,
            tasks,
        };
        // The cache begins in the past, so that it has history, and must reach the present before it serves reads.
        store.catch_up(config.timeout).await?;
        Ok(store)
    }

    /// Waits until the cache holds every write acknowledged before this call.
    async fn catch_up(&self, timeout: Duration) -> Result<(), StoreError> {
        let deadline = Instant::now() + timeout;
        let mut pause = Duration::from_millis(1);
        let mut first_seen = None;
        loop {
            let caught_up = match self.progress {
                ProgressSupport::Reliable => {
                    // A linearizable read, so no write acknowledged before this call has a later revision.
                    let now = self.revision().await?;
                    if self.cache.revision() < now {
                        self.wanted.notify_one();
                    }
                    self.cache.wait_for(now, Duration::from_millis(100)).await.is_ok()
                }
                ProgressSupport::Unreliable => {
                    let now = Reflector::state_summary(&self.client, &self.prefix).await?;
                    // While other servers write, the current revision stays ahead of the cache; the first one
                    // seen does not.
                    let wanted = *first_seen.get_or_insert(now.revision);
                    let caught_up = self.cache.revision() >= wanted || now.matches(&self.cache);
                    if !caught_up {
                        self.wanted.notify_one();
                    }
                    caught_up
                }
            };
            if caught_up {
                return Ok(());
            }
            if Instant::now() + pause >= deadline {
                let detail = "etcd: this server could not catch up with the cluster in time".to_owned();
                return Err(StoreError::Unavailable { detail });
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }

    /// Waits until the cache has reached a revision.
    async fn wait_for(&self, requested: Revision) -> Result<(), StoreError> {
        if self.cache.revision() >= requested {
            return Ok(());
        }
        self.wanted.notify_one();
        self.cache.wait_for(requested, self.catch_up).await
    }

    /// Reads a key from etcd, at a revision or the latest.
    async fn fetch(&self, key: &str, at: Revision) -> Result<Option<Arc<Entry>>, StoreError> {
        let request = RangeRequest {
            key: key.as_bytes().to_vec(),
            revision: to_wire(at),
            ..RangeRequest::default()
        };
        Ok(self
            .client
            .range(request)
            .await?
            .kvs
            .into_iter()
            .next()
            .and_then(entry))
    }

    /// Turns "compacted" into `None`: etcd may still have a revision that the cache has dropped.
    fn unless_compacted<T>(&self, read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
        match read {
            Err(StoreError::Compacted { .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Returns the event of a transaction that succeeded.
    fn executed_event(key: &str, write: &Write, response: TxnResponse) -> Result<Event, StoreError> {
        let at = response.header.map_or(0, |header| from_wire(header.revision));
        let old = match response.responses.into_iter().next().and_then(|op| op.response) {
            Some(ResponseKind::Put(put)) => put.prev_kv.and_then(entry),
            Some(ResponseKind::DeleteRange(delete)) => delete.prev_kvs.into_iter().next().and_then(entry),
            _ => None,
        };
        let new = write.value().map(|value| {
            Arc::new(Entry {
                key: key.into(),
                value: value.clone(),
                create_revision: old.as_ref().map_or(at, |old| old.create_revision),
                mod_revision: at,
                version: old.as_ref().map_or(1, |old| old.version + 1),
                reader_cache: ReaderCache::default(),
            })
        });
        let change = match (old, new) {
            (None, Some(new)) => EntryChange::Create { new },
            (Some(old), Some(new)) => EntryChange::Update { old, new },
            (Some(old), None) => EntryChange::Delete { old },
            (None, None) => {
                let detail = format!("etcd: an answer about key `{key}` makes no sense");
                return Err(StoreError::Unavailable { detail });
            }
        };
        Ok(Event { revision: at, change })
    }

    /// Returns the error of a transaction whose condition failed.
    fn condition_error(key: &str, write: &Write, current: Option<Arc<Entry>>) -> StoreError {
        match (current, write) {
            (None, _) => StoreError::NotFound { key: key.to_owned() },
            (Some(current), Write::Create { .. }) => StoreError::AlreadyExists { current },
            (Some(current), Write::Update { expected, .. } | Write::Delete { expected }) => {
                StoreError::Conflict {
                    current,
                    expected: *expected,
                }
            }
        }
    }

    /// Finds the event of a write whose response was lost, if an attempt was executed: the key has the value
    /// that was to be written, and its previous revision is the expected one.
    async fn find_lost_write(&self, key: &str, write: &Write) -> Result<Option<Event>, StoreError> {
        // A missing key does not prove that a delete was executed: another client may have deleted it.
        let Some(new) = self.fetch(key, 0).await? else {
            return Ok(None);
        };
        if write.value() != Some(&new.value) {
            return Ok(None);
        }
        let revision = new.mod_revision;
        let change = match write {
            Write::Create { .. } if new.version == 1 => Some(EntryChange::Create { new }),
            Write::Update { expected, .. } => {
                // The state just before the write shows which revision it replaced.
                let old = self.fetch(key, revision - 1).await?;
                let old = old.filter(|old| old.mod_revision == *expected);
                old.map(|old| EntryChange::Update { old, new })
            }
            Write::Create { .. } | Write::Delete { .. } => None,
        };
        Ok(change.map(|change| Event { revision, change }))
    }
}

impl Drop for EtcdStore {
    fn drop(&mut self) {
        // The tasks own the client and the cache, so they would outlive the store.
        for task in &self.tasks {
            task.abort();
        }
        self.cache.close(StoreError::Unavailable {
            detail: "the store was shut down".to_owned(),
        });
    }
}

/// Builds the transaction of a write: if the key is as expected, execute the write, otherwise return the
/// current entry.
fn transaction(key: &str, write: &Write) -> TxnRequest {
    let key = key.as_bytes().to_vec();
    let expected = match write {
        // In etcd, a key that does not exist has revision 0.
        Write::Create { .. } => 0,
        Write::Update { expected, .. } | Write::Delete { expected } => *expected,
    };
    let operation = match write.value() {
        Some(value) => RequestKind::Put(PutRequest {
            key: key.clone(),
            value: value.bytes(),
            prev_kv: true,
        }),
        None => RequestKind::DeleteRange(DeleteRangeRequest {
            key: key.clone(),
            prev_kv: true,
        }),
    };
    let current = RequestKind::Range(RangeRequest {
        key: key.clone(),
        ..RangeRequest::default()
    });
    TxnRequest {
        compare: vec![Compare {
            target: CompareTarget::Mod as i32,
            key,
            with: Some(CompareWith::ModRevision(to_wire(expected))),
        }],
        success: vec![RequestOp {
            request: Some(operation),
        }],
        failure: vec![RequestOp {
            request: Some(current),
        }],
    }
}

/// The size of the request by which kube-apiserver would make this write. Its error message for too large
/// requests contains it.
pub(crate) fn request_bytes(key: &str, write: &Write) -> usize {
    let mut request = transaction(key, write);
    // kube-apiserver does not request the previous entry, and only its updates request the current one.
    for operation in &mut request.success {
        match &mut operation.request {
            Some(RequestKind::Put(put)) => put.prev_kv = false,
            Some(RequestKind::DeleteRange(delete)) => delete.prev_kv = false,
            _ => {}
        }
    }
    if let Write::Create { .. } = write {
        request.failure.clear();
    }
    request.encoded_len()
}

#[async_trait::async_trait]
impl Store for EtcdStore {
    async fn revision(&self) -> Result<Revision, StoreError> {
        // Only the header matters. A key that does not exist is the cheapest linearizable read.
        let request = RangeRequest {
            count_only: true,
            limit: 1,
            ..reflector::range(&self.prefix)
        };
        let request = RangeRequest {
            range_end: Vec::new(),
            ..request
        };
        Ok(self
            .client
            .range(request)
            .await?
            .header
            .map_or(0, |header| from_wire(header.revision)))
    }

    async fn get(&self, key: &str, at: ReadAt) -> Result<Option<Arc<Entry>>, StoreError> {
        key::check_key(key)?;
        match at {
            // The cache may lack a write that another server has acknowledged.
            ReadAt::Latest => self.fetch(key, 0).await,
            ReadAt::AtLeast(least) => {
                self.wait_for(least).await?;
                Ok(self.cache.read(at)?.get(key))
            }
            ReadAt::Exact(exact) => {
                self.wait_for(exact).await?;
                match self.unless_compacted(self.cache.read(at))? {
                    Some(snapshot) => Ok(snapshot.get(key)),
                    None => self.fetch(key, exact).await,
                }
            }
        }
    }

    async fn list(&self, request: ListRequest) -> Result<Page, StoreError> {
        match request.at {
            ReadAt::Latest => self.catch_up(self.catch_up).await?,
            ReadAt::AtLeast(revision) | ReadAt::Exact(revision) => self.wait_for(revision).await?,
        }
        match (self.unless_compacted(self.cache.list(&request))?, request.at) {
            (Some(page), _) => Ok(page),
            // etcd may still have a state that the cache has compacted.
            (None, ReadAt::Exact(exact)) => Ok(reflector::state(&self.client, &request.prefix, exact)
                .await?
                .list(&request)),
            // Only exact reads can find their revision compacted.
            (None, _) => Ok(self.cache.snapshot().list(&request)),
        }
    }

    async fn write(&self, key: &str, write: Write) -> Result<Event, StoreError> {
        check_write(key, &write)?;
        // In etcd, revision zero means that the key does not exist.
        if let Write::Update { expected: 0, .. } | Write::Delete { expected: 0 } = write {
            return Err(Self::condition_error(key, &write, self.fetch(key, 0).await?));
        }
        // Retrying an update or a delete is safe: its expected revision occurs once, so a second execution
        // fails. Retrying a create is not, if the key was deleted in between.
        let repeat = match write {
            Write::Create { .. } => RetryPolicy::Unsafe,
            Write::Update { .. } | Write::Delete { .. } => RetryPolicy::Safe,
        };
        let (in_doubt, error) = match self.client.transaction(transaction(key, &write), repeat).await {
            Ok(answer) if answer.response.succeeded => {
                return Self::executed_event(key, &write, answer.response);
            }
            Ok(answer) => {
                let response = answer.response.responses.into_iter().next();
                let current = match response.and_then(|op| op.response) {
                    Some(ResponseKind::Range(range)) => range.kvs.into_iter().next().and_then(entry),
                    _ => None,
                };
                (answer.in_doubt, Self::condition_error(key, &write, current))
            }
            Err(refusal) if is_too_large(&refusal.status) => (false, too_large(key, &write)),
            Err(refusal) => (refusal.in_doubt, failure(&refusal.status, 0)),
        };
        if !in_doubt {
            return Err(error);
        }
        if let Some(event) = self.find_lost_write(key, &write).await? {
            return Ok(event);
        }
        Err(StoreError::Unavailable {
            detail: format!("etcd: it is not known whether key `{key}` was written: {error}"),
        })
    }

    async fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.wait_for(after).await?;
        self.cache.watch(prefix, after)
    }

    async fn compact(&self, at: Revision) -> Result<(), StoreError> {
        self.wait_for(at).await?;
        self.cache.compact(at)?;
        match self.client.compact(at).await {
            // Another server compacted first.
            Err(StoreError::Compacted { .. }) => Ok(()),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected numbers are from kube-apiserver's error messages.
    #[test]
    fn request_size_equals_that_of_kube_apiserver() {
        let part = |name: &str, generation: u8| {
            let metadata = format!(
                r#"{{"creationTimestamp":"2026-11-16T04:16:43Z","generation":{generation},"name":"{name}","uid":"177121a3-bb21-4dcd-9977-61184d3d4240"}}"#
            );
            let note = "x".repeat(2_200_000);
            let object = format!(
                r#"{{"apiVersion":"example.com/v1","kind":"Part","metadata":{metadata},"spec":{{"note":"{note}","size":1}}}}"#
            );
            crate::MaybeCompressed::from(object + "\n")
        };
        let (create, update) = (
            Write::Create {
                value: part("p2200000", 1),
            },
            Write::Update {
                value: part("q", 2),
                expected: 259,
            },
        );
        let bytes = request_bytes("/registry/example.com/parts/p2200000", &create);
        assert_eq!(bytes, 2_200_305);
        assert_eq!(request_bytes("/registry/example.com/parts/q", &update), 2_200_320);
    }
}
