//! Threads for what nobody waits for.

use std::io;
use std::thread::{Builder, JoinHandle};

/// Starts a thread that gives way to those which answer somebody.
pub(crate) fn start<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(format!("store-{name}")).spawn(move || {
        stand_back();
        work()
    })
}

/// A checkpoint is a tenth of a second of work, several times a minute: with few cores, whoever asks meanwhile would
/// wait for its share of one. This takes about a third of a share, enough to keep up with any writers there can be.
#[cfg(target_os = "linux")]
fn stand_back() {
    const STEPS: i32 = 5;
    // Where this is refused, requests wait a little longer.
    let _ = rustix::process::nice(STEPS);
}

/// Elsewhere, there is one priority for all threads of a process.
#[cfg(not(target_os = "linux"))]
fn stand_back() {}
