//! The lock that allows one process per data directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::file::io_error;
use crate::{StoreError, private};

const FILE: &str = "lock";

/// The time to wait for a lock that this process itself appears to hold.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Locks the data directory for this process. The operating system releases the lock when the process ends,
/// even after a crash.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Acquires the lock and writes the process id into the file.
    pub(crate) fn acquire(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join(FILE);
        let mut options = options();
        // Not truncated before the lock is held: the file contains the process id of the holder.
        options.write(true).create(true).truncate(false);
        let open = options.mode(private::FILE_MODE).open(&path);
        let mut file = open.map_err(|source| io_error("open", &path, source))?;
        wait(&mut file, directory)?;
        // The process id only serves the error message; the lock itself is what excludes others.
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(|source| io_error("write", &path, source))?;
        Ok(Self { _file: file })
    }

    /// Acquires the lock without changing the directory. A store without a lock file is not open in any
    /// process.
    pub(crate) fn acquire_shared(directory: &Path) -> Result<Option<Self>, StoreError> {
        let path = directory.join(FILE);
        let mut file = match options().open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|source| io_error("open", &path, source))?,
        };
        wait(&mut file, directory)?;
        Ok(Some(Self { _file: file }))
    }
}

/// Removes a directory that contains only the lock.
pub(crate) fn remove_directory(directory: &Path) {
    // If the directory has other files, it stays.
    let _ = std::fs::remove_file(directory.join(FILE)).and_then(|()| std::fs::remove_dir(directory));
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .read(true)
        // A pipe in place of the file must not block, and a symbolic link must not lead elsewhere.
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    options
}

/// Waits for the lock; the error names the holder.
fn wait(file: &mut File, directory: &Path) -> Result<(), StoreError> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(source)) => return Err(io_error("lock", directory, source)),
        }
        let holder = holder(file);
        // A child process inherits the lock between fork and exec, so this process may seem to hold it for a
        // moment.
        if holder != Some(std::process::id()) || Instant::now() >= deadline {
            return Err(StoreError::Locked {
                path: directory.to_owned(),
                holder,
            });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The process id of the holder, if the file has one.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    // A process id is short; do not read more, whatever the file contains.
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
