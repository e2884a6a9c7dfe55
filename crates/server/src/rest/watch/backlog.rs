//! The events of a watch that its client has not received yet.

use crate::http::memory::{Budget, Charge};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio::sync::{Notify, mpsc};

/// The maximum number of pending chunks, after which the watch ends: kube-apiserver's number of events.
const MAX_CHUNKS: usize = 100;

/// The maximum number of pending bytes. A single event may be larger.
const MAX_BYTES: usize = 4 << 20;

/// The maximum number of pending bytes of initial events.
const PACED_BYTES: usize = 32 << 10;

/// Chunks up to this size are not charged: all watchers of a kind usually share them.
const UNCHARGED: usize = 4 << 10;

#[derive(Debug, Default)]
struct Queue {
    bytes: AtomicUsize,
    /// Wakes the sender when a chunk is taken.
    taken: Notify,
}

#[derive(Debug)]
struct Chunk {
    bytes: Bytes,
    queue: Arc<Queue>,
    _charge: Option<Charge>,
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.queue.bytes.fetch_sub(self.bytes.len(), Ordering::Relaxed);
        self.queue.taken.notify_one();
    }
}

pub(super) fn channel(budget: &Budget) -> (Sender, Receiver) {
    let (chunks, received) = mpsc::channel(MAX_CHUNKS);
    let sender = Sender {
        chunks,
        queue: Arc::default(),
        budget: budget.clone(),
    };
    (sender, Receiver(received))
}

#[derive(Debug)]
pub(super) struct Sender {
    chunks: mpsc::Sender<Chunk>,
    queue: Arc<Queue>,
    budget: Budget,
}

/// Waits until the client disconnects.
pub(super) struct ClientPresence(mpsc::Sender<Chunk>);

impl ClientPresence {
    pub(super) async fn gone(&self) {
        self.0.closed().await;
    }
}

impl Sender {
    pub(super) fn client(&self) -> ClientPresence {
        ClientPresence(self.chunks.clone())
    }

    /// Queues a chunk; `None` if the client has disconnected or is too far behind.
    pub(super) fn try_send(&self, bytes: Bytes) -> Option<()> {
        let queued = self.queue.bytes.load(Ordering::Relaxed);
        // Only one task sends, so nothing is added between this check and the count below.
        if queued > 0 && queued + bytes.len() > MAX_BYTES {
            return None;
        }
        let charge = match bytes.len() {
            ..=UNCHARGED => None,
            length => Some(self.budget.charge(length)?),
        };
        self.queue.bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        let queue = Arc::clone(&self.queue);
        let chunk = Chunk {
            bytes,
            queue,
            _charge: charge,
        };
        // A chunk that is refused drops here, which takes its bytes off the count again.
        self.chunks.try_send(chunk).ok()
    }

    /// Queues a chunk once the client has received most of the others. Never returns if the client has disconnected.
    pub(super) async fn send(&self, bytes: Bytes) {
        // `Notify` keeps one permit, so a chunk that is taken between check and wait is not missed.
        while self.queue.bytes.load(Ordering::Relaxed) > PACED_BYTES {
            self.queue.taken.notified().await;
        }
        self.queue.bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        let queue = Arc::clone(&self.queue);
        let chunk = Chunk {
            bytes,
            queue,
            _charge: None,
        };
        // If the client disconnects, the task that waits for it drops this future.
        let _ = self.chunks.send(chunk).await;
    }
}

/// The client's end. Dropping it ends the watch.
#[derive(Debug)]
pub(crate) struct Receiver(mpsc::Receiver<Chunk>);

impl Receiver {
    pub(crate) async fn recv(&mut self) -> Option<Bytes> {
        Some(self.0.recv().await?.bytes.clone())
    }

    pub(super) fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0.poll_recv(cx).map(|chunk| Some(chunk?.bytes.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn slow_watches_are_closed() {
        let budget = Budget::new(3 * MAX_BYTES);
        let large = || Bytes::from(vec![0; MAX_BYTES / 2 + 1]);
        let (sender, mut receiver) = channel(&budget);
        assert_eq!(
            sender.try_send(vec![0; 2 * MAX_BYTES].into()),
            Some(()),
            "one event may be large"
        );
        assert_eq!(sender.try_send(Bytes::from_static(b"x")), None, "too many bytes");
        assert!(receiver.recv().await.is_some());
        assert_eq!(sender.try_send(large()), Some(()));
        assert_eq!(sender.try_send(large()), None, "too many bytes");
        for _ in 1..MAX_CHUNKS {
            assert_eq!(sender.try_send(Bytes::from_static(b"x")), Some(()));
        }
        assert_eq!(sender.try_send(Bytes::from_static(b"x")), None, "too many events");
        // Queues are separate, but share the memory.
        let others: Vec<_> = (0..8).map(|_| channel(&budget)).collect();
        let sent = others
            .iter()
            .filter(|(sender, _)| sender.try_send(large()).is_some());
        assert_eq!(sent.count(), 4);
        drop((receiver, others));
        assert_eq!(sender.queue.bytes.load(Ordering::Relaxed), 0);
        assert!(budget.charge(3 * MAX_BYTES).is_some(), "all is given back");
    }

    #[tokio::test]
    async fn initial_events_follow_the_pace_of_the_client() {
        let (sender, mut receiver) = channel(&Budget::new(usize::MAX));
        let send_all = async {
            for _ in 0..100 {
                sender.send(vec![0; PACED_BYTES].into()).await;
            }
        };
        let receive_all = async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
                assert!(sender.queue.bytes.load(Ordering::Relaxed) <= 2 * PACED_BYTES);
                receiver.recv().await;
            }
        };
        tokio::join!(send_all, receive_all);
    }
}
