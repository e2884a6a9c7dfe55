//! Definitions and objects, and what requests make of them.

use super::patch;
use super::read::{Step, text};
use scantling_admit::{
    AdmissionError, AdmitOptions, AdmitOutcome, FieldValidation, Gates, NewObjectMeta, Request, Resource,
    ResourceCompiler, WriteOperation, admit, prune_and_default_stored,
};
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::definition::{ApiVersion, Definition, ValidationContext};
use scantling_schema::meta::Scope;
use scantling_schema::rules::Environments;
use scantling_value::{FieldError, Limits, Map, Value, json, yaml};
use std::collections::BTreeMap;

/// Everything is on, our own features as well.
const GATES: Gates = Gates {
    ratcheting: true,
    expressions: true,
    field_validation: true,
    immutability: true,
    unions: true,
    rules_on_create: true,
    cbor: false,
};

/// How things stand.
#[derive(Default)]
pub(crate) struct World {
    definitions: BTreeMap<String, Value>,
    objects: BTreeMap<String, Value>,
    workshop: ResourceCompiler,
}

/// Where a request points.
struct Target {
    group: String,
    version: String,
    plural: String,
    namespace: Option<String>,
    name: Option<String>,
    subresource: Option<String>,
}

impl Target {
    fn parse(path: &str) -> Option<Self> {
        let mut parts = path.trim_matches('/').split('/').map(str::to_owned);
        if parts.next()? != "apis" {
            return None;
        }
        let (group, version) = (parts.next()?, parts.next()?);
        let mut plural = parts.next()?;
        let mut namespace = None;
        if plural == "namespaces" {
            namespace = Some(parts.next()?);
            plural = parts.next()?;
        }
        let (name, subresource) = (parts.next(), parts.next());
        Some(Target {
            group,
            version,
            plural,
            namespace,
            name,
            subresource,
        })
    }

    fn key(&self, name: &str) -> String {
        format!(
            "{}/{}/{}/{name}",
            self.group,
            self.plural,
            self.namespace.as_deref().unwrap_or_default()
        )
    }
}

impl World {
    /// Takes a step. `None` if it is not about what the pure functions decide.
    pub(crate) fn step(&mut self, step: &Step) -> Option<Result<(), String>> {
        let target = Target::parse(&step.path)?;
        let succeeded = matches!(step.status, 200 | 201);
        let dry = step.query.contains("dryRun=All");
        if target.plural == "customresourcedefinitions" && step.ours {
            return match (step.verb.as_str(), &target.name) {
                ("POST", _) => Some(self.define(step, &target)),
                // Whether a definition may change is no matter of admission; what it became is.
                ("PUT", Some(name)) if succeeded => {
                    let document = json::decode(&step.body, Limits::SAFE).unwrap();
                    self.definitions.insert(name.clone(), document);
                    None
                }
                _ => None,
            };
        }
        if target.plural == "customresourcedefinitions" {
            let is_definition = text(&step.answer, "kind") == "CustomResourceDefinition";
            if succeeded && !dry && is_definition && step.verb != "GET" && target.subresource.is_none() {
                let name = step
                    .answer
                    .at(["metadata", "name"])
                    .and_then(Value::as_str)
                    .unwrap();
                self.definitions.insert(name.to_owned(), step.answer.clone());
            }
            return None;
        }
        let answer = self.write(step, &target);
        let written = succeeded && !dry && matches!(step.verb.as_str(), "POST" | "PUT" | "PATCH");
        if written && step.answer.get("metadata").is_some() && target.subresource.as_deref() != Some("scale")
        {
            let name = step
                .answer
                .at(["metadata", "name"])
                .and_then(Value::as_str)
                .unwrap_or_default();
            let mut object = step.answer.clone();
            let metadata = object
                .as_object_mut()
                .unwrap()
                .get_mut("metadata")
                .unwrap()
                .as_object_mut()
                .unwrap();
            metadata.insert("resourceVersion", Value::from("1"));
            metadata.insert("uid", Value::from("u"));
            metadata.insert("creationTimestamp", Value::from("2026-08-01T00:00:00Z"));
            self.objects.insert(target.key(name), object);
        }
        if step.verb == "DELETE" {
            // What a finalizer holds is in the server's hands from here on.
            match &target.name {
                Some(name) => drop(self.objects.remove(&target.key(name))),
                None => self.objects.clear(),
            }
        }
        answer
    }

