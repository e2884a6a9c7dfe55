//! Hostile clients and damaged files against the server:
//! `attack [--short] [--only NAME] [--binary PATH] [--limit SECONDS] [--refresh FILE] [--list]`.
//!
//! Each attack has its own server, on a free loopback port, with a temporary data directory. While one client
//! attacks, a second one reads a small object at a steady rate on its own connection. One line per attack
//! reports the resources that the server used, how long the second client waited, the responses, and the
//! broken bounds, if any.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for people at a terminal"
)]

#[expect(
    clippy::indexing_slicing,
    reason = "bodies are values that are written here and changed in place"
)]
mod attacks;
mod cluster;
mod http;
mod http2;
mod launch;
mod plan;
mod probe;
mod run;
mod server;
mod table;

use plan::{Attack, Size};
use run::{AttackVerdict, RunOptions};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use table::TableRow;

/// Any error.
type AttackError = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str =
    "usage: attack [--short] [--only NAME]... [--binary PATH] [--limit SECONDS] [--refresh FILE] [--list]

  --short          small attacks; bounds on time are not judged, because the machine may be busy
  --only NAME      only attacks whose name contains NAME
  --binary PATH    the server, instead of target/release/scantling (with --short: target/debug/scantling)
  --limit SECONDS  how long one attack may take (75)
  --refresh FILE   replace the rows of these attacks in the table of FILE (docs/attacks.md)
  --list           print names and requests only
";

struct Arguments {
    options: RunOptions,
    only: Vec<String>,
    list: bool,
    /// The document whose table is refreshed.
    refresh: Option<PathBuf>,
}

fn arguments() -> Result<Arguments, AttackError> {
    let mut binary = None;
    let mut limit = None;
    let mut refresh = None;
    let (mut short, mut list) = (false, false);
    let mut only = Vec::new();
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        let mut value = || given.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--short" => short = true,
            "--list" => list = true,
            "--refresh" => refresh = Some(PathBuf::from(value()?)),
            "--only" => only.push(value()?),
            "--binary" => binary = Some(PathBuf::from(value()?)),
            "--limit" => limit = Some(value()?.parse()?),
            _ => return Err(format!("unknown argument {word}\n{USAGE}").into()),
        }
    }
    let profile = if short { "debug" } else { "release" };
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"),
        PathBuf::from,
    );
    let binary = binary.unwrap_or_else(|| target.join(profile).join("scantling"));
    let binary = binary.canonicalize().map_err(|e| {
        format!(
            "{}: {e}; build it first, or name one with --binary",
            binary.display()
        )
    })?;
    Ok(Arguments {
        options: RunOptions {
            binary,
            size: if short { Size::Short } else { Size::Full },
            limit: Duration::from_secs(limit.unwrap_or(75)),
        },
        only,
        list,
        refresh,
    })
}

fn main() -> ExitCode {
    // The launcher is this program again; its arguments are not those of a user.
    let words: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    if let [word, rest @ ..] = words.as_slice()
        && word == launch::WORD
    {
        if let Err(e) = launch::launch(rest) {
            eprintln!("cannot launch: {e}");
        }
        return ExitCode::FAILURE;
    }
    let Arguments {
        options,
        only,
        list,
        refresh,
    } = match arguments() {
        Ok(arguments) => arguments,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::FAILURE;
        }
    };
    if list {
        for attack in chosen(&only) {
            println!("{:44} {}", attack.name, attack.request);
        }
        return ExitCode::SUCCESS;
    }
    let (run, broken, mut rows) = run_all(&options, &only);
    if let Some(path) = refresh {
        // The rows come in the order in which workers finish.
        rows.sort_by_key(|row| row.name);
        let names: Vec<&str> = attacks::all().iter().map(|attack| attack.name).collect();
        if let Err(e) = table::refresh(&path, &names, &rows) {
            eprintln!("cannot refresh the table: {e}");
            return ExitCode::FAILURE;
        }
    }
    eprintln!("{run} attacks, {} bounds broken", broken.len());
    for name in &broken {
        eprintln!("  {name}");
    }
    // No attack at all is a mistyped name, not a success.
    if run > 0 && broken.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The attacks whose names contain one of the parts; all if there are none.
fn chosen(only: &[String]) -> Vec<Attack> {
    let is_chosen = |name: &str| only.is_empty() || only.iter().any(|part| name.contains(part.as_str()));
    let mut attacks = attacks::all();
    attacks.retain(|attack| is_chosen(attack.name));
    attacks
}

/// Runs the chosen attacks. Returns their number, the names of those that broke a bound, and the rows of the table.
///
/// Waiting times mean something only if nothing else runs, so full attacks run one by one. Short ones, whose waiting times
/// are not judged, share the processors.
fn run_all(options: &RunOptions, only: &[String]) -> (usize, Vec<&'static str>, Vec<TableRow>) {
    let workers = match options.size {
        Size::Full => 1,
        Size::Short => std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
    };
    let next = AtomicUsize::new(0);
    // Each worker has a table of its own: attacks cannot be sent to other threads.
    let work = || {
        let attacks = chosen(only);
        let (mut broken, mut rows) = (Vec::new(), Vec::new());
        while let Some(attack) = attacks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = run::run(attack, options);
            println!("{}", outcome.line(attack));
            rows.push(outcome.row(attack));
            if let AttackVerdict::Broken(_) = outcome.verdict {
                broken.push(attack.name);
            }
        }
        (attacks.len(), broken, rows)
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let (mut run, mut broken, mut rows) = (0, Vec::new(), Vec::new());
        for worker in workers {
            match worker.join() {
                Ok((n, names, measured)) => {
                    run = n;
                    broken.extend(names);
                    rows.extend(measured);
                }
                Err(_) => broken.push("a worker of the attack program itself"),
            }
        }
        (run, broken, rows)
    })
}
