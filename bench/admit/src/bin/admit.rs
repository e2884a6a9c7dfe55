//! Measures admission of real objects of the corpus, with and without decoding; and CRDs: the time to compile
//! them, and the memory they take with the whole corpus loaded.
//!
//! `cargo run --release --bin admit -- PATH/open.jsonl.gz`
//!
//! With the name of a CRD and a number, its object is decoded and created that many times without measuring,
//! for profilers. With `register` instead of a name, all CRDs are registered that many times.

use flate2::read::GzDecoder;
use scantling_admit::{
    AdmitOptions, AdmitOutcome, Gates, NewObjectMeta, Request, Resource, ResourceCompiler, WriteOperation,
    admit,
};
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::definition::{Accepted, ApiVersion, Definition, ValidationContext};
use scantling_schema::document::Schema;
use scantling_schema::meta::Scope;
use scantling_schema::plan::PlanCompiler;
use scantling_schema::rules::Environments;
use scantling_schema::structural::Interner;
use scantling_value::{Limits, Map, Str, Value, json};
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Counts the allocated bytes.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is forwarded unchanged to the system's allocator; only a counter is added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn entries(path: &str) -> impl Iterator<Item = Value> {
    let file = std::fs::File::open(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let lines = BufReader::new(GzDecoder::new(file))
        .split(b'\n')
        .map(|line| line.unwrap());
    lines
        .filter(|line| !line.is_empty())
        .map(|line| json::decode(&line, Limits::SERVER).unwrap())
}

fn text<'v>(v: &'v Value, path: &[&str]) -> &'v str {
    v.at(path.iter().copied())
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The median times of several functions that run alternately for about a fifth of a second, so that other
/// load on the machine slows down all of them.
fn times<const N: usize>(mut runs: [&mut dyn FnMut(); N]) -> [Duration; N] {
    let start = Instant::now();
    runs.iter_mut().for_each(|run| run());
    // The first run warms the caches and tells how many rounds fit.
    let rounds = (Duration::from_millis(200).as_nanos() / start.elapsed().as_nanos().max(50)).clamp(5, 20_000)
        as usize;
    let mut times: [Vec<Duration>; N] = std::array::from_fn(|_| Vec::with_capacity(rounds));
    for round in 0..rounds {
        for turn in 0..N {
            // In alternating order, because the previous run has warmed the caches for the next.
            let i = if round % 2 == 0 { turn } else { N - 1 - turn };
            let start = Instant::now();
            runs[i]();
            times[i].push(start.elapsed());
        }
    }
    times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    })
}

fn percent_more(with: Duration, without: Duration) -> f64 {
    (with.as_secs_f64() / without.as_secs_f64() - 1.0) * 100.0
}

fn micros(d: Duration) -> f64 {
    d.as_secs_f64() * 1e6
}

fn resource(crd: &Value, version: &str, compiler: &mut ResourceCompiler) -> Option<Resource> {
    let received = Definition::decode(crd.clone(), ApiVersion::V1, Gates::default()).ok()?;
    let accepted = Accepted::assume_accepted(received.definition);
    compiler.compile(&accepted, version).ok()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("the path of open.jsonl.gz");
    if let Some(name) = arguments.next() {
        let rounds = arguments
            .next()
            .map_or(1, |n| n.parse().expect("a number of rounds"));
        return match name.as_str() {
            "register" => (0..rounds).for_each(|_| drop(black_box(register(&texts(&path))))),
            name => repeat(&path, name, rounds),
        };
    }
    objects(&path);
    immutability();
    definitions(&path);
    registrations(&path);
}

/// The CRDs whose objects are created: the index of the object, and the time of Kubernetes' own code in
/// microseconds, if known.
const SUBJECTS: &[(&str, usize, Option<f64>)] = &[
    ("nodepools.karpenter.sh", 1, Some(739.0)),
    ("bgpfilters.projectcalico.org", 1, Some(1130.0)),
    ("applications.argoproj.io", 1, Some(3498.0)),
    ("clusters.cluster.x-k8s.io", 0, None),
    ("pipelineruns.tekton.dev", 6, None),
];

fn objects(path: &str) {
    println!(
        "object                                   bytes   decode   create  /decode   update  ratcheting  (microseconds)  Go's/create"
    );
    for (name, resource, object) in subjects(path) {
        let go = SUBJECTS
            .iter()
            .find(|(n, ..)| *n == name)
            .and_then(|(.., go)| *go);
        measure(&name, &resource, &object, go);
        if name == "applications.argoproj.io" {
            measure("  the same, grown to 1 MB", &resource, &grown(&object), None);
        }
    }
}

