//! Entries, writes, events and requests.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::MaybeCompressed;

/// A position in the global sequence of writes to a store. Every write gets the next one; none is reused.
pub type Revision = u64;

/// One key with its value, as of one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Arc<str>,
    /// The value.
    pub value: MaybeCompressed,
    /// The revision that created the key (after its last deletion).
    pub create_revision: Revision,
    /// The revision that wrote this value.
    pub mod_revision: Revision,
    /// The number of writes to the key since it was created; 1 after the create.
    pub version: u64,
    /// A slot for the reader of the value.
    pub reader_cache: ReaderCache,
}

/// A slot in which the reader of an entry caches facts about the value, to avoid decoding it again. It is not part of
/// the entry: the store neither interprets nor persists it. The reader brings a type that fits into 64 bits.
#[derive(Debug, Default)]
pub struct ReaderCache(AtomicU64);

impl ReaderCache {
    /// Returns the cached facts; those of zero at first.
    #[must_use]
    pub fn get<T: From<u64>>(&self) -> T {
        // The bits depend on no other memory, so no ordering is needed.
        self.0.load(Ordering::Relaxed).into()
    }

    /// Caches facts.
    pub fn set(&self, facts: impl Into<u64>) {
        self.0.store(facts.into(), Ordering::Relaxed);
    }
}

impl Clone for ReaderCache {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.get()))
    }
}

impl PartialEq for ReaderCache {
    fn eq(&self, _: &Self) -> bool {
        // A cached fact must not make equal entries differ.
        true
    }
}

impl Eq for ReaderCache {}

/// A write and its condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Creates a key that must not exist.
    Create {
        /// The value.
        value: MaybeCompressed,
    },
    /// Replaces the value written at revision `expected`.
    Update {
        /// The new value.
        value: MaybeCompressed,
        /// The `mod_revision` that the key must have.
        expected: Revision,
    },
    /// Deletes the value written at revision `expected`.
    Delete {
        /// The `mod_revision` that the key must have.
        expected: Revision,
    },
}

impl Write {
    /// The value to store, unless this is a delete.
    #[must_use]
    pub fn value(&self) -> Option<&MaybeCompressed> {
        match self {
            Self::Create { value } | Self::Update { value, .. } => Some(value),
            Self::Delete { .. } => None,
        }
    }
}

/// The effect of a write on its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryChange {
    /// The key was created.
    Create {
        /// The entry after the write.
        new: Arc<Entry>,
    },
    /// The key was updated.
    Update {
        /// The entry before the write.
        old: Arc<Entry>,
        /// The entry after the write.
        new: Arc<Entry>,
    },
    /// The key was deleted.
    Delete {
        /// The entry before the write.
        old: Arc<Entry>,
    },
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The revision of the write.
    pub revision: Revision,
    /// The effect of the write.
    pub change: EntryChange,
}

impl Event {
    /// The key that was written.
    #[must_use]
    pub fn key(&self) -> &Arc<str> {
        match &self.change {
            EntryChange::Create { new } | EntryChange::Update { new, .. } => &new.key,
            EntryChange::Delete { old } => &old.key,
        }
    }

    /// Returns the entry after the write.
    #[must_use]
    pub fn after(&self) -> Option<&Arc<Entry>> {
        match &self.change {
            EntryChange::Create { new } | EntryChange::Update { new, .. } => Some(new),
            EntryChange::Delete { .. } => None,
        }
    }

    /// Returns the entry before the write.
    #[must_use]
    pub fn before(&self) -> Option<&Arc<Entry>> {
        match &self.change {
            EntryChange::Update { old, .. } | EntryChange::Delete { old } => Some(old),
            EntryChange::Create { .. } => None,
        }
    }
}

/// The revision at which a read happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadAt {
    /// A state that includes every write acknowledged before the read began, by any server.
    #[default]
    Latest,
    /// The newest available state, provided that it is not older than this revision. Zero accepts any state.
    AtLeast(Revision),
    /// The state at exactly this revision.
    Exact(Revision),
}

/// A list request.
#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    /// Lists only keys with this prefix. End it with `/` to stay within one collection.
    pub prefix: String,
    /// Lists only keys after this one, in byte order: the last key of the previous page.
    pub after: Option<String>,
    /// The maximum number of entries.
    pub limit: Option<NonZeroUsize>,
    /// The revision to read at: for every page after the first, `Exact` with the first page's revision.
    pub at: ReadAt,
    /// The number of entries after `after`, if an earlier page of this list returned it. Avoids counting them
    /// again.
    pub remaining: Option<u64>,
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The revision of the state that the entries belong to.
    pub revision: Revision,
    /// The entries in byte order of their keys.
    pub entries: Vec<Arc<Entry>>,
    /// The number of entries after this page; zero on the last page.
    pub remaining: u64,
}
