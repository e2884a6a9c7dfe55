//! One process per data directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use super::file::failed;
use crate::StoreError;

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
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let holder = file
                    .read_to_string(&mut text)
                    .ok()
                    .and_then(|_| text.trim().parse().ok());
                return Err(StoreError::Locked {
                    path: directory.to_owned(),
                    holder,
                });
            }
            Err(TryLockError::Error(source)) => return Err(failed("lock", &path, source)),
        }
        // The process id is a courtesy to the reader of the message above; the lock itself is what counts.
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()))
            .map_err(|source| failed("write", &path, source))?;
        Ok(Self { _file: file })
    }
}
