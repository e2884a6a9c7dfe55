//! The recorded scenarios of a real API server, as far as patches and ownership are concerned.
//!
//! A few lines stand in for the server: definitions are taken as the recording shows them, objects are stored,
//! defaulted and pruned. Steps that fail for a reason outside of this crate (validation, preconditions) are taken as
//! recorded; all others must give the same object, or the same message.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "a test may panic and read files"
)]

use jiff::Timestamp;
use scantling_merge::apply::{
    ApplyError, FieldManager, Force, ScaleMapping, Versions, scale_to_parent, scale_to_subresource,
};
use scantling_merge::fields::FieldPath;
use scantling_merge::json_patch::JsonPatch;
use scantling_merge::merge_patch;
use scantling_merge::typed::ObjectType;
use scantling_schema::default;
use scantling_schema::document::Schema;
use scantling_schema::plan::{Plan, PlanCompiler};
use scantling_schema::prune::{self, NullPolicy, UnknownFields, ValueRole, prune};
use scantling_schema::structural::Interner;
use scantling_value::{Limits, Map, Str, Value, json, yaml};
use std::collections::BTreeMap;
use std::path::PathBuf;

struct Version {
    ty: ObjectType,
    plan: Option<Plan>,
    has_status: bool,
    replicas: Option<FieldPath>,
}

struct Definition {
    kind: String,
    storage: String,
    versions: BTreeMap<String, Version>,
}

const NO_VERSION: &str = "request to convert CR to an invalid group/version: ";

impl Versions for Definition {
    fn object_type(&self, api_version: &str) -> Option<&ObjectType> {
        self.versions.get(api_version).map(|v| &v.ty)
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        if !self.versions.contains_key(api_version) {
            return Err(format!("{NO_VERSION}{api_version}"));
        }
        let mut object = object.clone();
        object
            .as_object_mut()
            .unwrap()
            .insert("apiVersion", api_version.into());
        Ok(object)
    }
}

impl Definition {
    /// The object in a version, without what that version does not have.
    fn shown(&self, object: &Value, api_version: &str) -> Value {
        let mut object = self.convert(object, api_version).unwrap();
        if let Some(plan) = &self.versions[api_version].plan {
            prune(
                plan.root(),
                &mut object,
                ValueRole::Resource,
                &prune::PruneOptions::default(),
            );
        }
        object
    }
}

/// `Scale` has one version and needs no conversion.
struct Scale(ObjectType);

impl Versions for Scale {
    fn object_type(&self, api_version: &str) -> Option<&ObjectType> {
        (api_version == "autoscaling/v1").then_some(&self.0)
    }

    fn convert(&self, object: &Value, _: &str) -> Result<Value, String> {
        Ok(object.clone())
    }
}

#[derive(Default)]
struct Server {
    definitions: BTreeMap<String, Definition>,
    objects: BTreeMap<String, Value>,
}

fn text<'v>(v: &'v Value, path: &[&str]) -> &'v str {
    v.at(path.iter().copied())
        .and_then(Value::as_str)
        .unwrap_or_default()
}

impl Server {
    fn define(&mut self, crd: &Value) {
        let group = text(crd, &["spec", "group"]);
        let mut versions = BTreeMap::new();
        let mut storage = String::new();
        for v in crd.at(["spec", "versions"]).unwrap().as_array().unwrap() {
            let name = format!("{group}/{}", text(v, &["name"]));
            let mut interner = Interner::new();
            let schema = v.at(["schema", "openAPIV3Schema"]);
            let schema = schema.map(|s| Schema::new(s).structural(&mut interner).unwrap());
            let preserve = crd.at(["spec", "preserveUnknownFields"]) == Some(&Value::Bool(true));
            let replicas = text(v, &["subresources", "scale", "specReplicasPath"]);
            let version = Version {
                ty: match &schema {
                    Some(s) if preserve => ObjectType::new(s.clone()).preserving_unknown_fields(),
                    Some(s) => ObjectType::new(s.clone()),
                    None => ObjectType::free(),
                },
                plan: schema.map(|s| PlanCompiler::new().compile(&s)),
                has_status: v.at(["subresources", "status"]).is_some(),
                replicas: (!replicas.is_empty())
                    .then(|| FieldPath::from_names(replicas.trim_start_matches('.').split('.'))),
            };
            if v.get("storage") == Some(&Value::Bool(true)) {
                storage.clone_from(&name);
            }
            versions.insert(name, version);
        }
        let key = format!("{group}/{}", text(crd, &["spec", "names", "plural"]));
        let kind = text(crd, &["spec", "names", "kind"]).to_owned();
        self.definitions.insert(
            key,
            Definition {
                kind,
                storage,
                versions,
            },
        );
    }
}

