//! Deadlines for work that grows with its input.
//!
//! Every walk over a document calls [`tick`] once per step. If the thread has a deadline, `tick` polls it at
//! a fixed interval. Once the deadline has passed, the stack unwinds to [`Deadline::observe`], which returns
//! [`DeadlineExceeded`]. No function in between sees a result, so no check can pass because it ran out of
//! time. Without a deadline, a step costs one subtraction.
//!
//! The deadline is thread-local instead of a parameter: all crates below a request share it, and no walk can
//! forget to pass it on.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The number of steps between two polls of the deadline.
const INTERVAL: u32 = 1024;

thread_local! {
    static CURRENT: Cell<Option<Deadline>> = const { Cell::new(None) };
    /// The steps left until the deadline is polled again.
    static STEPS: Cell<u32> = const { Cell::new(INTERVAL) };
    /// The size of the current bulk step, while the deadline is polled; see [`steps_at_once`].
    static AT_ONCE: Cell<u32> = const { Cell::new(0) };
}

/// The time limit of a piece of work.
#[derive(Clone, Copy)]
pub struct Deadline {
    has_passed: fn() -> bool,
    interval: u32,
}

/// The work did not finish in time. It has no result, and everything it was changing must be discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadlineExceeded;

impl fmt::Display for DeadlineExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline was exceeded")
    }
}

impl std::error::Error for DeadlineExceeded {}

impl fmt::Debug for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deadline").finish_non_exhaustive()
    }
}

impl Deadline {
    /// Creates a deadline that has passed once `has_passed` returns true. The function is called on the
    /// thread that does the work, and may yield to other work before it returns.
    pub const fn new(has_passed: fn() -> bool) -> Self {
        Deadline {
            has_passed,
            interval: INTERVAL,
        }
    }

    /// Polls the deadline every `steps` steps.
    #[must_use]
    pub fn checked_every(self, steps: u32) -> Self {
        Deadline {
            interval: steps.max(1),
            ..self
        }
    }

    /// Runs work under this deadline. Deadlines nest; the innermost one applies.
    pub fn observe<T>(self, work: impl FnOnce() -> T) -> Result<T, DeadlineExceeded> {
        let _observed = RestoreOuter {
            outer: CURRENT.replace(Some(self)),
            steps: STEPS.replace(self.interval),
        };
        // Safe to assert: on either outcome the caller discards everything that the work was changing.
        catch_unwind(AssertUnwindSafe(work)).map_err(|panic| match panic.downcast::<DeadlineExceeded>() {
            Ok(exceeded) => *exceeded,
            Err(panic) => resume_unwind(panic),
        })
    }
}

/// Restores the outer deadline on drop.
struct RestoreOuter {
    outer: Option<Deadline>,
    steps: u32,
}

impl Drop for RestoreOuter {
    fn drop(&mut self) {
        CURRENT.set(self.outer);
        STEPS.set(self.steps);
    }
}

/// Runs work without a deadline. For work that changes shared state and must not stop halfway.
pub fn suspended<T>(work: impl FnOnce() -> T) -> T {
    let _observed = RestoreOuter {
        outer: CURRENT.take(),
        steps: STEPS.get(),
    };
    work()
}

/// Counts one step. Unwinds if the deadline of the thread has passed.
#[inline]
pub fn tick() {
    tick_by(1);
}

/// Counts several steps at once.
#[inline]
pub fn tick_by(steps: u32) {
    let left = STEPS.get();
    match left.checked_sub(steps) {
        Some(left @ 1..) => STEPS.set(left),
        _ => check_now(steps),
    }
}

/// The size of the bulk step that is about to be taken; 0 unless the deadline is being polled. The function
/// that is polled can make room for work that will not poll again for a while.
pub fn steps_at_once() -> u32 {
    AT_ONCE.get()
}

/// Counts the steps of one pass over a text: one step per 64 bytes, which take about as long to read.
#[inline]
pub fn tick_over(text: &str) {
    const BYTES_PER_STEP: usize = 64;
    tick_for(text.len() / BYTES_PER_STEP);
}

/// Counts the steps of one pass over a collection.
#[inline]
pub fn tick_for(elements: usize) {
    tick_by(u32::try_from(elements).unwrap_or(u32::MAX));
}

