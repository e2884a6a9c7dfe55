//! How far the controller has come with the definitions that this server has written.
//!
//! What is answered follows from all that was written before. A new definition takes the controller some work, which
//! goes on beside the next requests: only those wait for it whose answer depends on it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// The longest that a request waits: a controller whose store fails does not stop the server.
const PATIENCE: Duration = Duration::from_secs(2);

/// Revisions of definitions.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The newest that requests of this server have written and did not wait for.
    written: AtomicU64,
    /// The newest that the controller has carried out.
    settled: watch::Sender<u64>,
}

impl Default for Progress {
    fn default() -> Self {
        Progress {
            written: AtomicU64::new(0),
            settled: watch::Sender::new(0),
        }
    }
}

impl Progress {
    /// Notes that the controller has carried out everything up to a revision.
    pub(crate) fn settle(&self, revision: u64) {
        self.settled.send_replace(revision);
    }

    /// Notes a write that others wait for if they depend on it.
    pub(crate) fn note(&self, revision: u64) {
        self.written.fetch_max(revision, Ordering::AcqRel);
    }

    /// Whether there is anything to wait for.
    pub(crate) fn is_behind(&self) -> bool {
        *self.settled.borrow() < self.written.load(Ordering::Acquire)
    }

    /// Waits for all that was noted.
    pub(crate) async fn catch_up(&self) {
        self.reach(self.written.load(Ordering::Acquire)).await;
    }

    /// Waits until the controller has carried out a write.
    pub(crate) async fn reach(&self, revision: u64) {
        let mut settled = self.settled.subscribe();
        let seen = settled.wait_for(|r| *r >= revision);
        let _ = tokio::time::timeout(PATIENCE, seen).await;
    }
}
