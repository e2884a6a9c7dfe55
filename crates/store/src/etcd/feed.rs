//! The feed: keeps the cache in step with etcd.
//!
//! It begins with the state at a revision of the recent past and lets a watch bring it up to date, so that the
//! cache has history from the start, and a client that watched another server, or this one before it was
//! restarted, can go on. When the watch breaks, it is taken up where it was, with another member if need be;
//! only if etcd has forgotten what came in between is the state read anew, and then all watches end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::client::{Client, entry, number, revision};
use super::wire::{
    EventKind, RangeRequest, SortOrder, Target, WatchCreateRequest, WatchEvent, WatchProgressRequest,
    WatchRequest, WatchRequestKind, WatchResponse,
};
use crate::cache::Cache;
use crate::state::Snapshot;
use crate::{Change, Event, Revision, StoreError, key};

/// How many entries are read at once.
const PAGE: i64 = 1000;
/// How long a member may take to answer when it is asked how far it has come. One that takes longer may be
/// alive, and yet be of no use to those who wait.
const ANSWER: Duration = Duration::from_millis(1500);
/// The pause before a broken watch is taken up again; it doubles.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) client: Arc<Client>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) prefix: String,
    /// Someone wants to know how far etcd has come.
    pub(crate) wanted: Arc<Notify>,
    pub(crate) progress: Progress,
}

/// Whether the cluster can be believed when it says that nothing happened up to a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Believed,
    /// Before 3.4.25 and 3.5.8, etcd could say so before it had sent what did happen.
    Doubted,
}

impl Progress {
    pub(crate) fn of(version: &str) -> Self {
        let mut parts = version
            .split(['.', '-'])
            .map_while(|part| part.parse::<u64>().ok());
        let version = (
            parts.next().unwrap_or(0),
            parts.next().unwrap_or(0),
            parts.next().unwrap_or(0),
        );
        match version {
            (3, 4, patch) if patch >= 25 => Self::Believed,
            (3, 5, patch) if patch >= 8 => Self::Believed,
            version if version >= (3, 6, 0) => Self::Believed,
            _ => Self::Doubted,
        }
    }
}

/// All keys with a prefix.
pub(crate) fn range(prefix: &str) -> RangeRequest {
    // A single NUL as the end means "to the end of all keys".
    let range_end = key::prefix_end(prefix).unwrap_or_else(|| vec![0]);
    RangeRequest {
        key: prefix.as_bytes().to_vec(),
        range_end,
        ..RangeRequest::default()
    }
}

