//! A snapshot of all keys: an immutable ordered map that is cheap to keep.

use std::ops::Bound;
use std::sync::Arc;

use imbl::OrdMap;

use crate::{
    Entry, EntryChange, Event, ListRequest, MAX_VALUE_BYTES, MaybeCompressed, Page, ReaderCache, Revision,
    StoreError, Write, etcd, key,
};

/// The revision of an empty store. Zero means "any" in a Kubernetes request; etcd begins at one, too.
pub(crate) const FIRST_REVISION: Revision = 1;

/// All entries at one revision. Clones share their structure, so a reader may keep a snapshot; a write
/// changes unshared nodes in place and copies shared ones.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) revision: Revision,
    pub(crate) entries: OrdMap<Arc<str>, Arc<Entry>>,
}

impl Snapshot {
    pub(crate) fn empty() -> Self {
        Self {
            revision: FIRST_REVISION,
            entries: OrdMap::new(),
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Arc<Entry>> {
        self.entries.get(key).cloned()
    }

    /// Returns one page of a list.
    pub(crate) fn list(&self, request: &ListRequest) -> Page {
        let prefix = request.prefix.as_str();
        let start = match request.after.as_deref() {
            // A continue key before the prefix must not move the start of the range before it.
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        // The end of a prefix need not be UTF-8, so the range is open and `take_while` ends it.
        let mut range = self
            .entries
            .range::<_, str>((start, Bound::Unbounded))
            .map(|(_, entry)| entry)
            .take_while(|entry| entry.key.starts_with(prefix));
        let limit = request.limit.map_or(usize::MAX, std::num::NonZeroUsize::get);
        let entries: Vec<_> = range.by_ref().take(limit).cloned().collect();
        let remaining = match request.remaining {
            _ if entries.len() < limit => 0,
            Some(remaining) => remaining.saturating_sub(entries.len() as u64),
            // `take` does not consume the element after the limit, so this counts all that remain.
            None => range.count() as u64,
        };
        Page {
            revision: self.revision,
            entries,
            remaining,
        }
    }

    /// Applies an event.
    pub(crate) fn apply(&mut self, event: &Event) {
        self.revision = event.revision;
        self.set(event.key(), event.after());
    }

    /// Reverts an event. The caller reverts the newest event first and sets the revision.
    pub(crate) fn revert(&mut self, event: &Event) {
        self.set(event.key(), event.before());
    }

    fn set(&mut self, key: &Arc<str>, entry: Option<&Arc<Entry>>) {
        match entry {
            Some(entry) => self.entries.insert(Arc::clone(key), Arc::clone(entry)),
            None => self.entries.remove(key),
        };
    }
}

/// Evaluates the condition of a write against the current entry. Returns the event, or the error.
pub(crate) fn evaluate_write(
    current: Option<Arc<Entry>>,
    key: &str,
    write: &Write,
    revision: Revision,
) -> Result<Event, StoreError> {
    let change = match (current, write) {
        (None, Write::Create { value }) => {
            let new = Entry {
                key: key.into(),
                value: value.clone(),
                create_revision: revision,
                mod_revision: revision,
                version: 1,
                reader_cache: ReaderCache::default(),
            };
            EntryChange::Create { new: Arc::new(new) }
        }
        (None, Write::Update { .. } | Write::Delete { .. }) => {
            return Err(StoreError::NotFound { key: key.to_owned() });
        }
        (Some(current), Write::Create { .. }) => return Err(StoreError::AlreadyExists { current }),
        (Some(current), Write::Update { expected, .. } | Write::Delete { expected })
            if current.mod_revision != *expected =>
        {
            let expected = *expected;
            return Err(StoreError::Conflict { current, expected });
        }
        (Some(old), Write::Update { value, .. }) => {
            let new = Entry {
                key: Arc::clone(&old.key),
                value: value.clone(),
                create_revision: old.create_revision,
                mod_revision: revision,
                version: old.version + 1,
                reader_cache: ReaderCache::default(),
            };
            let new = Arc::new(new);
            EntryChange::Update { old, new }
        }
        (Some(old), Write::Delete { .. }) => EntryChange::Delete { old },
    };
    Ok(Event { revision, change })
}

/// Checks the limits that all engines have in common.
pub(crate) fn check_write(key: &str, write: &Write) -> Result<(), StoreError> {
    key::check_key(key)?;
    match write.value() {
        Some(value) if value.len() > MAX_VALUE_BYTES => Err(too_large(key, write)),
        _ => Ok(()),
    }
}

/// Returns the error for a value that is too large.
pub(crate) fn too_large(key: &str, write: &Write) -> StoreError {
    StoreError::TooLarge {
        key: key.to_owned(),
        size: write.value().map_or(0, MaybeCompressed::len),
        limit: MAX_VALUE_BYTES,
        request: etcd::request_bytes(key, write),
    }
}
