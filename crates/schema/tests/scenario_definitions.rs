//! The recorded scenarios, as far as they write definitions: the same status, causes, warnings and documents as a real
//! API server gives. What a server adds around it (storage, discovery, deletion) is played by a map of definitions.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may fail loudly and shows its figures"
)]

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::definition::{Accepted, ApiVersion, Definition, Gates, ValidationContext};
use scantling_schema::publish::{self, OpenApiVersion};
use scantling_schema::rules::Environments;
use scantling_value::{FieldError, Limits, Value, aggregate, json};
use std::collections::{BTreeMap, BTreeSet};

const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/scenarios");
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What differs, and why. A step that is listed here and agrees fails the test, too.
const KNOWN: &[(&str, usize, &str)] = &[
    ("flows/definitions-without-a-version", 1, WITHOUT_A_VERSION),
    ("flows/definitions-without-a-version", 3, WITHOUT_A_VERSION),
    ("flows/what-does-not-change", 18, ANOTHER_NAME),
    ("flows/namespace-writes", 39, ANOTHER_KIND),
    ("flows/namespace-writes", 40, ANOTHER_KIND),
    ("flows/namespace-writes", 41, ANOTHER_KIND),
    ("flows/namespace-writes", 42, ANOTHER_KIND),
];

const ANOTHER_KIND: &str = "what is of another kind is refused before it makes a definition";

const ANOTHER_NAME: &str = "a patch that gives another name is refused before it makes a definition";

const WITHOUT_A_VERSION: &str = "a patch that takes the version away is refused before it makes a definition";

/// Scenarios whose definitions are written in ways that the server alone plays: merges of lists, other kinds, dry runs,
/// strict patches.
const PLAYED_BY_THE_SERVER: &[&str] = &[
    "api/metadata-of-everything",
    "api/slashes-in-versions",
    "api/strategic-on-events-and-definitions",
    "apply/managers-of-built-in-kinds",
    "fieldvalidation/built-in-kinds-every-verb",
    "fieldvalidation/paths-of-unknown-fields-in-definitions",
    "flows/one-by-name-and-what-is-to-come",
];

/// Whether a strategic patch or an apply is refused before it makes a definition: that is for the server to tell.
fn is_refused_as_patch(step: &Value, wanted: &Value) -> bool {
    let content_type = step
        .get("contentType")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let merges = ["strategic-merge-patch", "apply-patch"]
        .iter()
        .any(|ty| content_type.contains(ty));
    let causes = wanted.at(["body", "details", "causes"]).and_then(Value::as_array);
    let is_patch = |cause: &Value| cause.get("field").and_then(Value::as_str) == Some("patch");
    let status = wanted.get("status").and_then(Value::as_int);
    merges && (status == Some(500) || causes.unwrap_or_default().iter().any(is_patch))
}

#[test]
fn writes_of_definitions_get_the_recorded_answers() {
    let mut areas: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut differences = Vec::new();
    let environments = Environments::for_version(KubernetesVersion::LATEST);
    let mut files: Vec<_> = glob(SCENARIOS, "yaml");
    files.sort();
    for file in files {
        let area = file
            .parent()
            .unwrap()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        for scenario in Yaml::load_from_str(&text).unwrap() {
            let texts = bodies(&scenario);
            let scenario = value(&scenario);
            let name = scenario.get("name").and_then(Value::as_str);
            let Some(name) = name.filter(|name| !PLAYED_BY_THE_SERVER.contains(name)) else {
                continue;
            };
            let golden = file
                .parent()
                .unwrap()
                .join("golden")
                .join(format!("{}.json", name.replace('/', "__")));
            let golden = json::decode(&std::fs::read(golden).unwrap(), Limits::SAFE).unwrap();
            let mut server = Server {
                environments: &environments,
                stored: BTreeMap::new(),
                deleted: BTreeSet::new(),
            };
            let steps = scenario.get("steps").and_then(Value::as_array).unwrap();
            for (i, (step, wanted)) in steps.iter().zip(golden.as_array().unwrap()).enumerate() {
                if let Some(same) = server.published(step, wanted) {
                    let count = areas.entry("published schemas".into()).or_default();
                    count.1 += 1;
                    match same {
                        None => count.0 += 1,
                        Some(why) => differences.push(format!("{name} step {i}: {why}")),
                    }
                }
                if is_refused_as_patch(step, wanted) {
                    continue;
                }
                let Some(got) = server.step(step, texts.get(i).map_or("", String::as_str)) else {
                    continue;
                };
                let count = areas.entry(area.clone()).or_default();
                count.1 += 1;
                let known = KNOWN.iter().find(|(n, step, _)| *n == name && *step == i);
                match (got.differs(wanted), known) {
                    (None, None) => count.0 += 1,
                    (Some(_), Some((_, _, why))) => println!("{name} step {i} differs: {why}"),
                    (Some(why), None) => differences.push(format!("{name} step {i}: {why}")),
                    (None, Some(_)) => differences.push(format!("{name} step {i} is listed but agrees")),
                }
            }
        }
    }
    for d in &differences {
        println!("{d}");
    }
    for (area, (same, total)) in &areas {
        println!("{area}: {same} of {total} writes of definitions are the same");
    }
    assert!(differences.is_empty(), "{} writes differ", differences.len());
}

