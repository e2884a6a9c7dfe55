//! Rules for single source files, and for the lists of fuzz targets and tests.

use super::{RustFile, references};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The maximum number of lines of a file.
const MAX_LINES: usize = 1000;

pub(super) fn check(files: &[RustFile]) -> Vec<String> {
    let mut findings = Vec::new();
    for RustFile { name, text } in files {
        let lines = text.lines().count();
        if lines > MAX_LINES {
            findings.push(format!(
                "{name}: {lines} lines, at most {MAX_LINES}: split the file"
            ));
        }
        if !text.starts_with("//!") && !text.starts_with("#!") {
            findings.push(format!("{name}: no module comment"));
        }
        // The word is split, so that this file does not find itself.
        if text.contains(concat!("#[ign", "ore")) {
            findings.push(format!(
                "{name}: an ignored test; assert the present behaviour instead"
            ));
        }
        if name.ends_with("/mod.rs") {
            findings.push(format!("{name}: modules are `name.rs` beside `name/`"));
        }
    }
    findings
}

/// Checks that the table in `fuzz/README.md` lists exactly the fuzz targets.
pub(super) fn check_fuzz_list(root: &Path) -> Result<Vec<String>, String> {
    let fail = |e: std::io::Error| format!("fuzz: {e}");
    let mut targets = BTreeSet::new();
    for entry in fs::read_dir(root.join("fuzz/fuzz_targets")).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        targets.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    let readme = fs::read_to_string(root.join("fuzz/README.md")).map_err(fail)?;
    let rows = readme
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let listed: BTreeSet<String> = rows.map(|(name, _)| name.to_owned()).collect();
    let missing = targets
        .difference(&listed)
        .map(|name| format!("fuzz/README.md: no row for `{name}`"));
    let extra = listed
        .difference(&targets)
        .map(|name| format!("fuzz/README.md: no target `{name}`"));
    Ok(missing.chain(extra).collect())
}

/// Checks that the paths in `docs/testing.md` cover every integration test.
pub(super) fn check_test_map(root: &Path, files: &[RustFile]) -> Result<Vec<String>, String> {
    const MAP: &str = "docs/testing.md";
    let text = fs::read_to_string(root.join(MAP)).map_err(|e| format!("{MAP}: {e}"))?;
    let paths: Vec<String> = references::quoted(&text)
        .filter(|path| path.starts_with("crates/"))
        .collect();
    let is_test = |file: &&RustFile| {
        let parts: Vec<&str> = file.name.split('/').collect();
        matches!(
            parts.as_slice(),
            ["crates", _, "tests", _] | ["crates", _, "tests", _, "main.rs"]
        )
    };
    let is_covered = |name: &str| paths.iter().any(|path| Path::new(name).starts_with(path));
    let unlisted = files
        .iter()
        .filter(is_test)
        .filter(|file| !is_covered(&file.name))
        .map(|file| format!("{MAP}: no row for `{}`", file.name));
    Ok(unlisted.collect())
}
