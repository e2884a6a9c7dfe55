//! The journal: what makes a write durable, and what history is read from after a restart.
//!
//! It is a chain of segments, files of a fixed size that are filled with zeros before they are used, because
//! overwriting costs a flush half of what growing a file does. A segment begins with a header, which says how long the
//! file is, and goes on with records. It gets its name only after its header is durable, so that a segment without one
//! is damage.
//!
//! One record at most is under way at any time, and the next begins only after it is durable: bytes that are
//! no record, with no record after them, are a write that was never acknowledged; with a record after them, they are
//! damage. The last record of a segment names the one that follows, which has been made by then: a journal that ends
//! with such a record has lost its end. Segments that are no longer needed become the next ones (see [`spare`]).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::appender::{Appender, BLOCK};
use super::file::{DataFile, FaultInjector, ThrottledFile, flush_directory, io_error};
use super::record::{Record, RecordBuilder, RecordContent, SEAL_BYTES, SegmentId};
use super::segment::SegmentReader;
use super::spare::{self, SpareAllocator};
use crate::{Event, Remedy, Revision, StoreError};

const PREFIX: &str = "journal-";
/// A segment that is being made.
const NEXT_SEGMENT: &str = "journal.next";
/// The first bytes of a segment; the byte after them is the format.
const MAGIC: &[u8; 7] = b"SCNTJRN";
const FORMAT: u8 = b'2';
/// Magic, number, first revision, salt, length of the file, checksum; padded.
const HEADER: usize = 64;

/// A segment that is full, or that an earlier process wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealedSegment {
    pub(crate) path: PathBuf,
    pub(crate) id: SegmentId,
    /// The last revision in it.
    pub(crate) last: Revision,
}

/// The contents of a journal.
#[derive(Debug, Default)]
pub(crate) struct JournalContents {
    /// All events, the oldest first.
    pub(crate) events: Vec<Arc<Event>>,
    /// All segments but the last.
    pub(crate) sealed: Vec<SealedSegment>,
    /// The revision before the first event.
    pub(crate) before: Revision,
    /// The revision of the last event, or the one before the first where there is none.
    pub(crate) end: Revision,
    /// History up to here is forgotten, although the events may still be needed to tell the state.
    pub(crate) compacted: Revision,
    /// The position of the next record.
    pub(crate) tail: Option<JournalTail>,
    /// The end of the segment before the last, where a crash came between the making of the last one and the record
    /// that names it.
    unsealed: Option<JournalTail>,
}

impl JournalContents {
    /// The newest revision whose event is forgotten.
    pub(crate) fn history_after(&self) -> Revision {
        self.before.max(self.compacted)
    }

    /// True if the journal has no records and never had any.
    pub(crate) fn is_new(&self) -> bool {
        let new = |tail: &JournalTail| (tail.id.number, tail.offset) == (1, HEADER as u64);
        self.sealed.is_empty() && self.tail.as_ref().is_none_or(new)
    }

    /// Checks that this is the journal of a state.
    pub(crate) fn check_state(
        &self,
        directory: &Path,
        segment: SegmentId,
        revision: Revision,
    ) -> Result<(), StoreError> {
        let damaged = |path, offset, detail| {
            Err(StoreError::Damaged {
                path,
                offset,
                detail,
                remedy: Remedy::MatchingFiles,
            })
        };
        let path = segment_path(directory, segment.number);
        let Some(tail) = &self.tail else {
            let detail =
                format!("it is missing, and so is every other segment; the state is of revision {revision}");
            return damaged(path, None, detail);
        };
        let mut ids = self.sealed.iter().map(|sealed| sealed.id).chain([tail.id]);
        let Some(found) = ids.find(|id| id.number == segment.number) else {
            let first = self.sealed.first().map_or(tail.id, |sealed| sealed.id).number;
            let age = if segment.number < first { "older" } else { "newer" };
            let detail = format!(
                "it is missing; the state of revision {revision} is {age} than the journal, segments {first} to {}",
                tail.id.number
            );
            return damaged(path, None, detail);
        };
        if found.salt != segment.salt {
            let detail = format!("the state of revision {revision} belongs to another journal");
            return damaged(path, Some(0), detail);
        }
        if self.before > revision {
            let detail = format!(
                "the state is of revision {revision}, but the journal begins at {}",
                self.before + 1
            );
            return damaged(path, None, detail);
        }
        if self.end < revision {
            let detail = format!(
                "the journal ends at revision {}, but the state is of revision {revision}",
                self.end
            );
            return damaged(tail.path.clone(), Some(tail.offset), detail);
        }
        Ok(())
    }
}

