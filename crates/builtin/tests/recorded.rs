//! Replays recorded writes of built-in kinds: errors, warnings and stored objects are those of kube-apiserver.
//!
//! A write is decoded, defaulted, prepared and validated; admission plugins do not take part. `KIND=Pod` limits the run to a
//! kind and prints what differs: `KIND=Pod cargo test -p scantling-builtin --test recorded -- --nocapture`. Steps that are
//! known to differ are in `data/recorded_differences.txt`; delete those that are equal.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test panics, and prints what differs"
)]

use scantling_apitypes::{ApiResource, Extensions, TypeDef, TypeTable};
use scantling_builtin::{Context, KindBehavior, Operation, Subresource, User, Write, kind};
use scantling_schema::gates;
use scantling_schema::meta::{self, Scope};
use scantling_value::{ErrorList, FieldError, Limits, Map, Path, Value, json, yaml};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

/// The uid of new objects; recordings blank it.
const UID: &str = "00000000-0000-0000-0000-000000000000";

fn scenarios() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/scenarios/builtin")
}

/// A recorded write of an object of a kind.
struct Step<'s> {
    id: String,
    method: &'s str,
    path: &'s str,
    subresource: &'s str,
    kind: &'static KindBehavior,
    definition: &'static TypeDef,
    namespace: &'s str,
    body: &'s Value,
    answer: &'s Value,
}

/// The result of a write.
#[derive(Debug, Default, PartialEq)]
struct Verdict {
    causes: BTreeSet<String>,
    warnings: BTreeSet<String>,
    object: Option<Value>,
}

/// Members that admission plugins or allocators set, by kind; they are not compared.
const SET_BY_OTHERS: &[(&str, &[&[&str]])] = &[
    (
        "Pod",
        &[
            &["spec", "priority"],
            &["spec", "preemptionPolicy"],
            &["spec", "tolerations"],
            &["metadata", "name"],
        ],
    ),
    ("Node", &[&["spec", "taints"]]),
    (
        "Service",
        &[
            &["spec", "clusterIP"],
            &["spec", "clusterIPs"],
            &["spec", "ports"],
            &["spec", "ipFamilies"],
            &["spec", "ipFamilyPolicy"],
            &["spec", "healthCheckNodePort"],
        ],
    ),
    (
        "Job",
        &[
            &["spec", "selector"],
            &["spec", "template", "metadata"],
            &["metadata", "labels"],
        ],
    ),
    (
        "CertificateSigningRequest",
        &[
            &["spec", "username"],
            &["spec", "uid"],
            &["spec", "groups"],
            &["spec", "extra"],
        ],
    ),
];

/// Metadata that the caller of a kind sets, or that recordings leave out.
const METADATA: &[&str] = &[
    "managedFields",
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "namespace",
    "finalizers",
    "name",
    "generateName",
    "deletionGracePeriodSeconds",
];

