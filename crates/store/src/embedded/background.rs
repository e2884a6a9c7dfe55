//! Background threads with low priority.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread with a lower priority than the threads that serve requests.
pub(crate) fn start<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(format!("store-{name}")).spawn(move || {
        lower_priority();
        work()
    })
}

/// Lowers the priority of this thread. A checkpoint is a tenth of a second of work, several times a minute:
/// on few cores, requests would wait for the processor. At this priority it gets about a third of a share,
/// enough to keep up with the writers.
#[cfg(target_os = "linux")]
fn lower_priority() {
    const STEPS: i32 = 5;
    // If the system refuses, requests wait a little longer.
    let _ = rustix::process::nice(STEPS);
}

/// Other systems have one priority for all threads of a process.
#[cfg(not(target_os = "linux"))]
fn lower_priority() {}
