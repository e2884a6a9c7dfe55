//! Checks that a concurrent history is linearizable.
//!
//! Clients record the times of their calls and responses. The history is linearizable if the calls to each
//! key have an order that agrees with those times and in which every response is that of a sequential store;
//! if revisions increase in that order across all keys; and if a watch shows exactly the executed writes. The
//! search is that of Wing and Gong, with Lowe's memoization.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use scantling_store::{Event, ListRequest, ReadAt, Revision, Store, StoreError, Write};

/// The number of a value. No two writes store the same value, so it identifies the write.
pub(crate) type Counter = u64;

/// Pseudo-random numbers, the same in every run.
#[derive(Debug, Clone)]
pub(crate) struct CounterSource(pub(crate) u64);

impl CounterSource {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The value of a number: the number, followed by a few or many derived bytes.
pub(crate) fn value(number: Counter) -> Bytes {
    let mut numbers = CounterSource(number);
    let most = if numbers.below(10) == 0 { 20_000 } else { 500 };
    let size = numbers.below(most);
    let mut bytes = format!("{number} ").into_bytes();
    bytes.extend((0..size).map(|_| numbers.below(256) as u8));
    bytes.into()
}

/// The number of a value, which must be complete.
pub(crate) fn number(bytes: &[u8]) -> Counter {
    let digits = bytes.split(|byte| *byte == b' ').next().unwrap();
    let number = std::str::from_utf8(digits).unwrap().parse().unwrap();
    assert!(value(number) == bytes, "value {number} is not what was written");
    number
}

/// A call of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreCall {
    Get,
    Create { new: Counter },
    Update { expected: Counter, new: Counter },
    Delete { expected: Counter },
}

impl std::fmt::Display for StoreCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Get => write!(f, "get"),
            Self::Create { new } => write!(f, "create {new}"),
            Self::Update { expected, new } => write!(f, "update {expected} {new}"),
            Self::Delete { expected } => write!(f, "delete {expected}"),
        }
    }
}

/// The response to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    /// Written at this revision.
    Written(Revision),
    /// The current value: the result of a read, or the reason why a write was refused.
    Found(Option<Counter>),
    /// No response, or none that tells whether the write happened.
    Unknown,
}

#[derive(Debug, Clone)]
pub(crate) struct RecordedCall {
    pub(crate) key: String,
    pub(crate) call: StoreCall,
    pub(crate) outcome: CallOutcome,
    pub(crate) invoked: u64,
    /// `u64::MAX` if there was no response.
    pub(crate) returned: u64,
}

pub(crate) const NEVER: u64 = u64::MAX;

/// The transition of a sequential store: the state after a call, if the recorded response is possible.
fn step(state: Option<Counter>, operation: &RecordedCall) -> Option<Option<Counter>> {
    let (holds, after) = match operation.call {
        StoreCall::Get => (false, state),
        StoreCall::Create { new } => (state.is_none(), Some(new)),
        StoreCall::Update { expected, new } => (state == Some(expected), Some(new)),
        StoreCall::Delete { expected } => (state == Some(expected), None),
    };
    match operation.outcome {
        CallOutcome::Written(_) => holds.then_some(after),
        CallOutcome::Found(found) => (!holds && found == state).then_some(state),
        CallOutcome::Unknown => Some(if holds { after } else { state }),
    }
}

/// The set of ordered operations: all before the first missing one, and some after it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct CompletedCall {
    first: usize,
    beyond: BTreeSet<usize>,
}

impl CompletedCall {
    fn with(&self, index: usize) -> Self {
        let mut done = self.clone();
        done.beyond.insert(index);
        while done.beyond.remove(&done.first) {
            done.first += 1;
        }
        done
    }