#[cold]
#[inline(never)]
fn check_now(steps: u32) {
    let deadline = CURRENT.get();
    STEPS.set(deadline.map_or(INTERVAL, |deadline| deadline.interval));
    AT_ONCE.set(steps);
    let has_passed = deadline.is_some_and(|deadline| (deadline.has_passed)());
    AT_ONCE.set(0);
    // A destructor that runs during a panic must not panic again: that would abort.
    if has_passed && !std::thread::panicking() {
        // Unlike `panic_any`, this does not call the panic hook, so nothing is printed.
        resume_unwind(Box::new(DeadlineExceeded));
    }
}

/// Deadlines for tests, which pass after a given number of steps.
pub mod testing {
    use super::Deadline;
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
        static LIMIT: Cell<u64> = const { Cell::new(0) };
    }

    /// Returns a deadline that passes at the step after the first `steps`.
    pub fn after_steps(steps: u64) -> Deadline {
        STEPS.set(0);
        LIMIT.set(steps);
        let has_passed = || {
            STEPS.set(STEPS.get() + 1);
            STEPS.get() > LIMIT.get()
        };
        Deadline::new(has_passed).checked_every(1)
    }

    /// Returns the number of steps taken since the last deadline was created.
    pub fn steps() -> u64 {
        STEPS.get()
    }

    /// Runs work under every deadline from 0 steps to the last step, and returns the number of steps. Asserts
    /// that each run returns the same result or none.
    pub fn at_every_step<T: PartialEq + std::fmt::Debug>(work: impl Fn() -> T) -> u64 {
        let want = after_steps(u64::MAX).observe(&work);
        let all = steps();
        // If there are many steps, tries all of the first and last 64 and a sample of the others.
        let stride = |step: u64| if step < 64 || all - step < 64 { 1 } else { all / 64 };
        let mut step = 0;
        while step < all {
            let observed = after_steps(step).observe(&work);
            assert_eq!(
                observed,
                Err(super::DeadlineExceeded),
                "a result at step {step} of {all}"
            );
            step += stride(step).max(1);
        }
        assert_eq!(after_steps(all).observe(&work), want, "after all steps");
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(steps: u32) -> u32 {
        (0..steps).for_each(|_| tick());
        steps
    }

    #[test]
    fn work_stops_at_the_step_after_the_deadline() {
        for steps in 0..5 {
            let observed = testing::after_steps(3).observe(|| work(steps));
            let want = if steps <= 3 {
                Ok(steps)
            } else {
                Err(DeadlineExceeded)
            };
            assert_eq!(observed, want, "{steps} steps");
        }
    }

    #[test]
    fn bulk_steps_are_counted() {
        let passed = Deadline::new(|| true);
        assert_eq!(passed.observe(|| tick_by(INTERVAL - 1)), Ok(()));
        assert_eq!(passed.observe(|| tick_by(INTERVAL)), Err(DeadlineExceeded));
        assert_eq!(passed.observe(|| tick_by(u32::MAX)), Err(DeadlineExceeded));
    }

    #[test]
    fn the_poll_sees_the_size_of_a_bulk_step() {
        let deadline = Deadline::new(|| steps_at_once() > 5_000);
        assert_eq!(deadline.observe(|| tick_by(5_000)), Ok(()));
        assert_eq!(deadline.observe(|| tick_by(5_001)), Err(DeadlineExceeded));
        assert_eq!(steps_at_once(), 0);
    }

    #[test]
    fn the_inner_deadline_restores_the_outer() {
        let outer = testing::after_steps(2).observe(|| {
            let inner = Deadline::new(|| true);
            assert_eq!(inner.observe(|| work(INTERVAL)), Err(DeadlineExceeded));
            work(3)
        });
        assert_eq!(outer, Err(DeadlineExceeded));
        // Both deadlines are gone.
        assert_eq!(work(10 * INTERVAL), 10 * INTERVAL);
    }

    #[test]
    fn suspended_work_ignores_the_deadline() {
        let observed = testing::after_steps(2).observe(|| {
            assert_eq!(suspended(|| work(10 * INTERVAL)), 10 * INTERVAL);
            work(2);
            assert_eq!(testing::steps(), 2);
            work(1)
        });
        assert_eq!(observed, Err(DeadlineExceeded));
    }

    #[test]
    fn other_panics_propagate() {
        let caught = catch_unwind(|| testing::after_steps(9).observe(|| panic!("other")));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"other"));
    }
}
