//! A process that writes is killed at a random moment, again and again.
//!
//! The victim is this very test program, run with the name of one test. It tells on its output what it is about
//! to write and what was acknowledged. After the kill, a watch that resumes where the last one was must show
//! each write once: all that were acknowledged, and nothing but what was about to be written.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use scantling_store::{Change, EmbeddedStore, Event, ReadAt, Revision, Store, Write};

use crate::{Numbers, contents, small};

const DIRECTORY: &str = "SCANTLING_CRASH_DIRECTORY";
/// How often the victim is killed; hundreds of times take minutes.
const RUNS: &str = "SCANTLING_CRASH_RUNS";
const TASKS: u64 = 8;

/// What a write does, in words that both processes understand.
fn describe(key: &str, write: &Write) -> String {
    match write {
        Write::Create { value } => format!("{key} create {}", fingerprint(value)),
        Write::Update { value, .. } => format!("{key} update {}", fingerprint(value)),
        Write::Delete { .. } => format!("{key} delete"),
    }
}

fn describe_event(event: &Event) -> String {
    match &event.change {
        Change::Create { new } => format!("{} create {}", new.key, fingerprint(&new.value)),
        Change::Update { new, .. } => format!("{} update {}", new.key, fingerprint(&new.value)),
        Change::Delete { old } => format!("{} delete", old.key),
    }
}

fn fingerprint(value: &[u8]) -> String {
    let hash = value.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{}:{hash:016x}", value.len())
}

fn tell(line: &str) {
    // In one call, so that lines of several threads never mix.
    std::io::stdout()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}

/// Writes until it is killed. Without a directory this is no victim but a test that passes.
#[test]
fn victim() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    // The test harness has begun a line of its own.
    tell("");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async move {
        let store = Arc::new(EmbeddedStore::open(small(Path::new(&directory))).unwrap());
        let seed = store.revision().await.unwrap();
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| tokio::spawn(write_forever(Arc::clone(&store), task, seed * 1000 + task)))
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

async fn write_forever(store: Arc<EmbeddedStore>, task: u64, seed: u64) {
    let mut numbers = Numbers(seed);
    loop {
        let key = format!("/registry/crash/things/task-{task}/{}", numbers.below(6));
        let size = if numbers.below(10) == 0 {
            numbers.below(20_000)
        } else {
            numbers.below(500)
        };
        let value: Bytes = (0..size)
            .map(|_| numbers.below(256) as u8)
            .collect::<Vec<_>>()
            .into();
        let write = match store.get(&key, ReadAt::Latest).await.unwrap() {
            None => Write::Create { value },
            Some(entry) if numbers.below(4) == 0 => Write::Delete {
                expected: entry.mod_revision,
            },
            Some(entry) => Write::Update {
                value,
                expected: entry.mod_revision,
            },
        };
        tell(&format!("begin {}", describe(&key, &write)));
        let event = store.write(&key, write).await.unwrap();
        tell(&format!("done {} {}", event.revision, describe_event(&event)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost() {
    let runs: u64 = std::env::var(RUNS).map_or(30, |text| text.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let mut numbers = Numbers(runs);
    let mut known: Revision = 1;
    let mut state: BTreeMap<String, String> = BTreeMap::new();
    let mut acknowledged: BTreeMap<Revision, String> = BTreeMap::new();
    let mut begun: Vec<String> = Vec::new();
    let mut total = 0;
    for run in 0..runs {
        for line in kill_a_victim(directory.path(), numbers.below(120)) {
            let (kind, rest) = line.split_once(' ').unwrap();
            if kind == "begin" {
                begun.push(rest.to_owned());
                continue;
            }
            let (revision, what) = rest.split_once(' ').unwrap();
            let revision: Revision = revision.parse().unwrap();
            let again = acknowledged.insert(revision, what.to_owned());
            assert_eq!(again, None, "revision {revision} was given twice");
            assert!(revision > known, "revision {revision} is not after {known}");
            begun.swap_remove(begun.iter().position(|begun| begun == what).unwrap());
        }
        // Every other time, the next victim finds what the last one left, with nobody tidying up in between.
        if run % 2 == 0 {
            continue;
        }
        let store = EmbeddedStore::open(small(directory.path())).unwrap();
        let mut watch = store.watch("/registry/", known).await.unwrap();
        while let Some(event) = watch.try_next().unwrap() {
            known += 1;
            assert_eq!(event.revision, known, "each write is seen once, in order");
            let what = describe_event(&event);
            match acknowledged.remove(&known) {
                Some(told) => assert_eq!(what, told, "revision {known}"),
                None => {
                    let at = begun.iter().position(|begun| *begun == what);
                    begun.swap_remove(at.unwrap_or_else(|| panic!("nobody wrote {what}")));
                }
            }
            match event.after() {
                Some(entry) => state.insert(entry.key.to_string(), fingerprint(&entry.value)),
                None => state.remove(&**event.key()),
            };
            total += 1;
        }
        assert_eq!(
            acknowledged,
            BTreeMap::new(),
            "these were acknowledged and are lost"
        );
        assert_eq!(store.revision().await.unwrap(), known);
        let found = contents(&store).await;
        let found: BTreeMap<_, _> = found
            .into_iter()
            .map(|(key, (_, value))| (key, fingerprint(&value)))
            .collect();
        assert_eq!(found, state, "the watch and the list disagree");
        begun.clear();
    }
    eprintln!("{runs} kills, {total} writes, all accounted for");
}

/// Lets a victim write for some milliseconds; answers with what it told.
fn kill_a_victim(directory: &Path, milliseconds: u64) -> Vec<String> {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["crash::victim", "--exact", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = victim.stdout.take().unwrap();
    let (started, wait) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut lines = Vec::new();
        let mut output = BufReader::new(output);
        let mut line = String::new();
        // The last line may be cut short by the kill; then it was not told.
        while output.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
            if line.starts_with("begin ") || line.starts_with("done ") {
                let _ = started.send(());
                lines.push(line.trim_end().to_owned());
            }
            line.clear();
        }
        lines
    });
    // Some are killed while they open the store, the others after they have begun to write.
    if milliseconds >= 20 {
        let _ = wait.recv_timeout(Duration::from_secs(20));
    }
    std::thread::sleep(Duration::from_millis(milliseconds));
    victim.kill().unwrap();
    victim.wait().unwrap();
    reader.join().unwrap()
}
