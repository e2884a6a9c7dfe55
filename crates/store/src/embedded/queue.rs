//! Writes on their way to the disk.
//!
//! Those who ask decide for themselves: a request is tried on what all requests before it lead to, which is the
//! published state and what is on its way, and what it changes is added to the record that is written next. So all
//! of that is done while the record before is being flushed, by whoever has time, and the writer only has to write.
//! If a record cannot be written, all that gathered behind it was decided in view of something that has not
//! happened, and fails with it.
//!
//! Those who were answered just now are likely to ask again at once. Were the writer to take what is there as soon as
//! it has answered, it would flush for the few that were late for the last flush, and the many would be late for that
//! one: two flushes where one is enough. So it waits for as many as there were lately, for a part of the time that a
//! flush takes.
//!
//! One who asks alone, while the writer sleeps, would wait for two threads to wake up: the writer, and then its own. If
//! it has a thread that may wait for the disk, it takes the writer's turn instead.

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

/// The longest that requests wait for company.
const MAX_BATCH_DELAY: Duration = Duration::from_millis(2);
/// How long the writer stays awake for several: to fall asleep and be woken takes about as long.
const MAX_SPIN: Duration = Duration::from_micros(100);
/// A batch that has this many bytes takes no more requests.
const BATCH_BYTES: usize = 4 << 20;

/// How an answer gets back to who waits for it.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

#[derive(Debug)]
pub(crate) struct WriteQueue {
    /// The published state.
    cache: Arc<Cache>,
    pending: Mutex<PendingBatches>,
    /// How many requests there are in it, for one who has no time to wait for the lock.
    waiting: AtomicUsize,
    /// Tells the writer that there are as many as it wants.
    ready: Condvar,
}

#[derive(Debug)]
struct PendingBatches {
    /// The revision that all requests lead to.
    revision: Revision,
    /// What the batch that was taken last changes.
    taken: LatestEvents,
    /// Batches that take no more requests, the oldest first.
    full: VecDeque<Batch>,
    /// The one that does.
    open: Batch,
    /// How many requests the writer sleeps for; zero while it is awake.
    wake_threshold: usize,
    /// Whether one who asked has taken the writer's turn.
    leased: bool,
    closed: bool,
}

/// What one who asks may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallerMode {
    /// It may take the writer's turn.
    MayWrite,
    /// Others need its thread.
    WaitOnly,
}

/// A turn of the writer that one who asked has taken. It lasts as long as this.
#[derive(Debug)]
pub(crate) struct WriterLease<'a> {
    queue: &'a WriteQueue,
}

impl Drop for WriterLease<'_> {
    fn drop(&mut self) {
        let mut pending = self.queue.pending.lock();
        pending.leased = false;
        if std::thread::panicking() {
            pending.end();
        }
        let awaited = pending.closed || self.queue.waiting.load(Ordering::Relaxed) > 0;
        drop(pending);
        self.queue.wake_writer(awaited);
    }
}

/// The last change of each key.
type LatestEvents = HashMap<Arc<str>, Arc<Event>>;

/// Requests that become durable together.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) record: RecordBuilder,
    pub(crate) events: Vec<Arc<Event>>,
    changes: LatestEvents,
    /// What became of each write, if the record can be written.
    pub(crate) decided: Vec<(Result<Event, StoreError>, Reply<Event>)>,
    pub(crate) tasks: Vec<(MaintenanceTask, Reply<()>)>,
}

/// Work for the writer besides writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MaintenanceTask {
    /// To forget history up to a revision.
    Compact(Revision),
    /// To append a record that changes nothing, in order to find out whether that works.
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

/// How the last batch went, which is what the next one is expected to be like.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BatchStats {
    /// How many requests it held.
    pub(crate) requests: usize,
    /// How many batches in a row held one.
    pub(crate) alone: u32,
    /// How many bytes it had.
    pub(crate) bytes: usize,
    /// How long a flush takes, on average of the last few.
    pub(crate) flush: Duration,
}

impl WriteQueue {
    /// A queue for writes to a published state.
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

