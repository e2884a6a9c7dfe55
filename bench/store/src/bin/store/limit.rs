//! What the disk allows: the bytes of a write, in a file whose blocks are there already, and a flush; nothing is looked
//! up, nothing is kept, nobody reads.
//!
//! It is measured twice. Once by one thread that writes for as many as there are writers and flushes: no writer has to
//! be woken, which no program that answers writers can do without. And once with group commit: as many tasks as there
//! are writers, each of which hands its bytes over and waits, and one thread that waits for all of them, writes, flushes
//! and answers. That is the least that any durable store has to do for them.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::creates::{RUN, Rate};
use crate::{Failure, VALUE};

/// How large the file is.
const SIZE: u64 = 64 << 20;
/// What direct writes begin at, and are a multiple of.
const BLOCK: usize = 4096;
/// What a create writes beside its value: the key, revisions, lengths.
const AROUND: usize = 80;
/// How long each way to write is tried.
const TRIAL: Duration = Duration::from_millis(300);

/// A file to write to in the way that is the faster one here.
pub(crate) struct Target {
    file: File,
    pub(crate) way: &'static str,
    offset: u64,
    buffer: Vec<u8>,
}

impl Target {
    pub(crate) fn new(directory: &Path) -> Result<Self, Failure> {
        let path = directory.join("limit");
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        let file = options.open(&path)?;
        for at in (0..SIZE).step_by(1 << 20) {
            file.write_all_at(&vec![0; 1 << 20], at)?;
        }
        file.sync_all()?;
        let target = |file, way| Self {
            file,
            way,
            offset: 0,
            buffer: Vec::new(),
        };
        let mut buffered = target(file, "through the cache");
        let Ok(file) = options.custom_flags(libc::O_DIRECT).open(&path) else {
            return Ok(buffered);
        };
        let mut direct = target(file, "past the cache");
        let (mut fast, mut slow) = (direct.flushes()?, buffered.flushes()?);
        fast += direct.flushes()?;
        slow += buffered.flushes()?;
        Ok(if fast >= slow { direct } else { buffered })
    }

    /// How many writes of sixteen values are flushed in a while.
    fn flushes(&mut self) -> Result<usize, Failure> {
        let start = Instant::now();
        let mut count = 0;
        while start.elapsed() < TRIAL {
            self.append(&vec![b'x'; 16 * VALUE])?;
            count += 1;
        }
        Ok(count)
    }

    /// Writes bytes in whole blocks, as the file system or we ourselves have to, and flushes.
    fn append(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let length = bytes.len().next_multiple_of(BLOCK);
        if self.buffer.len() < length + BLOCK {
            self.buffer = vec![0; length + BLOCK];
        }
        let start = self.buffer.as_ptr().align_offset(BLOCK);
        self.buffer[start..start + bytes.len()].copy_from_slice(bytes);
        if self.offset + length as u64 > SIZE {
            self.offset = 0;
        }
        self.file
            .write_all_at(&self.buffer[start..start + length], self.offset)?;
        self.file.sync_data()?;
        self.offset += length as u64;
        Ok(())
    }
}

/// One thread writes for all.
pub(crate) fn alone(target: &mut Target, writers: usize) -> Result<Rate, Failure> {
    let batch = vec![b'x'; (VALUE + AROUND) * writers];
    let mut latencies = Vec::new();
    let start = Instant::now();
    while start.elapsed() < RUN {
        let begin = Instant::now();
        target.append(&batch)?;
        latencies.push(begin.elapsed());
    }
    Ok(Rate::of(latencies, writers, start.elapsed()))
}

/// Bytes to write, and who waits for them.
#[derive(Default)]
struct Group {
    bytes: Vec<u8>,
    waiting: Vec<oneshot::Sender<()>>,
    /// How many writers are still at it.
    writers: usize,
}

#[derive(Default)]
struct Shared {
    group: Mutex<Group>,
    complete: Condvar,
}

impl Shared {
    fn group(&self) -> std::sync::MutexGuard<'_, Group> {
        self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes for whoever waits, once all do.
    fn serve(&self, target: &mut Target) -> Result<(), Failure> {
        loop {
            let mut group = self.group();
            while group.waiting.len() < group.writers {
                group = self.complete.wait(group).unwrap_or_else(PoisonError::into_inner);
            }
            if group.writers == 0 {
                return Ok(());
            }
            let Group { bytes, waiting, .. } = std::mem::take(&mut *group);
            group.writers = waiting.len();
            drop(group);
            target.append(&bytes)?;
            for writer in waiting {
                let _ = writer.send(());
            }
        }
    }
}

/// One who writes again as soon as it has been answered.
async fn writer(shared: Arc<Shared>, start: Instant) -> Vec<Duration> {
    let mut latencies = Vec::new();
    while start.elapsed() < RUN {
        let value = [b'x'; VALUE + AROUND];
        let begin = Instant::now();
        let (answer, answered) = oneshot::channel();
        let complete = {
            let mut group = shared.group();
            group.bytes.extend_from_slice(&value);
            group.waiting.push(answer);
            group.waiting.len() >= group.writers
        };
        if complete {
            shared.complete.notify_one();
        }
        if answered.await.is_err() {
            break;
        }
        latencies.push(begin.elapsed());
    }
    shared.group().writers -= 1;
    shared.complete.notify_one();
    latencies
}

/// One thread writes for as many as wait for it.
pub(crate) async fn together(target: &mut Target, writers: usize) -> Result<Rate, Failure> {
    let shared = Arc::new(Shared::default());
    shared.group().writers = writers;
    let start = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|_| tokio::spawn(writer(Arc::clone(&shared), start)))
        .collect();
    tokio::task::block_in_place(|| {
        std::thread::scope(|scope| {
            scope
                .spawn(|| shared.serve(target))
                .join()
                .unwrap_or_else(|_| Err("the thread that writes has ended early".into()))
        })
    })?;
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await?);
    }
    Ok(Rate::of(latencies, 1, start.elapsed()))
}
