//! The recorded scenarios, as far as they write custom resources: the same verdict, causes, warnings and stored object.
//!
//! The pipeline does not decide about conflicts, applies and lists: those steps are left to the server's tests, and the
//! recorded answer becomes the stored state.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use scantling_admit::{
    AdmissionError, AdmitOptions, AdmitOutcome, FieldValidation, Gates, NewObjectMeta, Request, Resource,
    ResourceCompiler, WriteOperation, admit, prune_and_default_stored,
};
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::definition::{Accepted, ApiVersion, Definition, ValidationContext};
use scantling_schema::meta::Scope;
use scantling_schema::rules::Environments;
use scantling_testkit::compare::{self, message_ends_with, same, same_causes, same_object};
use scantling_testkit::replay::{StepVerdict, replay};
use scantling_testkit::{KnownDifferences, ResourcePath, ScenarioStep, patch};
use scantling_value::{Finding, Limits, Map, Value, json, yaml};
use std::collections::BTreeMap;

fn check(area: &str, at_least: usize) {
    let known = KnownDifferences::parse(include_str!("scenarios/known_differences.txt"));
    replay(
        "admit",
        area,
        &known,
        at_least,
        World::default,
        |world, _, step| world.step(step),
    );
}

#[test]
fn values() {
    check("values", 1);
}

#[test]
fn ratcheting() {
    check("ratcheting", 1);
}

#[test]
fn structural() {
    check("structural", 1);
}

#[test]
fn cel() {
    check("cel", 1);
}

#[test]
fn field_validation() {
    check("fieldvalidation", 1);
}

/// Features that kube-apiserver does not have.
#[test]
fn own() {
    check("own", 1);
}

/// All features are on, also those that only Scantling has.
const GATES: Gates = Gates {
    ratcheting: true,
    expressions: true,
    field_validation: true,
    immutability: true,
    unions: true,
    rules_on_create: true,
    cbor: false,
};

/// The state of the server, by the recorded answers.
#[derive(Default)]
struct World {
    definitions: BTreeMap<String, Value>,
    objects: BTreeMap<String, Value>,
    compiler: ResourceCompiler,
}

impl World {
    /// Takes a step. `None` if it is not about what the pure functions decide.
    fn step(&mut self, step: &ScenarioStep) -> StepVerdict {
        let target = ResourcePath::parse(&step.path)?;
        let succeeded = matches!(step.status(), 200 | 201);
        let dry = step.query_value("dryRun") == Some("All");
        if target.plural == "customresourcedefinitions" && step.is_own() {
            return match (step.verb, &target.name) {
                ("POST", _) => Some(self.define(step, &target)),
                // The test of CRD validation decides whether an update is accepted; this one uses the result.
                ("PUT", Some(name)) if succeeded => {
                    let document = json::decode(step.body_bytes(), Limits::SAFE).unwrap();
                    self.definitions.insert((*name).to_owned(), document);
                    None
                }
                _ => None,
            };
        }
        if target.plural == "customresourcedefinitions" {
            let is_definition = compare::text(step.answer(), "kind") == "CustomResourceDefinition";
            if succeeded && !dry && is_definition && step.verb != "GET" && target.subresource.is_none() {
                let name = step
                    .answer()
                    .at(["metadata", "name"])
                    .and_then(Value::as_str)
                    .unwrap();
                self.definitions.insert(name.to_owned(), step.answer().clone());
            }
            return None;
        }
        let answer = self.write(step, &target);
        let written = succeeded && !dry && matches!(step.verb, "POST" | "PUT" | "PATCH");
        if written && step.answer().get("metadata").is_some() && target.subresource != Some("scale") {
            let name = step
                .answer()
                .at(["metadata", "name"])
                .and_then(Value::as_str)
                .unwrap_or_default();
            let mut object = step.answer().clone();
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
            self.objects.insert(target.object_key(name), object);
        }
        if step.verb == "DELETE" {
            // Finalizers are the server's part: this test does not replay objects that are being deleted.
            match &target.name {
                Some(name) => drop(self.objects.remove(&target.object_key(name))),
                None => self.objects.clear(),
            }
        }
        answer
    }

    fn write(&mut self, step: &ScenarioStep, target: &ResourcePath<'_>) -> StepVerdict {
        let decided = matches!(step.status(), 200 | 201 | 400 | 422);
        let subresource = target.subresource;
        if !decided || step.uses_captures() {
            return None;
        }
        let resource = self.resource(target)?;
        if subresource == Some("scale") {
            return self.scale(step, target, &resource);
        }
        let stored = target
            .name
            .as_ref()
            .and_then(|name| self.objects.get(&target.object_key(name)))
            .cloned();
        let old = stored.map(|mut old| {
            old.as_object_mut()
                .unwrap()
                .insert("apiVersion", Value::from(resource.api_version.clone()));
            prune_and_default_stored(&resource, &mut old).unwrap();
            old
        });
        let found_in_text;
        let object = match (step.verb, &old) {
            ("POST", _) | ("PUT", Some(_)) => {
                let strict = if step.media_type().contains("yaml") {
                    yaml::decode_strict(step.body_bytes(), Limits::SAFE)
                } else {
                    json::decode_strict(step.body_bytes(), Limits::SAFE)
                };
                let decoded = strict.ok()?;
                found_in_text = decoded.duplicates;
                decoded.value
            }
            ("PATCH", Some(old)) => {
                let decoded = json::decode_strict(step.body_bytes(), Limits::SAFE).ok()?;
                found_in_text = decoded.duplicates;
                // A JSON patch reports its own duplicates.
                if step.media_type() == "application/json-patch+json" && !found_in_text.is_empty() {
                    return None;
                }
                patch::apply(step.media_type(), old, &decoded.value)?
            }
            _ => return None,
        };
        self.judge(step, target, &resource, old.as_ref(), object, &found_in_text)
    }