    fn write(&mut self, step: &Step, target: &Target) -> Option<Result<(), String>> {
        let decided = matches!(step.status, 200 | 201 | 400 | 422);
        let subresource = target.subresource.as_deref();
        if !decided || step.captured {
            return None;
        }
        let resource = self.resource(target)?;
        if subresource == Some("scale") {
            return self.scale(step, target, &resource);
        }
        let stored = target
            .name
            .as_ref()
            .and_then(|name| self.objects.get(&target.key(name)))
            .cloned();
        let old = stored.map(|mut old| {
            old.as_object_mut()
                .unwrap()
                .insert("apiVersion", Value::from(resource.api_version.clone()));
            prune_and_default_stored(&resource, &mut old).unwrap();
            old
        });
        let found_in_text;
        let object = match (step.verb.as_str(), &old) {
            ("POST", _) | ("PUT", Some(_)) => {
                let strict = if step.content_type.contains("yaml") {
                    yaml::decode_strict(&step.body, Limits::SAFE)
                } else {
                    json::decode_strict(&step.body, Limits::SAFE)
                };
                let decoded = strict.ok()?;
                found_in_text = decoded.duplicates;
                // YAML reports what stands twice in a form of its own.
                if step.content_type.contains("yaml") && !found_in_text.is_empty() {
                    return None;
                }
                decoded.value
            }
            ("PATCH", Some(old)) => {
                let decoded = json::decode_strict(&step.body, Limits::SAFE).ok()?;
                let (body, mut object) = (decoded.value, old.clone());
                found_in_text = decoded.duplicates;
                match step.content_type.as_str() {
                    "application/merge-patch+json" => patch::merge(&mut object, &body),
                    "application/json-patch+json" if found_in_text.is_empty() => {
                        patch::json(&mut object, &body)?;
                    }
                    _ => return None,
                }
                object
            }
            _ => return None,
        };
        self.judge(step, target, &resource, old.as_ref(), object, &found_in_text)
    }

    /// A write to `/scale` is an update of one number.
    fn scale(&mut self, step: &Step, target: &Target, resource: &Resource) -> Option<Result<(), String>> {
        let key = target.key(target.name.as_ref()?);
        let old = self.objects.get(&key)?.clone();
        let replicas = step.answer.at(["spec", "replicas"])?.as_int()?;
        if step.verb == "GET" || !matches!(step.status, 200 | 201) {
            return None;
        }
        let object = resource.scale.as_ref()?.with_replicas(&old, replicas).ok()?;
        let request = Request {
            operation: WriteOperation::Update(&old),
            object,
            findings: &[],
        };
        let outcome = admit(resource, request, &AdmitOptions::default());
        if let Some(refusal) = &outcome.error {
            return Some(Err(format!("  refused: {refusal:?}")));
        }
        self.objects.insert(key, outcome.object);
        Some(Ok(()))
    }

