//! The n-th disk operation fails, for every relevant n.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use scantling_store::{
    EmbeddedConfig, EmbeddedStore, FaultInjector, FaultKind, FileOperation, MaybeCompressed, ReadAt,
    Revision, Store, StoreError, Write,
};

use crate::{contents, copy_all, small};

type StoreContents = BTreeMap<String, (Revision, MaybeCompressed)>;

fn key(n: usize) -> String {
    format!("/registry/faults/things/ns/{n:03}")
}

fn value(n: usize) -> MaybeCompressed {
    MaybeCompressed::from(format!("{n} ").repeat(400))
}

/// Creates keys; returns those that were acknowledged. Only disk errors may occur.
async fn create(store: &EmbeddedStore, keys: std::ops::Range<usize>) -> StoreContents {
    let mut acknowledged = BTreeMap::new();
    for n in keys {
        match store.write(&key(n), Write::Create { value: value(n) }).await {
            Ok(event) => {
                acknowledged.insert(key(n), (event.revision, value(n)));
            }
            Err(StoreError::Io { .. }) => {
                assert_eq!(
                    store.get(&key(n), ReadAt::Latest).await.unwrap(),
                    None,
                    "not shown until durable"
                );
            }
            Err(other) => panic!("{other}"),
        }
    }
    acknowledged
}

// On a multi-threaded runtime, a lone caller writes on its own thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_one_failure_loses_nothing() {
    let failures = [
        (FileOperation::Write, FaultKind::Error(ErrorKind::StorageFull)),
        (FileOperation::Write, FaultKind::Torn),
        (FileOperation::Flush, FaultKind::Error(ErrorKind::Other)),
        (FileOperation::Read, FaultKind::Error(ErrorKind::Other)),
    ];
    for (operation, failure) in failures {
        for nth in 1..20 {
            let what = format!("{operation:?} {nth}, {failure:?}");
            let directory = tempfile::tempdir().unwrap();
            let mut config = small(directory.path());
            (config.segment_bytes, config.checkpoint_bytes) = (4 << 10, 6 << 10);
            let store = EmbeddedStore::open(config.clone()).unwrap();
            let mut expected = create(&store, 0..5).await;
            store.close().unwrap();

            let faults = Arc::new(FaultInjector::default());
            faults.fail(operation, nth, 1, failure);
            match EmbeddedStore::open(EmbeddedConfig {
                faults: Some(faults),
                ..config.clone()
            }) {
                Ok(store) => {
                    expected.extend(create(&store, 5..17).await);
                    // The last checkpoint may fail; the journal has everything.
                    let _ = store.close();
                }
                Err(StoreError::Io { .. }) => {}
                Err(other) => panic!("{what}: {other}"),
            }

            let store = EmbeddedStore::open(config).unwrap_or_else(|error| panic!("{what}: {error}"));
            let mut found = contents(&store).await;
            let revision = store.revision().await.unwrap();
            for (key, entry) in &expected {
                assert_eq!(found.remove(key).as_ref(), Some(entry), "{what}");
            }
            assert!(
                found.len() <= 1,
                "{what}: only a write whose flush failed may have happened: {found:?}"
            );
            let next = store
                .write(&key(99), Write::Create { value: value(99) })
                .await
                .unwrap();
            assert!(next.revision > revision, "{what}");
        }
    }
}

/// Creates a store with fault injection.
fn with_faults(directory: &Path) -> (EmbeddedStore, Arc<FaultInjector>) {
    let faults = Arc::new(FaultInjector::default());
    let config = EmbeddedConfig {
        faults: Some(Arc::clone(&faults)),
        ..small(directory)
    };
    (EmbeddedStore::open(config).unwrap(), faults)
}

// On a multi-threaded runtime, a lone caller writes on its own thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failed_flush_nothing_is_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let (store, faults) = with_faults(directory.path());
    let before = create(&store, 0..3).await;
    faults.fail(FileOperation::Flush, 1, 1, FaultKind::Error(ErrorKind::Other));
    // The next flush would succeed without effect: the kernel has dropped the pages it could not write.
    assert_eq!(create(&store, 3..6).await, BTreeMap::new());
    assert_eq!(contents(&store).await, before, "reads go on");
}