fn run(step: &Step<'_>, old: Option<&Value>) -> Option<Verdict> {
    let table = TypeTable::latest();
    let context = Context {
        enabled: |gate| gates::is_on_by_default(gate),
        now: "2026-11-18T00:00:00Z",
        user: User::default(),
    };
    let decoded = table
        .decode(step.definition, step.body.clone(), Extensions::NONE)
        .ok()?;
    if !decoded.findings.is_empty() && step.path.contains("fieldValidation=Strict") {
        return None;
    }
    let mut object = table.in_memory(step.definition, decoded.members);
    let old = old.map(|old| {
        let mut old = old.as_object().cloned().unwrap_or_default();
        set_metadata(&mut old, "resourceVersion", "1");
        (step.kind.default)(&mut old, &context);
        Value::Object(old)
    });
    (step.kind.default)(&mut object, &context);
    let once = object.clone();
    (step.kind.default)(&mut object, &context);
    assert!(
        once == object,
        "{}: defaulting twice differs from defaulting once",
        step.id
    );
    let write = Write {
        operation: old.as_ref().map_or(Operation::Create, Operation::Update),
        subresource: match step.subresource {
            "status" => Subresource::Status,
            "finalize" => Subresource::Finalize,
            "approval" => Subresource::Approval,
            "ephemeralcontainers" => Subresource::EphemeralContainers,
            "resize" => Subresource::Resize,
            _ => Subresource::None,
        },
        context,
    };
    if !step.namespace.is_empty() {
        set_metadata(&mut object, "namespace", step.namespace);
    }
    if object
        .get("metadata")
        .is_none_or(|metadata| metadata.get_str("name").is_empty())
    {
        let prefix = step.body.str_at(["metadata", "generateName"]);
        if !prefix.is_empty() {
            set_metadata(&mut object, "name", &format!("{prefix}abcde"));
        }
    }
    if old.is_none() {
        set_metadata(&mut object, "uid", UID);
    }
    if let Some(old) = &old {
        set_metadata(&mut object, "resourceVersion", "1");
        for path in set_by_others(step.kind) {
            keep_absent(&mut object, old, path);
        }
    }
    (step.kind.prepare)(&mut object, &write);
    let object = Value::Object(object);
    let mut errors = check_metadata(step, &object, old.as_ref());
    check_finalizers(step, &object, &mut errors);
    (step.kind.validate)(&object, &write, &mut errors);
    let mut verdict = Verdict::default();
    for error in &errors {
        let cause = format!("{} {} {}", error.reason(), error.field(), error.message());
        verdict.causes.insert(cause.replace(UID, "<uid>"));
    }
    if verdict.causes.is_empty() {
        let mut warnings = Vec::new();
        (step.kind.warn)(&object, &write, &mut warnings);
        verdict.warnings = warnings.into_iter().collect();
        verdict.object = Some(comparable(step, &object));
    }
    Some(verdict)
}

fn set_metadata(object: &mut Map, field: &str, value: &str) {
    let metadata = object.get_or_insert_with("metadata", || Map::new().into());
    metadata.as_object_mut().unwrap().insert(field, value.into());
}

/// The checks of metadata that the caller of a kind does.
fn check_metadata(step: &Step<'_>, object: &Value, old: Option<&Value>) -> ErrorList {
    let facts = &step.kind.facts;
    let at = Path::ROOT.field("metadata");
    let mut metadata = object.get("metadata").cloned().unwrap_or_default();
    if let (Some(metadata), Some(old)) = (metadata.as_object_mut(), old) {
        for field in [
            "uid",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "namespace",
        ] {
            match old.at(["metadata", field]) {
                Some(value) => metadata.insert(field, value.clone()),
                None => metadata.remove(field),
            };
        }
    }
    match old {
        None => meta::check_new(Some(&metadata), scope(step.kind), facts.names, &at),
        Some(old) => meta::check_update(Some(&metadata), old.get("metadata"), &at),
    }
}

/// The check of finalizers that the caller of most kinds does.
fn check_finalizers(step: &Step<'_>, object: &Value, errors: &mut ErrorList) {
    let at = Path::ROOT.field("metadata");
    let at = at.field("finalizers");
    for (i, finalizer) in object.list_at(["metadata", "finalizers"]).iter().enumerate() {
        let name = finalizer.as_str().unwrap();
        let is_standard = matches!(name, "kubernetes" | "orphan" | "foregroundDeletion");
        if step.kind.facts.qualifies_finalizers && !is_standard && !name.contains('/') {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&at.index(i), name, why));
        }
    }
}

/// An object as a server writes it, without what others set.
fn comparable(step: &Step<'_>, object: &Value) -> Value {
    let members = object.as_object().cloned().unwrap_or_default();
    let mut object = Value::Object(TypeTable::latest().canonical(step.definition, members));
    for path in set_by_others(step.kind) {
        remove(&mut object, path);
    }
    for field in METADATA {
        remove(&mut object, &["metadata", field]);
    }
    for field in ["apiVersion", "kind"] {
        remove(&mut object, &[field]);
    }
    strip_times(&mut object);
    object
}

/// The scope of a kind.
fn scope(kind: &KindBehavior) -> Scope {
    let mut resources = TypeTable::latest().resources().iter();
    let resource = resources.find(|r| r.group == kind.facts.group && r.kind() == kind.facts.kind);
    match resource.map(ApiResource::scope) {
        Some(scantling_apitypes::Scope::Cluster) => Scope::Cluster,
        _ => Scope::Namespaced,
    }
}

