//! The write queue: group commit.
//!
//! Callers evaluate the conditions of their writes themselves, against the published state plus all pending writes,
//! and append to the open batch while the previous batch is being flushed. The writer only writes and flushes. If a
//! batch fails, all batches behind it fail with it, because their conditions were evaluated against its changes.
//!
//! Callers that were just answered are likely to write again at once. If the writer took the next batch immediately,
//! it would flush for the few late callers and make the others wait for another flush. It therefore waits for as many
//! requests as the last batch had, for at most half the time of a flush.
//!
//! A lone caller would wait for two threads to wake up: the writer, and then its own. If its thread may block, it takes
//! the writer lease and writes the batch itself.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::record::RecordBuilder;
use crate::cache::Cache;
use crate::state::evaluate_write;
use crate::{Event, Revision, StoreError, Write};

/// The maximum time that a batch waits for more requests.
const MAX_BATCH_DELAY: Duration = Duration::from_millis(2);
/// The time for which the writer spins when it expects several requests: sleeping and waking take about as
/// long.
const MAX_SPIN: Duration = Duration::from_micros(100);
/// A batch that has this many bytes takes no more requests.
const BATCH_BYTES: usize = 4 << 20;

/// The channel back to the caller.
pub(crate) type WriteReply<T> = oneshot::Sender<Result<T, StoreError>>;

#[derive(Debug)]
pub(crate) struct WriteQueue {
    /// The published state.
    cache: Arc<Cache>,
    pending: Mutex<PendingBatches>,
    /// The number of queued requests, readable without the lock.
    waiting: AtomicUsize,
    /// Wakes the writer once enough requests are waiting.
    ready: Condvar,
}

#[derive(Debug)]
struct PendingBatches {
    /// The revision after all queued requests.
    revision: Revision,
    /// The changes of the batch taken last.
    taken: LatestEvents,
    /// Batches that take no more requests, the oldest first.
    full: VecDeque<Batch>,
    /// The batch that takes requests.
    open: Batch,
    /// The number of requests that wake the writer; zero while it is awake.
    wake_threshold: usize,
    /// True while a caller holds the writer lease.
    leased: bool,
    closed: bool,
}

/// The way in which a caller waits for its write to become durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallerMode {
    /// It may take the writer lease.
    MayWrite,
    /// It must not block its thread.
    WaitOnly,
}

/// The right of a caller to write a batch in place of the writer thread. Dropping it gives the right back.
#[derive(Debug)]
pub(crate) struct WriterLease<'a> {
    queue: &'a WriteQueue,
}

impl Drop for WriterLease<'_> {
    fn drop(&mut self) {
        let mut pending = self.queue.pending.lock();
        pending.leased = false;
        // The batch was interrupted in an unknown state. Dropping the queued requests fails their callers.
        if std::thread::panicking() {
            pending.end();
        }
        // Requests that came in during the lease did not wake the writer.
        let awaited = pending.closed || self.queue.waiting.load(Ordering::Relaxed) > 0;
        drop(pending);
        self.queue.wake_writer(awaited);
    }
}

/// The last change of each key.
type LatestEvents = HashMap<Arc<str>, Arc<Event>>;

/// Requests that become durable with one flush.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) record: RecordBuilder,
    pub(crate) events: Vec<Arc<Event>>,
    changes: LatestEvents,
    /// The outcome of each write, to be sent once the record is durable.
    pub(crate) decided: Vec<(Result<Event, StoreError>, WriteReply<Event>)>,
    pub(crate) tasks: Vec<(MaintenanceTask, WriteReply<()>)>,
}

/// A task for the writer besides writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MaintenanceTask {
    /// Compacts history up to a revision.
    Compact(Revision),
    /// Appends an empty record to find out whether writes work.
    Probe,
}

impl Batch {
    fn new(expected: usize) -> Self {
        Self {
            record: RecordBuilder::events(expected),
            events: Vec::new(),
            changes: LatestEvents::new(),
            decided: Vec::new(),
            tasks: Vec::new(),
        }
    }