/// Scenarios are read as the tools that record and replay them read them: `n` and `y` are texts.
fn value(yaml: &Yaml<'_>) -> Value {
    let text = |s: &str| match s {
        "yes" | "on" | "Yes" | "On" => Value::Bool(true),
        "no" | "off" | "No" | "Off" => Value::Bool(false),
        s => s.into(),
    };
    match yaml {
        Yaml::Value(Scalar::Boolean(b)) => (*b).into(),
        Yaml::Value(Scalar::Integer(i)) => (*i).into(),
        Yaml::Value(Scalar::FloatingPoint(f)) => f.0.into(),
        Yaml::Value(Scalar::String(s)) => s.as_ref().into(),
        Yaml::Representation(s, style, _) if *style == saphyr::ScalarStyle::Plain => text(s),
        Yaml::Sequence(items) => Value::Array(items.iter().map(value).collect()),
        Yaml::Mapping(members) => {
            let members = members.iter().map(|(k, v)| match value(k) {
                Value::String(k) => (k, value(v)),
                k => (k.to_json().into(), value(v)),
            });
            Value::Object(members.collect())
        }
        _ => Value::Null,
    }
}

/// The bodies of the steps as JSON in document order.
fn bodies(scenario: &Yaml<'_>) -> Vec<String> {
    let steps = scenario
        .as_mapping_get("steps")
        .and_then(Yaml::as_vec)
        .into_iter()
        .flatten();
    steps
        .map(|step| step.as_mapping_get("body").map(text).unwrap_or_default())
        .collect()
}

