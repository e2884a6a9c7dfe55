//! Reads a segment of the journal in chunks. Most of a segment is pre-allocated zeros, which need not be in memory at
//! once.

use std::io;

use super::file::DataFile;
use super::record::{Record, RecordSearch};

/// The bytes per read.
const CHUNK_BYTES: usize = 1 << 20;

/// A segment reader with a buffer.
#[derive(Debug)]
pub(crate) struct SegmentReader {
    file: DataFile,
    length: u64,
    /// The end of the part that has been read.
    read: u64,
    bytes: Vec<u8>,
    /// The number of consumed bytes in the buffer.
    done: usize,
}

impl SegmentReader {
    pub(crate) fn new(file: DataFile) -> io::Result<Self> {
        let mut segment = Self {
            length: file.len()?,
            file,
            read: 0,
            bytes: Vec::new(),
            done: 0,
        };
        let first = usize::try_from(segment.length)
            .unwrap_or(CHUNK_BYTES)
            .min(CHUNK_BYTES);
        segment.read_up_to(first)?;
        Ok(segment)
    }

    /// The length of the file.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Returns the bytes that are read but not consumed.
    pub(crate) fn rest(&self) -> &[u8] {
        self.bytes.get(self.done..).unwrap_or_default()
    }

    /// Returns the file offset of the first unconsumed byte.
    pub(crate) fn offset(&self) -> u64 {
        self.read - self.rest().len() as u64
    }

    /// Consumes bytes.
    pub(crate) fn skip(&mut self, count: usize) {
        self.done = self.bytes.len().min(self.done + count);
    }

    /// Reads until at least `count` unconsumed bytes are available. Returns whether they are.
    pub(crate) fn read_up_to(&mut self, count: usize) -> io::Result<bool> {
        if self.rest().len() >= count {
            return Ok(true);
        }
        let left = usize::try_from(self.length - self.read).unwrap_or(usize::MAX);
        if left < count - self.rest().len() {
            return Ok(false);
        }
        self.bytes.drain(..self.done);
        self.done = 0;
        let more = (count - self.bytes.len()).max(CHUNK_BYTES).min(left);
        let begin = self.bytes.len();
        self.bytes.resize(begin + more, 0);
        self.file
            .read(self.bytes.get_mut(begin..).unwrap_or_default(), self.read)?;
        self.read += more as u64;
        Ok(true)
    }

    /// Returns the record at the current offset; `None` unless it is complete.
    pub(crate) fn record(&mut self, salt: u64) -> io::Result<Option<Record<'_>>> {
        // The header contains the length of the record.
        while let Some(size) = Record::claimed(self.rest()) {
            if self.rest().len() >= size {
                return Ok(Record::find(self.rest(), salt));
            }
            if !self.read_up_to(size)? {
                break;
            }
        }
        Ok(None)
    }

    /// Returns whether a complete record begins anywhere in the rest. Consumes the rest.
    pub(crate) fn has_record(&mut self, salt: u64) -> io::Result<bool> {
        loop {
            match Record::search(self.rest(), salt) {
                RecordSearch::Found => return Ok(true),
                RecordSearch::Unclear { at, size } => {
                    self.skip(at);
                    if !self.read_up_to(size)? {
                        // It claims to be longer than the file, so it is not a record.
                        self.skip(1);
                    }
                }
                RecordSearch::Nothing => {
                    // Keep three bytes: a magic number may straddle two chunks.
                    self.skip(self.rest().len().saturating_sub(3));
                    let left = usize::try_from(self.length - self.read).unwrap_or(usize::MAX);
                    if left == 0 {
                        return Ok(false);
                    }
                    self.read_up_to(self.rest().len() + left.min(CHUNK_BYTES))?;
                }
            }
        }
    }
}
