//! The writer: one thread through which all writes go, many at a time.
//!
//! While one batch is being flushed, requests gather; together they are the next batch. Conditions are decided
//! on a copy of the state that becomes the state once the batch is durable, so that a batch may hold any number
//! of writes to one key, and a batch that fails leaves no trace.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::checkpoint::Backlog;
use super::journal::{AppendError, Journal};
use super::record;
use crate::cache::Cache;
use crate::{Event, Revision, StoreError, Write};

/// The most requests in a batch.
const BATCH_REQUESTS: usize = 1024;
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
}

impl Writer {
    /// Works until all senders are gone.
    pub(crate) fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut batch = Vec::new();
        while requests.blocking_recv_many(&mut batch, BATCH_REQUESTS) > 0 {
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
            room.and_then(|()| self.flush(&events))
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
            let _ = reply.send(self.cache.compact(revision));
        }
    }

    fn flush(&mut self, events: &[Arc<Event>]) -> Result<(), StoreError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let appended = self.journal.append(events);
        match appended {
            Ok(()) => {
                let sealed = self.journal.take_sealed();
                self.backlog.add(events, sealed, self.journal.number());
                Ok(())
            }
            Err(AppendError::NotWritten(error)) => Err(error),
            Err(AppendError::NotFlushed(error)) => {
                self.failure = Some(error.clone());
                Err(error)
            }
        }
    }
}
