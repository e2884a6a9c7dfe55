//! Scheduling of requests: light ones on the async workers, heavy ones on threads of their own.
//!
//! Most requests take microseconds and run on the workers of the runtime. A heavy one (a large body, a large stored
//! object, a schema with many checks per value) calls [`offload`]. From then on it runs on a thread that no other
//! connection waits for. Heavy requests share the processors in turns, and leave one processor for all others. Users
//! take turns, and so do the connections of a user ([`shares`]): a client with many heavy requests does not hold up
//! another one.
//!
//! A request that seemed light but runs for long (a rule that loops, a deep document) is detached from its worker while
//! it runs ([`detach`]).
//!
//! All work of a request observes its deadline, wherever it runs: see [`scantling_value::deadline`].

mod shares;

pub(crate) use shares::FlowKey;

use scantling_value::deadline::{self, Deadline, DeadlineExceeded};
use shares::{Acquire, Permit, Shares};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, RuntimeFlavor};

/// Objects with fewer bytes are light, unless there are many checks per byte.
pub(crate) const LIGHT: usize = 16 * 1024;

/// The maximum number of checks of a light object, counted as bytes times checks.
const LIGHT_CHECKS: usize = 1024 * 1024;

/// The memory for the heavy requests of a class that run at once, in MiB. Others wait until there is room.
const MEMORY: u32 = 256;

/// The part of the memory that the requests of one user may take together.
const MEMORY_PER_USER: u32 = MEMORY / 4 * 3;

/// The memory that a request takes per byte of its objects: texts, decoded values before and after, field
/// sets. A list of zeros is the worst case: each takes two bytes of text, and ten times that per decoded
/// copy.
const BYTES_PER_BYTE: usize = 64;

/// The time after which a light request is detached from its worker.
const INLINE: Duration = Duration::from_millis(2);

/// The number of steps that take about as long. A request that announces more is detached first.
const LONG_STEP: u32 = 16 * 1024;

/// The length of a turn of a heavy request.
const TURN: Duration = Duration::from_millis(20);

/// The maximum time between turns. After that a request runs anyway, because it may hold a lock that others
/// wait for.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// The processors' share for heavy requests.
#[derive(Debug)]
pub(crate) struct Pool {
    reads: Arc<Lane>,
    writes: Arc<Lane>,
}

/// The class of a request. Reads never wait for writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Read,
    Write,
}

/// The heavy requests of a class.
#[derive(Debug)]
struct Lane {
    memory: Arc<Shares>,
    turns: Arc<Shares>,
}

impl Lane {
    fn new(turns: u32) -> Arc<Lane> {
        Arc::new(Lane {
            memory: Shares::new(MEMORY, MEMORY_PER_USER),
            turns: Shares::new(turns, turns),
        })
    }
}

impl Pool {
    /// A pool for a machine with that many processors.
    pub(crate) fn new(processors: usize) -> Pool {
        // One processor stays free for light requests.
        let turns = u32::try_from(processors.saturating_sub(1))
            .unwrap_or(u32::MAX)
            .max(1);
        Pool {
            reads: Lane::new(turns),
            writes: Lane::new(turns),
        }
    }