    /// The operations that may come next: those called before any remaining one returned.
    fn candidates(&self, operations: &[RecordedCall]) -> Vec<usize> {
        let mut first_answer = NEVER;
        let mut candidates = Vec::new();
        for (index, operation) in operations.iter().enumerate().skip(self.first) {
            if operation.invoked > first_answer {
                break;
            }
            if !self.beyond.contains(&index) {
                candidates.push(index);
                first_answer = first_answer.min(operation.returned);
            }
        }
        candidates.retain(|index| operations[*index].invoked <= first_answer);
        candidates
    }
}

/// Searches an order of the operations on one key.
fn check_key(operations: &mut [RecordedCall]) {
    operations.sort_by_key(|operation| operation.invoked);
    let begin = CompletedCall::default();
    let mut stack = vec![(None, begin.clone(), begin.candidates(operations))];
    let mut seen = HashSet::new();
    let mut furthest = 0;
    while let Some((state, done, candidates)) = stack.last_mut() {
        if done.first == operations.len() {
            return;
        }
        let Some(index) = candidates.pop() else {
            stack.pop();
            continue;
        };
        let Some(next) = step(*state, &operations[index]) else {
            continue;
        };
        let done = done.with(index);
        furthest = furthest.max(done.first);
        if seen.insert((done.clone(), next)) {
            let candidates = done.candidates(operations);
            stack.push((next, done, candidates));
        }
    }
    let near = operations.iter().skip(furthest.saturating_sub(8)).take(24);
    let near: Vec<_> = near.map(|operation| format!("{operation:?}")).collect();
    panic!(
        "no order explains these, of {}:\n{}",
        operations.len(),
        near.join("\n")
    );
}

/// Checks a history, given all writes that a watch has shown since before it began.
pub(crate) fn check(operations: Vec<RecordedCall>, events: &[Arc<Event>]) {
    let mut operations = resolve_unknown_outcomes(operations, events);
    // A write that returned before another was called has the lower revision.
    let mut writes: Vec<_> = operations
        .iter()
        .filter_map(|operation| match operation.outcome {
            CallOutcome::Written(revision) => Some((revision, operation)),
            _ => None,
        })
        .collect();
    writes.sort_by_key(|(revision, _)| std::cmp::Reverse(*revision));
    let mut answered = NEVER;
    for (revision, write) in writes {
        assert!(
            answered >= write.invoked,
            "a later revision than {revision} was acknowledged before {write:?} began"
        );
        answered = answered.min(write.returned);
    }
    let mut by_key: BTreeMap<String, Vec<RecordedCall>> = BTreeMap::new();
    for operation in operations.drain(..) {
        by_key.entry(operation.key.clone()).or_default().push(operation);
    }
    for operations in by_key.values_mut() {
        check_key(operations);
    }
}

/// Matches writes with the events of a watch. Each event is a write of a client, and every acknowledged write
/// has an event. This decides the outcome of writes without a response.
fn resolve_unknown_outcomes(operations: Vec<RecordedCall>, events: &[Arc<Event>]) -> Vec<RecordedCall> {
    let mut state: BTreeMap<&str, Counter> = BTreeMap::new();
    let mut happened = BTreeMap::new();
    let mut last = 0;
    for event in events {
        assert!(event.revision > last, "{} after {last}", event.revision);
        last = event.revision;
        let [before, after] =
            [event.before(), event.after()].map(|entry| entry.map(|e| number(&e.value.bytes())));
        let known = match after {
            Some(after) => state.insert(event.key(), after),
            None => state.remove(&**event.key()),
        };
        assert_eq!(before, known, "what was under a key before revision {last}");
        let call = match (before, after) {
            (None, Some(new)) => StoreCall::Create { new },
            (Some(expected), Some(new)) => StoreCall::Update { expected, new },
            (Some(expected), None) => StoreCall::Delete { expected },
            (None, None) => panic!("revision {last} has changed nothing"),
        };
        happened.insert((event.key().to_string(), call.to_string()), event.revision);
    }
    let mut settled = Vec::new();
    let mut unanswered = Vec::new();
    for operation in operations {
        match (operation.outcome, operation.call) {
            (CallOutcome::Unknown, StoreCall::Get) => {}
            (CallOutcome::Unknown, _) => unanswered.push(operation),
            (CallOutcome::Written(revision), call) => {
                let shown = happened.remove(&(operation.key.clone(), call.to_string()));
                assert_eq!(
                    shown,
                    Some(revision),
                    "acknowledged, and not shown: {operation:?}"
                );
                settled.push(operation);
            }
            (CallOutcome::Found(_), _) => settled.push(operation),
        }
    }
    let mut claimed = BTreeSet::new();
    for mut operation in unanswered {
        let write = (operation.key.clone(), operation.call.to_string());
        let Some(revision) = happened.get(&write) else {
            continue;
        };
        // Several clients may have tried to delete the same value; which attempt succeeded is unknown.
        if !matches!(operation.call, StoreCall::Delete { .. }) {
            operation.outcome = CallOutcome::Written(*revision);
        }
        settled.push(operation);
        claimed.insert(write);
    }
    happened.retain(|write, _| !claimed.contains(write));
    assert!(happened.is_empty(), "nobody wrote {happened:?}");
    settled
}

