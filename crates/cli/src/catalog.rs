//! The CRDs that objects are validated against. Each is compiled when its first object is validated.

use crate::args::TargetFlags;
use crate::builtin::BuiltinKinds;
use crate::cluster::Cluster;
use crate::files::InputSource;
use crate::input::{Document, InputObject};
use crate::locate::{Location, SourceText};
use crate::policy::Directives;
use crate::problem::{Problem, note, warn};
use crate::report::count;
use crate::stream;
use crate::validate::title;
use crate::walk;
use rayon::prelude::*;
use scantling_admit::{Resource, ResourceCompiler};
use scantling_schema::definition::{Accepted, ApiVersion, CrdVersion, Definition, ValidationContext};
use scantling_schema::names::group_version;
use scantling_schema::rules::Environments;
use scantling_value::{ErrorList, FieldError, Finding, Segment, Value};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A CRD.
#[derive(Debug)]
pub(crate) struct CatalogEntry {
    /// The file it comes from.
    pub(crate) file: Arc<str>,
    /// Name and file, for the details of a result.
    pub(crate) title: Arc<str>,
    /// The definition.
    pub(crate) definition: Definition,
    /// The API version it is written in.
    pub(crate) api: ApiVersion,
    /// Unknown fields of its text.
    pub(crate) unknown: Vec<Finding>,
    /// True if its text has one schema for all versions, as in v1beta1.
    one_schema: bool,
    /// Its text, if the catalog keeps texts.
    origin: Option<SourceText>,
    /// The compiled versions.
    versions: Vec<OnceLock<Result<Arc<Resource>, String>>>,
    /// The errors with which a cluster refuses it.
    refused: OnceLock<ErrorList>,
}

impl CatalogEntry {
    /// Returns the location of each field of the CRD, if the catalog keeps texts.
    pub(crate) fn locations(&self, fields: &[String]) -> Vec<Option<Location>> {
        match &self.origin {
            Some(origin) => origin.locations(fields),
            None => vec![None; fields.len()],
        }
    }

    /// Returns the comments in the text of the CRD that silence findings.
    pub(crate) fn directives(&self) -> Directives {
        let origin = self.origin.as_ref();
        origin.map_or_else(Directives::default, |text| {
            Directives::new(text.bytes(), text.first_line())
        })
    }

    /// Returns the field of the text that contains the schema of a version.
    pub(crate) fn schema_field(&self, version: usize) -> String {
        if self.one_schema {
            "spec.validation.openAPIV3Schema".to_owned()
        } else {
            format!("spec.versions[{version}].schema.openAPIV3Schema")
        }
    }

    /// Returns the same as segments of a path.
    pub(crate) fn schema_segments(&self, version: usize) -> Vec<Segment<'static>> {
        use Segment::{Field, Index};
        if self.one_schema {
            vec![Field("spec"), Field("validation"), Field("openAPIV3Schema")]
        } else {
            vec![
                Field("spec"),
                Field("versions"),
                Index(version),
                Field("schema"),
                Field("openAPIV3Schema"),
            ]
        }
    }

    /// Returns a field as it is in the text: errors name what all versions share at the top.
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

    /// Returns the problem that the CRD cannot be used.
    pub(crate) fn unusable(&self, why: &str) -> Problem {
        let what = format!("{}: cannot use the CRD {}", self.file, self.definition.name());
        Problem::new(what, why).hint("`scantling lint` reports all errors of a CRD")
    }

    /// Returns the version that a user names (`v1` or `apps/v1`); without a name, the storage version.
    pub(crate) fn version(&self, wanted: Option<&str>) -> Result<&CrdVersion, Problem> {
        let spec = &self.definition.spec;
        let found = match wanted {
            Some(wanted) => {
                let mut versions = spec.versions().iter();
                versions.find(|version| is_version(wanted, &spec.group, &version.name))
            }
            None => spec.storage_version(),
        };
        found.ok_or_else(|| {
            let names: Vec<&str> = spec.versions().iter().map(|v| &*v.name).collect();
            let (name, wanted) = (self.definition.name(), wanted.unwrap_or_default());
            Problem::plain(format!("{}: the CRD {name} has no version {wanted}", self.file))
                .hint(format!("its versions are {}", names.join(", ")))
        })
    }
}

/// Returns whether a user means this version: `v1` or `apps/v1`.
pub(crate) fn is_version(wanted: &str, group: &str, version: &str) -> bool {
    match wanted.split_once('/') {
        Some((wanted_group, wanted)) => wanted_group == group && wanted == version,
        None => wanted == version,
    }
}