    /// Runs a request until its deadline, if it has one.
    pub(crate) async fn run<F: Future>(
        &self,
        class: Class,
        flow: &FlowKey,
        end: Option<Instant>,
        mut work: Pin<&mut F>,
    ) -> Result<F::Output, DeadlineExceeded> {
        let lane = match class {
            Class::Read => &self.reads,
            Class::Write => &self.writes,
        };
        let mut load = Load::Light;
        let (mut memory, mut turn) = (Waited::default(), Waited::default());
        poll_fn(|cx| {
            // A runtime with one thread, as in tests, has no other worker that could take over.
            let offloaded = match load {
                Load::Heavy(mib) if can_block() => Some(mib),
                Load::Heavy(_) | Load::Light => None,
            };
            if let Some(mib) = offloaded {
                ready!(memory.poll(cx, || lane.memory.acquire(flow, mib)));
                // Waits before it takes a thread: hundreds of requests may wait, and each would take one.
                ready!(turn.poll(cx, || lane.turns.acquire(flow, 1)));
            }
            let mut poll = |turn: Option<Turn>| {
                let scope = CurrentScope::begin(Current {
                    end,
                    load,
                    turn,
                    began: Instant::now(),
                    lane: Arc::clone(lane),
                    flow: flow.clone(),
                    held: None,
                });
                let polled = DEADLINE.observe(|| work.as_mut().poll(cx));
                // The request may have become heavy during this poll; the next one then takes memory and a turn.
                load = scope.load();
                match polled {
                    Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
                    Ok(Poll::Pending) => Poll::Pending,
                    Err(exceeded) => Poll::Ready(Err(exceeded)),
                }
            };
            let polled = match turn.take() {
                Some(permit) => {
                    let turn = Turn::begin(lane, flow, permit);
                    // Tokio moves the worker's other tasks to another thread first.
                    tokio::task::block_in_place(|| poll(Some(turn)))
                }
                None => poll(None),
            };
            // The memory covers one poll: between polls a request waits, and another one may use it.
            drop(memory.take());
            polled
        })
        .await
    }
}

/// Permits that a request waits for and then holds.
#[derive(Default)]
enum Waited {
    #[default]
    Idle,
    Waiting(Acquire),
    Held(Permit),
}

impl Waited {
    /// Waits for the permits, unless they are held.
    fn poll(&mut self, cx: &mut Context<'_>, acquire: impl FnOnce() -> Acquire) -> Poll<()> {
        if let Waited::Idle = self {
            *self = Waited::Waiting(acquire());
        }
        if let Waited::Waiting(waiting) = self {
            *self = Waited::Held(ready!(Pin::new(waiting).poll(cx)));
        }
        Poll::Ready(())
    }

    /// Takes the permits, if they are held.
    fn take(&mut self) -> Option<Permit> {
        match std::mem::take(self) {
            Waited::Held(permit) => Some(permit),
            Waited::Idle | Waited::Waiting(_) => None,
        }
    }
}

/// Returns whether the runtime has several threads.
fn can_block() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// Returns whether an object of that many bytes and checks per value is heavy.
pub(crate) fn is_heavy(bytes: usize, checks: u32) -> bool {
    let checks = usize::try_from(checks).unwrap_or(usize::MAX);
    bytes > LIGHT || bytes.saturating_mul(checks) > LIGHT_CHECKS
}

/// Marks the current request as heavy, with objects of that many bytes. It continues on a thread of its own.
pub(crate) async fn offload(bytes: usize) {
    let load = Load::for_bytes(bytes);
    // A load only grows, and work outside of a request has none.
    let before = CURRENT.with_borrow(|current| current.as_ref().map(|current| current.load));
    if before.is_some_and(|before| before < load) {
        set_load(load);
        // The memory for the load is taken when the request is polled again.
        tokio::task::yield_now().await;
    }
}

/// Marks the current request as light again.
pub(crate) fn end_offload() {
    set_load(Load::Light);
}

fn set_load(load: Load) {
    CURRENT.with_borrow_mut(|current| {
        if let Some(current) = current {
            current.load = load;
        }
    });
}

/// The flow of the current request.
pub(crate) fn current_flow() -> FlowKey {
    CURRENT.with_borrow(|current| {
        current
            .as_ref()
            .map(|current| current.flow.clone())
            .unwrap_or_default()
    })
}

/// Runs work of that many bytes outside of a request, without blocking a worker.
pub(crate) fn in_place<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > LIGHT && can_block() {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

/// The load of a request on its worker: a heavy one delays others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Load {
    Light,
    /// Heavy, with that many MiB of memory.
    Heavy(u32),
}

impl Load {
    fn for_bytes(bytes: usize) -> Load {
        let mib = bytes.saturating_mul(BYTES_PER_BYTE) >> 20;
        Load::Heavy(u32::try_from(mib).unwrap_or(MEMORY).clamp(1, MEMORY))
    }
}

