//! The writer: one thread through which all writes go, many at a time.
//!
//! While one batch is being flushed, requests gather; together they are the next batch. Conditions are decided
//! on a copy of the state that becomes the state once the batch is durable, so that a batch may hold any number
//! of writes to one key, and a batch that fails leaves no trace.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;

use super::checkpoint::Backlog;
use super::journal::{AppendError, Journal};
use super::queue::{Pace, Queue};
use super::record;
use crate::cache::Cache;
use crate::{Event, Revision, StoreError, Write};

/// A batch that has this many bytes takes no more requests.
const BATCH_BYTES: usize = 4 << 20;

/// Something to be done by the writer.
#[derive(Debug)]
pub(crate) enum Request {
    Write {
        key: String,
        write: Write,
        reply: oneshot::Sender<Result<Event, StoreError>>,
    },
    Compact {
        revision: Revision,
        reply: oneshot::Sender<Result<(), StoreError>>,
    },
}

/// A write that has been decided and waits for the flush.
struct Decided {
    outcome: Result<Event, StoreError>,
    reply: oneshot::Sender<Result<Event, StoreError>>,
}

#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) cache: Arc<Cache>,
    pub(crate) journal: Journal,
    pub(crate) backlog: Arc<Backlog>,
    /// Why nothing can be written any more, once nothing can.
    pub(crate) failure: Option<StoreError>,
    pub(crate) pace: Pace,
}

impl Writer {
    /// Works until the queue is closed.
    pub(crate) fn run(mut self, queue: &Queue) {
        let service = queue.serve();
        let mut batch = Vec::new();
        while service.take(&mut batch, self.pace) {
            self.pace.requests = batch.len();
            let mut rest = batch.drain(..).peekable();
            while rest.peek().is_some() {
                self.commit(&mut rest);
            }
        }
    }

    /// Takes requests until they fill a batch, and makes that durable.
    fn commit(&mut self, requests: &mut impl Iterator<Item = Request>) {
        let room = self.backlog.wait_for_room();
        let mut next = self.cache.snapshot();
        let mut events: Vec<Arc<Event>> = Vec::new();
        let mut decided = Vec::new();
        let mut compactions = Vec::new();
        let mut bytes = 0;
        for request in requests {
            match request {
                Request::Compact { revision, reply } => compactions.push((revision, reply)),
                Request::Write { key, write, reply } => {
                    let outcome = next.apply(&key, &write);
                    if let Ok(event) = &outcome {
                        bytes += record::size(event);
                        events.push(Arc::new(event.clone()));
                    }
                    decided.push(Decided { outcome, reply });
                }
            }
            if bytes >= BATCH_BYTES {
                break;
            }
        }
        let flushed = if events.is_empty() {
            Ok(())
        } else {
            room.and_then(|()| self.write(&events))
        };
        if flushed.is_ok() && !events.is_empty() {
            self.cache.publish(next, &events);
        }
        for Decided { outcome, reply } in decided {
            // What was refused was refused in view of writes of this batch: it stands or falls with them.
            let answer = flushed.clone().and(outcome);
            // A caller that is gone does not want to know.
            let _ = reply.send(answer);
        }
        for (revision, reply) in compactions {
            let _ = reply.send(self.compact(revision));
        }
    }

    fn write(&mut self, events: &[Arc<Event>]) -> Result<(), StoreError> {
        self.append(|journal| journal.append(events))?;
        let sealed = self.journal.take_sealed();
        self.backlog.add(events, sealed, self.journal.number());
        Ok(())
    }

    /// Forgets history, and sees to it that no restart brings it back.
    fn compact(&mut self, revision: Revision) -> Result<(), StoreError> {
        self.cache.check(revision)?;
        let current = self.cache.revision();
        self.append(|journal| journal.compact(revision, current))?;
        if let Some(sealed) = self.journal.take_sealed() {
            self.backlog.add(&[], Some(sealed), self.journal.number());
        }
        self.cache.compact(revision)
    }

    fn append(
        &mut self,
        append: impl FnOnce(&mut Journal) -> Result<(), AppendError>,
    ) -> Result<(), StoreError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let begin = Instant::now();
        let appended = append(&mut self.journal);
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
