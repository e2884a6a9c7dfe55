//! Runs other programs.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
        .to_path_buf()
}

/// The directory of build artifacts.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Cargo, in the root of the workspace.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut c = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    c.args(args).current_dir(root());
    c
}

/// Runs a command; its output goes to ours.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let command_line = format!("{command:?}");
    let status = command
        .status()
        .map_err(|e| format!("cannot run {command_line}: {e}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{command_line} failed: {status}"))
    }
}

/// Runs a command and returns its output; its errors go to ours.
pub(crate) fn output(command: &mut Command) -> Result<(bool, String), String> {
    let command_line = format!("{command:?}");
    let out = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("cannot run {command_line}: {e}"))?;
    Ok((
        out.status.success(),
        String::from_utf8_lossy(&out.stdout).into_owned(),
    ))
}
