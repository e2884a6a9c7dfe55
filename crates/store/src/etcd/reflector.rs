//! The reflector: keeps the cache in step with etcd by list and watch.
//!
//! It lists the state at a recent revision and watches from there, so that the cache has history from the start.
//! Clients that watched another server, or this one before a restart, can resume. A broken watch is resumed at its
//! revision, with another member if necessary. Only if etcd has compacted that revision is the state listed again, and
//! then all watches end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::client::{EtcdClient, entry, from_wire, to_wire};
use super::wire::{
    EtcdEventType, RangeRequest, SortOrder, SortTarget, WatchCreateRequest, WatchEvent, WatchProgressRequest,
    WatchRequest, WatchRequestKind, WatchResponse,
};
use crate::cache::Cache;
use crate::state::Snapshot;
use crate::{EntryChange, Event, Revision, StoreError, key};

/// The entries per page of a list.
const PAGE_ENTRIES: i64 = 1000;
/// The timeout of a progress request. After it, another member is tried: this one may be alive, but readers
/// wait for it.
const PROGRESS_TIMEOUT: Duration = Duration::from_millis(1500);
/// The delay before a broken watch is resumed; it doubles.
const RETRY_DELAY: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Reflector {
    pub(crate) client: Arc<EtcdClient>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) prefix: String,
    /// Requests a progress notification.
    pub(crate) wanted: Arc<Notify>,
    pub(crate) progress: ProgressSupport,
}

/// The reliability of the cluster's progress notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgressSupport {
    Reliable,
    /// Before 3.4.25 and 3.5.8, etcd could send one before the events that precede it.
    Unreliable,
}

impl ProgressSupport {
    pub(crate) fn from_version(version: &str) -> Self {
        let mut parts = version
            .split(['.', '-'])
            .map_while(|part| part.parse::<u64>().ok());
        let version = (
            parts.next().unwrap_or(0),
            parts.next().unwrap_or(0),
            parts.next().unwrap_or(0),
        );
        match version {
            (3, 4, patch) if patch >= 25 => Self::Reliable,
            (3, 5, patch) if patch >= 8 => Self::Reliable,
            version if version >= (3, 6, 0) => Self::Reliable,
            _ => Self::Unreliable,
        }
    }
}

/// A range request for all keys with a prefix.
pub(crate) fn range(prefix: &str) -> RangeRequest {
    // A single NUL as the end means "to the end of all keys".
    let range_end = key::prefix_end(prefix).unwrap_or_else(|| vec![0]);
    RangeRequest {
        key: prefix.as_bytes().to_vec(),
        range_end,
        ..RangeRequest::default()
    }
}

/// Lists a prefix at a revision; zero means the latest.
pub(crate) async fn state(client: &EtcdClient, prefix: &str, at: Revision) -> Result<Snapshot, StoreError> {
    let mut snapshot = Snapshot {
        revision: at,
        ..Snapshot::empty()
    };
    let mut request = RangeRequest {
        limit: PAGE_ENTRIES,
        revision: to_wire(at),
        ..range(prefix)
    };
    loop {
        let page = client.range(request.clone()).await?;
        // All pages must show one state, so the later ones are read at the revision of the first.
        if snapshot.revision == 0 {
            snapshot.revision = page.header.map_or(0, |header| from_wire(header.revision));
            request.revision = to_wire(snapshot.revision);
        }
        if let Some(last) = page.kvs.last() {
            // A key with a NUL appended is the smallest key after it.
            request.key.clone_from(&last.key);
            request.key.push(0);
        }
        for entry in page.kvs.into_iter().filter_map(entry) {
            snapshot.entries.insert(Arc::clone(&entry.key), entry);
        }
        if !page.more {
            return Ok(snapshot);
        }
    }
}

/// Lists the initial state: at a revision `window` before the latest, or at a later one that etcd still has.
pub(crate) async fn begin(client: &EtcdClient, prefix: &str, window: u64) -> Result<Snapshot, StoreError> {
    let probe = |at: Revision| {
        let request = RangeRequest {
            revision: to_wire(at),
            count_only: true,
            ..range(prefix)
        };
        async move { client.range(request).await }
    };
    let newest = probe(0)
        .await?
        .header
        .map_or(1, |header| from_wire(header.revision));
    let mut oldest = newest.saturating_sub(window).max(1);
    let mut remembered = newest;
    // Each failed probe halves the distance to the newest revision, so few suffice. The result need not be the
    // oldest readable revision: any past one gives the cache some history.
    while oldest < remembered {
        match probe(oldest).await {
            Ok(_) => remembered = oldest,
            Err(StoreError::Compacted { .. }) => oldest = oldest + (remembered - oldest).div_ceil(2),
            Err(other) => return Err(other),
        }
    }
    match state(client, prefix, remembered).await {
        // The revision was compacted during the list.
        Err(StoreError::Compacted { .. }) => state(client, prefix, 0).await,
        other => other,
    }
}

/// The reason why a watch ended.
enum WatchEnd {
    Broken,
    Compacted,
}

