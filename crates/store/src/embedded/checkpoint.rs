//! Checkpoints: copy the journal into the database asynchronously.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::file::{FaultInjector, IoThrottle};
use super::journal::{self, SealedSegment};
use super::record::{self, SegmentId};
use super::table::{StateTable, TableMeta};
use crate::cache::Cache;
use crate::{Entry, Event, StoreError};

/// Writers block when the backlog is this many times the checkpoint interval.
const BLOCK_WRITERS_FACTOR: usize = 3;
/// A checkpoint is no longer throttled when the backlog is this many times the checkpoint interval.
const URGENT_FACTOR: usize = 2;
/// The interval in which expired history is trimmed.
const TRIM_INTERVAL: Duration = Duration::from_secs(2);

/// The writes since the last checkpoint, shared between the writer and the checkpointer.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// A checkpoint begins when this much has been written since the last one.
    begin_bytes: usize,
    /// Throttles the writes of a checkpoint unless it is urgent.
    throttle: Arc<IoThrottle>,
    pending: Mutex<BacklogState>,
    /// Wakes the checkpointer.
    work: Condvar,
    /// Wakes writers after a checkpoint, successful or not.
    done: Condvar,
}

#[derive(Debug, Default)]
struct BacklogState {
    events: Vec<Arc<Event>>,
    bytes: usize,
    /// Full segments, the oldest first.
    sealed: Vec<SealedSegment>,
    /// The segment with the newest event.
    segment: SegmentId,
    /// The error of the last checkpoint, if it failed.
    failure: Option<StoreError>,
    closing: bool,
}

impl Backlog {
    pub(crate) fn new(
        events: Vec<Arc<Event>>,
        sealed: Vec<SealedSegment>,
        segment: SegmentId,
        begin_bytes: usize,
    ) -> Self {
        let bytes = events.iter().map(|event| record::size(event)).sum();
        let pending = BacklogState {
            events,
            bytes,
            sealed,
            segment,
            ..BacklogState::default()
        };
        Self {
            begin_bytes,
            throttle: Arc::default(),
            pending: Mutex::new(pending),
            work: Condvar::new(),
            done: Condvar::new(),
        }
    }

    /// Adds a batch that has become durable.
    pub(crate) fn add(&self, events: &[Arc<Event>], sealed: Vec<SealedSegment>, segment: SegmentId) {
        let mut pending = self.pending.lock();
        pending.bytes += events.iter().map(|event| record::size(event)).sum::<usize>();
        pending.events.extend_from_slice(events);
        pending.sealed.extend(sealed);
        pending.segment = segment;
        if pending.bytes >= self.begin_bytes {
            self.work.notify_one();
        }
        if self.is_urgent(&pending) {
            self.throttle.disable();
        }
    }

    fn is_urgent(&self, pending: &BacklogState) -> bool {
        pending.closing || pending.bytes >= self.begin_bytes.saturating_mul(URGENT_FACTOR)
    }

    /// Waits until the backlog has room. Returns the error if checkpoints fail and it has none.
    pub(crate) fn wait_for_room(&self) -> Result<(), StoreError> {
        let stop_bytes = self.begin_bytes.saturating_mul(BLOCK_WRITERS_FACTOR);
        let mut pending = self.pending.lock();
        if pending.bytes >= stop_bytes {
            // The failure may be temporary, so another checkpoint is tried before writers get the error.
            pending.failure = None;
        }
        while pending.bytes >= stop_bytes {
            if let Some(failure) = &pending.failure {
                return Err(failure.clone());
            }
            self.work.notify_one();
            self.done.wait(&mut pending);
        }
        Ok(())
    }

    /// Ends the checkpointer after a last checkpoint.
    pub(crate) fn close(&self) {
        self.pending.lock().closing = true;
        self.throttle.disable();
        self.work.notify_one();
    }
}

/// The checkpoint thread.
#[derive(Debug)]
pub(crate) struct Checkpointer {
    pub(crate) directory: PathBuf,
    pub(crate) segment_bytes: u64,
    pub(crate) faults: Option<Arc<FaultInjector>>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) backlog: Arc<Backlog>,
    /// The open database. Closed after a failure and reopened for the next attempt.
    pub(crate) table: Option<StateTable>,
    pub(crate) meta: TableMeta,
}

