//! A stream of writes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use crate::cache::Cache;
use crate::{Event, Revision, StoreError};

/// The position of a watch in the history.
#[derive(Debug)]
pub(crate) struct WatchPosition {
    /// The collection whose events it goes through, or all.
    pub(crate) topic: Option<Arc<str>>,
    /// The sequence number of the next event to look at.
    pub(crate) next: u64,
    /// All events up to this revision have been looked at.
    pub(crate) seen: Revision,
}

/// The writes to a prefix from some revision on, in order.
///
/// A watch that is not read costs nothing, and nobody waits for it; if it lags behind the history that the
/// store keeps, it ends with [`StoreError::Compacted`].
pub struct Watch {
    cache: Arc<Cache>,
    prefix: Box<str>,
    position: WatchPosition,
    /// Matching events that were looked at but not yet handed out.
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

    /// The next write; waits until there is one. After an error, every further call gives one.
    ///
    /// Dropping the returned future loses nothing.
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

    /// The next write, if it has happened already.
    pub fn try_next(&mut self) -> Result<Option<Arc<Event>>, StoreError> {
        loop {
            if let Some(event) = self.buffer.pop_front() {
                return Ok(Some(event));
            }
            // Marked before the look, so that what comes after it wakes the next wait.
            self.wake.mark_unchanged();
            let before = self.position.next;
            self.cache
                .pull(&self.prefix, &mut self.position, &mut self.buffer)?;
            if self.buffer.is_empty() && self.position.next == before {
                return Ok(None);
            }
        }
    }

    /// A revision up to which every write to the prefix has been handed out: where a later watch may resume.
    pub fn progress(&mut self) -> Result<Revision, StoreError> {
        if self.buffer.is_empty() {
            self.cache
                .pull(&self.prefix, &mut self.position, &mut self.buffer)?;
        }
        Ok(match self.buffer.front() {
            Some(event) => event.revision - 1,
            None => self.position.seen,
        })
    }
}
