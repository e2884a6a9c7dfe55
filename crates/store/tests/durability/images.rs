//! Data directories whose files do not match: a check and a start both refuse them with the file, the offset
//! and the remedy, and change nothing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use scantling_store::{EmbeddedConfig, EmbeddedStore, Remedy, Revision, Store, StoreError, Write};

use crate::{contents, copy_all, small};

/// Many segments, and only the initial state in the database, as after a crash.
fn without_checkpoints(directory: &Path) -> EmbeddedConfig {
    let mut config = small(directory);
    (config.segment_bytes, config.checkpoint_bytes) = (16 << 10, 1 << 30);
    config
}

async fn create(store: &EmbeddedStore, keys: std::ops::Range<usize>) -> Revision {
    let mut last = 0;
    for n in keys {
        let value = format!("{n} ").repeat(500).into();
        let key = format!("/registry/images/things/ns/{n:04}");
        last = store.write(&key, Write::Create { value }).await.unwrap().revision;
    }
    last
}

fn segment(directory: &Path, number: usize) -> PathBuf {
    directory.join(format!("journal-{number:016}"))
}

fn segments(directory: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("journal-")
        })
        .collect();
    paths.sort();
    paths
}

fn resize(path: &Path, change: impl FnOnce(u64) -> u64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(change(length)).unwrap();
}

fn bytes(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    files
        .filter(|file| file.file_type().unwrap().is_file() && file.file_name() != "lock")
        .map(|file| (file.path(), fs::read(file.path()).unwrap()))
        .collect()
}

/// An expected report: the file, a part of the message, and the remedy.
type DamageReport = (&'static str, &'static str, Remedy);

/// A damage case: its description, the damage, and the expected report.
type DamageCase<'a> = (&'a str, &'a dyn Fn(&Path), DamageReport);

/// Damages a copy of an image; a check and a start must both refuse it with the same message.
fn refused(image: &Path, what: &str, damage: &dyn Fn(&Path), (file, said, remedy): DamageReport) {
    let damaged = copy_all(image);
    damage(damaged.path());
    let before = bytes(damaged.path());
    let check = EmbeddedStore::check(damaged.path()).expect_err(what);
    let open = EmbeddedStore::open(without_checkpoints(damaged.path())).expect_err(what);
    assert_eq!(check.to_string(), open.to_string(), "{what}");
    assert!(bytes(damaged.path()) == before, "{what}: files were changed");
    let StoreError::Damaged {
        path,
        detail,
        remedy: found,
        ..
    } = &check
    else {
        panic!("{what}: {check}");
    };
    let name = path.file_name().unwrap().to_str().unwrap();
    assert_eq!((name, *found), (file, remedy), "{what}: {check}");
    assert!(detail.contains(said), "{what}: {check}");
}

const FIRST: &str = "journal-0000000000000001";
const SECOND: &str = "journal-0000000000000002";
const THIRD: &str = "journal-0000000000000003";
const LAST: &str = "journal-0000000000000004";
const FIFTH: &str = "journal-0000000000000005";
const STATE: &str = "state.redb";

/// Creates the image of a killed server, segment by segment.
async fn crashed(keys: std::ops::Range<usize>) -> (tempfile::TempDir, Revision) {
    let directory = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(without_checkpoints(directory.path())).unwrap();
    let revision = create(&store, keys).await;
    (copy_all(directory.path()), revision)
}

