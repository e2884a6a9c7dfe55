//! The in-memory cache from which every engine serves reads and watches: the current state and the recent events.
//!
//! A writer publishes a batch of durable writes; readers clone the current snapshot, which is a pointer. Watches have
//! no queues of their own: each is a position in a shared ring of events. An event costs one allocation however many
//! watches see it, and a slow watch costs nothing. A watch ends once the ring has moved past its position.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use crate::history::{History, HistoryLimits};
use crate::state::Snapshot;
use crate::watch::{Watch, WatchPosition};
use crate::{Entry, Event, ListRequest, Page, ReadAt, Revision, StoreError};

/// The number of past states kept for paged lists.
const PINNED_SNAPSHOTS: usize = 16;

/// The maximum number of writes published under one lock, while readers wait.
const PUBLISHED_EVENTS: usize = 64;

/// The maximum number of events that a watch takes under one lock.
const PULL_EVENTS: usize = 256;

#[derive(Debug)]
pub(crate) struct Cache {
    inner: RwLock<CacheState>,
    /// States of unfinished paged lists. They could be rebuilt from the history, but that costs more than a
    /// page.
    pinned: Mutex<VecDeque<Snapshot>>,
    /// The current revision, for readers that wait for one.
    revision: watch::Sender<Revision>,
}

#[derive(Debug)]
struct CacheState {
    current: Snapshot,
    history: History,
    /// Set once the cache is closed: the error that ends all watches.
    closed: Option<StoreError>,
}

impl Cache {
    /// Creates a cache from a state and the events that led to it, oldest first; `compacted` is the revision
    /// before the first event.
    pub(crate) fn new(
        current: Snapshot,
        events: Vec<Arc<Event>>,
        compacted: Revision,
        limits: HistoryLimits,
    ) -> Self {
        let now = Instant::now();
        let mut history = History::new(limits, compacted);
        for event in events {
            history.push(event, now);
        }
        history.trim(now);
        let revision = watch::Sender::new(current.revision);
        let inner = RwLock::new(CacheState {
            current,
            history,
            closed: None,
        });
        Self {
            inner,
            pinned: Mutex::new(VecDeque::new()),
            revision,
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.inner.read().current.clone()
    }

    /// Returns the current entry of a key.
    pub(crate) fn get(&self, key: &str) -> Option<Arc<Entry>> {
        self.inner.read().current.get(key)
    }

    pub(crate) fn revision(&self) -> Revision {
        *self.revision.borrow()
    }

    /// The newest compacted revision.
    pub(crate) fn compacted(&self) -> Revision {
        self.inner.read().history.compacted()
    }

    /// Applies events to the state and wakes the watches.
    ///
    /// The state is changed in place, because copying it would cost more than the rest of a write. A large
    /// batch is published in parts, so that readers do not wait for all of it; the events of one revision are
    /// published together.
    pub(crate) fn publish(&self, events: &[Arc<Event>]) {
        let Some(last) = events.last() else { return };
        let now = Instant::now();
        let mut parts = events
            .chunk_by(|one, next| one.revision == next.revision)
            .peekable();
        let mut compacted = 0;
        while parts.peek().is_some() {
            let mut inner = self.inner.write();
            let mut published = 0;
            while published < PUBLISHED_EVENTS
                && let Some(part) = parts.next()
            {
                for event in part {
                    inner.current.apply(event);
                    inner.history.push(Arc::clone(event), now);
                }
                published += part.len();
            }
            inner.history.trim(now);
            compacted = inner.history.compacted();
        }
        self.unpin(compacted);
        // After the state: a reader that waits for the revision must find it.
        self.revision.send_replace(last.revision);
        // Under a read lock only, so that readers and woken watches can proceed.
        self.inner.read().history.wake(events);
    }

    /// Advances the revision without an event.
    pub(crate) fn advance(&self, revision: Revision) {
        {
            let mut inner = self.inner.write();
            // A delayed notification must not move the revision back.
            if revision <= inner.current.revision {
                return;
            }
            inner.current.revision = revision;
        }
        self.revision.send_replace(revision);
    }

    /// Drops expired history. Returns the compacted revision.
    pub(crate) fn trim(&self) -> Revision {
        let compacted = {
            let mut inner = self.inner.write();
            inner.history.trim(Instant::now());
            inner.history.compacted()
        };
        self.unpin(compacted);
        compacted
    }

    /// Checks that the state right after a revision can be reconstructed.
    pub(crate) fn check(&self, revision: Revision) -> Result<(), StoreError> {
        self.inner.read().check(revision)
    }

    pub(crate) fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        {
            let mut inner = self.inner.write();
            inner.check(revision)?;
            inner.history.compact(revision);
        }
        self.unpin(revision);
        Ok(())
    }

    /// Replaces the state after a gap in the events. All watches end, because they cannot continue.
    pub(crate) fn restart(&self, next: Snapshot) {
        let revision = next.revision;
        {
            let mut inner = self.inner.write();
            inner.current = next;
            inner.history.restart(revision);
            // A woken watch notices the gap in its sequence numbers and ends.
            inner.history.wake_all();
        }
        self.unpin(revision);
        self.revision.send_replace(revision);
    }

