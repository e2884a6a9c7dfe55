//! Kills a writing process at random moments, again and again.
//!
//! The victim is this test program itself, run with the name of one test. Its tasks read and write a few
//! shared keys, and print every call before it and its response after it. After the kill, a watch that
//! resumes where the last one ended must show each acknowledged write exactly once, and no write that was not
//! attempted. At the end, one sequential order must explain all responses of all victims.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use scantling_store::{EmbeddedStore, Revision, Store};

use crate::linear::{self, CallOutcome, CounterSource, NEVER, RecordedCall, RecordingClient, StoreCall};
use crate::{contents, small};

const DIRECTORY: &str = "SCANTLING_CRASH_DIRECTORY";
/// The number of the victim.
const RUN: &str = "SCANTLING_CRASH_RUN";
/// The number of kills.
const RUNS: &str = "SCANTLING_CRASH_RUNS";
const TASKS: u64 = 8;

fn print_line(line: &str) {
    // One call, so that lines of several threads never mix.
    std::io::stdout()
        .write_all(format!("{line}\n").as_bytes())
        .unwrap();
}

/// Writes until it is killed. Without a directory it is not a victim, and passes.
#[test]
fn victim() {
    let Some(directory) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let run: u64 = std::env::var(RUN).unwrap().parse().unwrap();
    // The test harness has printed the beginning of a line.
    print_line("");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async move {
        let store = Arc::new(EmbeddedStore::open(small(Path::new(&directory))).unwrap());
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| tokio::spawn(work_forever(Arc::clone(&store), run * TASKS + task + 1)))
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
}

async fn work_forever(store: Arc<EmbeddedStore>, id: u64) {
    let keys: Vec<String> = (0..12)
        .map(|n| format!("/registry/crash/things/ns/{n}"))
        .collect();
    let mut client = RecordingClient::new(id, &keys);
    loop {
        let (key, call) = client.choose();
        print_line(&format!("begin {id} {key} {call}"));
        let outcome = client.make(&*store, &key, call).await;
        match outcome {
            CallOutcome::Written(revision) => print_line(&format!("done {id} written {revision}")),
            CallOutcome::Found(Some(number)) => print_line(&format!("done {id} found {number}")),
            CallOutcome::Found(None) => print_line(&format!("done {id} found nothing")),
            CallOutcome::Unknown => panic!("a store that works answers"),
        }
    }
}

fn parse_call(text: &str) -> StoreCall {
    let words: Vec<&str> = text.split(' ').collect();
    let numbers: Vec<u64> = words.iter().skip(1).map(|word| word.parse().unwrap()).collect();
    match (words[0], numbers.as_slice()) {
        ("get", []) => StoreCall::Get,
        ("create", &[new]) => StoreCall::Create { new },
        ("update", &[expected, new]) => StoreCall::Update { expected, new },
        ("delete", &[expected]) => StoreCall::Delete { expected },
        _ => panic!("{text}"),
    }
}

fn parse_outcome(text: &str) -> CallOutcome {
    match text.split_once(' ').unwrap() {
        ("written", revision) => CallOutcome::Written(revision.parse().unwrap()),
        ("found", "nothing") => CallOutcome::Found(None),
        ("found", number) => CallOutcome::Found(Some(number.parse().unwrap())),
        _ => panic!("{text}"),
    }
}

/// The output of the victims.
#[derive(Default)]
struct CrashReport {
    operations: Vec<RecordedCall>,
    /// The call in flight of each client.
    begun: BTreeMap<String, RecordedCall>,
    clock: u64,
}

impl CrashReport {
    fn hear(&mut self, line: &str) {
        self.clock += 1;
        let (kind, rest) = line.split_once(' ').unwrap();
        let (id, rest) = rest.split_once(' ').unwrap();
        if kind == "begin" {
            let (key, call) = rest.split_once(' ').unwrap();
            let operation = RecordedCall {
                key: key.to_owned(),
                call: parse_call(call),
                outcome: CallOutcome::Unknown,
                invoked: self.clock,
                returned: NEVER,
            };
            self.begun.insert(id.to_owned(), operation);
        } else {
            let mut operation = self.begun.remove(id).unwrap();
            operation.outcome = parse_outcome(rest);
            operation.returned = self.clock;
            self.operations.push(operation);
        }
    }

    /// After the kill, marks calls in flight as unanswered.
    fn mark_unanswered(&mut self) {
        self.operations
            .extend(std::mem::take(&mut self.begun).into_values());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost() {
    let runs: u64 = std::env::var(RUNS).map_or(200, |text| text.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let mut numbers = CounterSource(runs);
    let mut known: Revision = 1;
    let mut state: BTreeMap<String, linear::Counter> = BTreeMap::new();
    let mut told = CrashReport::default();
    let mut events = Vec::new();
    for run in 0..runs {
        for line in run_victim(directory.path(), run, numbers.below(120)) {
            told.hear(&line);
        }
        told.mark_unanswered();
        // Every other victim starts from exactly what the last one left, without a check in between.
        if run % 2 == 0 && run + 1 < runs {
            continue;
        }
        let store = EmbeddedStore::open(small(directory.path())).unwrap();
        let mut watch = store.watch("/registry/", known).await.unwrap();
        while let Some(event) = watch.try_next().unwrap() {
            known += 1;
            assert_eq!(event.revision, known, "each write is seen once, in order");
            match event.after() {
                Some(entry) => state.insert(entry.key.to_string(), linear::number(&entry.value.bytes())),
                None => state.remove(&**event.key()),
            };
            events.push(event);
        }
        assert_eq!(store.revision().await.unwrap(), known);
        let found = contents(&store).await;
        let found: BTreeMap<_, _> = found
            .into_iter()
            .map(|(key, (_, value))| (key, linear::number(&value.bytes())))
            .collect();
        assert_eq!(found, state, "the watch and the list disagree");
    }
    let (operations, writes) = (told.operations.len(), events.len());
    linear::check(told.operations, &events);
    eprintln!("{runs} kills, {operations} operations, {writes} writes, all accounted for");
}

/// Runs a victim for some milliseconds; returns its output.
fn run_victim(directory: &Path, run: u64, milliseconds: u64) -> Vec<String> {
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["crash::victim", "--exact", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(RUN, run.to_string())
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
        // The kill may cut the last line; then it does not count.
        while output.read_line(&mut line).unwrap() > 0 && line.ends_with('\n') {
            if line.starts_with("begin ") || line.starts_with("done ") {
                let _ = started.send(());
                lines.push(line.trim_end().to_owned());
            }
            line.clear();
        }
        lines
    });
    // Some are killed while they open the store, others after they have begun to write.
    if milliseconds >= 20 {
        let _ = wait.recv_timeout(Duration::from_secs(20));
    }
    std::thread::sleep(Duration::from_millis(milliseconds));
    victim.kill().unwrap();
    victim.wait().unwrap();
    reader.join().unwrap()
}
