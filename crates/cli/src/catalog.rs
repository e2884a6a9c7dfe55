//! The definitions that objects are checked against, each compiled when its first object comes along.

use crate::args::TargetFlags;
use crate::cluster::Cluster;
use crate::files::InputSource;
use crate::input::{Document, InputObject};
use crate::locate::{Location, SourceText};
use crate::problem::{Problem, note, warn};
use crate::report::count;
use crate::stream;
use crate::validate::title;
use rayon::prelude::*;
use scantling_admit::{Resource, ResourceCompiler};
use scantling_schema::definition::{Accepted, ApiVersion, CrdVersion, Definition, Spec, ValidationContext};
use scantling_schema::names::group_version;
use scantling_schema::rules::Environments;
use scantling_value::{ErrorList, FieldError, PathBuf, Value};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A definition as it was read.
#[derive(Debug)]
pub(crate) struct CatalogEntry {
    /// The file it comes from.
    pub(crate) file: Arc<str>,
    /// Both, for those who want to know by what an object was report.
    pub(crate) title: Arc<str>,
    /// The definition.
    pub(crate) definition: Definition,
    /// The version of the definition kind it is written in.
    pub(crate) api: ApiVersion,
    /// The fields that definitions do not have.
    pub(crate) unknown: Vec<PathBuf>,
    /// Whether its text has one schema for all versions, as definitions of old may.
    one_schema: bool,
    /// Where it stands, where the catalog keeps that.
    origin: Option<SourceText>,
    /// Beside the definition's versions.
    versions: Vec<OnceLock<Result<Arc<Resource>, String>>>,
    /// What a cluster would refuse in it.
    refused: OnceLock<ErrorList>,
}

impl CatalogEntry {
    /// The places of fields of the definition, beside them; none where the catalog keeps no texts.
    pub(crate) fn places(&self, fields: &[String]) -> Vec<Option<Location>> {
        match &self.origin {
            Some(origin) => origin.places(fields),
            None => vec![None; fields.len()],
        }
    }

    /// The field of the text in which the schema of a version stands.
    pub(crate) fn schema_field(&self, version: usize) -> String {
        if self.one_schema {
            "spec.validation.openAPIV3Schema".to_owned()
        } else {
            format!("spec.versions[{version}].schema.openAPIV3Schema")
        }
    }

    /// A field as it was written: what all versions share is told at the top, wherever it stands.
    pub(crate) fn written(&self, field: &str) -> String {
        match field.strip_prefix("spec.validation") {
            Some(rest) if !self.one_schema => format!("spec.versions[0].schema{rest}"),
            _ => field.to_owned(),
        }
    }

    /// The errors of the CRD, if [`Catalog::refused`] has looked for them.
    pub(crate) fn refused_if_asked(&self) -> Option<&[FieldError]> {
        self.refused.get().map(|errors| &**errors)
    }

    /// Why nothing can be done with the definition.
    pub(crate) fn unusable(&self, why: &str) -> Problem {
        let what = format!(
            "{}: cannot use the definition {}",
            self.file,
            self.definition.name()
        );
        Problem::new(what, why).hint("`scantling lint` says everything that is wrong with a definition")
    }
}

/// Whether a catalog keeps the texts of definitions, for those who report about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Texts {
    Kept,
    Dropped,
}

/// All definitions.
#[derive(Debug)]
pub(crate) struct Catalog {
    target: TargetFlags,
    texts: Texts,
    environments: Environments,
    entries: Vec<CatalogEntry>,
    /// By `apiVersion` and kind: the definition and its version.
    kinds: BTreeMap<String, BTreeMap<String, (usize, usize)>>,
    /// One for each thread, once it has something to compile: compiling changes what it shares.
    workshops: Vec<Mutex<Option<ResourceCompiler>>>,
    /// The objects beside the CRDs, as `file: title`.
    skipped: Vec<String>,
}

/// A version of a definition that an object is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CatalogMatch<'c> {
    pub(crate) entry: &'c CatalogEntry,
    version: usize,
}

impl CatalogMatch<'_> {
    /// The version.
    pub(crate) fn version(&self) -> Option<&CrdVersion> {
        self.entry.definition.spec.versions().get(self.version)
    }
}

impl Catalog {
    /// No definitions.
    pub(crate) fn new(target: TargetFlags, texts: Texts) -> Self {
        Catalog {
            environments: Environments::for_version(target.kubernetes_version),
            target,
            texts,
            entries: Vec::new(),
            kinds: BTreeMap::new(),
            workshops: (0..=rayon::current_num_threads())
                .map(|_| Mutex::new(None))
                .collect(),
            skipped: Vec::new(),
        }
    }