#[tokio::test]
async fn a_temporarily_full_disk() {
    let directory = tempfile::tempdir().unwrap();
    let (store, faults) = with_faults(directory.path());
    let mut expected = create(&store, 0..3).await;
    faults.fail(FileOperation::Write, 1, 5, FaultKind::Torn);
    assert_eq!(create(&store, 3..8).await, BTreeMap::new());
    expected.extend(create(&store, 8..300).await);
    assert_eq!(expected.len(), 3 + 292);
    assert_eq!(contents(&store).await, expected);
    store.close().unwrap();
    assert_eq!(
        contents(&EmbeddedStore::open(small(directory.path())).unwrap()).await,
        expected
    );
}

/// A small in-memory file system.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=6m", "tmpfs"])
            .arg(directory.path())
            .output();
        if mount.is_ok_and(|output| output.status.success()) {
            return Some(Self(directory));
        }
        eprintln!("SKIPPED: a small file system cannot be mounted here, so no disk gets really full");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[tokio::test]
async fn a_full_disk() {
    let Some(disk) = SmallDisk::mount() else { return };
    let directory = disk.0.path().join("data");
    let filler = disk.0.path().join("filler");
    std::fs::write(&filler, vec![0; 2 << 20]).unwrap();
    let store = EmbeddedStore::open(small(&directory)).unwrap();
    let mut expected: StoreContents = BTreeMap::new();
    let large = |n: usize| MaybeCompressed::from(vec![n as u8; 8_000]);
    let mut n = 0;
    let error = loop {
        match store.write(&key(n), Write::Create { value: large(n) }).await {
            Ok(event) => expected.insert(key(n), (event.revision, large(n))),
            Err(error) => break error,
        };
        n += 1;
        assert!(n < 2000, "the disk should have been full");
    };
    let text = error.to_string();
    assert!(
        matches!(error, StoreError::Io { .. }) && text.contains("No space left"),
        "{text}"
    );
    assert_eq!(contents(&store).await, expected, "reads go on");
    std::fs::remove_file(filler).unwrap();
    let event = store
        .write(&key(n), Write::Create { value: large(n) })
        .await
        .unwrap();
    expected.insert(key(n), (event.revision, large(n)));
    store.close().unwrap();
    assert_eq!(
        contents(&EmbeddedStore::open(small(&directory)).unwrap()).await,
        expected
    );
}

#[tokio::test]
async fn a_disk_too_full_for_checkpoints() {
    let Some(disk) = SmallDisk::mount() else { return };
    let directory = disk.0.path().join("data");
    // The journal has enough space, but the database cannot grow.
    let config = EmbeddedConfig {
        segment_bytes: 3 << 20,
        ..small(&directory)
    };
    let store = EmbeddedStore::open(config.clone()).unwrap();
    let filler = disk.0.path().join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    drop(file);
    let mut expected: StoreContents = BTreeMap::new();
    let large = |n: usize| MaybeCompressed::from(vec![n as u8; 5_000]);
    let mut n = 0;
    let error = loop {
        let value = large(n);
        match store.write(&key(n), Write::Create { value }).await {
            Ok(event) => expected.insert(key(n), (event.revision, large(n))),
            Err(error) => break error,
        };
        n += 1;
        assert!(n < 500, "writers should have waited for a checkpoint");
    };
    assert!(n > 20, "writes go on while a checkpoint is due: {n}");
    assert!(error.to_string().contains("No space left"), "{error}");
    assert_eq!(contents(&store).await, expected, "reads go on");
    std::fs::remove_file(filler).unwrap();
    let value = large(n);
    let event = store.write(&key(n), Write::Create { value }).await.unwrap();
    expected.insert(key(n), (event.revision, large(n)));
    store.close().unwrap();
    EmbeddedStore::check(&directory).unwrap();
    assert_eq!(contents(&EmbeddedStore::open(config).unwrap()).await, expected);
}

#[tokio::test]
async fn a_read_only_file_system() {
    let Some(disk) = SmallDisk::mount() else { return };
    let directory = disk.0.path().join("data");
    let store = EmbeddedStore::open(small(&directory)).unwrap();
    let expected = create(&store, 0..3).await;
    store.close().unwrap();
    let remount = |how: &str| {
        let done = Command::new("mount")
            .args(["-o", &format!("remount,{how}")])
            .arg(disk.0.path())
            .status();
        assert!(done.unwrap().success());
    };
    remount("ro");
    let error = EmbeddedStore::open(small(&directory)).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("Read-only file system") && text.contains("lock"),
        "{text}"
    );
    remount("rw");
    assert_eq!(
        contents(&EmbeddedStore::open(small(&directory)).unwrap()).await,
        expected
    );
}

