//! The life of one object: created, updated, patched, read and deleted.

use crate::CompareError;
use crate::answer::{Answer, differences};
use crate::corpus::{Corpus, NAMESPACE};
use crate::minimise::minimise;
use crate::mutate::Mutator;
use crate::patch;
use crate::report::RunReport;
use crate::request::{JSON, PROTOBUF, PairRequest, SEGMENT, TABLE, VERSION, YAML};
use crate::rng::Rng;
use crate::servers::Pair;
use percent_encoding::utf8_percent_encode;
use scantling_apitypes::{ApiResource, ApiSubresource, Scope, TypeDef, TypeTable};
use scantling_value::{Map, Value};

/// Kinds that are left out unless they are named. CRDs have their own scenarios; an APIService may redirect requests,
/// and gets its conditions at any time.
const EXCLUDED: &[&str] = &["CustomResourceDefinition", "APIService"];

/// A resource to write objects of.
pub(crate) struct Target {
    pub(crate) resource: &'static ApiResource,
    definition: &'static TypeDef,
    /// The path of all objects.
    path: String,
}

impl Target {
    /// The resources with recorded objects; of the given kinds, if there are any.
    pub(crate) fn all(corpus: &Corpus, kinds: &[String]) -> Result<Vec<Target>, CompareError> {
        let table = TypeTable::latest();
        let mut targets: Vec<Target> = Vec::new();
        for resource in table.resources() {
            let definition = table.kind(resource.group, resource.version, resource.kind());
            let Some(definition) = definition.filter(|d| !corpus.objects(d).is_empty()) else {
                continue;
            };
            let is_wanted = match kinds {
                [] => !EXCLUDED.contains(&resource.kind()),
                kinds => kinds.iter().any(|kind| kind == resource.kind()),
            };
            if is_wanted {
                targets.push(Target::new(resource, definition));
            }
        }
        match targets.is_empty() {
            true => Err(format!("no recorded objects of {}", kinds.join(", ")).into()),
            false => Ok(targets),
        }
    }

    /// The subresources that need no kubelet.
    fn subresources(&self) -> Vec<&'static ApiSubresource> {
        let all = self.resource.subresources.iter();
        all.filter(|sub| !sub.kind().2.ends_with("Options")).collect()
    }

    fn new(resource: &'static ApiResource, definition: &'static TypeDef) -> Target {
        let root = match resource.group {
            "" => format!("/api/{}", resource.version),
            group => format!("/apis/{group}/{}", resource.version),
        };
        let namespace = match resource.scope() {
            Scope::Namespaced => format!("/namespaces/{NAMESPACE}"),
            Scope::Cluster => String::new(),
        };
        Target {
            resource,
            definition,
            path: format!("{root}{namespace}/{}", resource.name),
        }
    }
}

/// Creates an object and works on it. The episode ends with the first difference.
pub(crate) async fn run(
    pair: &mut Pair,
    corpus: &mut Corpus,
    target: &Target,
    rng: &mut Rng,
    report: &mut RunReport,
) -> Result<(), CompareError> {
    let mut requests = Vec::new();
    let mut object: Option<Value> = None;
    for _ in 0..7 {
        let request = Choice { corpus, target, rng }.request(object.as_ref());
        let [theirs, ours] = pair.send(&request).await?;
        requests.push(request.clone());
        let found = differences(&theirs, &ours);
        report.count(&theirs, found.is_empty());
        if !found.is_empty() {
            pair.clean_up().await?;
            if report.is_new(target.resource.kind(), &found) {
                let smallest = minimise(pair, requests, &found).await?;
                report.add(&smallest);
            }
            return Ok(());
        }
        let is_kept = theirs.is_success() && !request.path.contains("dryRun") && request.method != "GET";
        if request.method == "DELETE" && is_kept {
            break;
        }
        if let Some(stored) = stored(&theirs, target).filter(|_| is_kept) {
            if object.is_none()
                && let Some(body) = request.body
            {
                corpus.add_object(target.definition, body);
            }
            object = Some(stored);
        }
    }
    pair.clean_up().await
}