    /// Reads all definitions in some files. Of definitions of one kind the last one counts.
    pub(crate) fn load(&mut self, sources: &[InputSource], other: OtherObjects) -> Vec<Problem> {
        let before = self.entries.len();
        let (mut entries, mut skipped, mut problems) = (Vec::new(), Vec::new(), Vec::new());
        let (target, texts) = (self.target, self.texts);
        let chosen: Vec<InputSource>;
        let sources = match other {
            OtherObjects::Listed => sources,
            OtherObjects::Skipped => {
                chosen = sources
                    .par_iter()
                    .filter(|s| mentions_definitions(s))
                    .cloned()
                    .collect();
                &chosen
            }
        };
        let unread = stream::each_document(
            sources,
            |document| definitions(document, target, other, texts),
            |found: Definitions| {
                entries.extend(found.entries);
                skipped.extend(found.skipped);
                problems.extend(found.problems);
            },
        );
        if other == OtherObjects::Skipped {
            // The command reads the objects of these files itself, and reports these problems then.
            problems.clear();
        } else {
            problems.extend(unread);
        }
        for entry in entries {
            self.add(entry);
        }
        self.skipped.extend(skipped);
        let nothing = self.entries.len() == before && problems.is_empty();
        if let (OtherObjects::Listed, true, Some(first)) = (other, nothing, sources.first()) {
            let more = match sources.len() - 1 {
                0 => String::new(),
                more => format!(" and {}", count(more, "other file")),
            };
            let what = format!("no CustomResourceDefinition in {}{more}", first.name);
            problems.push(Problem::plain(what));
        }
        problems
    }

    /// Reads the definitions of a cluster that are wanted, by their names.
    pub(crate) fn load_from(&mut self, cluster: &Cluster, wanted: impl Fn(&str) -> bool) -> Vec<Problem> {
        let file = cluster.name();
        let definitions = match cluster.definitions() {
            Ok(definitions) => definitions,
            Err(problem) => return vec![problem],
        };
        let mut problems = Vec::new();
        for object in definitions.into_iter().filter(|d| wanted(d.name())) {
            match entry(&file, object, self.target) {
                Ok(entry) => self.add(entry),
                Err(why) => problems.push(Problem::new(&file, why)),
            }
        }
        problems
    }

    /// Adds a definition. Of definitions of one kind the last one counts.
    pub(crate) fn add(&mut self, entry: CatalogEntry) {
        let spec = &entry.definition.spec;
        let mut replaced = None;
        for (n, version) in spec.versions().iter().enumerate() {
            let api_version = format!("{}/{}", spec.group, version.name);
            let kinds = self.kinds.entry(api_version).or_default();
            let before = kinds.insert(spec.names.kind.to_string(), (self.entries.len(), n));
            replaced = replaced.or(before);
        }
        let replaced = replaced.and_then(|(twin, _)| self.entries.get(twin));
        if let Some(twin) = replaced.filter(|twin| twin.definition.spec != *spec) {
            let (name, here, there) = (entry.definition.name(), &entry.file, &twin.file);
            warn(&format!(
                "{here}: the definition {name} differs from the one in {there}: this one counts"
            ));
        }
        self.entries.push(entry);
    }

    /// Tells the user which objects beside the CRDs were skipped.
    pub(crate) fn note_skipped(&self) {
        for object in &self.skipped {
            note(&format!("{object}: skipped: not a CustomResourceDefinition"));
        }
    }

    /// All definitions, in the order in which they were read.
    pub(crate) fn entries(&self) -> &[CatalogEntry] {
        &self.entries
    }

    /// What rules may use.
    pub(crate) fn environments(&self) -> &Environments {
        &self.environments
    }

