//! The checkpointed state: a redb database that holds every key as of one revision of the journal.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use imbl::OrdMap;
use redb::{
    Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, StorageBackend, TableDefinition,
};

use super::file::{FaultInjector, IoThrottle, ThrottledFile, flush_directory, io_error, read_ahead};
use super::overlay::Overlay;
use super::panics;
use super::record::SegmentId;
use crate::state::Snapshot;
use crate::{Entry, MaybeCompressed, ReaderCache, Remedy, Revision, StoreError};

/// The file format version. It is incremented when older programs cannot read the new format.
const FORMAT: u64 = 2;

const FILE: &str = "state.redb";
/// A database under construction.
const NEW: &str = "state.redb.new";

/// Key to checksum, create revision, mod revision, version and value.
const STATE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("state");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

/// One end of the table.
#[derive(Debug, Clone, Copy)]
enum TableEnd {
    Front,
    Back,
}

/// The bytes before the value in a row.
const ROW_HEADER: usize = 28;

/// The purpose for which a table is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenMode {
    /// To be read once, completely.
    Load,
    /// To be written, in large batches.
    Store,
}

impl OpenMode {
    /// The size of redb's page cache. Pages that are read once are not worth caching; worse, parallel readers
    /// would evict each other's pages and contend for the allocator.
    fn cache_bytes(self) -> usize {
        match self {
            Self::Load => 0,
            Self::Store => 2 << 20,
        }
    }
}

/// The metadata of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableMeta {
    /// The revision of the state.
    pub(crate) revision: Revision,
    /// The number of entries.
    pub(crate) count: u64,
    /// The active segment of the journal at this revision.
    pub(crate) segment: SegmentId,
}

/// The open database.
#[derive(Debug)]
pub(crate) struct StateTable {
    /// `Some` until dropped.
    database: Option<Database>,
    path: PathBuf,
}

impl Drop for StateTable {
    fn drop(&mut self) {
        let database = self.database.take();
        // Closing a damaged database may panic again. The damage has been reported by then, and committed
        // data is on disk.
        let _ = panics::catch(|| drop(database));
    }
}

/// Returns whether a directory contains a store.
pub(crate) fn exists(directory: &Path) -> bool {
    // Does not follow a link: publishing a new store would silently replace one.
    path(directory).symlink_metadata().is_ok()
}

/// The path of the database in a directory.
pub(crate) fn path(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// Runs an operation on the database. Converts redb's errors, and its panics on damaged files, to errors
/// about our file.
fn guarded<T>(
    action: &'static str,
    path: &Path,
    work: impl FnOnce() -> Result<T, redb::Error>,
) -> Result<T, StoreError> {
    let detail = match panics::catch(work) {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(redb::Error::Io(source))) if source.kind() == std::io::ErrorKind::UnexpectedEof => {
            "it ends too early".to_owned()
        }
        Ok(Err(redb::Error::Io(source))) if source.kind() == std::io::ErrorKind::InvalidData => {
            source.to_string()
        }
        Ok(Err(redb::Error::Io(source))) => return Err(io_error(action, path, source)),
        // redb refuses further work on a file once an operation on it has failed.
        Ok(Err(redb::Error::PreviousIo)) => {
            let source = std::io::Error::other("an earlier operation on the file failed");
            return Err(io_error(action, path, source));
        }
        Ok(Err(other)) => other.to_string(),
        Err(why) => format!("its pages contradict each other ({why})"),
    };
    Err(StoreError::Damaged {
        path: path.to_owned(),
        offset: None,
        detail,
        remedy: Remedy::RestoreExport,
    })
}

/// A new database that does not have its final name yet.
#[derive(Debug)]
pub(crate) struct TableBuilder {
    directory: PathBuf,
    count: u64,
}

