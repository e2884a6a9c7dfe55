//! File access: positioned reads, writes and flushes of one file. Tests inject faults here.

use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::{Remedy, StoreError, private};

/// An operation on a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOperation {
    /// Reading bytes.
    Read,
    /// Writing bytes, or changing the length of the file.
    Write,
    /// Flushing written bytes to disk.
    Flush,
}

/// The kind of an injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The operation does nothing and returns this kind of error.
    Error(io::ErrorKind),
    /// A write stores the first half of its bytes and fails with "no space left".
    Torn,
}

/// Injects faults into file operations, for tests.
///
/// ```
/// use scantling_store::{FaultKind, FaultInjector, FileOperation};
/// let faults = FaultInjector::default();
/// // The third flush from now on fails, once.
/// faults.fail(FileOperation::Flush, 3, 1, FaultKind::Error(std::io::ErrorKind::Other));
/// ```
#[derive(Debug, Default)]
pub struct FaultInjector {
    planned: Mutex<Vec<PlannedFault>>,
}

#[derive(Debug)]
struct PlannedFault {
    operation: FileOperation,
    /// The number of operations that still succeed.
    succeed: u64,
    /// The number of operations that fail after that.
    fail: u64,
    failure: FaultKind,
}

impl FaultInjector {
    /// Makes the `nth` operation of a kind from now on fail, and those after it, `times` in all.
    pub fn fail(&self, operation: FileOperation, nth: u64, times: u64, failure: FaultKind) {
        let succeed = nth.saturating_sub(1);
        self.planned.lock().push(PlannedFault {
            operation,
            succeed,
            fail: times,
            failure,
        });
    }

    /// Returns the fault of the next operation, if one is planned.
    fn next(&self, operation: FileOperation) -> Option<FaultKind> {
        let mut planned = self.planned.lock();
        let mut failure = None;
        for plan in planned.iter_mut().filter(|plan| plan.operation == operation) {
            if plan.succeed > 0 {
                plan.succeed -= 1;
            } else if plan.fail > 0 && failure.is_none() {
                plan.fail -= 1;
                failure = Some(plan.failure);
            }
        }
        planned.retain(|plan| plan.fail > 0);
        failure
    }
}

/// The mode in which a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessMode {
    /// Through the page cache.
    Ordinary,
    /// With `O_DIRECT`, in whole blocks, if the file system supports it.
    Direct,
}

/// An open file of the store.
#[derive(Debug)]
pub(crate) struct DataFile {
    file: File,
    path: PathBuf,
    access: AccessMode,
    faults: Option<Arc<FaultInjector>>,
}

impl DataFile {
    /// Opens a file for reading and writing; creates it if it does not exist.
    pub(crate) fn open(path: &Path, faults: Option<Arc<FaultInjector>>) -> Result<Self, StoreError> {
        Self::open_for(AccessMode::Ordinary, path, faults)
    }

    /// Opens a file with an access mode. Falls back to ordinary access if the file system does not support
    /// the mode, or if faults are injected, because a torn write ends at any byte.
    pub(crate) fn open_for(
        access: AccessMode,
        path: &Path,
        faults: Option<Arc<FaultInjector>>,
    ) -> Result<Self, StoreError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // A symbolic link must not redirect the data to a file outside the directory.
        options
            .mode(private::FILE_MODE)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
        let direct = match access {
            AccessMode::Direct if faults.is_none() => open_direct(&options, path),
            _ => None,
        };
        let (file, access) = match direct {
            Some(file) => (file, AccessMode::Direct),
            None => {
                let file = options.open(path);
                (
                    file.map_err(|source| io_error("open", path, source))?,
                    AccessMode::Ordinary,
                )
            }
        };
        Ok(Self {
            file,
            path: path.to_owned(),
            access,
            faults,
        })
    }

    /// Opens an existing file for reading. Fails for anything but a regular file.
    pub(crate) fn open_to_read(path: &Path, faults: Option<Arc<FaultInjector>>) -> Result<Self, StoreError> {
        let foreign = |detail: &str| StoreError::Damaged {
            path: path.to_owned(),
            offset: None,
            detail: detail.to_owned(),
            remedy: Remedy::MoveAway,
        };
        // Opening a pipe without a writer would block.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let file = match opened {
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
                return Err(foreign("it is a symbolic link, where a file was written"));
            }
            other => other.map_err(|source| io_error("open", path, source))?,
        };
        let data = file.metadata().map_err(|source| io_error("open", path, source))?;
        if !data.is_file() {
            return Err(foreign("it is not a regular file"));
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            access: AccessMode::Ordinary,
            faults,
        })
    }

    pub(crate) fn is_direct(&self) -> bool {
        self.access == AccessMode::Direct
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn fault(&self, operation: FileOperation) -> Option<FaultKind> {
        self.faults.as_ref().and_then(|faults| faults.next(operation))
    }

    pub(crate) fn read(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        match self.fault(FileOperation::Read) {
            None => self.file.read_exact_at(out, offset),
            Some(failure) => Err(failure.error()),
        }
    }

    pub(crate) fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        match self.fault(FileOperation::Write) {
            None => self.file.write_all_at(data, offset),
            Some(failure) => {
                if let (FaultKind::Torn, Some(half)) = (failure, data.get(..data.len() / 2)) {
                    self.file.write_all_at(half, offset)?;
                }
                Err(failure.error())
            }
        }
    }

    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        match self.fault(FileOperation::Write) {
            None => self.file.set_len(len),
            Some(failure) => Err(failure.error()),
        }
    }

    pub(crate) fn flush(&self) -> io::Result<()> {
        match self.fault(FileOperation::Flush) {
            // `fdatasync` also makes a changed length durable; it only omits timestamps.
            None => self.file.sync_data(),
            Some(failure) => Err(failure.error()),
        }
    }
}