/// The end of a journal.
#[derive(Debug)]
pub(crate) struct JournalTail {
    path: PathBuf,
    id: SegmentId,
    offset: u64,
    /// The first revision that is not in it.
    next: Revision,
}

#[derive(Debug)]
pub(crate) struct Journal {
    directory: PathBuf,
    /// The size of a segment, unless one record needs more.
    segment_bytes: u64,
    faults: Option<Arc<FaultInjector>>,
    current: ActiveSegment,
    /// The next segment, where the one that is full could not be ended.
    prepared: Option<ActiveSegment>,
    sealed: Vec<SealedSegment>,
    spare_allocator: SpareAllocator,
    /// Whether a spare file was requested since the last one was taken.
    asked: bool,
}

/// A segment that is being written.
#[derive(Debug)]
struct ActiveSegment {
    file: Appender,
    size: u64,
    id: SegmentId,
}

/// The error of an append.
#[derive(Debug)]
pub(crate) enum AppendError {
    /// Nothing was appended; another try may succeed.
    NotWritten(StoreError),
    /// The bytes were written, but the system could not say that they are on disk. It may have dropped them
    /// from its memory, so that another flush would succeed and mean nothing: this journal is done with.
    NotFlushed(StoreError),
}

#[derive(Debug)]
struct SegmentHeader {
    id: SegmentId,
    first: Revision,
    /// The length of the file.
    length: u64,
}

impl SegmentHeader {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(FORMAT);
        for number in [self.id.number, self.first, self.id.salt, self.length] {
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
            id: SegmentId {
                number: number(8)?,
                salt: number(24)?,
            },
            first: number(16)?,
            length: number(32)?,
        };
        (header.first > 0 && header.encode() == bytes.get(..HEADER)?).then_some(header)
    }
}

fn segment_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(segment_name(number))
}

fn segment_name(number: u64) -> String {
    format!("{PREFIX}{number:016}")
}

/// The segments of a directory in order.
fn segment_paths(directory: &Path) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    let mut paths = Vec::new();
    let entries = fs::read_dir(directory).map_err(|source| io_error("list", directory, source))?;
    for entry in entries {
        let entry = entry.map_err(|source| io_error("list", directory, source))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let Some(number) = name.strip_prefix(PREFIX) else {
            continue;
        };
        // A copy under a name that could be taken for that of a segment makes it unclear what the journal is.
        match number.parse() {
            Ok(number) if segment_name(number) == name => paths.push((number, entry.path())),
            _ => {
                return Err(StoreError::Damaged {
                    path: entry.path(),
                    offset: None,
                    detail: "it has the name of a segment of the journal, but not quite".to_owned(),
                    remedy: Remedy::MoveAway,
                });
            }
        }
    }
    paths.sort_unstable();
    Ok(paths)
}

/// Returns whether a directory holds any segment.
pub(crate) fn exists(directory: &Path) -> Result<bool, StoreError> {
    Ok(directory.exists() && !segment_paths(directory)?.is_empty())
}

/// Reads all segments, without changing any.
pub(crate) fn read(
    directory: &Path,
    faults: Option<&Arc<FaultInjector>>,
) -> Result<JournalContents, StoreError> {
    let mut reader = JournalReader {
        directory,
        contents: JournalContents::default(),
        follows: None,
    };
    for (number, path) in segment_paths(directory)? {
        reader.segment(number, &path, faults)?;
    }
    reader.finish()
}