impl TableBuilder {
    /// Writes all entries of a state. On failure, removes the file.
    pub(crate) fn write<E: From<StoreError>>(
        directory: &Path,
        revision: Revision,
        segment: SegmentId,
        entries: impl Iterator<Item = Result<Arc<Entry>, E>>,
        faults: Option<Arc<FaultInjector>>,
    ) -> Result<Self, E> {
        let new = directory.join(NEW);
        // An interrupted attempt may have left one.
        remove(&new)?;
        let written = Self::write_file(&new, revision, segment, entries, faults);
        if written.is_err() {
            remove(&new)?;
        }
        Ok(Self {
            directory: directory.to_owned(),
            count: written?,
        })
    }

    fn write_file<E: From<StoreError>>(
        path: &Path,
        revision: Revision,
        segment: SegmentId,
        entries: impl Iterator<Item = Result<Arc<Entry>, E>>,
        faults: Option<Arc<FaultInjector>>,
    ) -> Result<u64, E> {
        let file = ThrottledFile::open(path, faults)?;
        let table = StateTable::open_file(path, OpenMode::Store, file)?;
        let (mut count, mut failure) = (0, None);
        // The iterator ends at the first error; the caller then removes the file.
        let entries = entries.map_while(|entry| entry.map_err(|error| failure = Some(error)).ok());
        table.write(|state, meta| {
            let mut row = Vec::new();
            for entry in entries {
                encode_row(&entry, &mut row)?;
                state.insert(&*entry.key, row.as_slice())?;
                count += 1;
            }
            let numbers = TableMeta {
                revision,
                count,
                segment,
            };
            numbers.store(meta)
        })?;
        match failure {
            Some(error) => Err(error),
            None => Ok(count),
        }
    }

    /// Renames the file to its final name. Returns the number of entries.
    pub(crate) fn publish(self) -> Result<u64, StoreError> {
        let new = self.directory.join(NEW);
        std::fs::rename(&new, path(&self.directory)).map_err(|source| io_error("rename", &new, source))?;
        flush_directory(&self.directory)?;
        Ok(self.count)
    }
}

/// Removes a file if it exists.
fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(io_error("remove", path, source)),
        _ => Ok(()),
    }
}

impl TableMeta {
    fn store(self, table: &mut redb::Table<'_, &str, u64>) -> Result<(), redb::Error> {
        let numbers = [
            ("format", FORMAT),
            ("revision", self.revision),
            ("count", self.count),
            ("segment", self.segment.number),
            ("segment-salt", self.segment.salt),
        ];
        for (name, number) in numbers {
            table.insert(name, number)?;
        }
        Ok(())
    }
}

impl StateTable {
    /// Opens the database for reading. The file is not changed.
    pub(crate) fn open(directory: &Path, faults: Option<Arc<FaultInjector>>) -> Result<Self, StoreError> {
        Self::open_with(directory, OpenMode::Load, |path| Overlay::open(path, faults))
    }

    /// Opens the database for throttled writing.
    pub(crate) fn open_throttled(
        directory: &Path,
        faults: Option<Arc<FaultInjector>>,
        throttle: Arc<IoThrottle>,
    ) -> Result<Self, StoreError> {
        Self::open_with(directory, OpenMode::Store, |path| {
            Ok(ThrottledFile::open(path, faults)?.with_throttle(throttle))
        })
    }

    fn open_with<B: StorageBackend>(
        directory: &Path,
        purpose: OpenMode,
        open: impl FnOnce(&Path) -> Result<B, StoreError>,
    ) -> Result<Self, StoreError> {
        let path = path(directory);
        // An empty file is not a new store: it was truncated.
        match std::fs::metadata(&path) {
            Ok(data) if data.len() == 0 => Err(StoreError::Damaged {
                path,
                offset: Some(0),
                detail: "it is empty".to_owned(),
                remedy: Remedy::RestoreExport,
            }),
            Ok(_) => Self::open_file(&path, purpose, open(&path)?),
            Err(source) => Err(io_error("open", &path, source)),
        }
    }

    fn open_file(path: &Path, purpose: OpenMode, file: impl StorageBackend) -> Result<Self, StoreError> {
        let database = guarded("open", path, || {
            Ok(Database::builder()
                .set_cache_size(purpose.cache_bytes())
                .create_with_backend(file)?)
        })?;
        Ok(Self {
            database: Some(database),
            path: path.to_owned(),
        })
    }

