//! Measures the slowest writes during checkpoints.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use scantling_store::{EmbeddedConfig, EmbeddedStore, Store};

use crate::{Failure, creates};

const WRITERS: usize = 16;
/// The interval between writes of a task: together about half of the possible rate.
const PACE: Duration = Duration::from_millis(1);
const RUN: Duration = Duration::from_secs(4);
const ROUNDS: usize = 3;

/// Writes at a steady pace, with a checkpoint after the given number of bytes.
async fn latencies(root: &Path, checkpoint_bytes: usize) -> Result<Vec<Duration>, Failure> {
    let directory = tempfile::tempdir_in(root)?;
    let mut config = EmbeddedConfig::new(directory.path());
    config.checkpoint_bytes = checkpoint_bytes;
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(config)?);
    // Keys of consecutive writes are far apart, as in a cluster.
    let name = |writer, n: usize| format!("{writer}/{:06}", n.wrapping_mul(7_919) % 100_003);
    creates::latencies(&store, WRITERS, RUN, Some(PACE), name).await
}

/// Rounds with and without checkpoints take turns.
pub(crate) async fn stalls(root: &Path) -> Result<(), Failure> {
    println!("\n## Writes by {WRITERS} writers, one each per {PACE:?}, milliseconds\n");
    println!(
        "| checkpoints | writes per second | p50 | p99 | p99.9 | slowest |\n| --- | --- | --- | --- | --- | --- |"
    );
    let usual = EmbeddedConfig::new(root).checkpoint_bytes;
    let kinds = [("none", usize::MAX), ("every 64 MiB", usual)];
    let mut all = kinds.map(|_| Vec::new());
    // In turn, so that other load affects both alike.
    for _ in 0..ROUNDS {
        for ((_, bytes), all) in kinds.iter().zip(&mut all) {
            all.extend(latencies(root, *bytes).await?);
        }
    }
    for ((name, _), mut all) in kinds.into_iter().zip(all) {
        all.sort_unstable();
        let at = |thousandth: usize| all[(all.len() - 1) * thousandth / 1000].as_secs_f64() * 1e3;
        let rate = all.len() as f64 / RUN.as_secs_f64() / ROUNDS as f64;
        println!(
            "| {name} | {rate:.0} | {:.2} | {:.2} | {:.2} | {:.2} |",
            at(500),
            at(990),
            at(999),
            at(1000)
        );
    }
    Ok(())
}
