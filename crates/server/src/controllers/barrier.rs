//! How far the controller has come with the definitions that this server has written.
//!
//! What is answered follows from all that was written before. A new definition takes the controller some work, which
//! goes on beside the next requests: only those wait for it whose answer depends on it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// The longest that a request waits: a controller whose store fails does not stop the server.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Revisions of definitions.
#[derive(Debug)]
pub(crate) struct CrdBarrier {
    /// The newest that requests of this server have written and did not wait for.
    written: AtomicU64,
    /// The newest that the controller has carried out.
    settled: watch::Sender<u64>,
}

impl Default for CrdBarrier {
    fn default() -> Self {
        CrdBarrier {
            written: AtomicU64::new(0),
            settled: watch::Sender::new(0),
        }
    }
}

impl CrdBarrier {
    /// Notes that the controller has carried out everything up to a revision.
    pub(crate) fn applied(&self, revision: u64) {
        self.settled.send_replace(revision);
    }

    /// Notes a write that others wait for if they depend on it.
    pub(crate) fn written(&self, revision: u64) {
        self.written.fetch_max(revision, Ordering::AcqRel);
    }

    /// Whether there is anything to wait for.
    pub(crate) fn is_behind(&self) -> bool {
        *self.settled.borrow() < self.written.load(Ordering::Acquire)
    }

    /// Waits for all that was noted.
    pub(crate) async fn wait_all(&self) {
        self.wait_for(self.written.load(Ordering::Acquire)).await;
    }

    /// Waits until the controller has carried out a write.
    pub(crate) async fn wait_for(&self, revision: u64) {
        let mut settled = self.settled.subscribe();
        let seen = settled.wait_for(|r| *r >= revision);
        let _ = tokio::time::timeout(MAX_WAIT, seen).await;
    }
}
