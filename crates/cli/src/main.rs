//! The `scantling` command.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the command line is the one part that prints"
)]

mod args;
mod catalog;
mod files;
mod input;
mod locate;
mod problem;
mod progress;
mod render;
mod report;
mod validate;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = args::Arguments::parse();
    let result = match arguments.command {
        args::Command::Validate(flags) => on_all_cores(move || validate::run(&flags)),
        args::Command::Version => {
            println!("scantling {}", env!("CARGO_PKG_VERSION"));
            Ok(problem::Verdict::Well)
        }
    };
    match result {
        Ok(verdict) => verdict.into(),
        Err(problem) => {
            problem.print();
            problem::Verdict::Unreadable.into()
        }
    }
}

/// Runs work on threads whose stacks bear the deepest documents that a server accepts.
fn on_all_cores<T: Send>(work: impl FnOnce() -> T + Send) -> T
where
    T: From<problem::Problem>,
{
    let pool = rayon::ThreadPoolBuilder::new()
        .stack_size(scantling_value::Limits::SERVER_STACK)
        .build();
    match pool {
        Ok(pool) => pool.install(work),
        Err(e) => problem::Problem::new("cannot start threads", e).into(),
    }
}
