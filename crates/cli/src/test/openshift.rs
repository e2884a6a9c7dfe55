//! The test suites of openshift/api: `tests/<crd>/*.testsuite.yaml` beside `zz_generated.crd-manifests`.
//!
//! A suite names its CRD and the feature gates that it needs. It runs against every generated manifest of
//! that CRD with matching gates; `payload-manifests/featuregates` lists the gates of a manifest.
//! An older suite is beside its API and names one manifest.

use super::suite::{CaseWrite, Expectation, NewState, Suite, TestCase, Verdict};
use scantling_value::{Limits, Path as FieldPath, Value, yaml};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Returns whether a document is a suite of this format.
pub(crate) fn is_suite(document: &Value) -> bool {
    let names_crd = document.get("crdName").is_some() || document.get("crd").is_some();
    names_crd && document.get("tests").is_some()
}

/// The way a suite refers to its CRD.
enum CrdReference {
    /// The name of the CRD.
    Name(String),
    /// The file name of a manifest, in older suites.
    File(String),
}

/// A suite with the CRD that it names.
pub(crate) struct OpenshiftSuite {
    pub(crate) suite: Suite,
    crd: CrdReference,
    /// The version under test; the only version of the CRD if the suite names none.
    pub(crate) version: Option<String>,
    pub(crate) feature_gates: Vec<String>,
}

/// Reads a suite.
pub(crate) fn read(document: &Value) -> Result<OpenshiftSuite, String> {
    let text = |name: &str| document.get_str(name).to_owned();
    let tests_at = FieldPath::ROOT.field("tests");
    let mut cases = Vec::new();
    // Cases are nested YAML texts, whose own positions are not known; errors name the case.
    for (kind, is_update) in [("onCreate", false), ("onUpdate", true)] {
        let list_at = tests_at.field(kind);
        for (i, test) in document.list_at(["tests", kind]).iter().enumerate() {
            let case = read_case(test, is_update).map_err(|e| format!("{}: {e}", test.get_str("name")))?;
            cases.push(TestCase {
                at: (&list_at.index(i)).into(),
                ..case
            });
        }
    }
    let gates = document.list("featureGates").iter();
    Ok(OpenshiftSuite {
        suite: Suite {
            name: text("name"),
            crds: Vec::new(),
            cases,
        },
        crd: match document.get_str("crd") {
            "" => CrdReference::Name(text("crdName")),
            file => CrdReference::File(file.to_owned()),
        },
        version: document.get("version").and_then(Value::as_str).map(str::to_owned),
        feature_gates: gates.filter_map(Value::as_str).map(str::to_owned).collect(),
    })
}

fn read_case(test: &Value, is_update: bool) -> Result<TestCase, String> {
    let nested = |name: &str| -> Result<Option<Value>, String> {
        match test.get_str(name) {
            "" => Ok(None),
            text => yaml::decode(text.as_bytes(), Limits::SERVER)
                .map(Some)
                .map_err(|e| format!("{name}: {e}")),
        }
    };
    let initial = nested("initial")?.ok_or("the case has no `initial`")?;
    let write = match is_update {
        false => CaseWrite::Create(initial),
        true => CaseWrite::Update(
            initial,
            NewState::Object(nested("updated")?.ok_or("the case has no `updated`")?),
        ),
    };
    let verdict = match (test.get_str("expectedError"), test.get_str("expectedStatusError")) {
        ("", "") => Verdict::Accepted,
        ("", status) => Verdict::StatusRejectedWith(status.to_owned()),
        (error, _) => Verdict::RejectedWith(error.to_owned()),
    };
    Ok(TestCase {
        name: test.get_str("name").to_owned(),
        at: (&FieldPath::ROOT).into(),
        initial_crd_patch: test
            .get("initialCRDPatches")
            .filter(|patches| patches.as_array().is_some_and(|p| !p.is_empty()))
            .cloned(),
        write,
        expect: Expectation {
            stored: match verdict {
                Verdict::Accepted => nested("expected")?.map(without_name),
                _ => None,
            },
            verdict,
            ..Expectation::default()
        },
    })
}

/// An expected object without the names that the suite's runner copies from the stored one.
fn without_name(mut object: Value) -> Value {
    let metadata = object.as_object_mut().and_then(|o| o.get_mut("metadata"));
    if let Some(metadata) = metadata.and_then(Value::as_object_mut) {
        metadata.remove("name");
        metadata.remove("namespace");
    }
    object
}

