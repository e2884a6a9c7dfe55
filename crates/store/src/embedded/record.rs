//! The encoding of batches of events.
//!
//! A record is a batch that becomes durable as a whole: a header of 24 bytes (magic, payload length,
//! checksum, number of events, first revision) and the events. Every event holds the entry before and after
//! the write, so a record is self-contained. Values are stored as they are in memory, large ones compressed.
//! A record without events is a compaction, or it seals a segment and names the next one. Numbers are
//! little-endian.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::{Entry, EntryChange, Event, MaybeCompressed, ReaderCache, Revision};

/// The magic number at the beginning of a record: `TNSJ` in the file.
const MARK: u32 = 0x4a53_4e54;
/// The length of a header.
pub(crate) const HEADER: usize = 24;

/// A flag in the length of a compressed value; the uncompressed length follows.
const COMPRESSED: usize = 1 << 31;

/// The size of the record that ends a segment.
pub(crate) const SEAL_BYTES: usize = HEADER + 16;

// Bytes in existing journals: these numbers never change.
const CREATE: u8 = 0;
const UPDATE: u8 = 1;
const DELETE: u8 = 2;

/// Identifies a segment of one journal. Segments of other journals have the same numbers, but another salt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SegmentId {
    pub(crate) number: u64,
    /// A random number, part of the checksum of every record in the segment.
    pub(crate) salt: u64,
}

impl SegmentId {
    /// Creates the id of a first segment, with a new salt.
    pub(crate) fn first() -> Self {
        Self::with_number(1)
    }

    /// Creates the id of the next segment, with a new salt.
    pub(crate) fn following(self) -> Self {
        Self::with_number(self.number + 1)
    }

    fn with_number(number: u64) -> Self {
        Self {
            number,
            // `RandomState` has random keys.
            salt: RandomState::new().hash_one(number),
        }
    }
}

/// An upper bound of the encoded size of an event.
pub(crate) fn size(event: &Event) -> usize {
    let entries = [event.before(), event.after()];
    5 + event.key().len()
        + entries
            .into_iter()
            .flatten()
            .map(|entry| 32 + entry.value.memory_bytes())
            .sum::<usize>()
}

/// A record under construction.
#[derive(Debug)]
pub(crate) struct RecordBuilder {
    /// Space for the header, then the payload.
    bytes: Vec<u8>,
    count: usize,
    first: Revision,
}

impl RecordBuilder {
    /// Starts a record for a batch with consecutive revisions; `expected` is the capacity in bytes.
    pub(crate) fn events(expected: usize) -> Self {
        let mut bytes = Vec::with_capacity(expected.max(HEADER));
        bytes.resize(HEADER, 0);
        Self {
            bytes,
            count: 0,
            first: 0,
        }
    }

    /// Creates a compaction record; `next` is the next revision.
    pub(crate) fn compaction(revision: Revision, next: Revision) -> Self {
        let mut draft = Self::events(HEADER + 8);
        draft.bytes.extend_from_slice(&revision.to_le_bytes());
        draft.first = next;
        draft
    }

    /// Creates the record that seals a segment; `next` is the first revision of the following segment.
    pub(crate) fn seal_record(following: SegmentId, next: Revision) -> Self {
        let mut draft = Self::events(SEAL_BYTES);
        for number in [following.number, following.salt] {
            draft.bytes.extend_from_slice(&number.to_le_bytes());
        }
        draft.first = next;
        draft
    }

    /// The length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The first revision.
    pub(crate) fn first(&self) -> Revision {
        self.first
    }

    /// Adds an event.
    pub(crate) fn add(&mut self, event: &Event) {
        if self.count == 0 {
            self.first = event.revision;
        }
        self.count += 1;
        let out = &mut self.bytes;
        out.push(match &event.change {
            EntryChange::Create { .. } => CREATE,
            EntryChange::Update { .. } => UPDATE,
            EntryChange::Delete { .. } => DELETE,
        });
        let key = event.key();
        put_length(key.len(), out);
        out.extend_from_slice(key.as_bytes());
        for entry in [event.before(), event.after()].into_iter().flatten() {
            for number in [entry.create_revision, entry.mod_revision, entry.version] {
                out.extend_from_slice(&number.to_le_bytes());
            }
            let (held, unpacked) = entry.value.parts();
            match unpacked {
                None => put_length(held.len(), out),
                Some(length) => {
                    put_length(held.len() | COMPRESSED, out);
                    put_length(length, out);
                }
            }
            out.extend_from_slice(held);
        }
    }

