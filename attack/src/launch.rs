//! Starts programs with limits, which end when this program ends, however it ends.
//!
//! A program is started through this binary (`--launch LIMITS PROGRAM ARGUMENTS`). The launcher asks the
//! kernel to kill it when its parent ends, sets the limits, and then executes the program, which inherits
//! both and the process id.

use crate::AttackError;
use rustix::process::{Resource, Rlimit, Signal, getppid, set_parent_process_death_signal, setrlimit};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// The argument that makes this binary a launcher.
pub(crate) const WORD: &str = "--launch";

/// Limits on the resources of a program.
#[derive(Clone, Copy, Default)]
pub(crate) struct ProcessLimits {
    /// The maximum number of open files.
    pub(crate) files: Option<u64>,
    /// The maximum size of a file it writes.
    pub(crate) file_size: Option<u64>,
}

/// A command that starts a program with limits.
pub(crate) fn command(program: &Path, limits: ProcessLimits) -> Result<Command, AttackError> {
    let number = |limit: Option<u64>| limit.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg(WORD)
        .arg(std::process::id().to_string())
        .arg(number(limits.files))
        .arg(number(limits.file_size))
        .arg(program);
    Ok(command)
}

/// Executes the program named by the arguments.
pub(crate) fn launch(arguments: &[OsString]) -> Result<(), AttackError> {
    let [parent, files, file_size, program, rest @ ..] = arguments else {
        return Err("--launch is for this program's own use".into());
    };
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let parent: i32 = parent.to_str().unwrap_or_default().parse()?;
    // The parent may have ended before the signal was set; then nothing would kill the program.
    if getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(parent) {
        return Err("the parent has ended".into());
    }
    limit(Resource::Nofile, files)?;
    limit(Resource::Fsize, file_size)?;
    // `exec` returns only on failure.
    Err(Command::new(program).args(rest).exec().into())
}

fn limit(resource: Resource, text: &OsStr) -> Result<(), AttackError> {
    if text == "-" {
        return Ok(());
    }
    let n = text.to_str().unwrap_or_default().parse()?;
    let limit = Rlimit {
        current: Some(n),
        maximum: Some(n),
    };
    Ok(setrlimit(resource, limit)?)
}
