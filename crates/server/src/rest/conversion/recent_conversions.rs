//! A cache of recent conversions, because lists and watches need the same ones repeatedly.

use scantling_store::Entry;
use scantling_value::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// The memory of the conversions that are kept.
const KEPT: usize = 16 << 20;

/// A converted object. While it is being converted, others wait for it.
type Slot = Arc<OnceCell<Arc<Value>>>;

/// Revision, webhook and version.
type Key = (u64, u64, String);

/// The conversions of all webhooks together.
#[derive(Debug, Default)]
pub(crate) struct RecentConversions {
    webhooks: AtomicU64,
    kept: Mutex<CachedConversions>,
}

#[derive(Debug, Default)]
struct CachedConversions {
    /// With the stored size, and the memory once it is known. The oldest are evicted first.
    slots: BTreeMap<Key, (Slot, usize)>,
    bytes: usize,
}

impl CachedConversions {
    fn evict(&mut self) {
        while self.bytes > KEPT {
            // Keys begin with the revision, so the first slot is one of the oldest write.
            let Some((_, (_, size))) = self.slots.pop_first() else {
                break;
            };
            self.bytes -= size;
        }
    }
}

/// The conversions of one webhook.
#[derive(Debug)]
pub(super) struct RecentOf {
    webhook: u64,
    all: Arc<RecentConversions>,
}

impl RecentConversions {
    /// The cache of another webhook.
    pub(super) fn of_webhook(all: &Arc<RecentConversions>) -> RecentOf {
        RecentOf {
            webhook: all.webhooks.fetch_add(1, Ordering::Relaxed),
            all: Arc::clone(all),
        }
    }
}

impl RecentOf {
    fn key(&self, entry: &Entry, version: &str) -> Key {
        // API servers write one key per revision, and a changed CRD has another webhook, so an entry is never stale.
        (entry.mod_revision, self.webhook, version.to_owned())
    }

    /// The slot of an entry in a version.
    pub(super) fn slot(&self, entry: &Entry, version: &str) -> Slot {
        let mut kept = self.all.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let key = self.key(entry, version);
        if let Some((slot, _)) = kept.slots.get(&key) {
            return Arc::clone(slot);
        }
        // Until the webhook answers, the memory of the object is unknown and taken to be its stored size.
        let (slot, size) = (Slot::default(), entry.value.len());
        kept.slots.insert(key, (Arc::clone(&slot), size));
        kept.bytes += size;
        kept.evict();
        slot
    }

    /// Records the memory of a converted object.
    pub(super) fn weigh(&self, entry: &Entry, version: &str, bytes: usize) {
        let mut kept = self.all.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Evicted meanwhile. Requests that wait for the slot still have it.
        let Some((_, size)) = kept.slots.get_mut(&self.key(entry, version)) else {
            return;
        };
        let before = std::mem::replace(size, bytes);
        kept.bytes = kept.bytes - before + bytes;
        kept.evict();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scantling_store::{MaybeCompressed, ReaderCache};

    fn entry(mod_revision: u64, size: usize) -> Entry {
        Entry {
            key: "k".into(),
            value: MaybeCompressed::uncompressed(vec![b'x'; size].into()),
            create_revision: 1,
            mod_revision,
            version: 1,
            reader_cache: ReaderCache::default(),
        }
    }

    #[test]
    fn recent_conversions_are_evicted_oldest_first() {
        let all = Arc::new(RecentConversions::default());
        let (recent, other) = (
            RecentConversions::of_webhook(&all),
            RecentConversions::of_webhook(&all),
        );
        let first = recent.slot(&entry(1, 10), "v2");
        first.set(Arc::new(Value::Null)).unwrap();
        assert!(recent.slot(&entry(1, 10), "v2").initialized());
        assert!(!recent.slot(&entry(1, 10), "v3").initialized());
        assert!(!recent.slot(&entry(2, 10), "v2").initialized());
        assert!(!other.slot(&entry(1, 10), "v2").initialized());
        other.slot(&entry(3, KEPT), "v2");
        assert!(
            !recent.slot(&entry(1, 10), "v2").initialized(),
            "the large one made it go"
        );
        let small = recent.slot(&entry(4, 10), "v2");
        small.set(Arc::new(Value::Null)).unwrap();
        recent.weigh(&entry(4, 10), "v2", KEPT + 1);
        assert!(
            !recent.slot(&entry(4, 10), "v2").initialized(),
            "what counts is the memory of the converted object"
        );
        assert!(all.kept.lock().unwrap().bytes <= KEPT);
    }
}
