//! The embedded engine: durable storage in a directory of one machine.
//!
//! A write is durable once it is in the [journal]. Writes that arrive while the [writer] flushes are batched in the
//! [queue] and flushed together. The current state and the recent history are in memory and serve all reads. A
//! [checkpoint] copies the journal into a [redb] database asynchronously; a start reads the database and the rest of
//! the journal.

mod appender;
mod background;
mod checkpoint;
mod file;
mod health;
mod journal;
mod lock;
mod overlay;
mod panics;
mod queue;
mod record;
mod segment;
mod spare;
mod table;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

pub use file::{FaultInjector, FaultKind, FileOperation};

use self::checkpoint::{Backlog, Checkpointer};
use self::file::io_error;
use self::health::{Health, WriteHealth};
use self::journal::Journal;
use self::lock::DirectoryLock;
use self::queue::{BatchStats, CallerMode, MaintenanceTask, WriteQueue, WriteReply};
use self::record::SegmentId;
use self::table::{StateTable, TableMeta};
use self::writer::JournalWriter;
use crate::backup::{BackupError, BackupSummary};
use crate::cache::Cache;
use crate::state::{Snapshot, check_write};
use crate::{
    Entry, Event, HistoryLimits, ListRequest, MemStore, Page, ReadAt, Remedy, Revision, Store, StoreError,
    Watch, Write, key, private,
};

/// After this many batches with one request, the next one is expected to have one, too.
const MIN_SINGLE_BATCHES: u32 = 16;
/// A flush this short may block a thread of the runtime.
const SHORT_FLUSH: Duration = Duration::from_millis(1);

/// The settings of an embedded store.
#[derive(Debug, Clone)]
pub struct EmbeddedConfig {
    /// The data directory. It is created if it does not exist.
    pub directory: PathBuf,
    /// The history to keep for watches and for reads at older revisions.
    pub history: HistoryLimits,
    /// The size of the files that the journal consists of.
    pub segment_bytes: u64,
    /// The size of the journal that triggers a checkpoint.
    pub checkpoint_bytes: usize,
    /// Failures to inject, for tests.
    pub faults: Option<Arc<FaultInjector>>,
}

impl EmbeddedConfig {
    /// The defaults, for a directory.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            history: HistoryLimits::default(),
            segment_bytes: 16 << 20,
            checkpoint_bytes: 64 << 20,
            faults: None,
        }
    }
}

/// The contents of an intact store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckReport {
    /// The revision of the newest write.
    pub revision: Revision,
    /// The number of entries.
    pub entries: u64,
    /// The bytes of all values.
    pub value_bytes: u64,
    /// The revision after which history is available.
    pub history_after: Revision,
}

/// A durable [`Store`] in a directory.
///
/// Dropping it waits for the last checkpoint, as [`EmbeddedStore::close`] does.
#[derive(Debug)]
pub struct EmbeddedStore {
    cache: Arc<Cache>,
    requests: Arc<WriteQueue>,
    writer: Arc<writer::SharedWriter>,
    backlog: Arc<Backlog>,
    health: Arc<Health>,
    threads: Mutex<Option<Threads>>,
}

#[derive(Debug)]
struct Threads {
    writer: JoinHandle<()>,
    checkpointer: JoinHandle<Result<(), StoreError>>,
    /// Released last.
    _lock: DirectoryLock,
}

/// The loaded contents of a data directory.
#[derive(Debug)]
struct LoadedStore {
    state: Snapshot,
    table: StateTable,
    meta: TableMeta,
    journal: journal::JournalContents,
    /// The number of events in the journal that the database does not have yet.
    behind: usize,
}