/// The directory of generated manifests.
const MANIFESTS: &str = "zz_generated.crd-manifests";
const FEATURE_SET: &str = "release.openshift.io/feature-set";
const PROFILE: &str = "include.release.openshift.io/";
const MAJOR_VERSION: &str = "release.openshift.io/major-version";

/// A CRD manifest.
pub(crate) struct Manifest {
    pub(crate) file: PathBuf,
    pub(crate) document: Value,
}

/// Reads a file.
pub(crate) type ReadFile<'a> = &'a dyn Fn(&Path) -> Result<Vec<u8>, String>;

/// The manifests that a suite runs against.
pub(crate) fn manifests(
    suite: &OpenshiftSuite,
    file: &Path,
    read: ReadFile<'_>,
) -> Result<Vec<Manifest>, String> {
    match &suite.crd {
        CrdReference::Name(name) => manifests_of(name, &suite.feature_gates, file, read),
        CrdReference::File(name) => Ok(vec![manifest_named(name, file, read)?]),
    }
}

/// The manifests of a CRD with matching feature gates.
fn manifests_of(
    crd_name: &str,
    gates_of_suite: &[String],
    file: &Path,
    read: ReadFile<'_>,
) -> Result<Vec<Manifest>, String> {
    let group = file.parent().and_then(Path::parent).and_then(Path::parent);
    let directory = group.unwrap_or(Path::new(".")).join(MANIFESTS);
    let mut found = Vec::new();
    let gates = FeatureGates::new(&directory, read);
    for file in sorted_files(&directory)? {
        // An unreadable file is skipped: it matters only if no manifest fits, which is reported.
        let Ok(text) = read(&file) else { continue };
        // Most manifests are of other CRDs, and decoding one takes long.
        if memchr::memmem::find(&text, crd_name.as_bytes()).is_none() {
            continue;
        }
        let Ok(document) = decode(&file, &text) else {
            continue;
        };
        if document.str_at(["metadata", "name"]) == crd_name && has_gates(&document, gates_of_suite, &gates)?
        {
            found.push(Manifest { file, document });
        }
    }
    match found.is_empty() {
        true => Err(format!(
            "no manifest of the CRD {crd_name} in {} fits the suite",
            directory.display()
        )),
        false => Ok(found),
    }
}

/// The manifest that an older suite names: manifests were once beside the suites.
fn manifest_named(name: &str, suite: &Path, read: ReadFile<'_>) -> Result<Manifest, String> {
    let beside = suite.parent().unwrap_or(Path::new("."));
    let file = [beside.join(name), beside.join(MANIFESTS).join(name)]
        .into_iter()
        .find(|file| file.is_file())
        .ok_or_else(|| format!("no manifest {name} beside the suite or in {MANIFESTS}"))?;
    let document = decode(&file, &read(&file)?)?;
    Ok(Manifest { file, document })
}

fn decode(file: &Path, text: &[u8]) -> Result<Value, String> {
    yaml::decode(text, Limits::SERVER).map_err(|e| format!("{}: {e}", file.display()))
}

fn sorted_files(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let cannot = |e: std::io::Error| format!("{}: {e}", directory.display());
    let entries = std::fs::read_dir(directory).map_err(cannot)?;
    let mut files = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(cannot)?;
    // Directories are read in any order, and reports must not depend on it.
    files.sort();
    Ok(files)
}

/// Returns whether the feature gates of a manifest match a suite: enabled, or disabled if the name has a
/// dash.
fn has_gates(crd: &Value, wanted: &[String], gates: &FeatureGates<'_>) -> Result<bool, String> {
    // A suite without gates runs against every manifest of its CRD.
    if wanted.is_empty() {
        return Ok(true);
    }
    let sets: Vec<&str> = annotation(crd, FEATURE_SET)
        .split(',')
        .filter(|set| !set.is_empty())
        .collect();
    if sets.contains(&"CustomNoUpgrade") {
        // This feature set has every field.
        return Ok(!wanted.iter().any(|gate| gate.starts_with('-')));
    }
    // Without a profile, no list of gates applies to the manifest.
    let Some(profile) = profiles(crd).next() else {
        return Ok(true);
    };
    let gates = gates.states(profile, &sets, annotation(crd, MAJOR_VERSION))?;
    for gate in wanted {
        let (name, enabled) = match gate.strip_prefix('-') {
            Some(name) => (name, false),
            None => (gate.as_str(), true),
        };
        let state = gates
            .get(name)
            .ok_or_else(|| format!("unknown feature gate {name}"))?;
        if *state != enabled {
            return Ok(false);
        }
    }
    Ok(true)
}

