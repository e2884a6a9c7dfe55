//! A progress bar for long work.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal as _;

/// So few files are done before a bar could be read.
const SHORT: usize = 2000;

/// A bar on standard error, where that is a terminal and the work is long.
pub(crate) fn bar(files: usize) -> ProgressBar {
    if files < SHORT || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(files as u64), ProgressDrawTarget::stderr_with_hz(10));
    match ProgressStyle::with_template("{bar:40} {pos}/{len} files, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