#[tokio::test]
async fn a_compaction_survives_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(small(directory.path())).unwrap();
    let expected = create(&store, 0..40).await;
    store.compact(20).await.unwrap();
    let check = async |store: &EmbeddedStore, what: &str| {
        assert_eq!(contents(store).await, expected, "{what}");
        for old in [
            store.get(&key(1), ReadAt::Exact(19)).await.map(drop),
            store.watch("/registry/", 19).await.map(drop),
            store.compact(19).await,
        ] {
            match old {
                Err(StoreError::Compacted { requested, oldest }) => assert_eq!((requested, oldest), (19, 20)),
                other => panic!("{what}: {other:?}"),
            }
        }
        let mut watch = store.watch("/registry/", 20).await.unwrap();
        assert_eq!(watch.try_next().unwrap().unwrap().revision, 21, "{what}");
        let future = store.compact(1000).await;
        assert!(
            matches!(future, Err(StoreError::FutureRevision { .. })),
            "{future:?}"
        );
    };
    check(&store, "before").await;
    // As after a crash, and as after a clean shutdown.
    let crashed = copy_all(directory.path());
    check(
        &EmbeddedStore::open(small(crashed.path())).unwrap(),
        "after a crash",
    )
    .await;
    store.close().unwrap();
    assert_eq!(EmbeddedStore::check(directory.path()).unwrap().history_after, 20);
    check(
        &EmbeddedStore::open(small(directory.path())).unwrap(),
        "after the end",
    )
    .await;
}

#[tokio::test]
async fn a_failed_compaction_has_no_effect() {
    let directory = tempfile::tempdir().unwrap();
    let (store, faults) = with_faults(directory.path());
    create(&store, 0..10).await;
    faults.fail(FileOperation::Write, 1, 1, FaultKind::Torn);
    assert!(matches!(store.compact(5).await, Err(StoreError::Io { .. })));
    assert!(store.watch("/registry/", 2).await.is_ok());
    store.compact(5).await.unwrap();
    assert!(store.watch("/registry/", 2).await.is_err());
}

#[tokio::test]
async fn readiness_follows_the_results_of_writes() {
    let directory = tempfile::tempdir().unwrap();
    let (store, faults) = with_faults(directory.path());
    create(&store, 0..3).await;
    store.check_writable().await.unwrap();
    // Two writes fail: that of the client, and the store's probe whether the disk is still full.
    faults.fail(FileOperation::Write, 1, 2, FaultKind::Torn);
    assert_eq!(create(&store, 3..4).await, BTreeMap::new());
    store.check_writable().await.unwrap_err();
    // It does not probe again immediately.
    store.check_writable().await.unwrap_err();
    // A successful write has the same effect as a probe.
    assert_eq!(create(&store, 4..5).await.len(), 1);
    store.check_writable().await.unwrap();
    // Without writes, a probe notices that the disk has recovered.
    faults.fail(
        FileOperation::Write,
        1,
        1,
        FaultKind::Error(ErrorKind::StorageFull),
    );
    assert_eq!(create(&store, 5..6).await, BTreeMap::new());
    let revision = store.revision().await.unwrap();
    store.check_writable().await.unwrap();
    assert_eq!(
        store.revision().await.unwrap(),
        revision,
        "a probe changes nothing"
    );
    // A failed flush is permanent.
    faults.fail(FileOperation::Flush, 1, 1, FaultKind::Error(ErrorKind::Other));
    assert_eq!(create(&store, 6..7).await, BTreeMap::new());
    store.check_writable().await.unwrap_err();
    let expected = contents(&store).await;
    drop(store);
    let store = EmbeddedStore::open(small(directory.path())).unwrap();
    let found = contents(&store).await;
    assert!(expected.iter().all(|(key, entry)| found.get(key) == Some(entry)));
    store.check_writable().await.unwrap();
    std::fs::remove_dir_all(directory.path()).unwrap();
    store.check_writable().await.unwrap_err();
}