/// The parts of a path: `/apis/group/version/[namespaces/ns/]plural[/name[/subresource]]?query`.
struct Target {
    definition: String,
    api_version: String,
    object: String,
    name: String,
    namespace: String,
    subresource: String,
    query: BTreeMap<String, String>,
}

fn target(path: &str) -> Option<Target> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut parts = path.strip_prefix("/apis/")?.split('/');
    let (group, version) = (parts.next()?, parts.next()?);
    let mut next = parts.next()?;
    let mut namespace = "";
    if next == "namespaces" {
        namespace = parts.next()?;
        next = parts.next()?;
    }
    let name = parts.next().unwrap_or_default();
    let pairs = query.split('&').filter_map(|p| p.split_once('='));
    Some(Target {
        definition: format!("{group}/{next}"),
        api_version: format!("{group}/{version}"),
        object: format!("{group}/{next}/{namespace}/{name}"),
        name: name.into(),
        namespace: namespace.into(),
        subresource: parts.next().unwrap_or_default().into(),
        query: pairs.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
    })
}

enum Answer {
    Object(Value),
    Error(String),
    /// This crate has nothing to say about it.
    Elsewhere,
}

fn metadata(object: &mut Value) -> &mut Map {
    let object = object.as_object_mut().unwrap();
    object
        .get_or_insert_with("metadata", || Value::Object(Map::new()))
        .as_object_mut()
        .unwrap()
}

fn finish(object: &mut Value, version: &Version) {
    if let Some(plan) = &version.plan {
        let options = prune::PruneOptions {
            nulls: NullPolicy::Drop,
            unknown: UnknownFields::Ignore,
        };
        prune(plan.root(), object, ValueRole::Resource, &options);
        default::fill(plan.root(), object).unwrap();
    }
}

fn now(step: usize) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + 10 * i64::try_from(step).unwrap()).unwrap()
}