/// Reads one segment after the other.
struct JournalReader<'d> {
    directory: &'d Path,
    contents: JournalContents,
    /// The segment that the one read last says comes next.
    follows: Option<SegmentId>,
}

/// An error about a file of the journal.
fn damaged(path: &Path, offset: u64, detail: String, remedy: Remedy) -> StoreError {
    StoreError::Damaged {
        path: path.to_owned(),
        offset: Some(offset),
        detail,
        remedy,
    }
}

impl JournalReader<'_> {
    fn segment(
        &mut self,
        number: u64,
        path: &Path,
        faults: Option<&Arc<FaultInjector>>,
    ) -> Result<(), StoreError> {
        let unread = |source| io_error("read", path, source);
        let file = DataFile::open_to_read(path, faults.cloned())?;
        let mut segment = SegmentReader::new(file).map_err(unread)?;
        let header = header(path, &segment)?;
        segment.skip(HEADER);
        self.check_order(number, path, &header)?;
        let before = self.contents.tail.take();
        if before.is_none() {
            self.contents.before = header.first - 1;
        }
        let (mut next, mut follows) = (header.first, None);
        let mut is_empty = true;
        while let Some(record) = segment.record(header.id.salt).map_err(unread)? {
            let content = Some(&record)
                .filter(|record| record.first == next && follows.is_none())
                .and_then(Record::content);
            let (size, first) = (record.len(), record.first);
            let content = content.filter(|content| match content {
                RecordContent::Compaction(revision) => *revision < next,
                RecordContent::Events(_) | RecordContent::Seal(_) => true,
            });
            let Some(content) = content else {
                let detail = format!("revision {next} was expected where the record of {first} is");
                return Err(damaged(path, segment.offset(), detail, Remedy::RestoreExport));
            };
            match content {
                RecordContent::Events(events) => {
                    next += events.len() as u64;
                    self.contents.events.extend(events);
                }
                RecordContent::Compaction(revision) => self.contents.compacted = revision,
                RecordContent::Seal(id) => follows = Some(id),
            }
            is_empty = false;
            segment.skip(size);
        }
        // What is not a record was under way when the last process ended, unless records come after it.
        let offset = segment.offset();
        if segment.has_record(header.id.salt).map_err(unread)? {
            let detail = format!("the record of revision {next} is unreadable");
            return Err(damaged(path, offset, detail, Remedy::RestoreExport));
        }
        if let Some(before) = before {
            self.contents.sealed.push(SealedSegment {
                path: before.path.clone(),
                id: before.id,
                last: header.first - 1,
            });
            if self.follows.is_none() {
                if !is_empty {
                    let detail = format!(
                        "it ends with revision {} and does not name the segment that follows, although there is one",
                        header.first - 1
                    );
                    return Err(damaged(
                        &before.path,
                        before.offset,
                        detail,
                        Remedy::MatchingFiles,
                    ));
                }
                self.contents.unsealed = Some(before);
            }
        }
        self.follows = follows;
        self.contents.end = next - 1;
        self.contents.tail = Some(JournalTail {
            path: path.to_owned(),
            id: header.id,
            offset,
            next,
        });
        Ok(())
    }

    /// Checks that a segment is the one that comes next.
    fn check_order(&self, number: u64, path: &Path, header: &SegmentHeader) -> Result<(), StoreError> {
        if header.id.number != number {
            let detail = format!("it is a copy of segment {}", header.id.number);
            return Err(damaged(path, 0, detail, Remedy::MatchingFiles));
        }
        let Some(tail) = &self.contents.tail else {
            return Ok(());
        };
        let expected = tail.id.number.saturating_add(1);
        if number != expected || self.contents.unsealed.is_some() {
            return Err(self.missing(expected, &format!("segment {number} is there")));
        }
        if self.follows.is_some_and(|id| id != header.id) {
            let detail = format!(
                "it is not the segment that segment {} names as the next",
                tail.id.number
            );
            return Err(damaged(path, 0, detail, Remedy::MatchingFiles));
        }
        if header.first != tail.next {
            let detail = format!(
                "it begins with revision {}, where {} comes next",
                header.first, tail.next
            );
            return Err(damaged(path, 0, detail, Remedy::MatchingFiles));
        }
        Ok(())
    }

    fn missing(&self, number: u64, why: &str) -> StoreError {
        StoreError::Damaged {
            path: segment_path(self.directory, number),
            offset: None,
            detail: format!("it is missing, but {why}"),
            remedy: Remedy::MatchingFiles,
        }
    }

    fn finish(self) -> Result<JournalContents, StoreError> {
        match (self.follows, &self.contents.tail) {
            (Some(id), Some(tail)) => Err(self.missing(
                id.number,
                &format!("segment {} names it as the next", tail.id.number),
            )),
            _ => Ok(self.contents),
        }
    }
}

