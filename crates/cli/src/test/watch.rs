//! `--watch`: runs test files again when they or their CRDs change.

use super::{RunOutcome, run_suites};
use crate::args;
use crate::files::{self, InputSource};
use crate::problem::{ExitStatus, Problem};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The interval in which files are polled for changes.
const POLL: Duration = Duration::from_millis(300);

/// The time of the last change of each file; `None` for a file that does not exist.
type Times = BTreeMap<PathBuf, Option<SystemTime>>;

/// Runs all test files, then those that change, until the process is stopped.
pub(super) fn run(flags: &args::Test) -> Result<ExitStatus, Problem> {
    let mut crds: BTreeMap<Arc<str>, Vec<PathBuf>> = BTreeMap::new();
    let mut changed: Option<BTreeSet<PathBuf>> = None;
    loop {
        let (mut sources, problems) = files::find(&flags.paths, &flags.read);
        // The clock is read before the files, so a write in between counts as a change.
        let begun = SystemTime::now();
        let mut before = times(flags, &sources, &crds);
        if let Some(changed) = &changed {
            let shared = shared_crds(flags);
            // A change of a CRD that all suites share affects all of them.
            if !shared.iter().any(|file| changed.contains(file)) {
                sources.retain(|source| {
                    let own = crds.get(&source.name).map_or(&[][..], Vec::as_slice);
                    changed.contains(Path::new(&*source.name))
                        || own.iter().any(|file| changed.contains(file))
                });
            }
        }
        match run_suites(flags, &sources, problems) {
            // Files that were not run this time keep the CRDs of their last run.
            Ok(RunOutcome { crds: read, .. }) => crds.extend(read),
            // A file may be saved half-way, or have no cases yet.
            Err(problem) => problem.print(),
        }
        for file in crds.values().flatten() {
            // A file that changes during the run differs from its state before.
            before
                .entry(file.clone())
                .or_insert_with(|| modified(file).filter(|time| *time < begun));
        }
        changed = Some(loop {
            std::thread::sleep(POLL);
            // Problems of the search are ignored here: the next run reports them.
            let (sources, _) = files::find(&flags.paths, &flags.read);
            let now = times(flags, &sources, &crds);
            let changes: BTreeSet<PathBuf> = now
                .into_iter()
                .filter(|(file, time)| before.get(file) != Some(time))
                .map(|(file, _)| file)
                .collect();
            if !changes.is_empty() {
                break changes;
            }
        });
    }
}

fn times(flags: &args::Test, sources: &[InputSource], crds: &BTreeMap<Arc<str>, Vec<PathBuf>>) -> Times {
    let sources = sources.iter().map(|source| PathBuf::from(&*source.name));
    let files = sources
        .chain(shared_crds(flags))
        .chain(crds.values().flatten().cloned());
    files
        .map(|file| {
            let time = modified(&file);
            (file, time)
        })
        .collect()
}

fn modified(file: &Path) -> Option<SystemTime> {
    // A file that cannot be read has no time. If it appears later, that is a change.
    std::fs::metadata(file).and_then(|m| m.modified()).ok()
}

/// The files with CRDs that all suites share.
fn shared_crds(flags: &args::Test) -> Vec<PathBuf> {
    let paths = flags.crds.iter().filter_map(|source| match source {
        args::SchemaSource::Path(path) if path.as_os_str() != "-" => Some(path),
        _ => None,
    });
    let (sources, _) = files::find(paths, &flags.read);
    sources
        .iter()
        .map(|source| PathBuf::from(&*source.name))
        .collect()
}
