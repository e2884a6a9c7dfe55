//! Validation, pruning and defaulting of values.
#![expect(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test may panic, and reads best so"
)]

use expect_test::{Expect, expect};
use proptest::prelude::*;
use scantling_schema::document::Schema;
use scantling_schema::plan::{Plan, PlanCompiler};
use scantling_schema::prune::{self, NullPolicy, UnknownFields, ValueRole};
use scantling_schema::structural::Interner;
use scantling_schema::validate::{Ratchet, validate};
use scantling_schema::{default, immutable, listtype};
use scantling_value::{Limits, Path, Value, yaml};

fn plan(schema: &str) -> Plan {
    let schema = yaml::decode(schema.as_bytes(), Limits::SAFE).unwrap();
    let structural = Schema::new(&schema).structural(&mut Interner::new()).unwrap();
    PlanCompiler::new().compile(&structural)
}

fn value(text: &str) -> Value {
    yaml::decode(text.as_bytes(), Limits::SAFE).unwrap()
}

#[track_caller]
fn errors(schema: &str, object: &str, expect: Expect) {
    let (plan, object) = (plan(schema), value(object));
    let mut found = validate(plan.root(), &object, &Path::ROOT, None);
    found.extend(listtype::duplicates(plan.root(), &object));
    let lines: String = found.iter().map(|e| format!("{e}\n")).collect();
    expect.assert_eq(&lines);
}

