//! Names of code in the documentation: paths of files and of modules must exist.

use super::{RustFile, collect};
use std::fs;
use std::path::Path;

/// The page whose tables name only paths, so that every name can be checked.
const CODE_MAP: &str = "docs/code-map.md";

/// The folders whose files the documentation names by their path.
const FOLDERS: &[&str] = &["attack/", "bench/", "conformance/", "crates/", "fuzz/", "xtask/"];

pub(super) fn check(root: &Path, files: &[RustFile]) -> Result<Vec<String>, String> {
    let mut documents = Vec::new();
    collect(&root.join("docs"), "md", &mut documents)?;
    documents.extend(["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"].map(|name| root.join(name)));
    let mut findings = Vec::new();
    for path in documents {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let text = fs::read_to_string(&path).map_err(|e| format!("{name}: {e}"))?;
        let missing = quoted(&text).filter(|reference| !exists(root, files, reference));
        findings.extend(missing.map(|reference| format!("{name}: `{reference}` does not exist")));
        if name == CODE_MAP {
            let loose = code_column(&text).filter(|text| !is_file(text) && !is_module(text));
            findings
                .extend(loose.map(|text| format!("{name}: `{text}` is not the path of a file or an item")));
        }
    }
    Ok(findings)
}

/// Returns the names in backticks in the last column of tables.
fn code_column(text: &str) -> impl Iterator<Item = &str> {
    let cells = text
        .lines()
        .filter_map(|line| line.strip_prefix('|')?.strip_suffix('|')?.rsplit('|').next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2))
}

/// Returns the texts in backticks that name code, outside of code blocks.
pub(super) fn quoted(text: &str) -> impl Iterator<Item = String> {
    let prose = text.split("```").step_by(2);
    // Every other part is in backticks.
    let quoted = prose.flat_map(|prose| prose.split('`').skip(1).step_by(2));
    quoted
        .filter(|text| is_file(text) || is_module(text))
        .flat_map(expand_braces)
}

fn is_file(text: &str) -> bool {
    // A placeholder such as `<group>` or `*` stands for several files.
    FOLDERS.iter().any(|folder| text.starts_with(folder)) && !text.contains(['<', '*', ' '])
}

fn is_module(text: &str) -> bool {
    let is_word = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_');
    text.contains("::") && text.split("::").all(is_word)
}

fn exists(root: &Path, files: &[RustFile], reference: &str) -> bool {
    match reference.contains("::") {
        false => root.join(reference).exists(),
        true => item_exists(root, files, reference),
    }
}

/// Returns whether a path names modules of a crate and then items in them (`schema::plan::PlanCompiler`), or a type of any
/// crate and its items (`Deadline::observe`).
fn item_exists(root: &Path, files: &[RustFile], path: &str) -> bool {
    let mut names = path.split("::").peekable();
    let mut module = "crates".to_owned();
    if let Some(crate_name) = names.next_if(|name| name.starts_with(char::is_lowercase)) {
        module = format!("crates/{}/src", crate_name.trim_start_matches("scantling_"));
        if !root.join(&module).exists() {
            return false;
        }
    }
    while let Some(name) = names.next_if(|name| root.join(format!("{module}/{name}.rs")).exists()) {
        module = format!("{module}/{name}");
    }
    // Items may be re-exported, so they are looked for in the module and everything below it.
    let in_module = |file: &&RustFile| {
        let below = file.name.strip_prefix(&module);
        below.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    };
    let mentions = |name: &str, text: &str| {
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        words.any(|word| word == name)
    };
    names.all(|name| {
        let mut files = files.iter().filter(in_module);
        files.any(|file| mentions(name, &file.text))
    })
}

/// Expands `a/{b,c}.rs` to `a/b.rs` and `a/c.rs`.
fn expand_braces(path: &str) -> Vec<String> {
    match path
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        Some((before, (names, after))) => names
            .split(',')
            .map(|name| format!("{before}{name}{after}"))
            .collect(),
        None => vec![path.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_paths_in_backticks() {
        let text = "`crates/{a,b}.rs`, `x::y`, `--flag`, `crates/<name>`\n```\n`crates/c`\n```\n`a: b`";
        let found: Vec<String> = quoted(text).collect();
        assert_eq!(found, ["crates/a.rs", "crates/b.rs", "x::y"]);
    }

    #[test]
    fn the_code_column_is_the_last_one() {
        let text = "`a`\n| `b` | code |\n| --- | --- |\n| a \\| `b` | `c::d`, attribute `e` |\n";
        let found: Vec<&str> = code_column(text).collect();
        assert_eq!(found, ["c::d", "e"]);
    }
}