/// The state of a prefix at a revision; zero stands for now.
pub(crate) async fn state(client: &Client, prefix: &str, at: Revision) -> Result<Snapshot, StoreError> {
    let mut snapshot = Snapshot {
        revision: at,
        ..Snapshot::empty()
    };
    let mut request = RangeRequest {
        limit: PAGE,
        revision: number(at),
        ..range(prefix)
    };
    loop {
        let page = client.range(request.clone()).await?;
        if snapshot.revision == 0 {
            snapshot.revision = page.header.map_or(0, |header| revision(header.revision));
            request.revision = number(snapshot.revision);
        }
        if let Some(last) = page.kvs.last() {
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

/// The state to begin with: as many revisions ago as wanted, or as etcd remembers.
pub(crate) async fn begin(client: &Client, prefix: &str, window: u64) -> Result<Snapshot, StoreError> {
    let probe = |at: Revision| {
        let request = RangeRequest {
            revision: number(at),
            count_only: true,
            ..range(prefix)
        };
        async move { client.range(request).await }
    };
    let newest = probe(0)
        .await?
        .header
        .map_or(1, |header| revision(header.revision));
    let mut oldest = newest.saturating_sub(window).max(1);
    let mut remembered = newest;
    while oldest < remembered {
        match probe(oldest).await {
            Ok(_) => remembered = oldest,
            Err(StoreError::Compacted { .. }) => oldest = oldest + (remembered - oldest).div_ceil(2),
            Err(other) => return Err(other),
        }
    }
    match state(client, prefix, remembered).await {
        // It was compacted while it was read.
        Err(StoreError::Compacted { .. }) => state(client, prefix, 0).await,
        other => other,
    }
}

/// Why a watch has ended.
enum End {
    Broken,
    Compacted,
}

impl Feed {
    /// Works for as long as the store lives.
    pub(crate) async fn run(self) {
        let mut pause = PAUSE;
        loop {
            let before = self.cache.revision();
            match self.follow().await {
                End::Broken => self.client.turn(),
                End::Compacted => {
                    // Whatever happens, the state is read until it has been.
                    match state(&self.client, &self.prefix, 0).await {
                        Ok(snapshot) => self.cache.restart(snapshot),
                        Err(StoreError::Compacted { .. }) => continue,
                        Err(_) => self.client.turn(),
                    }
                }
            }
            pause = if self.cache.revision() > before {
                PAUSE
            } else {
                (pause * 2).min(Duration::from_secs(2))
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Takes the watch up after the cache's revision, and follows it until it ends.
    async fn follow(&self) -> End {
        let (requests, receiver) = mpsc::channel(16);
        let RangeRequest { key, range_end, .. } = range(&self.prefix);
        let create = WatchCreateRequest {
            key,
            range_end,
            start_revision: number(self.cache.revision() + 1),
            progress_notify: true,
        };
        let create = WatchRequest {
            request: Some(WatchRequestKind::Create(create)),
        };
        if requests.send(create).await.is_err() {
            return End::Broken;
        }
        let Ok(mut responses) = self.client.watch(receiver).await else {
            return End::Broken;
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
                        answer_by = None;
                        if let Some(end) = self.take(response) {
                            return end;
                        }
                    }
                    Ok(None) | Err(_) => return End::Broken,
                },
                () = self.wanted.notified() => {
                    let ask = WatchRequestKind::Progress(WatchProgressRequest {});
                    // A channel that is full holds such requests already.
                    let _ = requests.try_send(WatchRequest { request: Some(ask) });
                    answer_by.get_or_insert_with(|| Instant::now() + ANSWER);
                }
                () = overdue => return End::Broken,
            }
        }
    }

    fn take(&self, response: WatchResponse) -> Option<End> {
        if response.compact_revision > 0 {
            return Some(End::Compacted);
        }
        if response.canceled {
            return Some(End::Broken);
        }
        if !response.events.is_empty() {
            self.publish(response.events);
        } else if !response.created && self.progress == Progress::Believed {
            self.cache
                .advance(response.header.map_or(0, |header| revision(header.revision)));
        }
        None
    }

    fn publish(&self, events: Vec<WatchEvent>) {
        let mut next = self.cache.snapshot();
        let known = next.revision;
        let mut published = Vec::with_capacity(events.len());
        for event in events {
            let deleted = event.kind == EventKind::Delete as i32;
            let Some(new) = event.kv.and_then(entry) else {
                continue;
            };
            let at = new.mod_revision;
            // A watch that is taken up again begins after what is known; this is for one that does not.
            if at <= known {
                continue;
            }
            let change = match (next.get(&new.key), deleted) {
                (None, false) => Change::Create { new },
                (Some(old), false) => Change::Update { old, new },
                (Some(old), true) => Change::Delete { old },
                (None, true) => continue,
            };
            let event = Event { revision: at, change };
            next.redo(&event);
            published.push(Arc::new(event));
        }
        // Where nobody holds on to a state, it is changed in place.
        drop(next);
        self.cache.publish(&published);
    }

    /// What etcd has under a prefix now.
    pub(crate) async fn outline(client: &Client, prefix: &str) -> Result<Outline, StoreError> {
        let request = RangeRequest {
            limit: 1,
            sort_order: SortOrder::Descend as i32,
            sort_target: Target::Mod as i32,
            keys_only: true,
            ..range(prefix)
        };
        let answer = client.range(request).await?;
        Ok(Outline {
            revision: answer.header.map_or(0, |header| revision(header.revision)),
            newest: answer.kvs.first().map_or(0, |kv| revision(kv.mod_revision)),
            count: revision(answer.count),
        })
    }
}

/// What a state is recognized by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outline {
    /// The revision of the state.
    pub(crate) revision: Revision,
    /// The newest revision of any key in it.
    newest: Revision,
    /// How many keys it has.
    count: u64,
}

impl Outline {
    /// Whether a state of the cache is this one. If newest key and number agree, nothing but whole lives of keys can
    /// have passed in between.
    pub(crate) fn is_of(&self, cache: &Cache) -> bool {
        let snapshot = cache.snapshot();
        snapshot.revision >= self.newest && snapshot.entries.len() as u64 == self.count
    }
}
