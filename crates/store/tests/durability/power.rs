//! Power cuts: every operation up to some point and none after it, partial writes of blocks, files under
//! temporary names.

use std::path::Path;
use std::sync::Arc;

use scantling_store::{
    EmbeddedConfig, EmbeddedStore, FaultInjector, FaultKind, FileOperation, Revision, Store, StoreError,
    Write,
};

use crate::linear::CounterSource;
use crate::{contents, copy_all, small};

const BLOCK: usize = 4096;

fn key(n: usize) -> String {
    format!("/registry/power/things/ns/{n:03}")
}

async fn create(store: &EmbeddedStore, n: usize, size: usize) -> Result<Revision, StoreError> {
    // Incompressible bytes.
    let mut numbers = CounterSource(n as u64);
    let value: Vec<u8> = (0..size).map(|_| numbers.below(256) as u8).collect();
    let value = value.into();
    store
        .write(&key(n), Write::Create { value })
        .await
        .map(|event| event.revision)
}

/// Segments and checkpoints so small that a few writes go through all steps of both.
fn tiny(directory: &Path) -> EmbeddedConfig {
    let mut config = small(directory);
    (config.segment_bytes, config.checkpoint_bytes) = (8 << 10, 6 << 10);
    config
}

#[tokio::test]
async fn power_cut_after_any_operation() {
    let ends = [
        (FileOperation::Write, FaultKind::Torn),
        (FileOperation::Write, FaultKind::Error(std::io::ErrorKind::Other)),
        (FileOperation::Flush, FaultKind::Error(std::io::ErrorKind::Other)),
    ];
    for (operation, failure) in ends {
        for nth in 1..40 {
            let what = format!("{operation:?} {nth}, {failure:?}");
            let directory = tempfile::tempdir().unwrap();
            let faults = Arc::new(FaultInjector::default());
            let config = EmbeddedConfig {
                faults: Some(Arc::clone(&faults)),
                ..tiny(directory.path())
            };
            let store = EmbeddedStore::open(config).unwrap();
            let before = create(&store, 0, 1000).await.unwrap();
            faults.fail(operation, nth, u64::MAX, failure);
            let mut acknowledged = vec![before];
            let mut failed = 0;
            for n in 1..20 {
                match create(&store, n, 1000).await {
                    Ok(revision) => acknowledged.push(revision),
                    Err(StoreError::Io { .. }) => failed += 1,
                    Err(other) => panic!("{what}: {other}"),
                }
                if failed == 3 {
                    break;
                }
            }
            // Nothing that the process does while it exits reaches the disk any more.
            drop(store);
            let store =
                EmbeddedStore::open(tiny(directory.path())).unwrap_or_else(|error| panic!("{what}: {error}"));
            let found = contents(&store).await;
            for (n, revision) in acknowledged.iter().enumerate() {
                let there = found.get(&key(n)).map(|(revision, _)| revision);
                assert_eq!(there, Some(revision), "{what}");
            }
            assert!(
                found.len() <= acknowledged.len() + 1,
                "{what}: only a write whose flush failed may have happened"
            );
            let next = create(&store, 900, 1000).await.unwrap();
            assert!(next > *acknowledged.last().unwrap(), "{what}");
        }
    }
}

/// The active segment.
fn last_segment(directory: &Path) -> std::path::PathBuf {
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("journal-"))
        .collect();
    names.sort();
    directory.join(names.last().unwrap())
}

#[tokio::test]
async fn power_cut_tears_a_write() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = small(directory.path());
    (config.segment_bytes, config.checkpoint_bytes) = (256 << 10, 1 << 30);
    let store = EmbeddedStore::open(config).unwrap();
    for n in 0..5 {
        create(&store, n, 700).await.unwrap();
    }
    let (before, want_before) = (copy_all(directory.path()), contents(&store).await);
    // Spans several blocks and begins and ends within one.
    create(&store, 5, 30_000).await.unwrap();
    let (after, want_after) = (copy_all(directory.path()), contents(&store).await);
    let [old, new] = [&before, &after].map(|copy| std::fs::read(last_segment(copy.path())).unwrap());
    let changed: Vec<usize> = (0..old.len() / BLOCK)
        .filter(|n| old[n * BLOCK..][..BLOCK] != new[n * BLOCK..][..BLOCK])
        .collect();
    assert!(changed.len() >= 8, "{changed:?}");
    // One block has arrived, or all but one, or the first few, or the last few.
    for at in 0..changed.len() {
        let choices: [(&str, Vec<usize>); 4] = [
            ("only", vec![changed[at]]),
            (
                "all but",
                changed.iter().copied().filter(|n| *n != changed[at]).collect(),
            ),
            ("up to", changed[..=at].to_vec()),
            ("from", changed[at..].to_vec()),
        ];
        for (what, arrived) in choices {
            let torn = copy_all(before.path());
            let mut bytes = old.clone();
            for n in &arrived {
                bytes[n * BLOCK..][..BLOCK].copy_from_slice(&new[n * BLOCK..][..BLOCK]);
            }
            std::fs::write(last_segment(torn.path()), bytes).unwrap();
            let store = EmbeddedStore::open(small(torn.path()))
                .unwrap_or_else(|error| panic!("{what} block {}: {error}", changed[at]));
            let found = contents(&store).await;
            let whole = arrived.len() == changed.len();
            let want = if whole { &want_after } else { &want_before };
            assert!(found == *want, "{what} block {}", changed[at]);
            // A write that was never acknowledged is overwritten.
            let next = create(&store, 6, 9000).await.unwrap();
            assert_eq!(next, if whole { 8 } else { 7 });
        }
    }
}

#[tokio::test]
async fn temporary_files_are_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(tiny(directory.path())).unwrap();
    for n in 0..10 {
        create(&store, n, 1000).await.unwrap();
    }
    let want = contents(&store).await;
    store.close().unwrap();
    for garbage in [
        Vec::new(),
        vec![0xa5; 100],
        vec![0xa5; 8 << 10],
        vec![0xa5; 20_000],
    ] {
        let left = copy_all(directory.path());
        for name in [
            "journal.next",
            "journal.spare",
            "journal.spare.new",
            "state.redb.new",
        ] {
            std::fs::write(left.path().join(name), &garbage).unwrap();
        }
        let store = EmbeddedStore::open(tiny(left.path())).unwrap();
        assert_eq!(contents(&store).await, want);
        for n in 10..40 {
            create(&store, n, 1000).await.unwrap();
        }
        store.close().unwrap();
        EmbeddedStore::check(left.path()).unwrap();
        let store = EmbeddedStore::open(tiny(left.path())).unwrap();
        assert_eq!(contents(&store).await.len(), 40);
    }
}