fn set_by_others(kind: &KindBehavior) -> &'static [&'static [&'static str]] {
    let of_kind = SET_BY_OTHERS.iter().find(|(name, _)| *name == kind.facts.kind);
    of_kind.map_or(&[], |(_, paths)| paths)
}

/// Keeps a stored member that an update omits, as admission plugins do.
fn keep_absent(object: &mut Map, old: &Value, path: &[&str]) {
    let (Some((first, rest)), Some(stored)) = (path.split_first(), old.at(path.iter().copied())) else {
        return;
    };
    if rest.is_empty() {
        object.get_or_insert_with(first, || stored.clone());
    } else if let (Some(inner), Some(old)) = (object.get_mut(first), old.get(first))
        && let Some(inner) = inner.as_object_mut()
    {
        keep_absent(inner, old, rest);
    }
}

fn remove(value: &mut Value, path: &[&str]) {
    let Some(members) = value.as_object_mut() else {
        return;
    };
    match path {
        [] => {}
        [last] => drop(members.remove(last)),
        [first, rest @ ..] => {
            if let Some(inner) = members.get_mut(first) {
                remove(inner, rest);
            }
        }
    }
}

fn strip_times(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|key, value| {
                strip_times(value);
                !matches!(key, "lastTransitionTime" | "creationTimestamp") && !value.is_null()
            });
        }
        Value::Array(items) => items.iter_mut().for_each(strip_times),
        _ => {}
    }
}

/// The recorded result.
fn recorded(step: &Step<'_>) -> Option<Verdict> {
    let text = |v: &Value, field: &str| v.get_str(field).to_owned();
    let body = step.answer.get("body")?;
    let mut verdict = Verdict::default();
    match step.answer.get("status").and_then(Value::as_int)? {
        200 | 201 => {
            let warnings = step.answer.list("warnings").iter();
            verdict.warnings = warnings.filter_map(|w| w.as_str().map(str::to_owned)).collect();
            verdict.object = Some(comparable(step, body));
        }
        422 if body.get_str("reason") == "Invalid" => {
            for cause in body.list_at(["details", "causes"]) {
                verdict.causes.insert(format!(
                    "{} {} {}",
                    text(cause, "reason"),
                    text(cause, "field"),
                    text(cause, "message")
                ));
            }
        }
        _ => return None,
    }
    Some(verdict)
}

/// The resource that a path names, with the namespace, the name and the subresource.
fn parse_path(path: &str) -> Option<(&'static ApiResource, &str, &str, &str)> {
    let path = path.split('?').next()?;
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let (namespace, rest) = match rest {
        ["namespaces", namespace, rest @ ..]
            if !rest.is_empty() && !matches!(rest, ["status" | "finalize"]) =>
        {
            (*namespace, rest)
        }
        rest => ("", rest),
    };
    let (plural, name, sub) = match rest {
        [plural] => (*plural, "", ""),
        [plural, name] => (*plural, *name, ""),
        [plural, name, sub] => (*plural, *name, *sub),
        _ => return None,
    };
    let resources = TypeTable::latest().resources().iter();
    let mut found = resources.filter(|r| r.group == group && r.version == version && r.name == plural);
    found.next().map(|resource| (resource, namespace, name, sub))
}

