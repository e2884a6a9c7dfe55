//! Replays the recorded writes of CRDs: status, causes, warnings and documents must be equal.
//!
//! A map of CRDs replaces the server. Storage, discovery and deletion are tested with the server.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::definition::{Accepted, ApiVersion, Definition, Gates, ValidationContext};
use scantling_schema::publish::{self, OpenApiVersion};
use scantling_schema::rules::Environments;
use scantling_testkit::replay::{StepVerdict, replay};
use scantling_testkit::{KnownDifferences, ResourcePath, ScenarioStep, compare, patch, scenario};
use scantling_value::{FieldError, Limits, Value, aggregate, json};
use std::collections::{BTreeMap, BTreeSet};

/// Returns whether a strategic merge patch or an apply is refused before it produces a CRD.
fn is_refused_as_patch(step: &ScenarioStep) -> bool {
    let merges = ["strategic-merge-patch", "apply-patch"]
        .iter()
        .any(|ty| step.media_type().contains(ty));
    let is_patch = |cause: &Value| compare::text(cause, "field") == "patch";
    merges && (step.status() == 500 || step.causes().iter().any(is_patch))
}

#[test]
fn definition_writes_match_the_recordings() {
    let known = KnownDifferences::parse(include_str!("scenario_definitions/known_differences.txt"));
    let environments = Environments::for_version(KubernetesVersion::LATEST);
    for area in scenario::areas().iter().filter(|area| *area != scenario::OWN) {
        let new = || DefinitionServer {
            environments: &environments,
            stored: BTreeMap::new(),
            deleted: BTreeSet::new(),
        };
        replay("schema", area, &known, 0, new, |server, _, step| {
            server.published(step).or_else(|| {
                let answer = (!is_refused_as_patch(step)).then(|| server.step(step))??;
                Some(answer.differs(step).map_or(Ok(()), Err))
            })
        });
    }
}

struct DefinitionServer<'a> {
    environments: &'a Environments,
    stored: BTreeMap<String, Accepted>,
    /// Names whose deletion objects may delay: the response to a new CRD then depends on the server.
    deleted: BTreeSet<String>,
}

/// The parts of a response that CRDs decide.
#[derive(Debug)]
struct DefinitionAnswer {
    status: i64,
    message: Option<String>,
    causes: Vec<Value>,
    warnings: Vec<String>,
    spec: Option<Value>,
}

impl DefinitionAnswer {
    fn failed(status: i64, message: impl Into<String>) -> Self {
        DefinitionAnswer {
            status,
            message: Some(message.into()),
            causes: Vec::new(),
            warnings: Vec::new(),
            spec: None,
        }
    }

    fn invalid(name: &str, errors: &[FieldError]) -> Self {
        let causes = errors.iter().map(|e| {
            let members: [(&str, Value); 3] = [
                ("field", e.field().into()),
                ("message", e.message().into()),
                ("reason", e.reason().into()),
            ];
            Value::Object(members.into_iter().collect())
        });
        let kind = "CustomResourceDefinition.apiextensions.k8s.io";
        DefinitionAnswer {
            causes: causes.collect(),
            ..DefinitionAnswer::failed(
                422,
                format!("{kind} \"{name}\" is invalid: {}", aggregate(errors)),
            )
        }
    }

