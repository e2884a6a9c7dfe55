//! Entries, writes, events and requests.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::MaybeCompressed;

/// A point in the one sequence of all writes to a store. Every write takes the next one; none is ever reused.
pub type Revision = u64;

/// One key with its value, as of one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Arc<str>,
    /// The value that was written.
    pub value: MaybeCompressed,
    /// The revision that created the key (after its last deletion).
    pub create_revision: Revision,
    /// The revision that wrote this value.
    pub mod_revision: Revision,
    /// How often the key was written since it was created; 1 after the create.
    pub version: u64,
    /// A cache for readers of the value.
    pub reader_cache: ReaderCache,
}

/// A number that readers of an entry may cache on it, to avoid decoding the value again. It is not part of the entry:
/// the store neither reads nor persists it.
#[derive(Debug, Default)]
pub struct ReaderCache(AtomicU64);

impl ReaderCache {
    /// Returns the cached number; zero at first.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Caches a number.
    pub fn set(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }
}

impl Clone for ReaderCache {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.get()))
    }
}

impl PartialEq for ReaderCache {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ReaderCache {}

/// A write and the condition under which it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Store a value where none is.
    Create {
        /// The value.
        value: MaybeCompressed,
    },
    /// Replace the value that `expected` wrote.
    Update {
        /// The new value.
        value: MaybeCompressed,
        /// The `mod_revision` that the key must have.
        expected: Revision,
    },
    /// Remove the value that `expected` wrote.
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
    /// The key was not there before.
    Create {
        /// The entry after the write.
        new: Arc<Entry>,
    },
    /// The key got another value.
    Update {
        /// The entry before the write.
        old: Arc<Entry>,
        /// The entry after the write.
        new: Arc<Entry>,
    },
    /// The key was removed.
    Delete {
        /// The entry before the write.
        old: Arc<Entry>,
    },
}

/// One write that happened.
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
    /// A state that holds every write acknowledged before the read began, by whichever server.
    #[default]
    Latest,
    /// The newest state at hand, provided that it is not older than this revision. Zero takes what is there.
    AtLeast(Revision),
    /// The state right after this revision.
    Exact(Revision),
}

/// A list request.
#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    /// Only keys that begin with this text. Give it a final `/` to stay inside one collection.
    pub prefix: String,
    /// Only keys after this one, in byte order: the last key of the page before.
    pub after: Option<String>,
    /// At most this many entries.
    pub limit: Option<NonZeroUsize>,
    /// The revision to read at: for every page after the first, `Exact` with the first page's revision.
    pub at: ReadAt,
    /// How many entries follow `after`, if an earlier page of this very list told. It spares counting them.
    pub remaining: Option<u64>,
}

/// One page of a list, or the whole of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The revision of the state that the entries belong to.
    pub revision: Revision,
    /// The entries in byte order of their keys.
    pub entries: Vec<Arc<Entry>>,
    /// How many entries of the list come after this page. Zero at the end.
    pub remaining: u64,
}
