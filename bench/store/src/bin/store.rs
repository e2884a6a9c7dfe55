//! The engines beside etcd, and beside what the disk allows.
//!
//! `store [directory] [objects]`: where to write, and how many objects to open a store with. etcd is started on
//! the same disk where there is one. `store fill directory objects` fills a store and crashes, `store open
//! directory` opens one.

use std::fs::{File, OpenOptions};
use std::net::TcpListener;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use scantling_store::{
    EmbeddedConfig, EmbeddedStore, EtcdConfig, EtcdStore, ListRequest, MemStore, ReadAt, Revision, Store,
    Write,
};
use tokio::sync::{mpsc, oneshot};

type Failure = Box<dyn std::error::Error>;

/// How long each number of writers runs.
const RUN: Duration = Duration::from_secs(1);
/// How often every number of writers runs.
const ROUNDS: usize = 5;
const WRITERS: [usize; 3] = [1, 16, 256];
const VALUE: usize = 1024;

/// A place that a benchmark writes to.
#[derive(Clone)]
enum Target {
    Store(Arc<dyn Store>),
    Flush(mpsc::Sender<(Bytes, oneshot::Sender<()>)>),
}

impl Target {
    async fn create(&self, key: String, value: Bytes) -> Result<(), Failure> {
        match self {
            Self::Store(store) => drop(store.write(&key, Write::Create { value }).await?),
            Self::Flush(appender) => {
                let (reply, done) = oneshot::channel();
                appender.send((value, reply)).await?;
                done.await?;
            }
        }
        Ok(())
    }
}

/// What the disk allows: values appended to a preallocated file, all that wait in one flush.
fn flusher(directory: &Path) -> Result<Target, Failure> {
    const SIZE: u64 = 64 << 20;
    let file: File = OpenOptions::new()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .open(directory.join("flush"))?;
    for at in (0..SIZE).step_by(1 << 20) {
        file.write_all_at(&vec![0; 1 << 20], at)?;
    }
    file.sync_all()?;
    let (sender, mut receiver) = mpsc::channel::<(Bytes, oneshot::Sender<()>)>(4096);
    std::thread::spawn(move || {
        let (mut batch, mut bytes, mut offset) = (Vec::new(), Vec::new(), 0);
        while receiver.blocking_recv_many(&mut batch, 1024) > 0 {
            bytes.clear();
            for (value, _) in &batch {
                bytes.extend_from_slice(value);
            }
            if offset + bytes.len() as u64 > SIZE {
                offset = 0;
            }
            file.write_all_at(&bytes, offset)
                .expect("the file can be written");
            file.sync_data().expect("the file can be flushed");
            offset += bytes.len() as u64;
            for (_, reply) in batch.drain(..) {
                let _ = reply.send(());
            }
        }
    });
    Ok(Target::Flush(sender))
}

/// What many tasks that create at once came to.
struct Rate {
    per_second: f64,
    p50: Duration,
    p99: Duration,
}

/// Creates from many tasks at once.
async fn creates(target: &Target, writers: usize, round: usize) -> Result<Rate, Failure> {
    let start = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .map(|writer| {
            let target = target.clone();
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while start.elapsed() < RUN {
                    let n = latencies.len();
                    let key = format!("/registry/example.com/widgets/{round}-{writers}-{writer}/{n:08}");
                    let begin = Instant::now();
                    target
                        .create(key, vec![b'x'; VALUE].into())
                        .await
                        .expect("a create succeeds");
                    latencies.push(begin.elapsed());
                }
                latencies
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await?);
    }
    let per_second = latencies.len() as f64 / start.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let at = |percent: usize| latencies[(latencies.len() - 1) * percent / 100];
    Ok(Rate {
        per_second,
        p50: at(50),
        p99: at(99),
    })
}