    /// Completes the header and returns the bytes. The salt distinguishes the record from other data in a
    /// recycled file.
    pub(crate) fn seal(&mut self, salt: u64) -> io::Result<&[u8]> {
        let Some((header, payload)) = self.bytes.split_first_chunk_mut::<HEADER>() else {
            return Err(io::Error::other(
                "a record of the journal has no room for its header",
            ));
        };
        header[..4].copy_from_slice(&MARK.to_le_bytes());
        header[4..8].copy_from_slice(&length_field(payload.len()));
        header[12..16].copy_from_slice(&length_field(self.count));
        header[16..].copy_from_slice(&self.first.to_le_bytes());
        let sum = checksum(salt, header, payload);
        // Written last: the checksum covers the other fields of the header.
        header[8..12].copy_from_slice(&sum.to_le_bytes());
        Ok(&self.bytes)
    }
}

/// Keys and values are far below 4 GiB. If one were not, the record would not decode, and the write would
/// fail.
fn length_field(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

fn put_length(length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&length_field(length));
}

/// Computes the checksum of the header (without the checksum field) and the payload.
fn checksum(salt: u64, header: &[u8; HEADER], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&salt.to_le_bytes());
    hasher.update(&header[..8]);
    hasher.update(&header[12..]);
    hasher.update(payload);
    hasher.finalize()
}

/// The result of a search for records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordSearch {
    Found,
    Nothing,
    /// The bytes end before it is clear whether they contain a record at this offset; `size` is the length it
    /// would have.
    Unclear {
        at: usize,
        size: usize,
    },
}

/// A record at the front of a byte slice.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    pub(crate) first: Revision,
    count: u32,
    payload: &'a [u8],
}

impl<'a> Record<'a> {
    /// Decodes the header of the record that the bytes begin with; `None` unless it is complete and its
    /// checksum matches.
    pub(crate) fn find(bytes: &'a [u8], salt: u64) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
        let mut fields = ByteReader { rest: header };
        if fields.u32()? != MARK {
            return None;
        }
        let length = usize::try_from(fields.u32()?).ok()?;
        let sum = fields.u32()?;
        let count = fields.u32()?;
        let first = fields.u64()?;
        let payload = rest.get(..length)?;
        (checksum(salt, header, payload) == sum).then_some(Self {
            first,
            count,
            payload,
        })
    }

    /// The length that the header at the front of the bytes claims; `None` if no record begins there.
    pub(crate) fn claimed(bytes: &[u8]) -> Option<usize> {
        let mut fields = ByteReader { rest: bytes };
        match fields.u32() {
            Some(MARK) => {}
            Some(_) => return None,
            // Fewer bytes than a magic number may still be the beginning of a record.
            None => return Some(HEADER),
        }
        let length = fields.u32().and_then(|length| usize::try_from(length).ok());
        Some(HEADER.saturating_add(length.unwrap_or(0)))
    }

    /// Searches the bytes for a complete record.
    pub(crate) fn search(bytes: &[u8], salt: u64) -> RecordSearch {
        for at in memchr::memmem::find_iter(bytes, &MARK.to_le_bytes()) {
            let rest = bytes.get(at..).unwrap_or_default();
            match Self::claimed(rest) {
                Some(size) if rest.len() < size.max(HEADER) => return RecordSearch::Unclear { at, size },
                _ if Record::find(rest, salt).is_some() => return RecordSearch::Found,
                _ => {}
            }
        }
        RecordSearch::Nothing
    }

    pub(crate) fn len(&self) -> usize {
        HEADER + self.payload.len()
    }

    /// Decodes the content; `None` if the bytes are malformed despite a valid checksum.
    pub(crate) fn content(&self) -> Option<RecordContent> {
        let mut reader = ByteReader { rest: self.payload };
        let content = if self.count == 0 {
            // The length of the payload distinguishes the two kinds of records without events.
            match (reader.u64()?, reader.rest) {
                (revision, []) => RecordContent::Compaction(revision),
                (number, _) => RecordContent::Seal(SegmentId {
                    number,
                    salt: reader.u64()?,
                }),
            }
        } else {
            let end = self.first.checked_add(self.count.into())?;
            // The revisions of a batch are consecutive, so only the first one is stored.
            let events = (self.first..end).map(|at| reader.event(at).map(Arc::new));
            RecordContent::Events(events.collect::<Option<_>>()?)
        };
        reader.rest.is_empty().then_some(content)
    }
}

/// The decoded content of a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RecordContent {
    Events(Vec<Arc<Event>>),
    /// History up to this revision is compacted.
    Compaction(Revision),
    /// The segment ends here; this one follows.
    Seal(SegmentId),
}

struct ByteReader<'a> {
    rest: &'a [u8],
}

