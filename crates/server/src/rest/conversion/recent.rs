//! A cache of recent conversions, because lists and watches need the same ones repeatedly.

use scantling_store::Entry;
use scantling_value::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// The bytes of stored objects whose conversions are kept.
const KEPT: usize = 8 << 20;

/// A converted object. While it is being converted, others wait for it.
type Slot = Arc<OnceCell<Arc<Value>>>;

/// The conversions of a webhook, into all versions together.
#[derive(Debug, Default)]
pub(super) struct Recent {
    kept: Mutex<CachedConversion>,
}

#[derive(Debug, Default)]
struct CachedConversion {
    /// By revision and version, with the stored size. The oldest are evicted first.
    slots: BTreeMap<(u64, String), (Slot, usize)>,
    bytes: usize,
}

impl Recent {
    /// The slot of an entry in a version.
    pub(super) fn slot(&self, entry: &Entry, version: &str) -> Slot {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (entry.mod_revision, version.to_owned());
        if let Some((slot, _)) = kept.slots.get(&key) {
            return Arc::clone(slot);
        }
        let (slot, size) = (Slot::default(), entry.value.len());
        kept.slots.insert(key, (Arc::clone(&slot), size));
        kept.bytes += size;
        while kept.bytes > KEPT {
            let Some((_, (_, size))) = kept.slots.pop_first() else {
                break;
            };
            kept.bytes -= size;
        }
        slot
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
        let recent = Recent::default();
        let first = recent.slot(&entry(1, 10), "v2");
        first.set(Arc::new(Value::Null)).unwrap();
        assert!(recent.slot(&entry(1, 10), "v2").initialized());
        assert!(!recent.slot(&entry(1, 10), "v3").initialized());
        assert!(!recent.slot(&entry(2, 10), "v2").initialized());
        recent.slot(&entry(3, KEPT), "v2");
        assert!(
            !recent.slot(&entry(1, 10), "v2").initialized(),
            "the large one made it go"
        );
        assert!(recent.kept.lock().unwrap().bytes <= KEPT);
    }
}
