//! The objects to write.

use scantling_value::{Map, Value};

pub const SCHEMA: &str = r"
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
        x-kubernetes-patch-strategy: merge
        x-kubernetes-patch-merge-key: name
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
              x-kubernetes-patch-strategy: merge
              x-kubernetes-patch-merge-key: name
              items: {type: object, properties: {name: {type: string}, value: {type: string}}}
      names:
        type: array
        x-kubernetes-list-type: set
        x-kubernetes-patch-strategy: merge
        items: {type: string}
";

/// A kind of object.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A map of values of about 170 bytes. With five managers and 10 KB it is the target case: 50 owned
    /// fields in under 50 microseconds.
    Settings,
    /// A keyed list of containers with ten environment variables each, about 1 400 bytes with their owners.
    Containers,
    /// A set of names: one long list.
    Names,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Settings, Kind::Containers, Kind::Names];

    pub fn named(name: &str) -> Option<Self> {
        match name {
            "settings" => Some(Kind::Settings),
            "containers" => Some(Kind::Containers),
            "names" => Some(Kind::Names),
            _ => None,
        }
    }

    pub fn about(self) -> &'static str {
        match self {
            Kind::Settings => "settings: a map of long values",
            Kind::Containers => "containers: a keyed list of objects with keyed lists in them",
            Kind::Names => "names: a set of short strings",
        }
    }

    /// The number of parts that each manager applies, for an object of `bytes` bytes.
    pub fn parts(self, bytes: usize, managers: usize) -> usize {
        let each = match self {
            Kind::Settings => 210,
            Kind::Containers => 1350,
            Kind::Names => 45,
        };
        (bytes / each / managers).max(2)
    }

    /// The configuration that a manager applies.
    pub fn config(self, manager: usize, parts: usize, tag: &str) -> Value {
        let (name, value) = match self {
            Kind::Settings => {
                let value = "v".repeat(170);
                let setting = |i| {
                    (
                        format!("m{manager}-setting-{i}"),
                        Value::from(format!("{value}{tag}")),
                    )
                };
                ("settings", Value::Object((0..parts).map(setting).collect()))
            }
            Kind::Containers => {
                let containers = (0..parts).map(|i| container(&format!("m{manager}-{i}"), tag));
                ("containers", Value::Array(containers.collect()))
            }
            Kind::Names => {
                let name = |i| Value::from(format!("m{manager}-{tag}-name-{i}"));
                ("names", Value::Array((0..parts).map(name).collect()))
            }
        };
        let metadata = Map::from_iter([("name", Value::from("x"))]);
        Value::Object(Map::from_iter([
            ("apiVersion", Value::from("g/v1")),
            ("kind", "Thing".into()),
            ("metadata", Value::Object(metadata)),
            ("spec", Value::Object(Map::from_iter([(name, value)]))),
        ]))
    }
}

fn container(name: &str, tag: &str) -> Value {
    let env = |j: usize| {
        Value::Object(Map::from_iter([
            ("name", Value::from(format!("VARIABLE_{j}"))),
            ("value", format!("some value of {name} {j}").into()),
        ]))
    };
    let args = vec!["--verbose".to_owned(), "--port=8080".to_owned()];
    Value::Object(Map::from_iter([
        ("name", Value::from(name)),
        ("image", format!("registry.example.com/{name}:{tag}").into()),
        ("args", args.into()),
        ("env", Value::Array((0..10).map(env).collect())),
    ]))
}
