//! The project's own automation: `cargo xtask <task>`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for people at a terminal"
)]

mod apitypes;
mod attack;
mod compare;
mod conformance;
mod fuzz;
mod run;
mod test;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <task>

  test                                    run every test; on a fresh machine, too
  tidy [--bless]                          check the rules of the repository; rewrite the public-API snapshots
  conformance [cel|corpus|scenarios]      run the conformance sets, print `name passed/total`, the sum last
  apitypes --kubernetes DIR [--check]     generate the table of API types from a Kubernetes git directory
  fuzz [--seconds N] [--seed N] [target]  run the fuzz targets, each for so many seconds
  attack [--short] [--only NAME]          attack the server on loopback, print one line per attack; `--list` names them
         [--binary PATH]
  compare --kube-apiserver FILE           send random writes to kube-apiserver and to the server, print differences
          [--seed N] [--steps N] [--kinds A,B]
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["test", rest @ ..] => test::test(rest),
        ["tidy"] => tidy::tidy(false),
        ["tidy", "--bless"] => tidy::tidy(true),
        ["conformance", sets @ ..] => conformance::conformance(sets),
        ["apitypes", rest @ ..] => apitypes::apitypes(rest),
        ["attack", rest @ ..] => attack::attack(rest),
        ["compare", rest @ ..] => compare::compare(rest),
        ["fuzz", rest @ ..] => fuzz::fuzz(rest),
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