/// The current request of a thread.
struct Current {
    end: Option<Instant>,
    load: Load,
    turn: Option<Turn>,
    /// The time at which it began to run on this thread.
    began: Instant,
    lane: Arc<Lane>,
    flow: FlowKey,
    /// The memory permit of a request that was detached from its worker.
    held: Option<Permit>,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

const DEADLINE: Deadline = Deadline::new(has_passed);

/// Returns whether the deadline of the current request has passed. Ends its turn, if that is over.
fn has_passed() -> bool {
    CURRENT.with_borrow_mut(|current| {
        let Some(current) = current else { return false };
        match &mut current.turn {
            Some(turn) => turn.give_way(),
            None if deadline::steps_at_once() >= LONG_STEP || current.began.elapsed() >= INLINE => {
                detach(current);
            }
            None => {}
        }
        current.end.is_some_and(|end| Instant::now() >= end)
    })
}

/// Hands the tasks of this worker over to another thread, so that only the current request continues here.
fn detach(current: &mut Current) {
    /// The time that another thread takes to start.
    const HANDOVER: Duration = Duration::from_micros(100);
    if !can_block() {
        return;
    }
    // The worker's tasks move to another thread while this one blocks, and stay there.
    tokio::task::block_in_place(|| std::thread::sleep(HANDOVER));
    // Later polls of the request start on a thread of their own.
    current.load = Load::for_bytes(0);
    // If others hold all the memory for longer, the request continues without: it may hold a lock that they wait for.
    let room = current.lane.memory.acquire(&current.flow, 1);
    let room = async { tokio::time::timeout(LONGEST_WAIT, room).await };
    current.held = block_on(room).ok();
    let first = block_on(current.lane.turns.acquire(&current.flow, 1));
    current.turn = Some(Turn::begin(&current.lane, &current.flow, first));
}

/// The time of a request on a thread.
struct CurrentScope {
    outer: Option<Current>,
}

impl CurrentScope {
    fn begin(current: Current) -> CurrentScope {
        CurrentScope {
            outer: CURRENT.replace(Some(current)),
        }
    }

    /// The weight of the request.
    fn load(self) -> Load {
        CURRENT.with_borrow(|current| current.as_ref().map_or(Load::Light, |current| current.load))
    }
}

impl Drop for CurrentScope {
    fn drop(&mut self) {
        // Polls may nest on a thread: the outer request becomes the current one again.
        CURRENT.set(self.outer.take());
    }
}

/// Waits on this thread, whose worker's tasks run elsewhere.
fn block_on<F: Future>(work: F) -> F::Output {
    tokio::task::block_in_place(|| Handle::current().block_on(work))
}

/// A turn of a heavy request. Its thread may block.
struct Turn {
    turns: Arc<Shares>,
    flow: FlowKey,
    permit: Option<Permit>,
    end: Instant,
}

impl Turn {
    fn begin(lane: &Lane, flow: &FlowKey, permit: Permit) -> Turn {
        Turn {
            turns: Arc::clone(&lane.turns),
            flow: flow.clone(),
            permit: Some(permit),
            end: Instant::now() + TURN,
        }
    }