impl Server {
    fn write(&mut self, method: &str, content_type: &str, path: &str, body: &Value, step: usize) -> Answer {
        let Some(mut t) = target(path) else {
            return Answer::Elsewhere;
        };
        let Some(definition) = self.definitions.get(&t.definition) else {
            return Answer::Elsewhere;
        };
        let Some(version) = definition.versions.get(&t.api_version) else {
            return Answer::Elsewhere;
        };
        if method == "POST" {
            t.name = text(body, &["metadata", "name"]).into();
            t.object += &t.name;
        }
        let live = self.objects.get(&t.object).map(|o| {
            // Stored objects are defaulted by the version that they are stored in.
            let mut live = o.clone();
            finish(&mut live, &definition.versions[&definition.storage]);
            definition.shown(&live, &t.api_version)
        });
        let manager = t.query.get("fieldManager").map_or("replay", String::as_str);
        let force = t.query.get("force").is_some_and(|f| f != "false" && f != "0");
        let force = if force { Force::Yes } else { Force::No };

        if t.subresource == "scale" {
            let Some(live) = live else {
                return Answer::Elsewhere;
            };
            return self.scale(&t, content_type, method, &live, body, manager, force, step);
        }
        let mut fields =
            FieldManager::new(definition, &t.api_version, &definition.kind).subresource(&t.subresource);
        for (name, version) in &definition.versions {
            if t.subresource == "status" {
                fields = fields.resets(name, ["metadata", "spec"]);
            } else if version.has_status && *name == t.api_version {
                fields = fields.resets(name, ["status"]);
            }
        }
        let patched = match (method, content_type) {
            ("PATCH", "application/apply-patch+yaml") => {
                match fields.apply(live.as_ref(), body, manager, force, now(step)) {
                    Ok(mut object) => {
                        if let Some(plan) = &version.plan {
                            default::fill(plan.root(), &mut object).unwrap();
                            prune(
                                plan.root(),
                                &mut object,
                                ValueRole::Resource,
                                &prune::PruneOptions::default(),
                            );
                        }
                        object
                    }
                    Err(ApplyError::Internal(e) | ApplyError::BadRequest(e)) => return Answer::Error(e),
                    Err(ApplyError::Conflicts(c)) => return Answer::Error(c.to_string()),
                }
            }
            (_, content_type) => {
                let mut new = match (&live, content_type) {
                    (Some(live), "application/merge-patch+json") => {
                        match merge_patch::apply(live.clone(), body.clone()) {
                            Ok(new) => new,
                            Err(e) => return Answer::Error(e.to_string()),
                        }
                    }
                    (Some(live), "application/json-patch+json") => {
                        let patch = JsonPatch::decode(body.to_json().as_bytes(), Limits::SERVER);
                        match patch.and_then(|p| p.apply(live.clone())) {
                            Ok(new) => new,
                            Err(e) => return Answer::Error(e.to_string()),
                        }
                    }
                    _ => body.clone(),
                };
                if new.as_object().is_none() {
                    return Answer::Elsewhere;
                }
                finish(&mut new, version);
                fields.update(live.as_ref(), new, manager, now(step)).object
            }
        };
        let mut stored = patched;
        if !matches!(stored.get("metadata"), None | Some(Value::Object(_))) {
            return Answer::Elsewhere;
        }
        if t.subresource == "status" {
            // The status comes from the request, all else but the owners stays.
            let Some(live) = live else {
                return Answer::Elsewhere;
            };
            let mut kept = live;
            match stored.get("status").cloned() {
                Some(status) => kept.as_object_mut().unwrap().insert("status", status),
                None => kept.as_object_mut().unwrap().remove("status"),
            };
            match metadata(&mut stored).remove("managedFields") {
                Some(entries) => metadata(&mut kept).insert("managedFields", entries),
                None => metadata(&mut kept).remove("managedFields"),
            };
            stored = kept;
        } else if version.has_status {
            let status = live.as_ref().and_then(|l| l.get("status")).cloned();
            match status {
                Some(status) => stored.as_object_mut().unwrap().insert("status", status),
                None => stored.as_object_mut().unwrap().remove("status"),
            };
        }
        if !t.namespace.is_empty() {
            metadata(&mut stored).insert("namespace", t.namespace.as_str().into());
        }
        for server_owned in ["resourceVersion", "creationTimestamp", "generation", "selfLink"] {
            metadata(&mut stored).remove(server_owned);
        }
        metadata(&mut stored).insert("uid", "u".into());
        let in_storage = definition.shown(&stored, &definition.storage);
        let shown = definition.shown(&in_storage, &t.api_version);
        if !t.query.contains_key("dryRun") {
            self.objects.insert(t.object, in_storage);
        }
        Answer::Object(shown)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a request")]
    fn scale(
        &mut self,
        t: &Target,
        content_type: &str,
        method: &str,
        live: &Value,
        body: &Value,
        manager: &str,
        force: Force,
        step: usize,
    ) -> Answer {
        let definition = &self.definitions[&t.definition];
        let mapping = definition.versions.iter();
        let mapping = ScaleMapping(
            mapping
                .map(|(name, v)| (Str::from(name.as_str()), v.replicas.clone()))
                .collect(),
        );
        let Some(path) = definition.versions[&t.api_version].replicas.clone() else {
            return Answer::Elsewhere;
        };
        let names: Vec<String> = path.0.iter().map(|e| e.to_string().replace('.', "")).collect();
        let entries = live
            .at(["metadata", "managedFields"])
            .and_then(Value::as_array)
            .unwrap_or_default();
        let replicas = live
            .at(names.iter().map(String::as_str))
            .cloned()
            .unwrap_or_default();
        let mut scale = json::decode(
            br#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"uid":"u"},"spec":{}}"#,
            Limits::SAFE,
        )
        .unwrap();
        metadata(&mut scale).insert("name", t.name.as_str().into());
        metadata(&mut scale).insert("namespace", t.namespace.as_str().into());
        let set_replicas = |scale: &mut Value, replicas: Value| {
            let spec = scale.as_object_mut().unwrap().get_mut("spec").unwrap();
            spec.as_object_mut().unwrap().insert("replicas", replicas);
        };
        set_replicas(&mut scale, replicas);
        let entries_in_scale = scale_to_subresource(entries, &mapping).unwrap();
        if !entries_in_scale.is_empty() {
            metadata(&mut scale).insert("managedFields", Value::Array(entries_in_scale));
        }
        let versions = Scale(ObjectType::scale());
        let fields = FieldManager::new(&versions, "autoscaling/v1", "Scale")
            .subresource("scale")
            .without_beginning(&format!("{NO_VERSION}autoscaling/v1"));
        let new = match (method, content_type) {
            ("PATCH", "application/apply-patch+yaml") => {
                match fields.apply(Some(&scale), body, manager, force, now(step)) {
                    Ok(new) => new,
                    Err(e) => return Answer::Error(e.to_string()),
                }
            }
            ("PATCH", "application/merge-patch+json") => {
                let new = merge_patch::apply(scale.clone(), body.clone()).unwrap();
                fields.update(Some(&scale), new, manager, now(step)).object
            }
            ("PATCH", "application/json-patch+json") => {
                let patch = JsonPatch::decode(body.to_json().as_bytes(), Limits::SERVER);
                match patch.and_then(|p| p.apply(scale.clone())) {
                    Ok(new) => fields.update(Some(&scale), new, manager, now(step)).object,
                    Err(e) => return Answer::Error(e.to_string()),
                }
            }
            _ => {
                fields
                    .update(Some(&scale), body.clone(), manager, now(step))
                    .object
            }
        };
        let after = new
            .at(["metadata", "managedFields"])
            .and_then(Value::as_array)
            .unwrap_or_default();
        let merged = scale_to_parent(entries, after, &mapping, &t.api_version).unwrap();
        let mut stored = live.clone();
        let replicas = new.at(["spec", "replicas"]).cloned().unwrap_or_default();
        let mut at = &mut stored;
        for name in &names[..names.len() - 1] {
            let Some(members) = at.as_object_mut() else {
                // Whoever sets the number refuses what is in its way.
                return Answer::Elsewhere;
            };
            at = members.get_or_insert_with(name, || Value::Object(Map::new()));
        }
        let Some(members) = at.as_object_mut() else {
            return Answer::Elsewhere;
        };
        members.insert(names[names.len() - 1].as_str(), replicas);
        metadata(&mut stored).insert("managedFields", Value::Array(merged));
        let in_storage = definition.convert(&stored, &definition.storage).unwrap();
        self.objects.insert(t.object.clone(), in_storage);
        Answer::Elsewhere
    }
}

/// What a recording keeps of an object, and this crate decides.
fn comparable(mut object: Value) -> Value {
    let metadata = metadata(&mut object);
    for server_owned in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "deletionTimestamp",
    ] {
        metadata.remove(server_owned);
    }
    if let Some(Value::Array(entries)) = metadata.get_mut("managedFields") {
        for entry in entries.iter_mut() {
            entry.as_object_mut().unwrap().remove("time");
        }
        // The recording sorts entries of the same second by what it can.
        entries.sort_by_key(Value::to_json);
    }
    object
}

