//! The model of a store: the list of all writes, from which everything else follows.

use std::collections::BTreeMap;

use scantling_store::{Entry, Event, MaybeCompressed, ReaderCache, Revision, StoreError, Write};

/// The outcome of an operation, comparable between stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WriteOutcome {
    Written,
    Exists,
    Missing,
    Conflict,
}

impl WriteOutcome {
    pub(crate) fn from_result(result: &Result<Event, StoreError>) -> Self {
        match result {
            Ok(_) => Self::Written,
            Err(StoreError::AlreadyExists { .. }) => Self::Exists,
            Err(StoreError::NotFound { .. }) => Self::Missing,
            Err(StoreError::Conflict { .. }) => Self::Conflict,
            Err(other) => panic!("unexpected: {other}"),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct StoreModel {
    writes: Vec<(Revision, String, Option<MaybeCompressed>)>,
}

impl StoreModel {
    /// Returns the expected outcome of a write.
    pub(crate) fn expect(&self, key: &str, write: &Write) -> WriteOutcome {
        let current = self.state(Revision::MAX).get(key).map(|entry| entry.mod_revision);
        match (current, write) {
            (None, Write::Create { .. }) => WriteOutcome::Written,
            (Some(_), Write::Create { .. }) => WriteOutcome::Exists,
            (None, _) => WriteOutcome::Missing,
            (Some(at), Write::Update { expected, .. } | Write::Delete { expected }) if at != *expected => {
                WriteOutcome::Conflict
            }
            (Some(_), _) => WriteOutcome::Written,
        }
    }

    /// Records a write.
    pub(crate) fn record(&mut self, revision: Revision, key: &str, write: &Write) {
        let last = self.writes.last().map_or(0, |(revision, _, _)| *revision);
        assert!(revision > last, "revision {revision} after {last}");
        self.writes
            .push((revision, key.to_owned(), write.value().cloned()));
    }

    /// All keys at a revision.
    pub(crate) fn state(&self, at: Revision) -> BTreeMap<String, Entry> {
        let mut state: BTreeMap<String, Entry> = BTreeMap::new();
        for (revision, key, value) in self.writes.iter().filter(|(revision, _, _)| *revision <= at) {
            match value {
                None => {
                    state.remove(key);
                }
                Some(value) => {
                    let old = state.get(key);
                    let entry = Entry {
                        key: key.as_str().into(),
                        value: value.clone(),
                        create_revision: old.map_or(*revision, |old| old.create_revision),
                        mod_revision: *revision,
                        version: old.map_or(1, |old| old.version + 1),
                        reader_cache: ReaderCache::default(),
                    };
                    state.insert(key.clone(), entry);
                }
            }
        }
        state
    }

    /// The writes to a prefix after a revision: revision, key, state before, state after.
    pub(crate) fn events(
        &self,
        prefix: &str,
        after: Revision,
    ) -> Vec<(Revision, String, Option<Entry>, Option<Entry>)> {
        let of = |at, key: &str| self.state(at).remove(key);
        let wanted = self
            .writes
            .iter()
            .filter(|(at, key, _)| *at > after && key.starts_with(prefix));
        wanted
            .map(|(at, key, _)| (*at, key.clone(), of(at - 1, key), of(*at, key)))
            .collect()
    }

    /// The `nth` revision of the past.
    pub(crate) fn revision(&self, nth: usize) -> Option<Revision> {
        (!self.writes.is_empty()).then(|| self.writes[nth % self.writes.len()].0)
    }
}