    /// A write to `/scale` is an update of one number.
    fn scale(&mut self, step: &ScenarioStep, target: &ResourcePath<'_>, resource: &Resource) -> StepVerdict {
        let key = target.object_key(target.name.as_ref()?);
        let old = self.objects.get(&key)?.clone();
        let replicas = step.answer().at(["spec", "replicas"])?.as_int()?;
        if step.verb == "GET" || !matches!(step.status(), 200 | 201) {
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
        step: &ScenarioStep,
        target: &ResourcePath<'_>,
        resource: &Resource,
        old: Option<&Value>,
        mut object: Value,
        found_in_text: &[Finding],
    ) -> StepVerdict {
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
                && Some(said.as_str()) != target.namespace
            {
                return None;
            }
            match &target.namespace {
                Some(namespace) => metadata.insert("namespace", Value::from(*namespace)),
                None => metadata.remove("namespace"),
            };
            let version = says(metadata, "resourceVersion");
            if step.current.is_some() {
                metadata.insert("resourceVersion", Value::from("1"));
            } else if (step.verb == "PUT" && version.is_empty())
                || (step.verb == "POST" && !version.is_empty())
            {
                return None;
            }
        }
        let mode = match step.query_value("fieldValidation") {
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
        let operation = match (old, target.subresource) {
            (None, _) => WriteOperation::Create(&identity),
            (Some(old), Some("status")) => WriteOperation::UpdateStatus(old),
            (Some(old), _) => WriteOperation::Update(old),
        };
        if target.subresource == Some("status") && !resource.status {
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
        if step.is_own() && outcome.error.is_none() {
            let mut stored = outcome.object;
            let metadata = stored.as_object_mut()?.get_mut("metadata")?.as_object_mut()?;
            metadata.insert("resourceVersion", Value::from("1"));
            let name = metadata.get("name")?.as_str()?.to_owned();
            self.objects.insert(target.object_key(&name), stored);
        }
        Some(answer)
    }

    /// A definition of our own scenarios.
    fn define(&mut self, step: &ScenarioStep, target: &ResourcePath<'_>) -> Result<(), String> {
        let document = json::decode(step.body_bytes(), Limits::SAFE).map_err(|e| e.to_string())?;
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
        if status != step.status() {
            return Err(format!(
                "  status {status}, wanted {}\n  {}",
                step.status(),
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

    fn resource(&mut self, target: &ResourcePath<'_>) -> Option<Resource> {
        let crd = self.definitions.get(&target.definition_name())?;
        let received = Definition::decode(crd.clone(), ApiVersion::of_document(crd), GATES).ok()?;
        let accepted = Accepted::assume_accepted(received.definition);
        accepted.spec.version(target.version).filter(|v| v.served)?;
        self.compiler.compile(&accepted, target.version).ok()
    }
}

fn compare(step: &ScenarioStep, outcome: &AdmitOutcome) -> Result<(), String> {
    let status = outcome.error.as_ref().map_or(200, |r| i64::from(r.status()));
    let wanted = if step.status() == 201 { 200 } else { step.status() };
    // A patched object that is refused as undecodable or as strict is the patch's fault, not the object's.
    let patch_refused = step.verb == "PATCH"
        && matches!(
            outcome.error,
            Some(AdmissionError::Undecodable(_) | AdmissionError::Strict(_))
        )
        && step.status() == 422;
    if patch_refused {
        return Ok(());
    }
    if status != wanted {
        return Err(format!(
            "  status {status}, wanted {wanted}\n  ours {:?}\n  want {}",
            outcome.error,
            step.answer().to_json()
        ));
    }
    let about_version = |w: &String| w.contains(" is deprecated; ");
    let wanted = step.warnings().into_iter().filter(|w| !about_version(w));
    let warnings = outcome.warnings.iter().map(ToString::to_string).collect();
    same("warnings", warnings, wanted.collect())?;
    if step.is_own() {
        let Some(wanted) = step.wanted_causes() else {
            return Ok(());
        };
        let errors = outcome.error.as_ref().map_or(&[][..], AdmissionError::errors);
        return same("causes", errors.iter().map(ToString::to_string).collect(), wanted);
    }
    match &outcome.error {
        None => same_object(&outcome.object, step.answer(), &[]),
        Some(AdmissionError::Invalid(errors) | AdmissionError::Immutable(errors)) => {
            same_causes(errors, step.causes())
        }
        Some(AdmissionError::Undecodable(why)) => message_ends_with(why, step.answer()),
        Some(AdmissionError::TooLarge(why)) => message_ends_with(&why.to_string(), step.answer()),
        Some(AdmissionError::Internal(why)) => message_ends_with(why, step.answer()),
        Some(AdmissionError::Strict(found)) => message_ends_with(
            &format!("strict decoding error: {}", found.strict_error()),
            step.answer(),
        ),
    }
}