fn subjects(path: &str) -> impl Iterator<Item = (String, Resource, Value)> {
    entries(path).filter_map(|entry| {
        let crd = entry.get("crd").unwrap();
        let name = text(crd, &["metadata", "name"]);
        let (_, index, _) = SUBJECTS.iter().find(|(n, ..)| *n == name)?;
        let sample = &entry.get("objects").and_then(Value::as_array).unwrap()[*index];
        let resource = resource(crd, text(sample, &["version"]), &mut ResourceCompiler::default()).unwrap();
        let mut object = sample.get("object").unwrap().clone();
        let metadata = metadata(&mut object);
        match resource.scope {
            Scope::Namespaced => metadata.insert("namespace", "default".into()),
            Scope::Cluster => metadata.remove("namespace"),
        };
        Some((name.to_owned(), resource, object))
    })
}

fn metadata(object: &mut Value) -> &mut Map {
    let metadata = object.as_object_mut().and_then(|o| o.get_mut("metadata"));
    metadata.and_then(Value::as_object_mut).unwrap()
}

fn repeat(path: &str, name: &str, rounds: usize) {
    let (_, resource, object) = subjects(path).find(|(n, ..)| n == name).expect("a subject");
    let bytes = object.to_json().into_bytes();
    for _ in 0..rounds {
        drop(black_box(json::decode(&bytes, Limits::SERVER)));
        black_box(write(
            &resource,
            WriteOperation::Create(&identity()),
            &object,
            &AdmitOptions::default(),
        ));
    }
}

fn identity() -> NewObjectMeta {
    NewObjectMeta {
        uid: "5b8c1a0e".into(),
        created: "2026-08-01T00:00:00Z".into(),
        suffix: "x7k2p".into(),
    }
}

fn write(
    resource: &Resource,
    operation: WriteOperation<'_>,
    object: &Value,
    options: &AdmitOptions<'_>,
) -> AdmitOutcome {
    let request = Request {
        operation,
        object: object.clone(),
        findings: &[],
    };
    admit(resource, request, options)
}

/// Repeats the longest list until the object has a megabyte.
fn grown(object: &Value) -> Value {
    fn longest<'v>(v: &'v mut Value, best: &mut Option<(usize, &'v mut Vec<Value>)>) {
        match v {
            Value::Array(list) => {
                let size = list.iter().map(|v| v.to_json().len()).sum();
                if best.as_ref().is_none_or(|(s, _)| size > *s) {
                    *best = Some((size, list));
                }
            }
            Value::Object(map) => map.iter_mut().for_each(|(_, v)| longest(v, best)),
            _ => {}
        }
    }
    let mut object = object.clone();
    let whole = object.to_json().len();
    let mut best = None;
    longest(&mut object, &mut best);
    let (size, list) = best.unwrap();
    let once = list.clone();
    // Only whole copies of the list, so the size is about a megabyte.
    for _ in 0..(1_000_000 - whole) / size {
        list.extend(once.iter().cloned());
    }
    object
}

fn measure(name: &str, resource: &Resource, object: &Value, go: Option<f64>) {
    let identity = identity();
    let bytes = object.to_json().into_bytes();
    let options = AdmitOptions::default();
    let plain = AdmitOptions {
        gates: Gates {
            ratcheting: false,
            ..Gates::default()
        },
        ..AdmitOptions::default()
    };
    let create = || write(resource, WriteOperation::Create(&identity), object, &options);
    let stored = create();
    assert!(stored.error.is_none(), "{name}: {:?}", stored.error);
    let mut old = stored.object;
    metadata(&mut old).insert("resourceVersion", Value::from(Str::from("1")));
    let update = |options| write(resource, WriteOperation::Update(&old), &old, options);
    let [decode, clone, create, clone_old, update, without] = times([
        &mut || drop(black_box(json::decode(&bytes, Limits::SERVER).unwrap())),
        &mut || drop(black_box(object.clone())),
        &mut || drop(black_box(create())),
        &mut || drop(black_box(old.clone())),
        &mut || drop(black_box(update(&options))),
        &mut || drop(black_box(update(&plain))),
    ]);
    // Admission takes the object by value, so the time includes a clone, which is measured alone and subtracted.
    let create = create.saturating_sub(clone);
    let (update, without) = (
        update.saturating_sub(clone_old),
        without.saturating_sub(clone_old),
    );
    println!(
        "{name:38} {:8} {:8.1} {:8.1} {:8.2} {:8.1} {:+9.1} %                  {:>11}",
        bytes.len(),
        micros(decode),
        micros(create),
        micros(create) / micros(decode),
        micros(update),
        percent_more(update, without),
        go.map_or_else(String::new, |go| format!("{:.0} times", go / micros(create))),
    );
}

