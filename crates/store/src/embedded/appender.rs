//! Appends to a file with direct I/O, in whole blocks.
//!
//! A write through the page cache is copied there, and a flush then has to find the dirty pages. A direct
//! write is durable in about two thirds of the time. The disk accepts only whole blocks, so the last, partial
//! block is written again with the added bytes. Its old bytes stay identical, as they do when the operating
//! system writes the page.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::file::{AccessMode, DataFile, FaultInjector};
use crate::StoreError;

/// A multiple of every disk's block size.
pub(crate) const BLOCK: usize = 4096;
/// A buffer grown beyond this by one huge write is released.
const KEPT_BUFFER: usize = 8 << 20;

#[derive(Debug)]
pub(crate) struct Appender {
    file: DataFile,
    faults: Option<Arc<FaultInjector>>,
    /// The bytes of the last block before the end, then the bytes being written.
    buffer: AlignedBuffer,
    /// The end of the written part of the file.
    end: u64,
}

impl Appender {
    /// Continues at a position in a file.
    pub(crate) fn open(
        path: &Path,
        end: u64,
        faults: Option<Arc<FaultInjector>>,
    ) -> Result<Self, StoreError> {
        let file = DataFile::open_for(AccessMode::Direct, path, faults.clone())?;
        let mut buffer = AlignedBuffer::default();
        let partial_block = partial_block(end);
        if partial_block > 0 {
            // Read through the page cache, which accepts any length.
            let ordinary = DataFile::open(path, faults.clone())?;
            ordinary
                .read(buffer.reserve(partial_block), end - partial_block as u64)
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

    /// Writes bytes at the end. The end does not advance until [`Appender::flush`] reports them durable.
    pub(crate) fn write(&mut self, data: &[u8]) -> io::Result<()> {
        let partial_block = partial_block(self.end);
        let length = (partial_block + data.len()).next_multiple_of(BLOCK);
        let slice = self.buffer.reserve(length);
        let (Some(place), at) = (slice.get_mut(partial_block..), self.end - partial_block as u64) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let (place, padding) = place.split_at_mut(data.len());
        place.copy_from_slice(data);
        // The last block is written whole; zeros after the record cannot be taken for another one.
        padding.fill(0);
        let written = self.file.write(self.buffer.bytes(length)?, at);
        if written
            .as_ref()
            .is_err_and(|e| e.kind() == io::ErrorKind::InvalidInput)
            && self.file.is_direct()
        {
            // The file system rejects direct I/O: from now on, use the page cache.
            let ordinary = DataFile::open(self.file.path(), self.faults.clone());
            self.file = ordinary.map_err(|e| io::Error::other(e.to_string()))?;
            return self.file.write(self.buffer.bytes(length)?, at);
        }
        written
    }

    /// Makes the written bytes durable and advances the end by `length`.
    pub(crate) fn flush(&mut self, length: usize) -> io::Result<()> {
        self.file.flush()?;
        let whole = partial_block(self.end) + length;
        self.end += length as u64;
        self.buffer.keep(whole - partial_block(self.end)..whole)
    }
}

/// The number of bytes of the last block before the end of the file.
fn partial_block(end: u64) -> usize {
    usize::try_from(end % BLOCK as u64).unwrap_or_default()
}

/// A block-aligned buffer.
#[derive(Debug, Default)]
struct AlignedBuffer {
    bytes: Vec<u8>,
    /// The offset of the first aligned byte.
    start: usize,
}

impl AlignedBuffer {
    /// Returns a slice of at least `length` bytes; existing bytes stay at the front.
    fn reserve(&mut self, length: usize) -> &mut [u8] {
        if self.bytes.len() < self.start + length {
            // One block more, because the allocation itself need not be aligned.
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

    /// Moves a range to the front and discards the other bytes.
    fn keep(&mut self, range: std::ops::Range<usize>) -> io::Result<()> {
        if self.bytes.len() > KEPT_BUFFER {
            let kept: Vec<u8> = self.bytes(range.end)?.iter().skip(range.start).copied().collect();
            *self = Self::default();
            self.reserve(kept.len().max(BLOCK))
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
                // A write that is not flushed is overwritten by the next one.
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
