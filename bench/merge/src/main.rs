//! Server-side apply and ownership after updates, over the size of the object, the number of managers and the number
//! of fields that the applier owns.
//!
//! `cargo run --release -p bench-merge`

use jiff::Timestamp;
use scantling_merge::apply::{FieldManager, Force, Versions};
use scantling_merge::typed::ObjectType;
use scantling_schema::document::Schema;
use scantling_schema::structural::Interner;
use scantling_value::{Limits, Map, Value, yaml};
use std::hint::black_box;
use std::time::{Duration, Instant};

struct OneVersion(ObjectType);

impl Versions for OneVersion {
    fn object_type(&self, api_version: &str) -> Option<&ObjectType> {
        (api_version == "g/v1").then_some(&self.0)
    }

    fn convert(&self, object: &Value, _: &str) -> Result<Value, String> {
        Ok(object.clone())
    }
}

const SCHEMA: &str = r"
type: object
properties:
  spec:
    type: object
    properties:
      settings: {type: object, additionalProperties: {type: string}}
      containers:
        type: array
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items:
          type: object
          properties:
            name: {type: string}
            image: {type: string}
            args: {type: array, items: {type: string}}
            env:
              type: array
              x-kubernetes-list-type: map
              x-kubernetes-list-map-keys: [name]
              items: {type: object, properties: {name: {type: string}, value: {type: string}}}
";

/// Containers with ten environment variables each, about 700 bytes a piece.
fn containers(prefix: &str, count: usize, tag: &str) -> Value {
    let container = |i: usize| {
        let env = |j: usize| {
            Value::Object(Map::from_iter([
                ("name", Value::from(format!("VARIABLE_{j}"))),
                ("value", format!("some value of {prefix}{i} {j}").into()),
            ]))
        };
        Value::Object(Map::from_iter([
            ("name", Value::from(format!("{prefix}{i}"))),
            ("image", format!("registry.example.com/{prefix}{i}:{tag}").into()),
            (
                "args",
                vec!["--verbose".to_owned(), "--port=8080".to_owned()].into(),
            ),
            ("env", Value::Array((0..10).map(env).collect())),
        ]))
    };
    Value::Array((0..count).map(container).collect())
}

fn thing(spec: Map) -> Value {
    Value::Object(Map::from_iter([
        ("apiVersion", Value::from("g/v1")),
        ("kind", "Thing".into()),
        (
            "metadata",
            Value::Object(Map::from_iter([("name", Value::from("x"))])),
        ),
        ("spec", Value::Object(spec)),
    ]))
}

fn best(rounds: usize, mut run: impl FnMut()) -> Duration {
    (0..rounds)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

fn main() {
    let schema = yaml::decode(SCHEMA.as_bytes(), Limits::SAFE).expect("the schema is YAML");
    let schema = Schema::new(&schema)
        .structural(&mut Interner::new())
        .expect("the schema is structural");
    let versions = OneVersion(ObjectType::new(schema));
    let fields = FieldManager::new(&versions, "g/v1", "Thing");
    println!(
        "{:<34}{:>10}{:>10}{:>8}{:>12}{:>12}{:>12}{:>12}",
        "object", "bytes", "managers", "owned", "apply us", "no-op us", "drop us", "update us"
    );
    // The first line is the case that the project promises: 10 KB, five managers, 50 owned fields, under 50 us.
    for (fields_each, managers, length) in [
        (10, 5, 170),
        (20, 5, 170),
        (40, 5, 170),
        (80, 5, 170),
        (5, 10, 170),
        (10, 10, 170),
    ] {
        let of = |m: usize, tag: &str, count: usize| {
            let value = "v".repeat(length);
            let settings =
                (0..count).map(|i| (format!("m{m}-setting-{i}"), Value::from(format!("{value}{tag}"))));
            thing(Map::from_iter([("settings", Value::Object(settings.collect()))]))
        };
        measure(
            &fields,
            "settings",
            managers,
            fields_each * managers,
            |m, tag, half| of(m, tag, if half { fields_each / 2 } else { fields_each }),
        );
    }
    for (each, managers) in [(3, 5), (6, 5), (12, 5), (24, 5)] {
        measure(
            &fields,
            "containers with environments",
            managers,
            each * managers * 34,
            |m, tag, half| {
                let count = if half { each / 2 } else { each };
                thing(Map::from_iter([(
                    "containers",
                    containers(&format!("m{m}-"), count, tag),
                )]))
            },
        );
    }
}

/// Five managers apply their parts; then the last one applies again: with other values, the same, and less.
fn measure(
    fields: &FieldManager<'_>,
    name: &str,
    managers: usize,
    owned: usize,
    config: impl Fn(usize, &str, bool) -> Value,
) {
    let now = |s: usize| Timestamp::from_second(1_700_000_000 + s as i64).expect("a time");
    let mut live = None;
    for m in 0..managers {
        let applied = fields.apply(
            live.as_ref(),
            &config(m, "1", false),
            &format!("manager-{m}"),
            Force::No,
            now(m),
        );
        live = Some(applied.expect("the parts do not overlap"));
    }
    let live = live.unwrap_or_default();
    let bytes = live.to_json().len();
    let me = format!("manager-{}", managers - 1);
    let rounds = (20_000_000 / bytes.max(1)).clamp(5, 2000);
    let apply = |config: &Value| {
        best(rounds, || {
            black_box(fields.apply(Some(&live), config, &me, Force::No, now(200))).expect("no conflict");
        })
    };
    let times = [
        apply(&config(managers - 1, "2", false)),
        apply(&config(managers - 1, "1", false)),
        apply(&config(managers - 1, "1", true)),
    ];
    let mut edited = live.clone();
    let metadata = edited
        .as_object_mut()
        .and_then(|o| o.get_mut("metadata"))
        .and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        metadata.insert(
            "labels",
            Value::Object(Map::from_iter([("edited", Value::from("yes"))])),
        );
    }
    let mut copies: Vec<_> = (0..rounds).map(|_| edited.clone()).collect();
    let update = best(rounds, || {
        let new = copies.pop().unwrap_or_default();
        black_box(fields.update(Some(&live), new, "editor", now(200)));
    });
    let us = |d: Duration| d.as_secs_f64() * 1e6;
    let [changed, same, less] = times.map(us);
    println!(
        "{name:<34}{bytes:>10}{managers:>10}{owned:>8}{changed:>12.1}{same:>12.1}{less:>12.1}{:>12.1}",
        us(update)
    );
}
