//! Progress of long work.

use crate::files::InputSource;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Shorter work shows no progress.
const SHORT: Duration = Duration::from_millis(500);

/// A progress bar on standard error, if that is a terminal, the output is redirected and the work is long.
pub(crate) struct ByteProgress {
    begun: Instant,
    /// The bytes done, and the total.
    done: AtomicU64,
    all: u64,
    bar: OnceLock<ProgressBar>,
    seen: bool,
}

impl ByteProgress {
    pub(crate) fn new(sources: &[InputSource]) -> Self {
        // A bar beside results on the same terminal would mix with them.
        let seen = std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
        let all = if seen {
            sources.iter().map(InputSource::size).sum()
        } else {
            0
        };
        ByteProgress {
            begun: Instant::now(),
            done: AtomicU64::new(0),
            all,
            bar: OnceLock::new(),
            seen,
        }
    }

    /// Adds processed bytes.
    pub(crate) fn advance(&self, bytes: usize) {
        if !self.seen {
            return;
        }
        let done = self.done.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        // Checked on each advance: a timer would need a thread.
        if self.begun.elapsed() > SHORT {
            self.bar.get_or_init(|| bar(self.all)).set_position(done);
        }
    }
}

fn bar(all: u64) -> ProgressBar {
    let target = ProgressDrawTarget::stderr_with_hz(10);
    let bar = ProgressBar::with_draw_target(Some(all), target);
    match ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

impl Drop for ByteProgress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}
