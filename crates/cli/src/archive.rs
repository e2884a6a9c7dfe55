//! Manifests in archives: `.tgz` files, and files of a git revision.

use crate::args::ReadFlags;
use crate::files::{self, InputSource, Limited};
use crate::problem::Problem;
use crate::tools;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Returns whether a file is an archive, by its name.
pub(crate) fn is_archive(path: &Path) -> bool {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    [".tgz", ".tar.gz", ".tar"].iter().any(|end| name.ends_with(end)) && path.is_file()
}

/// Reads the manifests of an archive file. Skips templates of charts.
pub(crate) fn read(path: &Path, flags: &ReadFlags) -> Result<Vec<InputSource>, Problem> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|e| files::unreadable(&name, &e))?;
    if name.ends_with(".tar") {
        members(&name, "/", file, flags)
    } else {
        // A gzip file may have several members, one after the other.
        members(&name, "/", MultiGzDecoder::new(file), flags)
    }
}

/// Reads the manifests below a path of a git revision of the repository in the current directory.
pub(crate) fn git(revision: &str, path: &str, flags: &ReadFlags) -> Result<Vec<InputSource>, Problem> {
    let name = format!("git:{revision}");
    let mut arguments = vec!["archive", "--format=tar", revision, "--"];
    if !path.is_empty() {
        arguments.push(path);
    }
    let tar = tools::output("git", &arguments, flags.max_input_bytes)?;
    members(&name, ":", tar.as_slice(), flags)
}

fn members(
    name: &str,
    separator: &str,
    tar: impl Read,
    flags: &ReadFlags,
) -> Result<Vec<InputSource>, Problem> {
    let failed = |e: &std::io::Error| files::unreadable(name, e);
    // The limit counts decompressed bytes, so a small file cannot expand without bound.
    let mut archive = tar::Archive::new(Limited::new(tar, flags.max_input_bytes));
    let mut found = Vec::new();
    for (n, entry) in archive.entries().map_err(|e| failed(&e))?.enumerate() {
        if n >= flags.max_input_files {
            let what = format!(
                "cannot read {name}: it has more than {} members",
                flags.max_input_files
            );
            return Err(Problem::plain(what).hint("raise the limit with --max-input-files"));
        }
        let entry = entry.map_err(|e| failed(&e))?;
        let path = entry.path().map_err(|e| failed(&e))?.display().to_string();
        let is_manifest = [".yaml", ".yml", ".json"].iter().any(|end| path.ends_with(end));
        // Templates of a chart are not YAML before they are rendered.
        let is_template = path.contains("/templates/");
        // Links and devices in an archive have no content of their own.
        if entry.header().entry_type().is_file() && is_manifest && !is_template {
            let bytes = files::read_all(entry).map_err(|e| failed(&e))?;
            found.push(InputSource::memory(
                &format!("{name}{separator}{path}"),
                false,
                bytes,
            ));
        }
    }
    if found.is_empty() {
        return Err(Problem::plain(format!("no manifests in {name}")));
    }
    Ok(found)
}
