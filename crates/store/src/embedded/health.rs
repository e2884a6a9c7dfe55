//! Tracks whether a store can write.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::StatVfsMountFlags;

use super::file::io_error;
use crate::StoreError;

/// The time between two probes of a store that cannot write.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Health {
    directory: PathBuf,
    /// The free space that a store needs after it ran out of space: one segment.
    room: u64,
    failing: Mutex<Option<FailureState>>,
}

#[derive(Debug)]
struct FailureState {
    error: StoreError,
    last_probe: Option<Instant>,
}

/// The last known state of writes.
#[derive(Debug)]
pub(crate) enum WriteHealth {
    /// The last write succeeded.
    Writable,
    /// The last write failed, and none has been tried since.
    Unknown,
    /// The last write failed just now.
    Failing(StoreError),
}

impl Health {
    pub(crate) fn new(directory: &Path, room: u64) -> Self {
        Self {
            directory: directory.to_owned(),
            room,
            failing: Mutex::new(None),
        }
    }

    /// Records the result of a write.
    pub(crate) fn report(&self, error: Option<&StoreError>) {
        let mut failing = self.failing.lock();
        match (error, &mut *failing) {
            (None, None) => {}
            // A small write may fit where the next one does not.
            (None, Some(_)) if !self.has_room() => {}
            (None, Some(_)) => {
                tracing::warn!(directory = %self.directory.display(), "the store can be written again");
                *failing = None;
            }
            (Some(error), Some(known)) => known.error = error.clone(),
            (Some(error), None) => {
                tracing::error!(%error, "the store cannot be written");
                *failing = Some(FailureState {
                    error: error.clone(),
                    last_probe: None,
                });
            }
        }
    }

    /// Returns the state of writes. If it is unknown, the caller must probe.
    pub(crate) fn write_health(&self) -> WriteHealth {
        if let Some(failing) = &mut *self.failing.lock() {
            let now = Instant::now();
            // Without room for a segment, writes soon fail again even if a small probe succeeds.
            if !self.has_room() {
                return WriteHealth::Failing(failing.error.clone());
            }
            if failing.last_probe.is_some_and(|last| now < last + PROBE_INTERVAL) {
                return WriteHealth::Failing(failing.error.clone());
            }
            // Set before the probe runs, so that concurrent callers do not probe as well.
            failing.last_probe = Some(now);
            return WriteHealth::Unknown;
        }
        match self.check_file_system() {
            Ok(()) => WriteHealth::Writable,
            Err(error) => WriteHealth::Failing(error),
        }
    }

    /// Returns whether a segment fits on the file system. If the file system does not report its free space,
    /// returns true and lets a probe decide.
    fn has_room(&self) -> bool {
        let data = rustix::fs::statvfs(&self.directory);
        !data.is_ok_and(|data| data.f_bavail.saturating_mul(data.f_frsize) < self.room)
    }

    /// Detects a read-only file system or a removed directory before a write does.
    fn check_file_system(&self) -> Result<(), StoreError> {
        let unusable = |source| io_error("write to", &self.directory, source);
        let data = rustix::fs::statvfs(&self.directory).map_err(|error| unusable(error.into()))?;
        if data.f_flag.contains(StatVfsMountFlags::RDONLY) {
            return Err(unusable(std::io::ErrorKind::ReadOnlyFilesystem.into()));
        }
        Ok(())
    }
}