    pub(crate) fn requests(&self) -> usize {
        self.decided.len() + self.tasks.len()
    }
}

/// Statistics of the last batch, as an estimate for the next one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BatchStats {
    /// The number of its requests.
    pub(crate) requests: usize,
    /// The number of consecutive batches with one request.
    pub(crate) alone: u32,
    /// Its size in bytes.
    pub(crate) bytes: usize,
    /// The moving average of the flush time.
    pub(crate) flush: Duration,
}

impl WriteQueue {
    /// Creates a queue for writes to a published state.
    pub(crate) fn new(cache: Arc<Cache>) -> Self {
        let pending = PendingBatches {
            revision: cache.revision(),
            taken: LatestEvents::new(),
            full: VecDeque::new(),
            open: Batch::new(0),
            wake_threshold: 0,
            leased: false,
            closed: false,
        };
        Self {
            cache,
            pending: Mutex::new(pending),
            waiting: AtomicUsize::new(0),
            ready: Condvar::new(),
        }
    }

    /// Evaluates the condition of a write and queues the result; the reply is sent when it is durable. If the
    /// queue is closed, the reply is dropped. If the caller gets a lease, it must execute the batch that
    /// comes with it.
    pub(crate) fn write(
        &self,
        key: &str,
        write: &Write,
        caller: CallerMode,
        reply: WriteReply<Event>,
    ) -> Option<(WriterLease<'_>, Batch)> {
        let mut guard = self.pending.lock();
        let pending = &mut *guard;
        if pending.closed {
            return None;
        }
        // Pending changes take precedence until they are published.
        let current = match pending.change(key) {
            Some(event) => event.after().cloned(),
            None => self.cache.get(key),
        };
        // Evaluated under the lock, so that revisions follow the order of the queue.
        let outcome = evaluate_write(current, key, write, pending.revision + 1);
        let open = &mut pending.open;
        if let Ok(event) = &outcome {
            pending.revision = event.revision;
            open.record.add(event);
            let event = Arc::new(event.clone());
            open.changes.insert(Arc::clone(event.key()), Arc::clone(&event));
            open.events.push(event);
        }
        open.decided.push((outcome, reply));
        // A request is never split, so a batch may exceed the limit by one request.
        if open.record.len() >= BATCH_BYTES {
            let full = std::mem::replace(open, Batch::new(0));
            pending.full.push_back(full);
        }
        // A writer that waits for a single request is idle, so everything it wrote is published.
        let alone = pending.wake_threshold == 1 && self.waiting.load(Ordering::Relaxed) == 0;
        if caller == CallerMode::MayWrite
            && alone
            && !pending.leased
            && let Some(batch) = pending.next(0)
        {
            // The request is not counted as waiting, because the writer never takes this batch.
            pending.leased = true;
            return Some((WriterLease { queue: self }, batch));
        }
        let enough = self.count_and_should_wake(pending);
        drop(guard);
        self.wake_writer(enough);
        None
    }

    /// Submits a task for the writer.
    pub(crate) fn submit_task(&self, task: MaintenanceTask, reply: WriteReply<()>) {
        let mut pending = self.pending.lock();
        if pending.closed {
            return;
        }
        pending.open.tasks.push((task, reply));
        let enough = self.count_and_should_wake(&pending);
        drop(pending);
        self.wake_writer(enough);
    }

