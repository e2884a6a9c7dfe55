//! A deadline for work that grows with its input.
//!
//! A walk over a document calls [`tick`] for each step. Where the thread works under a deadline, every so many steps its
//! caller is asked, and once the time has passed the walk ends: the stack unwinds to [`Deadline::observe`], which answers
//! [`DeadlineExceeded`]. Nothing between the two sees a result, so that no check can pass because it ran out of
//! time. Without a deadline a step is a subtraction.
//!
//! The deadline belongs to the thread, not to the arguments of every walk: the walks of all crates below a request share
//! it, and none can forget to hand it on.

use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// How many steps are taken before the caller is asked again.
const INTERVAL: u32 = 1024;

thread_local! {
    static CURRENT: Cell<Option<Deadline>> = const { Cell::new(None) };
    /// The steps that are left until the caller is asked.
    static STEPS: Cell<u32> = const { Cell::new(INTERVAL) };
    /// The steps that are taken at once, while the caller is asked.
    static AT_ONCE: Cell<u32> = const { Cell::new(0) };
}

/// When work has to end.
#[derive(Clone, Copy)]
pub struct Deadline {
    has_passed: fn() -> bool,
    interval: u32,
}

/// The work was not done in time. It has no result, and whatever it was changing is to be thrown away.
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
    /// Work has to end once the caller says that its time has passed. It is asked on the thread that does the work, and
    /// may let others go first before it answers.
    pub const fn new(has_passed: fn() -> bool) -> Self {
        Deadline {
            has_passed,
            interval: INTERVAL,
        }
    }

    /// Asks at every so many steps.
    #[must_use]
    pub fn checked_every(self, steps: u32) -> Self {
        Deadline {
            interval: steps.max(1),
            ..self
        }
    }

    /// Does work that has to end in time. Within it, another deadline may be observed; the innermost counts.
    pub fn observe<T>(self, work: impl FnOnce() -> T) -> Result<T, DeadlineExceeded> {
        let _observed = RestoreOuter {
            outer: CURRENT.replace(Some(self)),
            steps: STEPS.replace(self.interval),
        };
        // Other panics pass through; what the work leaves half done is not looked at after either.
        catch_unwind(AssertUnwindSafe(work)).map_err(|panic| match panic.downcast::<DeadlineExceeded>() {
            Ok(exceeded) => *exceeded,
            Err(panic) => resume_unwind(panic),
        })
    }
}

/// Puts back what counted before.
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

/// Does work without a deadline: work that changes what others share, and must not be left half done.
pub fn suspended<T>(work: impl FnOnce() -> T) -> T {
    let _observed = RestoreOuter {
        outer: CURRENT.take(),
        steps: STEPS.get(),
    };
    work()
}

/// Takes a step. Does not return where the deadline of the thread has passed.
#[inline]
pub fn tick() {
    tick_by(1);
}

/// Takes several steps at once.
#[inline]
pub fn tick_by(steps: u32) {
    let left = STEPS.get();
    match left.checked_sub(steps) {
        Some(left @ 1..) => STEPS.set(left),
        _ => check_now(steps),
    }
}

/// The number of steps that are about to be taken at once. Only a caller that is being asked whether its time has passed
/// sees more than 0: it can make room for work that will not ask again for a while.
pub fn steps_at_once() -> u32 {
    AT_ONCE.get()
}

/// Takes the steps of a pass over a text: one for as many bytes as are read in the time of a step.
#[inline]
pub fn tick_over(text: &str) {
    const BYTES_PER_STEP: usize = 64;
    tick_for(text.len() / BYTES_PER_STEP);
}

/// Takes the steps of a pass over a collection.
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
    // What is cleaned up on the way out of a panic must not panic again.
    if has_passed && !std::thread::panicking() {
        resume_unwind(Box::new(DeadlineExceeded));
    }
}

/// Deadlines for tests, which pass after so many steps.
pub mod testing {
    use super::Deadline;
    use std::cell::Cell;

    thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
        static LIMIT: Cell<u64> = const { Cell::new(0) };
    }

    /// A deadline that passes at the step after the first `steps`.
    pub fn after_steps(steps: u64) -> Deadline {
        STEPS.set(0);
        LIMIT.set(steps);
        let has_passed = || {
            STEPS.set(STEPS.get() + 1);
            STEPS.get() > LIMIT.get()
        };
        Deadline::new(has_passed).checked_every(1)
    }

    /// How many steps were taken since the last deadline was made.
    pub fn steps() -> u64 {
        STEPS.get()
    }

    /// Does work under one deadline after the other, from one that passes at the first step to one that passes after the
    /// last, and returns the number of steps. Each time either the result is the same or there is none.
    pub fn at_every_step<T: PartialEq + std::fmt::Debug>(work: impl Fn() -> T) -> u64 {
        let want = after_steps(u64::MAX).observe(&work);
        let all = steps();
        // Where there are many, a few at each end and some of those between will do.
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
    fn work_ends_at_the_step_after_the_deadline() {
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
    fn several_steps_at_once_are_not_overlooked() {
        let passed = Deadline::new(|| true);
        assert_eq!(passed.observe(|| tick_by(INTERVAL - 1)), Ok(()));
        assert_eq!(passed.observe(|| tick_by(INTERVAL)), Err(DeadlineExceeded));
        assert_eq!(passed.observe(|| tick_by(u32::MAX)), Err(DeadlineExceeded));
    }

    #[test]
    fn the_caller_sees_how_many_steps_are_taken_at_once() {
        let deadline = Deadline::new(|| steps_at_once() > 5_000);
        assert_eq!(deadline.observe(|| tick_by(5_000)), Ok(()));
        assert_eq!(deadline.observe(|| tick_by(5_001)), Err(DeadlineExceeded));
        assert_eq!(steps_at_once(), 0);
    }

    #[test]
    fn the_outer_deadline_counts_again_after_the_inner() {
        let outer = testing::after_steps(2).observe(|| {
            let inner = Deadline::new(|| true);
            assert_eq!(inner.observe(|| work(INTERVAL)), Err(DeadlineExceeded));
            work(3)
        });
        assert_eq!(outer, Err(DeadlineExceeded));
        // Nothing is left of either.
        assert_eq!(work(10 * INTERVAL), 10 * INTERVAL);
    }

    #[test]
    fn suspended_work_is_done_to_its_end() {
        let observed = testing::after_steps(2).observe(|| {
            assert_eq!(suspended(|| work(10 * INTERVAL)), 10 * INTERVAL);
            work(2);
            assert_eq!(testing::steps(), 2);
            work(1)
        });
        assert_eq!(observed, Err(DeadlineExceeded));
    }

    #[test]
    fn other_panics_pass_through() {
        let caught = catch_unwind(|| testing::after_steps(9).observe(|| panic!("other")));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"other"));
    }
}
