//! Generates load: at full rate (each connection sends its next request at once) or at a given rate.
//!
//! At a given rate, latency counts from the time a request is due, so queueing in the server counts. The
//! client shares the machine: if a connection was free and the request was still sent late, the delay is the
//! client's own and is reported separately.

use crate::Failure;
use crate::child::Server;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// A workload: the bytes of the n-th request, and the expected status.
#[derive(Clone)]
pub struct Work {
    pub request: Arc<dyn Fn(usize, &mut Vec<u8>) + Send + Sync>,
    pub status: u16,
}

/// The end of a load.
#[derive(Clone, Copy)]
pub struct Bound {
    pub requests: usize,
    pub time: Duration,
}

/// The rate of requests.
#[derive(Clone, Copy)]
pub enum Pace {
    /// As fast as they are answered.
    Full,
    /// A number of requests per second.
    PerSecond(f64),
}

/// The precision with which requests are sent when they are due.
const BEAT: Duration = Duration::from_micros(100);

/// The schedule of requests.
///
/// The runtime's timers have millisecond resolution, and a connection can handle several requests per
/// millisecond. A connection that oversleeps would be missing for later requests, which would look like
/// queueing in the server. So a separate thread keeps time.
#[derive(Clone)]
struct Schedule {
    start: Instant,
    rate: f64,
    /// A permit for each due request; closed when the time is over.
    permits: Arc<Semaphore>,
}

impl Schedule {
    fn begin(start: Instant, rate: f64, bound: Bound) -> Self {
        let permits = Arc::new(Semaphore::new(0));
        let given = Arc::clone(&permits);
        std::thread::spawn(move || {
            let mut count = 0;
            while start.elapsed() < bound.time && count < bound.requests {
                // One more, because the first request is due at once.
                let due = ((start.elapsed().as_secs_f64() * rate) as usize + 1).min(bound.requests);
                given.add_permits(due - count);
                count = due;
                std::thread::sleep(BEAT);
            }
            // Closing wakes the connections that still wait.
            given.close();
        });
        Self { start, rate, permits }
    }

    /// Waits until a request is due. Returns false at the end.
    async fn wait(&self) -> bool {
        // The permit is spent, not returned.
        self.permits.acquire().await.map(|permit| permit.forget()).is_ok()
    }

    /// The time at which the n-th request is due.
    fn due(&self, n: usize) -> Instant {
        self.start + Duration::from_secs_f64(n as f64 / self.rate)
    }
}

/// The result of a load.
pub struct Outcome {
    pub requests: usize,
    pub elapsed: Duration,
    /// Latencies from when requests were due, or could be sent, to their responses.
    latencies: Vec<Duration>,
    /// The same without the client's own delay.
    own: Vec<Duration>,
    /// The client's own delay.
    late: Vec<Duration>,
    /// The server's processor time.
    cpu: Duration,
    /// The time for which the hypervisor took the processors away.
    pub stolen: Duration,
    /// The number of requests answered within the target, by the server's own clock, and the total.
    in_time: Option<(f64, f64)>,
}