/// The header of a segment that is as long as it says.
fn header(path: &Path, segment: &SegmentReader) -> Result<SegmentHeader, StoreError> {
    let lost = |offset, detail| Err(damaged(path, offset, detail, Remedy::RestoreExport));
    let (bytes, length) = (segment.rest(), segment.length());
    if length < HEADER as u64 {
        let detail = format!("it has {length} bytes, which is less than a header");
        return lost(length, detail);
    }
    let Some(header) = SegmentHeader::decode(bytes) else {
        return match bytes.strip_prefix(MAGIC).and_then(|rest| rest.first()) {
            Some(format) if *format != FORMAT && format.is_ascii_digit() => Err(StoreError::Format {
                path: path.to_owned(),
                found: (format - b'0').into(),
                supported: (FORMAT - b'0').into(),
            }),
            _ => lost(0, "its header is unreadable".to_owned()),
        };
    };
    match length.cmp(&header.length) {
        std::cmp::Ordering::Equal => Ok(header),
        std::cmp::Ordering::Less => {
            let detail = format!("it has been cut to {length} bytes of {}", header.length);
            lost(length, detail)
        }
        std::cmp::Ordering::Greater => {
            let detail = format!("it has {length} bytes, where {} were written", header.length);
            lost(header.length, detail)
        }
    }
}

impl Journal {
    /// Makes the first segment; `next` is the first revision that will be in it.
    pub(crate) fn begin(
        directory: &Path,
        segment: SegmentId,
        next: Revision,
        segment_bytes: u64,
        faults: Option<Arc<FaultInjector>>,
    ) -> Result<(), StoreError> {
        new_segment(directory, segment, next, segment_bytes, faults).map(drop)
    }

    /// Goes on where an earlier process has ended.
    pub(crate) fn resume(
        directory: &Path,
        contents: &JournalContents,
        segment_bytes: u64,
        faults: Option<Arc<FaultInjector>>,
    ) -> Result<Option<Self>, StoreError> {
        let Some(tail) = &contents.tail else {
            return Ok(None);
        };
        let size = fs::metadata(&tail.path).map_err(|source| io_error("measure", &tail.path, source))?;
        if let Some(unsealed) = &contents.unsealed {
            let mut file = Appender::open(&unsealed.path, unsealed.offset, faults.clone())?;
            seal(&mut file, unsealed.id, tail.id, unsealed.next).map_err(|error| match error {
                AppendError::NotWritten(error) | AppendError::NotFlushed(error) => error,
            })?;
        }
        let current = ActiveSegment {
            file: Appender::open(&tail.path, tail.offset, faults.clone())?,
            size: size.len(),
            id: tail.id,
        };
        let directory = directory.to_owned();
        let spare_allocator = SpareAllocator::start(directory.clone(), segment_bytes, faults.clone())?;
        Ok(Some(Self {
            directory,
            segment_bytes,
            faults,
            current,
            prepared: None,
            sealed: Vec::new(),
            spare_allocator,
            asked: false,
        }))
    }

    /// The segment that is being written.
    pub(crate) fn segment(&self) -> SegmentId {
        self.current.id
    }

    /// The segments that have been filled up since this was last asked.
    pub(crate) fn take_sealed(&mut self) -> Vec<SealedSegment> {
        std::mem::take(&mut self.sealed)
    }