#[tokio::test]
async fn mismatched_files_of_a_killed_server() {
    use Remedy::{MatchingFiles, MoveAway, RestoreExport};
    let (image, _) = crashed(0..40).await;
    let (other, _) = crashed(100..140).await;
    assert_eq!(segments(image.path()).len(), 4);
    // The same segments with fewer records.
    let (early, _) = crashed(0..1).await;
    let other = other.path();
    let early = early.path();
    let cases: &[DamageCase<'_>] = &[
        (
            "the last segment is cut within its records",
            &|d| resize(&d.join(LAST), |_| 5_000),
            (LAST, "cut to 5000 bytes of 16384", RestoreExport),
        ),
        (
            "the last segment is cut within what is still free",
            &|d| resize(&d.join(LAST), |length| length - 1),
            (LAST, "cut to 16383 bytes of 16384", RestoreExport),
        ),
        (
            "an earlier segment is cut",
            &|d| resize(&d.join(SECOND), |length| length / 2),
            (SECOND, "cut to 8192 bytes of 16384", RestoreExport),
        ),
        (
            "a segment is too long",
            &|d| resize(&d.join(LAST), |length| length + 1),
            (
                LAST,
                "it has 16385 bytes, where 16384 were written",
                RestoreExport,
            ),
        ),
        (
            "a segment is too long by much",
            &|d| resize(&d.join(FIRST), |_| 1 << 24),
            (FIRST, "where 16384 were written", RestoreExport),
        ),
        (
            "a segment is empty",
            &|d| resize(&d.join(LAST), |_| 0),
            (LAST, "it has 0 bytes", RestoreExport),
        ),
        (
            "a segment ends in its header",
            &|d| resize(&d.join(FIRST), |_| 63),
            (FIRST, "it has 63 bytes", RestoreExport),
        ),
        (
            "a segment is all zeros",
            &|d| fs::write(d.join(LAST), vec![0; 16 << 10]).unwrap(),
            (LAST, "its header is unreadable", RestoreExport),
        ),
        (
            "the last segment is missing",
            &|d| fs::remove_file(d.join(LAST)).unwrap(),
            (LAST, "missing, but segment 3 names it as the next", MatchingFiles),
        ),
        (
            "the last two segments are missing",
            &|d| {
                fs::remove_file(d.join(LAST)).unwrap();
                fs::remove_file(d.join(THIRD)).unwrap();
            },
            (
                THIRD,
                "missing, but segment 2 names it as the next",
                MatchingFiles,
            ),
        ),
        (
            "a segment in the middle is missing",
            &|d| fs::remove_file(d.join(SECOND)).unwrap(),
            (SECOND, "missing, but segment 3 is there", MatchingFiles),
        ),
        (
            "the first segment is missing, which the state needs",
            &|d| fs::remove_file(d.join(FIRST)).unwrap(),
            (FIRST, "older than the journal, segments 2 to 4", MatchingFiles),
        ),
        (
            "all segments are missing",
            &|d| segments(d).iter().for_each(|path| fs::remove_file(path).unwrap()),
            (FIRST, "so is every other segment", MatchingFiles),
        ),
        (
            "two segments are swapped",
            &|d| {
                fs::rename(d.join(SECOND), d.join("x")).unwrap();
                fs::rename(d.join(THIRD), d.join(SECOND)).unwrap();
                fs::rename(d.join("x"), d.join(THIRD)).unwrap();
            },
            (SECOND, "a copy of segment 3", MatchingFiles),
        ),
        (
            "a segment is there twice, the copy as the next",
            &|d| {
                fs::copy(d.join(LAST), d.join(FIFTH)).unwrap();
            },
            (FIFTH, "a copy of segment 4", MatchingFiles),
        ),
        (
            "a segment is there twice, under another spelling of its number",
            &|d| {
                fs::copy(d.join(LAST), d.join("journal-4")).unwrap();
            },
            ("journal-4", "but not quite", MoveAway),
        ),
        (
            "a copy of a segment lies beside it",
            &|d| {
                fs::copy(d.join(LAST), d.join("journal-0000000000000004.bak")).unwrap();
            },
            ("journal-0000000000000004.bak", "but not quite", MoveAway),
        ),
        (
            "the last segment is that of another store",
            &|d| {
                fs::copy(other.join(LAST), d.join(LAST)).unwrap();
            },
            (LAST, "not the segment that segment 3 names", MatchingFiles),
        ),
        (
            "the first segment is that of another store",
            &|d| {
                fs::copy(other.join(FIRST), d.join(FIRST)).unwrap();
            },
            (SECOND, "not the segment that segment 1 names", MatchingFiles),
        ),
        (
            "the whole journal is that of another store",
            &|d| {
                for path in segments(other) {
                    fs::copy(&path, d.join(path.file_name().unwrap())).unwrap();
                }
            },
            (FIRST, "belongs to another journal", MatchingFiles),
        ),
        (
            "the first segment is older than the next",
            &|d| {
                let mut bytes = fs::read(d.join(FIRST)).unwrap();
                bytes[8 << 10..].fill(0);
                fs::write(d.join(FIRST), bytes).unwrap();
            },
            (SECOND, "comes next", MatchingFiles),
        ),
        (
            "the state is that of another store",
            &|d| {
                fs::copy(early.join(STATE), d.join(STATE)).unwrap();
            },
            (FIRST, "belongs to another journal", MatchingFiles),
        ),
        (
            "the state is missing",
            &|d| fs::remove_file(d.join(STATE)).unwrap(),
            (
                STATE,
                "missing, but there is a journal up to revision",
                MatchingFiles,
            ),
        ),
        (
            "the state is empty",
            &|d| resize(&d.join(STATE), |_| 0),
            (STATE, "it is empty", RestoreExport),
        ),
        (
            "the state is one byte",
            &|d| resize(&d.join(STATE), |_| 1),
            (STATE, "", RestoreExport),
        ),
        (
            "the state is cut in half",
            &|d| resize(&d.join(STATE), |length| length / 2),
            (STATE, "", RestoreExport),
        ),
        (
            "a segment is a directory",
            &|d| fs::create_dir(d.join(FIFTH)).unwrap(),
            (FIFTH, "not a regular file", MoveAway),
        ),
        (
            "a segment is a link",
            &|d| {
                fs::rename(d.join(LAST), d.join("elsewhere")).unwrap();
                symlink(d.join("elsewhere"), d.join(LAST)).unwrap();
            },
            (LAST, "symbolic link", MoveAway),
        ),
        (
            "a segment is a pipe",
            &|d| {
                fs::remove_file(d.join(LAST)).unwrap();
                let made = std::process::Command::new("mkfifo").arg(d.join(LAST)).status();
                assert!(made.unwrap().success());
            },
            (LAST, "not a regular file", MoveAway),
        ),
        (
            "a record in the middle of the last segment is unreadable",
            &|d| {
                let mut bytes = fs::read(d.join(LAST)).unwrap();
                bytes[100] ^= 1;
                fs::write(d.join(LAST), bytes).unwrap();
            },
            (LAST, "is unreadable", RestoreExport),
        ),
    ];
    for (what, damage, report) in cases {
        refused(image.path(), what, damage, *report);
    }
}

