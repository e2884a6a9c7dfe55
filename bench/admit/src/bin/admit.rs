//! What admission costs: real objects of the corpus, decoding excluded and included; and what definitions cost: the
//! time to compile them and the memory that they take with all of the corpus loaded.
//!
//! `cargo run --release --bin admit -- PATH/open.jsonl.gz`

use flate2::read::GzDecoder;
use scantling_admit::{Identity, Operation, Options, Request, Resource, admit};
use scantling_schema::document::Schema;
use scantling_schema::meta::Scope;
use scantling_schema::plan::Compiler;
use scantling_schema::structural::Interner;
use scantling_value::{Limits, Str, Value, json};
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Counts the bytes that are in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is handed on to the system's allocator as it came; only a counter is kept beside it.
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

/// The median time of a run, of a batch that takes about a fifth of a second.
fn time<T>(mut run: impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    black_box(run());
    let rounds =
        (Duration::from_millis(200).as_nanos() / start.elapsed().as_nanos().max(50)).clamp(5, 20_000);
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            black_box(run());
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn micros(d: Duration) -> f64 {
    d.as_secs_f64() * 1e6
}

fn resource(
    crd: &Value,
    version: &str,
    interner: &mut Interner,
    compiler: &mut Compiler,
) -> Option<Resource> {
    let spec = crd.get("spec")?;
    let versions = spec.get("versions")?.as_array()?;
    let found = versions.iter().find(|v| text(v, &["name"]) == version)?;
    let schema = found.at(["schema", "openAPIV3Schema"])?;
    let structural = Schema::new(schema).structural(interner).ok()?;
    Some(Resource {
        plan: compiler.compile(&structural),
        kind: text(spec, &["names", "kind"]).into(),
        api_version: format!("{}/{version}", text(spec, &["group"])).into(),
        scope: if text(spec, &["scope"]) == "Cluster" {
            Scope::Cluster
        } else {
            Scope::Namespaced
        },
        status: found.at(["subresources", "status"]).is_some(),
        scale: None,
        preserve_unknown_fields: false,
    })
}

fn main() {
    let path = std::env::args().nth(1).expect("the path of open.jsonl.gz");
    objects(&path);
    immutability();
    definitions(&path);
}

const SUBJECTS: &[(&str, usize)] = &[
    ("nodepools.karpenter.sh", 1),
    ("bgpfilters.projectcalico.org", 1),
    ("applications.argoproj.io", 1),
    ("clusters.cluster.x-k8s.io", 0),
    ("pipelineruns.tekton.dev", 6),
];

fn objects(path: &str) {
    println!(
        "object                                   bytes   decode   create   update  no ratchet  (microseconds)"
    );
    for entry in entries(path) {
        let crd = entry.get("crd").unwrap();
        let name = text(crd, &["metadata", "name"]);
        let Some((_, index)) = SUBJECTS.iter().find(|(n, _)| *n == name) else {
            continue;
        };
        let sample = &entry.get("objects").and_then(Value::as_array).unwrap()[*index];
        let (mut interner, mut compiler) = (Interner::new(), Compiler::new());
        let version = text(sample, &["version"]);
        let resource = resource(crd, version, &mut interner, &mut compiler).unwrap();
        let mut object = sample.get("object").unwrap().clone();
        let metadata = object
            .as_object_mut()
            .unwrap()
            .get_mut("metadata")
            .unwrap()
            .as_object_mut()
            .unwrap();
        match resource.scope {
            Scope::Namespaced => metadata.insert("namespace", "default".into()),
            Scope::Cluster => metadata.remove("namespace"),
        };
        measure(name, &resource, &object);
        if name == "applications.argoproj.io" {
            measure("  the same, grown to 1 MB", &resource, &grown(&object));
        }
    }
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
    for _ in 0..(1_000_000 - whole) / size {
        list.extend(once.iter().cloned());
    }
    object
}

fn measure(name: &str, resource: &Resource, object: &Value) {
    let identity = Identity {
        uid: "5b8c1a0e".into(),
        created: "2026-08-01T00:00:00Z".into(),
        suffix: "x7k2p".into(),
    };
    let bytes = object.to_json().into_bytes();
    let decode = time(|| json::decode(&bytes, Limits::SERVER).unwrap());
    let clone = time(|| object.clone());
    let write = |operation: Operation<'_>, object: &Value, options: &Options<'_>| {
        let request = Request {
            operation,
            object: object.clone(),
            found_in_text: &[],
        };
        admit(resource, request, options)
    };
    let options = Options::default();
    let stored = write(Operation::Create(&identity), object, &options);
    assert!(stored.refusal.is_none(), "{name}: {:?}", stored.refusal);
    let mut old = stored.object;
    let metadata = old
        .as_object_mut()
        .unwrap()
        .get_mut("metadata")
        .unwrap()
        .as_object_mut()
        .unwrap();
    metadata.insert("resourceVersion", Value::from(Str::from("1")));
    let create = time(|| write(Operation::Create(&identity), object, &options)).saturating_sub(clone);
    let clone_old = time(|| old.clone());
    let update = |options: &Options<'_>| {
        time(|| write(Operation::Update(&old), &old, options)).saturating_sub(clone_old)
    };
    let plain = Options {
        gates: scantling_admit::Gates {
            ratcheting: false,
            ..Default::default()
        },
        ..Options::default()
    };
    println!(
        "{name:38} {:8} {:8.1} {:8.1} {:8.1} {:8.1}",
        bytes.len(),
        micros(decode),
        micros(create),
        micros(update(&options)),
        micros(update(&plain)),
    );
}