    /// The definition of a kind.
    pub(crate) fn find(&self, api_version: &str, kind: &str) -> Option<CatalogMatch<'_>> {
        let (entry, version) = *self.kinds.get(api_version)?.get(kind)?;
        let entry = self.entries.get(entry)?;
        Some(CatalogMatch { entry, version })
    }

    /// The kind that the author of an object may have meant, for an object whose kind is not defined: another version of
    /// the kind, or a similar kind or group.
    pub(crate) fn suggestion(&self, api_version: &str, kind: &str) -> Option<String> {
        let (group, _) = group_version(api_version);
        let similar = |a: &str, b: &str| {
            let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
            let allowed = (a.len().max(b.len()) / 4).clamp(1, 3);
            strsim::osa_distance(&a, &b) <= allowed
        };
        let distance = |spec: &Spec| match (spec.group == group, spec.names.kind == kind) {
            (true, true) => Some(0),
            (true, false) => similar(&spec.names.kind, kind).then_some(1),
            (false, true) => similar(&spec.group, group).then_some(2),
            (false, false) => None,
        };
        let specs = self.entries.iter().map(|entry| &entry.definition.spec);
        let (_, spec) = specs
            .filter_map(|spec| Some((distance(spec)?, spec)))
            .min_by_key(|(distance, _)| *distance)?;
        let served: Vec<String> = spec
            .versions()
            .iter()
            .filter(|v| v.served)
            .map(|v| format!("{}/{}", spec.group, v.name))
            .collect();
        Some(format!(
            "did you mean kind {} in {}?",
            spec.names.kind,
            served.join(" or ")
        ))
    }

    /// Whether updates may leave what is wrong with an object as it is.
    pub(crate) fn ratcheting(&self) -> bool {
        self.target.feature_gates.ratcheting
    }

    fn setting(&self, entry: &CatalogEntry) -> ValidationContext<'_> {
        ValidationContext {
            api: entry.api,
            gates: self.target.feature_gates,
            environments: &self.environments,
        }
    }

    /// What a cluster would refuse in a definition.
    pub(crate) fn refused<'e>(&self, entry: &'e CatalogEntry) -> &'e [FieldError] {
        let refused = || Accepted::create(entry.definition.clone(), &self.setting(entry)).err();
        entry.refused.get_or_init(|| refused().unwrap_or_default())
    }

    /// What a cluster that has a definition would refuse in one that takes its place.
    pub(crate) fn refused_after(&self, entry: &CatalogEntry, old: &CatalogEntry) -> ErrorList {
        let mut definition = entry.definition.clone();
        definition.prepare_update(&old.definition, self.target.feature_gates);
        let mut errors = definition.validate_update(&old.definition, &self.setting(entry));
        // What a server keeps in the metadata is not in files.
        errors.retain(|error| !error.field().starts_with("metadata."));
        errors
    }

    /// The compiled version of a kind, or why there is none.
    fn resource<'c>(&self, found: CatalogMatch<'c>) -> Result<&'c Arc<Resource>, &'c str> {
        let slot = found.entry.versions.get(found.version);
        let slot = slot.ok_or("the definition has no such version")?;
        slot.get_or_init(|| self.compile(found))
            .as_ref()
            .map_err(String::as_str)
    }

    /// The same, for those who cannot go on without it.
    pub(crate) fn usable<'c>(&self, found: CatalogMatch<'c>) -> Result<&'c Arc<Resource>, Problem> {
        self.resource(found).map_err(|why| found.entry.unusable(why))
    }

    fn compile(&self, found: CatalogMatch<'_>) -> Result<Arc<Resource>, String> {
        let spec = &found.entry.definition.spec;
        let version = found.version().ok_or("the definition has no such version")?;
        let workshop = rayon::current_thread_index().map_or(0, |n| n + 1);
        let workshop = self.workshops.get(workshop).or(self.workshops.first());
        let workshop = workshop.ok_or("no thread can compile")?;
        let mut workshop = workshop.lock().unwrap_or_else(PoisonError::into_inner);
        workshop
            .get_or_insert_with(|| ResourceCompiler::for_version(self.target.kubernetes_version))
            .resource(spec, version)
            .map(Arc::new)
            .map_err(|why| format!("version {}: {why}", version.name))
    }
}

/// What becomes of objects among the definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherObjects {
    /// The command reads them itself.
    Skipped,
    /// The catalog lists them as skipped.
    Listed,
}

/// The kind of definitions.
const KIND: &str = "CustomResourceDefinition";

/// Whether there may be definitions in a file. One that cannot be read may hold some: the reader reports why.
fn mentions_definitions(source: &InputSource) -> bool {
    let Ok(mut reader) = source.open() else {
        return true;
    };
    let (mut window, mut kept) = (vec![0; 1 << 20], 0);
    loop {
        let read = match window.get_mut(kept..).map(|free| reader.read(free)) {
            Some(Ok(0)) => return false,
            Some(Ok(read)) => read,
            Some(Err(_)) | None => return true,
        };
        let seen = window.get(..kept + read).unwrap_or_default();
        if memchr::memmem::find(seen, KIND.as_bytes()).is_some() {
            return true;
        }
        // The name may stand across the border of what is read at once.
        let border = seen.len().saturating_sub(KIND.len());
        let end = seen.len();
        window.copy_within(border..end, 0);
        kept = end - border;
    }
}

/// The CRDs of a document, and everything else in it.
#[derive(Default)]
struct Definitions {
    entries: Vec<CatalogEntry>,
    skipped: Vec<String>,
    problems: Vec<Problem>,
}

