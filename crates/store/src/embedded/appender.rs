//! The end of a file to which whole blocks are written, past the system's cache of files.
//!
//! A write that goes through that cache is copied there, and a flush then has to find what was written. Written
//! directly, the same bytes are on disk in about two thirds of the time. The disk takes whole blocks only, so that
//! the block in which the file ends for now is written again with what is added to it, byte for byte as it was: that
//! is what the system does, too.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::file::{AccessMode, DataFile, FaultInjector};
use crate::StoreError;

/// A multiple of what any disk asks for.
pub(crate) const BLOCK: usize = 4096;
/// A buffer that one huge write has grown beyond this is not kept.
const KEPT_BUFFER: usize = 8 << 20;

#[derive(Debug)]
pub(crate) struct Appender {
    file: DataFile,
    faults: Option<Arc<FaultInjector>>,
    /// The bytes in front of the end that share its block, then what is being written.
    buffer: AlignedBuffer,
    /// The end of the written part of the file.
    end: u64,
}

impl Appender {
    /// Goes on at a place in a file.
    pub(crate) fn open(
        path: &Path,
        end: u64,
        faults: Option<Arc<FaultInjector>>,
    ) -> Result<Self, StoreError> {
        let file = DataFile::open_for(AccessMode::Direct, path, faults.clone())?;
        let mut buffer = AlignedBuffer::default();
        let begun = begun(end);
        if begun > 0 {
            // Read through the system's cache, which takes any length.
            let ordinary = DataFile::open(path, faults.clone())?;
            ordinary
                .read(buffer.room(begun), end - begun as u64)
                .map_err(|source| super::file::io_error("read", path, source))?;
        }
        Ok(Self {
            file,
            faults,
            buffer,
            end,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Writes bytes at the end, which stays where it is until [`Appender::flush`] says that they are on disk.
    pub(crate) fn write(&mut self, data: &[u8]) -> io::Result<()> {
        let begun = begun(self.end);
        let length = (begun + data.len()).next_multiple_of(BLOCK);
        let room = self.buffer.room(length);
        let (Some(place), at) = (room.get_mut(begun..), self.end - begun as u64) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let (place, padding) = place.split_at_mut(data.len());
        place.copy_from_slice(data);
        padding.fill(0);
        let written = self.file.write(self.buffer.bytes(length)?, at);
        if written
            .as_ref()
            .is_err_and(|e| e.kind() == io::ErrorKind::InvalidInput)
            && self.file.is_direct()
        {
            // The file system does not do this after all: from now on in the ordinary way.
            let ordinary = DataFile::open(self.file.path(), self.faults.clone());
            self.file = ordinary.map_err(|e| io::Error::other(e.to_string()))?;
            return self.file.write(self.buffer.bytes(length)?, at);
        }
        written
    }

    /// Makes what was written durable, and puts the end after as many bytes of it.
    pub(crate) fn flush(&mut self, length: usize) -> io::Result<()> {
        self.file.flush()?;
        let whole = begun(self.end) + length;
        self.end += length as u64;
        self.buffer.keep(whole - begun(self.end)..whole)
    }
}

/// How many bytes of the block in which a file ends are in front of its end.
fn begun(end: u64) -> usize {
    usize::try_from(end % BLOCK as u64).unwrap_or_default()
}

/// Bytes that begin where a block does, in memory, too.
#[derive(Debug, Default)]
struct AlignedBuffer {
    bytes: Vec<u8>,
    /// The offset of the first aligned byte.
    start: usize,
}

impl AlignedBuffer {
    /// At least so many bytes; those that were there before stay in front.
    fn room(&mut self, length: usize) -> &mut [u8] {
        if self.bytes.len() < self.start + length {
            let mut grown = vec![0; length.next_power_of_two() + BLOCK];
            let start = grown.as_ptr().align_offset(BLOCK);
            let old = self.bytes.get(self.start..).unwrap_or_default();
            let kept = old.len().min(length);
            if let (Some(to), Some(old)) = (grown.get_mut(start..start + kept), old.get(..kept)) {
                to.copy_from_slice(old);
            }
            (self.bytes, self.start) = (grown, start);
        }
        self.bytes
            .get_mut(self.start..self.start + length)
            .unwrap_or_default()
    }

    fn bytes(&self, length: usize) -> io::Result<&[u8]> {
        let bytes = self.bytes.get(self.start..self.start + length);
        bytes.ok_or_else(|| io::Error::other("the journal's buffer holds less than was written to it"))
    }

    /// Moves some of the bytes to the front; the others are forgotten.
    fn keep(&mut self, range: std::ops::Range<usize>) -> io::Result<()> {
        if self.bytes.len() > KEPT_BUFFER {
            let kept: Vec<u8> = self.bytes(range.end)?.iter().skip(range.start).copied().collect();
            *self = Self::default();
            self.room(kept.len().max(BLOCK))
                .iter_mut()
                .zip(kept)
                .for_each(|(to, from)| *to = from);
            return Ok(());
        }
        let (from, to) = (self.start + range.start, self.start + range.end);
        self.bytes.copy_within(from..to, self.start);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_appended_is_there(
            start in 0..10_000_u64,
            lengths in proptest::collection::vec(1..20_000_usize, 1..8),
            reopened in any::<bool>(),
        ) {
            let file = tempfile::NamedTempFile::new().unwrap();
            let mut expected = vec![7; usize::try_from(start).unwrap()];
            std::fs::write(file.path(), &expected).unwrap();
            let mut appender = Appender::open(file.path(), start, None).unwrap();
            for (n, length) in lengths.into_iter().enumerate() {
                let data = vec![u8::try_from(n).unwrap() + 8; length];
                // One that is not flushed is written over.
                appender.write(&vec![99; length / 2 + 1]).unwrap();
                appender.write(&data).unwrap();
                appender.flush(length).unwrap();
                expected.extend(&data);
                prop_assert_eq!(appender.end(), expected.len() as u64);
                if reopened {
                    appender = Appender::open(file.path(), appender.end(), None).unwrap();
                }
                let found = std::fs::read(file.path()).unwrap();
                prop_assert_eq!(found.len() % BLOCK, 0);
                prop_assert!(found.starts_with(&expected));
            }
        }
    }
}