/// The overhead of immutability in an update: a list of a hundred objects in which every other field is
/// immutable.
fn immutability() {
    let schema = |mark: &str| {
        let field = |i: usize| {
            let mark = if i % 2 == 0 { mark } else { "" };
            format!(r#""field{i}": {{"type": "string", "maxLength": 64{mark}}}"#)
        };
        let fields: Vec<String> = (0..20).map(field).collect();
        format!(
            r#"{{"type": "object", "properties": {{"spec": {{"type": "object", "properties": {{"list": {{"type": "array",
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["field1"],
            "items": {{"type": "object", "properties": {{{}}}}}}}}}}}}}}}"#,
            fields.join(",")
        )
    };
    let item = |n: usize| {
        let field = |i: usize| format!(r#""field{i}": "the text of number {n}""#);
        format!("{{{}}}", (0..20).map(field).collect::<Vec<_>>().join(","))
    };
    let items: Vec<String> = (0..100).map(item).collect();
    let object = format!(
        r#"{{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {{"name": "a", "resourceVersion": "1", "uid": "u",
        "generation": 1}}, "spec": {{"list": [{}]}}}}"#,
        items.join(",")
    );
    let object = json::decode(object.as_bytes(), Limits::SERVER).unwrap();
    let old = object.clone();
    // One field has changed: otherwise there is nothing to compare.
    let mut object = object;
    let list = object
        .as_object_mut()
        .and_then(|o| o.get_mut("spec")?.as_object_mut());
    let list = list
        .and_then(|spec| spec.get_mut("list")?.as_array_mut())
        .unwrap();
    let item = list[50].as_object_mut().unwrap();
    item.insert("field3", Value::from("another text"));
    let options = AdmitOptions {
        gates: Gates {
            immutability: true,
            ..Gates::default()
        },
        ..AdmitOptions::default()
    };
    let resource = |mark: &str| {
        let crd = format!(
            r#"{{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {{"name": "things.example.com"}}, "spec": {{"group": "example.com", "scope": "Cluster",
            "names": {{"plural": "things", "kind": "Thing"}}, "versions": [{{"name": "v1", "served": true,
            "storage": true, "schema": {{"openAPIV3Schema": {}}}}}]}}}}"#,
            schema(mark)
        );
        let crd = json::decode(crd.as_bytes(), Limits::SERVER).unwrap();
        let decoded = Definition::decode(crd, ApiVersion::V1, options.gates).unwrap();
        let accepted = Accepted::assume_accepted(decoded.definition);
        ResourceCompiler::default().compile(&accepted, "v1").unwrap()
    };
    let (plain, marked) = (resource(""), resource(r#", "x-kubernetes-immutable": true"#));
    let update = |resource: &Resource| write(resource, WriteOperation::Update(&old), &object, &options);
    for resource in [&plain, &marked] {
        let refusal = update(resource).error;
        assert!(refusal.is_none(), "{refusal:?}");
    }
    let [clone, without, with] = times([
        &mut || drop(black_box(object.clone())),
        &mut || drop(black_box(update(&plain))),
        &mut || drop(black_box(update(&marked))),
    ]);
    let (without, with) = (without.saturating_sub(clone), with.saturating_sub(clone));
    println!(
        "\nan update of {} bytes takes {:.1} microseconds, with immutable fields {:.1} ({:+.0} %)",
        object.to_json().len(),
        micros(without),
        micros(with),
        percent_more(with, without),
    );
}

/// CRDs whose compile time in Kubernetes' own code is known, in milliseconds.
const COMPILED_BY_GO: &[(&str, f64)] = &[
    ("nodepools.karpenter.sh", 11.9),
    ("clusters.cluster.x-k8s.io", 9.8),
    ("applications.argoproj.io", 5.4),
];

fn definitions(path: &str) {
    let (mut interner, mut compiler) = (Interner::new(), PlanCompiler::new());
    let mut plans = Vec::new();
    // Memory is counted before and after each step, on the only thread.
    let (mut n, mut structural_bytes, mut plan_bytes, mut rule_bytes) = (0usize, 0usize, 0usize, 0usize);
    let mut lazy = Vec::new();
    let mut forced = Vec::new();
    for entry in entries(path) {
        let crd = entry.get("crd").unwrap();
        n += 1;
        for version in crd
            .at(["spec", "versions"])
            .and_then(Value::as_array)
            .unwrap_or_default()
        {
            let Some(schema) = version.at(["schema", "openAPIV3Schema"]) else {
                continue;
            };
            let name = text(crd, &["metadata", "name"]);
            let mark = || (IN_USE.load(Ordering::Relaxed), Instant::now());
            let start = mark();
            let Ok(structural) = Schema::new(schema).structural(&mut interner) else {
                continue;
            };
            let middle = mark();
            let plan = compiler.compile(&structural);
            let compiled = mark();
            plan.compile_rules();
            let end = mark();
            lazy.push((compiled.1 - start.1, name.to_owned()));
            forced.push((end.1 - start.1, name.to_owned()));
            structural_bytes += middle.0.saturating_sub(start.0);
            plan_bytes += compiled.0.saturating_sub(middle.0);
            rule_bytes += end.0.saturating_sub(compiled.0);
            plans.push(plan);
        }
    }
    println!(
        "\n{n} definitions with {} versions; {} different schemas, {} nodes",
        plans.len(),
        interner.len(),
        compiler.len()
    );
    let share = |bytes: usize| bytes as f64 / 1e3 / n as f64;
    println!(
        "memory per definition: {:.1} KB of schemas, {:.1} KB of plans; with all rules compiled {:.1} KB more",
        share(structural_bytes),
        share(plan_bytes),
        share(rule_bytes)
    );
    for (what, times) in [("lazily", &mut lazy), ("with all its rules", &mut forced)] {
        times.sort_unstable();
        let total: Duration = times.iter().map(|(t, _)| *t).sum();
        let at = |share: f64| micros(times[((times.len() - 1) as f64 * share) as usize].0);
        println!(
            "compiling a version {what}: mean {:.0}, median {:.0}, 99 % {:.0}, worst {:.0} microseconds ({})",
            micros(total) / times.len() as f64,
            at(0.5),
            at(0.99),
            at(1.0),
            times.last().unwrap().1
        );
    }
    for entry in entries(path) {
        let crd = entry.get("crd").unwrap();
        let name = text(crd, &["metadata", "name"]);
        let Some((_, go)) = COMPILED_BY_GO.iter().find(|(n, _)| *n == name) else {
            continue;
        };
        let version = text(
            &entry.get("objects").and_then(Value::as_array).unwrap()[0],
            &["version"],
        );
        let decoded = Definition::decode(crd.clone(), ApiVersion::V1, Gates::default()).unwrap();
        let accepted = Accepted::assume_accepted(decoded.definition);
        // Nothing is shared with other definitions, as at the start of a process.
        let compile = || ResourceCompiler::default().compile(&accepted, version).unwrap();
        // The compiled resources are kept, as in a server.
        let (mut idle, mut made) = (Vec::new(), Vec::new());
        let mut ready = Vec::new();
        let [nothing, lazy, forced] = times([
            // The creation of a compiler is measured alone and subtracted.
            &mut || idle.push(ResourceCompiler::default()),
            &mut || made.push(compile()),
            &mut || {
                ready.push(compile());
                ready.iter().next_back().unwrap().plan.compile_rules();
            },
        ]);
        let [lazy, forced] = [lazy, forced].map(|t| micros(t.saturating_sub(nothing)));
        println!(
            "{name:38} {lazy:8.0} microseconds lazily, {forced:8.0} with its rules: {:.0} times less than Go's {go} ms",
            go * 1e3 / forced
        );
    }
}

/// The CRDs of the corpus as a client sends them.
fn texts(path: &str) -> Vec<Vec<u8>> {
    entries(path)
        .map(|entry| entry.get("crd").unwrap().to_json().into_bytes())
        .collect()
}

/// Processes CRDs as a server does: decodes them, validates them with all their defaults and rules, and
/// resolves their names.
fn register(texts: &[Vec<u8>]) -> Vec<Accepted> {
    let environments = Environments::for_version(KubernetesVersion::LATEST);
    let setting = ValidationContext {
        api: ApiVersion::V1,
        gates: Gates::default(),
        environments: &environments,
    };
    let accept = |text: &Vec<u8>| {
        let document = json::decode(text, Limits::SERVER).ok()?;
        let received = Definition::decode(document, ApiVersion::V1, setting.gates).ok()?;
        let mut accepted = Accepted::create(received.definition, &setting).ok()?.accepted;
        accepted.update_conditions([], "2026-08-01T00:00:00Z");
        Some(accepted)
    };
    texts.iter().filter_map(accept).collect()
}

fn registrations(path: &str) {
    let texts = texts(path);
    let bytes: usize = texts.iter().map(Vec::len).sum();
    let before = IN_USE.load(Ordering::Relaxed);
    let start = Instant::now();
    let accepted = register(&texts);
    let took = start.elapsed();
    let held = IN_USE.load(Ordering::Relaxed).saturating_sub(before);
    println!(
        "\nregistering {} definitions of {} ({:.1} MB): {:.0} microseconds each, {:.0} KB each as documents",
        accepted.len(),
        texts.len(),
        bytes as f64 / 1e6,
        micros(took) / texts.len() as f64,
        held as f64 / 1e3 / texts.len() as f64,
    );
}