    fn differs(&self, step: &ScenarioStep) -> Option<String> {
        let body = step.answer();
        if self.status != step.status() {
            return Some(format!("{self:?}\n  wanted {}", body.to_json()));
        }
        let texts = |v: Option<&Value>| {
            let mut out: Vec<String> = v
                .and_then(Value::as_array)
                .unwrap_or_default()
                .iter()
                .map(|v| scrub(&v.to_json()))
                .collect();
            out.sort();
            out
        };
        let causes = texts(Some(&Value::Array(self.causes.clone())));
        let wanted_causes = texts(body.at(["details", "causes"]));
        if causes != wanted_causes {
            return Some(format!(
                "causes\n  {}\n  wanted\n  {}",
                causes.join("\n  "),
                wanted_causes.join("\n  ")
            ));
        }
        let (got, want) = (
            texts(Some(&self.warnings.clone().into())),
            texts(Some(&step.warnings().into())),
        );
        if got != want {
            return Some(format!("warnings {got:?}\n  wanted {want:?}"));
        }
        let message = body.get("message").and_then(Value::as_str).map(scrub);
        let ours = self.message.as_deref().map(scrub);
        if causes.len() < 2 && ours != message {
            return Some(format!("message {ours:?}\n  wanted {message:?}"));
        }
        let spec = self.spec.as_ref().map(Value::to_json);
        (self.spec.is_some() && spec != body.get("spec").map(Value::to_json)).then(|| {
            format!(
                "spec {spec:?}\n  wanted {:?}",
                body.get("spec").map(Value::to_json)
            )
        })
    }
}

/// Removes the random number in type names of rule errors, and blanks times as recordings do, even in rules.
fn scrub(text: &str) -> String {
    let text = &text
        .replace("\\u003ctime\\u003e", "TIME")
        .replace("<time>", "TIME");
    let text = &text
        .replace("2020-13-01T00:00:00Z", "TIME")
        .replace("2020-01-01T00:00:00Z", "TIME");
    let mut parts = text.split("selfType");
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        out += "selfType";
        out += part.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    out
}

fn refuse(why: &str) -> DefinitionAnswer {
    let kind = "CustomResourceDefinition";
    DefinitionAnswer::failed(
        400,
        format!("{kind} in version \"v1\" cannot be handled as a {kind}: {why}"),
    )
}