/// Records the calls of clients.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    clock: AtomicU64,
    operations: Mutex<Vec<RecordedCall>>,
}

impl Recorder {
    pub(crate) fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    pub(crate) fn note(&self, key: &str, call: StoreCall, outcome: CallOutcome, invoked: u64) {
        let returned = match outcome {
            CallOutcome::Unknown => NEVER,
            _ => self.now(),
        };
        self.operations.lock().push(RecordedCall {
            key: key.to_owned(),
            call,
            outcome,
            invoked,
            returned,
        });
    }

    pub(crate) fn finish(&self) -> Vec<RecordedCall> {
        std::mem::take(&mut *self.operations.lock())
    }
}

/// What a client remembers of a key: a value and its revision, possibly stale.
type KnownKeys = BTreeMap<String, (Counter, Revision)>;

/// A client that reads and writes a few keys, often based on what it remembers.
pub(crate) struct RecordingClient {
    pub(crate) numbers: CounterSource,
    /// The number of the next value; other clients use other ranges.
    pub(crate) next: Counter,
    pub(crate) keys: Vec<String>,
    known: KnownKeys,
}

impl RecordingClient {
    pub(crate) fn new(id: u64, keys: &[String]) -> Self {
        Self {
            numbers: CounterSource(id),
            next: id << 32,
            keys: keys.to_vec(),
            known: KnownKeys::new(),
        }
    }

    /// Chooses the next call and its key.
    pub(crate) fn choose(&mut self) -> (String, StoreCall) {
        let key = self.keys[self.numbers.below(self.keys.len() as u64) as usize].clone();
        self.next += 1;
        let new = self.next;
        let call = match (self.numbers.below(10), self.known.get(&key)) {
            (0..3, _) => StoreCall::Get,
            (3, None) => StoreCall::Get,
            (_, None) => StoreCall::Create { new },
            (3..5, Some((expected, _))) => StoreCall::Delete { expected: *expected },
            (5, Some(_)) => StoreCall::Create { new },
            (_, Some((expected, _))) => StoreCall::Update {
                expected: *expected,
                new,
            },
        };
        (key, call)
    }

    /// Makes a call.
    pub(crate) async fn make(&mut self, store: &dyn Store, key: &str, call: StoreCall) -> CallOutcome {
        let expected = self.known.get(key).map_or(0, |(_, revision)| *revision);
        let write = match call {
            StoreCall::Get => {
                return match store.get(key, ReadAt::Latest).await {
                    Ok(entry) => self.found(key, entry.as_deref()),
                    Err(error) => Self::no_answer(&error),
                };
            }
            StoreCall::Create { new } => Write::Create {
                value: value(new).into(),
            },
            StoreCall::Update { new, .. } => Write::Update {
                value: value(new).into(),
                expected,
            },
            StoreCall::Delete { .. } => Write::Delete { expected },
        };
        match store.write(key, write).await {
            Ok(event) => {
                self.found(key, event.after().map(|entry| &**entry));
                CallOutcome::Written(event.revision)
            }
            Err(StoreError::AlreadyExists { current } | StoreError::Conflict { current, .. }) => {
                self.found(key, Some(&current))
            }
            Err(StoreError::NotFound { .. }) => self.found(key, None),
            Err(error) => Self::no_answer(&error),
        }
    }

