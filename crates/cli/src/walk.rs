//! Searches directories for manifests.

use crate::args::ReadFlags;
use crate::files::{self, InputSource};
use crate::problem::Problem;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::{DirEntry, WalkBuilder};
use scantling_value::{Limits, Value, yaml};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The extensions of manifests.
const MANIFESTS: [&str; 3] = ["yaml", "yml", "json"];
/// Directories that are never searched without `--no-ignore`. Hidden ones are skipped as well.
const IGNORED: [&str; 1] = ["!node_modules/"];
/// The file with patterns of files to skip.
const IGNORE_FILE: &str = ".scantlingignore";
/// The names that kustomize reads a kustomization from.
const KUSTOMIZATIONS: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
/// The namespace of the objects of a component: the kustomizations that include it set the real one.
const COMPONENT_NAMESPACE: &str = "example";
/// The size limit of a kustomization that is searched for patches.
const MAX_KUSTOMIZATION_BYTES: u64 = 1 << 20;

/// The result of a search. Files that are not manifests despite their extension are problems that may be
/// skipped.
#[derive(Default)]
pub(crate) struct FoundFiles {
    pub(crate) sources: Vec<InputSource>,
    pub(crate) problems: Vec<Problem>,
}

/// Searches a directory for manifests, in the order of their names. `left` is the number of files and directories that
/// may still be visited.
pub(crate) fn search(directory: &Path, flags: &ReadFlags, left: &mut usize) -> FoundFiles {
    let mut found = FoundFiles::default();
    let excluded = match excluded(directory, flags) {
        Ok(excluded) => excluded,
        Err(e) => {
            found.problems.push(Problem::usage(format!("--exclude: {e}")));
            return found;
        }
    };
    let respected = !flags.no_ignore;
    let mut walk = WalkBuilder::new(directory);
    walk.hidden(respected)
        .ignore(respected)
        .git_ignore(respected)
        .git_exclude(respected)
        // Settings of the user must not decide what a CI run on another machine checks.
        .git_global(false)
        // Exported trees have .gitignore files but no repository.
        .require_git(false)
        .parents(respected)
        .overrides(excluded)
        // Reports list files in this order, which must not depend on the file system.
        .sort_by_file_name(std::cmp::Ord::cmp);
    if respected {
        walk.add_custom_ignore_filename(IGNORE_FILE);
    }
    let mut manifests = Vec::new();
    for entry in walk.build() {
        // Counting entries and not manifests also bounds the walk of a huge tree without any.
        let Some(fewer) = left.checked_sub(1) else {
            let what = format!(
                "cannot read {}: there are more than {} files and directories",
                directory.display(),
                flags.max_input_files
            );
            found
                .problems
                .push(Problem::plain(what).hint("raise the limit with --max-input-files"));
            break;
        };
        *left = fewer;
        match entry {
            // The directory itself is not one of its entries.
            Ok(entry) if entry.depth() == 0 => *left += 1,
            Ok(entry) if is_manifest(&entry) => manifests.push(entry.into_path()),
            Ok(_) => {}
            Err(e) => found.problems.push(Problem::new("cannot read", e)),
        }
    }
    let kustomized = Kustomized::new(&manifests);
    let mut charts = Charts::default();
    for path in manifests {
        let reason = if charts.is_template(&path) {
            Some("a Helm template: validate the output of `helm template`, or use --helm")
        } else if kustomized.patches.contains(&path) {
            Some("a patch of a kustomization: use --kustomize")
        } else {
            None
        };
        let mut source = InputSource::file(&path, false, flags);
        source.kustomize_namespace = kustomized.namespaces.get(&path).cloned();
        match reason {
            Some(reason) => found.problems.push(Problem::skipped_file(&source.name, reason)),
            None => found.sources.push(source),
        }
    }
    found
}

fn excluded(directory: &Path, flags: &ReadFlags) -> Result<Override, ignore::Error> {
    let mut patterns = OverrideBuilder::new(directory);
    for pattern in IGNORED.iter().filter(|_| !flags.no_ignore) {
        patterns.add(pattern)?;
    }
    for pattern in &flags.exclude {
        patterns.add(&format!("!{pattern}"))?;
    }
    patterns.build()
}

/// Returns whether an entry is a manifest, by its name. Links to directories are not followed, because of
/// cycles.
fn is_manifest(entry: &DirEntry) -> bool {
    let path = entry.path();
    let extension = path.extension().and_then(|e| e.to_str());
    // A link to a file cannot form a cycle, so it counts as the file.
    let is_file = entry
        .file_type()
        .is_some_and(|ty| ty.is_file() || ty.is_symlink() && !path.is_dir());
    is_file && extension.is_some_and(|e| MANIFESTS.contains(&e))
}

/// The directories that are Helm charts.
#[derive(Default)]
struct Charts(BTreeMap<PathBuf, bool>);

impl Charts {
    /// Returns whether a file is a template of a chart: it is below `templates` in a directory with a `Chart.yaml`.
    fn is_template(&mut self, path: &Path) -> bool {
        let mut above = path.ancestors().skip(1);
        above.any(|folder| {
            let chart = match (folder.file_name(), folder.parent()) {
                (Some(name), Some(parent)) if name == "templates" => parent,
                _ => return false,
            };
            *self
                .0
                .entry(chart.to_owned())
                .or_insert_with(|| chart.join("Chart.yaml").is_file())
        })
    }
}

