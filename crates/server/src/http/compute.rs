//! Where the work of requests is done.
//!
//! Most requests take microseconds and are answered where they arrive, on the workers of the runtime. One that turns out
//! to be heavy (a large body, a large stored object, a schema that makes many checks of one value) says so with
//! [`offload`]. From then on it runs on a thread that no other connection waits for, and shares the processors with other
//! heavy requests in turns: no more run at once than leave a processor for all others, and each gives way after its turn.
//!
//! A request that seemed light and runs for long all the same (a rule that loops, a deep document) is detached from its
//! worker in the middle of its work ([`detach`]).
//!
//! All work of a request observes its deadline, wherever it runs: see [`scantling_value::deadline`].

use scantling_value::deadline::{self, Deadline, DeadlineExceeded};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::{Duration, Instant};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::PollSemaphore;

/// What is smaller than that many bytes is not heavy, unless there is much to do with each.
pub(crate) const LIGHT: usize = 16 * 1024;

/// How many checks may be made of a light object, at one per byte.
const LIGHT_CHECKS: usize = 1024 * 1024;

/// The memory for the heavy requests of a class that run at once, in MiB. Others wait until there is room.
const MEMORY: u32 = 256;

/// What a request takes in memory for each byte of its objects: texts, decoded values before and after, field sets.
const BYTES_PER_BYTE: usize = 32;

/// How long a light request may keep its worker.
const INLINE: Duration = Duration::from_millis(2);

/// As many steps at once take about as long: a request that announces them is detached before it takes them.
const LONG_STEP: u32 = 16 * 1024;

/// How long a heavy request runs before another gets its turn.
const TURN: Duration = Duration::from_millis(20);

/// How long a request waits for its next turn. After that it runs beside the others: it may hold what they wait for.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// The processors' share for heavy requests.
#[derive(Debug)]
pub(crate) struct Pool {
    reads: Arc<Lane>,
    writes: Arc<Lane>,
}

/// What a request does. Those that read never wait for those that write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Read,
    Write,
}

/// The heavy requests of a class.
#[derive(Debug)]
struct Lane {
    memory: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

impl Lane {
    fn new(turns: usize) -> Arc<Lane> {
        Arc::new(Lane {
            memory: Arc::new(Semaphore::new(MEMORY as usize)),
            turns: Arc::new(Semaphore::new(turns)),
        })
    }
}

impl Pool {
    /// A pool for a machine with that many processors.
    pub(crate) fn new(processors: usize) -> Pool {
        let turns = processors.saturating_sub(1).max(1);
        Pool {
            reads: Lane::new(turns),
            writes: Lane::new(turns),
        }
    }

    /// Does the work of a request, which ends at a point in time if one is given.
    pub(crate) async fn run<F: Future>(
        &self,
        class: Class,
        end: Option<Instant>,
        mut work: Pin<&mut F>,
    ) -> Result<F::Output, DeadlineExceeded> {
        let lane = match class {
            Class::Read => &self.reads,
            Class::Write => &self.writes,
        };
        let mut load = Load::Light;
        let mut memory = None;
        poll_fn(|cx| {
            let offloaded = match load {
                Load::Heavy(mib) if can_block() => Some(mib),
                Load::Heavy(_) | Load::Light => None,
            };
            let held = match offloaded {
                Some(mib) => {
                    let waiting = || PollSemaphore::new(Arc::clone(&lane.memory));
                    ready!(memory.get_or_insert_with(waiting).poll_acquire_many(cx, mib))
                }
                None => None,
            };
            let mut poll = |turn: Option<Turn>| {
                let stay = Stay::begin(Current {
                    end,
                    load,
                    turn,
                    began: Instant::now(),
                    lane: Arc::clone(lane),
                    held: None,
                });
                let polled = DEADLINE.observe(|| work.as_mut().poll(cx));
                load = stay.load();
                match polled {
                    Ok(Poll::Ready(done)) => Poll::Ready(Ok(done)),
                    Ok(Poll::Pending) => Poll::Pending,
                    Err(exceeded) => Poll::Ready(Err(exceeded)),
                }
            };
            let polled = match offloaded {
                Some(_) => tokio::task::block_in_place(|| poll(Some(Turn::wait(lane)))),
                None => poll(None),
            };
            drop(held);
            polled
        })
        .await
    }
}

/// Whether the runtime has other threads for those who wait.
fn can_block() -> bool {
    Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread)
}