#[tokio::test]
async fn mismatched_files_of_a_stopped_server() {
    use Remedy::MatchingFiles;
    let directory = tempfile::tempdir().unwrap();
    let copies: Vec<_> = {
        let mut copies = Vec::new();
        for keys in [0..5, 5..25, 25..40] {
            let store = EmbeddedStore::open(without_checkpoints(directory.path())).unwrap();
            create(&store, keys).await;
            store.close().unwrap();
            copies.push(copy_all(directory.path()));
        }
        copies
    };
    let [oldest, old, image] = [0, 1, 2].map(|n| copies[n].path());
    let last = segments(image).len();
    let last_of_old = segments(old).len();
    assert!(last > last_of_old, "{last} {last_of_old}");

    refused(
        image,
        "the records at the end of the journal are gone, and the room for them is there",
        &|d| {
            let path = segment(d, last);
            let mut bytes = fs::read(&path).unwrap();
            bytes[64..].fill(0);
            fs::write(path, bytes).unwrap();
        },
        (LAST, "the state is of revision 41", MatchingFiles),
    );
    refused(
        image,
        "the journal is older than the state",
        &|d| {
            segments(d).iter().for_each(|path| fs::remove_file(path).unwrap());
            for path in segments(oldest) {
                fs::copy(&path, d.join(path.file_name().unwrap())).unwrap();
            }
        },
        (LAST, "newer than the journal, segments 1 to 1", MatchingFiles),
    );
    refused(
        oldest,
        "the state is newer than the journal, within one segment",
        &|d| {
            let path = segment(d, 1);
            let mut bytes = fs::read(&path).unwrap();
            let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
            bytes[end - 100..].fill(0);
            fs::write(path, bytes).unwrap();
        },
        (
            FIRST,
            "the journal ends at revision 5, but the state is of revision 6",
            MatchingFiles,
        ),
    );

    // An older database beside a complete journal is a state that no checkpoint has reached yet.
    let older_state = copy_all(image);
    fs::copy(old.join(STATE), older_state.path().join(STATE)).unwrap();
    let want = EmbeddedStore::check(image).unwrap();
    assert_eq!(EmbeddedStore::check(older_state.path()).unwrap(), want);
    let store = EmbeddedStore::open(without_checkpoints(older_state.path())).unwrap();
    assert_eq!(contents(&store).await.len(), 40);
    assert_eq!(create(&store, 45..46).await, want.revision + 1);
}