/// What immutability adds to an update: a hundred objects in a list, of which every other field is immutable.
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
    let clone = time(|| object.clone());
    let gates = scantling_admit::Gates {
        immutability: true,
        ..Default::default()
    };
    let options = Options {
        gates,
        ..Options::default()
    };
    let update = |mark: &str| {
        let schema = json::decode(schema(mark).as_bytes(), Limits::SERVER).unwrap();
        let structural = Schema::new(&schema).structural(&mut Interner::new()).unwrap();
        let resource = Resource {
            plan: Compiler::new().compile(&structural),
            kind: "Thing".into(),
            api_version: "example.com/v1".into(),
            scope: Scope::Cluster,
            status: false,
            scale: None,
            preserve_unknown_fields: false,
        };
        // One field has changed: otherwise there is nothing to look at.
        let mut object = object.clone();
        let list = object
            .as_object_mut()
            .unwrap()
            .get_mut("spec")
            .unwrap()
            .as_object_mut()
            .unwrap();
        let item = list.get_mut("list").unwrap().as_array_mut().unwrap()[50]
            .as_object_mut()
            .unwrap();
        item.insert("field3", Value::from("another text"));
        let (old, object) = (&old, &object);
        let write = || {
            let request = Request {
                operation: Operation::Update(old),
                object: object.clone(),
                found_in_text: &[],
            };
            admit(&resource, request, &options)
        };
        assert!(write().refusal.is_none(), "{:?}", write().refusal);
        micros(time(write).saturating_sub(clone))
    };
    let (without, with) = (update(""), update(r#", "x-kubernetes-immutable": true"#));
    let bytes = object.to_json().len();
    let more = (with / without - 1.0) * 100.0;
    println!(
        "\nan update of {bytes} bytes takes {without:.1} microseconds, with immutable fields {with:.1} ({more:+.0} %)"
    );
}

fn definitions(path: &str) {
    let (mut interner, mut compiler) = (Interner::new(), Compiler::new());
    let mut plans = Vec::new();
    let (mut n, mut structural_bytes, mut plan_bytes) = (0usize, 0usize, 0usize);
    let mut times = Vec::new();
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
            let before = IN_USE.load(Ordering::Relaxed);
            let start = Instant::now();
            let Ok(structural) = Schema::new(schema).structural(&mut interner) else {
                continue;
            };
            let middle = IN_USE.load(Ordering::Relaxed);
            let plan = compiler.compile(&structural);
            times.push((start.elapsed(), text(crd, &["metadata", "name"]).to_owned()));
            structural_bytes += middle.saturating_sub(before);
            plan_bytes += IN_USE.load(Ordering::Relaxed).saturating_sub(middle);
            plans.push(plan);
        }
    }
    times.sort_unstable();
    let total: Duration = times.iter().map(|(t, _)| *t).sum();
    println!(
        "\n{n} definitions with {} versions; {} different schemas, {} nodes",
        plans.len(),
        interner.len(),
        compiler.len()
    );
    println!(
        "memory per definition: {:.1} KB of schemas, {:.1} KB of plans",
        structural_bytes as f64 / 1e3 / n as f64,
        plan_bytes as f64 / 1e3 / n as f64
    );
    let at = |share: f64| micros(times[((times.len() - 1) as f64 * share) as usize].0);
    println!(
        "compiling a version: mean {:.0}, median {:.0}, 99 % {:.0}, worst {:.0} microseconds ({})",
        micros(total) / times.len() as f64,
        at(0.5),
        at(0.99),
        at(1.0),
        times.last().unwrap().1
    );
}
