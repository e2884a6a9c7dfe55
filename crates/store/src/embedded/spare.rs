//! The spare file: a preallocated file that becomes the next segment of the journal.
//!
//! Usually a retired segment becomes the spare. If there is none, as in the first minutes of a store, a
//! thread allocates one, so that the writer need not do it while requests wait.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::background;
use super::file::{FaultInjector, IoThrottle, ThrottledFile, io_error};
use crate::StoreError;

/// The spare file. It gets this name once it is complete.
const SPARE: &str = "journal.spare";
/// A spare file that is being filled.
const NEW: &str = "journal.spare.new";

/// Overwrites a file with zeros up to a size and truncates it there. Does not flush the last chunk. The file
/// may have any content.
pub(crate) fn fill(file: &ThrottledFile, size: u64) -> io::Result<()> {
    let zeros = vec![0; 256 << 10];
    // Existing content stays: its blocks are allocated, and the salt keeps its records from being read.
    let mut length = file.len()?;
    while length < size {
        let chunk = usize::try_from(size - length)
            .unwrap_or(usize::MAX)
            .min(zeros.len());
        file.write(zeros.get(..chunk).unwrap_or_default(), length)?;
        length += chunk as u64;
    }
    if length > size {
        file.set_len(size)?;
    }
    Ok(())
}

/// Renames the spare file, if there is one.
pub(crate) fn take(directory: &Path, name: &Path) -> Result<(), StoreError> {
    let spare = directory.join(SPARE);
    match fs::rename(&spare, name) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(io_error("rename", &spare, source)),
        _ => Ok(()),
    }
}

/// Makes a retired file the spare, or removes it if there is one already.
pub(crate) fn recycle(directory: &Path, file: &Path, segment_bytes: u64) -> Result<(), StoreError> {
    let spare = directory.join(SPARE);
    // A segment of another size was made for a large record, or with another configuration.
    let fits = fs::metadata(file).is_ok_and(|data| data.len() == segment_bytes);
    let done = if fits && !spare.exists() {
        fs::rename(file, &spare)
    } else {
        fs::remove_file(file)
    };
    done.map_err(|source| io_error("remove", file, source))
}

/// The thread that allocates spare files.
#[derive(Debug)]
pub(crate) struct SpareAllocator {
    requests: Option<SyncSender<()>>,
    /// Throttles the allocation until the file is needed.
    throttle: Arc<IoThrottle>,
    thread: Option<JoinHandle<()>>,
}

impl SpareAllocator {
    pub(crate) fn start(
        directory: PathBuf,
        segment_bytes: u64,
        faults: Option<Arc<FaultInjector>>,
    ) -> Result<Self, StoreError> {
        let (requests, received) = sync_channel(1);
        let path = directory.clone();
        let throttle = Arc::<IoThrottle>::default();
        let granted = Arc::clone(&throttle);
        let thread = background::start("spare", move || {
            prepare_files(&directory, segment_bytes, faults.as_ref(), &granted, &received);
        })
        .map_err(|source| io_error("start a thread for", &path, source))?;
        Ok(Self {
            requests: Some(requests),
            throttle,
            thread: Some(thread),
        })
    }

    /// Requests a spare file, without urgency.
    pub(crate) fn request(&self) {
        self.throttle.enable();
        // A pending request is enough.
        let _ = self.requests.as_ref().map(|requests| requests.try_send(()));
    }

    /// Stops throttling, because the file is needed soon.
    pub(crate) fn expedite(&self) {
        self.throttle.disable();
    }
}

impl Drop for SpareAllocator {
    fn drop(&mut self) {
        // The pauses of an allocation in progress must not delay the shutdown.
        self.expedite();
        // The closed channel ends the thread's loop.
        self.requests = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn prepare_files(
    directory: &Path,
    segment_bytes: u64,
    faults: Option<&Arc<FaultInjector>>,
    throttle: &Arc<IoThrottle>,
    received: &Receiver<()>,
) {
    let (spare, new) = (directory.join(SPARE), directory.join(NEW));
    while received.recv().is_ok() {
        // A retired segment may have become the spare in the meantime.
        if spare.exists() {
            continue;
        }
        // On failure, the writer makes the same attempt and reports the error.
        let _ = ThrottledFile::open(&new, faults.cloned()).map(|file| {
            let file = file.with_throttle(Arc::clone(throttle));
            fill(&file, segment_bytes)
                .and_then(|()| file.flush())
                .and_then(|()| fs::rename(&new, &spare))
        });
    }
}
