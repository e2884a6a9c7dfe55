//! The journal: the write-ahead log that makes writes durable, and the source of history after a restart.
//!
//! It is a sequence of segments: files of a fixed size, filled with zeros before use, because a flush after
//! overwriting costs half of a flush after growing a file. A segment consists of a header, which contains the
//! length of the file, and records. It is renamed to its final name only after its header is durable, so a
//! segment without a header is damaged.
//!
//! At most one record is in flight, and the next one begins only after it is durable. So invalid bytes with
//! no record after them are a write that was never acknowledged; with a record after them, they are damage.
//! The last record of a segment names the next segment, which exists by then: a journal that ends with such a
//! record has lost its end. Old segments are recycled (see [`spare`]).

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
/// The name of a segment under construction.
const NEXT_SEGMENT: &str = "journal.next";
/// The magic number of a segment; the byte after it is the format.
const MAGIC: &[u8; 7] = b"SCNTJRN";
const FORMAT: u8 = b'2';
/// Magic, number, first revision, salt, file length, checksum; padded.
const HEADER: usize = 64;

/// A segment that is full, or that an earlier process wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SealedSegment {
    pub(crate) path: PathBuf,
    pub(crate) id: SegmentId,
    /// The last revision in the segment.
    pub(crate) last: Revision,
}

/// The contents of a journal.
#[derive(Debug, Default)]
pub(crate) struct JournalContents {
    /// All events, oldest first.
    pub(crate) events: Vec<Arc<Event>>,
    /// All segments except the last.
    pub(crate) sealed: Vec<SealedSegment>,
    /// The revision before the first event.
    pub(crate) before: Revision,
    /// The revision of the last event; `before` if there are none.
    pub(crate) end: Revision,
    /// The compacted revision. Events up to it may still be needed to rebuild the state.
    pub(crate) compacted: Revision,
    /// The position of the next record.
    pub(crate) tail: Option<JournalTail>,
    /// The end of the second-to-last segment, if a crash happened after the last segment was created and
    /// before the record that names it was written.
    unsealed: Option<JournalTail>,
}

impl JournalContents {
    /// The newest compacted revision.
    pub(crate) fn history_after(&self) -> Revision {
        self.before.max(self.compacted)
    }

    /// Returns whether the journal never had any records.
    pub(crate) fn is_new(&self) -> bool {
        let new = |tail: &JournalTail| (tail.id.number, tail.offset) == (1, HEADER as u64);
        self.sealed.is_empty() && self.tail.as_ref().is_none_or(new)
    }

    /// Checks that this journal belongs to a database state.
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
        // The journals of all stores number their segments alike; only the salt differs.
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
    /// The first revision after it.
    next: Revision,
}

#[derive(Debug)]
pub(crate) struct Journal {
    directory: PathBuf,
    /// The size of a segment, unless one record needs more.
    segment_bytes: u64,
    faults: Option<Arc<FaultInjector>>,
    current: ActiveSegment,
    /// The next segment, if sealing the full one failed.
    prepared: Option<ActiveSegment>,
    sealed: Vec<SealedSegment>,
    spare_allocator: SpareAllocator,
    /// True if a spare file was requested since the last one was taken.
    spare_requested: bool,
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
    /// The bytes were written, but the flush failed. The kernel may have dropped the dirty pages, so a second
    /// flush could succeed without making them durable: this journal must not be used again.
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
        // The comparison checks magic, format, checksum and padding at once. Callers subtract one from `first`.
        (header.first > 0 && header.encode() == bytes.get(..HEADER)?).then_some(header)
    }
}

fn segment_path(directory: &Path, number: u64) -> PathBuf {
    directory.join(segment_name(number))
}

fn segment_name(number: u64) -> String {
    format!("{PREFIX}{number:016}")
}

/// Lists the segments of a directory in order.
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
        // A copy under a name that resembles that of a segment makes the journal ambiguous.
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

/// Returns whether a directory has any segment.
pub(crate) fn exists(directory: &Path) -> Result<bool, StoreError> {
    Ok(directory.exists() && !segment_paths(directory)?.is_empty())
}

/// Reads all segments without changing them.
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

/// Reads the segments in order.
struct JournalReader<'d> {
    directory: &'d Path,
    contents: JournalContents,
    /// The next segment, according to the one read last.
    follows: Option<SegmentId>,
}

