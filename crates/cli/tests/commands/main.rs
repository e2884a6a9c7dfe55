//! The commands, run as a user runs them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod authoring;
mod builtin;
mod compiled;
mod control;
mod cost;
mod definitions;
mod eval;
mod inputs;
mod lists;
mod objects;
#[path = "../support/program.rs"]
mod program;
mod project;
mod sources;
mod subresources;
#[path = "../support/time.rs"]
mod time;
mod upgrade;

use program::{fed, scantling};
use time::without_time;

/// The CRD of the example.
const CRDS: &str = "--crds examples/crontab/definition.yaml";

/// Runs a command at the root of the repository: standard output, standard error, exit code.
fn run(arguments: &str, input: &str) -> (String, String, i32) {
    let output = fed(scantling().args(arguments.split_whitespace()), input);
    let text = |bytes| without_time(&String::from_utf8(bytes).unwrap());
    (
        text(output.stdout),
        text(output.stderr),
        output.status.code().unwrap(),
    )
}