impl EmbeddedStore {
    /// Opens a store; creates an empty one if the directory has none. Reads all data, and blocks.
    pub fn open(config: EmbeddedConfig) -> Result<Self, StoreError> {
        let EmbeddedConfig {
            directory,
            history,
            segment_bytes,
            checkpoint_bytes,
            faults,
        } = config;
        private::create_directory(&directory).map_err(|source| io_error("create", &directory, source))?;
        let lock = DirectoryLock::acquire(&directory)?;
        private::restrict_directory(&directory).map_err(|source| io_error("list", &directory, source))?;
        if !table::exists(&directory) {
            let empty = Snapshot::empty().revision;
            check_empty(&directory, Some(empty), faults.as_ref())?;
            let entries = std::iter::empty::<Result<Arc<Entry>, StoreError>>();
            create(&directory, empty, entries, segment_bytes, faults.clone())?;
        }
        let LoadedStore {
            state,
            // The checkpointer opens the file for writing once it needs it.
            table: _,
            meta,
            journal,
            behind,
        } = load(&directory, faults.as_ref())?;
        let history_after = journal.history_after();
        let Some(writer_journal) = Journal::resume(&directory, &journal, segment_bytes, faults.clone())?
        else {
            return Err(StoreError::Unavailable {
                detail: "the journal has no segment".to_owned(),
            });
        };
        let journal::JournalContents {
            mut events, sealed, ..
        } = journal;
        let pending = events.iter().skip(events.len() - behind).cloned().collect();
        // Compacted events may be needed to rebuild the state, but watches must not see them.
        events.drain(..events.partition_point(|event| event.revision <= history_after));
        let segment = writer_journal.segment();
        let backlog = Arc::new(Backlog::new(pending, sealed, segment, checkpoint_bytes));
        let cache = Arc::new(Cache::new(state, events, history_after, history));
        let health = Arc::new(Health::new(&directory, segment_bytes));
        let writer = JournalWriter {
            cache: Arc::clone(&cache),
            journal: writer_journal,
            backlog: Arc::clone(&backlog),
            failure: None,
            stats: BatchStats::default(),
            health: Arc::clone(&health),
        };
        let checkpointer = Checkpointer {
            directory: directory.clone(),
            segment_bytes,
            faults,
            cache: Arc::clone(&cache),
            backlog: Arc::clone(&backlog),
            table: None,
            meta,
        };
        let requests = Arc::new(WriteQueue::new(Arc::clone(&cache)));
        let queue = Arc::clone(&requests);
        let shared = Arc::new(writer::SharedWriter::new(Some(writer)));
        let writer = Arc::clone(&shared);
        let spawned = |source| io_error("start a thread for", &directory, source);
        let writer = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || JournalWriter::run(&writer, &queue))
            .map_err(spawned)?;
        let checkpointer = background::start("checkpoint", move || checkpointer.run()).map_err(spawned)?;
        let threads = Mutex::new(Some(Threads {
            writer,
            checkpointer,
            _lock: lock,
        }));
        Ok(Self {
            cache,
            requests,
            writer: shared,
            backlog,
            health,
            threads,
        })
    }

    /// Creates a store from a backup and keeps every revision. The directory must not contain a store.
    pub fn restore(
        directory: impl AsRef<Path>,
        backup: impl std::io::BufRead,
    ) -> Result<BackupSummary, BackupError> {
        let directory = directory.as_ref();
        let mut backup = crate::backup::BackupReader::begin(backup)?;
        let is_new = !directory.exists();
        let restored = Self::restore_entries(directory, &mut backup);
        if restored.is_err() && is_new {
            lock::remove_directory(directory);
        }
        restored
    }

    fn restore_entries(
        directory: &Path,
        backup: &mut crate::backup::BackupReader<impl std::io::BufRead>,
    ) -> Result<BackupSummary, BackupError> {
        let revision = backup.revision();
        private::create_directory(directory).map_err(|source| io_error("create", directory, source))?;
        let _lock = DirectoryLock::acquire(directory)?;
        if table::exists(directory) {
            let source = std::io::Error::new(std::io::ErrorKind::AlreadyExists, "it holds a store already");
            return Err(io_error("restore into", directory, source).into());
        }
        check_empty(directory, None, None)?;
        let segment_bytes = EmbeddedConfig::new(directory).segment_bytes;
        let entries = create(directory, revision, backup, segment_bytes, None)?;
        Ok(BackupSummary { revision, entries })
    }

    /// Reads all files of a store that no process has open and verifies every checksum. Changes no file, so
    /// it works on a read-only file system.
    pub fn check(directory: impl AsRef<Path>) -> Result<CheckReport, StoreError> {
        let mut loaded = load_to_read(directory.as_ref())?;
        loaded.table.verify()?;
        Ok(CheckReport {
            revision: loaded.state.revision,
            entries: loaded.state.entries.len() as u64,
            value_bytes: loaded
                .state
                .entries
                .values()
                .map(|entry| entry.value.len() as u64)
                .sum(),
            history_after: loaded.journal.history_after(),
        })
    }

    /// Checks a store that no process has open, as [`EmbeddedStore::check`] does, and returns its contents.
    /// Changes no file.
    pub fn read(directory: impl AsRef<Path>) -> Result<MemStore, StoreError> {
        let mut loaded = load_to_read(directory.as_ref())?;
        loaded.table.verify()?;
        Ok(MemStore::with_state(loaded.state))
    }

    /// Ends all watches, executes pending writes, and makes a last checkpoint.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.shut_down()
    }

    fn shut_down(&mut self) -> Result<(), StoreError> {
        // After `close`, the destructor comes here a second time.
        let Some(threads) = self.threads.lock().take() else {
            return Ok(());
        };
        // The order matters: the writer adds its last batch to the backlog before the last checkpoint copies it.
        self.requests.close();
        let gone = || StoreError::Unavailable {
            detail: "a thread of the store has ended early".to_owned(),
        };
        let writer = threads.writer.join().map_err(|_| gone());
        self.backlog.close();
        let checkpoint = threads
            .checkpointer
            .join()
            .map_err(|_| gone())
            .and_then(|outcome| outcome);
        // Closed last, so that watches still deliver the last writes.
        self.cache.close(StoreError::Unavailable {
            detail: "the store was shut down".to_owned(),
        });
        writer.and(checkpoint)
    }

    /// Submits a request to the queue and waits for the reply.
    async fn request<T>(&self, ask: impl FnOnce(&WriteQueue, WriteReply<T>)) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        ask(&self.requests, reply);
        answer.await.map_err(|_| StoreError::Unavailable {
            detail: "the store was shut down".to_owned(),
        })?
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        // A failure loses nothing: the journal has every acknowledged write.
        if let Err(error) = self.shut_down() {
            tracing::error!(%error, "the last checkpoint of the store failed");
        }
    }
}

