//! Runs other programs for their output: git, kustomize, helm.

use crate::files::{self, InputSource, Limited};
use crate::problem::Problem;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a program and returns its standard output, up to a size limit.
pub(crate) fn output(program: &str, arguments: &[&str], limit: u64) -> Result<Vec<u8>, Problem> {
    let title = format!("{program} {}", arguments.join(" "));
    let mut child = Command::new(program)
        .args(arguments)
        // The program must not wait for the standard input, which may be one of the inputs.
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => {
                Problem::plain(format!("cannot run `{title}`: {program} is not installed"))
            }
            _ => Problem::new(format!("cannot run `{title}`"), e),
        })?;
    let failed = |e: &dyn std::fmt::Display| Problem::new(format!("`{title}` failed"), e);
    // Both streams are read in parallel: a full pipe would block the program.
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (bytes, errors) = std::thread::scope(|scope| {
        let errors =
            scope.spawn(|| stderr.map(|stream| files::read_all(Limited::new(stream, MAX_ERROR_BYTES))));
        let bytes = stdout.map(|stream| files::read_all(Limited::new(stream, limit)));
        (bytes, errors.join().ok().flatten())
    });
    let bytes = bytes.transpose().map_err(|e| {
        // The program may still be writing.
        let _ = child.kill();
        files::unreadable(format!("the output of `{title}`"), &e)
    });
    // Waited for in any case, so that no zombie is left.
    let status = child.wait().map_err(|e| failed(&e))?;
    let bytes = bytes?.unwrap_or_default();
    if status.success() {
        return Ok(bytes);
    }
    // The messages of the program matter only if it fails.
    let errors = errors.and_then(Result::ok).unwrap_or_default();
    let errors = String::from_utf8_lossy(&errors).trim().to_owned();
    Err(failed(&if errors.is_empty() {
        status.to_string()
    } else {
        errors
    }))
}

/// The size limit of error messages.
const MAX_ERROR_BYTES: u64 = 1 << 20;

/// Returns whether a program can be run.
fn is_installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
}

/// Adds advice if a program is not installed. A program that failed has given its own.
fn if_missing(program: &str, problem: Problem, hint: &'static str) -> Problem {
    match is_installed(program) {
        true => problem,
        false => problem.hint(hint),
    }
}

/// Returns the output of `kustomize build`, or of `kubectl kustomize` if only that is installed.
pub(crate) fn kustomize(directory: &Path, limit: u64) -> Result<InputSource, Problem> {
    let path = directory.display().to_string();
    let (program, command) = match (is_installed("kustomize"), is_installed("kubectl")) {
        (false, true) => ("kubectl", "kustomize"),
        _ => ("kustomize", "build"),
    };
    let bytes = output(program, &[command, &path], limit).map_err(|problem| {
        if_missing(
            program,
            problem,
            "--kustomize needs kustomize or kubectl on the PATH",
        )
    })?;
    Ok(InputSource::memory(
        &format!("kustomize build {path}"),
        // Named by the user, so nothing of the output is skipped.
        true,
        bytes,
    ))
}

/// Returns the output of `helm template` for a chart.
pub(crate) fn helm(chart: &Path, values: &[PathBuf], limit: u64) -> Result<InputSource, Problem> {
    let path = chart.display().to_string();
    let values: Vec<String> = values
        .iter()
        .map(|file| format!("--values={}", file.display()))
        .collect();
    // The name of a release is part of most objects; any will do.
    let mut arguments = vec!["template", "release-name", &path, "--include-crds"];
    arguments.extend(values.iter().map(String::as_str));
    let bytes = output("helm", &arguments, limit)
        .map_err(|problem| if_missing("helm", problem, "--helm needs helm on the PATH"))?;
    Ok(InputSource::memory(&format!("helm template {path}"), true, bytes))
}