    /// Decides about a write; the answer comes when what was decided is durable. If the queue is closed, nobody will
    /// answer. If there is a turn to take, the caller is to carry out the batch that comes with it.
    pub(crate) fn write(
        &self,
        key: &str,
        write: &Write,
        caller: CallerMode,
        reply: Reply<Event>,
    ) -> Option<(WriterLease<'_>, Batch)> {
        let mut guard = self.pending.lock();
        let pending = &mut *guard;
        if pending.closed {
            return None;
        }
        // What is on its way stays in sight until it is published, and is looked for first.
        let current = match pending.change(key) {
            Some(event) => event.after().cloned(),
            None => self.cache.get(key),
        };
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
        if open.record.len() >= BATCH_BYTES {
            let full = std::mem::replace(open, Batch::new(0));
            pending.full.push_back(full);
        }
        // A writer that wants one request sleeps, and what it has written is published.
        let alone = pending.wake_threshold == 1 && self.waiting.load(Ordering::Relaxed) == 0;
        if caller == CallerMode::MayWrite
            && alone
            && !pending.leased
            && let Some(batch) = pending.next(0)
        {
            pending.leased = true;
            return Some((WriterLease { queue: self }, batch));
        }
        let enough = self.count(pending);
        drop(guard);
        self.wake_writer(enough);
        None
    }

    /// Asks for something besides writes.
    pub(crate) fn submit_task(&self, task: MaintenanceTask, reply: Reply<()>) {
        let mut pending = self.pending.lock();
        if pending.closed {
            return;
        }
        pending.open.tasks.push((task, reply));
        let enough = self.count(&pending);
        drop(pending);
        self.wake_writer(enough);
    }

    /// Counts one more request. Answers with whether the writer is to be woken.
    fn count(&self, pending: &PendingBatches) -> bool {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed) + 1;
        pending.wake_threshold > 0 && waiting >= pending.wake_threshold && !pending.leased
    }

    fn wake_writer(&self, enough: bool) {
        if enough {
            self.ready.notify_one();
        }
    }

    /// Begins to serve the queue.
    pub(crate) fn serve(&self) -> QueueConsumer<'_> {
        QueueConsumer { queue: self }
    }

    /// Lets no more requests in. Those that are there are still taken.
    pub(crate) fn close(&self) {
        self.pending.lock().closed = true;
        self.ready.notify_one();
    }

    /// Takes everything that was decided in view of what has not happened, and goes back to the state that is.
    pub(crate) fn take_failed(&self) -> Vec<Batch> {
        let mut pending = self.pending.lock();
        let mut failed = Vec::new();
        while let Some(batch) = pending.next(0) {
            failed.push(batch);
        }
        pending.taken = LatestEvents::new();
        pending.revision = self.cache.revision();
        self.waiting.store(0, Ordering::Relaxed);
        failed
    }
}

/// The one who takes requests. When it goes, however it goes, the queue is closed and what is in it is dropped,
/// so that nobody waits for an answer that will not come.
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
    /// Takes a batch, once there is one; nothing if there will be none. By then, the last one is published.
    pub(crate) fn take(&self, last: BatchStats) -> Option<Batch> {
        let WriteQueue {
            pending,
            waiting,
            ready,
            ..
        } = self.queue;
        let count = || waiting.load(Ordering::Relaxed);
        // Whoever waits by now was not in the last batch.
        let wake_threshold = last.requests + count();
        let now = Instant::now();
        let deadline = now + (last.flush / 2).min(MAX_BATCH_DELAY);
        let asleep = deadline.min(now + MAX_SPIN);
        while wake_threshold > 1 && count() < wake_threshold && Instant::now() < asleep {
            // Where there are few cores, those who are waited for need this one.
            std::thread::yield_now();
        }
        let mut pending = pending.lock();
        pending.wake_threshold = wake_threshold;
        while count() < wake_threshold && !pending.closed {
            if ready.wait_until(&mut pending, deadline).timed_out() {
                break;
            }
        }
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
    /// Closes the queue and drops what is in it.
    fn end(&mut self) {
        self.closed = true;
        self.full.clear();
        self.open = Batch::new(0);
    }

    /// The last change of a key that may not be published yet.
    fn change(&self, key: &str) -> Option<&Arc<Event>> {
        let full = self.full.iter().rev().map(|batch| &batch.changes);
        std::iter::once(&self.open.changes)
            .chain(full)
            .chain([&self.taken])
            .find_map(|changes| changes.get(key))
    }

    /// Takes the oldest batch; the one after it is expected to have as many bytes.
    fn next(&mut self, expected: usize) -> Option<Batch> {
        let mut batch = match self.full.pop_front() {
            Some(full) => full,
            None if self.open.requests() == 0 => return None,
            None => std::mem::replace(&mut self.open, Batch::new(expected)),
        };
        self.taken = std::mem::take(&mut batch.changes);
        Some(batch)
    }
}
