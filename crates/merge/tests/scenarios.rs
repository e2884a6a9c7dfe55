//! Replays the recorded scenarios that depend on patches and field ownership.
//!
//! The adapter accepts CRDs as recorded, and stores, defaults and prunes objects. Steps that fail for a
//! reason outside this crate (validation, preconditions) are skipped; all others must return the recorded
//! object or message.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

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
use scantling_testkit::compare::same;
use scantling_testkit::replay::{StepVerdict, replay};
use scantling_testkit::{KnownDifferences, ResourcePath, ScenarioStep};
use scantling_value::{Limits, Map, Str, Value, json, yaml};
use std::collections::BTreeMap;

struct RecordedVersion {
    ty: ObjectType,
    plan: Option<Plan>,
    has_status: bool,
    replicas: Option<FieldPath>,
}

struct RecordedDefinition {
    kind: String,
    storage: String,
    versions: BTreeMap<String, RecordedVersion>,
}

const NO_VERSION: &str = "request to convert CR to an invalid group/version: ";

impl Versions for RecordedDefinition {
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

impl RecordedDefinition {
    /// Returns the object in a version, without fields that the version does not have.
    fn converted(&self, object: &Value, api_version: &str) -> Value {
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
struct ScaleVersions(ObjectType);

impl Versions for ScaleVersions {
    fn object_type(&self, api_version: &str) -> Option<&ObjectType> {
        (api_version == "autoscaling/v1").then_some(&self.0)
    }

    fn convert(&self, object: &Value, _: &str) -> Result<Value, String> {
        Ok(object.clone())
    }
}

#[derive(Default)]
struct RecordedServer {
    definitions: BTreeMap<String, RecordedDefinition>,
    objects: BTreeMap<String, Value>,
}

fn text<'v>(v: &'v Value, path: &[&str]) -> &'v str {
    v.at(path.iter().copied())
        .and_then(Value::as_str)
        .unwrap_or_default()
}

impl RecordedServer {
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
            let version = RecordedVersion {
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
        let key = format!("{}.{group}", text(crd, &["spec", "names", "plural"]));
        let kind = text(crd, &["spec", "names", "kind"]).to_owned();
        self.definitions.insert(
            key,
            RecordedDefinition {
                kind,
                storage,
                versions,
            },
        );
    }
}

enum WriteAnswer {
    Object(Value),
    Error(String),
    /// This crate does not decide the step.
    Elsewhere,
}

fn metadata(object: &mut Value) -> &mut Map {
    let object = object.as_object_mut().unwrap();
    object
        .get_or_insert_with("metadata", || Value::Object(Map::new()))
        .as_object_mut()
        .unwrap()
}

fn finish(object: &mut Value, version: &RecordedVersion) {
    if let Some(plan) = &version.plan {
        let options = prune::PruneOptions {
            nulls: NullPolicy::Drop,
            unknown: UnknownFields::Ignore,
        };
        prune(plan.root(), object, ValueRole::Resource, &options);
        default::fill(plan.root(), object).unwrap();
    }
}

fn now(number: usize) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + 10 * i64::try_from(number).unwrap()).unwrap()
}