    /// Ends all watches and rejects new ones.
    pub(crate) fn close(&self, reason: StoreError) {
        let mut inner = self.inner.write();
        inner.closed = Some(reason);
        inner.history.wake_all();
    }

    fn unpin(&self, compacted: Revision) {
        self.pinned
            .lock()
            .retain(|snapshot| snapshot.revision >= compacted);
    }

    /// Returns the state that a read refers to.
    pub(crate) fn read(&self, at: ReadAt) -> Result<Snapshot, StoreError> {
        let requested = match at {
            ReadAt::Latest => return Ok(self.snapshot()),
            ReadAt::AtLeast(requested) => {
                let snapshot = self.snapshot();
                let current = snapshot.revision;
                return if requested <= current {
                    Ok(snapshot)
                } else {
                    Err(StoreError::FutureRevision { requested, current })
                };
            }
            ReadAt::Exact(requested) => requested,
        };
        let pinned = self
            .pinned
            .lock()
            .iter()
            .find(|snapshot| snapshot.revision == requested)
            .cloned();
        let inner = self.inner.read();
        // Checked for a pinned state, too, so that a compaction applies to every read.
        inner.check(requested)?;
        if let Some(snapshot) = pinned {
            return Ok(snapshot);
        }
        // The cost grows with the events since the revision, which is why paged lists pin their state.
        let mut snapshot = inner.current.clone();
        for event in inner.history.newest_first(requested) {
            snapshot.revert(event);
        }
        snapshot.revision = requested;
        Ok(snapshot)
    }

    pub(crate) fn list(&self, request: &ListRequest) -> Result<Page, StoreError> {
        let snapshot = self.read(request.at)?;
        let page = snapshot.list(request);
        // Only an unfinished list reads this revision again.
        if page.remaining > 0 {
            self.pin(snapshot);
        }
        Ok(page)
    }

    fn pin(&self, snapshot: Snapshot) {
        let mut pinned = self.pinned.lock();
        if let Some(at) = pinned
            .iter()
            .position(|other| other.revision == snapshot.revision)
        {
            // Moved to the back, because the front is evicted first.
            pinned.remove(at);
        } else if pinned.len() >= PINNED_SNAPSHOTS {
            pinned.pop_front();
        }
        pinned.push_back(snapshot);
    }

    /// Waits until the cache has reached a revision.
    pub(crate) async fn wait_for(&self, requested: Revision, timeout: Duration) -> Result<(), StoreError> {
        let mut revision = self.revision.subscribe();
        match tokio::time::timeout(timeout, revision.wait_for(|current| *current >= requested)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(StoreError::FutureRevision {
                requested,
                current: self.revision(),
            }),
        }
    }

    pub(crate) fn watch(self: &Arc<Self>, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        let topic = History::topic_of_prefix(prefix);
        // One lock for the check and the subscription, so that nothing is compacted in between.
        let mut inner = self.inner.write();
        inner.check(after)?;
        let (ring, wake) = inner.history.subscribe(topic.as_ref());
        let position = WatchPosition {
            topic,
            next: ring.position_after(after),
            seen: after,
        };
        Ok(Watch::new(Arc::clone(self), prefix, position, wake))
    }

    /// Unsubscribes a dropped watch.
    pub(crate) fn unwatch(&self, position: &WatchPosition) {
        if let Some(topic) = &position.topic {
            self.inner.write().history.unsubscribe(topic);
        }
    }

    /// Takes events for a watch: advances its position and buffers the events that match the prefix.
    pub(crate) fn pull(
        &self,
        prefix: &str,
        position: &mut WatchPosition,
        buffer: &mut VecDeque<Arc<Event>>,
    ) -> Result<(), StoreError> {
        let inner = self.inner.read();
        let ring = inner.history.ring(position.topic.as_ref());
        let Some(events) = ring.and_then(|ring| ring.from(position.next)) else {
            let oldest = inner.history.compacted();
            return Err(StoreError::Compacted {
                requested: position.seen,
                oldest,
            });
        };
        let mut taken = 0;
        let mut last = None;
        for event in events {
            // A revision is never split, because the progress of a watch is a revision.
            if taken >= PULL_EVENTS && last != Some(event.revision) {
                break;
            }
            taken += 1;
            last = Some(event.revision);
            if event.key().starts_with(prefix) {
                buffer.push_back(Arc::clone(event));
            }
        }
        position.next += taken as u64;
        position.seen = match last {
            Some(revision) if taken >= PULL_EVENTS => revision,
            // Fewer events than the limit: everything up to the current revision has been read.
            _ => inner.current.revision,
        };
        // Events published before the cache was closed are still delivered.
        match &inner.closed {
            Some(reason) if taken == 0 => Err(reason.clone()),
            _ => Ok(()),
        }
    }
}

impl CacheState {
    /// Checks that the state right after a revision can be reconstructed.
    fn check(&self, requested: Revision) -> Result<(), StoreError> {
        let current = self.current.revision;
        let oldest = self.history.compacted();
        if requested > current {
            Err(StoreError::FutureRevision { requested, current })
        } else if requested < oldest {
            Err(StoreError::Compacted { requested, oldest })
        } else {
            Ok(())
        }
    }
}