#[cfg(target_os = "linux")]
fn open_direct(options: &OpenOptions, path: &Path) -> Option<File> {
    let flags = libc::O_DIRECT | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // A file system without direct I/O fails here; the caller then uses the page cache.
    options.clone().custom_flags(flags).open(path).ok()
}

#[cfg(not(target_os = "linux"))]
fn open_direct(_options: &OpenOptions, _path: &Path) -> Option<File> {
    None
}

/// Asks the operating system to read a file into the page cache. The database is read in key order, which is
/// random order on disk; with read-ahead, a start after a reboot takes about a third of the time. Best
/// effort: errors are ignored.
#[cfg(target_os = "linux")]
pub(crate) fn read_ahead(path: &Path) {
    use rustix::fs::{Advice, fadvise};
    const CHUNK: u64 = 32 << 20;
    let Ok(file) = File::open(path) else { return };
    let length = file.metadata().map_or(0, |data| data.len());
    let mut at = 0;
    while at < length && fadvise(&file, at, NonZeroU64::new(CHUNK), Advice::WillNeed).is_ok() {
        at += CHUNK;
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn read_ahead(_path: &Path) {}

impl FaultKind {
    fn error(self) -> io::Error {
        match self {
            Self::Error(kind) => io::Error::new(kind, "injected failure"),
            Self::Torn => io::Error::new(io::ErrorKind::StorageFull, "injected failure"),
        }
    }
}

/// The bytes of a large file that are written before a flush.
///
/// The disk executes one flush after the other, and each covers everything written before it. If a large file were
/// flushed at once, writes to the journal would wait for all of it.
const CHUNK_BYTES: u64 = 1 << 20;
/// The same, while throttled.
const THROTTLED_CHUNK_BYTES: u64 = 128 << 10;
/// The pause after a throttled chunk, as a multiple of the time of its flush. During the pause, writes to the journal
/// have the disk to themselves.
const PAUSE_FACTOR: u32 = 6;
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_millis(50);

/// Throttles background writes in favour of the journal.
#[derive(Debug, Default)]
pub(crate) struct IoThrottle {
    disabled: AtomicBool,
}

impl IoThrottle {
    pub(crate) fn enable(&self) {
        self.disabled.store(false, Ordering::Relaxed);
    }

    /// Stops throttling, because a writer waits or soon will.
    pub(crate) fn disable(&self) {
        self.disabled.store(true, Ordering::Relaxed);
    }

    fn is_disabled(&self) -> bool {
        self.disabled.load(Ordering::Relaxed)
    }
}

/// A large file that is flushed in chunks.
#[derive(Debug)]
pub(crate) struct ThrottledFile {
    file: DataFile,
    /// The bytes written since the last flush.
    unflushed: AtomicU64,
    /// The throttle; without one, the file is written at full speed.
    throttle: Option<Arc<IoThrottle>>,
}

impl ThrottledFile {
    pub(crate) fn open(path: &Path, faults: Option<Arc<FaultInjector>>) -> Result<Self, StoreError> {
        Ok(Self {
            file: DataFile::open(path, faults)?,
            unflushed: AtomicU64::new(0),
            throttle: None,
        })
    }

    /// Throttles writes to the file.
    pub(crate) fn with_throttle(mut self, throttle: Arc<IoThrottle>) -> Self {
        self.throttle = Some(throttle);
        self
    }

    pub(crate) fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    pub(crate) fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    pub(crate) fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write(data, offset)?;
        let written = data.len() as u64;
        let unflushed = self.unflushed.fetch_add(written, Ordering::Relaxed) + written;
        let has_time = self
            .throttle
            .as_ref()
            .is_some_and(|throttle| !throttle.is_disabled());
        if unflushed
            >= if has_time {
                THROTTLED_CHUNK_BYTES
            } else {
                CHUNK_BYTES
            }
        {
            let begun = Instant::now();
            self.flush()?;
            if has_time {
                std::thread::sleep((begun.elapsed() * PAUSE_FACTOR).min(MAX_PAUSE));
            }
        }
        Ok(())
    }

    pub(crate) fn flush(&self) -> io::Result<()> {
        // Reset before the flush, because the flush may not cover bytes that are written during it.
        self.unflushed.store(0, Ordering::Relaxed);
        self.file.flush()
    }
}

impl redb::StorageBackend for ThrottledFile {
    fn len(&self) -> io::Result<u64> {
        Self::len(self)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Self::set_len(self, len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.flush()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        Self::write(self, data, offset)
    }
}

/// Returns the error of a failed system call on a path.
pub(crate) fn io_error(action: &'static str, path: &Path, source: io::Error) -> StoreError {
    StoreError::Io {
        action,
        path: path.to_owned(),
        source: Arc::new(source),
    }
}

/// Flushes a directory, so that created and renamed files are durable.
pub(crate) fn flush_directory(path: &Path) -> Result<(), StoreError> {
    private::flush_directory(path).map_err(|source| io_error("flush directory", path, source))
}