/// Returns whether the caller may block: only a runtime with several threads can spare one.
fn caller_mode() -> CallerMode {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => CallerMode::MayWrite,
        _ => CallerMode::WaitOnly,
    }
}

/// Blocks a runtime thread until the flush is done. `block_in_place` hands the thread's tasks to another
/// thread, which costs about as much as a short flush. So with a lone writer and short flushes, this blocks
/// directly and leaves the tasks to the other threads.
fn block_on_writer(stats: BatchStats, wait: impl FnOnce()) {
    let workers = || tokio::runtime::Handle::current().metrics().num_workers();
    if stats.alone >= MIN_SINGLE_BATCHES && stats.flush <= SHORT_FLUSH && workers() > 1 {
        wait();
    } else {
        tokio::task::block_in_place(wait);
    }
}

/// Creates a store with entries at a revision. Returns the number of entries.
fn create<E: From<StoreError>>(
    directory: &Path,
    revision: Revision,
    entries: impl Iterator<Item = Result<Arc<Entry>, E>>,
    segment_bytes: u64,
    faults: Option<Arc<FaultInjector>>,
) -> Result<u64, E> {
    let segment = SegmentId::first();
    let table = table::TableBuilder::write(directory, revision, segment, entries, faults.clone())?;
    Journal::begin(directory, segment, revision + 1, segment_bytes, faults)?;
    // The database gets its name last, so its presence proves that the journal exists.
    Ok(table.publish()?)
}

/// Checks that creating a store in a directory without a database loses nothing. An empty journal, left by an
/// interrupted attempt to create a store, may be replaced; any other journal is the remainder of a store. A
/// new store begins after `revision`; without one, any empty journal may be replaced.
fn check_empty(
    directory: &Path,
    revision: Option<Revision>,
    faults: Option<&Arc<FaultInjector>>,
) -> Result<(), StoreError> {
    let journal = journal::read(directory, faults)?;
    if journal.is_new()
        && (journal.tail.is_none() || revision.is_none_or(|revision| revision == journal.before))
    {
        return Ok(());
    }
    Err(StoreError::Damaged {
        path: table::path(directory),
        offset: None,
        detail: format!(
            "it is missing, but there is a journal up to revision {}",
            journal.end
        ),
        remedy: Remedy::MatchingFiles,
    })
}

