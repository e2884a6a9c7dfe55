//! Tracks how far the controller has processed the CRDs that this server has written.
//!
//! A response must reflect all earlier writes. The controller processes a new CRD in parallel to the next
//! requests; only requests that depend on it wait.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// The maximum time that a request waits: a failing store must not stop the server.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Revisions of CRDs.
#[derive(Debug)]
pub(crate) struct CrdBarrier {
    /// The newest revision that requests of this server wrote without waiting.
    written: AtomicU64,
    /// The newest revision that the controller has applied.
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
    /// Records that the controller has applied everything up to a revision.
    pub(crate) fn applied(&self, revision: u64) {
        self.settled.send_replace(revision);
    }

    /// Records a write that dependent requests wait for.
    pub(crate) fn written(&self, revision: u64) {
        // Concurrent writes may report out of order.
        self.written.fetch_max(revision, Ordering::AcqRel);
    }

    /// Returns whether the controller is behind.
    pub(crate) fn is_behind(&self) -> bool {
        *self.settled.borrow() < self.written.load(Ordering::Acquire)
    }

    /// Waits until all recorded writes are applied.
    pub(crate) async fn wait_all(&self) {
        self.wait_for(self.written.load(Ordering::Acquire)).await;
    }

    /// Waits until the controller has applied a write.
    pub(crate) async fn wait_for(&self, revision: u64) {
        let mut settled = self.settled.subscribe();
        let seen = settled.wait_for(|r| *r >= revision);
        // After the timeout the request goes on with the kinds that are known.
        let _ = tokio::time::timeout(MAX_WAIT, seen).await;
    }
}