/// Lets all targets take turns, so that what else the machine does meets them alike; prints the median round.
async fn compare(targets: &[(&str, Target)]) -> Result<(), Failure> {
    for writers in WRITERS {
        let mut rates: Vec<Vec<Rate>> = targets.iter().map(|_| Vec::new()).collect();
        for round in 0..ROUNDS {
            for ((_, target), rates) in targets.iter().zip(&mut rates) {
                rates.push(creates(target, writers, round).await?);
            }
        }
        for ((name, _), mut rates) in targets.iter().zip(rates) {
            rates.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
            let Rate { per_second, p50, p99 } = &rates[rates.len() / 2];
            let (slowest, fastest) = (rates[0].per_second, rates[rates.len() - 1].per_second);
            println!(
                "{writers:>4} writers  {name:9} {per_second:>7.0}/s ({slowest:.0} to {fastest:.0})  p50 {:>6} us  p99 {:>6} us",
                p50.as_micros(),
                p99.as_micros(),
            );
        }
    }
    Ok(())
}

/// An etcd of one member on the same disk.
struct Etcd(Child);

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn etcd(directory: &Path) -> Result<Option<(Etcd, String)>, Failure> {
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

/// Lists of 10 000 objects of 10 KB, whole and in pages.
async fn lists(store: &dyn Store) -> Result<(), Failure> {
    let value = Bytes::from(vec![b'x'; 10_000]);
    let prefix = "/registry/example.com/lists/".to_owned();
    for n in 0..10_000 {
        let value = value.iter().copied().collect::<Vec<_>>().into();
        store
            .write(&format!("{prefix}ns/{n:05}"), Write::Create { value })
            .await?;
    }
    let start = Instant::now();
    const LISTS: u32 = 100;
    for _ in 0..LISTS {
        let page = store
            .list(ListRequest {
                prefix: prefix.clone(),
                ..ListRequest::default()
            })
            .await?;
        assert_eq!(page.entries.len(), 10_000);
    }
    let whole = start.elapsed() / LISTS;
    let start = Instant::now();
    for _ in 0..LISTS {
        let limit = NonZeroUsize::new(500);
        let mut request = ListRequest {
            prefix: prefix.clone(),
            limit,
            ..ListRequest::default()
        };
        loop {
            let page = store.list(request.clone()).await?;
            request.at = ReadAt::Exact(page.revision);
            request.after = page.entries.last().map(|entry| entry.key.to_string());
            request.remaining = Some(page.remaining);
            if page.remaining == 0 {
                break;
            }
        }
    }
    println!(
        "list of 10 000 objects of 10 KB: whole {whole:?}, in 20 pages {:?}",
        start.elapsed() / LISTS
    );
    Ok(())
}

/// One writer, many watches: how long until all have seen all.
async fn fan_out(watches: usize, events: Revision) -> Result<(), Failure> {
    let store = Arc::new(MemStore::default());
    let start = store.revision().await?;
    let mut tasks = Vec::new();
    for _ in 0..watches {
        let mut watch = store.watch("/registry/example.com/widgets/", start).await?;
        tasks.push(tokio::spawn(async move {
            for _ in 0..events {
                watch.next().await.expect("an event comes");
            }
        }));
    }
    let begin = Instant::now();
    for n in 0..events {
        let value = Bytes::from(vec![b'x'; VALUE]);
        store
            .write(
                &format!("/registry/example.com/widgets/ns/{n}"),
                Write::Create { value },
            )
            .await?;
        tokio::task::yield_now().await;
    }
    for task in tasks {
        task.await?;
    }
    let took = begin.elapsed();
    let rate = (watches as u64 * events) as f64 / took.as_secs_f64();
    println!("fan-out: {watches:>5} watches x {events:>6} events in {took:>10.3?}, {rate:>10.0} events/s");
    Ok(())
}

fn resident_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap_or_default();
    line.split_whitespace()
        .next()
        .and_then(|number| number.parse::<u64>().ok())
        .unwrap_or_default()
        / 1024
}

