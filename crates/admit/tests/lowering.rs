//! A schema with extensions and its lowered form decide alike: random updates are accepted by both or refused by both.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may panic, and reads best so"
)]

use expect_test::expect;
use proptest::prelude::*;
use scantling_admit::{
    AdmitOptions, Gates, NewObjectMeta, Request, Resource, ResourceCompiler, WriteOperation, admit,
};
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::definition::{Accepted, ApiVersion, Definition};
use scantling_schema::lower::lower;
use scantling_value::{Limits, Map, Value, yaml};
use std::sync::LazyLock;

/// The schemas of `spec` whose two forms are compared.
const SCHEMAS: &[&str] = &[
    "{type: object, properties: {a: {type: string, x-kubernetes-immutable: true}, b: {type: string}}}",
    "{type: object, required: [a], properties: {a: {type: integer, x-kubernetes-immutable: true}, b: {type: string}}}",
    "{type: object, properties: {a: {type: integer, default: 3, x-kubernetes-immutable: true}}}",
    "{type: object, properties: {a-b: {x-kubernetes-int-or-string: true, x-kubernetes-immutable: true}, in: {type: number, x-kubernetes-immutable: true}}}",
    "{type: object, properties: {o: {type: object, x-kubernetes-immutable: true, properties: {a: {type: string}, l: {type: array, items: {type: string}}}}}}",
    "{type: object, properties: {o: {type: object, properties: {a: {type: string, x-kubernetes-immutable: true}, b: {type: string}}}}}",
    "{type: object, properties: {s: {type: array, x-kubernetes-list-type: set, x-kubernetes-immutable: true, items: {type: string}}}}",
    "{type: object, properties: {s: {type: array, maxItems: 4, x-kubernetes-list-type: set, x-kubernetes-addition-only: true, items: {type: string, maxLength: 3}}}}",
    "{type: object, properties: {s: {type: array, maxItems: 4, x-kubernetes-list-type: set, x-kubernetes-deletion-only: true, items: {type: string, maxLength: 3}}}}",
    "{type: object, required: [s], properties: {s: {type: array, maxItems: 4, x-kubernetes-list-type: set, x-kubernetes-deletion-only: true, items: {type: string, maxLength: 3}}}}",
    "{type: object, properties: {m: {type: object, maxProperties: 4, x-kubernetes-immutable-keys: true, additionalProperties: {type: string}}}}",
    "{type: object, properties: {m: {type: object, maxProperties: 4, x-kubernetes-addition-only: true, additionalProperties: {type: string, x-kubernetes-immutable: true}}}}",
    "{type: object, properties: {m: {type: object, maxProperties: 4, x-kubernetes-deletion-only: true, additionalProperties: {type: integer}}}}",
    "{type: object, properties: {m: {type: object, maxProperties: 4, additionalProperties: {type: object, properties: {a: {type: string, x-kubernetes-immutable: true}, b: {type: string}}}}}}",
    "{type: object, properties: {k: {type: array, maxItems: 4, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], x-kubernetes-immutable-keys: true,
       items: {type: object, required: [id], properties: {id: {type: string, maxLength: 3, x-kubernetes-immutable: true}, v: {type: string}}}}}}",
    "{type: object, properties: {k: {type: array, maxItems: 4, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id, p], x-kubernetes-addition-only: true,
       items: {type: object, required: [id, p], properties: {id: {type: string, maxLength: 3, x-kubernetes-immutable: true}, p: {type: integer, x-kubernetes-immutable: true}}}}}}",
    "{type: object, properties: {k: {type: array, maxItems: 4, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id],
       items: {type: object, x-kubernetes-immutable: true, required: [id], properties: {id: {type: string, maxLength: 3}, v: {type: string}}}}}}",
    "{type: object, properties: {k: {type: array, maxItems: 4, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], x-kubernetes-immutable: true,
       items: {type: object, required: [id], properties: {id: {type: string, maxLength: 3}, v: {type: string}}}}}}",
    "{type: object, properties: {o: {type: object, x-kubernetes-immutable: true, properties: {
       k: {type: array, maxItems: 4, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id],
       items: {type: object, required: [id], properties: {id: {type: string, maxLength: 3}, v: {type: string}}}}}}}}",
    "{type: object, properties: {l: {type: array, maxItems: 4, items: {type: string, x-kubernetes-immutable: true}}}}",
    "{type: object, properties: {l: {type: array, maxItems: 4, x-kubernetes-immutable: true, items: {type: string}}}}",
    "{type: object, properties: {l: {type: array, maxItems: 4, items: {type: object, properties: {a: {type: string, x-kubernetes-immutable: true}, b: {type: string},
       m: {type: object, maxProperties: 3, x-kubernetes-addition-only: true, additionalProperties: {type: string}}}}}}}",
    "{type: object, properties: {a: {type: string}, b: {type: string}, c: {type: string}},
       x-kubernetes-unions: [{fields: {a: '', b: ''}}]}",
    "{type: object, properties: {t: {type: string}, a: {type: string}, b: {type: string}},
       x-kubernetes-unions: [{discriminator: t, fields: {a: x, b: z}}]}",
    "{type: object, properties: {id: {type: integer, x-kubernetes-validations: [{rule: 'oldSelf == null ? self >= 1 : self >= oldSelf', appliesOnCreate: true}]}}}",
    "{type: object, properties: {id: {type: integer, x-kubernetes-validations: [{rule: 'self >= oldSelf', appliesOnCreate: true}]}}}",
];