impl RecordedServer {
    fn write(
        &mut self,
        number: usize,
        step: &ScenarioStep,
        t: &ResourcePath<'_>,
        body: &Value,
    ) -> WriteAnswer {
        let (method, content_type) = (
            step.verb,
            step.content_type.as_deref().map_or("", |_| step.media_type()),
        );
        let Some(definition) = self.definitions.get(&t.definition_name()) else {
            return WriteAnswer::Elsewhere;
        };
        let api_version = t.api_version();
        let Some(version) = definition.versions.get(&api_version) else {
            return WriteAnswer::Elsewhere;
        };
        let key = match method {
            "POST" => t.object_key(text(body, &["metadata", "name"])),
            _ => t.object_key(t.name.unwrap_or_default()),
        };
        let subresource = t.subresource.unwrap_or_default();
        let live = self.objects.get(&key).map(|o| {
            // Stored objects are defaulted by their storage version.
            let mut live = o.clone();
            finish(&mut live, &definition.versions[&definition.storage]);
            definition.converted(&live, &api_version)
        });
        let manager = step.query_value("fieldManager").unwrap_or("replay");
        let force = step
            .query_value("force")
            .is_some_and(|f| f != "false" && f != "0");
        let force = if force { Force::Yes } else { Force::No };

        if subresource == "scale" {
            let Some(live) = live else {
                return WriteAnswer::Elsewhere;
            };
            return self.scale(number, step, t, &live, body, manager, force);
        }
        let mut fields =
            FieldManager::new(definition, &api_version, &definition.kind).subresource(subresource);
        for (name, version) in &definition.versions {
            if subresource == "status" {
                fields = fields.resets_paths(name, [&["metadata"][..], &["spec"]]);
            } else if version.has_status && *name == api_version {
                fields = fields.resets_paths(name, [&["status"][..]]);
            }
        }
        let patched = match (method, content_type) {
            ("PATCH", "application/apply-patch+yaml") => {
                match fields.apply(live.as_ref(), body, manager, force, now(number)) {
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
                    Err(ApplyError::Internal(e) | ApplyError::BadRequest(e)) => return WriteAnswer::Error(e),
                    Err(ApplyError::Conflicts(c)) => return WriteAnswer::Error(c.to_string()),
                }
            }
            (_, content_type) => {
                let mut new = match (&live, content_type) {
                    (Some(live), "application/merge-patch+json") => {
                        match merge_patch::apply(live.clone(), body.clone()) {
                            Ok(new) => new,
                            Err(e) => return WriteAnswer::Error(e.to_string()),
                        }
                    }
                    (Some(live), "application/json-patch+json") => {
                        let patch = JsonPatch::decode(body.to_json().as_bytes(), Limits::SERVER);
                        match patch.and_then(|p| p.apply(live.clone())) {
                            Ok(new) => new,
                            Err(e) => return WriteAnswer::Error(e.to_string()),
                        }
                    }
                    _ => body.clone(),
                };
                if new.as_object().is_none() {
                    return WriteAnswer::Elsewhere;
                }
                finish(&mut new, version);
                fields.update(live.as_ref(), new, manager, now(number)).object
            }
        };
        let mut stored = patched;
        if !matches!(stored.get("metadata"), None | Some(Value::Object(_))) {
            return WriteAnswer::Elsewhere;
        }
        if subresource == "status" {
            // The status comes from the request; everything else except the owners stays.
            let Some(live) = live else {
                return WriteAnswer::Elsewhere;
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
        if let Some(namespace) = t.namespace {
            metadata(&mut stored).insert("namespace", namespace.into());
        }
        for server_owned in ["resourceVersion", "creationTimestamp", "generation", "selfLink"] {
            metadata(&mut stored).remove(server_owned);
        }
        metadata(&mut stored).insert("uid", "u".into());
        let in_storage = definition.converted(&stored, &definition.storage);
        let shown = definition.converted(&in_storage, &api_version);
        if step.query_value("dryRun").is_none() {
            self.objects.insert(key, in_storage);
        }
        WriteAnswer::Object(shown)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a request")]
    fn scale(
        &mut self,
        number: usize,
        step: &ScenarioStep,
        t: &ResourcePath<'_>,
        live: &Value,
        body: &Value,
        manager: &str,
        force: Force,
    ) -> WriteAnswer {
        let (method, content_type) = (
            step.verb,
            step.content_type.as_deref().map_or("", |_| step.media_type()),
        );
        let (api_version, key) = (t.api_version(), t.object_key(t.name.unwrap_or_default()));
        let definition = &self.definitions[&t.definition_name()];
        let mapping = definition.versions.iter();
        let mapping = ScaleMapping(
            mapping
                .map(|(name, v)| (Str::from(name.as_str()), v.replicas.clone()))
                .collect(),
        );
        let Some(path) = definition.versions[&api_version].replicas.clone() else {
            return WriteAnswer::Elsewhere;
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
            br#"{"apiVersion":"autoscaling/v1","kind":"ScaleVersions","metadata":{"uid":"u"},"spec":{}}"#,
            Limits::SAFE,
        )
        .unwrap();
        metadata(&mut scale).insert("name", t.name.unwrap_or_default().into());
        metadata(&mut scale).insert("namespace", t.namespace.unwrap_or_default().into());
        let set_replicas = |scale: &mut Value, replicas: Value| {
            let spec = scale.as_object_mut().unwrap().get_mut("spec").unwrap();
            spec.as_object_mut().unwrap().insert("replicas", replicas);
        };
        set_replicas(&mut scale, replicas);
        let entries_in_scale = scale_to_subresource(entries, &mapping).unwrap();
        if !entries_in_scale.is_empty() {
            metadata(&mut scale).insert("managedFields", Value::Array(entries_in_scale));
        }
        let versions = ScaleVersions(ObjectType::scale());
        let fields = FieldManager::new(&versions, "autoscaling/v1", "Scale")
            .subresource("scale")
            .without_beginning(&format!("{NO_VERSION}autoscaling/v1"));
        let new = match (method, content_type) {
            ("PATCH", "application/apply-patch+yaml") => {
                match fields.apply(Some(&scale), body, manager, force, now(number)) {
                    Ok(new) => new,
                    Err(e) => return WriteAnswer::Error(e.to_string()),
                }
            }
            ("PATCH", "application/merge-patch+json") => {
                let new = merge_patch::apply(scale.clone(), body.clone()).unwrap();
                fields.update(Some(&scale), new, manager, now(number)).object
            }
            ("PATCH", "application/json-patch+json") => {
                let patch = JsonPatch::decode(body.to_json().as_bytes(), Limits::SERVER);
                match patch.and_then(|p| p.apply(scale.clone())) {
                    Ok(new) => fields.update(Some(&scale), new, manager, now(number)).object,
                    Err(e) => return WriteAnswer::Error(e.to_string()),
                }
            }
            _ => {
                fields
                    .update(Some(&scale), body.clone(), manager, now(number))
                    .object
            }
        };
        let after = new
            .at(["metadata", "managedFields"])
            .and_then(Value::as_array)
            .unwrap_or_default();
        let merged = scale_to_parent(entries, after, &mapping, &api_version).unwrap();
        let mut stored = live.clone();
        let replicas = new.at(["spec", "replicas"]).cloned().unwrap_or_default();
        let mut at = &mut stored;
        for name in &names[..names.len() - 1] {
            let Some(members) = at.as_object_mut() else {
                // A parent of the replicas field is not an object: the server refuses that elsewhere.
                return WriteAnswer::Elsewhere;
            };
            at = members.get_or_insert_with(name, || Value::Object(Map::new()));
        }
        let Some(members) = at.as_object_mut() else {
            return WriteAnswer::Elsewhere;
        };
        members.insert(names[names.len() - 1].as_str(), replicas);
        metadata(&mut stored).insert("managedFields", Value::Array(merged));
        let in_storage = definition.convert(&stored, &definition.storage).unwrap();
        self.objects.insert(key, in_storage);
        WriteAnswer::Elsewhere
    }
}

/// The parts of an object that recordings contain and this crate decides.
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
        // The order of entries with the same time is not recorded.
        entries.sort_by_key(Value::to_json);
    }
    object
}

/// Returns whether a message comes from this crate.
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

impl RecordedServer {
    fn step(&mut self, number: usize, step: &ScenarioStep) -> StepVerdict {
        let target = ResourcePath::parse(&step.path)?;
        let recorded = step.answer();
        if step.verb == "GET" {
            return None;
        }
        if target.is_definition() {
            if step.succeeds() && recorded.at(["spec", "versions"]).is_some() {
                self.define(recorded);
            }
            return None;
        }
        if step.verb == "DELETE" {
            if step.succeeds() {
                let prefix = target.object_key(target.name.unwrap_or_default());
                self.objects.retain(|key, _| !key.starts_with(&prefix));
            }
            return None;
        }
        let body = yaml::decode(step.body.as_ref()?.as_bytes(), Limits::SAFE).ok()?;
        let before = self.objects.clone();
        let message = text(recorded, &["message"]);
        let verdict = match self.write(number, step, &target, &body) {
            WriteAnswer::Object(object) if step.succeeds() && recorded.get("metadata").is_some() => {
                let (ours, theirs) = (comparable(object), comparable(recorded.clone()));
                Some(same("object", vec![ours.to_json()], vec![theirs.to_json()]))
            }
            WriteAnswer::Error(ours) if is_ours(message) || is_ours(&ours) => {
                Some(same("message", vec![ours], vec![message.to_owned()]))
            }
            WriteAnswer::Object(object) if is_ours(message) => {
                Some(Err(format!("  object {}\n  wanted {message}", object.to_json())))
            }
            _ => None,
        };
        if !step.succeeds() {
            self.objects = before;
        }
        verdict
    }
}

fn check(area: &str, at_least: usize) {
    let known = KnownDifferences::parse(include_str!("scenarios/known_differences.txt"));
    replay(
        "merge",
        area,
        &known,
        at_least,
        RecordedServer::default,
        RecordedServer::step,
    );
}

#[test]
fn apply() {
    check("apply", 200);
}

#[test]
fn flows() {
    check("flows", 150);
}

#[test]
fn api() {
    check("api", 45);
}

#[test]
fn field_validation() {
    check("fieldvalidation", 50);
}