/// Loads and verifies a directory if it contains a store that no process has open.
fn load_to_read(directory: &Path) -> Result<LoadedStore, StoreError> {
    if !table::exists(directory) && !journal::exists(directory)? {
        let source = std::io::Error::new(std::io::ErrorKind::NotFound, "it holds no store");
        return Err(io_error("check", directory, source));
    }
    let _lock = DirectoryLock::acquire_shared(directory)?;
    load(directory, None)
}

/// Loads and verifies a directory.
fn load(directory: &Path, faults: Option<&Arc<FaultInjector>>) -> Result<LoadedStore, StoreError> {
    if !table::exists(directory) {
        check_empty(directory, Some(Snapshot::empty().revision), faults)?;
    }
    let table = StateTable::open(directory, faults.cloned())?;
    // Database and journal take about equally long to read, so they are read in parallel.
    let (loaded, journal) = std::thread::scope(|scope| {
        let journal = scope.spawn(|| journal::read(directory, faults));
        scope.spawn(|| table.read_ahead());
        (table.load(), journal.join())
    });
    let (mut state, meta) = loaded?;
    let gone = |_| StoreError::Unavailable {
        detail: "the journal's reader has ended early".to_owned(),
    };
    let journal = journal.map_err(gone)??;
    journal.check_state(directory, meta.segment, meta.revision)?;
    let behind = journal
        .events
        .partition_point(|event| event.revision <= meta.revision);
    let behind = journal.events.len() - behind;
    for event in journal.events.iter().skip(journal.events.len() - behind) {
        // An event holds the entry before the write, so a database that does not match the journal is detected.
        let known = state.get(event.key()).map(|entry| entry.mod_revision);
        if known != event.before().map(|entry| entry.mod_revision) {
            let (key, revision) = (event.key(), event.revision);
            return Err(StoreError::Damaged {
                path: table::path(directory),
                offset: None,
                detail: format!(
                    "what it holds for key `{}` contradicts the journal at revision {revision}",
                    key.escape_debug()
                ),
                remedy: Remedy::MatchingFiles,
            });
        }
        state.apply(event);
    }
    Ok(LoadedStore {
        state,
        table,
        meta,
        journal,
        behind,
    })
}

#[async_trait::async_trait]
impl Store for EmbeddedStore {
    async fn revision(&self) -> Result<Revision, StoreError> {
        Ok(self.cache.revision())
    }

    async fn get(&self, key: &str, at: ReadAt) -> Result<Option<Arc<Entry>>, StoreError> {
        key::check_key(key)?;
        Ok(self.cache.read(at)?.get(key))
    }

    async fn list(&self, request: ListRequest) -> Result<Page, StoreError> {
        self.cache.list(&request)
    }

    async fn write(&self, key: &str, write: Write) -> Result<Event, StoreError> {
        check_write(key, &write)?;
        self.request(|queue, reply| {
            if let Some((turn, batch)) = queue.write(key, &write, caller_mode(), reply) {
                if let Some(writer) = self.writer.lock().as_mut() {
                    block_on_writer(writer.stats, || writer.execute(batch, queue));
                }
                // Given back once the writer is unlocked, so that the woken writer thread does not wait for it.
                drop(turn);
            }
        })
        .await
    }

    async fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        self.cache.watch(prefix, after)
    }

    async fn compact(&self, revision: Revision) -> Result<(), StoreError> {
        self.request(|queue, reply| queue.submit_task(MaintenanceTask::Compact(revision), reply))
            .await
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        match self.health.write_health() {
            WriteHealth::Writable => Ok(()),
            WriteHealth::Failing(error) => Err(error),
            WriteHealth::Unknown => {
                self.request(|queue, reply| queue.submit_task(MaintenanceTask::Probe, reply))
                    .await
            }
        }
    }
}