/// A catalog's choice to keep the texts of CRDs, for locations, or to drop them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CrdTexts {
    Kept,
    Dropped,
}

/// All CRDs.
#[derive(Debug)]
pub(crate) struct Catalog {
    target: TargetFlags,
    texts: CrdTexts,
    environments: Environments,
    entries: Vec<CatalogEntry>,
    /// By `apiVersion` and kind: the definition and its version.
    kinds: BTreeMap<String, BTreeMap<String, (usize, usize)>>,
    /// One compiler per thread, created on first use: compiling changes what it shares.
    compilers: Vec<Mutex<Option<ResourceCompiler>>>,
    /// The objects beside the CRDs, as `file: title`.
    skipped: Vec<String>,
}

/// The CRD and version of an object.
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
    /// Returns an empty catalog.
    pub(crate) fn new(target: TargetFlags, texts: CrdTexts) -> Self {
        Catalog {
            environments: Environments::for_version(target.kubernetes_version),
            target,
            texts,
            entries: Vec::new(),
            kinds: BTreeMap::new(),
            // One more than the pool has threads: index 0 is for callers outside the pool.
            compilers: (0..=rayon::current_num_threads())
                .map(|_| Mutex::new(None))
                .collect(),
            skipped: Vec::new(),
        }
    }

    /// Reads all CRDs of some files. Of several CRDs of one kind, the last one is used.
    pub(crate) fn load(&mut self, sources: &[InputSource], other: OtherObjects) -> Vec<Problem> {
        let before = self.entries.len();
        let (mut entries, mut skipped, mut problems) = (Vec::new(), Vec::new(), Vec::new());
        let (target, texts) = (self.target, self.texts);
        let chosen: Vec<InputSource>;
        let sources = match other {
            OtherObjects::Listed => sources,
            OtherObjects::Skipped => {
                // Searching for the name is far cheaper than decoding, which the command does again for its own
                // purpose.
                chosen = sources
                    .par_iter()
                    .filter(|s| mentions_definitions(s))
                    .cloned()
                    .collect();
                &chosen
            }
        };
        let named = walk::named(sources);
        let unread = stream::each_document(
            sources,
            |document| definitions(document, target, other, texts, named.contains(&**document.file)),
            |found: Definitions| {
                entries.extend(found.entries);
                // Collected first: adding an entry prints warnings, whose order must not depend on threads.
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
        let is_skipped = |problem: &Problem| {
            let input = problem.input();
            // Files of a directory that are skipped do not hide that it has no CRD.
            problem.skip_reason().is_some() && input.is_some_and(|i| !named.contains(&*i.file))
        };
        let nothing = self.entries.len() == before && problems.iter().all(is_skipped);
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

    /// Reads the CRDs of a cluster that are wanted, by name.
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
            // Earlier entries stay in the list, because they are linted and reported. Only the lookup changes.
            let kinds = self.kinds.entry(api_version).or_default();
            let before = kinds.insert(spec.names.kind.to_string(), (self.entries.len(), n));
            replaced = replaced.or(before);
        }
        let replaced = replaced.and_then(|(twin, _)| self.entries.get(twin));
        // An equal copy is harmless, so only a different one is reported.
        if let Some(twin) = replaced.filter(|twin| twin.definition.spec != *spec) {
            let (name, here, there) = (entry.definition.name(), &entry.file, &twin.file);
            warn(&format!(
                "{here}: the CRD {name} differs from the one in {there}; this one is used"
            ));
        }
        self.entries.push(entry);
    }

    /// Prints which other objects were skipped.
    pub(crate) fn note_skipped(&self) {
        for object in &self.skipped {
            note(&format!("{object}: skipped: not a CustomResourceDefinition"));
        }
    }

    /// Returns all CRDs in the order in which they were read.
    pub(crate) fn entries(&self) -> &[CatalogEntry] {
        &self.entries
    }

    /// Returns the built-in kinds of the target version.
    pub(crate) fn builtin_kinds(&self) -> BuiltinKinds {
        BuiltinKinds::new(self.target.kubernetes_version)
    }

    /// Returns the CEL environments.
    pub(crate) fn environments(&self) -> &Environments {
        &self.environments
    }

    /// Finds the CRD of a kind.
    pub(crate) fn find(&self, api_version: &str, kind: &str) -> Option<CatalogMatch<'_>> {
        let (entry, version) = *self.kinds.get(api_version)?.get(kind)?;
        let entry = self.entries.get(entry)?;
        Some(CatalogMatch { entry, version })
    }

    /// Returns a suggestion for an unknown kind: another version of the kind, or a similar kind or group.
    pub(crate) fn suggestion(&self, api_version: &str, kind: &str) -> Option<String> {
        let (group, _) = group_version(api_version);
        let builtin = self.builtin_kinds();
        let similar = |a: &str, b: &str| {
            let (a, b) = (a.to_ascii_lowercase(), b.to_ascii_lowercase());
            // A quarter of the length: one typo in a short kind, up to three in a long one.
            let allowed = (a.len().max(b.len()) / 4).clamp(1, 3);
            strsim::osa_distance(&a, &b) <= allowed
        };
        // Built-in kinds have moved between the groups of Kubernetes.
        let moved = |known: &str| builtin.has_group(group) && builtin.has_group(known);
        let distance = |known: &(&str, &str)| match (known.0 == group, known.1 == kind) {
            (true, true) => Some(0),
            (true, false) => similar(known.1, kind).then_some(1),
            (false, true) => (similar(known.0, group) || moved(known.0)).then_some(2),
            (false, false) => None,
        };
        let specs = self.entries.iter().map(|entry| &entry.definition.spec);
        let custom = specs.clone().map(|spec| (&*spec.group, &*spec.names.kind));
        let known = custom.chain(builtin.resources().map(|r| (r.group, r.kind())));
        // `min_by_key` returns the first minimum, so CRDs of the user win over built-in kinds.
        let (_, near) = known
            .filter_map(|known| Some((distance(&known)?, known)))
            .min_by_key(|(distance, _)| *distance)?;
        let custom = specs.filter(|spec| (&*spec.group, &*spec.names.kind) == near);
        let custom = custom.flat_map(|spec| spec.versions().iter().filter(|v| v.served).map(|v| &*v.name));
        let builtin = builtin.resources().filter(|r| (r.group, r.kind()) == near);
        let versions = custom
            .chain(builtin.map(|r| r.version))
            .map(|version| match near.0 {
                "" => version.to_owned(),
                group => format!("{group}/{version}"),
            });
        let versions: Vec<String> = versions.collect();
        Some(format!(
            "did you mean kind {} in {}?",
            near.1,
            versions.join(" or ")
        ))
    }

    /// Returns whether ratcheting is on.
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

    /// Returns the errors with which a cluster refuses a CRD.
    pub(crate) fn refused<'e>(&self, entry: &'e CatalogEntry) -> &'e [FieldError] {
        let refused = || Accepted::create(entry.definition.clone(), &self.setting(entry)).err();
        // `err` is `None` for an accepted CRD: the empty list means accepted, not unknown.
        entry.refused.get_or_init(|| refused().unwrap_or_default())
    }

    /// Returns the errors with which a cluster refuses the update of a CRD.
    pub(crate) fn refused_after(&self, entry: &CatalogEntry, old: &CatalogEntry) -> ErrorList {
        let mut definition = entry.definition.clone();
        // kube-apiserver prepares an update first: it keeps fields whose feature gate is off if they are in use.
        definition.prepare_update(&old.definition, self.target.feature_gates);
        let mut errors = definition.validate_update(&old.definition, &self.setting(entry));
        // Files do not have the metadata that a server sets.
        errors.retain(|error| !error.field().starts_with("metadata."));
        errors
    }

    /// Returns the compiled version of a kind, or why there is none.
    fn resource<'c>(&self, found: CatalogMatch<'c>) -> Result<&'c Arc<Resource>, &'c str> {
        let slot = found.entry.versions.get(found.version);
        let slot = slot.ok_or("the definition has no such version")?;
        slot.get_or_init(|| self.compile(found))
            .as_ref()
            .map_err(String::as_str)
    }

    /// Returns the compiled version of a kind, or a problem.
    pub(crate) fn usable<'c>(&self, found: CatalogMatch<'c>) -> Result<&'c Arc<Resource>, Problem> {
        self.resource(found).map_err(|why| found.entry.unusable(why))
    }

    fn compile(&self, found: CatalogMatch<'_>) -> Result<Arc<Resource>, String> {
        let version = found.version().ok_or("the definition has no such version")?;
        // Callers decide by `refused` whether they use a CRD that a cluster refuses.
        let accepted = Accepted::assume_accepted(found.entry.definition.clone());
        let compiler = rayon::current_thread_index().map_or(0, |n| n + 1);
        // The pool may have grown since; sharing the first compiler is slower but correct.
        let compiler = self.compilers.get(compiler).or(self.compilers.first());
        let compiler = compiler.ok_or("no thread can compile")?;
        // A compiler only caches what it shares. After a panic, the cache is at worst incomplete.
        let mut compiler = compiler.lock().unwrap_or_else(PoisonError::into_inner);
        compiler
            .get_or_insert_with(|| ResourceCompiler::for_version(self.target.kubernetes_version))
            .compile(&accepted, &version.name)
            .map(Arc::new)
            .map_err(|why| format!("version {}: {why}", version.name))
    }
}

