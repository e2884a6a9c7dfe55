//! Sends the same random writes of built-in kinds to kube-apiserver and to `scantling serve`, and prints where
//! the responses differ.
//!
//! Objects begin as bodies of the recorded scenarios. [`mutate`] changes them along their types, with values that
//! other objects have in the same field, with bounds, and with mistakes. [`episode`] creates, updates, patches and
//! deletes an object. [`minimise`] shrinks requests whose responses differ.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a tool for people at a terminal"
)]

mod answer;
mod client;
mod corpus;
mod episode;
mod minimise;
mod mutate;
mod patch;
mod report;
mod request;
mod rng;
mod servers;

use corpus::Corpus;
use episode::Target;
use report::RunReport;
use rng::Rng;
use std::path::PathBuf;
use std::process::ExitCode;

type CompareError = Box<dyn std::error::Error>;

const USAGE: &str = "\
usage: cargo xtask compare --kube-apiserver FILE [--etcd FILE] [--scantling FILE] [--seed N] [--steps N] [--kinds A,B]

  --kube-apiserver FILE   the kube-apiserver to compare with
  --etcd FILE             its store (default: etcd)
  --scantling FILE        our binary (default: the debug build)
  --seed N                the seed of all choices (default: 1)
  --steps N               the number of requests, divided among the kinds (default: 20000)
  --kinds A,B             the kinds (default: all that both servers serve)
";

/// The arguments.
struct Options {
    programs: servers::Programs,
    seed: u64,
    steps: usize,
    kinds: Vec<String>,
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, CompareError> {
    let mut options = Options {
        programs: servers::Programs {
            kube_apiserver: PathBuf::new(),
            etcd: PathBuf::from("etcd"),
            scantling: PathBuf::from("target/debug/scantling"),
        },
        seed: 1,
        steps: 20_000,
        kinds: Vec::new(),
    };
    while let Some(word) = words.next() {
        let value = words.next().ok_or(USAGE)?;
        match word.as_str() {
            "--kube-apiserver" => options.programs.kube_apiserver = value.into(),
            "--etcd" => options.programs.etcd = value.into(),
            "--scantling" => options.programs.scantling = value.into(),
            "--seed" => options.seed = value.parse()?,
            "--steps" => options.steps = value.parse()?,
            "--kinds" => options.kinds = value.split(',').map(str::to_owned).collect(),
            _ => return Err(USAGE.into()),
        }
    }
    if options.programs.kube_apiserver.as_os_str().is_empty() {
        return Err(USAGE.into());
    }
    Ok(options)
}

async fn compare(options: &Options) -> Result<bool, CompareError> {
    let directory = tempfile::tempdir()?;
    let mut pair = servers::Pair::start(&options.programs, directory.path()).await?;
    let mut corpus = Corpus::read();
    let targets = Target::all(&corpus, &options.kinds)?;
    let mut report = RunReport::default();
    let each = options.steps.div_ceil(targets.len().max(1));
    for target in &targets {
        // A seed per kind: adding a kind does not change the requests of the others.
        let mut rng = Rng::new(options.seed, target.resource.name);
        let begin = report.begin();
        while report.steps() < begin + each {
            episode::run(&mut pair, &mut corpus, target, &mut rng, &mut report).await?;
        }
        report.end(target);
    }
    Ok(report.finish())
}

fn main() -> ExitCode {
    let run = || -> Result<bool, CompareError> {
        let options = options(std::env::args().skip(1))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(compare(&options))
    };
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
