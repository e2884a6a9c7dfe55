//! Facts about a stored value that the server caches on its entry.
//!
//! Most objects are sent as they are stored, with their resource version inserted. Whether that holds for an
//! entry is determined once, by normalizing the object and comparing; the result is cached until its kind
//! changes.

use crate::api::ResourceRequest;
use crate::kinds::kind::Kind;
use scantling_merge::apply::TypeCheck;
use scantling_store::Entry;
use std::sync::atomic::{AtomicU32, Ordering};

/// The facts about an entry whose value is normalized: the storage version of its kind shows it as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryFacts {
    /// The state of the kind for which the facts hold; zero if nothing is cached.
    serial: u32,
    /// The offset at which the resource version is inserted.
    place: u32,
    /// The result of checking the object against its type for field ownership.
    typed: TypeCheck,
}

/// The bit for objects that conform to their type. The offset is below.
const TYPED: u32 = 1 << 31;

impl From<EntryFacts> for u64 {
    fn from(cache: EntryFacts) -> u64 {
        let typed = match cache.typed {
            TypeCheck::Unknown => 0,
            TypeCheck::Verified => TYPED,
        };
        u64::from(cache.serial) << 32 | u64::from(cache.place | typed)
    }
}

impl From<u64> for EntryFacts {
    fn from(bits: u64) -> EntryFacts {
        let [a, b, c, d, e, f, g, h] = bits.to_be_bytes();
        let low = u32::from_be_bytes([e, f, g, h]);
        EntryFacts {
            serial: u32::from_be_bytes([a, b, c, d]),
            place: low & !TYPED,
            typed: match low & TYPED {
                0 => TypeCheck::Unknown,
                _ => TypeCheck::Verified,
            },
        }
    }
}

/// Returns a number for a new state of a kind; facts of other states do not count. Zero is never returned.
pub(crate) fn next_serial() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    // Zero marks an entry without facts, so it must not name a state even after the counter wraps around.
    LAST.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1)
}

impl EntryFacts {
    /// Returns the facts that hold for the current state of a kind.
    pub(crate) fn get(kind: &Kind, entry: &Entry) -> Option<EntryFacts> {
        let cache: EntryFacts = entry.reader_cache.get();
        (cache.serial == kind.serial).then_some(cache)
    }

    /// Returns the facts that hold for the version of a request.
    pub(crate) fn for_request(call: &ResourceRequest<'_>, entry: &Entry) -> Option<EntryFacts> {
        // Another version needs at least another `apiVersion`, so its text is not the stored one.
        EntryFacts::get(call.kind, entry).filter(|_| call.version.storage)
    }

    /// Records that the value of an entry is normalized. An offset that is absent or too large is not recorded.
    pub(crate) fn set(kind: &Kind, entry: &Entry, place: Option<usize>, typed: TypeCheck) {
        let place = place.and_then(|place| u32::try_from(place).ok());
        if let Some(place) = place.filter(|place| place & TYPED == 0) {
            let serial = kind.serial;
            entry.reader_cache.set(EntryFacts { serial, place, typed });
        }
    }

    /// The offset at which the resource version is inserted.
    pub(crate) fn place(self) -> u32 {
        self.place
    }
}

/// Returns whether a request shows an entry as it is stored.
pub(crate) fn is_normalized(call: &ResourceRequest<'_>, entry: &Entry) -> bool {
    EntryFacts::for_request(call, entry).is_some()
}

/// Returns whether the object of an entry is known to have the type by which its fields are owned.
pub(crate) fn known_type(call: &ResourceRequest<'_>, entry: &Entry) -> TypeCheck {
    EntryFacts::for_request(call, entry).map_or(TypeCheck::Unknown, |cache| cache.typed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_survive_packing() {
        for (serial, place) in [(0, 0), (1, 5), (u32::MAX, TYPED - 1)] {
            for typed in [TypeCheck::Unknown, TypeCheck::Verified] {
                let cache = EntryFacts { serial, place, typed };
                assert_eq!(EntryFacts::from(u64::from(cache)), cache);
            }
        }
    }
}