    fn database(&self) -> Result<&Database, redb::Error> {
        self.database.as_ref().ok_or(redb::Error::DatabaseClosed)
    }

    /// Starts read-ahead of the file. Returns once all of it is requested.
    pub(crate) fn read_ahead(&self) {
        read_ahead(&self.path);
    }

    /// Reads and verifies all entries.
    pub(crate) fn load(&self) -> Result<(Snapshot, TableMeta), StoreError> {
        let meta = guarded("read", &self.path, || {
            let transaction = self.database()?.begin_read()?;
            let meta = transaction.open_table(META)?;
            let number = |name| Ok::<_, redb::Error>(meta.get(name)?.map(|value| value.value()));
            Ok([
                number("format")?,
                number("revision")?,
                number("count")?,
                number("segment")?,
                number("segment-salt")?,
            ])
        })?;
        // Checked first, because another format may lack the other numbers.
        if let [Some(found), ..] = meta
            && found != FORMAT
        {
            return Err(StoreError::Format {
                path: self.path.clone(),
                found,
                supported: FORMAT,
            });
        }
        // All numbers are written in one transaction, so a missing one means that this is not our file.
        let [_, Some(revision), Some(count), Some(number), Some(salt)] = meta else {
            return Err(self.damaged("it does not say what it is".to_owned()));
        };
        let entries = self.entries(count)?;
        if entries.len() as u64 != count {
            return Err(self.damaged(format!("{} of {count} keys are there", entries.len())));
        }
        Ok((
            Snapshot { revision, entries },
            TableMeta {
                revision,
                count,
                segment: SegmentId { number, salt },
            },
        ))
    }

    /// Reads the rows from both ends in parallel, until the expected number of rows is read.
    fn entries(&self, count: u64) -> Result<OrdMap<Arc<str>, Arc<Entry>>, StoreError> {
        // Both readers take from this budget, so they meet wherever their speeds lead.
        let left = AtomicU64::new(count);
        let (front, back) = std::thread::scope(|scope| {
            let back = scope.spawn(|| {
                // Only one thread can build the map, so this one collects a list.
                let mut entries = Vec::new();
                let end = self.rows(&left, TableEnd::Back, |entry| entries.push(entry))?;
                Ok((entries, end))
            });
            let mut entries = OrdMap::new();
            let end = self.rows(&left, TableEnd::Front, |entry| {
                entries.insert(Arc::clone(&entry.key), entry);
            });
            (end.map(|end| (entries, end)), back.join())
        });
        let gone = |_| StoreError::Unavailable {
            detail: "a reader of the state has ended early".to_owned(),
        };
        let ((mut entries, next), (rest, _)) = (front?, back.map_err(gone)??);
        // The readers must meet: no row may lie between them.
        if next.as_deref() != rest.last().map(|entry| &*entry.key) {
            return Err(self.damaged(format!("it does not hold the {count} keys that it says it does")));
        }
        for entry in rest.into_iter().rev() {
            entries.insert(Arc::clone(&entry.key), entry);
        }
        Ok(entries)
    }

    /// Reads rows from one end while any are left. Returns the key after the last one.
    fn rows(
        &self,
        left: &AtomicU64,
        from: TableEnd,
        mut take: impl FnMut(Arc<Entry>),
    ) -> Result<Option<String>, StoreError> {
        let mut bad = None;
        let end = guarded("read", &self.path, || {
            let transaction = self.database()?.begin_read()?;
            let table = transaction.open_table(STATE)?;
            let mut rows = table.iter()?;
            let mut next = || match from {
                TableEnd::Front => rows.next(),
                TableEnd::Back => rows.next_back(),
            };
            let one_less = |left: u64| left.checked_sub(1);
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
                .is_ok()
            {
                let Some(row) = next().transpose()? else {
                    return Ok(None);
                };
                let (key, row) = (row.0.value(), row.1.value());
                let Some(entry) = decode_row(key, row) else {
                    bad = Some(key.to_owned());
                    return Ok(None);
                };
                take(Arc::new(entry));
            }
            Ok(next().transpose()?.map(|row| row.0.value().to_owned()))
        })?;
        match bad {
            None => Ok(end),
            Some(key) => Err(self.damaged(format!(
                "the value of key `{}` is not what was stored",
                key.escape_debug()
            ))),
        }
    }