fn read(text: &str) -> Value {
    yaml::decode(text.as_bytes(), Limits::SAFE).unwrap()
}

fn definition(schema: &Value) -> Value {
    let mut definition = read(
        "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com},
          spec: {group: example.com, scope: Cluster, names: {plural: things, singular: thing, kind: Thing, listKind: ThingList},
          versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {}}}]},
          status: {storedVersions: [v1]}}",
    );
    let versions = definition.as_object_mut().unwrap().get_mut("spec").unwrap();
    let versions = versions.as_object_mut().unwrap().get_mut("versions").unwrap();
    let version = versions.as_array_mut().unwrap()[0].as_object_mut().unwrap();
    let holder = version.get_mut("schema").unwrap().as_object_mut().unwrap();
    holder.insert("openAPIV3Schema", schema.clone());
    definition
}

fn compile(schema: &Value, gates: Gates) -> Resource {
    let decoded = Definition::decode(definition(schema), ApiVersion::V1, gates).unwrap();
    assert_eq!(decoded.findings, [], "{}", schema.to_json());
    let mut compiler = ResourceCompiler::for_version(KubernetesVersion::new(1, 29));
    compiler
        .compile(&Accepted::assume_accepted(decoded.definition), "v1")
        .unwrap()
}

/// A schema with extensions, and the same schema lowered.
struct Pair {
    extended: Resource,
    lowered: Resource,
    schema: Value,
}

fn extended_gates() -> Gates {
    Gates {
        immutability: true,
        unions: true,
        rules_on_create: true,
        ..Gates::default()
    }
}

static PAIRS: LazyLock<Vec<Pair>> = LazyLock::new(|| {
    let pair = |text: &&str| {
        let schema = read(&format!("{{type: object, properties: {{spec: {text}}}}}"));
        let mut lowered = schema.clone();
        let lowering = lower(&mut lowered);
        assert!(
            lowering.unsupported.is_empty(),
            "{text}: {:?}",
            lowering.unsupported
        );
        assert!(!lowering.rules.is_empty(), "{text}");
        Pair {
            extended: compile(&schema, extended_gates()),
            lowered: compile(&lowered, Gates::default()),
            schema: read(text),
        }
    };
    SCHEMAS.iter().map(pair).collect()
});

/// Values of a schema, out of so few that old and new ones often agree.
fn values(schema: &Value) -> BoxedStrategy<Value> {
    let text = prop::sample::select(vec!["a", "b", "x", "z"]).prop_map(Value::from);
    let number = (0_i64..3).prop_map(Value::Int);
    if schema.get("x-kubernetes-int-or-string").is_some() {
        return prop_oneof![text, number].boxed();
    }
    match schema.get_str("type") {
        "string" => text.boxed(),
        "integer" | "number" => number.boxed(),
        "array" => {
            let is_set = schema.get_str("x-kubernetes-list-type");
            let keys: Vec<String> = schema
                .list("x-kubernetes-list-map-keys")
                .iter()
                .map(|k| k.as_str().unwrap().to_owned())
                .collect();
            let list = is_set.to_owned();
            let items = values(schema.get("items").unwrap());
            prop::collection::vec(items, 0..4)
                .prop_map(move |items| {
                    let mut kept: Vec<Value> = Vec::new();
                    for item in items {
                        let is_twin = |other: &Value| match list.as_str() {
                            "set" => *other == item,
                            "map" => keys.iter().all(|k| other.get(k) == item.get(k)),
                            _ => false,
                        };
                        if !kept.iter().any(is_twin) {
                            kept.push(item);
                        }
                    }
                    Value::Array(kept)
                })
                .boxed()
        }
        "object" => match schema.get("additionalProperties") {
            Some(entries) => {
                let key = prop::sample::select(vec!["a", "b", "c"]);
                prop::collection::vec((key, values(entries)), 0..4)
                    .prop_map(|entries| entries.into_iter().collect::<Map>().into())
                    .boxed()
            }
            None => object(schema),
        },
        other => panic!("a schema of type {other:?}"),
    }
}

