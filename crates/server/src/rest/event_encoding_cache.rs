//! A cache of recent events in their encoding, so that each is encoded once for all watchers.

use crate::codec::cbor;
use crate::codec::media::Encoding;
use crate::codec::order;
use crate::codec::protobuf;
use bytes::Bytes;
use scantling_value::Value;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The type of an event, as a client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WatchEventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

impl WatchEventType {
    /// The type on the wire.
    fn word(self) -> &'static str {
        match self {
            WatchEventType::Added => "ADDED",
            WatchEventType::Modified => "MODIFIED",
            WatchEventType::Deleted => "DELETED",
            WatchEventType::Bookmark => "BOOKMARK",
            WatchEventType::Error => "ERROR",
        }
    }

    /// Appends the event in the encoding of a stream.
    pub(crate) fn write_object(self, out: &mut Vec<u8>, object: &Value, encoding: Encoding) {
        let framed = match encoding {
            Encoding::Protobuf => protobuf::event(self.word(), object),
            Encoding::Cbor => Some(cbor::event(self.word(), object)),
            Encoding::Json | Encoding::Yaml => None,
        };
        match framed {
            Some(event) => out.extend_from_slice(&event),
            None => self.write(out, |out| order::write(object, out)),
        }
    }

    /// Appends the event as a line of JSON.
    pub(crate) fn write(self, out: &mut Vec<u8>, object: impl FnOnce(&mut Vec<u8>)) {
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(self.word().as_bytes());
        out.extend_from_slice(b"\",\"object\":");
        object(out);
        out.extend_from_slice(b"}\n");
    }
}

/// The key of a line: a write, in one version of one state of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EventKey {
    pub(crate) revision: u64,
    pub(crate) serial: u32,
    pub(crate) version: usize,
    pub(crate) event_type: WatchEventType,
}

/// The bytes of lines that are kept. Watchers that lag behind render theirs again.
const KEPT: usize = 4 << 20;

/// The encoded lines of recent events, of all kinds together.
#[derive(Debug, Default)]
pub(crate) struct EventEncodingCache {
    kept: Mutex<CachedLines>,
}

#[derive(Debug, Default)]
struct CachedLines {
    lines: BTreeMap<EventKey, Bytes>,
    bytes: usize,
}

impl EventEncodingCache {
    /// Returns a line, key is rendered on first use.
    pub(crate) fn line<E>(
        &self,
        key: EventKey,
        write: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Bytes, E> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = kept().lines.get(&key) {
            return Ok(line.clone());
        }
        // Rendered without the lock. Two watchers may render the same line; the result is the same.
        let line = Bytes::from(write()?);
        let mut kept = kept();
        if kept.lines.insert(key, line.clone()).is_none() {
            kept.bytes += line.len();
        }
        while kept.bytes > KEPT {
            // Keys begin with the revision, so the first line is one of the oldest write.
            let Some((_, oldest)) = kept.lines.pop_first() else {
                break;
            };
            kept.bytes -= oldest.len();
        }
        Ok(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watch_lines_are_cached_and_evicted() {
        let lines = EventEncodingCache::default();
        let key = |revision| EventKey {
            revision,
            serial: 1,
            version: 0,
            event_type: WatchEventType::Added,
        };
        let mut written = 0;
        for revision in [1, 1, 2, 3, 1] {
            let size = if revision == 3 { KEPT } else { 10 };
            let line = lines.line(key(revision), || {
                written += 1;
                Ok::<_, ()>(vec![b'x'; size])
            });
            assert_eq!(line.unwrap().len(), size);
        }
        assert_eq!(written, 4, "the third made the first go");
        assert!(lines.kept.lock().unwrap().bytes <= KEPT);
    }
}