    fn judge(
        &mut self,
        step: &Step,
        target: &Target,
        resource: &Resource,
        old: Option<&Value>,
        mut object: Value,
        found_in_text: &[String],
    ) -> Option<Result<(), String>> {
        // The handlers in front of the pipeline decide about these.
        let map = object.as_object_mut()?;
        let says = |map: &Map, field: &str| {
            map.get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        if says(map, "kind").is_empty() || says(map, "apiVersion") != resource.api_version {
            return None;
        }
        let metadata = map.get_or_insert_with("metadata", || Value::Object(Map::new()));
        if metadata.is_null() {
            *metadata = Value::Object(Map::new());
        }
        if let Some(metadata) = metadata.as_object_mut() {
            let said = says(metadata, "namespace");
            if resource.scope == Scope::Namespaced
                && !said.is_empty()
                && Some(&said) != target.namespace.as_ref()
            {
                return None;
            }
            match &target.namespace {
                Some(namespace) => metadata.insert("namespace", Value::from(namespace.as_str())),
                None => metadata.remove("namespace"),
            };
            let version = says(metadata, "resourceVersion");
            if step.current {
                metadata.insert("resourceVersion", Value::from("1"));
            } else if (step.verb == "PUT" && version.is_empty())
                || (step.verb == "POST" && !version.is_empty())
            {
                return None;
            }
        }
        let mode = match step
            .query
            .split('&')
            .find_map(|p| p.strip_prefix("fieldValidation="))
        {
            None | Some("" | "Warn") => FieldValidation::Warn,
            Some("Strict") => FieldValidation::Strict,
            Some("Ignore") => FieldValidation::Ignore,
            Some(_) => return None,
        };
        let identity = NewObjectMeta {
            uid: "u".into(),
            created: "2026-08-01T00:00:00Z".into(),
            suffix: "".into(),
        };
        let operation = match (old, target.subresource.as_deref()) {
            (None, _) => WriteOperation::Create(&identity),
            (Some(old), Some("status")) => WriteOperation::UpdateStatus(old),
            (Some(old), _) => WriteOperation::Update(old),
        };
        if target.subresource.as_deref() == Some("status") && !resource.status {
            return None;
        }
        let options = AdmitOptions {
            gates: GATES,
            field_validation: mode,
            ..AdmitOptions::default()
        };
        let outcome = admit(
            resource,
            Request {
                operation,
                object,
                findings: found_in_text,
            },
            &options,
        );
        let answer = compare(step, &outcome);
        if step.ours && outcome.error.is_none() {
            let mut stored = outcome.object;
            let metadata = stored.as_object_mut()?.get_mut("metadata")?.as_object_mut()?;
            metadata.insert("resourceVersion", Value::from("1"));
            let name = metadata.get("name")?.as_str()?.to_owned();
            self.objects.insert(target.key(&name), stored);
        }
        Some(answer)
    }

    /// A definition of our own scenarios.
    fn define(&mut self, step: &Step, target: &Target) -> Result<(), String> {
        let document = json::decode(&step.body, Limits::SAFE).map_err(|e| e.to_string())?;
        let api = if target.version == "v1" {
            ApiVersion::V1
        } else {
            ApiVersion::V1Beta1
        };
        let mut received = Definition::decode(document.clone(), api, GATES).map_err(|e| e.to_string())?;
        received.definition.prepare_create(GATES);
        let environments = Environments::for_version(KubernetesVersion::LATEST);
        let setting = ValidationContext {
            api,
            gates: GATES,
            environments: &environments,
        };
        let errors: Vec<String> = received
            .definition
            .validate(&setting)
            .iter()
            .map(ToString::to_string)
            .collect();
        let status = if errors.is_empty() { 201 } else { 422 };
        if status != step.status {
            return Err(format!(
                "  status {status}, wanted {}\n  {}",
                step.status,
                errors.join("\n  ")
            ));
        }
        if errors.is_empty() {
            let name = document
                .at(["metadata", "name"])
                .and_then(Value::as_str)
                .unwrap_or_default();
            self.definitions.insert(name.to_owned(), document);
        }
        Ok(())
    }

    fn resource(&mut self, target: &Target) -> Option<Resource> {
        let crd = self
            .definitions
            .get(&format!("{}.{}", target.plural, target.group))?;
        let received = Definition::decode(crd.clone(), ApiVersion::of_document(crd), GATES).ok()?;
        let spec = received.definition.spec;
        let version = spec.version(&target.version).filter(|v| v.served)?;
        let resource = self.workshop.resource(&spec, version);
        Some(resource.unwrap_or_else(|_| self.workshop.resource_without_schema(&spec, version)))
    }
}

fn compare(step: &Step, outcome: &AdmitOutcome) -> Result<(), String> {
    let status = outcome.error.as_ref().map_or(200, |r| i64::from(r.status()));
    let wanted = if step.status == 201 { 200 } else { step.status };
    // A patched object that is refused as undecodable or as strict is the patch's fault, not the object's.
    let patch_refused = step.verb == "PATCH"
        && matches!(
            outcome.error,
            Some(AdmissionError::Undecodable(_) | AdmissionError::Strict(_))
        )
        && step.status == 422;
    if patch_refused {
        return Ok(());
    }
    if status != wanted {
        return Err(format!(
            "  status {status}, wanted {wanted}\n  ours {:?}\n  want {}",
            outcome.error,
            step.answer.to_json()
        ));
    }
    let mut warnings: Vec<&str> = outcome.warnings.iter().map(String::as_str).collect();
    let about_version = |w: &&str| w.contains(" is deprecated; ");
    let mut wanted: Vec<&str> = step
        .warnings
        .iter()
        .map(String::as_str)
        .filter(|w| !about_version(w))
        .collect();
    warnings.sort_unstable();
    wanted.sort_unstable();
    if warnings != wanted {
        return Err(format!("  warnings {warnings:?}\n  wanted   {wanted:?}"));
    }
    if step.ours {
        return same_errors(
            outcome.error.as_ref().map_or(&[], AdmissionError::errors),
            &step.answer,
        );
    }
    match &outcome.error {
        None => same_object(&outcome.object, &step.answer),
        Some(AdmissionError::Invalid(errors) | AdmissionError::Immutable(errors)) => {
            same_causes(errors, &step.answer)
        }
        Some(AdmissionError::Undecodable(why)) => same_message(why, &step.answer),
        Some(AdmissionError::TooLarge(why)) => same_message(&why.to_string(), &step.answer),
        Some(AdmissionError::Internal(why)) => same_message(why, &step.answer),
        Some(AdmissionError::Strict(found)) => same_message(
            &format!("strict decoding error: {}", found.join(", ")),
            &step.answer,
        ),
    }
}

fn same_message(why: &str, answer: &Value) -> Result<(), String> {
    let message = text(answer, "message");
    if message.ends_with(&format!(": {why}")) {
        return Ok(());
    }
    Err(format!("  says   {why}\n  wanted {message}"))
}

fn same_errors(errors: &[FieldError], answer: &Value) -> Result<(), String> {
    let Some(wanted) = answer.get("wanted").and_then(Value::as_array) else {
        return Ok(());
    };
    let mut ours: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let mut wanted: Vec<String> = wanted.iter().map(|w| w.as_str().unwrap().to_owned()).collect();
    ours.sort_unstable();
    wanted.sort_unstable();
    if ours == wanted {
        Ok(())
    } else {
        Err(format!(
            "  causes {}\n  wanted {}",
            ours.join("\n         "),
            wanted.join("\n         ")
        ))
    }
}

fn same_causes(errors: &[FieldError], answer: &Value) -> Result<(), String> {
    let mut ours: Vec<String> = errors
        .iter()
        .map(|e| format!("{} {}: {}", e.reason(), e.field(), e.message()))
        .collect();
    let causes = answer
        .at(["details", "causes"])
        .and_then(Value::as_array)
        .unwrap_or_default();
    let mut wanted: Vec<String> = causes
        .iter()
        .map(|c| {
            format!(
                "{} {}: {}",
                text(c, "reason"),
                text(c, "field"),
                text(c, "message")
            )
        })
        .collect();
    // Recordings blank what looks as if it differed from run to run.
    let time = regex::Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").unwrap();
    let uid = regex::Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").unwrap();
    for text in &mut ours {
        *text = uid
            .replace_all(&time.replace_all(text, "<time>"), "<uid>")
            .into_owned();
    }
    ours.sort_unstable();
    wanted.sort_unstable();
    if ours == wanted {
        Ok(())
    } else {
        Err(format!(
            "  causes {}\n  wanted {}",
            ours.join("\n         "),
            wanted.join("\n         ")
        ))
    }
}

fn same_object(ours: &Value, answer: &Value) -> Result<(), String> {
    let strip = |v: &Value| {
        let mut v = v.clone();
        if let Some(metadata) = v
            .as_object_mut()
            .and_then(|m| m.get_mut("metadata"))
            .and_then(Value::as_object_mut)
        {
            for field in [
                "uid",
                "creationTimestamp",
                "resourceVersion",
                "selfLink",
                "deletionTimestamp",
                "managedFields",
            ] {
                metadata.remove(field);
            }
        }
        v.to_json()
    };
    let (ours, wanted) = (strip(ours), strip(answer));
    if ours == wanted {
        Ok(())
    } else {
        Err(format!("  stores {ours}\n  wanted {wanted}"))
    }
}