/// The treatment of other objects in files with CRDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherObjects {
    /// The command reads them itself.
    Skipped,
    /// The catalog lists them as skipped.
    Listed,
}

/// The kind of CRDs.
const KIND: &str = "CustomResourceDefinition";

/// Returns whether a file may contain CRDs. An unreadable file may; it is reported when it is read.
fn mentions_definitions(source: &InputSource) -> bool {
    let Ok(mut reader) = source.open() else {
        // An unreadable file counts as a match, so that the error is reported by the reader.
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
        // The name may cross the boundary of two reads.
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
    texts: CrdTexts,
    is_named: bool,
) -> Definitions {
    let mut found = Definitions::default();
    if other == OtherObjects::Skipped && memchr::memmem::find(document.text, KIND.as_bytes()).is_none() {
        return found;
    }
    let objects = match known_definitions(document) {
        Ok(objects) => objects,
        Err(problem) => {
            found.problems.push(problem);
            return found;
        }
    };
    let text = (texts == CrdTexts::Kept).then(|| Arc::from(document.text));
    for object in objects {
        // A patch that the user names is meant as a CRD, and its errors are reported.
        if !object.is_definition() || object.is_definition_patch() && !is_named {
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

/// Decodes the objects of a document that is searched for CRDs. A document without the name of their kind has none, and is
/// not of interest if it cannot be decoded.
pub(crate) fn known_definitions(document: &Document<'_>) -> Result<Vec<InputObject>, Problem> {
    document.known_objects().map_err(|problem| {
        let mentions = memchr::memmem::find(document.text, KIND.as_bytes()).is_some();
        match mentions || problem.skip_reason().is_some() {
            true => problem,
            false => problem.skippable("neither valid YAML nor a CustomResourceDefinition"),
        }
    })
}

/// Decodes a CRD.
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
                "the API version {other} of CRDs is unknown: use apiextensions.k8s.io/v1"
            ));
        }
    };
    let name = object.name().to_owned();
    // `spec.validation` exists only in v1beta1, where it is the schema of all versions.
    let one_schema = object.value.at(["spec", "validation"]).is_some();
    let mut received =
        Definition::decode(object.value, api, target.feature_gates).map_err(|e| match name.as_str() {
            "" => format!("the CRD cannot be decoded: {e}"),
            name => format!("the CRD {name} cannot be decoded: {e}"),
        })?;
    // The path of a CRD has no namespace: a cluster removes it.
    received.definition.metadata.remove("namespace");
    let versions = received.definition.spec.versions().len();
    let unknown = received.findings;
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