/// Plays a scenario; calls a function with each write that is compared.
fn play(name: &str, steps: &[Value], golden: &[Value], compare: &mut dyn FnMut(&Step<'_>, Option<&Value>)) {
    let mut stored: BTreeMap<String, Value> = BTreeMap::new();
    for (i, (request, answer)) in steps.iter().zip(golden).enumerate() {
        let (method, path) = ["GET", "POST", "PUT", "PATCH", "DELETE"]
            .iter()
            .find_map(|method| Some((*method, request.get(method)?.as_str()?)))
            .unwrap();
        let Some((resource, namespace, name_in_path, sub)) = parse_path(path) else {
            continue;
        };
        let key = |name: &str| format!("{}/{}/{namespace}/{name}", resource.group, resource.name);
        let is_ok = matches!(answer.get("status").and_then(Value::as_int), Some(200 | 201));
        let body = request.get("body");
        let old = stored.get(&key(name_in_path));
        let behaviour = kind(resource.group, resource.kind());
        let definition = TypeTable::latest().kind(resource.group, resource.version, resource.kind());
        let is_own = !matches!(sub, "scale" | "binding" | "eviction" | "token");
        let is_write = (method == "POST" && name_in_path.is_empty()) || (method == "PUT" && old.is_some());
        // Errors of the request itself, and names that the server makes up, are not the kind's.
        let is_write =
            is_write && !path.contains("dryRun=some") && !answer.to_json().contains("\"${auto:name1}\\\"");
        if let (Some(body), Some(kind), Some(definition), true) =
            (body, behaviour, definition, is_own && is_write)
        {
            let step = Step {
                id: format!("{name}#{i}"),
                method,
                path,
                subresource: sub,
                kind,
                definition,
                namespace,
                body,
                answer,
            };
            compare(&step, old.filter(|_| step.method == "PUT"));
        }
        let answer = answer
            .get("body")
            .filter(|b| b.get_str("kind") == resource.kind());
        let is_dry = path.contains("dryRun");
        if let Some(body) = answer.filter(|_| is_ok && !is_dry && is_own) {
            let name = body.str_at(["metadata", "name"]);
            match method {
                "DELETE" => stored.remove(&key(name)),
                _ => stored.insert(key(name), body.clone()),
            };
        }
    }
}

#[test]
fn writes_match_the_recordings() {
    let wanted = std::env::var("KIND").ok();
    let mut counts: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    let mut differences = String::new();
    let mut files: Vec<PathBuf> = fs::read_dir(scenarios())
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    for file in files
        .iter()
        .filter(|f| f.extension().is_some_and(|e| e == "yaml"))
    {
        let text = fs::read(file).unwrap();
        for document in yaml::documents(&text) {
            let scenario = yaml::decode(document.unwrap().text, Limits::SERVER).unwrap();
            let name = scenario.get_str("name");
            let golden = scenarios()
                .join("golden")
                .join(format!("{}.json", name.replace('/', "__")));
            // Scenarios without a recording, and decisions of policies and webhooks, are not compared.
            let Ok(golden) = fs::read(golden) else { continue };
            let golden = json::decode(&golden, Limits::SERVER).unwrap();
            if name.contains("enforced") {
                continue;
            }
            play(
                name,
                scenario.list("steps"),
                golden.as_array().unwrap(),
                &mut |step, old| {
                    let kind = step.kind.facts.kind;
                    if wanted.as_deref().is_some_and(|wanted| wanted != kind) {
                        return;
                    }
                    let Some((want, got)) = recorded(step).zip(run(step, old)) else {
                        return;
                    };
                    let is_same = want == got;
                    let [equal, all] = counts.entry(kind).or_default();
                    *equal += usize::from(is_same);
                    *all += 1;
                    if !is_same {
                        differences += &format!("{kind} {} {} {}\n", step.id, step.method, step.path);
                        if wanted.is_some() {
                            println!("{} {} {}", step.id, step.method, step.path);
                            explain(&want, &got);
                        }
                    }
                },
            );
        }
    }
    if wanted.is_none() {
        println!("{differences}");
    }
    for (kind, [equal, all]) in &counts {
        println!("{kind}: {equal} of {all} equal");
    }
    let known: BTreeSet<&str> = include_str!("data/recorded_differences.txt").lines().collect();
    let new: Vec<&str> = differences.lines().filter(|line| !known.contains(line)).collect();
    assert!(
        new.is_empty(),
        "these steps used to be equal:\n{}",
        new.join("\n")
    );
}

fn explain(want: &Verdict, got: &Verdict) {
    for (title, want, got) in [
        ("cause", &want.causes, &got.causes),
        ("warning", &want.warnings, &got.warnings),
    ] {
        want.difference(got)
            .for_each(|text| println!("  - {title} {text}"));
        got.difference(want)
            .for_each(|text| println!("  + {title} {text}"));
    }
    if want.object != got.object {
        let text = |object: &Option<Value>| object.as_ref().map_or_else(String::new, yaml::encode);
        let (want, got) = (text(&want.object), text(&got.object));
        let (a, b): (BTreeSet<&str>, BTreeSet<&str>) = (want.lines().collect(), got.lines().collect());
        a.difference(&b).for_each(|line| println!("  - object {line}"));
        b.difference(&a).for_each(|line| println!("  + object {line}"));
    }
}