/// The files that kustomizations refer to.
#[derive(Default)]
struct Kustomized {
    /// The files that are applied as patches or read as configuration.
    patches: BTreeSet<PathBuf>,
    /// The namespaces that kustomize gives to the objects of files.
    namespaces: BTreeMap<PathBuf, Arc<str>>,
}

impl Kustomized {
    /// Reads the kustomizations among manifests.
    fn new(manifests: &[PathBuf]) -> Self {
        let mut found = Kustomized::default();
        let is_kustomization = |path: &&PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| KUSTOMIZATIONS.contains(&name))
        };
        for path in manifests.iter().filter(is_kustomization) {
            // A kustomization that cannot be read is reported with the other manifests.
            let Ok(bytes) = files::read(path, MAX_KUSTOMIZATION_BYTES) else {
                continue;
            };
            let directory = path.parent().unwrap_or(Path::new(""));
            if let Ok(value) = yaml::decode(&bytes, Limits::SERVER) {
                found.add(directory, &value);
            }
            if let Ok(text) = std::str::from_utf8(&bytes) {
                let files = patches_in_comments(text);
                found
                    .patches
                    .extend(files.map(|file| lexically_joined(directory, file)));
            }
        }
        found
    }

    fn add(&mut self, directory: &Path, kustomization: &Value) {
        for (list, member) in PATCH_LISTS {
            // Some of these lists also hold patches written in place, which have several lines.
            let files = kustomization.list(list).iter().filter_map(|item| match member {
                Some(member) => item.get(member).and_then(Value::as_str),
                None => item.as_str().filter(|text| !text.contains('\n')),
            });
            self.patches
                .extend(files.map(|file| lexically_joined(directory, file)));
        }
        // A component has no namespace of its own; any will do to validate its objects.
        let namespace = match kustomization.get_str("namespace") {
            "" if kustomization.get_str("kind") == "Component" => COMPONENT_NAMESPACE,
            "" => return,
            namespace => namespace,
        };
        let resources = kustomization.list("resources").iter().filter_map(Value::as_str);
        self.namespaces
            .extend(resources.map(|file| (lexically_joined(directory, file), namespace.into())));
    }
}

/// The members of a kustomization that list files which are not manifests of their own.
const PATCH_LISTS: [(&str, Option<&str>); 8] = [
    ("patches", Some("path")),
    ("patchesJson6902", Some("path")),
    ("replacements", Some("path")),
    ("helmCharts", Some("valuesFile")),
    ("patchesStrategicMerge", None),
    ("configurations", None),
    ("transformers", None),
    ("generators", None),
];

/// The files that a kustomization lists as patches in comments, as generated kustomizations do until the user enables
/// them: `#- path: patches/webhook_in_widgets.yaml`.
fn patches_in_comments(text: &str) -> impl Iterator<Item = &str> {
    let mut is_patches = false;
    text.lines().filter_map(move |line| {
        let commented = line.strip_prefix('#');
        let bare = commented.map_or(line, |rest| rest.strip_prefix(' ').unwrap_or(rest));
        if let Some((key, _)) = bare.split_once(':')
            && key.chars().all(|c| c.is_ascii_alphanumeric())
        {
            // Comments are prose as well: only entries after the name of such a list are files.
            is_patches = PATCH_LISTS.iter().any(|(list, _)| *list == key);
        }
        let entry = line.trim_start().strip_prefix('#')?.trim().strip_prefix("- ")?;
        let file = entry.strip_prefix("path:").unwrap_or(entry);
        let file = file.split(" #").next().unwrap_or_default().trim();
        Some(file).filter(|file| is_patches && !file.contains([' ', ':']))
    })
}

/// Joins paths lexically, resolving `.` and `..`.
pub(crate) fn lexically_joined(directory: &Path, file: &str) -> PathBuf {
    let mut joined = directory.to_owned();
    for component in Path::new(file).components() {
        match component {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                // Above the beginning, `..` stays, because there is nothing to remove.
                if !joined.pop() {
                    joined.push("..");
                }
            }
            other => joined.push(other),
        }
    }
    joined
}

/// The files that the user named.
pub(crate) fn named(sources: &[InputSource]) -> BTreeSet<&str> {
    sources.iter().filter(|s| s.named).map(|s| &*s.name).collect()
}

/// Separates problems from files that are skipped because the user did not name them and they do not look
/// like manifests.
pub(crate) fn skip_other_files(
    problems: Vec<Problem>,
    sources: &[InputSource],
) -> (Vec<Problem>, Vec<SkippedFile>) {
    let named = named(sources);
    let (mut kept, mut skipped) = (Vec::new(), Vec::new());
    for problem in problems {
        match (problem.skip_reason(), problem.input()) {
            // Files that the user names are validated whatever they look like.
            (Some(reason), Some(input)) if !named.contains(&*input.file) => skipped.push(SkippedFile {
                file: Arc::clone(&input.file),
                reason: reason.to_owned(),
            }),
            _ => kept.push(problem),
        }
    }
    (kept, skipped)
}

/// A file, or a document of one, that was skipped.
#[derive(Debug)]
pub(crate) struct SkippedFile {
    pub(crate) file: Arc<str>,
    pub(crate) reason: String,
}