fn definitions(
    document: &Document<'_>,
    target: TargetFlags,
    other: OtherObjects,
    texts: Texts,
) -> Definitions {
    let mut found = Definitions::default();
    if other == OtherObjects::Skipped && memchr::memmem::find(document.text, KIND.as_bytes()).is_none() {
        return found;
    }
    let objects = match document.known_objects() {
        Ok(objects) => objects,
        Err(problem) => {
            found.problems.push(problem);
            return found;
        }
    };
    let text = (texts == Texts::Kept).then(|| Arc::from(document.text));
    for object in objects {
        if !object.is_definition() {
            if other == OtherObjects::Listed {
                let title = title(object.kind(), object.namespace(), object.name());
                found.skipped.push(format!("{}: {title}", document.file));
            }
            continue;
        }
        let origin = text
            .as_ref()
            .map(|text| SourceText::new(document, text, &object.index));
        match entry(document.file, object, target) {
            Ok(entry) => found.entries.push(CatalogEntry { origin, ..entry }),
            Err(why) => {
                let place = Some(document.first_line());
                found.problems.push(Problem::in_file(document.file, place, why));
            }
        }
    }
    found
}

/// Reads a definition.
pub(crate) fn entry(
    file: &Arc<str>,
    object: InputObject,
    target: TargetFlags,
) -> Result<CatalogEntry, String> {
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
    let one_schema = object.value.at(["spec", "validation"]).is_some();
    let mut received =
        Definition::decode(object.value, api, target.feature_gates).map_err(|e| match name.as_str() {
            "" => format!("the definition cannot be read: {e}"),
            name => format!("the definition {name} cannot be read: {e}"),
        })?;
    // The path that a definition is sent to has no namespace: a cluster takes it off.
    received.definition.metadata.remove("namespace");
    let versions = received.definition.spec.versions().len();
    let unknown = received.unknown().cloned().collect();
    Ok(CatalogEntry {
        file: Arc::clone(file),
        title: format!("by {name} in {file}").into(),
        definition: received.definition,
        api,
        unknown,
        one_schema,
        origin: None,
        versions: (0..versions).map(|_| OnceLock::new()).collect(),
        refused: OnceLock::new(),
    })
}

/// The stored objects that updates are updates of.
#[derive(Default)]
pub(crate) struct StoredObjects<'c> {
    objects: BTreeMap<ObjectKey, Value>,
    /// Where those are looked for that the files do not have.
    pub(crate) cluster: Option<&'c Cluster>,
}

impl StoredObjects<'_> {
    /// Reads all objects of some files.
    pub(crate) fn load(sources: &[InputSource]) -> (Self, Vec<Problem>) {
        let (mut stored, mut undecoded) = (StoredObjects::default(), Vec::new());
        let mut problems = stream::each_document(
            sources,
            |document| {
                let objects = document.objects()?.into_iter();
                let objects = objects.map(|o| (key(&o.value), o.value)).collect::<Vec<_>>();
                Ok((Arc::clone(document.file), objects))
            },
            |read: Result<(Arc<str>, Vec<_>), Problem>| match read {
                Ok((file, objects)) => {
                    for (key, object) in objects {
                        stored.add(&file, key, object);
                    }
                }
                Err(problem) => undecoded.push(problem),
            },
        );
        problems.extend(undecoded);
        (stored, problems)
    }

    fn add(&mut self, file: &str, key: ObjectKey, object: Value) {
        let (_, kind, namespace, name) = &key;
        if self.objects.get(&key).is_some_and(|twin| *twin != object) {
            let title = title(kind, namespace, name);
            warn(&format!(
                "{file}: there are several states of {title}: this one counts"
            ));
        }
        self.objects.insert(key, object);
    }

    /// The stored object of the same group, kind, namespace and name.
    pub(crate) fn find(
        &self,
        object: &InputObject,
        found: CatalogMatch<'_>,
    ) -> Result<Option<Value>, Problem> {
        match (self.objects.get(&key(&object.value)), self.cluster) {
            (None, Some(cluster)) => cluster.object(object, &found.entry.definition.spec),
            (stored, _) => Ok(stored.cloned()),
        }
    }
}

/// Group, kind, namespace and name.
type ObjectKey = (String, String, String, String);

fn key(object: &Value) -> ObjectKey {
    let (group, _) = group_version(object.get_str("apiVersion"));
    let namespace = match object.str_at(["metadata", "namespace"]) {
        "" => "default",
        namespace => namespace,
    };
    (
        group.to_owned(),
        object.get_str("kind").to_owned(),
        namespace.to_owned(),
        object.str_at(["metadata", "name"]).to_owned(),
    )
}
