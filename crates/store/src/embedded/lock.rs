//! One process per data directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::file::failed;
use crate::StoreError;

/// How long a lock is waited for that this very process seems to hold.
const PATIENCE: Duration = Duration::from_secs(1);

/// Holds the data directory for this process. The system lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    pub(crate) fn take(directory: &Path) -> Result<Self, StoreError> {
        let path = directory.join("lock");
        let open = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let mut file = open.map_err(|source| failed("open", &path, source))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => return Err(failed("lock", &path, source)),
            }
            let holder = holder(&mut file);
            // A process that this one has just begun to start holds all that this one held, until it is itself.
            if holder != Some(std::process::id()) || Instant::now() >= deadline {
                return Err(StoreError::Locked {
                    path: directory.to_owned(),
                    holder,
                });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        // The process id is a courtesy to the reader of the message above; the lock itself is what counts.
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(|source| failed("write", &path, source))?;
        Ok(Self { _file: file })
    }
}

/// The process that holds the lock, as far as it has said so.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut text)).ok()?;
    text.trim().parse().ok()
}