fn annotation<'v>(object: &'v Value, name: &str) -> &'v str {
    object
        .at(["metadata", "annotations"])
        .map_or("", |a| a.get_str(name))
}

/// The cluster profiles that include an object.
fn profiles(object: &Value) -> impl Iterator<Item = &str> {
    let annotations = object.at(["metadata", "annotations"]).and_then(Value::as_object);
    let annotations = annotations.into_iter().flat_map(scantling_value::Map::iter);
    annotations
        .filter(|(name, value)| name.starts_with(PROFILE) && value.as_str() == Some("true"))
        .map(|(name, _)| name.as_str())
}

/// The lists of feature gates above a directory of manifests, decoded on first use.
struct FeatureGates<'a> {
    directory: &'a Path,
    read: ReadFile<'a>,
    lists: OnceCell<Result<Vec<Value>, String>>,
}

impl<'a> FeatureGates<'a> {
    fn new(directory: &'a Path, read: ReadFile<'a>) -> Self {
        FeatureGates {
            directory,
            read,
            lists: OnceCell::new(),
        }
    }

    fn read_lists(&self) -> Result<Vec<Value>, String> {
        let root = self
            .directory
            .ancestors()
            .map(|above| above.join("payload-manifests/featuregates"))
            .find(|gates| gates.is_dir())
            .ok_or("no folder payload-manifests/featuregates above the suite")?;
        let files = sorted_files(&root)?;
        files
            .iter()
            .map(|file| decode(file, &(self.read)(file)?))
            .collect()
    }

    /// The gates of a cluster profile and feature set, with their state.
    fn states(&self, profile: &str, sets: &[&str], versions: &str) -> Result<BTreeMap<String, bool>, String> {
        let lists = self.lists.get_or_init(|| self.read_lists()).as_ref();
        let numbers =
            |text: &str| -> Vec<u64> { text.split(',').filter_map(|n| n.trim().parse().ok()).collect() };
        let versions = numbers(versions);
        for document in lists.map_err(Clone::clone)? {
            let set = annotation(document, FEATURE_SET);
            let fits_set = match sets {
                [] => set == "Default",
                sets => sets.contains(&set),
            };
            let own = numbers(annotation(document, MAJOR_VERSION));
            let fits_version = versions.is_empty() || own.iter().any(|version| versions.contains(version));
            let fits_profile = document
                .at(["metadata", "annotations"])
                .is_some_and(|annotations| annotations.get(profile).is_some());
            if fits_set && fits_version && fits_profile {
                let gates = document.list_at(["status", "featureGates"]).first();
                let state = |list: &'static str, enabled: bool| {
                    let gates = gates.map_or(&[][..], |gates| gates.list(list)).iter();
                    gates.map(move |gate| (gate.get_str("name").to_owned(), enabled))
                };
                return Ok(state("enabled", true).chain(state("disabled", false)).collect());
            }
        }
        Err(format!(
            "no feature gates for the profile {profile} and the feature sets {sets:?}"
        ))
    }
}

/// A CRD with only the version under test, which is served and stored.
pub(crate) fn with_version(mut crd: Value, version: Option<&str>) -> Result<Value, String> {
    let spec = crd
        .as_object_mut()
        .and_then(|o| o.get_mut("spec"))
        .and_then(Value::as_object_mut);
    let Some(Value::Array(versions)) = spec.and_then(|spec| spec.get_mut("versions")) else {
        return Err("the CRD has no versions".into());
    };
    match version {
        Some(version) => versions.retain(|v| v.get_str("name") == version),
        None if versions.len() > 1 => {
            return Err("the CRD has several versions: the suite must name one".into());
        }
        None => {}
    }
    let Some(version) = versions.first_mut().and_then(Value::as_object_mut) else {
        return Err("the CRD does not have the version of the suite".into());
    };
    version.insert("served", true.into());
    version.insert("storage", true.into());
    Ok(crd)
}