/// Objects of a schema with properties; those that are not required are often left out.
fn object(schema: &Value) -> BoxedStrategy<Value> {
    let required: Vec<&str> = schema.list("required").iter().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap();
    let members: Vec<_> = properties
        .iter()
        .map(|(name, property)| {
            let (name, value) = (name.clone(), values(property));
            let value = match required.contains(&name.as_str()) {
                true => value.prop_map(Some).boxed(),
                false => prop::option::of(value).boxed(),
            };
            value.prop_map(move |value| Some((name.clone(), value?)))
        })
        .collect();
    members
        .prop_map(|members| members.into_iter().flatten().collect::<Map>().into())
        .boxed()
}

fn thing(spec: &Value) -> Value {
    let mut object = read(
        "{apiVersion: example.com/v1, kind: Thing, metadata: {name: a, uid: u, resourceVersion: \"1\",
          creationTimestamp: 2026-08-01T00:00:00Z}}",
    );
    object.as_object_mut().unwrap().insert("spec", spec.clone());
    object
}

/// Returns the stored object of a write, or `None` if it is refused.
fn write(resource: &Resource, gates: Gates, operation: WriteOperation<'_>, spec: &Value) -> Option<Value> {
    let request = Request {
        operation,
        object: thing(spec),
        findings: &[],
    };
    let options = AdmitOptions {
        gates,
        ..AdmitOptions::default()
    };
    let outcome = admit(resource, request, &options);
    outcome.error.is_none().then_some(outcome.object)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn extensions_and_lowered_rules_agree(
        (pair, old, new) in (0..SCHEMAS.len()).prop_flat_map(|pair| {
            let values = values(&PAIRS[pair].schema);
            (Just(pair), values.clone(), values)
        })
    ) {
        let Pair { extended, lowered, schema } = &PAIRS[pair];
        let identity = NewObjectMeta { uid: "u".into(), created: "2026-08-01T00:00:00Z".into(), suffix: "x".into() };
        let create = WriteOperation::Create(&identity);
        let created = write(extended, extended_gates(), create, &old);
        let also_created = write(lowered, Gates::default(), create, &old);
        prop_assert_eq!(&created, &also_created, "create of {} by {}", old.to_json(), schema.to_json());
        let Some(stored) = created else { return Ok(()) };
        let update = WriteOperation::Update(&stored);
        let updated = write(extended, extended_gates(), update, &new).is_some();
        let also_updated = write(lowered, Gates::default(), update, &new).is_some();
        prop_assert_eq!(updated, also_updated, "{} to {} by {}", old.to_json(), new.to_json(), schema.to_json());
    }
}

#[test]
fn rules_and_reasons() {
    let lowered = |text: &str| {
        let mut schema = read(text);
        let lowering = lower(&mut schema);
        let rules = lowering
            .rules
            .iter()
            .map(|rule| format!("{} {}: {}\n", rule.field, rule.extension, rule.rule));
        let unsupported = lowering
            .unsupported
            .iter()
            .map(|no| format!("{} {}: not possible: {}\n", no.field, no.extension, no.reason));
        rules.chain(unsupported).collect::<String>()
    };
    expect![[r#"
        a x-kubernetes-immutable: self == oldSelf
        l[] x-kubernetes-immutable: [0, 1].all(i, i >= self.size() || i >= oldSelf.size() || (self[i] == oldSelf[i]))
        m x-kubernetes-addition-only: (!has(oldSelf.m) || oldSelf.m.size() == 0 || (has(self.m) && oldSelf.m.all(k, k in self.m)))
        m[*] x-kubernetes-immutable: self == oldSelf
        o.a-b x-kubernetes-immutable: has(self.a__dash__b) == has(oldSelf.a__dash__b) && (!has(self.a__dash__b) || (self.a__dash__b == oldSelf.a__dash__b))
        $x x-kubernetes-immutable: not possible: expressions cannot name the field `$x`
        any x-kubernetes-immutable: not possible: rules do not see fields that the schema does not declare; declare them
        nul x-kubernetes-immutable: not possible: rules cannot tell null from a field that is not set; remove `nullable`
        u[] x-kubernetes-immutable: not possible: elements of this list correspond by their index, which a rule can only compare in a list of at most 128 elements; set maxItems, or make it a list of type map
    "#]]
    .assert_eq(&lowered(
        "{type: object, required: [a], properties: {
           a: {type: string, x-kubernetes-immutable: true},
           l: {type: array, maxItems: 2, items: {type: string, x-kubernetes-immutable: true}},
           u: {type: array, items: {type: string, x-kubernetes-immutable: true}},
           m: {type: object, x-kubernetes-addition-only: true, additionalProperties: {type: string, x-kubernetes-immutable: true}},
           o: {type: object, properties: {a-b: {type: string, x-kubernetes-immutable: true}}},
           any: {type: object, x-kubernetes-immutable: true, x-kubernetes-preserve-unknown-fields: true},
           nul: {type: string, nullable: true, x-kubernetes-immutable: true},
           $x: {type: string, x-kubernetes-immutable: true}}}",
    ));
}
