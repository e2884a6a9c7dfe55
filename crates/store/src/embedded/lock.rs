//! One process per data directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::file::io_error;
use crate::{StoreError, private};

const FILE: &str = "lock";

/// How long a lock is waited for that this very process seems to hold.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Holds the data directory for this process. The system lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Takes the lock, and says so in the file.
    pub(crate) fn acquire(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join(FILE);
        let mut options = options();
        options.write(true).create(true).truncate(false);
        let open = options.mode(private::FILE_MODE).open(&path);
        let mut file = open.map_err(|source| io_error("open", &path, source))?;
        wait(&mut file, directory)?;
        // The process id is a courtesy to the reader of the error; the lock itself is what counts.
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(|source| io_error("write", &path, source))?;
        Ok(Self { _file: file })
    }

    /// Takes the lock without changing the directory. A store without a lock file is not open in any process.
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

/// Removes a directory that holds nothing but the lock.
pub(crate) fn remove_directory(directory: &Path) {
    // Other files keep the directory in place.
    let _ = std::fs::remove_file(directory.join(FILE)).and_then(|()| std::fs::remove_dir(directory));
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    options
}

/// Locks the file, or says who has it.
fn wait(file: &mut File, directory: &Path) -> Result<(), StoreError> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(source)) => return Err(io_error("lock", directory, source)),
        }
        let holder = holder(file);
        // A process that this one has just begun to start holds all that this one held, until it is itself.
        if holder != Some(std::process::id()) || Instant::now() >= deadline {
            return Err(StoreError::Locked {
                path: directory.to_owned(),
                holder,
            });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The process that holds the lock, as far as it has said so.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    // A process id is short, whatever the file holds.
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