/// Messages that come from this crate.
fn is_ours(message: &str) -> bool {
    [
        "Apply failed",
        "failed to create typed",
        "metadata.managedFields must be nil",
        "failed to create manager",
        NO_VERSION,
    ]
    .iter()
    .any(|p| message.starts_with(p))
}

/// Scenarios are written for readers of YAML that take `y` and `n` for strings.
fn plain_letters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut quote = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let alone =
            matches!(before, ' ' | '{' | '[' | '\n') && rest.peek().is_none_or(|c| " :,}]\n".contains(*c));
        match quote {
            Some(q) if c == q => quote = None,
            None if matches!(c, '"' | '\'') && " {[,(".contains(before) => quote = Some(c),
            _ => {}
        }
        if matches!(c, 'y' | 'n' | 'Y' | 'N') && alone && quote.is_none() {
            out.extend(['"', c, '"']);
        } else {
            out.push(c);
        }
        before = c;
    }
    out
}

fn run(area: &str, wanted: impl Fn(&str) -> bool) -> (usize, usize, Vec<String>) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/scenarios");
    let mut failures = Vec::new();
    let (mut compared, mut skipped) = (0, 0);
    let mut files: Vec<_> = std::fs::read_dir(root.join(area))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    for file in files
        .iter()
        .filter(|f| f.extension().is_some_and(|e| e == "yaml"))
    {
        let bytes = std::fs::read(file).unwrap();
        for document in yaml::documents(&bytes) {
            let scenario = String::from_utf8_lossy(document.unwrap().text).into_owned();
            let decoded = yaml::decode(plain_letters(&scenario).as_bytes(), Limits::SAFE);
            // Some scenarios are about texts that are hard to read, and hold them.
            let Ok(scenario) = decoded.or_else(|_| yaml::decode(scenario.as_bytes(), Limits::SAFE)) else {
                continue;
            };
            let name = text(&scenario, &["name"]).to_owned();
            if scenario.is_null() || !wanted(&name) {
                continue;
            }
            let golden = root
                .join(area)
                .join("golden")
                .join(format!("{}.json", name.replace('/', "__")));
            let Ok(golden) = std::fs::read(golden) else {
                continue;
            };
            let golden = json::decode(&golden, Limits::SAFE).unwrap();
            let steps = scenario.get("steps").and_then(Value::as_array).unwrap();
            let mut server = Server::default();
            for (i, (step, expected)) in steps.iter().zip(golden.as_array().unwrap()).enumerate() {
                let Some((method, path)) = ["POST", "PUT", "PATCH", "DELETE"]
                    .iter()
                    .find_map(|m| Some((*m, step.get(m)?.as_str()?)))
                else {
                    continue;
                };
                let status = expected.get("status").and_then(Value::as_int).unwrap_or_default();
                let succeeded = (200..300).contains(&status);
                let recorded = expected.get("body").cloned().unwrap_or_default();
                if path.starts_with("/apis/apiextensions.k8s.io/") {
                    if succeeded && recorded.at(["spec", "versions"]).is_some() {
                        server.define(&recorded);
                    }
                    continue;
                }
                if method == "DELETE" {
                    if let (true, Some(t)) = (succeeded, target(path)) {
                        server.objects.retain(|key, _| !key.starts_with(&t.object));
                    }
                    continue;
                }
                let body = match (step.get("body"), step.get("raw").and_then(Value::as_str)) {
                    (Some(body), _) => body.clone(),
                    (None, Some(raw)) => match yaml::decode(raw.as_bytes(), Limits::SAFE) {
                        Ok(body) => body,
                        Err(_) => continue,
                    },
                    _ => continue,
                };
                let content_type = text(step, &["contentType"])
                    .split(';')
                    .next()
                    .unwrap_or_default()
                    .to_owned();
                let before = server.objects.clone();
                let message = text(&recorded, &["message"]).to_owned();
                let at = format!("{name} step {i} ({method} {path})");
                match server.write(method, &content_type, path, &body, i) {
                    Answer::Object(object) if succeeded && recorded.get("metadata").is_some() => {
                        compared += 1;
                        let (ours, theirs) = (comparable(object), comparable(recorded));
                        if ours != theirs {
                            failures.push(format!(
                                "{at}\n  ours   {}\n  theirs {}",
                                ours.to_json(),
                                theirs.to_json()
                            ));
                        }
                    }
                    Answer::Error(ours) if is_ours(&message) || is_ours(&ours) => {
                        compared += 1;
                        if ours != message {
                            failures.push(format!("{at}\n  ours   {ours}\n  theirs {message}"));
                        }
                    }
                    Answer::Object(object) if is_ours(&message) => {
                        let ours = object.to_json();
                        failures.push(format!("{at}\n  ours   {ours}\n  theirs {message}"));
                    }
                    _ => skipped += 1,
                }
                if !succeeded {
                    server.objects = before;
                }
            }
        }
    }
    (compared, skipped, failures)
}

