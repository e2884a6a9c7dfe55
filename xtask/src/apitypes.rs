//! `cargo xtask apitypes`: generates the table of API types from a Kubernetes repository.
//!
//! The table (`crates/apitypes/table`) holds facts only: names, types, numbers, tags. They are read from the Go type
//! files (order and types of fields, tags, markers, constants) and the discovery documents of a release, and checked
//! against its protobuf and OpenAPI files. Earlier releases say since when a field or kind exists.

mod discovery;
mod fixtures;
mod git;
mod go;
mod model;
mod openapi;
mod proto;
mod table;

use crate::run::root;
use git::Repository;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const USAGE: &str = "usage: cargo xtask apitypes --kubernetes <git dir> [--check]";

/// The releases in the table, oldest first, with their commits.
const RELEASES: &[(&str, &str)] = &[
    ("1.33", "v1.33.0"),
    ("1.34", "v1.34.0"),
    ("1.35", "v1.35.0"),
    ("1.36", "v1.36.0"),
    ("1.37", NEWEST),
];

const NEWEST: &str = "HEAD";

/// Generates the table, or compares it with the existing one.
pub(crate) fn apitypes(args: &[&str]) -> Result<(), String> {
    let (git_dir, is_check) = match args {
        ["--kubernetes", git_dir] => (*git_dir, false),
        ["--kubernetes", git_dir, "--check"] | ["--check", "--kubernetes", git_dir] => (*git_dir, true),
        _ => return Err(USAGE.to_owned()),
    };
    let repository = Repository::new(Path::new(git_dir));
    let mut releases = Vec::new();
    for (name, commit) in RELEASES {
        let types = model::read(&repository, commit)?;
        let resources = discovery::read(&repository, commit)?;
        releases.push((*name, types, resources));
    }
    let mut files = table::write(&releases);
    let list = table::list(files.keys());
    files.insert("files.in".to_owned(), list);
    let folder = root().join("crates/apitypes/table");
    if !is_check {
        return replace(&folder, &files);
    }
    compare(&folder, &files)?;
    let count = fixtures::check(&repository, NEWEST)?;
    println!("apitypes: {count} fixtures round-trip as JSON and protobuf");
    let count = proto::check(&repository, NEWEST)?;
    println!("apitypes: {count} protobuf messages have the numbers of the table");
    let count = openapi::check(&repository, NEWEST)?;
    println!("apitypes: {count} schemas equal those of OpenAPI");
    Ok(())
}

/// Replaces the files of the table.
fn replace(folder: &Path, files: &BTreeMap<String, String>) -> Result<(), String> {
    for stale in existing(folder)?.keys().filter(|name| !files.contains_key(*name)) {
        let path = folder.join(stale);
        fs::remove_file(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    for (name, text) in files {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|e| format!("{}: {e}", parent.display()))?;
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let fields = files
        .values()
        .flat_map(|t| t.lines())
        .filter(|l| l.starts_with("  "))
        .count();
    println!("apitypes: {} files, {fields} fields", files.len());
    Ok(())
}

/// Reports every file that differs from what would be generated.
fn compare(folder: &Path, files: &BTreeMap<String, String>) -> Result<(), String> {
    let existing = existing(folder)?;
    let mut drift = Vec::new();
    for name in existing.keys().chain(files.keys()) {
        if existing.get(name) == files.get(name) {
            continue;
        }
        let lines = |text: Option<&String>| -> Vec<String> {
            text.into_iter()
                .flat_map(|t| t.lines())
                .map(str::to_owned)
                .collect()
        };
        let (old, new) = (lines(existing.get(name)), lines(files.get(name)));
        let removed = old.iter().filter(|l| !new.contains(l)).map(|l| format!("- {l}"));
        let added = new.iter().filter(|l| !old.contains(l)).map(|l| format!("+ {l}"));
        let changes: Vec<String> = removed.chain(added).collect();
        drift.push(format!("{name}:\n{}", changes.join("\n")));
    }
    // A file that both sides have is compared twice.
    drift.sort();
    drift.dedup();
    if drift.is_empty() {
        println!("apitypes: no drift");
        return Ok(());
    }
    Err(drift.join("\n"))
}

/// The existing files of the table, by their path within the folder.
fn existing(folder: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut found = BTreeMap::new();
    let mut folders: Vec<PathBuf> = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = fs::read_dir(&next) else {
            continue;
        };
        for entry in entries {
            let path = entry.map_err(|e| e.to_string())?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
            let text = fs::read_to_string(&path).map_err(|e| format!("{name}: {e}"))?;
            found.insert(name, text);
        }
    }
    Ok(found)
}