    fn damaged(&self, detail: String) -> StoreError {
        StoreError::Damaged {
            path: self.path.clone(),
            offset: None,
            detail,
            remedy: Remedy::RestoreExport,
        }
    }

    /// Writes changes durably.
    pub(crate) fn store<'a>(
        &self,
        changes: impl Iterator<Item = (&'a str, Option<&'a Entry>)>,
        meta: TableMeta,
    ) -> Result<(), StoreError> {
        self.write(|state, table| {
            let mut row = Vec::new();
            for (key, entry) in changes {
                match entry {
                    Some(entry) => {
                        encode_row(entry, &mut row)?;
                        state.insert(key, row.as_slice())?;
                    }
                    None => {
                        state.remove(key)?;
                    }
                }
            }
            meta.store(table)
        })
    }

    /// Updates both tables durably.
    fn write(
        &self,
        change: impl FnOnce(
            &mut redb::Table<'_, &str, &[u8]>,
            &mut redb::Table<'_, &str, u64>,
        ) -> Result<(), redb::Error>,
    ) -> Result<(), StoreError> {
        guarded("write", &self.path, || {
            let mut transaction = self.database()?.begin_write()?;
            // After a crash, the file then opens without a full scan.
            transaction.set_quick_repair(true);
            change(
                &mut transaction.open_table(STATE)?,
                &mut transaction.open_table(META)?,
            )?;
            transaction.commit()?;
            Ok(())
        })
    }

    /// Verifies the checksums of all pages.
    pub(crate) fn verify(&mut self) -> Result<(), StoreError> {
        let Self { database, path } = self;
        let whole = guarded("check", path, || {
            let database = database.as_mut().ok_or(redb::Error::DatabaseClosed)?;
            Ok(database.check_integrity()?)
        })?;
        let rows = guarded("check", &self.path, || {
            let transaction = self.database()?.begin_read()?;
            Ok(transaction.open_table(STATE)?.len()?)
        })?;
        if whole {
            return Ok(());
        }
        Err(self.damaged(format!(
            "its pages do not have the checksums that were stored with them ({rows} keys)"
        )))
    }
}

fn encode_row(entry: &Entry, out: &mut Vec<u8>) -> Result<(), redb::Error> {
    let value = entry.value.decompress().ok_or_else(|| {
        let why = format!("the value of key `{}` cannot be unpacked", entry.key);
        redb::Error::Io(std::io::Error::other(why))
    })?;
    out.clear();
    out.extend_from_slice(&[0; 4]);
    for number in [entry.create_revision, entry.mod_revision, entry.version] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&value);
    // The checksum covers the key as well, so that a row under another key is detected.
    let sum = checksum(&entry.key, out);
    if let Some(slot) = out.get_mut(..4) {
        slot.copy_from_slice(&sum.to_le_bytes());
    }
    Ok(())
}

fn decode_row(key: &str, row: &[u8]) -> Option<Entry> {
    let sum = row.get(..4)?.try_into().ok().map(u32::from_le_bytes)?;
    if sum != checksum(key, row) {
        return None;
    }
    let number = |at: usize| row.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    Some(Entry {
        key: key.into(),
        value: MaybeCompressed::new(Bytes::copy_from_slice(row.get(ROW_HEADER..)?)),
        create_revision: number(4)?,
        mod_revision: number(12)?,
        version: number(20)?,
        reader_cache: ReaderCache::default(),
    })
}

fn checksum(key: &str, row: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key.as_bytes());
    hasher.update(row.get(4..).unwrap_or_default());
    hasher.finalize()
}
