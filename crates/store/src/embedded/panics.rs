//! Catches panics of redb, which panics on some damaged files. They are reported as errors, without the
//! message and backtrace that a panic prints.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// True while a panic of this thread would be caught.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// Runs work that may panic. The error is the panic message.
pub(crate) fn catch<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // The hook is global, so it is installed once and silences only threads that catch.
    HOOK.call_once(|| {
        let report = take_hook();
        set_hook(Box::new(move |info| {
            if !CAUGHT.get() {
                report(info);
            }
        }));
    });
    // The previous value is restored, so that calls may nest.
    let before = CAUGHT.replace(true);
    // After a panic the caller drops the database, so nothing reads its inconsistent state.
    let outcome = catch_unwind(AssertUnwindSafe(work));
    CAUGHT.set(before);
    outcome.map_err(|payload| {
        let text = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied());
        text.unwrap_or("no reason given")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_become_errors() {
        assert_eq!(catch(|| 1), Ok(1));
        assert_eq!(
            catch(|| panic!("in\n  {} lines", 2)),
            Err::<(), _>("in 2 lines".to_owned())
        );
        assert!(!CAUGHT.get());
    }
}
