//! How far long work has come.

use crate::files::Source;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

/// Shorter work is over before anything could be read.
const SHORT: Duration = Duration::from_millis(500);

/// A bar on standard error, where that is a terminal, results go elsewhere and the work is long.
pub(crate) struct Progress {
    begun: Instant,
    /// Done, and in all.
    bytes: (u64, u64),
    bar: Option<ProgressBar>,
    seen: bool,
}

impl Progress {
    pub(crate) fn of(sources: &[Source]) -> Self {
        let seen = std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
        let all = if seen {
            sources.iter().map(Source::size).sum()
        } else {
            0
        };
        Progress {
            begun: Instant::now(),
            bytes: (0, all),
            bar: None,
            seen,
        }
    }

    /// So much more is done.
    pub(crate) fn advance(&mut self, bytes: u64) {
        self.bytes.0 += bytes;
        if self.seen && self.bar.is_none() && self.begun.elapsed() > SHORT {
            let target = ProgressDrawTarget::stderr_with_hz(10);
            let bar = ProgressBar::with_draw_target(Some(self.bytes.1), target);
            self.bar = Some(
                match ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} left") {
                    Ok(style) => bar.with_style(style),
                    Err(_) => bar,
                },
            );
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.bytes.0);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
