//! Damaged files are reported, never ignored.

use std::path::{Path, PathBuf};

use scantling_store::{EmbeddedStore, Store, StoreError, Write};

use crate::linear::CounterSource;
use crate::{contents, small};

/// Creates a store with a database, several segments, and all kinds of events.
async fn make(directory: &Path) {
    let store = EmbeddedStore::open(small(directory)).unwrap();
    for n in 0..300 {
        let key = format!("/registry/damage/things/ns/{}", n % 120);
        let value = format!("{n} ").repeat(200).into();
        match store.write(&key, Write::Create { value }).await {
            Ok(_) => {}
            Err(StoreError::AlreadyExists { current }) => {
                let expected = current.mod_revision;
                // Some are large enough to be compressed.
                let times = if n % 5 == 0 { 1_000 } else { 100 };
                let value = format!("again {n} ").repeat(times).into();
                let write = if n % 7 == 0 {
                    Write::Delete { expected }
                } else {
                    Write::Update { value, expected }
                };
                store.write(&key, write).await.unwrap();
            }
            Err(other) => panic!("{other}"),
        }
    }
    store.close().unwrap();
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            // Other files contain no data.
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("journal-") || name == "state.redb"
        })
        .collect();
    files.sort();
    files
}

fn copy(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for file in files(from) {
        std::fs::copy(&file, to.path().join(file.file_name().unwrap())).unwrap();
    }
    to
}

/// Damages a copy of a store and opens it: either its contents are unchanged or it is refused.
async fn opens_unchanged_or_is_refused(
    original: &Path,
    what: &str,
    damage: impl FnOnce(&Path),
) -> Result<(), StoreError> {
    let untouched = copy(original);
    let store = EmbeddedStore::open(small(untouched.path())).unwrap();
    let want = (store.revision().await.unwrap(), contents(&store).await);
    drop(store);
    let damaged = copy(original);
    damage(damaged.path());
    match EmbeddedStore::open(small(damaged.path())) {
        Ok(store) => {
            let got = (store.revision().await.unwrap(), contents(&store).await);
            assert!(got == want, "{what}: the store opened with other contents");
            Ok(())
        }
        Err(error @ (StoreError::Damaged { .. } | StoreError::Format { .. })) => Err(error),
        Err(other) => panic!("{what}: {other}"),
    }
}

#[tokio::test]
async fn changed_bytes_are_noticed() {
    let original = tempfile::tempdir().unwrap();
    make(original.path()).await;
    let names: Vec<_> = files(original.path())
        .iter()
        .map(|path| path.file_name().unwrap().to_owned())
        .collect();
    assert!(names.len() > 3, "{names:?}");
    let mut numbers = CounterSource(7);
    let mut refused = 0;
    for round in 0..150 {
        let name = &names[round % names.len()];
        let what = format!("round {round}, {name:?}");
        let outcome = opens_unchanged_or_is_refused(original.path(), &what, |directory| {
            let path = directory.join(name);
            let mut bytes = std::fs::read(&path).unwrap();
            // A few consecutive bytes, as after a bad sector or a stray write.
            let at = numbers.below(bytes.len() as u64) as usize;
            let end = bytes.len().min(at + 64);
            bytes[at..end].iter_mut().for_each(|byte| *byte ^= 0x55);
            std::fs::write(&path, bytes).unwrap();
        });
        refused += usize::from(outcome.await.is_err());
    }
    assert!(refused > 20, "only {refused} of 150 were noticed");
}

#[tokio::test]
async fn missing_and_short_files_are_noticed() {
    let original = tempfile::tempdir().unwrap();
    make(original.path()).await;
    for file in files(original.path()) {
        let name = file.file_name().unwrap();
        let first = name.to_str().unwrap().ends_with("0000001");
        let what = format!("{name:?} is missing");
        let outcome = opens_unchanged_or_is_refused(original.path(), &what, |directory| {
            std::fs::remove_file(directory.join(name)).unwrap();
        });
        let outcome = outcome.await;
        // The oldest segment contains only history, so without it the store opens with less history.
        assert!(outcome.is_err() || first, "{name:?} is missing");
        let length = std::fs::metadata(&file).unwrap().len();
        for length in [
            0,
            1,
            100,
            length / 2,
            length - 4096,
            length - 1,
            length + 1,
            2 * length,
        ] {
            let what = format!("{name:?} is cut to {length}");
            let outcome = opens_unchanged_or_is_refused(original.path(), &what, |directory| {
                let file = std::fs::OpenOptions::new()
                    .write(true)
                    .open(directory.join(name))
                    .unwrap();
                file.set_len(length).unwrap();
            });
            let outcome = outcome.await;
            // The database knows its length only up to the last page in use.
            assert!(
                outcome.is_err() || (length > 100 && name == "state.redb"),
                "{what}"
            );
        }
    }
}

#[tokio::test]
async fn a_stale_lock_file_does_not_block() {
    let directory = tempfile::tempdir().unwrap();
    let lock = directory.path().join("lock");
    // A process that is gone, one that lives but holds no lock, and no process at all.
    for left in ["4194304\n", "1\n", "", "not a number\n"] {
        std::fs::write(&lock, left).unwrap();
        let store = EmbeddedStore::open(small(directory.path())).unwrap();
        let holder = std::fs::read_to_string(&lock).unwrap();
        assert_eq!(holder.trim(), std::process::id().to_string());
        store.close().unwrap();
    }
}

#[tokio::test]
async fn a_second_process_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(small(directory.path())).unwrap();
    let text = EmbeddedStore::open(small(directory.path()))
        .unwrap_err()
        .to_string();
    let pid = std::process::id();
    assert!(
        text.contains("in use by another process") && text.contains(&format!("(pid {pid})")),
        "{text}"
    );
    assert!(matches!(
        EmbeddedStore::check(directory.path()),
        Err(StoreError::Locked { .. })
    ));
    store
        .write("/registry/a", Write::Create { value: "x".into() })
        .await
        .unwrap();
    drop(store);
    EmbeddedStore::open(small(directory.path())).unwrap();
}