    fn found(&mut self, key: &str, entry: Option<&scantling_store::Entry>) -> CallOutcome {
        match entry {
            Some(entry) => {
                let number = number(&entry.value.bytes());
                self.known.insert(key.to_owned(), (number, entry.mod_revision));
                CallOutcome::Found(Some(number))
            }
            None => {
                self.known.remove(key);
                CallOutcome::Found(None)
            }
        }
    }

    fn no_answer(error: &StoreError) -> CallOutcome {
        assert!(
            matches!(error, StoreError::Unavailable { .. } | StoreError::Io { .. }),
            "{error}"
        );
        CallOutcome::Unknown
    }

    /// Makes a number of calls, occasionally a list, which reads all keys at once.
    pub(crate) async fn work(mut self, store: Arc<dyn Store>, recorder: Arc<Recorder>, steps: usize) {
        for _ in 0..steps {
            if self.numbers.below(8) == 0 {
                self.list(&*store, &recorder).await;
                continue;
            }
            let (key, call) = self.choose();
            let invoked = recorder.now();
            let outcome = self.make(&*store, &key, call).await;
            recorder.note(&key, call, outcome, invoked);
        }
    }

    async fn list(&mut self, store: &dyn Store, recorder: &Recorder) {
        let prefix = self.keys[0].rsplit_once('/').unwrap().0;
        let request = ListRequest {
            prefix: format!("{prefix}/"),
            ..ListRequest::default()
        };
        let invoked = recorder.now();
        let Ok(page) = store.list(request).await else {
            return;
        };
        let entries: BTreeMap<&str, _> = page.entries.iter().map(|e| (&*e.key, e)).collect();
        for key in self.keys.clone() {
            let outcome = self.found(&key, entries.get(&*key).map(|entry| &***entry));
            recorder.note(&key, StoreCall::Get, outcome, invoked);
        }
    }
}

/// Runs clients concurrently on a few keys, each with one of the stores, and checks the history. `meanwhile`
/// runs at the same time.
pub(crate) async fn run(
    stores: &[Arc<dyn Store>],
    prefix: &str,
    clients: u64,
    steps: usize,
    meanwhile: impl Future<Output = ()>,
) {
    let keys: Vec<String> = (0..3).map(|n| format!("{prefix}{n}")).collect();
    let start = stores[0].revision().await.unwrap();
    let mut watch = stores[0].watch(prefix, start).await.unwrap();
    let recorder = Arc::new(Recorder::default());
    let tasks: Vec<_> = (0..clients)
        .map(|id| {
            let store = Arc::clone(&stores[id as usize % stores.len()]);
            tokio::spawn(RecordingClient::new(id + 1, &keys).work(store, Arc::clone(&recorder), steps))
        })
        .collect();
    meanwhile.await;
    for task in tasks {
        task.await.unwrap();
    }
    // No client has seen what happens after this.
    let last = format!("{prefix}end");
    let end = loop {
        match stores[0]
            .write(
                &last,
                Write::Create {
                    value: value(0).into(),
                },
            )
            .await
        {
            Ok(event) => break event.revision,
            Err(StoreError::AlreadyExists { current }) => break current.mod_revision,
            Err(error) => drop(RecordingClient::no_answer(&error)),
        }
    };
    let mut events = Vec::new();
    loop {
        let event = watch.next().await.unwrap();
        if event.revision == end {
            break;
        }
        events.push(event);
    }
    check(recorder.finish(), &events);
}