    /// Appends a record and makes it durable.
    pub(crate) fn append(&mut self, record: &mut RecordBuilder) -> Result<(), AppendError> {
        // Twice where the next segment has been made for a smaller record.
        while self.current.file.end() + (record.len() + SEAL_BYTES) as u64 > self.current.size {
            self.rotate(record)?;
        }
        append(&mut self.current.file, record, self.current.id)?;
        let (end, size) = (self.current.file.end(), self.current.size);
        // By the middle of a segment, an old one has become the spare if the history is as long as it may be.
        if !self.asked && end > size / 2 {
            self.spare_allocator.request();
            self.asked = true;
        }
        if end > size / 4 * 3 {
            self.spare_allocator.expedite();
        }
        Ok(())
    }

    /// Begins a segment with a record to come.
    fn rotate(&mut self, record: &RecordBuilder) -> Result<(), AppendError> {
        let following = match self.prepared.take() {
            Some(prepared) => prepared,
            None => {
                let id = self.current.id.following();
                let needed = (HEADER + record.len() + SEAL_BYTES) as u64;
                let size = self.segment_bytes.max(needed);
                new_segment(&self.directory, id, record.first(), size, self.faults.clone())
                    .map_err(AppendError::NotWritten)?
            }
        };
        // The segment that is full names this very one, now or when this is tried again.
        let following = self.prepared.insert(following);
        seal(
            &mut self.current.file,
            self.current.id,
            following.id,
            record.first(),
        )?;
        if let Some(following) = self.prepared.take() {
            let full = std::mem::replace(&mut self.current, following);
            self.sealed.push(SealedSegment {
                path: full.file.path().to_owned(),
                id: full.id,
                last: record.first() - 1,
            });
        }
        self.asked = false;
        Ok(())
    }
}

/// Ends a segment; `next` is the first revision of the one that follows.
fn seal(
    file: &mut Appender,
    segment: SegmentId,
    following: SegmentId,
    next: Revision,
) -> Result<(), AppendError> {
    append(file, &mut RecordBuilder::seal_record(following, next), segment)
}

/// Appends a record to a segment and makes it durable.
fn append(file: &mut Appender, record: &mut RecordBuilder, segment: SegmentId) -> Result<(), AppendError> {
    let not_written =
        |file: &Appender, source| AppendError::NotWritten(io_error("write", file.path(), source));
    let bytes = record
        .seal(segment.salt)
        .map_err(|source| not_written(file, source))?;
    file.write(bytes).map_err(|source| not_written(file, source))?;
    file.flush(bytes.len())
        .map_err(|source| AppendError::NotFlushed(io_error("flush", file.path(), source)))
}

/// Makes a segment, out of the spare file if there is one.
fn new_segment(
    directory: &Path,
    id: SegmentId,
    first: Revision,
    size: u64,
    faults: Option<Arc<FaultInjector>>,
) -> Result<ActiveSegment, StoreError> {
    let (next, path) = (directory.join(NEXT_SEGMENT), segment_path(directory, id.number));
    spare::take(directory, &next)?;
    let file = ThrottledFile::open(&next, faults.clone())?;
    let length = size.next_multiple_of(BLOCK as u64);
    let prepare = || -> io::Result<()> {
        // It may hold records of an earlier use: the salt tells them from ours.
        spare::fill(&file, length)?;
        file.write(&SegmentHeader { id, first, length }.encode(), 0)?;
        file.flush()
    };
    prepare().map_err(|source| io_error("prepare", &next, source))?;
    fs::rename(&next, &path).map_err(|source| io_error("rename", &next, source))?;
    flush_directory(directory)?;
    Ok(ActiveSegment {
        file: Appender::open(&path, HEADER as u64, faults)?,
        size: length,
        id,
    })
}

/// Gives a segment up.
pub(crate) fn retire(
    directory: &Path,
    segment: &SealedSegment,
    segment_bytes: u64,
) -> Result<(), StoreError> {
    spare::give(directory, &segment.path, segment_bytes)?;
    // Segments go in order, also on disk: a gap would read as damage.
    flush_directory(directory)
}