#[track_caller]
fn check(area: &str, wanted: impl Fn(&str) -> bool, at_least: usize) {
    let (compared, skipped, failures) = run(area, wanted);
    eprintln!("{area}: {compared} answers compared, {skipped} outside of this crate");
    let shown = failures.join("\n");
    assert!(
        failures.is_empty(),
        "{} of {compared} differ:\n{shown}",
        failures.len()
    );
    assert!(compared >= at_least, "only {compared} answers were compared");
}

#[test]
fn apply() {
    check("apply", is_here, 200);
}

/// Scenarios whose objects also depend on what is not in this crate: deletion, names that a server makes, how metadata
/// and queries are read, what has a scale, and in which form an answer is wanted.
const ELSEWHERE: &[&str] = &[
    "apply/dry-run-and-no-ops",
    "apply/metadata-that-are-nothing",
    "apply/metadata-that-cannot-be-read",
    "apply/subresources-at-two-versions",
    "api/dry-run-of-everything",
    "api/owners-twice",
    "api/metadata-of-everything",
    "api/scope-name-and-kind-mismatches",
    "api/tables-of-every-column",
    "flows/deletion-in-every-way",
    "flows/watch-two-versions-and-status",
    "fieldvalidation/duplicates-in-every-verb",
    "fieldvalidation/every-verb-over-nested-places",
    "apply/nothing-in-another-version",
    "api/collections-and-their-options",
    "api/patch-options",
    "api/patch-changes-identity",
    "api/delete-propagation",
    "api/finalizers",
    "api/partial-object-metadata",
    "api/cluster-scoped-paths",
    "api/create-conflicts",
    "api/field-manager-parameter",
    "api/accept-forms-of-writes-and-errors",
    "api/delete-query-oddities",
    "api/write-query-oddities",
    "flows/generate-name",
    "flows/scale-of-what-has-none",
    "flows/gone-version",
    "flows/finalizers",
    "flows/deletecollection-selectors",
    "flows/put-no-change-keeps-version",
    "flows/put-nulls",
    "flows/put-owner-references",
    "flows/put-generation-and-identity",
    "flows/put-against-rules",
    "flows/put-every-oddity",
    "flows/watch-a-slow-deletion",
    "flows/watch-what-is-selected",
    "flows/lists-at-versions",
    "flows/a-definition-waits-for-its-objects",
    "fieldvalidation/json-patch-findings",
    "fieldvalidation/merge-patch-findings",
    "fieldvalidation/parameter-spellings",
    "fieldvalidation/root-metadata",
    "fieldvalidation/embedded-resource",
    "fieldvalidation/case-mismatch",
    "fieldvalidation/yaml-scalars-and-keys",
];

fn is_here(name: &str) -> bool {
    !ELSEWHERE.iter().any(|prefix| name.starts_with(prefix))
}

#[test]
fn flows() {
    check("flows", is_here, 150);
}

#[test]
fn api() {
    check("api", is_here, 45);
}

#[test]
fn field_validation() {
    check("fieldvalidation", is_here, 50);
}
