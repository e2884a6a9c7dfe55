//! A cache of decoded objects that writes of other objects depend on: classes, limit ranges, quotas, budgets, namespaces.

use scantling_store::{Entry, Revision};
use scantling_value::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum size of stored text whose decoded objects are kept.
const MAX_BYTES: usize = 4 << 20;

/// DecodedObjects objects by the revision that wrote them. A new revision is another entry, so nothing is ever stale.
#[derive(Debug, Default)]
pub(crate) struct RelatedObjectsCache(Mutex<DecodedObjects>);

#[derive(Debug, Default)]
struct DecodedObjects {
    objects: BTreeMap<Revision, (Arc<str>, Arc<Value>)>,
    bytes: usize,
}

impl RelatedObjectsCache {
    /// Returns the objects of entries, each `None` if it must be decoded.
    pub(crate) fn get(&self, entries: &[Arc<Entry>]) -> Vec<Option<Arc<Value>>> {
        let cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let object = |entry: &Arc<Entry>| {
            let (key, object) = cache.objects.get(&entry.mod_revision)?;
            // One revision may write several keys in one transaction, so the revision alone does not identify an entry.
            (*key == entry.key).then(|| Arc::clone(object))
        };
        entries.iter().map(object).collect()
    }

    /// Caches the object of an entry. If there are too many, the cache is cleared: objects in use return with
    /// their next use.
    pub(crate) fn insert(&self, entry: &Entry, object: &Arc<Value>) {
        let size = entry.value.len();
        if size > MAX_BYTES {
            return;
        }
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Clearing is cheaper than tracking the order of use, and few objects are in use at once.
        if cache.bytes + size > MAX_BYTES {
            *cache = DecodedObjects::default();
        }
        let kept = (Arc::clone(&entry.key), Arc::clone(object));
        if cache.objects.insert(entry.mod_revision, kept).is_none() {
            cache.bytes += size;
        }
    }
}