impl Checkpointer {
    /// Runs checkpoints until the backlog is closed. Returns the result of the last one.
    pub(crate) fn run(mut self) -> Result<(), StoreError> {
        loop {
            let closing = {
                let mut pending = self.backlog.pending.lock();
                if pending.bytes < self.backlog.begin_bytes && !pending.closing {
                    // Wakes up without work, too, because history also expires by age.
                    self.backlog.work.wait_for(&mut pending, TRIM_INTERVAL);
                }
                pending.closing
            };
            self.cache.trim();
            let due = closing || self.backlog.pending.lock().bytes >= self.backlog.begin_bytes;
            let outcome = if due { self.checkpoint() } else { Ok(()) };
            if closing {
                // Without another attempt nothing is lost: the journal has what the database lacks.
                return outcome.and_then(|()| self.retire());
            }
            let outcome = outcome.and_then(|()| self.retire());
            let failed = outcome.is_err();
            let before = std::mem::replace(&mut self.backlog.pending.lock().failure, outcome.err());
            // Only the first of consecutive failures is logged.
            if let (None, Some(error)) = (before, &self.backlog.pending.lock().failure) {
                tracing::error!(%error, "a checkpoint failed; it is tried again until it succeeds");
            }
            self.backlog.done.notify_all();
            if failed {
                // A disk that fails at once must not make this loop spin.
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }

    /// Copies all pending events into the database. On failure they stay pending.
    fn checkpoint(&mut self) -> Result<(), StoreError> {
        let (events, bytes, segment) = {
            let mut pending = self.backlog.pending.lock();
            // An earlier urgent checkpoint may have switched the throttle off.
            if !self.backlog.is_urgent(&pending) {
                self.backlog.throttle.enable();
            }
            // `bytes` still includes the events taken here until they are stored, so that `wait_for_room` counts
            // them.
            (
                std::mem::take(&mut pending.events),
                pending.bytes,
                pending.segment,
            )
        };
        let stored = self.store(&events, segment);
        let mut pending = self.backlog.pending.lock();
        match &stored {
            Ok(()) => pending.bytes -= bytes,
            // They go back to the front, because newer events may have arrived.
            Err(_) => drop(pending.events.splice(..0, events)),
        }
        stored
    }

    /// Copies events into the database; `segment` is the journal segment of the newest one.
    fn store(&mut self, events: &[Arc<Event>], segment: SegmentId) -> Result<(), StoreError> {
        let Some(last) = events.last() else { return Ok(()) };
        let mut changes: BTreeMap<&str, Option<&Entry>> = BTreeMap::new();
        let mut count = self.meta.count;
        for event in events {
            // Only the last change of each key is written, however often it changed.
            changes.insert(event.key(), event.after().map(|entry| &**entry));
            count = count + u64::from(event.before().is_none()) - u64::from(event.after().is_none());
        }
        let meta = TableMeta {
            revision: last.revision,
            count,
            segment,
        };
        // Put back only on success: redb rejects all work after an I/O error, so the next attempt reopens the file.
        let table = match self.table.take() {
            Some(table) => table,
            None => {
                let throttle = Arc::clone(&self.backlog.throttle);
                StateTable::open_throttled(&self.directory, self.faults.clone(), throttle)?
            }
        };
        table.store(changes.into_iter(), meta)?;
        self.table = Some(table);
        self.meta = meta;
        Ok(())
    }

    /// Retires the segments that neither the database nor the history needs.
    fn retire(&self) -> Result<(), StoreError> {
        // A segment is needed for the state until it is checkpointed, and for the history until it is compacted.
        let needed_after = self.meta.revision.min(self.cache.compacted());
        loop {
            let Some(segment) = self.backlog.pending.lock().sealed.first().cloned() else {
                return Ok(());
            };
            // The next start looks for the segment that the database names, so that one stays as well.
            if segment.last > needed_after || segment.id.number >= self.meta.segment.number {
                return Ok(());
            }
            journal::retire(&self.directory, &segment, self.segment_bytes)?;
            self.backlog.pending.lock().sealed.remove(0);
        }
    }
}
