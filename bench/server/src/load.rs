//! Load: as much as the server takes (each connection asks again at once), or at a given rate (what comes late has
//! waited, and the wait counts).

use crate::Failure;
use crate::child::Server;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// What is asked: the bytes of the n-th request, and the status that its answer has.
#[derive(Clone)]
pub struct Work {
    pub request: Arc<dyn Fn(usize, &mut Vec<u8>) + Send + Sync>,
    pub status: u16,
}

/// When a load ends.
#[derive(Clone, Copy)]
pub struct Bound {
    pub requests: usize,
    pub time: Duration,
}

/// How fast requests come.
#[derive(Clone, Copy)]
pub enum Pace {
    /// As fast as they are answered.
    Full,
    /// So many a second.
    PerSecond(f64),
}

/// What a load came to.
pub struct Outcome {
    pub requests: usize,
    pub elapsed: Duration,
    latencies: Vec<Duration>,
    /// How late requests were sent, where they were due at a time.
    delays: Vec<Duration>,
    /// The server's processor time.
    cpu: Duration,
}

impl Outcome {
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64()
    }

    /// The server's processor time per request.
    pub fn cpu_each(&self) -> Duration {
        self.cpu
            .checked_div(u32::try_from(self.requests).unwrap_or(u32::MAX))
            .unwrap_or_default()
    }

    /// A quantile of the time that a request took.
    pub fn quantile(&self, q: f64) -> Duration {
        quantile(&self.latencies, q)
    }

    /// A quantile of the part of it that passed before the request was sent.
    pub fn delay(&self, q: f64) -> Duration {
        quantile(&self.delays, q)
    }
}

fn quantile(sorted: &[Duration], q: f64) -> Duration {
    let at = ((sorted.len() as f64 * q) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

/// Runs a load over some connections. Requests are numbered from `first` on, each number once.
pub async fn run(
    server: &Server,
    connections: usize,
    pace: Pace,
    bound: Bound,
    first: usize,
    work: &Work,
) -> Result<Outcome, Failure> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        clients.push(server.endpoint.connect().await?);
    }
    let next = Arc::new(AtomicUsize::new(0));
    let cpu = server.cpu();
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for mut client in clients {
        let (next, work) = (Arc::clone(&next), work.clone());
        tasks.spawn(async move {
            let mut times = Vec::new();
            let mut request = Vec::new();
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= bound.requests || start.elapsed() >= bound.time {
                    break;
                }
                let begin = match pace {
                    Pace::Full => Instant::now(),
                    Pace::PerSecond(rate) => {
                        let due = start + Duration::from_secs_f64(n as f64 / rate);
                        tokio::time::sleep_until(due.into()).await;
                        due
                    }
                };
                request.clear();
                (work.request)(first + n, &mut request);
                let delay = begin.elapsed();
                client
                    .send(&request)
                    .await
                    .map_err(|e| e.to_string())?
                    .expect(work.status)
                    .map_err(|e| e.to_string())?;
                times.push((delay, begin.elapsed()));
            }
            Ok::<_, String>(times)
        });
    }
    let mut times = Vec::new();
    while let Some(done) = tasks.join_next().await {
        times.extend(done??);
    }
    let elapsed = start.elapsed();
    let (mut delays, mut latencies): (Vec<_>, Vec<_>) = times.into_iter().unzip();
    delays.sort_unstable();
    latencies.sort_unstable();
    Ok(Outcome {
        requests: latencies.len(),
        elapsed,
        latencies,
        delays,
        cpu: server.cpu().saturating_sub(cpu),
    })
}