impl Outcome {
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64()
    }

    /// The server's processor time per request.
    pub fn cpu_each(&self) -> Duration {
        self.cpu
            // Fewer than 2^32 requests fit in any run.
            .checked_div(u32::try_from(self.requests).unwrap_or(u32::MAX))
            .unwrap_or_default()
    }

    /// A quantile of the latency.
    pub fn quantile(&self, q: f64) -> Duration {
        quantile(&self.latencies, q)
    }

    /// A quantile of the latency without the client's own delay.
    pub fn own_quantile(&self, q: f64) -> Duration {
        quantile(&self.own, q)
    }

    /// Combines several loads.
    pub fn together(rounds: &[Outcome]) -> Outcome {
        let sorted = |times: fn(&Outcome) -> &Vec<Duration>| {
            let mut sorted: Vec<Duration> = rounds.iter().flat_map(times).copied().collect();
            sorted.sort_unstable();
            sorted
        };
        let answered = rounds.iter().filter_map(|round| round.in_time);
        Outcome {
            requests: rounds.iter().map(|round| round.requests).sum(),
            elapsed: rounds.iter().map(|round| round.elapsed).sum(),
            latencies: sorted(|round| &round.latencies),
            own: sorted(|round| &round.own),
            late: sorted(|round| &round.late),
            cpu: rounds.iter().map(|round| round.cpu).sum(),
            stolen: rounds.iter().map(|round| round.stolen).sum(),
            in_time: answered.reduce(|(quick, all), (more, of)| (quick + more, all + of)),
        }
    }

    /// A quantile of the client's own delay.
    pub fn late(&self, q: f64) -> Duration {
        quantile(&self.late, q)
    }

    /// The share of requests answered within the target, by the server's own clock.
    pub fn share_in_time(&self) -> Option<f64> {
        self.in_time.map(|(quick, all)| quick / all)
    }
}

/// The times of one request.
struct Times {
    whole: Duration,
    late: Duration,
}

fn quantile(sorted: &[Duration], q: f64) -> Duration {
    let at = ((sorted.len() as f64 * q) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

/// The steal time of the virtual machine, in hundredths of a second.
fn stolen() -> Duration {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = stat
        .split_whitespace()
        .nth(8)
        .and_then(|field| field.parse().ok());
    Duration::from_millis(10 * ticks.unwrap_or(0))
}

/// Runs a load over some connections. Requests are numbered from `first` on.
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
    // The n-th request is taken by the first free connection, as by a queue.
    let next = Arc::new(AtomicUsize::new(0));
    // The server's own counters are read outside the measured time.
    let answered = server.answered().await?;
    let (cpu, stolen) = (server.cpu(), stolen());
    let start = Instant::now();
    let schedule = match pace {
        Pace::Full => None,
        Pace::PerSecond(rate) => Some(Schedule::begin(start, rate, bound)),
    };
    let mut tasks = JoinSet::new();
    for mut client in clients {
        let (next, work, schedule) = (Arc::clone(&next), work.clone(), schedule.clone());
        tasks.spawn(async move {
            let mut times = Vec::new();
            let mut request = Vec::new();
            loop {
                let free = Instant::now();
                if let Some(schedule) = &schedule
                    && !schedule.wait().await
                {
                    break;
                }
                let n = next.fetch_add(1, Ordering::Relaxed);
                // At full rate, only this check ends the load.
                if n >= bound.requests || start.elapsed() >= bound.time {
                    break;
                }
                let due = schedule.as_ref().map_or(free, |schedule| schedule.due(n));
                // If the connection was busy when the request was due, the delay is the server's.
                let late = free.max(due).elapsed();
                request.clear();
                (work.request)(first + n, &mut request);
                client
                    .send(&request)
                    .await
                    .map_err(|e| e.to_string())?
                    .expect(work.status)
                    .map_err(|e| e.to_string())?;
                times.push(Times {
                    whole: due.elapsed(),
                    late,
                });
            }
            Ok::<_, String>(times)
        });
    }
    let mut times = Vec::new();
    while let Some(done) = tasks.join_next().await {
        times.extend(done??);
    }
    let elapsed = start.elapsed();
    let cpu = server.cpu().saturating_sub(cpu);
    let stolen = self::stolen().saturating_sub(stolen);
    let in_time = server.answered().await?;
    let sorted = |time: fn(&Times) -> Duration| {
        let mut sorted: Vec<Duration> = times.iter().map(time).collect();
        sorted.sort_unstable();
        sorted
    };
    Ok(Outcome {
        requests: times.len(),
        elapsed,
        latencies: sorted(|t| t.whole),
        own: sorted(|t| t.whole.saturating_sub(t.late)),
        late: sorted(|t| t.late),
        cpu,
        stolen,
        in_time: (in_time.1 > answered.1).then_some((in_time.0 - answered.0, in_time.1 - answered.1)),
    })
}
