//! Hostile clients and damaged files against the server: `attack [--short] [--only NAME] [--binary PATH] [--limit SECONDS]
//! [--list]`.
//!
//! Each attack has a server of its own, on a free loopback port, with a temporary data directory. While one client
//! attacks, a second one on a connection of its own reads a small object at a steady rate. One line per attack says what
//! the server used, how long the second client waited, what was answered, and which bound was broken, if any.
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

use plan::Size;
use run::{AttackVerdict, RunOptions};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// An error of any kind.
type AttackError = Box<dyn std::error::Error + Send + Sync>;

const USAGE: &str = "usage: attack [--short] [--only NAME]... [--binary PATH] [--limit SECONDS] [--list]

  --short          small attacks; bounds on time are not judged, because the machine may be busy
  --only NAME      only attacks whose name contains NAME
  --binary PATH    the server, instead of target/release/scantling (with --short: target/debug/scantling)
  --limit SECONDS  how long one attack may take (75)
  --markdown       print rows of a table
  --list           print names and requests only
";

struct Arguments {
    options: RunOptions,
    only: Vec<String>,
    list: bool,
}

fn arguments() -> Result<Arguments, AttackError> {
    let mut binary = None;
    let mut limit = None;
    let (mut short, mut list, mut markdown) = (false, false, false);
    let mut only = Vec::new();
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        let mut value = || given.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--short" => short = true,
            "--list" => list = true,
            "--markdown" => markdown = true,
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
            markdown,
        },
        only,
        list,
    })
}

fn main() -> ExitCode {
    let words: Vec<std::ffi::OsString> = std::env::args_os().skip(1).collect();
    if let [word, rest @ ..] = words.as_slice()
        && word == launch::WORD
    {
        if let Err(e) = launch::launch(rest) {
            eprintln!("cannot launch: {e}");
        }
        return ExitCode::FAILURE;
    }
    let Arguments { options, only, list } = match arguments() {
        Ok(arguments) => arguments,
        Err(e) => {
            eprintln!("{e}");
            return ExitCode::FAILURE;
        }
    };
    let chosen = attacks::all()
        .into_iter()
        .filter(|attack| only.is_empty() || only.iter().any(|part| attack.name.contains(part.as_str())));
    let (mut run, mut broken) = (0, Vec::new());
    for attack in chosen {
        if list {
            println!("{:44} {}", attack.name, attack.request);
            continue;
        }
        run += 1;
        let outcome = run::run(&attack, &options);
        println!("{}", outcome.line(&attack, &options));
        if let AttackVerdict::Broken(_) = outcome.verdict {
            broken.push(attack.name);
        }
    }
    if list {
        return ExitCode::SUCCESS;
    }
    eprintln!("{run} attacks, {} bounds broken", broken.len());
    for name in &broken {
        eprintln!("  {name}");
    }
    if run > 0 && broken.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