#[test]
fn any_of_reports_the_best_matching_branch() {
    errors(
        "
type: object
properties:
  a: {type: string}
  b: {type: string}
oneOf:
- properties: {a: {maxLength: 1}}
  required: [a]
- properties: {a: {maxLength: 1}, b: {maxLength: 1}}
  required: [a, b]
",
        "{a: long, b: long}",
        expect![[r#"
            <nil>: Invalid value: "": "" must validate one and only one schema (oneOf). Found none valid
            a: Too long: may not be more than 1 byte
            b: Too long: may not be more than 1 byte
        "#]],
    );
}

#[test]
fn numbers() {
    let schema = "{type: object, properties: {i: {type: integer}, num: {type: number, minimum: 0.5}, \
                  b: {type: integer, maximum: 1.5}, m: {type: integer, multipleOf: 3}}}";
    errors(
        schema,
        "{i: 1.5, num: 0, b: 1, m: 7}",
        expect![[r#"
            <nil>: Invalid value: "": Maximum boundary value must be of type integer (default format) in b
            i: Invalid value: "number": i in body must be of type integer: "number"
            <nil>: Invalid value: "": Checked value must be of type integer (default format) in i
            m: Invalid value: 7: m in body should be a multiple of 3
        "#]],
    );
}

#[test]
fn enums_convert_as_go_does() {
    let schema = "{type: object, properties: {s: {x-kubernetes-int-or-string: true, enum: [a]}, \
                  i: {type: number, enum: [1]}, z: {type: string, nullable: true, enum: [a, null]}}}";
    errors(schema, "{s: 97, i: 1.5}", expect![""]);
    errors(
        schema,
        "{s: 98, z: null}",
        expect![[r#"
            s: Unsupported value: 98: supported values: "a"
            z: Unsupported value: null: supported values: "a", "null"
        "#]],
    );
}

#[test]
fn integers_and_floats_in_sets_and_keys() {
    let plan = plan(
        "
type: object
properties:
  set: {type: array, x-kubernetes-list-type: set, items: {type: number}}
  keyed: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k, l], items: {type: object, properties: {k: {type: number}, l: {type: string}}}}
",
    );
    let one = || Value::Int(1);
    let float = || Value::Float(1.0);
    let entry = |k: Value| Value::Object([("k", k)].into_iter().collect());
    let object: Value = Value::Object(
        [
            ("set", Value::Array(vec![one(), float(), one(), one()])),
            ("keyed", Value::Array(vec![entry(one()), entry(float())])),
        ]
        .into_iter()
        .collect(),
    );
    let found: Vec<String> = listtype::duplicates(plan.root(), &object)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        found,
        [
            "keyed[1]: Duplicate value: {\"k\":1}",
            "set[2]: Duplicate value: 1"
        ]
    );
}

#[test]
fn ratcheting_observes_the_deadline() {
    let plan = plan("{type: object, properties: {a: {type: string, maxLength: 1}}}");
    let (old, new) = (value("{a: long}"), value("{a: long, b: 1}"));
    let ticks = std::cell::Cell::new(0);
    let clock = || {
        ticks.set(ticks.get() + 1);
        std::time::Duration::from_millis(ticks.get())
    };
    let ratchet = Ratchet::new(Some(&clock));
    assert!(validate(plan.root(), &new, &Path::ROOT, Some((&ratchet, &old))).is_empty());
    assert_eq!(ratchet.spent(), std::time::Duration::from_millis(1));
}

#[test]
fn equal_schemas_share_a_node() {
    let schema = value(
        "{type: object, properties: {a: {type: object, properties: {x: {type: string}}}, b: {type: object, properties: {x: {type: string}}}}}",
    );
    let structural = Schema::new(&schema).structural(&mut Interner::new()).unwrap();
    let mut compiler = PlanCompiler::new();
    let plan = compiler.compile(&structural);
    assert!(std::sync::Arc::ptr_eq(
        plan.root().property("a").unwrap(),
        plan.root().property("b").unwrap()
    ));
    assert_eq!(compiler.len(), 3);
    drop(plan);
    compiler.sweep();
    assert!(compiler.is_empty());
}

const SCHEMA: &str = "
type: object
required: [num]
properties:
  num: {type: integer, minimum: 2, maximum: 7, default: 5}
  s: {type: string, maxLength: 3, nullable: true, x-kubernetes-immutable: true}
  l: {type: array, maxItems: 2, items: {type: object, properties: {k: {type: string, default: d}, v: {type: integer}}}}
  m: {type: object, additionalProperties: {type: integer, maximum: 3}}
  p: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {num: {type: integer}}}
  u: {x-kubernetes-int-or-string: true}
anyOf: [{required: [s]}, {properties: {num: {minimum: 4}}}]
not: {properties: {s: {enum: [no]}}, required: [s]}
";

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (0i64..10).prop_map(Value::Int),
        (0u8..40).prop_map(|i| Value::Float(f64::from(i) / 4.0)),
        prop_oneof![Just("no"), Just("a"), Just("long text")].prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let key = prop_oneof![
            Just("num"),
            Just("s"),
            Just("l"),
            Just("m"),
            Just("p"),
            Just("u"),
            Just("k"),
            Just("v"),
            Just("x")
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((key, inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn pruning_and_defaulting_are_idempotent(v in any_value()) {
        let plan = plan(SCHEMA);
        let options = prune::PruneOptions { nulls: NullPolicy::Drop, unknown: UnknownFields::List };
        let mut once = v;
        prune::prune(plan.root(), &mut once, ValueRole::Part, &options);
        let pruned = once.clone();
        prop_assert!(prune::prune(plan.root(), &mut once, ValueRole::Part, &options).is_empty());
        prop_assert_eq!(&once, &pruned);
        default::fill(plan.root(), &mut once).unwrap();
        let filled = once.clone();
        default::fill(plan.root(), &mut once).unwrap();
        prop_assert_eq!(once, filled);
    }

    #[test]
    fn unchanged_values_are_ratcheted_without_warning(v in any_value()) {
        let plan = plan(SCHEMA);
        let options = prune::PruneOptions { nulls: NullPolicy::Drop, unknown: UnknownFields::Ignore };
        let mut v = v;
        prune::prune(plan.root(), &mut v, ValueRole::Part, &options);
        let open = v.get("p").and_then(Value::as_object).is_some_and(|p| p.keys().any(|k| k != "num"));
        prop_assume!(!open);
        let ratchet = Ratchet::new(None);
        let errors = validate(plan.root(), &v, &Path::ROOT, Some((&ratchet, &v)));
        prop_assert!(errors.is_empty(), "{errors:?}");
        if let Value::Object(v) = &v {
            let changes = immutable::changes(plan.root(), v, v);
            prop_assert!(!changes.any && changes.forbidden.is_empty());
        }
    }

    #[test]
    fn known_unchanged_elements_change_no_result(old in keyed_list(), new in keyed_list()) {
        let plan = plan(KEYED);
        let (before, after) = (old.as_object().unwrap(), new.as_object().unwrap());
        let kept = immutable::changes(plan.root(), before, after).unchanged;
        let unknowing = Ratchet::new(None);
        let knowing = Ratchet::new(None).with_unchanged(&kept);
        let told = |ratchet| {
            let errors = validate(plan.root(), &new, &Path::ROOT, Some((ratchet, &old)));
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        prop_assert_eq!(told(&knowing), told(&unknowing));
    }
}

const KEYED: &str = "
type: object
properties:
  spec:
    type: object
    properties:
      l:
        type: array
        maxItems: 3
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [k]
        items:
          type: object
          required: [s]
          properties:
            k: {type: string, maxLength: 1}
            s: {type: string, maxLength: 2, x-kubernetes-immutable: true}
            num: {type: integer, minimum: 5}
";

/// Generates short lists whose elements often share keys and are often invalid.
fn keyed_list() -> impl Strategy<Value = Value> {
    let text = |texts: &'static [&'static str]| prop::option::of(prop::sample::select(texts));
    let number = prop::option::of(prop::sample::select(vec![1i64, 7]));
    let element = (text(&["a", "b", "cc"]), text(&["x", "long"]), number).prop_map(|(k, s, num)| {
        let text = |name, text: Option<&str>| text.map(|text| (name, Value::from(text)));
        let num = num.map(|num| ("num", Value::Int(num)));
        let members = [text("k", k), num, text("s", s)];
        Value::Object(members.into_iter().flatten().collect())
    });
    let element = prop_oneof![8 => element, 1 => Just(Value::Null)];
    prop::collection::vec(element, 0..5).prop_map(|list| {
        let list = Value::Object([("l", Value::Array(list))].into_iter().collect());
        Value::Object([("spec", list)].into_iter().collect())
    })
}
