//! The writer: makes durable what has gathered, many requests at a time. It has a thread of its own; one who asks
//! alone lends it another (see [`super::queue`]).
//!
//! While one batch is being flushed, requests gather; together they are the next one (see [`super::queue`]). What was
//! decided about them is shown and answered once it is durable; a batch that fails leaves no trace.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::checkpoint::Backlog;
use super::health::Health;
use super::journal::{AppendError, Journal};
use super::queue::{Batch, Chore, Pace, Queue};
use super::record::Draft;
use crate::cache::Cache;
use crate::{Revision, StoreError};

/// The writer, for whoever has its turn.
pub(crate) type Shared = Mutex<Option<Writer>>;

#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) cache: Arc<Cache>,
    pub(crate) journal: Journal,
    pub(crate) backlog: Arc<Backlog>,
    /// Why nothing can be written any more, once nothing can.
    pub(crate) failure: Option<StoreError>,
    pub(crate) pace: Pace,
    pub(crate) health: Arc<Health>,
}

impl Writer {
    /// Works until the queue is closed; then the journal is let go of.
    pub(crate) fn run(shared: &Shared, queue: &Queue) {
        let service = queue.serve();
        let pace = || shared.lock().as_ref().map(|writer| writer.pace);
        while let Some(batch) = pace().and_then(|pace| service.take(pace)) {
            if let Some(writer) = shared.lock().as_mut() {
                writer.carry_out(batch, queue);
            }
        }
        drop(shared.lock().take());
    }

    /// Makes a batch durable, shows what it changes, and answers.
    pub(crate) fn carry_out(&mut self, mut batch: Batch, queue: &Queue) {
        self.pace.requests = batch.requests();
        self.pace.alone = match self.pace.requests {
            1 => self.pace.alone.saturating_add(1),
            _ => 0,
        };
        self.pace.bytes = batch.record.len();
        let flushed = self.write(&mut batch);
        let abandoned = match &flushed {
            Ok(()) => {
                self.cache.publish(&batch.events);
                Vec::new()
            }
            Err(_) => queue.abandon(),
        };
        for Batch { decided, chores, .. } in std::iter::once(batch).chain(abandoned) {
            for (outcome, reply) in decided {
                // What was refused was refused in view of writes before it: it stands or falls with them. And a
                // caller that is gone does not want to know.
                let _ = reply.send(flushed.clone().and(outcome));
            }
            for (chore, reply) in chores {
                let _ = reply.send(flushed.clone().and_then(|()| self.run_chore(chore)));
            }
        }
    }

    fn write(&mut self, batch: &mut Batch) -> Result<(), StoreError> {
        if batch.events.is_empty() {
            return Ok(());
        }
        let appended = self.append_with_room(&mut batch.record);
        let sealed = self.journal.take_sealed();
        let events = if appended.is_ok() {
            batch.events.as_slice()
        } else {
            &[]
        };
        self.backlog.add(events, sealed, self.journal.segment());
        appended
    }

    fn append_with_room(&mut self, record: &mut Draft) -> Result<(), StoreError> {
        let appended = self.backlog.wait_for_room().and_then(|()| self.append(record));
        self.health.report(appended.as_ref().err());
        appended
    }

    fn run_chore(&mut self, chore: Chore) -> Result<(), StoreError> {
        match chore {
            Chore::Compact(revision) => self.compact(revision),
            Chore::Probe => {
                let mut nothing = Draft::of_compaction(self.cache.compacted(), self.cache.revision() + 1);
                self.append_with_room(&mut nothing)
            }
        }
    }

    /// Forgets history, and sees to it that no restart brings it back.
    fn compact(&mut self, revision: Revision) -> Result<(), StoreError> {
        self.cache.check(revision)?;
        self.append(&mut Draft::of_compaction(revision, self.cache.revision() + 1))?;
        let sealed = self.journal.take_sealed();
        self.backlog.add(&[], sealed, self.journal.segment());
        self.cache.compact(revision)
    }

    fn append(&mut self, record: &mut Draft) -> Result<(), StoreError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let begin = Instant::now();
        let appended = self.journal.append(record);
        self.pace.flush = (self.pace.flush * 3 + begin.elapsed()) / 4;
        appended.map_err(|error| match error {
            AppendError::NotWritten(error) => error,
            AppendError::NotFlushed(error) => {
                self.failure = Some(error.clone());
                error
            }
        })
    }
}
