//! The definitions that objects are checked against, each compiled when its first object comes along.

use crate::args::Target;
use crate::files::Source;
use crate::input::{self, Object};
use crate::problem::Problem;
use rayon::prelude::*;
use scantling_admit::{Resource, Workshop};
use scantling_schema::definition::{Accepted, ApiVersion, Definition, Setting, Version};
use scantling_schema::rules::Environments;
use scantling_value::{FieldError, PathBuf, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A definition as it was read.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The file it comes from.
    pub(crate) file: Arc<str>,
    /// The definition.
    pub(crate) definition: Definition,
    /// The version of the definition kind it is written in.
    pub(crate) api: ApiVersion,
    /// The fields that definitions do not have.
    pub(crate) unknown: Vec<PathBuf>,
    /// Beside the definition's versions.
    versions: Vec<OnceLock<Result<Arc<Resource>, String>>>,
    /// What a cluster would refuse in it.
    refused: OnceLock<Vec<FieldError>>,
}

/// All definitions.
#[derive(Debug)]
pub(crate) struct Catalog {
    target: Target,
    environments: Environments,
    entries: Vec<Entry>,
    /// By `apiVersion` and kind: the definition and its version.
    kinds: BTreeMap<String, BTreeMap<String, (usize, usize)>>,
    /// One for each thread: compiling changes what it shares.
    workshops: Vec<Mutex<Workshop>>,
}

/// A version of a definition that an object is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'c> {
    pub(crate) entry: &'c Entry,
    version: usize,
}

impl Found<'_> {
    /// The version.
    pub(crate) fn version(&self) -> Option<&Version> {
        self.entry.definition.spec.versions().get(self.version)
    }
}

impl Catalog {
    /// No definitions.
    pub(crate) fn new(target: Target) -> Self {
        Catalog {
            environments: Environments::of(target.kubernetes_version),
            target,
            entries: Vec::new(),
            kinds: BTreeMap::new(),
            workshops: (0..=rayon::current_num_threads())
                .map(|_| Mutex::new(Workshop::for_version(target.kubernetes_version)))
                .collect(),
        }
    }

    /// Reads all definitions in some files. Of definitions of one kind the last one counts.
    pub(crate) fn load(&mut self, sources: &[Source], other: OtherObjects) -> Vec<Problem> {
        let read: Vec<_> = sources
            .par_iter()
            .map(|source| definitions(source, self.target, other))
            .collect();
        let mut problems = Vec::new();
        for (entries, problem) in read {
            problems.extend(problem);
            for entry in entries {
                self.add(entry);
            }
        }
        problems
    }

    fn add(&mut self, entry: Entry) {
        let spec = &entry.definition.spec;
        for (n, version) in spec.versions().iter().enumerate() {
            let api_version = format!("{}/{}", spec.group, version.name);
            let kinds = self.kinds.entry(api_version).or_default();
            kinds.insert(spec.names.kind.to_string(), (self.entries.len(), n));
        }
        self.entries.push(entry);
    }

    /// All definitions, in the order in which they were read.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The definitions that objects were checked against.
    pub(crate) fn used(&self) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .filter(|e| e.versions.iter().any(|v| v.get().is_some()))
    }

    /// What rules may use.
    pub(crate) fn environments(&self) -> &Environments {
        &self.environments
    }

    /// The definition of a kind.
    pub(crate) fn find(&self, api_version: &str, kind: &str) -> Option<Found<'_>> {
        let (entry, version) = *self.kinds.get(api_version)?.get(kind)?;
        let entry = self.entries.get(entry)?;
        Some(Found { entry, version })
    }

    /// What a cluster would refuse in a definition.
    pub(crate) fn refused<'e>(&self, entry: &'e Entry) -> &'e [FieldError] {
        entry.refused.get_or_init(|| {
            let setting = Setting {
                api: entry.api,
                gates: self.target.feature_gates,
                environments: &self.environments,
            };
            Accepted::create(entry.definition.clone(), &setting)
                .err()
                .unwrap_or_default()
        })
    }

    /// The compiled version of a kind, or why there is none.
    pub(crate) fn resource<'c>(&self, found: Found<'c>) -> Result<&'c Arc<Resource>, &'c str> {
        let slot = found.entry.versions.get(found.version);
        let slot = slot.ok_or("the definition has no such version")?;
        slot.get_or_init(|| self.compile(found))
            .as_ref()
            .map_err(String::as_str)
    }

    fn compile(&self, found: Found<'_>) -> Result<Arc<Resource>, String> {
        let spec = &found.entry.definition.spec;
        let version = found.version().ok_or("the definition has no such version")?;
        let workshop = rayon::current_thread_index().map_or(0, |n| n + 1);
        let workshop = self.workshops.get(workshop).or(self.workshops.first());
        let workshop = workshop.ok_or("no thread can compile")?;
        let mut workshop = workshop.lock().unwrap_or_else(PoisonError::into_inner);
        workshop
            .resource(spec, version)
            .map(Arc::new)
            .map_err(|why| format!("version {}: {why}", version.name))
    }
}

