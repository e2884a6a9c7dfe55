//! The journal: what makes a write durable, and what history is read from after a restart.
//!
//! It is a chain of segments, files of a fixed size that are filled with zeros before they are used, because
//! overwriting costs a flush half of what growing a file does. A segment begins with a header and goes on with
//! records. It gets its name only after its header is durable, so that a segment without one is damage. One
//! record at most is under way at any time, and the next begins only after it is durable: bytes that are no
//! record, with no record after them, are a write that was never acknowledged; with a record after them, they
//! are damage. Segments that are no longer needed become the next ones (see [`spare`]).

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::appender::{Appender, BLOCK};
use super::file::{DataFile, Faults, GentleFile, failed, flush_directory};
use super::record::{Content, Draft};
use super::segment::Segment;
use super::spare::{self, Filler};
use crate::{Event, Revision, StoreError};

const PREFIX: &str = "journal-";
/// A segment that is being made.
const NEXT: &str = "journal.next";
const MAGIC: &[u8; 8] = b"SCNTJRN1";
/// Magic, number, first revision, salt, checksum; padded.
const HEADER: usize = 64;

/// A segment that is full, or that an earlier process wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sealed {
    pub(crate) path: PathBuf,
    pub(crate) number: u64,
    /// The last revision in it.
    pub(crate) last: Revision,
}

/// What a journal holds.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// All events, the oldest first.
    pub(crate) events: Vec<Arc<Event>>,
    /// All segments but the last.
    pub(crate) sealed: Vec<Sealed>,
    /// The revision before the first event.
    pub(crate) before: Revision,
    /// History up to here is forgotten, although the events may still be needed to tell the state.
    pub(crate) compacted: Revision,
    /// Where the next record goes.
    pub(crate) tail: Option<Tail>,
}

impl Contents {
    /// The newest revision whose event is forgotten.
    pub(crate) fn history_after(&self) -> Revision {
        self.before.max(self.compacted)
    }

    pub(crate) fn has_segment(&self, number: u64) -> bool {
        let last = self.tail.as_ref().map(|tail| tail.number);
        last == Some(number) || self.sealed.iter().any(|segment| segment.number == number)
    }
}

/// The end of a journal.
#[derive(Debug)]
pub(crate) struct Tail {
    path: PathBuf,
    number: u64,
    salt: u64,
    offset: u64,
}

#[derive(Debug)]
pub(crate) struct Journal {
    directory: PathBuf,
    /// The size of a segment, unless one record needs more.
    segment_bytes: u64,
    faults: Option<Arc<Faults>>,
    file: Appender,
    /// The size of this segment.
    size: u64,
    number: u64,
    salt: u64,
    sealed: Option<Sealed>,
    filler: Filler,
    /// Whether a spare file has been asked for since the last one was taken.
    asked: bool,
}

/// Why an append failed, and what that means.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// Nothing was appended; another try may succeed.
    NotWritten(StoreError),
    /// The bytes were written, but the system could not say that they are on disk. It may have dropped them
    /// from its memory, so that another flush would succeed and mean nothing: this journal is done with.
    NotFlushed(StoreError),
}

#[derive(Debug)]
struct Header {
    number: u64,
    first: Revision,
    salt: u64,
}

impl Header {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for number in [self.number, self.first, self.salt] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let sum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes.resize(HEADER, 0);
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let header = Self {
            number: number(8)?,
            first: number(16)?,
            salt: number(24)?,
        };
        (header.encode() == bytes.get(..HEADER)?).then_some(header)
    }
}

fn segment_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{PREFIX}{number:016}"))
}

/// The segments of a directory in order.
fn segment_paths(directory: &Path) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    let mut paths = Vec::new();
    let entries = fs::read_dir(directory).map_err(|source| failed("list", directory, source))?;
    for entry in entries {
        let entry = entry.map_err(|source| failed("list", directory, source))?;
        let name = entry.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX))
            .and_then(|n| n.parse().ok());
        paths.extend(number.map(|number| (number, entry.path())));
    }
    paths.sort_unstable();
    Ok(paths)
}

/// Whether a directory holds any segment.
pub(crate) fn exists(directory: &Path) -> Result<bool, StoreError> {
    Ok(directory.exists() && !segment_paths(directory)?.is_empty())
}

/// Reads all segments, without changing any.
pub(crate) fn read(directory: &Path, faults: Option<&Arc<Faults>>) -> Result<Contents, StoreError> {
    let mut contents = Contents::default();
    let mut expected: Option<(u64, Revision)> = None;
    for (number, path) in segment_paths(directory)? {
        let damaged = |detail: String| StoreError::Damaged {
            path: path.clone(),
            detail,
        };
        let unread = |source| failed("read", &path, source);
        let mut segment = Segment::of(DataFile::open(&path, faults.cloned())?).map_err(unread)?;
        let header =
            Header::decode(segment.rest()).ok_or_else(|| damaged("its header is unreadable".to_owned()))?;
        segment.skip(HEADER);
        let (want_number, want_first) = expected.unwrap_or((number, header.first));
        if (header.number, header.number, header.first) != (number, want_number, want_first) {
            return Err(damaged(format!(
                "segment {want_number} from revision {want_first} was expected, not segment {} from {}",
                header.number, header.first
            )));
        }
        match contents.tail.take() {
            None => contents.before = header.first - 1,
            Some(tail) => {
                contents.sealed.push(Sealed {
                    path: tail.path,
                    number: tail.number,
                    last: header.first - 1,
                });
            }
        }
        let mut next = header.first;
        while let Some(record) = segment.record(header.salt).map_err(unread)? {
            let content = record.content().filter(|_| record.first == next).ok_or_else(|| {
                damaged(format!(
                    "revision {next} was expected where the record of {} is",
                    record.first
                ))
            })?;
            match content {
                Content::Events(events) => {
                    next += events.len() as u64;
                    contents.events.extend(events);
                }
                Content::Compaction(revision) => contents.compacted = revision,
            }
            let size = record.len();
            segment.skip(size);
        }
        // What is not a record was under way when the last process ended, unless records come after it.
        let offset = segment.offset();
        if segment.has_record(header.salt).map_err(unread)? {
            return Err(damaged(format!("the record of revision {next} is unreadable")));
        }
        contents.tail = Some(Tail {
            path,
            number,
            salt: header.salt,
            offset,
        });
        expected = Some((number + 1, next));
    }
    Ok(contents)
}

