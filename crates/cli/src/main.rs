//! The `scantling` command.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the command line is the one part that prints"
)]

mod archive;
mod args;
mod builtin;
mod catalog;
mod cluster;
mod codes;
mod compile;
mod config;
mod cost;
mod eval;
mod explain;
mod files;
mod input;
mod json_schemas;
mod lint;
mod lists;
mod locate;
mod placeholders;
mod policy;
mod problem;
mod progress;
mod render;
mod report;
mod rules;
mod sample;
mod serve;
mod split;
mod store;
mod stream;
mod test;
mod tools;
mod upgrade;
mod validate;
mod walk;
mod wrap;

use clap::CommandFactory as _;
use std::process::ExitCode;

/// Documents are many small allocations. This allocator is fast for them and returns memory to the system.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let result = match config::parse(std::env::args_os().collect()) {
        Ok(arguments) => run(arguments.command),
        Err(problem) => Err(problem),
    };
    match result {
        Ok(status) => status.into(),
        Err(problem) => {
            problem.print();
            problem.exit_status().into()
        }
    }
}

fn run(command: args::Command) -> Result<problem::ExitStatus, problem::Problem> {
    match command {
        args::Command::Validate(flags) => on_all_cores(move || validate::run(&flags)),
        args::Command::Lint(flags) => on_all_cores(move || lint::run(&flags)),
        args::Command::Cost(flags) => on_all_cores(move || cost::run(&flags)),
        args::Command::Upgrade(flags) => on_all_cores(move || upgrade::run(&flags)),
        args::Command::Eval(flags) => on_all_cores(move || eval::run(&flags)),
        args::Command::Test(flags) => on_all_cores(move || test::run(&flags)),
        args::Command::Compile(flags) => on_all_cores(move || compile::run(&flags)),
        args::Command::Explain(flags) => on_all_cores(move || explain::run(&flags)),
        args::Command::Sample(flags) => on_all_cores(move || sample::run(&flags)),
        // The server has a Tokio runtime of its own and needs no pool.
        args::Command::Serve(flags) => serve::run(&flags),
        args::Command::Store(flags) => store::run(&flags),
        args::Command::Completion { shell } => {
            let mut command = args::Arguments::command();
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "scantling", &mut script);
            render::write(&script).map(|()| problem::ExitStatus::Success)
        }
        args::Command::Version => {
            let line = format!("scantling {}\n", env!("CARGO_PKG_VERSION"));
            render::write(line).map(|()| problem::ExitStatus::Success)
        }
    }
}

/// Runs work on a thread pool with stacks for the deepest documents that a server accepts.
fn on_all_cores<T>(work: impl FnOnce() -> T + Send) -> T
where
    T: Send + From<problem::Problem>,
{
    let pool = rayon::ThreadPoolBuilder::new()
        .stack_size(scantling_value::Limits::SERVER_STACK)
        .build();
    match pool {
        Ok(pool) => pool.install(work),
        Err(e) => problem::Problem::new("cannot start threads", e).into(),
    }
}

/// The number of tasks that a thread runs before it looks for input on sockets. A thread that is busy with large answers
/// runs tasks of milliseconds: the runtime's own 61 of them would be a long wait for a client that asks for little.
const EVENT_INTERVAL: u32 = 4;

/// A runtime whose threads bear the deepest documents that a server accepts.
fn runtime() -> Result<tokio::runtime::Runtime, problem::Problem> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .event_interval(EVENT_INTERVAL)
        .thread_stack_size(scantling_value::Limits::SERVER_STACK)
        .build()
        .map_err(|e| problem::Problem::new("cannot start threads", e))
}