/// What becomes of objects among the definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherObjects {
    /// They are of no interest here: whoever asks reads them on their own.
    Skipped,
    /// A file that holds none but them is a mistake.
    Unexpected,
}

/// The definitions in a file.
fn definitions(source: &Source, target: Target, other: OtherObjects) -> (Vec<Entry>, Vec<Problem>) {
    let bytes = match source.read() {
        Ok(bytes) => bytes,
        // Whoever reads the objects of the file will say so.
        Err(_) if other == OtherObjects::Skipped => return (Vec::new(), Vec::new()),
        Err(problem) => return (Vec::new(), vec![problem]),
    };
    if other == OtherObjects::Skipped && memchr::memmem::find(&bytes, b"CustomResourceDefinition").is_none() {
        return (Vec::new(), Vec::new());
    }
    let (documents, mut problems) = input::documents(&source.name, &bytes);
    let mut entries = Vec::new();
    for document in documents {
        match document.objects(&source.name) {
            Ok(objects) => {
                for object in objects.into_iter().filter(Object::is_definition) {
                    let place = format!("{}:{}", source.name, document.line + 1);
                    match entry(source, object, target) {
                        Ok(entry) => entries.push(entry),
                        Err(why) => problems.push(Problem::new(place, why)),
                    }
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    if other == OtherObjects::Skipped {
        problems.clear();
    } else if entries.is_empty() && problems.is_empty() {
        let what = format!("no definition in {}", source.name);
        let hint = "a definition is an object of kind CustomResourceDefinition";
        problems.push(Problem::plain(what).hint(hint));
    }
    (entries, problems)
}

/// Reads a definition.
pub(crate) fn entry(source: &Source, object: Object, target: Target) -> Result<Entry, String> {
    let api = match object.api_version() {
        "apiextensions.k8s.io/v1" => ApiVersion::V1,
        "apiextensions.k8s.io/v1beta1" => ApiVersion::V1Beta1,
        other => {
            return Err(format!(
                "definitions of version {other} are not known: use apiextensions.k8s.io/v1"
            ));
        }
    };
    let name = object.name().to_owned();
    let received = Definition::decode(object.value, api, target.feature_gates)
        .map_err(|e| format!("the definition {name} cannot be read: {e}"))?;
    let versions = received.definition.spec.versions().len();
    Ok(Entry {
        file: Arc::clone(&source.name),
        definition: received.definition,
        api,
        unknown: received.unknown,
        versions: (0..versions).map(|_| OnceLock::new()).collect(),
        refused: OnceLock::new(),
    })
}

/// The stored objects that updates are updates of.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    objects: BTreeMap<(String, String, String, String), Value>,
}

impl Stored {
    /// Reads all objects of some files.
    pub(crate) fn load(sources: &[Source]) -> (Self, Vec<Problem>) {
        let read: Vec<_> = sources.par_iter().map(objects).collect();
        let (mut stored, mut problems) = (Stored::default(), Vec::new());
        for (objects, problem) in read {
            problems.extend(problem);
            for object in objects {
                stored.objects.insert(key(&object.value), object.value);
            }
        }
        (stored, problems)
    }

    /// The stored object of the same group, kind, namespace and name.
    pub(crate) fn of(&self, object: &Value) -> Option<&Value> {
        self.objects.get(&key(object))
    }
}

fn key(object: &Value) -> (String, String, String, String) {
    let text = |v: Option<&Value>| v.and_then(Value::as_str).unwrap_or_default().to_owned();
    let api_version = text(object.get("apiVersion"));
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let metadata = object.get("metadata");
    let namespace = text(metadata.and_then(|m| m.get("namespace")));
    (
        group.to_owned(),
        text(object.get("kind")),
        if namespace.is_empty() {
            "default".to_owned()
        } else {
            namespace
        },
        text(metadata.and_then(|m| m.get("name"))),
    )
}

fn objects(source: &Source) -> (Vec<Object>, Vec<Problem>) {
    let bytes = match source.read() {
        Ok(bytes) => bytes,
        Err(problem) => return (Vec::new(), vec![problem]),
    };
    let (documents, mut problems) = input::documents(&source.name, &bytes);
    let mut all = Vec::new();
    for document in documents {
        match document.objects(&source.name) {
            Ok(objects) => all.extend(objects),
            Err(problem) => problems.push(problem),
        }
    }
    (all, problems)
}
