//! The second client: reads a small object at a steady rate on its own connection during an attack, and
//! measures how long it waits.

use crate::http::{BYSTANDER, Endpoint, HttpRequest, RawConnection};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time between two requests.
const PERIOD: Duration = Duration::from_millis(5);
/// The number of requests per connection: new clients must be served, too.
const RECONNECT: usize = 50;
/// The time after which a request counts as failed.
const PROBE_TIMEOUT: Duration = Duration::from_secs(90);

/// The waits of the second client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waits {
    sorted: Vec<Duration>,
    /// Requests without an answer of 200.
    pub(crate) failures: usize,
    /// The cause of the last failure.
    pub(crate) failure: String,
}

impl Waits {
    pub(crate) fn longest(&self) -> Duration {
        self.sorted.last().copied().unwrap_or_default()
    }

    /// The 99th percentile of the waits.
    pub(crate) fn p99(&self) -> Duration {
        // With few requests, the 99th percentile is the longest wait but one.
        let rank = self.sorted.len().saturating_sub(1) * 99 / 100;
        self.sorted.get(rank).copied().unwrap_or_default()
    }

    pub(crate) fn count(&self) -> usize {
        self.sorted.len()
    }
}

/// A running second client.
pub(crate) struct Probe {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Waits>,
    /// Signals the first response.
    ready: std::sync::mpsc::Receiver<()>,
}

impl Probe {
    pub(crate) fn start(endpoint: &Endpoint) -> Probe {
        let stop = Arc::new(AtomicBool::new(false));
        let (send, ready) = std::sync::mpsc::channel();
        let (endpoint, stopped) = (endpoint.clone(), stop.clone());
        let thread = std::thread::spawn(move || watch(&endpoint, &stopped, &send));
        Probe { stop, thread, ready }
    }

    /// Waits for the first answer.
    pub(crate) fn wait_until_ready(&self) -> bool {
        self.ready.recv_timeout(Duration::from_secs(30)).is_ok()
    }

    /// Asks it to stop after its current request.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for it to stop. A pending request counts with the time it has waited.
    pub(crate) fn finish(self) -> Waits {
        self.stop();
        self.thread.join().unwrap_or_default()
    }
}

fn watch(endpoint: &Endpoint, stop: &AtomicBool, ready: &std::sync::mpsc::Sender<()>) -> Waits {
    let request = endpoint.bytes(&HttpRequest::get("/api/v1/namespaces/default"));
    let mut waits = Waits::default();
    let mut connection: Option<RawConnection> = None;
    let mut due = Instant::now();
    let mut sent = 0;
    while !stop.load(Ordering::Relaxed) {
        // A request that becomes due while the previous one is pending has waited since then. If this thread
        // slept too long, it begins when the thread runs again, because the delay is the machine's, not the
        // server's.
        let now = Instant::now();
        let begin = if due > now {
            std::thread::sleep(due - now);
            Instant::now()
        } else {
            due
        };
        // The schedule does not slip: later requests are due as if this one had been answered at once.
        due += PERIOD;
        let response = (|| {
            let mut current = match connection.take() {
                // A connection that failed is not reused, and each new one includes a handshake.
                Some(current) if sent % RECONNECT != 0 => current,
                _ => endpoint.connect(BYSTANDER, PROBE_TIMEOUT)?,
            };
            let answer = current.ask(&request, Instant::now() + PROBE_TIMEOUT)?;
            connection = Some(current);
            answer.expect(&[200])
        })();
        sent += 1;
        // A failed request has waited, too.
        waits.sorted.push(begin.elapsed());
        match response {
            Ok(_) => {
                let _ = ready.send(());
            }
            // The server was stopped because it did not respond in time: the wait counts, the failure does
            // not.
            Err(_) if stop.load(Ordering::Relaxed) => break,
            Err(e) => {
                waits.failures += 1;
                waits.failure = e.to_string();
                // A server that refuses connections must not be flooded by the client that measures it.
                std::thread::sleep(PERIOD);
            }
        }
    }
    // Requests that became due during the wait have waited, too.
    let now = Instant::now();
    while due < now {
        waits.sorted.push(now - due);
        due += PERIOD;
    }
    waits.sorted.sort_unstable();
    waits
}
