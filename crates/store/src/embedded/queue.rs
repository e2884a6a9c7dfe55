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

use super::record::Draft;
use crate::cache::Cache;
use crate::state::decide;
use crate::{Event, Revision, StoreError, Write};

/// The longest that requests wait for company.
const LONGEST_WAIT: Duration = Duration::from_millis(2);
/// How long the writer stays awake for several: to fall asleep and be woken takes about as long.
const LONGEST_VIGIL: Duration = Duration::from_micros(100);
/// A batch that has this many bytes takes no more requests.
const BATCH_BYTES: usize = 4 << 20;

/// How an answer gets back to who waits for it.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

#[derive(Debug)]
pub(crate) struct Queue {
    /// The published state.
    cache: Arc<Cache>,
    gathering: Mutex<Gathering>,
    /// How many requests there are in it, for one who has no time to wait for the lock.
    waiting: AtomicUsize,
    /// Tells the writer that there are as many as it wants.
    ready: Condvar,
}

#[derive(Debug)]
struct Gathering {
    /// The revision that all requests lead to.
    revision: Revision,
    /// What the batch that was taken last changes.
    taken: Changes,
    /// Batches that take no more requests, the oldest first.
    full: VecDeque<Batch>,
    /// The one that does.
    open: Batch,
    /// How many requests the writer sleeps for; zero while it is awake.
    wanted: usize,
    /// Whether one who asked has taken the writer's turn.
    taken_over: bool,
    closed: bool,
}

/// What one who asks may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// It may take the writer's turn.
    MayWrite,
    /// Others need its thread.
    MayOnlyWait,
}

/// A turn of the writer that one who asked has taken. It lasts as long as this.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    queue: &'a Queue,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut gathering = self.queue.gathering.lock();
        gathering.taken_over = false;
        if std::thread::panicking() {
            gathering.end();
        }
        let awaited = gathering.closed || self.queue.waiting.load(Ordering::Relaxed) > 0;
        drop(gathering);
        self.queue.tell(awaited);
    }
}

/// The last change of each key.
type Changes = HashMap<Arc<str>, Arc<Event>>;

/// Requests that become durable together.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) record: Draft,
    pub(crate) events: Vec<Arc<Event>>,
    changes: Changes,
    /// What became of each write, if the record can be written.
    pub(crate) decided: Vec<(Result<Event, StoreError>, Reply<Event>)>,
    pub(crate) chores: Vec<(Chore, Reply<()>)>,
}

/// Work for the writer besides writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chore {
    /// To forget history up to a revision.
    Compact(Revision),
    /// To append a record that changes nothing, in order to find out whether that works.
    Probe,
}

impl Batch {
    fn new(expected: usize) -> Self {
        Self {
            record: Draft::of_events(expected),
            events: Vec::new(),
            changes: Changes::new(),
            decided: Vec::new(),
            chores: Vec::new(),
        }
    }

    pub(crate) fn requests(&self) -> usize {
        self.decided.len() + self.chores.len()
    }
}

/// How the last batch went, which is what the next one is expected to be like.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    /// How many requests it held.
    pub(crate) requests: usize,
    /// How many batches in a row held one.
    pub(crate) alone: u32,
    /// How many bytes it had.
    pub(crate) bytes: usize,
    /// How long a flush takes, on average of the last few.
    pub(crate) flush: Duration,
}

