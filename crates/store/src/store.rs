//! The storage trait.

use std::sync::Arc;

use crate::{Entry, Event, ListRequest, Page, ReadAt, Revision, StoreError, Watch, Write};

/// The maximum size of a value in bytes: what etcd accepts in one request by default.
pub const MAX_VALUE_BYTES: usize = 3 << 19;

/// A key-value store with one global, monotone sequence of revisions.
///
/// # Contract
///
/// - Every successful write gets a revision greater than all before it, also across restarts and crashes; a
///   write whose condition fails gets none.
/// - A write is durable before it is acknowledged, if the engine is durable at all, and no read or watch
///   shows a write that is not durable.
/// - A [`ReadAt::Latest`] read sees every write acknowledged before it began.
/// - A list is one consistent state. Pages read `Exact`ly at the first page's revision show that state until
///   it is compacted.
/// - A watch sees every write to its prefix after its start exactly once, in order of revision. It ends with
///   [`StoreError::Compacted`] if it falls behind the retained history; writers never wait for it.
/// - Reads never wait for the disk flush of a writer.
#[async_trait::async_trait]
pub trait Store: std::fmt::Debug + Send + Sync + 'static {
    /// Returns the revision of the newest write of any server.
    async fn revision(&self) -> Result<Revision, StoreError>;

    /// Returns the entry of a key, or `None` if it does not exist.
    async fn get(&self, key: &str, at: ReadAt) -> Result<Option<Arc<Entry>>, StoreError>;

    /// Lists the entries whose keys have a prefix.
    async fn list(&self, request: ListRequest) -> Result<Page, StoreError>;

    /// Writes one key if the condition of the write holds.
    ///
    /// The write happens, or does not, even if the returned future is dropped before it is done.
    async fn write(&self, key: &str, write: Write) -> Result<Event, StoreError>;

    /// Watches the writes to keys with a prefix, from after a revision.
    async fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError>;

    /// Compacts the history before a revision. The state at the revision itself stays readable.
    async fn compact(&self, revision: Revision) -> Result<(), StoreError>;

    /// Checks whether writes can succeed now. An engine that does not know probes.
    async fn check_writable(&self) -> Result<(), StoreError> {
        self.revision().await.map(drop)
    }
}