fn text(yaml: &Yaml<'_>) -> String {
    match yaml {
        Yaml::Sequence(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(",")),
        Yaml::Mapping(members) => {
            let members = members.iter().map(|(k, v)| match value(k) {
                k @ Value::String(_) => format!("{}:{}", k.to_json(), text(v)),
                k => format!("{:?}:{}", k.to_json(), text(v)),
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        scalar => value(scalar).to_json(),
    }
}

fn glob(folder: &str, ending: &str) -> Vec<std::path::PathBuf> {
    let mut out = Vec::new();
    for area in std::fs::read_dir(folder).unwrap() {
        let files = std::fs::read_dir(area.unwrap().path())
            .into_iter()
            .flatten()
            .map(|f| f.unwrap().path());
        out.extend(files.filter(|f| f.extension().is_some_and(|e| e == ending)));
    }
    out
}

struct Server<'a> {
    environments: &'a Environments,
    stored: BTreeMap<String, Accepted>,
    /// Names whose deletion may be held up by objects: the answer to a new definition is not ours.
    deleted: BTreeSet<String>,
}

/// An answer, as far as definitions decide it.
#[derive(Debug)]
struct Answer {
    status: i64,
    message: Option<String>,
    causes: Vec<Value>,
    warnings: Vec<String>,
    spec: Option<Value>,
}

impl Answer {
    fn failed(status: i64, message: impl Into<String>) -> Self {
        Answer {
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
        Answer {
            causes: causes.collect(),
            ..Answer::failed(
                422,
                format!("{kind} \"{name}\" is invalid: {}", aggregate(errors)),
            )
        }
    }

    fn differs(&self, wanted: &Value) -> Option<String> {
        let body = wanted.get("body").unwrap();
        if Some(self.status) != wanted.get("status").and_then(Value::as_int) {
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
            texts(wanted.get("warnings")),
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

/// Type names in rule errors carry a number of no meaning; times are blanked in recordings, be they part of a rule.
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

fn refuse(why: &str) -> Answer {
    let kind = "CustomResourceDefinition";
    Answer::failed(
        400,
        format!("{kind} in version \"v1\" cannot be handled as a {kind}: {why}"),
    )
}

impl Server<'_> {
    /// Plays a step; none where it is not about definitions, or not decided by them alone.
    fn step(&mut self, step: &Value, text: &str) -> Option<Answer> {
        let (verb, path) = ["POST", "PUT", "PATCH", "DELETE"]
            .into_iter()
            .find_map(|v| step.get(v).and_then(Value::as_str).map(|p| (v, p)))?;
        let rest = path.strip_prefix(DEFINITIONS)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let name = rest.trim_start_matches('/');
        if verb == "DELETE" {
            self.stored.remove(name);
            self.deleted.insert(name.to_owned());
            return None;
        }
        let text = step.get("raw").and_then(Value::as_str).unwrap_or(text);
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
            _ if name.ends_with("/status") => {
                let old = self.stored.get_mut(name.trim_end_matches("/status"))?;
                let mut patched = old.encode(ApiVersion::V1);
                let kind = step
                    .get("contentType")
                    .and_then(Value::as_str)
                    .unwrap_or("merge-patch");
                patch(&mut patched, &body.value, kind)?;
                let mut new = Definition::decode(patched, ApiVersion::V1, Gates::default())
                    .ok()?
                    .definition;
                new.metadata.clone_from(&old.metadata);
                *old = Accepted::update_status(new, old).unwrap();
                None
            }
            "PUT" => {
                // Without the current version the answer is one of storage.
                step.get("current")?;
                Some(self.replace(name, body.value, query))
            }
            _ => {
                let mut patched = self.stored.get(name)?.encode(ApiVersion::V1);
                let kind = step.get("contentType").and_then(Value::as_str).unwrap_or("");
                if kind.contains("json-patch") {
                    body.value
                        .as_array()?
                        .iter()
                        .for_each(|op| apply(&mut patched, op));
                } else {
                    merge(&mut patched, &body.value);
                }
                Some(self.replace(name, patched, query))
            }
        }
    }

    /// Compares published schemas; none where the step does not ask for them, else the difference.
    fn published(&self, step: &Value, wanted: &Value) -> Option<Option<String>> {
        let path = step.get("GET")?.as_str()?.strip_prefix("/openapi/v3/apis/")?;
        let (group, version) = path.split_once('/')?;
        let definition = self.stored.values().find(|d| d.spec.group == group)?;
        let version = definition.spec.version(version).filter(|v| v.served)?;
        let schemas = wanted.at(["body", "components", "schemas"])?;
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
                return Some(Some(format!("{name} {got}\n  wanted {want}")));
            }
        }
        Some(None)
    }

    fn setting(&self) -> ValidationContext<'_> {
        ValidationContext {
            api: ApiVersion::V1,
            gates: Gates::default(),
            environments: self.environments,
        }
    }

    fn create(&mut self, text: &str, query: &str) -> Answer {
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
                return Answer {
                    warnings: strict,
                    ..Answer::invalid(&name, &errors)
                };
            }
        };
        if self.stored.contains_key(&name) {
            let resource = "customresourcedefinitions.apiextensions.k8s.io";
            return Answer::failed(409, format!("{resource} \"{name}\" already exists"));
        }
        let warnings = strict.into_iter().chain(accepted.warnings).collect();
        self.done(201, name, accepted.accepted, warnings, query)
    }

    fn replace(&mut self, name: &str, body: Value, query: &str) -> Answer {
        let Some(old) = self.stored.get(name) else {
            let resource = "customresourcedefinitions.apiextensions.k8s.io";
            return Answer::failed(404, format!("{resource} \"{name}\" not found"));
        };
        let mut definition = match Definition::decode(body, ApiVersion::V1, Gates::default()) {
            Ok(received) => received.definition,
            Err(e) => return refuse(&e.to_string()),
        };
        definition.metadata.insert("resourceVersion", "1".into());
        match Accepted::update(definition, old, &self.setting()) {
            Ok(a) => self.done(200, name.to_owned(), a.accepted, a.warnings, query),
            Err(errors) => Answer::invalid(name, &errors),
        }
    }

    fn done(
        &mut self,
        status: i64,
        name: String,
        accepted: Accepted,
        warnings: Vec<String>,
        query: &str,
    ) -> Answer {
        let spec = accepted.encode(ApiVersion::V1).get("spec").cloned();
        if !query.contains("dryRun") {
            let mut metadata = accepted.metadata.clone();
            metadata.insert("resourceVersion", "1".into());
            self.stored.insert(name, accepted.with_metadata(metadata));
            // Names that one definition gives up may be what another waits for.
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
        Answer {
            status,
            message: None,
            causes: Vec::new(),
            warnings,
            spec,
        }
    }
}

fn patch(target: &mut Value, patch: &Value, kind: &str) -> Option<()> {
    if kind.contains("json-patch") {
        patch.as_array()?.iter().for_each(|op| apply(target, op));
    } else {
        merge(target, patch);
    }
    Some(())
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if target.as_object().is_none() {
        *target = Value::Object(scantling_value::Map::new());
    }
    let target = target.as_object_mut().unwrap();
    for (key, value) in patch.iter() {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.get_or_insert_with(key, Value::default), value);
        }
    }
}

fn apply(target: &mut Value, op: &Value) {
    let path = op.get("path").and_then(Value::as_str).unwrap().replace("~1", "/");
    let (parent, last) = path.rsplit_once('/').unwrap();
    let mut at = target;
    for key in parent.split('/').skip(1) {
        at = match at {
            Value::Array(a) => &mut a[key.parse::<usize>().unwrap()],
            Value::Object(m) => m.get_mut(key).unwrap(),
            other => panic!("no {key} in {other:?}"),
        };
    }
    let value = || op.get("value").cloned().unwrap_or_default();
    match (at, op.get("op").and_then(Value::as_str).unwrap()) {
        (Value::Object(m), "remove") => drop(m.remove(last)),
        (Value::Object(m), _) => drop(m.insert(last, value())),
        (Value::Array(a), "remove") => drop(a.remove(last.parse().unwrap())),
        (Value::Array(a), "add") if last == "-" => a.push(value()),
        (Value::Array(a), "add") => a.insert(last.parse().unwrap(), value()),
        (Value::Array(a), _) => a[last.parse::<usize>().unwrap()] = value(),
        (other, op) => panic!("no {op} in {other:?}"),
    }
}