impl Journal {
    /// Makes the first segment; `next` is the first revision that will be in it.
    pub(crate) fn begin(
        directory: &Path,
        next: Revision,
        segment_bytes: u64,
        faults: Option<Arc<Faults>>,
    ) -> Result<(), StoreError> {
        new_segment(directory, 1, next, segment_bytes, faults).map(drop)
    }

    /// Goes on where an earlier process has ended.
    pub(crate) fn resume(
        directory: &Path,
        tail: &Tail,
        segment_bytes: u64,
        faults: Option<Arc<Faults>>,
    ) -> Result<Self, StoreError> {
        let size = fs::metadata(&tail.path).map_err(|source| failed("measure", &tail.path, source))?;
        let file = Appender::open(&tail.path, tail.offset, faults.clone())?;
        let directory = directory.to_owned();
        let filler = Filler::start(directory.clone(), segment_bytes, faults.clone())?;
        Ok(Self {
            directory,
            segment_bytes,
            faults,
            file,
            size: size.len(),
            number: tail.number,
            salt: tail.salt,
            sealed: None,
            filler,
            asked: false,
        })
    }

    /// The number of the segment that is being written.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The segment that has been filled up since this was last asked, if one has.
    pub(crate) fn take_sealed(&mut self) -> Option<Sealed> {
        self.sealed.take()
    }

    /// Appends a record and makes it durable.
    pub(crate) fn append(&mut self, record: &mut Draft) -> Result<(), AppendError> {
        if self.file.end() + record.len() as u64 > self.size {
            self.rotate(record).map_err(AppendError::NotWritten)?;
        }
        let bytes = record.seal(self.salt);
        self.file
            .write(bytes)
            .map_err(|source| AppendError::NotWritten(failed("write", self.file.path(), source)))?;
        self.file
            .flush(bytes.len())
            .map_err(|source| AppendError::NotFlushed(failed("flush", self.file.path(), source)))?;
        // By the middle of a segment, an old one has become the spare if the history is as long as it may be.
        if !self.asked && self.file.end() > self.size / 2 {
            self.filler.ask();
            self.asked = true;
        }
        if self.file.end() > self.size / 4 * 3 {
            self.filler.hurry();
        }
        Ok(())
    }

    /// Begins a segment with a record to come.
    fn rotate(&mut self, record: &Draft) -> Result<(), StoreError> {
        let number = self.number + 1;
        let size = self.segment_bytes.max((HEADER + record.len()) as u64);
        let (file, salt, size) =
            new_segment(&self.directory, number, record.first(), size, self.faults.clone())?;
        let full = std::mem::replace(&mut self.file, file);
        self.sealed = Some(Sealed {
            path: full.path().to_owned(),
            number: self.number,
            last: record.first() - 1,
        });
        (self.number, self.salt, self.size, self.asked) = (number, salt, size, false);
        Ok(())
    }
}

/// Makes a segment, out of the spare file if there is one.
fn new_segment(
    directory: &Path,
    number: u64,
    first: Revision,
    size: u64,
    faults: Option<Arc<Faults>>,
) -> Result<(Appender, u64, u64), StoreError> {
    let (next, path) = (directory.join(NEXT), segment_path(directory, number));
    spare::take(directory, &next)?;
    let salt = RandomState::new().hash_one((number, first));
    let file = GentleFile::open(&next, faults.clone())?;
    let size = size.next_multiple_of(BLOCK as u64);
    let prepare = || -> io::Result<u64> {
        // It may hold records of an earlier use: the salt tells them from ours.
        let size = spare::fill(&file, size)?;
        file.write(&Header { number, first, salt }.encode(), 0)?;
        file.flush()?;
        Ok(size)
    };
    let size = prepare().map_err(|source| failed("prepare", &next, source))?;
    fs::rename(&next, &path).map_err(|source| failed("rename", &next, source))?;
    flush_directory(directory)?;
    Ok((Appender::open(&path, HEADER as u64, faults)?, salt, size))
}

/// Gives a segment up.
pub(crate) fn retire(directory: &Path, segment: &Sealed, segment_bytes: u64) -> Result<(), StoreError> {
    spare::give(directory, &segment.path, segment_bytes)?;
    // Segments go in order, also on disk: a gap would read as damage.
    flush_directory(directory)
}