impl Reflector {
    /// Runs for as long as the store lives.
    pub(crate) async fn run(self) {
        let mut pause = RETRY_DELAY;
        loop {
            let before = self.cache.revision();
            match self.follow().await {
                WatchEnd::Broken => self.client.skip_preferred(),
                WatchEnd::Compacted => {
                    // List until it succeeds.
                    match state(&self.client, &self.prefix, 0).await {
                        Ok(snapshot) => self.cache.restart(snapshot),
                        // Compacted while it was being listed; the next attempt lists a newer revision.
                        Err(StoreError::Compacted { .. }) => continue,
                        Err(_) => self.client.skip_preferred(),
                    }
                }
            }
            pause = if self.cache.revision() > before {
                RETRY_DELAY
            } else {
                (pause * 2).min(Duration::from_secs(2))
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Watches from the cache's revision on until the watch ends.
    async fn follow(&self) -> WatchEnd {
        let (requests, receiver) = mpsc::channel(16);
        let RangeRequest { key, range_end, .. } = range(&self.prefix);
        let create = WatchCreateRequest {
            key,
            range_end,
            start_revision: to_wire(self.cache.revision() + 1),
            progress_notify: true,
        };
        let create = WatchRequest {
            request: Some(WatchRequestKind::Create(create)),
        };
        if requests.send(create).await.is_err() {
            return WatchEnd::Broken;
        }
        let Ok(mut responses) = self.client.watch(receiver).await else {
            return WatchEnd::Broken;
        };
        let mut answer_by = None;
        loop {
            let overdue = async {
                match answer_by {
                    Some(time) => tokio::time::sleep_until(time).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                response = responses.message() => match response {
                    Ok(Some(response)) => {
                        // Any response proves that the member is alive.
                        answer_by = None;
                        if let Some(end) = self.handle_response(response) {
                            return end;
                        }
                    }
                    Ok(None) | Err(_) => return WatchEnd::Broken,
                },
                () = self.wanted.notified() => {
                    let ask = WatchRequestKind::Progress(WatchProgressRequest {});
                    // A full channel already holds such requests.
                    let _ = requests.try_send(WatchRequest { request: Some(ask) });
                    answer_by.get_or_insert_with(|| Instant::now() + PROGRESS_TIMEOUT);
                }
                () = overdue => return WatchEnd::Broken,
            }
        }
    }

    fn handle_response(&self, response: WatchResponse) -> Option<WatchEnd> {
        // etcd sets this if it has compacted the start revision of the watch.
        if response.compact_revision > 0 {
            return Some(WatchEnd::Compacted);
        }
        if response.canceled {
            return Some(WatchEnd::Broken);
        }
        if !response.events.is_empty() {
            self.publish(response.events);
        } else if !response.created && self.progress == ProgressSupport::Reliable {
            // A response without events is a progress notification. An unreliable one may precede its events, and
            // advancing would make `publish` skip them.
            self.cache
                .advance(response.header.map_or(0, |header| from_wire(header.revision)));
        }
        None
    }

    fn publish(&self, events: Vec<WatchEvent>) {
        let mut next = self.cache.snapshot();
        let known = next.revision;
        let mut published = Vec::with_capacity(events.len());
        for event in events {
            let deleted = event.kind == EtcdEventType::Delete as i32;
            let Some(new) = event.kv.and_then(entry) else {
                continue;
            };
            let at = new.mod_revision;
            // A resumed watch begins after the known revision; skip events if it does not.
            if at <= known {
                continue;
            }
            // The previous entry comes from the cache, so the watch need not request it from etcd.
            let change = match (next.get(&new.key), deleted) {
                (None, false) => EntryChange::Create { new },
                (Some(old), false) => EntryChange::Update { old, new },
                (Some(old), true) => EntryChange::Delete { old },
                (None, true) => continue,
            };
            let event = Event { revision: at, change };
            next.apply(&event);
            published.push(Arc::new(event));
        }
        // Without other owners, the snapshot is changed in place.
        drop(next);
        self.cache.publish(&published);
    }

    /// Reads a summary of the current state under a prefix.
    pub(crate) async fn state_summary(client: &EtcdClient, prefix: &str) -> Result<StateSummary, StoreError> {
        let request = RangeRequest {
            limit: 1,
            // One request returns both facts: `count` ignores the limit, and the first key is the newest one.
            sort_order: SortOrder::Descend as i32,
            sort_target: SortTarget::Mod as i32,
            keys_only: true,
            ..range(prefix)
        };
        let answer = client.range(request).await?;
        Ok(StateSummary {
            revision: answer.header.map_or(0, |header| from_wire(header.revision)),
            newest: answer.kvs.first().map_or(0, |kv| from_wire(kv.mod_revision)),
            count: from_wire(answer.count),
        })
    }
}

/// A summary of a state, cheap to read and compare.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateSummary {
    /// The revision of the state.
    pub(crate) revision: Revision,
    /// The newest revision of any key in it.
    newest: Revision,
    /// The number of keys.
    count: u64,
}

impl StateSummary {
    /// Returns whether the cache has this state. If the newest revision and the number of keys agree, the
    /// cache can only lack keys that were both created and deleted since.
    pub(crate) fn matches(&self, cache: &Cache) -> bool {
        let snapshot = cache.snapshot();
        snapshot.revision >= self.newest && snapshot.entries.len() as u64 == self.count
    }
}