/// Stored objects, which inputs update.
#[derive(Default)]
pub(crate) struct StoredObjects<'c> {
    objects: BTreeMap<ObjectKey, Value>,
    /// The cluster to search for objects that the files do not have.
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
        // An equal copy is harmless, so only a different one is reported.
        if self.objects.get(&key).is_some_and(|twin| *twin != object) {
            let title = title(kind, namespace, name);
            warn(&format!(
                "{file}: there are several versions of {title}; this one is used"
            ));
        }
        self.objects.insert(key, object);
    }

    /// Returns the stored object of the same group, kind, namespace and name, without asking the cluster.
    pub(crate) fn local(&self, object: &InputObject) -> Option<&Value> {
        self.objects.get(&key(&object.value))
    }

    /// Returns the stored objects with a namespace and name, of any kind. Those of the cluster are not searched.
    pub(crate) fn named(&self, namespace: &str, name: &str) -> impl Iterator<Item = &Value> {
        // kubectl writes to the namespace `default` if neither the file nor the flag names one.
        let namespace = if namespace.is_empty() {
            "default"
        } else {
            namespace
        };
        let objects = self.objects.iter();
        let objects = objects.filter(move |((_, _, ns, n), _)| ns == namespace && n == name);
        objects.map(|(_, object)| object)
    }

    /// Returns the stored object of the same group, kind, namespace and name.
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
    // The version is not part of the key: a stored object is the same in every version of its group.
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