    /// Counts one more request. Returns whether to wake the writer.
    fn count_and_should_wake(&self, pending: &PendingBatches) -> bool {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed) + 1;
        pending.wake_threshold > 0 && waiting >= pending.wake_threshold && !pending.leased
    }

    fn wake_writer(&self, enough: bool) {
        if enough {
            self.ready.notify_one();
        }
    }

    /// Starts to consume the queue.
    pub(crate) fn serve(&self) -> QueueConsumer<'_> {
        QueueConsumer { queue: self }
    }

    /// Accepts no more requests. Queued requests are still executed.
    pub(crate) fn close(&self) {
        self.pending.lock().closed = true;
        self.ready.notify_one();
    }

    /// Takes all batches that build on a failed one, and resets the queue to the published state.
    pub(crate) fn take_failed(&self) -> Vec<Batch> {
        let mut pending = self.pending.lock();
        let mut failed = Vec::new();
        while let Some(batch) = pending.next(0) {
            failed.push(batch);
        }
        // Conditions of new writes must not see the changes of the failed batch.
        pending.taken = LatestEvents::new();
        pending.revision = self.cache.revision();
        self.waiting.store(0, Ordering::Relaxed);
        failed
    }
}

/// The consuming end of the queue. Dropping it, even in a panic, closes the queue and drops its requests, so
/// that no caller waits for a reply that never comes.
#[derive(Debug)]
pub(crate) struct QueueConsumer<'a> {
    queue: &'a WriteQueue,
}

impl Drop for QueueConsumer<'_> {
    fn drop(&mut self) {
        self.queue.pending.lock().end();
    }
}

impl QueueConsumer<'_> {
    /// Waits for the next batch. Returns `None` once the queue is closed and empty. The last batch must be published.
    pub(crate) fn take(&self, last: BatchStats) -> Option<Batch> {
        let WriteQueue {
            pending,
            waiting,
            ready,
            ..
        } = self.queue;
        // Relaxed, because the number only decides when to wake; the requests are protected by the lock.
        let count = || waiting.load(Ordering::Relaxed);
        // Requests that wait now were not in the last batch, so they add to the expected number.
        let wake_threshold = last.requests + count();
        let now = Instant::now();
        // Waiting longer than half a flush would cost more than the extra flush it saves.
        let deadline = now + (last.flush / 2).min(MAX_BATCH_DELAY);
        // Spins first: requests arrive within microseconds of the replies, sooner than a sleeping thread
        // wakes.
        let asleep = deadline.min(now + MAX_SPIN);
        while wake_threshold > 1 && count() < wake_threshold && Instant::now() < asleep {
            // On few cores, the callers we wait for need this core.
            std::thread::yield_now();
        }
        let mut pending = pending.lock();
        pending.wake_threshold = wake_threshold;
        while count() < wake_threshold && !pending.closed {
            if ready.wait_until(&mut pending, deadline).timed_out() {
                break;
            }
        }
        // From here on, one request suffices. The value also tells `write` that the writer is idle.
        pending.wake_threshold = 1;
        while pending.leased || (count() == 0 && !pending.closed) {
            ready.wait(&mut pending);
        }
        pending.wake_threshold = 0;
        let batch = pending.next(last.bytes)?;
        waiting.fetch_sub(batch.requests(), Ordering::Relaxed);
        Some(batch)
    }
}

impl PendingBatches {
    /// Closes the queue and drops its requests.
    fn end(&mut self) {
        self.closed = true;
        self.full.clear();
        self.open = Batch::new(0);
    }

    /// Returns the latest pending change of a key.
    fn change(&self, key: &str) -> Option<&Arc<Event>> {
        // The newest change of the key counts, so the batches are searched from the newest to the oldest.
        let full = self.full.iter().rev().map(|batch| &batch.changes);
        std::iter::once(&self.open.changes)
            .chain(full)
            .chain([&self.taken])
            .find_map(|changes| changes.get(key))
    }

    /// Takes the oldest batch. `expected` is the size to reserve for the next one.
    fn next(&mut self, expected: usize) -> Option<Batch> {
        let mut batch = match self.full.pop_front() {
            Some(full) => full,
            None if self.open.requests() == 0 => return None,
            None => std::mem::replace(&mut self.open, Batch::new(expected)),
        };
        // Conditions of new writes still need these changes until the batch is published.
        self.taken = std::mem::take(&mut batch.changes);
        Some(batch)
    }
}
