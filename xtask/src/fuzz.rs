//! `cargo xtask fuzz`: runs the fuzz targets for a while.

use crate::run::{cargo, output, root, run};
use std::fs;
use std::process::Command;

const USAGE: &str = "usage: cargo xtask fuzz [--seconds N] [--seed N] [target]";

/// The compiler flags for coverage instrumentation.
const INSTRUMENTATION: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    --cfg fuzzing";

/// Builds the targets and runs one or all of them, each for the given number of seconds.
pub(crate) fn fuzz(args: &[&str]) -> Result<(), String> {
    let (seconds, rest) = match args {
        ["--seconds", seconds, rest @ ..] => (*seconds, rest),
        rest => ("60", rest),
    };
    let seconds: u32 = seconds
        .parse()
        .map_err(|_| format!("{seconds} is no number of seconds; {USAGE}"))?;
    // With a seed, a run tries the same inputs in the same order each time, so CI is deterministic.
    let (seed, rest) = match rest {
        ["--seed", seed, rest @ ..] => (*seed, rest),
        rest => ("0", rest),
    };
    let known = targets()?;
    let chosen = match rest {
        [] => known,
        [one] if known.iter().any(|target| target == one) => vec![(*one).to_owned()],
        [one] => return Err(format!("no fuzz target {one}; there are {}", known.join(", "))),
        _ => return Err(USAGE.to_owned()),
    };
    let host = host()?;
    // Naming the target platform keeps the instrumentation out of build scripts.
    let build = [
        "build",
        "--release",
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--target",
        &host,
    ];
    run(cargo(&build).env("RUSTFLAGS", INSTRUMENTATION))?;
    for target in &chosen {
        let binary = root()
            .join("fuzz/target")
            .join(&host)
            .join("release")
            .join(target);
        let corpus = root().join("fuzz/corpus").join(target);
        let artifacts = root().join("fuzz/artifacts").join(target);
        // libFuzzer fails without an existing directory.
        for directory in [&corpus, &artifacts] {
            fs::create_dir_all(directory).map_err(|e| format!("cannot make {}: {e}", directory.display()))?;
        }
        println!("{target}: {}", binary.display());
        let mut fuzzer = Command::new(&binary);
        fuzzer
            .arg(&corpus)
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-seed={seed}"))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            .args([
                "-timeout=10",
                "-rss_limit_mb=2048",
                "-print_final_stats=1",
                "-verbosity=0",
            ]);
        // The first target that fails ends the run, so its artifact is the last thing printed.
        run(&mut fuzzer)?;
    }
    Ok(())
}

/// The targets, by the names of their files.
fn targets() -> Result<Vec<String>, String> {
    let directory = root().join("fuzz/fuzz_targets");
    let entries =
        fs::read_dir(&directory).map_err(|e| format!("cannot read {}: {e}", directory.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
        .collect();
    names.sort();
    Ok(names)
}

/// The default target platform of this compiler.
fn host() -> Result<String, String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let (_, text) = output(Command::new(rustc).arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| "rustc -vV names no host".to_owned())
}
