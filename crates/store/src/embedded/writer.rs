//! The writer: makes batches durable, publishes them and answers the callers.
//!
//! It runs on its own thread, or on the thread of a caller that holds the writer lease (see [`super::queue`]). A batch
//! is published once it is durable; a batch that fails leaves no trace.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::checkpoint::Backlog;
use super::health::Health;
use super::journal::{AppendError, Journal};
use super::queue::{Batch, BatchStats, MaintenanceTask, WriteQueue};
use super::record::RecordBuilder;
use crate::cache::Cache;
use crate::{Revision, StoreError};

/// The writer, shared between its thread and callers with a lease.
pub(crate) type SharedWriter = Mutex<Option<JournalWriter>>;

#[derive(Debug)]
pub(crate) struct JournalWriter {
    pub(crate) cache: Arc<Cache>,
    pub(crate) journal: Journal,
    pub(crate) backlog: Arc<Backlog>,
    /// The error after which no write is possible.
    pub(crate) failure: Option<StoreError>,
    pub(crate) stats: BatchStats,
    pub(crate) health: Arc<Health>,
}

impl JournalWriter {
    /// Executes batches until the queue is closed, then closes the journal.
    pub(crate) fn run(shared: &SharedWriter, queue: &WriteQueue) {
        let consumer = queue.serve();
        let stats = || shared.lock().as_ref().map(|writer| writer.stats);
        while let Some(batch) = stats().and_then(|stats| consumer.take(stats)) {
            if let Some(writer) = shared.lock().as_mut() {
                writer.execute(batch, queue);
            }
        }
        // Takes the writer away: a caller with a lease finds none, and the journal is closed.
        drop(shared.lock().take());
    }

    /// Makes a batch durable, publishes it, and answers its callers.
    pub(crate) fn execute(&mut self, mut batch: Batch, queue: &WriteQueue) {
        self.stats.requests = batch.requests();
        self.stats.alone = match self.stats.requests {
            1 => self.stats.alone.saturating_add(1),
            _ => 0,
        };
        self.stats.bytes = batch.record.len();
        let flushed = self.write(&mut batch);
        let failed = match &flushed {
            Ok(()) => {
                // Published before the replies are sent, so that every caller can read its own write.
                self.cache.publish(&batch.events);
                Vec::new()
            }
            // Later batches were evaluated against this one's changes, so none of them may succeed.
            Err(_) => queue.take_failed(),
        };
        for Batch { decided, tasks, .. } in std::iter::once(batch).chain(failed) {
            for (outcome, reply) in decided {
                // A conflict was detected against earlier writes of the batch, so it fails if they fail.
                // Sending fails if the caller has gone away.
                let _ = reply.send(flushed.clone().and(outcome));
            }
            for (task, reply) in tasks {
                let _ = reply.send(flushed.clone().and_then(|()| self.run_task(task)));
            }
        }
    }

    fn write(&mut self, batch: &mut Batch) -> Result<(), StoreError> {
        // All conditions failed, or the batch has only tasks.
        if batch.events.is_empty() {
            return Ok(());
        }
        let appended = self.append_with_room(&mut batch.record);
        // Collected after a failed append as well, because the rotation before it may have succeeded.
        let sealed = self.journal.take_sealed();
        let events = if appended.is_ok() {
            batch.events.as_slice()
        } else {
            &[]
        };
        self.backlog.add(events, sealed, self.journal.segment());
        appended
    }

    fn append_with_room(&mut self, record: &mut RecordBuilder) -> Result<(), StoreError> {
        // Writers wait while checkpoints are behind, so that the backlog stays bounded.
        let appended = self.backlog.wait_for_room().and_then(|()| self.append(record));
        self.health.report(appended.as_ref().err());
        appended
    }

    fn run_task(&mut self, task: MaintenanceTask) -> Result<(), StoreError> {
        match task {
            MaintenanceTask::Compact(revision) => self.compact(revision),
            MaintenanceTask::Probe => {
                // An empty record repeats the current compaction, so it changes nothing but proves that the
                // disk accepts writes.
                let mut nothing =
                    RecordBuilder::compaction(self.cache.compacted(), self.cache.revision() + 1);
                self.append_with_room(&mut nothing)
            }
        }
    }

    /// Compacts history durably.
    fn compact(&mut self, revision: Revision) -> Result<(), StoreError> {
        // Checked before the record is written: a start rejects a journal that compacts a future revision.
        self.cache.check(revision)?;
        self.append(&mut RecordBuilder::compaction(
            revision,
            self.cache.revision() + 1,
        ))?;
        let sealed = self.journal.take_sealed();
        self.backlog.add(&[], sealed, self.journal.segment());
        self.cache.compact(revision)
    }

    fn append(&mut self, record: &mut RecordBuilder) -> Result<(), StoreError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let begin = Instant::now();
        let appended = self.journal.append(record);
        // An exponential moving average: one slow flush must not make the writer wait longer for many
        // batches.
        self.stats.flush = (self.stats.flush * 3 + begin.elapsed()) / 4;
        appended.map_err(|error| match error {
            AppendError::NotWritten(error) => error,
            AppendError::NotFlushed(error) => {
                // Permanent: after a failed flush the kernel may report success for pages it has dropped.
                self.failure = Some(error.clone());
                error
            }
        })
    }
}
