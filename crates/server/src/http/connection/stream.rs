//! HTTP/2 streams, which end when the client does not read them.
//!
//! A client may read from its connection and answer pings, but grant a stream no window. Neither the
//! connection nor the response body can detect that. The task that sends the response can; ending it resets
//! the stream.

use crate::metrics::{Closed, Metrics};
use hyper::rt::Executor;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The progress of a response.
#[derive(Debug, Default)]
pub(crate) struct StreamProgress {
    /// Twice the frames that were handed over, and one more while the client has to take the last of them.
    state: AtomicU64,
}

tokio::task_local! {
    static PROGRESS: Arc<StreamProgress>;
}

impl StreamProgress {
    /// The progress of the response that this task is to send, if it is one of HTTP/2.
    pub(crate) fn current() -> Option<Arc<StreamProgress>> {
        PROGRESS.try_with(Arc::clone).ok()
    }

    /// Records that a frame was handed to the connection.
    pub(crate) fn handed_over(&self) {
        let state = self.state.load(Ordering::Relaxed);
        // One task both hands frames over and checks them, so load and store need not be one operation.
        self.state.store((state | 1) + 2, Ordering::Relaxed);
    }

    /// Records that the client has taken all frames.
    pub(crate) fn waits_for_data(&self) {
        let state = self.state.load(Ordering::Relaxed);
        self.state.store(state & !1, Ordering::Relaxed);
    }

    /// Identifies the frame that the client has not taken, if there is one.
    fn untaken(&self) -> Option<u64> {
        let state = self.state.load(Ordering::Relaxed);
        (state & 1 == 1).then_some(state)
    }
}

/// Runs the streams of HTTP/2 connections.
#[derive(Clone, Debug)]
pub(crate) struct StreamExecutor {
    pub(crate) write_timeout: Duration,
    pub(crate) metrics: Arc<Metrics>,
}

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let progress = Arc::new(StreamProgress::default());
        let (timeout, metrics) = (self.write_timeout, Arc::clone(&self.metrics));
        let watched = PROGRESS.scope(Arc::clone(&progress), async move {
            if run(stream, &progress, timeout).await.is_none() {
                metrics.closed(Closed::Stalled);
            }
        });
        tokio::spawn(watched);
    }
}

/// Runs a stream to its end, or until its client has taken nothing for `timeout`.
async fn run<F: Future>(stream: F, progress: &StreamProgress, timeout: Duration) -> Option<F::Output> {
    let mut stream = pin!(stream);
    // Most responses are taken at once, so the timer starts only when the stream has to wait for the client.
    let mut deadline = None;
    let mut awaited = None;
    poll_fn(|cx| {
        if let Poll::Ready(done) = stream.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        let untaken = progress.untaken();
        if untaken.is_none() {
            awaited = None;
            return Poll::Pending;
        }
        let sleep = deadline.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + timeout)));
        // Another frame waits now: the client is slow, but it reads.
        if awaited != untaken {
            awaited = untaken;
            sleep.as_mut().reset(Instant::now() + timeout);
        }
        sleep.as_mut().poll(cx).map(|()| None)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    const TIMEOUT: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn unread_streams_are_closed() {
        let progress = StreamProgress::default();
        let slow = async {
            for _ in 0..10 {
                progress.handed_over();
                tokio::time::sleep(TIMEOUT / 2).await;
            }
            progress.waits_for_data();
            tokio::time::sleep(10 * TIMEOUT).await;
        };
        assert_eq!(run(slow, &progress, TIMEOUT).await, Some(()));
        let stalled = async {
            progress.handed_over();
            pending::<()>().await;
        };
        let start = Instant::now();
        assert_eq!(run(stalled, &progress, TIMEOUT).await, None);
        assert_eq!(start.elapsed(), TIMEOUT);
    }
}