    /// Yields to others once the turn is over.
    fn give_way(&mut self) {
        if Instant::now() < self.end {
            return;
        }
        // Given back before the next one is requested: otherwise the request would wait for itself.
        self.permit = None;
        let next = self.turns.acquire(&self.flow, 1);
        let next = async { tokio::time::timeout(LONGEST_WAIT, next).await };
        // Without a permit after the longest wait, the request runs anyway.
        self.permit = block_on(next).ok();
        self.end = Instant::now() + TURN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scantling_value::deadline;
    use std::pin::pin;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    /// Longer than any passing test takes.
    const FAR: Duration = Duration::from_secs(60);

    fn far() -> Option<Instant> {
        Instant::now().checked_add(FAR)
    }

    /// Work that continues until something happens.
    fn until(happened: &AtomicBool) {
        while !happened.load(Ordering::Acquire) {
            deadline::tick();
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_heavy_request_does_not_hold_the_only_worker() {
        let pool = Arc::new(Pool::new(2));
        let (tell, told) = mpsc::channel();
        let heavy = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move {
                let work = async move {
                    offload(0).await;
                    // The thread waits for another request.
                    told.recv_timeout(FAR)
                };
                pool.run(Class::Write, &FlowKey::default(), far(), pin!(work))
                    .await
            }
        });
        let light = tokio::spawn(async move {
            let work = async { tell.send("answered") };
            pool.run(Class::Write, &FlowKey::default(), far(), pin!(work))
                .await
        });
        assert_eq!(light.await.unwrap(), Ok(Ok(())));
        assert_eq!(heavy.await.unwrap(), Ok(Ok("answered")));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn heavy_requests_take_turns() {
        let pool = Arc::new(Pool::new(1));
        let happened = Arc::new(AtomicBool::new(false));
        let first = tokio::spawn({
            let (pool, happened) = (Arc::clone(&pool), Arc::clone(&happened));
            async move {
                let work = async {
                    offload(0).await;
                    until(&happened);
                };
                pool.run(Class::Write, &FlowKey::default(), far(), pin!(work))
                    .await
            }
        });
        let second = tokio::spawn(async move {
            let work = async {
                offload(0).await;
                happened.store(true, Ordering::Release);
            };
            pool.run(Class::Write, &FlowKey::default(), far(), pin!(work))
                .await
        });
        assert_eq!(second.await.unwrap(), Ok(()));
        assert_eq!(first.await.unwrap(), Ok(()));
    }

    /// The request is not known to be heavy in advance.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_request_that_runs_long_is_detached_from_the_only_worker() {
        let pool = Arc::new(Pool::new(2));
        let happened = Arc::new(AtomicBool::new(false));
        let long = tokio::spawn({
            let (pool, happened) = (Arc::clone(&pool), Arc::clone(&happened));
            async move {
                pool.run(
                    Class::Write,
                    &FlowKey::default(),
                    far(),
                    pin!(async { until(&happened) }),
                )
                .await
            }
        });
        let light = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move {
                let work = async { happened.store(true, Ordering::Release) };
                pool.run(Class::Write, &FlowKey::default(), far(), pin!(work))
                    .await
            }
        });
        assert_eq!(light.await.unwrap(), Ok(()));
        assert_eq!(long.await.unwrap(), Ok(()));
        assert_eq!(pool.writes.memory.free(), MEMORY);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_ends_with_its_deadline_and_frees_its_turn() {
        let pool = Pool::new(1);
        for is_heavy in [false, true] {
            let work = async {
                if is_heavy {
                    offload(0).await;
                }
                until(&AtomicBool::new(false));
            };
            let ended = pool
                .run(
                    Class::Write,
                    &FlowKey::default(),
                    Some(Instant::now()),
                    pin!(work),
                )
                .await;
            assert_eq!(ended, Err(DeadlineExceeded), "heavy: {is_heavy}");
        }
        assert_eq!(pool.writes.turns.free(), 1);
        assert_eq!(pool.writes.memory.free(), MEMORY);
    }

    #[tokio::test]
    async fn single_threaded_runtimes_work_in_place() {
        let pool = Pool::new(4);
        let work = async {
            offload(0).await;
            in_place(usize::MAX, || "done")
        };
        assert_eq!(
            pool.run(Class::Read, &FlowKey::default(), far(), pin!(work))
                .await,
            Ok("done")
        );
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn requests_are_heavy_until_reclassified() {
        let load = || CURRENT.with_borrow(|current| current.as_ref().map(|c| (c.load, c.turn.is_some())));
        let work = async {
            let light = load();
            offload(0).await;
            let heavy = load();
            end_offload();
            tokio::task::yield_now().await;
            [light, heavy, load()]
        };
        let seen = Pool::new(2)
            .run(Class::Read, &FlowKey::default(), far(), pin!(work))
            .await;
        let (light, heavy) = (Some((Load::Light, false)), Some((Load::for_bytes(0), true)));
        assert_eq!(seen, Ok([light, heavy, light]));
        assert_eq!(load(), None);
    }

    #[test]
    fn small_bodies_can_be_heavy() {
        let cases = [
            (0, u32::MAX, false),
            (1, u32::MAX, true),
            (LIGHT, 1, false),
            (LIGHT + 1, 1, true),
            (1000, 1000, false),
            (2000, 1000, true),
        ];
        for (bytes, checks, want) in cases {
            assert_eq!(is_heavy(bytes, checks), want, "{bytes} bytes, {checks} checks");
        }
    }
}
