//! `cargo xtask tidy`: checks the rules of the repository that no other tool checks.
//!
//! Each finding names the file and the rule. `cargo xtask tidy --bless` rewrites the public-API snapshots.

mod api;
mod dependencies;
mod layers;
mod names;
mod prose;
mod references;
mod sources;

use crate::run::{cargo, output, root};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Runs all checks and reports all findings at once.
pub(crate) fn tidy(bless: bool) -> Result<(), String> {
    let root = root();
    let metadata = metadata()?;
    let files = rust_files(&root)?;
    let mut findings = layers::check(&metadata);
    findings.extend(dependencies::check(&root, &metadata)?);
    findings.extend(sources::check(&files));
    findings.extend(sources::check_fuzz_list(&root)?);
    findings.extend(sources::check_test_map(&root, &files)?);
    findings.extend(references::check(&root, &files)?);
    findings.extend(names::check(&files));
    findings.extend(prose::check(&root)?);
    findings.extend(api::check(&root, &files, bless)?);
    if findings.is_empty() {
        println!("tidy: no findings");
        return Ok(());
    }
    Err(findings.join("\n"))
}

/// The platform whose dependencies are checked.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// A source file: its path from the root, and its text.
struct RustFile {
    name: String,
    text: String,
}

/// Reads the dependency graph for Linux. Other platforms need packages that a build here has not downloaded.
fn metadata() -> Result<Value, String> {
    let (ok, text) = output(&mut cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
        PLATFORM,
    ]))?;
    if !ok {
        return Err("cargo metadata failed".to_owned());
    }
    serde_json::from_str(&text).map_err(|e| format!("cargo metadata: {e}"))
}

/// Returns the elements of an array member.
fn array<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Returns a string member, or the empty string.
fn string<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn rust_files(root: &Path) -> Result<Vec<RustFile>, String> {
    let mut paths = Vec::new();
    for folder in ["attack", "bench", "compare", "crates", "fuzz", "xtask"] {
        collect(&root.join(folder), "rs", &mut paths)?;
    }
    paths.into_iter().map(|path| read(root, &path)).collect()
}

fn read(root: &Path, path: &Path) -> Result<RustFile, String> {
    let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let text = fs::read_to_string(path).map_err(|e| format!("{name}: {e}"))?;
    Ok(RustFile { name, text })
}

/// Collects the files with an extension below a folder, build artifacts excluded.
fn collect(folder: &Path, extension: &str, out: &mut Vec<PathBuf>) -> Result<(), String> {
    // A folder that does not exist has no files; checks of required files report it themselves.
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.is_dir() {
            if path.file_name().is_some_and(|n| n != "target") {
                collect(&path, extension, out)?;
            }
        } else if path.extension().is_some_and(|e| e == extension) {
            out.push(path);
        }
    }
    // Findings must not depend on the order of the file system.
    out.sort();
    Ok(())
}