/// Creates an error about a file of the journal.
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
            // `decode` rejects a first revision of 0.
            self.contents.before = header.first - 1;
        }
        let (mut next, mut follows) = (header.first, None);
        let mut is_empty = true;
        while let Some(record) = segment.record(header.id.salt).map_err(unread)? {
            let content = Some(&record)
                // Nothing may follow the record that seals the segment.
                .filter(|record| record.first == next && follows.is_none())
                .and_then(Record::content);
            let (size, first) = (record.len(), record.first);
            let content = content.filter(|content| match content {
                // History cannot be compacted beyond the newest write.
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
        // Bytes that are not a record were in flight when the last process ended, unless records follow.
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
            // The predecessor does not name this segment: a crash came after this segment was created and before
            // the predecessor was sealed. Nothing can have been written here then.
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

    /// Checks that a segment is the expected next one.
    fn check_order(&self, number: u64, path: &Path, header: &SegmentHeader) -> Result<(), StoreError> {
        if header.id.number != number {
            let detail = format!("it is a copy of segment {}", header.id.number);
            return Err(damaged(path, 0, detail, Remedy::MatchingFiles));
        }
        let Some(tail) = &self.contents.tail else {
            return Ok(());
        };
        let expected = tail.id.number.saturating_add(1);
        // Only the last segment may follow an unsealed one, because records are written after the seal.
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

/// Reads the header of a segment and checks it against the length of the file.
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
    /// Creates the first segment; `next` is its first revision.
    pub(crate) fn begin(
        directory: &Path,
        segment: SegmentId,
        next: Revision,
        segment_bytes: u64,
        faults: Option<Arc<FaultInjector>>,
    ) -> Result<(), StoreError> {
        new_segment(directory, segment, next, segment_bytes, faults).map(drop)
    }

    /// Continues where an earlier process ended.
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
        // Completes the interrupted rotation, so that the journal reads as sealed from now on.
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
            spare_requested: false,
        }))
    }

    /// The active segment.
    pub(crate) fn segment(&self) -> SegmentId {
        self.current.id
    }

    /// Takes the segments sealed since the last call.
    pub(crate) fn take_sealed(&mut self) -> Vec<SealedSegment> {
        std::mem::take(&mut self.sealed)
    }

    /// Appends a record and makes it durable.
    pub(crate) fn append(&mut self, record: &mut RecordBuilder) -> Result<(), AppendError> {
        // Rotates twice if the prepared segment was sized for a smaller record.
        // Room for the seal is always kept, because the seal must fit into a full segment.
        while self.current.file.end() + (record.len() + SEAL_BYTES) as u64 > self.current.size {
            self.rotate(record)?;
        }
        append(&mut self.current.file, record, self.current.id)?;
        let (end, size) = (self.current.file.end(), self.current.size);
        // In the middle of a segment: if the history is at its limit, a retired segment has become the spare
        // by now and the request costs nothing.
        if !self.spare_requested && end > size / 2 {
            self.spare_allocator.request();
            self.spare_requested = true;
        }
        // The spare is needed soon, so its allocation may now delay writes.
        if end > size / 4 * 3 {
            self.spare_allocator.expedite();
        }
        Ok(())
    }

    /// Starts a new segment that has room for a record.
    fn rotate(&mut self, record: &RecordBuilder) -> Result<(), AppendError> {
        let following = match self.prepared.take() {
            Some(prepared) => prepared,
            None => {
                let id = self.current.id.following();
                let needed = (HEADER + record.len() + SEAL_BYTES) as u64;
                // A record is never split, so a large one gets a larger segment.
                let size = self.segment_bytes.max(needed);
                new_segment(&self.directory, id, record.first(), size, self.faults.clone())
                    .map_err(AppendError::NotWritten)?
            }
        };
        // Kept in `prepared`, so that a retry seals the full segment with the same successor.
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
        self.spare_requested = false;
        Ok(())
    }
}

/// Seals a segment; `next` is the first revision of its successor.
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

/// Creates a segment, from the spare file if there is one.
fn new_segment(
    directory: &Path,
    id: SegmentId,
    first: Revision,
    size: u64,
    faults: Option<Arc<FaultInjector>>,
) -> Result<ActiveSegment, StoreError> {
    let (next, path) = (directory.join(NEXT_SEGMENT), segment_path(directory, id.number));
    spare::take(directory, &next)?;
    // Not throttled, because requests wait for this segment.
    let file = ThrottledFile::open(&next, faults.clone())?;
    // Direct I/O writes whole blocks, also the last one.
    let length = size.next_multiple_of(BLOCK as u64);
    let prepare = || -> io::Result<()> {
        // The file may contain records of an earlier use; the salt distinguishes them from new ones.
        spare::fill(&file, length)?;
        file.write(&SegmentHeader { id, first, length }.encode(), 0)?;
        file.flush()
    };
    prepare().map_err(|source| io_error("prepare", &next, source))?;
    // The contents are durable before the name is: a segment without a header reads as damage.
    fs::rename(&next, &path).map_err(|source| io_error("rename", &next, source))?;
    flush_directory(directory)?;
    Ok(ActiveSegment {
        file: Appender::open(&path, HEADER as u64, faults)?,
        size: length,
        id,
    })
}

/// Retires a segment.
pub(crate) fn retire(
    directory: &Path,
    segment: &SealedSegment,
    segment_bytes: u64,
) -> Result<(), StoreError> {
    spare::recycle(directory, &segment.path, segment_bytes)?;
    // Segments are removed in order, also on disk: a gap would read as damage.
    flush_directory(directory)
}
