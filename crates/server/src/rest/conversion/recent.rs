//! What a webhook made of stored objects lately: lists and watches ask for the same ones again and again.

use scantling_store::Entry;
use scantling_value::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// The bytes of stored objects whose conversions are kept.
const KEPT: usize = 8 << 20;

/// A converted object, or the place for it while it is being made: whoever else wants it waits.
type Slot = Arc<OnceCell<Arc<Value>>>;

/// The conversions of a webhook, into all versions together.
#[derive(Debug, Default)]
pub(super) struct Recent {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// By revision and version, with the size of what is stored. The oldest go first.
    slots: BTreeMap<(u64, String), (Slot, usize)>,
    bytes: usize,
}

impl Recent {
    /// The place for what a version shows of an entry.
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
    fn conversions_are_kept_by_version_and_the_oldest_go() {
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
