//! Watches: streams of the events after a revision.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use crate::cache::Cache;
use crate::{Event, Revision, StoreError};

/// The position of a watch in the history.
#[derive(Debug)]
pub(crate) struct WatchPosition {
    /// The collection whose events it reads; all events if `None`.
    pub(crate) topic: Option<Arc<str>>,
    /// The sequence number of the next event to read.
    pub(crate) next: u64,
    /// All events up to this revision have been read.
    pub(crate) seen: Revision,
}

/// The writes to a prefix from a revision on, in order.
///
/// A watch that is not polled costs nothing, and no writer waits for it. If it falls behind the retained
/// history, it ends with [`StoreError::Compacted`].
pub struct Watch {
    cache: Arc<Cache>,
    prefix: Box<str>,
    position: WatchPosition,
    /// Matching events that were read but not yet returned.
    buffer: VecDeque<Arc<Event>>,
    wake: watch::Receiver<()>,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("prefix", &self.prefix)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // Of two watches that are dropped at once, the later one must find the topic without receivers.
        self.wake = watch::channel(()).1;
        self.cache.unwatch(&self.position);
    }
}

impl Watch {
    pub(crate) fn new(
        cache: Arc<Cache>,
        prefix: &str,
        position: WatchPosition,
        wake: watch::Receiver<()>,
    ) -> Self {
        Self {
            cache,
            prefix: prefix.into(),
            position,
            buffer: VecDeque::new(),
            wake,
        }
    }

    /// Waits for the next write. After an error, every further call returns an error.
    ///
    /// Cancel-safe: dropping the future loses no event.
    pub async fn next(&mut self) -> Result<Arc<Event>, StoreError> {
        loop {
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            if self.wake.changed().await.is_err() {
                return Err(StoreError::Unavailable {
                    detail: "the store was shut down".to_owned(),
                });
            }
        }
    }

    /// Returns the next write if it is already available.
    pub fn try_next(&mut self) -> Result<Option<Arc<Event>>, StoreError> {
        loop {
            if let Some(event) = self.buffer.pop_front() {
                return Ok(Some(event));
            }
            // Marked before reading, so that later events wake the next wait.
            self.wake.mark_unchanged();
            let before = self.position.next;
            self.cache
                .pull(&self.prefix, &mut self.position, &mut self.buffer)?;
            // If the position moved, only events outside the prefix were read, and more may follow them.
            if self.buffer.is_empty() && self.position.next == before {
                return Ok(None);
            }
        }
    }

    /// Returns a revision up to which all writes to the prefix have been returned. A later watch may resume
    /// there.
    pub fn progress(&mut self) -> Result<Revision, StoreError> {
        if self.buffer.is_empty() {
            self.cache
                .pull(&self.prefix, &mut self.position, &mut self.buffer)?;
        }
        Ok(match self.buffer.front() {
            // The event in the buffer has not been returned yet.
            Some(event) => event.revision - 1,
            None => self.position.seen,
        })
    }
}