impl DefinitionServer<'_> {
    /// Handles a write of a CRD. Returns `None` if the response does not depend on CRDs alone.
    fn step(&mut self, step: &ScenarioStep) -> Option<DefinitionAnswer> {
        let target = ResourcePath::parse(&step.path).filter(|t| t.is_definition() && t.version == "v1")?;
        let (verb, name, query) = (step.verb, target.name.unwrap_or_default(), step.query.as_str());
        if verb == "GET" {
            return None;
        }
        if verb == "DELETE" {
            self.stored.remove(name);
            self.deleted.insert(name.to_owned());
            return None;
        }
        let text = step.body.as_deref().unwrap_or_default();
        let body = json::decode_strict(text.as_bytes(), Limits::SAFE).ok()?;
        match verb {
            "POST" => {
                let name = body
                    .value
                    .at(["metadata", "name"])
                    .and_then(Value::as_str)
                    .unwrap_or("")
                    .to_owned();
                let answer = self.create(text, query);
                (!self.deleted.contains(&name)).then_some(answer)
            }
            _ if target.subresource == Some("status") => {
                let old = self.stored.get_mut(name)?;
                let patched = patched(step, &old.encode(ApiVersion::V1), &body.value)?;
                let mut new = Definition::decode(patched, ApiVersion::V1, Gates::default())
                    .ok()?
                    .definition;
                new.metadata.clone_from(&old.metadata);
                *old = Accepted::update_status(new, old).unwrap();
                None
            }
            "PUT" => {
                // Without the current version, the response depends on storage.
                step.current.as_ref()?;
                Some(self.replace(name, body.value, query))
            }
            _ => {
                let patched = patched(step, &self.stored.get(name)?.encode(ApiVersion::V1), &body.value)?;
                Some(self.replace(name, patched, query))
            }
        }
    }

    /// Compares published schemas. Returns `None` if the step does not read them.
    fn published(&self, step: &ScenarioStep) -> StepVerdict {
        let path = step
            .path
            .strip_prefix("/openapi/v3/apis/")
            .filter(|_| step.verb == "GET")?;
        let (group, version) = path.split_once('/')?;
        let definition = self.stored.values().find(|d| d.spec.group == group)?;
        let version = definition.spec.version(version).filter(|v| v.served)?;
        let schemas = step.answer().at(["components", "schemas"])?;
        let names = &definition.spec.names;
        for (kind, got) in [
            (
                &names.kind,
                publish::object_schema(definition, version, OpenApiVersion::V3),
            ),
            (
                &names.list_kind,
                publish::list_schema(definition, version, OpenApiVersion::V3),
            ),
        ] {
            let name = publish::model_name(group, &version.name, kind);
            let (got, want) = (
                got.to_json(),
                schemas.get(&name).map(Value::to_json).unwrap_or_default(),
            );
            if got != want {
                return Some(Err(format!("{name} {got}\n  wanted {want}")));
            }
        }
        Some(Ok(()))
    }

    fn setting(&self) -> ValidationContext<'_> {
        ValidationContext {
            api: ApiVersion::V1,
            gates: Gates::default(),
            environments: self.environments,
        }
    }

    fn create(&mut self, text: &str, query: &str) -> DefinitionAnswer {
        let received = match Definition::decode_text(text.as_bytes(), ApiVersion::V1, Gates::default()) {
            Ok(received) => received,
            Err(e) => return refuse(&e.to_string()),
        };
        let strict: Vec<String> = received.findings.iter().map(ToString::to_string).collect();
        if query.contains("fieldValidation=Strict") && !strict.is_empty() {
            return refuse(&format!("strict decoding error: {}", strict.join(", ")));
        }
        let name = received.definition.name().to_owned();
        let accepted = match Accepted::create(received.definition, &self.setting()) {
            Ok(accepted) => accepted,
            Err(errors) => {
                return DefinitionAnswer {
                    warnings: strict,
                    ..DefinitionAnswer::invalid(&name, &errors)
                };
            }
        };
        if self.stored.contains_key(&name) {
            let resource = "customresourcedefinitions.apiextensions.k8s.io";
            return DefinitionAnswer::failed(409, format!("{resource} \"{name}\" already exists"));
        }
        let warnings = strict.into_iter().chain(accepted.warnings).collect();
        self.done(201, name, accepted.accepted, warnings, query)
    }

    fn replace(&mut self, name: &str, body: Value, query: &str) -> DefinitionAnswer {
        let Some(old) = self.stored.get(name) else {
            let resource = "customresourcedefinitions.apiextensions.k8s.io";
            return DefinitionAnswer::failed(404, format!("{resource} \"{name}\" not found"));
        };
        let mut definition = match Definition::decode(body, ApiVersion::V1, Gates::default()) {
            Ok(received) => received.definition,
            Err(e) => return refuse(&e.to_string()),
        };
        definition.metadata.insert("resourceVersion", "1".into());
        match Accepted::update(definition, old, &self.setting()) {
            Ok(a) => self.done(200, name.to_owned(), a.accepted, a.warnings, query),
            Err(errors) => DefinitionAnswer::invalid(name, &errors),
        }
    }

    fn done(
        &mut self,
        status: i64,
        name: String,
        accepted: Accepted,
        warnings: Vec<String>,
        query: &str,
    ) -> DefinitionAnswer {
        let spec = accepted.encode(ApiVersion::V1).get("spec").cloned();
        if !query.contains("dryRun") {
            let mut metadata = accepted.metadata.clone();
            metadata.insert("resourceVersion", "1".into());
            self.stored.insert(name, accepted.with_metadata(metadata));
            // Names that one CRD releases may be accepted for another.
            for _ in 0..2 {
                let all = self.stored.clone();
                for d in self.stored.values_mut() {
                    let group = d.spec.group.clone();
                    d.update_conditions(
                        all.values().filter(|o| o.spec.group == group),
                        "2026-01-01T00:00:00Z",
                    );
                }
            }
        }
        DefinitionAnswer {
            status,
            message: None,
            causes: Vec::new(),
            warnings,
            spec,
        }
    }
}

/// Applies the patch of a step: as a JSON patch, otherwise as a merge patch.
fn patched(step: &ScenarioStep, object: &Value, body: &Value) -> Option<Value> {
    match step.media_type() {
        "application/json-patch+json" => patch::json(object, body),
        _ => patch::merge(object, body),
    }
}