#[tokio::test]
async fn a_restored_store_without_its_database_is_refused() {
    let (image, _) = crashed(0..10).await;
    let mut backup = Vec::new();
    let store = EmbeddedStore::open(without_checkpoints(image.path())).unwrap();
    scantling_store::export(&store, "/", &mut backup).await.unwrap();
    let restored = tempfile::tempdir().unwrap();
    EmbeddedStore::restore(restored.path(), backup.as_slice()).unwrap();
    refused(
        restored.path(),
        "the journal of a restored store has no records, but it does not begin with the first revision",
        &|d| fs::remove_file(d.join(STATE)).unwrap(),
        (
            STATE,
            "there is a journal up to revision 11",
            Remedy::MatchingFiles,
        ),
    );
}

/// A crash between the creation of a segment and the record that names it.
#[tokio::test]
async fn a_crash_between_segments_is_recovered() {
    let (image, revision) = crashed(0..40).await;
    // The last record of the third segment is the seal; the fourth segment is empty.
    let seal = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
        (bytes, end)
    };
    let (mut third, end) = seal(&segment(image.path(), 3));
    third[end.next_multiple_of(4) - 40..].fill(0);
    let unsealed = copy_all(image.path());
    fs::write(segment(unsealed.path(), 3), &third).unwrap();
    let error = EmbeddedStore::check(unsealed.path()).unwrap_err().to_string();
    assert!(
        error.contains("does not name the segment that follows, although there is one"),
        "{error}"
    );
    let mut fourth = fs::read(segment(unsealed.path(), 4)).unwrap();
    fourth[64..].fill(0);
    fs::write(segment(unsealed.path(), 4), fourth).unwrap();
    for round in 0..2 {
        let store = EmbeddedStore::open(without_checkpoints(unsealed.path())).unwrap();
        let found = store.revision().await.unwrap();
        assert!(
            found < revision,
            "what was in the fourth is not acknowledged here"
        );
        assert_eq!(create(&store, 50 + round..51 + round).await, found + 1);
        drop(store);
        EmbeddedStore::check(unsealed.path()).unwrap();
    }
}

/// Files with other names are not ours.
#[tokio::test]
async fn other_files_are_left_alone() {
    let (image, _) = crashed(0..10).await;
    let want = EmbeddedStore::check(image.path()).unwrap();
    for name in ["notes.txt", "state.redb.bak", ".journal", "journal"] {
        fs::write(image.path().join(name), "mine").unwrap();
    }
    fs::create_dir(image.path().join("lost+found")).unwrap();
    assert_eq!(EmbeddedStore::check(image.path()).unwrap(), want);
    drop(EmbeddedStore::open(without_checkpoints(image.path())).unwrap());
    assert_eq!(fs::read(image.path().join("notes.txt")).unwrap(), b"mine");
}
