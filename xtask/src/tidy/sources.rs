//! Rules for single source files, and for the list of fuzz targets.

use super::RustFile;
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
