//! The objects of recent events, decoded once for all watchers that select by labels or fields.

use crate::status::ApiResult;
use scantling_store::Entry;
use scantling_value::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum number of stored bytes of cached objects.
const MAX_STORED_BYTES: usize = 4 << 20;

/// The maximum number of cached objects.
const MAX_OBJECTS: usize = 64;

/// A cache of decoded objects, the newest first.
#[derive(Debug, Default)]
pub(crate) struct RecentObjects {
    kept: Mutex<VecDeque<CachedObject>>,
}

#[derive(Debug)]
struct CachedObject {
    entry: Arc<Entry>,
    form: ServedForm,
    object: Arc<Value>,
}

/// The form of an object: a version of one state of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServedForm {
    pub(super) serial: u32,
    pub(super) version: usize,
}

impl RecentObjects {
    /// Returns the object of an entry, decoded on first use.
    pub(super) fn object(
        &self,
        entry: &Arc<Entry>,
        form: ServedForm,
        decode: impl FnOnce() -> ApiResult<Value>,
    ) -> ApiResult<Arc<Value>> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // The cache holds the entry, so its address is not reused while it is compared.
        let is_same = |k: &&CachedObject| Arc::ptr_eq(&k.entry, entry) && k.form == form;
        if let Some(found) = kept().iter().find(is_same) {
            return Ok(Arc::clone(&found.object));
        }
        // Decoded without the lock: other watchers may decode the same object meanwhile, which costs only time.
        let object = Arc::new(decode()?);
        let mut kept = kept();
        kept.push_front(CachedObject {
            entry: Arc::clone(entry),
            form,
            object: Arc::clone(&object),
        });
        let mut bytes = 0;
        let fits = |k: &CachedObject| {
            bytes += k.entry.value.len();
            bytes <= MAX_STORED_BYTES
        };
        let count = kept.iter().map(fits).take_while(|fits| *fits).count();
        // The newest stays whatever its size, because every watcher needs it.
        kept.truncate(count.clamp(1, MAX_OBJECTS));
        Ok(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scantling_store::{MaybeCompressed, ReaderCache};

    fn entry(bytes: usize) -> Arc<Entry> {
        Arc::new(Entry {
            key: "/registry/a".into(),
            value: MaybeCompressed::uncompressed(vec![b'x'; bytes].into()),
            create_revision: 1,
            mod_revision: 1,
            version: 1,
            reader_cache: ReaderCache::default(),
        })
    }

    #[test]
    fn decoded_objects_are_cached_and_bounded() {
        let recent = RecentObjects::default();
        let mut decoded = 0;
        let mut ask = |entry: &Arc<Entry>, version| {
            let form = ServedForm { serial: 1, version };
            let object = recent.object(entry, form, || {
                decoded += 1;
                Ok(Value::Null)
            });
            assert!(object.is_ok());
            decoded
        };
        let (small, large) = (entry(10), entry(MAX_STORED_BYTES + 1));
        assert_eq!([ask(&small, 0), ask(&small, 0), ask(&small, 1)], [1, 1, 2]);
        // An object that fills the cache stays until the next one.
        assert_eq!([ask(&large, 0), ask(&large, 0), ask(&small, 0)], [3, 3, 4]);
        for _ in 0..2 * MAX_OBJECTS {
            ask(&entry(10), 0);
        }
        assert_eq!(recent.kept.lock().unwrap().len(), MAX_OBJECTS);
    }
}
