//! The in-memory engine, for tests and for servers without durable data.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::cache::Cache;
use crate::state::{Snapshot, check_write, evaluate_write};
use crate::{
    Entry, Event, HistoryLimits, ListRequest, Page, ReadAt, Revision, Store, StoreError, Watch, Write, key,
};

/// A [`Store`] in memory. Its contents are lost when it is dropped.
#[derive(Debug)]
pub struct MemStore {
    cache: Arc<Cache>,
    /// Held from the evaluation of a condition to the publication of the write.
    writer: Mutex<()>,
}

impl Default for MemStore {
    fn default() -> Self {
        Self::new(HistoryLimits::default())
    }
}

impl MemStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new(limits: HistoryLimits) -> Self {
        Self::with(Snapshot::empty(), limits)
    }

    /// Creates a store with a state and without history.
    pub(crate) fn with_state(state: Snapshot) -> Self {
        Self::with(state, HistoryLimits::default())
    }

    fn with(state: Snapshot, limits: HistoryLimits) -> Self {
        let compacted = state.revision;
        Self {
            cache: Arc::new(Cache::new(state, Vec::new(), compacted, limits)),
            writer: Mutex::new(()),
        }
    }
}

impl Drop for MemStore {
    fn drop(&mut self) {
        self.cache.close(StoreError::Unavailable {
            detail: "the store was shut down".to_owned(),
        });
    }
}

#[async_trait::async_trait]
impl Store for MemStore {
    async fn revision(&self) -> Result<Revision, StoreError> {
        Ok(self.cache.revision())
    }

    async fn get(&self, key: &str, at: ReadAt) -> Result<Option<Arc<Entry>>, StoreError> {
        key::check_key(key)?;
        Ok(self.cache.read(at)?.get(key))
    }

    async fn list(&self, request: ListRequest) -> Result<Page, StoreError> {
        self.cache.list(&request)
    }

    async fn write(&self, key: &str, write: Write) -> Result<Event, StoreError> {
        check_write(key, &write)?;
        let _writer = self.writer.lock();
        let event = evaluate_write(self.cache.get(key), key, &write, self.cache.revision() + 1)?;
        self.cache.publish(&[Arc::new(event.clone())]);
        Ok(event)
    }

    async fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.cache.watch(prefix, after)
    }

    async fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        self.cache.compact(revision)
    }
}