impl<'a> ByteReader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn length_prefixed(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.u32()?).ok()?;
        self.take(length)
    }

    fn entry(&mut self, key: &Arc<str>) -> Option<Arc<Entry>> {
        let (create_revision, mod_revision, version) = (self.u64()?, self.u64()?, self.u64()?);
        let held = usize::try_from(self.u32()?).ok()?;
        let value = if held & COMPRESSED == 0 {
            MaybeCompressed::new(Bytes::copy_from_slice(self.take(held)?))
        } else {
            let length = usize::try_from(self.u32()?).ok()?;
            MaybeCompressed::from_block(self.take(held & !COMPRESSED)?, length)?
        };
        Some(Arc::new(Entry {
            key: Arc::clone(key),
            value,
            create_revision,
            mod_revision,
            version,
            reader_cache: ReaderCache::default(),
        }))
    }

    fn event(&mut self, revision: Revision) -> Option<Event> {
        let kind = *self.take(1)?.first()?;
        let key: Arc<str> = std::str::from_utf8(self.length_prefixed()?).ok()?.into();
        let change = match kind {
            CREATE => EntryChange::Create {
                new: self.entry(&key)?,
            },
            UPDATE => EntryChange::Update {
                old: self.entry(&key)?,
                new: self.entry(&key)?,
            },
            DELETE => EntryChange::Delete {
                old: self.entry(&key)?,
            },
            _ => return None,
        };
        Some(Event { revision, change })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Write;
    use crate::state::{Snapshot, evaluate_write};

    fn history() -> Vec<Arc<Event>> {
        let mut state = Snapshot::empty();
        let mut events = Vec::new();
        for write in [
            Write::Create { value: "one".into() },
            Write::Update {
                value: "".into(),
                expected: 2,
            },
            Write::Update {
                value: "long ".repeat(10_000).into(),
                expected: 3,
            },
            Write::Delete { expected: 4 },
        ] {
            let key = "/registry/ü";
            let event = evaluate_write(state.get(key), key, &write, state.revision + 1).unwrap();
            state.apply(&event);
            events.push(Arc::new(event));
        }
        events
    }

    fn encode(events: &[Arc<Event>]) -> Vec<u8> {
        let mut draft = RecordBuilder::events(0);
        for event in events {
            draft.add(event);
        }
        draft.seal(7).unwrap().to_vec()
    }

    #[test]
    fn records_round_trip() {
        let events = history();
        let mut bytes = encode(&events);
        assert!(bytes.len() <= HEADER + events.iter().map(|event| size(event)).sum::<usize>());
        bytes.extend_from_slice(b"what follows");
        let record = Record::find(&bytes, 7).unwrap();
        assert_eq!(record.content(), Some(RecordContent::Events(events)));
        assert_eq!(record.len(), bytes.len() - 12);
        assert!(
            Record::find(&bytes, 8).is_none(),
            "a record of another file is none of ours"
        );
        let hidden = [b"noise", bytes.as_slice()].concat();
        assert_eq!(Record::search(&hidden, 7), RecordSearch::Found);
        assert_eq!(Record::search(&hidden, 8), RecordSearch::Nothing);
        let (at, size) = (5, record.len());
        let cut = Record::search(hidden.get(..at + size - 1).unwrap(), 7);
        assert_eq!(cut, RecordSearch::Unclear { at, size });
    }

    #[test]
    fn compactions_round_trip() {
        let mut draft = RecordBuilder::compaction(5, 9);
        let record = Record::find(draft.seal(7).unwrap(), 7).unwrap();
        assert_eq!(
            (record.first, record.content()),
            (9, Some(RecordContent::Compaction(5)))
        );
    }

    #[test]
    fn seals_round_trip() {
        let following = SegmentId { number: 3, salt: 11 };
        let mut draft = RecordBuilder::seal_record(following, 9);
        assert_eq!(draft.len(), SEAL_BYTES);
        let record = Record::find(draft.seal(7).unwrap(), 7).unwrap();
        assert_eq!(
            (record.first, record.content()),
            (9, Some(RecordContent::Seal(following)))
        );
    }

    proptest! {
        #[test]
        fn a_changed_bit_is_noticed(bit in 0..8_usize, at in any::<proptest::sample::Index>()) {
            let mut bytes = encode(&history());
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(Record::find(&bytes, 7).is_none());
            prop_assert!(Record::search(&bytes, 7) != RecordSearch::Found);
        }

        #[test]
        fn a_torn_record_is_none(cut in any::<proptest::sample::Index>()) {
            let mut bytes = encode(&history());
            bytes.truncate(cut.index(bytes.len()));
            prop_assert!(Record::find(&bytes, 7).is_none());
        }
    }
}
