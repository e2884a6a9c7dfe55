//! Measures how the cost of a request grows with each dimension of its input.
//!
//! `cargo run --release -p bench-growth [FILTER]` prints the time of each dimension at 1x, 2x and 4x, and
//! fails if one grows faster than its input. Linear growth doubles from column to column; sorting adds a
//! little.

use scantling_admit::{
    AdmitOptions, FieldValidation, Gates, NewObjectMeta, Request, Resource, ResourceCompiler, WriteOperation,
    admit,
};
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_merge::fields::{FieldPath, Set};
use scantling_merge::json_patch::JsonPatch;
use scantling_merge::merge_patch;
use scantling_schema::definition::{Accepted, ApiVersion, Definition, ValidationContext};
use scantling_schema::rules::Environments;
use scantling_value::{Limits, Map, Value, json, yaml};
use std::fmt::Write as _;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The maximum growth from 1x to 4x. Linear work takes 4 times as long, `n log n` a little more, quadratic
/// work 16 times.
const MAX_GROWTH: f64 = 8.0;

/// A dimension of some input: its name, its size at 1x, and a function that prepares the work for a size.
type Dimension = (&'static str, usize, fn(usize) -> Box<dyn Fn()>);

const DIMENSIONS: &[Dimension] = &[
    ("unknown fields", 20_000, |n| {
        let spec = (0..n).map(|i| (format!("f{i}"), Value::Int(1))).collect::<Map>();
        admission(r#"{"type": "object"}"#, spec.into(), Map::new())
    }),
    ("invalid labels", 20_000, |n| {
        let labels = (0..n).map(|i| (format!("!{i}"), Value::from(""))).collect();
        admission(
            r#"{"type": "object"}"#,
            Map::new().into(),
            metadata([("labels", Value::Object(labels))]),
        )
    }),
    ("finalizers", 20_000, |n| {
        let names = (0..n).map(|i| Value::from(format!("example.com/f{i}"))).collect();
        let metadata = metadata([("finalizers", Value::Array(names))]);
        admission(r#"{"type": "object"}"#, Map::new().into(), metadata)
    }),
    ("owners that control", 2_000, |n| {
        let owner =
            decode(r#"{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u", "controller": true}"#);
        let metadata = metadata([("ownerReferences", Value::Array(vec![owner; n]))]);
        admission(r#"{"type": "object"}"#, Map::new().into(), metadata)
    }),
    ("invalid elements", 20_000, |n| {
        let schema = r#"{"type": "array", "items": {"type": "string", "pattern": "^y$"}}"#;
        admission(schema, Value::Array(vec!["x".into(); n]), Map::new())
    }),
    ("elements beside a large enumeration", 20_000, |n| {
        let values: Vec<String> = (0..20_000).map(|i| i.to_string()).collect();
        let schema = format!(
            r#"{{"type": "array", "items": {{"type": "integer", "enum": [{}]}}}}"#,
            values.join(",")
        );
        admission(
            &schema,
            (0..n).map(|i| (i as i64) % 20_000).collect::<Vec<_>>().into(),
            Map::new(),
        )
    }),
    ("elements of a set", 20_000, |n| {
        let schema = r#"{"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}"#;
        let values: Vec<Value> = (0..n).map(|i| (i / 2).to_string().into()).collect();
        admission(schema, values.into(), Map::new())
    }),
    ("elements of a list of type map", 10_000, |n| {
        let schema = r#"{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}}"#;
        let item = |i: usize| Value::Object(Map::from_iter([("k", (i / 2).to_string().into())]));
        admission(
            schema,
            (0..n).map(item).collect::<Vec<Value>>().into(),
            Map::new(),
        )
    }),
    ("missing defaults", 5_000, |n| {
        let properties: Vec<String> = (0..n)
            .map(|i| format!(r#""p{i}": {{"type": "string", "default": "x"}}"#))
            .collect();
        let schema = format!(
            r#"{{"type": "object", "properties": {{{}}}}}"#,
            properties.join(",")
        );
        admission(&schema, Map::new().into(), Map::new())
    }),
    ("broken rules", 5_000, |n| {
        let schema = r#"{"type": "array", "maxItems": 100000, "items": {"type": "string", "maxLength": 9,
            "x-kubernetes-validations": [{"rule": "self == 'y'"}]}}"#;
        admission(schema, Value::Array(vec!["x".into(); n]), Map::new())
    }),
    ("properties of a schema", 2_000, |n| {
        let properties: Vec<String> = (0..n)
            .map(|i| format!(r#""p{i}": {{"type": "string"}}"#))
            .collect();
        let text = definition(
            &format!(
                r#"{{"type": "object", "properties": {{{}}}}}"#,
                properties.join(",")
            ),
            1,
        );
        Box::new(move || {
            black_box(validated(&text));
        })
    }),
    ("errors of a CRD", 2_000, |n| {
        let properties: Vec<String> = (0..n).map(|i| format!(r#""p{i}": {{"minimum": 1}}"#)).collect();
        let text = definition(
            &format!(
                r#"{{"type": "object", "properties": {{{}}}}}"#,
                properties.join(",")
            ),
            1,
        );
        Box::new(move || {
            black_box(validated(&text));
        })
    }),
    ("versions of a CRD", 100, |n| {
        let text = definition(r#"{"type": "object"}"#, n);
        Box::new(move || {
            black_box(validated(&text));
        })
    }),
    ("duplicate keys in YAML", 20_000, |n| {
        let text: String = (0..n).map(|_| "a: 1\n").collect();
        Box::new(move || drop(black_box(yaml::decode_strict(text.as_bytes(), Limits::SERVER))))
    }),
    ("duplicate fields in JSON", 20_000, |n| {
        let text = format!("{{{}}}", vec![r#""a":1"#; n].join(","));
        Box::new(move || drop(black_box(json::decode_strict(text.as_bytes(), Limits::SERVER))))
    }),
    ("anchors and aliases", 2_000, |n| {
        let mut text = String::new();
        for i in 0..n {
            // Writing to a string cannot fail.
            let _ = write!(text, "a{i}: &x{i} [1, 2]\nb{i}: *x{i}\n");
        }
        Box::new(move || drop(black_box(yaml::decode_strict(text.as_bytes(), Limits::SERVER))))
    }),
    ("operations that insert at the start", 1_000, |n| {
        let document = Value::Object(Map::from_iter([(
            "l",
            Value::Array(vec![Value::Int(0); 100 * n]),
        )]));
        let operations = vec![r#"{"op":"add","path":"/l/0","value":1}"#; n].join(",");
        let patch = JsonPatch::decode(format!("[{operations}]").as_bytes(), Limits::SERVER).expect("a patch");
        Box::new(move || drop(black_box(patch.apply(document.clone()))))
    }),
    ("members of a merge patch", 20_000, |n| {
        let object = |value: i64| {
            (0..n)
                .map(|i| (format!("m{i}"), Value::Int(value)))
                .collect::<Map>()
        };
        let (document, patch) = (Value::Object(object(1)), Value::Object(object(2)));
        Box::new(move || drop(black_box(merge_patch::apply(document.clone(), patch.clone()))))
    }),
    ("paths of a field set", 20_000, |n| {
        let paths = |first: usize| -> Set {
            (first..first + n)
                .map(|i| FieldPath::from_names(["spec", &format!("f{i}")]))
                .collect()
        };
        let (a, b) = (paths(0), paths(n / 2));
        Box::new(move || {
            let (mut union, mut difference) = (a.clone(), a.clone());
            union.unite(b.clone());
            difference.subtract(&b);
            drop(black_box((union, difference)));
        })
    }),
    ("YAML of a deep object", 500, |n| {
        let value = decode(&format!("{}1{}", "[".repeat(n), "]".repeat(n)));
        Box::new(move || drop(black_box(yaml::encode(&value))))
    }),
];

fn decode(text: &str) -> Value {
    json::decode(text.as_bytes(), Limits::SERVER).expect("JSON")
}

fn metadata<const N: usize>(members: [(&str, Value); N]) -> Map {
    members.into_iter().collect()
}

fn definition(schema: &str, versions: usize) -> Value {
    let versions: Vec<String> = (0..versions)
        .map(|i| {
            let storage = i == 0;
            format!(
                r#"{{"name": "v{}", "served": true, "storage": {storage}, "schema": {{"openAPIV3Schema":
                    {{"type": "object", "properties": {{"spec": {schema}}}}}}}}}"#,
                i + 1
            )
        })
        .collect();
    decode(&format!(
        r#"{{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {{"name": "things.example.com"}}, "spec": {{"group": "example.com", "scope": "Namespaced",
            "names": {{"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}},
            "versions": [{}]}}}}"#,
        versions.join(",")
    ))
}

fn validated(document: &Value) -> usize {
    let read = Definition::decode(document.clone(), ApiVersion::V1, Gates::default());
    let mut definition = read.expect("a definition").definition;
    definition.prepare_create(Gates::default());
    let environments = Environments::for_version(KubernetesVersion::LATEST);
    let setting = ValidationContext {
        api: ApiVersion::V1,
        gates: Gates::default(),
        environments: &environments,
    };
    definition.validate(&setting).total()
}

fn admission(schema: &str, spec: Value, mut metadata: Map) -> Box<dyn Fn()> {
    // Compiled once, outside the measured work.
    let read =
        Definition::decode(definition(schema, 1), ApiVersion::V1, Gates::default()).expect("a definition");
    let accepted = Accepted::assume_accepted(read.definition);
    let resource: Resource = ResourceCompiler::default()
        .compile(&accepted, "v1")
        .expect("a resource");
    metadata.insert("name", "a".into());
    metadata.insert("namespace", "default".into());
    let object = Value::Object(Map::from_iter([
        ("apiVersion", "example.com/v1".into()),
        ("kind", "Thing".into()),
        ("metadata", metadata.into()),
        ("spec", spec),
    ]));
    let identity = NewObjectMeta {
        uid: "u".into(),
        created: "2026-01-01T00:00:00Z".into(),
        suffix: "abcde".into(),
    };
    Box::new(move || {
        let request = Request {
            operation: WriteOperation::Create(&identity),
            object: object.clone(),
            findings: &[],
        };
        let options = AdmitOptions {
            field_validation: FieldValidation::Warn,
            ..AdmitOptions::default()
        };
        drop(black_box(admit(&resource, request, &options)));
    })
}

/// The shortest of a few runs.
fn time(work: &dyn Fn()) -> Duration {
    let run = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    // The fastest run, because other load only makes runs slower.
    (0..5).map(run).min().unwrap_or_default()
}

fn main() -> ExitCode {
    let filter = std::env::args().nth(1).unwrap_or_default();
    println!(
        "{:<40} {:>10} {:>10} {:>10}  4x/1x",
        "dimension", "1x", "2x", "4x"
    );
    let mut superlinear = 0;
    for (name, size, prepare) in DIMENSIONS.iter().filter(|(name, ..)| name.contains(&filter)) {
        let [one, two, four] = [1, 2, 4].map(|times| time(&*prepare(size * times)));
        // A clock may measure zero for the smallest input.
        let growth = four.as_secs_f64() / one.as_secs_f64().max(1e-9);
        let mark = if growth > MAX_GROWTH { "  SUPERLINEAR" } else { "" };
        superlinear += usize::from(growth > MAX_GROWTH);
        let ms = |t: Duration| format!("{:.2} ms", t.as_secs_f64() * 1e3);
        println!(
            "{name:<40} {:>10} {:>10} {:>10}  {growth:.1}{mark}",
            ms(one),
            ms(two),
            ms(four)
        );
    }
    if superlinear == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
