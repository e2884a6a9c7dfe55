//! Durable creates.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_disk::Target;
use scantling_store::{EmbeddedConfig, EmbeddedStore, EtcdConfig, EtcdStore, Store, StoreError, Write};

use crate::limit;
use crate::{Failure, VALUE};

/// The duration of the run for each number of writers.
pub(crate) const RUN: Duration = Duration::from_secs(1);
/// The number of rounds for each number of writers.
const ROUNDS: usize = 7;
pub(crate) const WRITERS: [usize; 3] = [1, 16, 256];

/// Writes per second, and the latency of a write.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    per_second: f64,
    p50: Duration,
    p99: Duration,
}

impl Rate {
    pub(crate) fn of(mut latencies: Vec<Duration>, writes_each: usize, took: Duration) -> Self {
        latencies.sort_unstable();
        let at = |percent: usize| latencies[(latencies.len() - 1) * percent / 100];
        Self {
            per_second: (latencies.len() * writes_each) as f64 / took.as_secs_f64(),
            p50: at(50),
            p99: at(99),
        }
    }
}

/// Creates from many tasks in parallel.
async fn write(store: &Arc<dyn Store>, writers: usize, round: usize) -> Result<Rate, Failure> {
    let start = Instant::now();
    let name = move |writer, n| format!("{round}-{writers}-{writer}/{n:08}");
    // No pace: each writer writes again at once.
    let latencies = latencies(store, writers, RUN, None, name).await?;
    Ok(Rate::of(latencies, 1, start.elapsed()))
}

/// The latencies of creates by many parallel tasks. Each task waits for its previous create and keeps to the pace.
pub(crate) async fn latencies(
    store: &Arc<dyn Store>,
    writers: usize,
    run: Duration,
    pace: Option<Duration>,
    name: impl Fn(usize, usize) -> String + Clone + Send + 'static,
) -> Result<Vec<Duration>, Failure> {
    let start = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let (store, name) = (Arc::clone(store), name.clone());
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                let mut pace = pace.map(tokio::time::interval);
                while start.elapsed() < run {
                    let key = format!("/registry/example.com/widgets/{}", name(writer, latencies.len()));
                    let value = vec![b'x'; VALUE].into();
                    if let Some(pace) = &mut pace {
                        // Late requests catch up.
                        pace.tick().await;
                    }
                    let begin = Instant::now();
                    store.write(&key, Write::Create { value }).await?;
                    latencies.push(begin.elapsed());
                }
                Ok::<_, StoreError>(latencies)
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await??);
    }
    Ok(latencies)
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// The median of some rates, and the extremes.
fn summary(rates: &[Rate]) -> String {
    let mut rates = rates.to_vec();
    rates.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
    let Rate { per_second, p50, p99 } = rates[rates.len() / 2];
    let (slowest, fastest) = (rates[0].per_second, rates[rates.len() - 1].per_second);
    format!(
        "{per_second:.0} ({slowest:.0} to {fastest:.0}), p50 {:.2} ms, p99 {:.2} ms",
        p50.as_secs_f64() * 1e3,
        p99.as_secs_f64() * 1e3
    )
}

/// Durable creates. All engines take turns, so that other load affects them alike; ratios are between
/// neighbouring runs.
pub(crate) async fn creates(root: &Path, numbers: &[usize]) -> Result<(), Failure> {
    let directory = tempfile::tempdir_in(root)?;
    let embedded: Arc<dyn Store> = Arc::new(EmbeddedStore::open(EmbeddedConfig::new(
        directory.path().join("embedded"),
    ))?);
    let server = etcd(directory.path())?;
    let etcd: Option<Arc<dyn Store>> = match &server {
        None => None,
        Some((_, address)) => Some(Arc::new(
            EtcdStore::connect(EtcdConfig::new(vec![address.clone()])).await?,
        )),
    };
    // Blocking work on a thread of the runtime would delay its other tasks.
    let mut target = tokio::task::block_in_place(|| Target::new(directory.path()))?;
    println!("\n## Durable creates of 1 KiB per second: median of {ROUNDS} rounds (slowest to fastest)\n");
    println!("The limits are written {}.\n", target.way);
    println!(
        "| writers | limit, one thread | limit, group commit | embedded | etcd | one thread / embedded | \
         group commit / embedded | embedded / etcd |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for &writers in numbers {
        let [mut alone, mut together, mut ours, mut theirs] = [const { Vec::new() }; 4];
        for round in 0..ROUNDS {
            alone.push(tokio::task::block_in_place(|| {
                limit::alone(&mut target, writers)
            })?);
            ours.push(write(&embedded, writers, round).await?);
            together.push(limit::together(&mut target, writers).await?);
            if let Some(etcd) = &etcd {
                theirs.push(write(etcd, writers, round).await?);
            }
        }
        let ratio = |above: &[Rate], below: &[Rate]| {
            let pairs = above.iter().zip(below);
            // Pairs of neighbouring runs: the disk is slower at some times than at others.
            median(
                pairs
                    .map(|(above, below)| above.per_second / below.per_second)
                    .collect(),
            )
        };
        let (other, faster) = match theirs.as_slice() {
            [] => ("not here".to_owned(), "".to_owned()),
            theirs => (summary(theirs), format!("{:.1}", ratio(&ours, theirs))),
        };
        println!(
            "| {writers} | {} | {} | {} | {other} | {:.2} | {:.2} | {faster} |",
            summary(&alone),
            summary(&together),
            summary(&ours),
            ratio(&alone, &ours),
            ratio(&together, &ours),
        );
    }
    Ok(())
}

/// A single-member etcd on the same disk.
struct Etcd(Child);

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn etcd(directory: &Path) -> Result<Option<(Etcd, String)>, Failure> {
    // Both are held until the addresses are known, so that they differ.
    let ports = [
        TcpListener::bind("127.0.0.1:0")?,
        TcpListener::bind("127.0.0.1:0")?,
    ];
    let [client, peer] = ports.map(|port| port.local_addr().map(|address| format!("http://{address}")));
    let (client, peer) = (client?, peer?);
    let child = Command::new("etcd")
        .args([
            "--listen-client-urls",
            &client,
            "--advertise-client-urls",
            &client,
        ])
        .args([
            "--listen-peer-urls",
            &peer,
            "--initial-advertise-peer-urls",
            &peer,
        ])
        .args(["--name", "bench", "--initial-cluster", &format!("bench={peer}")])
        // The default quota would end the run.
        .args(["--quota-backend-bytes", "8000000000"])
        .arg("--data-dir")
        .arg(directory.join("etcd"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match child {
        Ok(child) => Ok(Some((Etcd(child), client))),
        Err(_) => {
            println!("SKIPPED: there is no `etcd` on this machine (Debian: apt-get install etcd-server)");
            Ok(None)
        }
    }
}
