//! Measures the disk alone ([`bench_disk`]): the bytes of a write, and a flush.
//!
//! It is measured in two ways. In the first, one thread writes for all writers and flushes; no writer has to
//! be woken, which a real store cannot avoid. In the second, with group commit, each writer is a task that
//! submits its bytes and waits, and one thread waits for all of them, writes, flushes and replies. That is
//! the minimum for any durable store.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bench_disk::Target;
use tokio::sync::oneshot;

use crate::creates::{RUN, Rate};
use crate::{Failure, VALUE};

/// The bytes of a create besides its value: the key, revisions, lengths.
const AROUND: usize = 80;

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

/// Bytes to write, and the tasks that wait for them.
#[derive(Default)]
struct Group {
    bytes: Vec<u8>,
    waiting: Vec<oneshot::Sender<()>>,
    /// The number of active writers.
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

    /// Writes for all waiting tasks, once all writers wait.
    fn serve(&self, target: &mut Target) -> Result<(), Failure> {
        loop {
            let mut group = self.group();
            // All active writers wait, so nothing would be gained by waiting longer.
            while group.waiting.len() < group.writers {
                group = self.complete.wait(group).unwrap_or_else(PoisonError::into_inner);
            }
            if group.writers == 0 {
                return Ok(());
            }
            let Group { bytes, waiting, .. } = std::mem::take(&mut *group);
            // `take` also clears the number of writers, which has not changed.
            group.writers = waiting.len();
            drop(group);
            target.append(&bytes)?;
            for writer in waiting {
                // A writer that has ended no longer waits.
                let _ = writer.send(());
            }
        }
    }
}

/// A writer that writes again as soon as it gets a reply.
async fn writer(shared: Arc<Shared>, start: Instant) -> Vec<Duration> {
    let mut latencies = Vec::new();
    while start.elapsed() < RUN {
        let value = [b'x'; VALUE + AROUND];
        let begin = Instant::now();
        let (answer, answered) = oneshot::channel();
        // The lock is released before the reply is awaited.
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
    // The others must not wait for a writer that has ended.
    shared.group().writers -= 1;
    shared.complete.notify_one();
    latencies
}

/// One thread writes for all waiting tasks.
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