/// Whether an object of that many bytes, of whose values a schema makes so many checks each, is heavy.
pub(crate) fn is_heavy(bytes: usize, checks: u32) -> bool {
    let checks = usize::try_from(checks).unwrap_or(usize::MAX);
    bytes > LIGHT || bytes.saturating_mul(checks) > LIGHT_CHECKS
}

/// Says that the request at work is heavy, with objects of that many bytes. What follows runs where nobody waits for it.
pub(crate) async fn offload(bytes: usize) {
    if set_load(Load::for_bytes(bytes)) == Some(Load::Light) {
        tokio::task::yield_now().await;
    }
}

/// Says that what follows is light again.
pub(crate) fn end_offload() {
    set_load(Load::Light);
}

/// Sets what the request at work is, and returns what it was.
fn set_load(load: Load) -> Option<Load> {
    CURRENT.with_borrow_mut(|current| {
        let current = current.as_mut()?;
        Some(std::mem::replace(&mut current.load, load))
    })
}

/// Does work of that many bytes that is not a request's, or comes after its end, where nobody waits for it.
pub(crate) fn in_place<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > LIGHT && can_block() {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

/// Whether a request keeps others waiting where it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Light,
    /// It does, and takes that many MiB of memory.
    Heavy(u32),
}

impl Load {
    fn for_bytes(bytes: usize) -> Load {
        let mib = bytes.saturating_mul(BYTES_PER_BYTE) >> 20;
        Load::Heavy(u32::try_from(mib).unwrap_or(MEMORY).clamp(1, MEMORY))
    }
}

/// The request at work on a thread.
struct Current {
    end: Option<Instant>,
    load: Load,
    turn: Option<Turn>,
    /// When its stay on this thread began.
    began: Instant,
    lane: Arc<Lane>,
    /// The room that a request took which was detached from its worker.
    held: Option<OwnedSemaphorePermit>,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

const DEADLINE: Deadline = Deadline::new(has_passed);

/// Whether the time of the request at work has passed. Before that, others get their turn if its own is over.
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

/// Lets another thread take over the tasks of the worker that a request runs on, so that only this request goes on here.
fn detach(current: &mut Current) {
    /// As long as it takes another thread to start.
    const HANDOVER: Duration = Duration::from_micros(100);
    if !can_block() {
        return;
    }
    // The worker's tasks move to another thread while this one blocks, and stay there.
    tokio::task::block_in_place(|| std::thread::sleep(HANDOVER));
    current.load = Load::for_bytes(0);
    // Where others hold all the memory for longer, the request goes on without: it may hold what they wait for.
    let room = Arc::clone(&current.lane.memory).acquire_owned();
    let room = async { tokio::time::timeout(LONGEST_WAIT, room).await };
    current.held = block_on(room).ok().and_then(Result::ok);
    current.turn = Some(Turn::wait(&current.lane));
}

/// The stay of a request on a thread.
struct Stay {
    outer: Option<Current>,
}

impl Stay {
    fn begin(current: Current) -> Stay {
        Stay {
            outer: CURRENT.replace(Some(current)),
        }
    }