/// What this process has used of the processors: the figure that a busy machine does not change.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let threads = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let texts = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok());
    let nanoseconds = |text: &str| {
        text.split(' ')
            .next()
            .and_then(|number| number.parse::<u64>().ok())
    };
    let total: u64 = texts.filter_map(|text| nanoseconds(&text)).sum();
    Duration::from_nanos(total.max(nanoseconds(&text).unwrap_or_default()))
}

/// Fills a store and ends the process without any ceremony.
async fn fill_and_crash(directory: &Path, objects: usize) -> Result<(), Failure> {
    let store = Arc::new(EmbeddedStore::open(EmbeddedConfig::new(directory))?);
    let tasks: Vec<_> = (0..256_usize)
        .map(|task| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for n in (task..objects).step_by(256) {
                    let key = format!("/registry/example.com/widgets/team-{:03}/object-{n:08}", n % 100);
                    let value = Bytes::from(vec![b'x'; 300]);
                    store
                        .write(&key, Write::Create { value })
                        .await
                        .expect("a create succeeds");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await?;
    }
    std::process::abort()
}

/// How long a store with many objects takes to open, after a crash and after a clean end.
fn open(root: &Path, objects: usize) -> Result<(), Failure> {
    let directory = tempfile::tempdir_in(root)?;
    let start = Instant::now();
    let arguments = [
        "fill".to_owned(),
        directory.path().display().to_string(),
        objects.to_string(),
    ];
    Command::new(std::env::current_exe()?)
        .args(arguments)
        .stderr(Stdio::null())
        .status()?;
    let rate = objects as f64 / start.elapsed().as_secs_f64();
    let start = Instant::now();
    let store = EmbeddedStore::open(EmbeddedConfig::new(directory.path()))?;
    let crashed = start.elapsed();
    store.close()?;
    let before = resident_megabytes();
    let start = Instant::now();
    let store = EmbeddedStore::open(EmbeddedConfig::new(directory.path()))?;
    let clean = start.elapsed();
    let after = resident_megabytes();
    drop(store);
    println!(
        "{objects} objects of 300 B: filled at {rate:.0}/s by 256 writers; opens in {crashed:.3?} after a crash, \
         in {clean:.3?} after a clean end; resident memory {before} MB before, {after} MB with it",
    );
    Ok(())
}

async fn run() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if(|argument| argument == "fill").is_some() {
        let directory = arguments.next().map(PathBuf::from).unwrap_or_default();
        return fill_and_crash(&directory, arguments.next().unwrap_or_default().parse()?).await;
    }
    if arguments.next_if(|argument| argument == "open").is_some() {
        let directory = arguments.next().map(PathBuf::from).unwrap_or_default();
        let start = Instant::now();
        let store = EmbeddedStore::open(EmbeddedConfig::new(&directory))?;
        println!(
            "opened in {:.3?}, {:.3?} of processor time",
            start.elapsed(),
            processor_time()
        );
        return Ok(store.close()?);
    }
    let root = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let objects: usize = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;

    // First, while the memory of the process tells of nothing else.
    open(&root, objects / 10)?;
    open(&root, objects)?;
    println!("durable creates of 1 KiB");
    let [flush, embedded, other] = [
        tempfile::tempdir_in(&root)?,
        tempfile::tempdir_in(&root)?,
        tempfile::tempdir_in(&root)?,
    ];
    let mut targets = vec![("flush", flusher(flush.path())?)];
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(EmbeddedConfig::new(embedded.path()))?);
    targets.push(("embedded", Target::Store(Arc::clone(&store))));
    let server = etcd(other.path())?;
    if let Some((_, address)) = &server {
        let store = EtcdStore::connect(EtcdConfig::new(vec![address.clone()])).await?;
        targets.push(("etcd", Target::Store(Arc::new(store))));
    }
    compare(&targets).await?;
    drop(targets);
    drop(server);
    lists(&*store).await?;
    drop(store);
    for (watches, events) in [(1, 100_000), (100, 10_000), (1000, 2_000)] {
        fan_out(watches, events).await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    run().await
}