impl Queue {
    /// A queue for writes to a published state.
    pub(crate) fn new(cache: Arc<Cache>) -> Self {
        let gathering = Gathering {
            revision: cache.revision(),
            taken: Changes::new(),
            full: VecDeque::new(),
            open: Batch::new(0),
            wanted: 0,
            taken_over: false,
            closed: false,
        };
        Self {
            cache,
            gathering: Mutex::new(gathering),
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
        asker: Asker,
        reply: Reply<Event>,
    ) -> Option<(Turn<'_>, Batch)> {
        let mut guard = self.gathering.lock();
        let gathering = &mut *guard;
        if gathering.closed {
            return None;
        }
        // What is on its way stays in sight until it is published, and is looked for first.
        let current = match gathering.change(key) {
            Some(event) => event.after().cloned(),
            None => self.cache.get(key),
        };
        let outcome = decide(current, key, write, gathering.revision + 1);
        let open = &mut gathering.open;
        if let Ok(event) = &outcome {
            gathering.revision = event.revision;
            open.record.add(event);
            let event = Arc::new(event.clone());
            open.changes.insert(Arc::clone(event.key()), Arc::clone(&event));
            open.events.push(event);
        }
        open.decided.push((outcome, reply));
        if open.record.len() >= BATCH_BYTES {
            let full = std::mem::replace(open, Batch::new(0));
            gathering.full.push_back(full);
        }
        // A writer that wants one request sleeps, and what it has written is published.
        let alone = gathering.wanted == 1 && self.waiting.load(Ordering::Relaxed) == 0;
        if asker == Asker::MayWrite
            && alone
            && !gathering.taken_over
            && let Some(batch) = gathering.next(0)
        {
            gathering.taken_over = true;
            return Some((Turn { queue: self }, batch));
        }
        let enough = self.count(gathering);
        drop(guard);
        self.tell(enough);
        None
    }

    /// Asks for something besides writes.
    pub(crate) fn ask(&self, chore: Chore, reply: Reply<()>) {
        let mut gathering = self.gathering.lock();
        if gathering.closed {
            return;
        }
        gathering.open.chores.push((chore, reply));
        let enough = self.count(&gathering);
        drop(gathering);
        self.tell(enough);
    }

    /// Counts one more request. Answers with whether the writer is to be woken.
    fn count(&self, gathering: &Gathering) -> bool {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed) + 1;
        gathering.wanted > 0 && waiting >= gathering.wanted && !gathering.taken_over
    }

    fn tell(&self, enough: bool) {
        if enough {
            self.ready.notify_one();
        }
    }

    /// Begins to serve the queue.
    pub(crate) fn serve(&self) -> Service<'_> {
        Service { queue: self }
    }

    /// Lets no more requests in. Those that are there are still taken.
    pub(crate) fn close(&self) {
        self.gathering.lock().closed = true;
        self.ready.notify_one();
    }

    /// Takes everything that was decided in view of what has not happened, and goes back to the state that is.
    pub(crate) fn abandon(&self) -> Vec<Batch> {
        let mut gathering = self.gathering.lock();
        let mut abandoned = Vec::new();
        while let Some(batch) = gathering.next(0) {
            abandoned.push(batch);
        }
        gathering.taken = Changes::new();
        gathering.revision = self.cache.revision();
        self.waiting.store(0, Ordering::Relaxed);
        abandoned
    }
}

/// The one who takes requests. When it goes, however it goes, the queue is closed and what is in it is dropped,
/// so that nobody waits for an answer that will not come.
#[derive(Debug)]
pub(crate) struct Service<'a> {
    queue: &'a Queue,
}

impl Drop for Service<'_> {
    fn drop(&mut self) {
        self.queue.gathering.lock().end();
    }
}

impl Service<'_> {
    /// Takes a batch, once there is one; nothing if there will be none. By then, the last one is published.
    pub(crate) fn take(&self, last: Pace) -> Option<Batch> {
        let Queue {
            gathering,
            waiting,
            ready,
            ..
        } = self.queue;
        let count = || waiting.load(Ordering::Relaxed);
        // Whoever waits by now was not in the last batch.
        let wanted = last.requests + count();
        let now = Instant::now();
        let deadline = now + (last.flush / 2).min(LONGEST_WAIT);
        let asleep = deadline.min(now + LONGEST_VIGIL);
        while wanted > 1 && count() < wanted && Instant::now() < asleep {
            // Where there are few cores, those who are waited for need this one.
            std::thread::yield_now();
        }
        let mut gathering = gathering.lock();
        gathering.wanted = wanted;
        while count() < wanted && !gathering.closed {
            if ready.wait_until(&mut gathering, deadline).timed_out() {
                break;
            }
        }
        gathering.wanted = 1;
        while gathering.taken_over || (count() == 0 && !gathering.closed) {
            ready.wait(&mut gathering);
        }
        gathering.wanted = 0;
        let batch = gathering.next(last.bytes)?;
        waiting.fetch_sub(batch.requests(), Ordering::Relaxed);
        Some(batch)
    }
}

impl Gathering {
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