    /// What the request has turned out to be.
    fn load(self) -> Load {
        CURRENT.with_borrow(|current| current.as_ref().map_or(Load::Light, |current| current.load))
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        CURRENT.set(self.outer.take());
    }
}

/// Waits on this thread, whose worker's tasks run elsewhere.
fn block_on<F: Future>(work: F) -> F::Output {
    tokio::task::block_in_place(|| Handle::current().block_on(work))
}

/// A turn of a heavy request. Its thread may block.
struct Turn {
    turns: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
    end: Instant,
}

impl Turn {
    /// Waits for the first one.
    fn wait(lane: &Lane) -> Turn {
        let turns = Arc::clone(&lane.turns);
        // Nobody closes it.
        let permit = block_on(Arc::clone(&turns).acquire_owned()).ok();
        Turn {
            turns,
            permit,
            end: Instant::now() + TURN,
        }
    }

    /// Lets others go first once it is over.
    fn give_way(&mut self) {
        if Instant::now() < self.end {
            return;
        }
        self.permit = None;
        let next = Arc::clone(&self.turns).acquire_owned();
        let next = async { tokio::time::timeout(LONGEST_WAIT, next).await };
        self.permit = block_on(next).ok().and_then(Result::ok);
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

    /// Longer than any test takes that passes.
    const FAR: Duration = Duration::from_secs(60);

    fn far() -> Option<Instant> {
        Instant::now().checked_add(FAR)
    }

    /// Work that goes on until something happens.
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
                pool.run(Class::Write, far(), pin!(work)).await
            }
        });
        let light = tokio::spawn(async move {
            let work = async { tell.send("answered") };
            pool.run(Class::Write, far(), pin!(work)).await
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
                pool.run(Class::Write, far(), pin!(work)).await
            }
        });
        let second = tokio::spawn(async move {
            let work = async {
                offload(0).await;
                happened.store(true, Ordering::Release);
            };
            pool.run(Class::Write, far(), pin!(work)).await
        });
        assert_eq!(second.await.unwrap(), Ok(()));
        assert_eq!(first.await.unwrap(), Ok(()));
    }

    /// Nothing says beforehand that the request is heavy.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_request_that_runs_long_is_detached_from_the_only_worker() {
        let pool = Arc::new(Pool::new(2));
        let happened = Arc::new(AtomicBool::new(false));
        let long = tokio::spawn({
            let (pool, happened) = (Arc::clone(&pool), Arc::clone(&happened));
            async move {
                pool.run(Class::Write, far(), pin!(async { until(&happened) }))
                    .await
            }
        });
        let light = tokio::spawn({
            let pool = Arc::clone(&pool);
            async move {
                let work = async { happened.store(true, Ordering::Release) };
                pool.run(Class::Write, far(), pin!(work)).await
            }
        });
        assert_eq!(light.await.unwrap(), Ok(()));
        assert_eq!(long.await.unwrap(), Ok(()));
        assert_eq!(pool.writes.memory.available_permits(), MEMORY as usize);
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
            let ended = pool.run(Class::Write, Some(Instant::now()), pin!(work)).await;
            assert_eq!(ended, Err(DeadlineExceeded), "heavy: {is_heavy}");
        }
        assert_eq!(pool.writes.turns.available_permits(), 1);
        assert_eq!(pool.writes.memory.available_permits(), MEMORY as usize);
    }

    #[tokio::test]
    async fn where_no_thread_may_block_work_is_done_in_place() {
        let pool = Pool::new(4);
        let work = async {
            offload(0).await;
            in_place(usize::MAX, || "done")
        };
        assert_eq!(pool.run(Class::Read, far(), pin!(work)).await, Ok("done"));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_request_is_heavy_until_it_says_otherwise() {
        let load = || CURRENT.with_borrow(|current| current.as_ref().map(|c| (c.load, c.turn.is_some())));
        let work = async {
            let light = load();
            offload(0).await;
            let heavy = load();
            end_offload();
            tokio::task::yield_now().await;
            [light, heavy, load()]
        };
        let seen = Pool::new(2).run(Class::Read, far(), pin!(work)).await;
        let (light, heavy) = (Some((Load::Light, false)), Some((Load::for_bytes(0), true)));
        assert_eq!(seen, Ok([light, heavy, light]));
        assert_eq!(load(), None);
    }

    #[test]
    fn few_bytes_are_heavy_where_each_is_much_work() {
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
