//! Requests on their way to the writer.
//!
//! Those who were answered just now are likely to ask again at once. Were the writer to take what is there as
//! soon as it has answered, it would flush for the few that were late for the last flush, and the many would be
//! late for that one: two flushes where one is enough. So it waits for as many as there were lately, for a part
//! of the time that a flush takes.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::writer::Request;

/// The longest that requests wait for company.
const LONGEST_WAIT: Duration = Duration::from_millis(2);

#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    /// Tells the writer that there are as many as it wants.
    ready: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    requests: Vec<Request>,
    /// How many the writer waits for; zero while it does not wait.
    wanted: usize,
    closed: bool,
}

/// How the last batch went, which is what the next one is expected to be like.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    /// How many requests it held.
    pub(crate) requests: usize,
    /// How long a flush takes, on average of the last few.
    pub(crate) flush: Duration,
}

impl Queue {
    /// Adds a request. There are never more than callers, because each waits for its answer. Gives it back if
    /// the queue is closed.
    pub(crate) fn push(&self, request: Request) -> Result<(), Request> {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return Err(request);
        }
        waiting.requests.push(request);
        let enough = waiting.wanted > 0 && waiting.requests.len() >= waiting.wanted;
        drop(waiting);
        if enough {
            self.ready.notify_one();
        }
        Ok(())
    }

    /// Begins to serve the queue.
    pub(crate) fn serve(&self) -> Service<'_> {
        Service { queue: self }
    }

    /// Lets no more requests in. Those that are there are still taken.
    pub(crate) fn close(&self) {
        self.waiting.lock().closed = true;
        self.ready.notify_one();
    }
}

/// The one who takes requests. When it goes, however it goes, the queue is closed and what is in it is dropped,
/// so that nobody waits for an answer that will not come.
#[derive(Debug)]
pub(crate) struct Service<'a> {
    queue: &'a Queue,
}

impl Drop for Service<'_> {
    fn drop(&mut self) {
        let mut waiting = self.queue.waiting.lock();
        waiting.closed = true;
        waiting.requests.clear();
    }
}

impl Service<'_> {
    /// Takes all requests into an empty batch, once there are some; answers with false if there will be none.
    pub(crate) fn take(&self, batch: &mut Vec<Request>, last: Pace) -> bool {
        let Queue { waiting, ready } = self.queue;
        let mut waiting = waiting.lock();
        // Whoever waits by now was not in the last batch.
        waiting.wanted = last.requests + waiting.requests.len();
        let deadline = Instant::now() + (last.flush / 2).min(LONGEST_WAIT);
        while waiting.requests.len() < waiting.wanted && !waiting.closed {
            if ready.wait_until(&mut waiting, deadline).timed_out() {
                break;
            }
        }
        waiting.wanted = 1;
        while waiting.requests.is_empty() && !waiting.closed {
            ready.wait(&mut waiting);
        }
        waiting.wanted = 0;
        std::mem::swap(batch, &mut waiting.requests);
        !batch.is_empty()
    }
}