/// The returned object of the kind, as a client would send it back.
fn stored(answer: &Answer, target: &Target) -> Option<Value> {
    let object = answer.object()?;
    if object.get_str("kind") != target.resource.kind() {
        return None;
    }
    // JSON escapes the brackets of blanked values.
    let text = object.to_json().replace("\\u003cuid\\u003e", "${uid}");
    let text = text.replace("\\u003ctime\\u003e", "2026-01-01T00:00:00Z");
    let decoded = scantling_value::json::decode(text.as_bytes(), scantling_value::Limits::SAFE);
    decoded.ok()
}

/// Chooses requests.
struct Choice<'c> {
    corpus: &'c Corpus,
    target: &'c Target,
    rng: &'c mut Rng,
}

impl Choice<'_> {
    fn request(&mut self, object: Option<&Value>) -> PairRequest {
        let Some(object) = object else {
            return self.create();
        };
        let name = utf8_percent_encode(object.str_at(["metadata", "name"]), SEGMENT);
        let path = format!("{}/{name}", self.target.path);
        match self.rng.below(20) {
            0..=6 => self.write(&path, object, None),
            7..=10 => self.patch(&path, object, None),
            11..=15 => match self.rng.pick(&self.target.subresources()) {
                Some(sub) => self.subresource(&path, object, sub),
                None => self.write(&path, object, None),
            },
            // A controller of ours empties namespaces, at any time.
            18 | 19 if self.target.resource.kind() != "Namespace" => self.delete(path),
            _ => self.read(path),
        }
    }

    /// Changes an object zero to three times.
    fn changed(&mut self, object: &Value, below: Option<&str>) -> Value {
        let mut object = object.clone();
        let (corpus, rng) = (self.corpus, &mut *self.rng);
        for _ in 0..rng.pick(&[0, 1, 1, 1, 2, 2, 3, 5]).copied().unwrap_or(1) {
            Mutator {
                corpus,
                rng: &mut *rng,
            }
            .mutate(&mut object, self.target.definition, below);
        }
        object
    }

    fn create(&mut self) -> PairRequest {
        let objects = self.corpus.objects(self.target.definition);
        let object = self.rng.pick(objects).cloned().unwrap_or_default();
        let object = match self.rng.chance(30) {
            true => object,
            false => self.changed(&object, None),
        };
        let query = self.query();
        let mut request = PairRequest::new("POST", format!("{}{query}", self.target.path), Some(object));
        self.encode(&mut request);
        request
    }

    fn write(&mut self, path: &str, object: &Value, below: Option<&str>) -> PairRequest {
        let mut object = self.changed(object, below);
        if self.rng.chance(50)
            && let Some(metadata) = object
                .as_object_mut()
                .and_then(|o| o.get_mut("metadata")?.as_object_mut())
        {
            metadata.insert("resourceVersion", VERSION.into());
        }
        let query = self.query();
        let mut request = PairRequest::new("PUT", format!("{path}{query}"), Some(object));
        self.encode(&mut request);
        request
    }

    fn patch(&mut self, path: &str, object: &Value, below: Option<&str>) -> PairRequest {
        let new = self.changed(object, below);
        let [old_members, new_members] = [object, &new].map(|o| o.as_object().cloned().unwrap_or_default());
        let mut query = self.query();
        let (media, body) = match self.rng.below(4) {
            0 => (
                patch::MERGE,
                patch::merge(&old_members, &new_members, false).into(),
            ),
            1 => {
                let mut body: Value = patch::merge(&old_members, &new_members, true).into();
                if self.rng.chance(25) {
                    patch::add_directive(&mut body, self.rng);
                }
                (patch::STRATEGIC, body)
            }
            2 => {
                let mut operations = Vec::new();
                patch::operations(object, &new, "", &mut operations);
                (patch::JSON_PATCH, operations.into())
            }
            _ => {
                let force = self
                    .rng
                    .pick(&["", "&force=true", "&force=true"])
                    .copied()
                    .unwrap_or_default();
                let manager = self.rng.pick(&["a", "b"]).copied().unwrap_or_default();
                query.push_str(if query.is_empty() { "?" } else { "&" });
                query.push_str(&format!("fieldManager={manager}{force}"));
                (patch::APPLY, applied(new_members, below))
            }
        };
        let mut request = PairRequest::new("PATCH", format!("{path}{query}"), Some(body));
        request.media = media;
        request
    }

    fn subresource(&mut self, path: &str, object: &Value, sub: &ApiSubresource) -> PairRequest {
        let (verbs, path) = (sub.verbs(), format!("{path}/{}", sub.name));
        let (group, version, kind) = sub.kind();
        let resource = self.target.resource;
        if kind == resource.kind() && group.is_none() && verbs.contains(&"update") {
            // Most subresources are fields of the same name.
            let has_field = self
                .target
                .definition
                .members()
                .iter()
                .any(|f| f.name == sub.name);
            let below = Some(sub.name).filter(|_| has_field && self.rng.chance(90));
            return match verbs.contains(&"patch") && self.rng.chance(40) {
                true => self.patch(&path, object, below),
                false => self.write(&path, object, below),
            };
        }
        let table = TypeTable::latest();
        let (group, version) = (
            group.unwrap_or(resource.group),
            version.unwrap_or(resource.version),
        );
        let Some(definition) = table.kind(group, version, kind) else {
            return self.read(path);
        };
        let method = match (verbs.contains(&"create"), verbs.contains(&"update")) {
            (true, _) => "POST",
            (_, true) => "PUT",
            _ => return self.read(path),
        };
        let api_version = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        let mut body = self
            .rng
            .pick(self.corpus.objects(definition))
            .cloned()
            .unwrap_or_else(|| {
                let metadata = Map::from_iter(
                    [("name", object.str_at(["metadata", "name"]))].map(|(k, v)| (k, v.into())),
                );
                Map::from_iter([
                    ("apiVersion", api_version.into()),
                    ("kind", kind.into()),
                    ("metadata", metadata.into()),
                ])
                .into()
            });
        Mutator {
            corpus: self.corpus,
            rng: self.rng,
        }
        .mutate(&mut body, definition, None);
        PairRequest::new(method, path, Some(body))
    }

    fn read(&mut self, path: String) -> PairRequest {
        let mut request = PairRequest::new("GET", path, None);
        request.accept = self
            .rng
            .pick(&[JSON, TABLE, TABLE, PROTOBUF])
            .copied()
            .unwrap_or(JSON);
        request
    }

    fn delete(&mut self, path: String) -> PairRequest {
        let body = match self.rng.below(6) {
            0 => r#"{"propagationPolicy":"Foreground"}"#,
            1 => r#"{"propagationPolicy":"Orphan"}"#,
            2 => r#"{"gracePeriodSeconds":0,"propagationPolicy":"Background"}"#,
            3 => r#"{"gracePeriodSeconds":-1,"orphanDependents":true,"preconditions":{"uid":"a"}}"#,
            4 => r#"{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"],"unknown":1}"#,
            _ => "null",
        };
        let decoded = scantling_value::json::decode(body.as_bytes(), scantling_value::Limits::SAFE);
        let body = decoded.ok().filter(|body| !body.is_null());
        PairRequest::new("DELETE", path, body)
    }

    /// Query parameters of a write, with the question mark.
    fn query(&mut self) -> String {
        let validation = [
            "",
            "",
            "fieldValidation=Strict",
            "fieldValidation=Warn",
            "fieldValidation=Ignore",
        ];
        let mut words: Vec<&str> = self.rng.pick(&validation).copied().into_iter().collect();
        if self.rng.chance(10) {
            words.push("dryRun=All");
        }
        words.retain(|word| !word.is_empty());
        match words.is_empty() {
            true => String::new(),
            false => format!("?{}", words.join("&")),
        }
    }

    /// Sends an object in another format, sometimes.
    fn encode(&mut self, request: &mut PairRequest) {
        match self.rng.below(12) {
            0 => request.media = YAML,
            1 => request.media = PROTOBUF,
            2 => request.accept = PROTOBUF,
            _ => {}
        }
    }
}

/// The configuration that a client applies: without the fields of the system.
fn applied(mut members: Map, below: Option<&str>) -> Value {
    if below.is_none() {
        members.remove("status");
    }
    if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| !matches!(name, "managedFields" | "generation" | "resourceVersion"));
    }
    members.into()
}
