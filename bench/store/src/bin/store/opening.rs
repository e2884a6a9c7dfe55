//! Measures the time to open a store, and its memory.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use scantling_store::{
    EmbeddedConfig, EmbeddedStore, Event, HistoryLimits, ReadAt, Store, StoreError, Write,
};

use crate::{Failure, VALUE};

/// The number of parallel tasks where writing is not measured.
const TASKS: usize = 256;

/// Makes `n` writes from many parallel tasks.
pub(crate) async fn write_many<F>(
    store: &Arc<EmbeddedStore>,
    count: usize,
    write: impl Fn(Arc<EmbeddedStore>, usize) -> F + Copy + Send + 'static,
) -> Result<(), Failure>
where
    F: Future<Output = Result<Event, StoreError>> + Send,
{
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                for n in (task..count).step_by(TASKS) {
                    write(Arc::clone(&store), n).await?;
                }
                Ok::<_, StoreError>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(())
}

/// Fills a store and aborts the process.
pub(crate) async fn fill_and_crash(directory: &Path, objects: usize) -> Result<(), Failure> {
    let store = Arc::new(EmbeddedStore::open(EmbeddedConfig::new(directory))?);
    write_many(&store, objects, |store, n| async move {
        let key = format!("/registry/example.com/widgets/team-{:03}/object-{n:08}", n % 100);
        let value = vec![b'x'; VALUE].into();
        store.write(&key, Write::Create { value }).await
    })
    .await?;
    // Without a shutdown, so that the journal has to be replayed.
    std::process::abort()
}

/// Opens a store, prints the time, and closes it.
pub(crate) fn open(directory: &Path) -> Result<(), Failure> {
    let start = Instant::now();
    let store = EmbeddedStore::open(EmbeddedConfig::new(directory))?;
    println!(
        "{:.3} s (processor {:.3} s), {} MB",
        start.elapsed().as_secs_f64(),
        processor_time().as_secs_f64(),
        resident_megabytes()
    );
    Ok(store.close()?)
}

/// Measures the time to open stores after a crash and after a clean shutdown. Each is opened by a separate
/// process, so that its memory is known.
pub(crate) fn opening(root: &Path) -> Result<(), Failure> {
    println!("\n## Opening a store with objects of 1 KiB: time, resident memory\n");
    println!(
        "| objects | filled by {TASKS} writers, per second | after a crash | after a clean end | again |"
    );
    println!("| --- | --- | --- | --- | --- |");
    for objects in [100_000, 1_000_000] {
        let directory = tempfile::tempdir_in(root)?;
        let path = directory.path().display().to_string();
        let start = Instant::now();
        // It ends by a signal, on purpose.
        run(&["--fill", &path, &objects.to_string()])?;
        let rate = f64::from(objects) / start.elapsed().as_secs_f64();
        // The first time after a crash, then after the clean ends of the runs before.
        let times = [
            run(&["--open", &path])?,
            run(&["--open", &path])?,
            run(&["--open", &path])?,
        ];
        println!("| {objects} | {rate:.0} | {} |", times.join(" | "));
    }
    Ok(())
}

/// Runs this program again and returns its output.
fn run(arguments: &[&str]) -> Result<String, Failure> {
    let output = Command::new(std::env::current_exe()?)
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Checks that memory does not grow with history: writes the same objects again and again.
pub(crate) async fn memory(root: &Path) -> Result<(), Failure> {
    const OBJECTS: usize = 1_000;
    const ROUND: usize = 100_000;
    let directory = tempfile::tempdir_in(root)?;
    let mut config = EmbeddedConfig::new(directory.path());
    // Less than the default, so that the limits are reached soon.
    config.history = HistoryLimits {
        events: ROUND / 2,
        ..HistoryLimits::default()
    };
    let store = Arc::new(EmbeddedStore::open(config)?);
    println!("\n## Memory while {OBJECTS} objects of 1 KiB are updated again and again\n");
    println!("| updates | resident memory |\n| --- | --- |");
    for round in 0..6 {
        println!("| {} | {} MB |", round * ROUND, resident_megabytes());
        write_many(&store, ROUND, |store, n| async move {
            let key = format!("/registry/example.com/widgets/ns/{:05}", n % OBJECTS);
            // Two tasks may write the same object; the loser reads it again.
            loop {
                let current = store.get(&key, ReadAt::Latest).await?;
                let value = vec![b'x'; VALUE].into();
                let write = match current {
                    None => Write::Create { value },
                    Some(entry) => Write::Update {
                        value,
                        expected: entry.mod_revision,
                    },
                };
                match store.write(&key, write).await {
                    Err(StoreError::Conflict { .. } | StoreError::AlreadyExists { .. }) => {}
                    outcome => return outcome,
                }
            }
        })
        .await?;
    }
    Ok(())
}

fn resident_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or_default() / 1024
}

/// The processor time of this process, which does not depend on other load.
fn processor_time() -> Duration {
    let status = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in parentheses, may contain anything; the 12th and 13th field after it count.
    let fields = status
        .rsplit_once(')')
        .map(|(_, fields)| fields)
        .unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    // A tick is a hundredth of a second on Linux.
    Duration::from_millis(ticks * 10)
}
