//! Verdicts are held against what really happens to objects.

mod generate;

use super::compatibility::Compatibility;
use super::object::with_label_change;
use super::schemas::{self, Treatment};
use expect_test::expect;
use generate::Choices;
use proptest::prelude::*;
use scantling_admit::{
    AdmitOptions, AdmitOutcome, NewObjectMeta, Request, Resource, ResourceCompiler, WriteOperation, admit,
    prune_and_default_stored,
};
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::definition::{Accepted, ApiVersion, Definition, Gates, ValidationContext};
use scantling_schema::rules::Environments;
use scantling_value::{Limits, Value, json};
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::sync::LazyLock;

static ENVIRONMENTS: LazyLock<Environments> =
    LazyLock::new(|| Environments::for_version(KubernetesVersion::LATEST));

fn value(json: &Json) -> Value {
    json::decode(json.to_string().as_bytes(), Limits::SERVER).unwrap()
}

/// The resource of a schema, if a cluster would accept it.
fn resource(schema: &Json) -> Option<Resource> {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "as.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "as", "singular": "a", "kind": "A", "listKind": "AList"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    });
    let gates = Gates::default();
    let received = Definition::decode(value(&definition), ApiVersion::V1, gates).ok()?;
    let setting = ValidationContext {
        api: ApiVersion::V1,
        gates,
        environments: &ENVIRONMENTS,
    };
    let accepted = Accepted::create(received.definition, &setting).ok()?.accepted;
    ResourceCompiler::default().compile(&accepted, "v1").ok()
}

fn verdict(old: &Json, new: &Json) -> Compatibility {
    let (old, new) = (value(old), value(new));
    let treatment = Treatment {
        ratcheting: true,
        everything_stays: false,
    };
    let changes = schemas::compare(old.as_object().unwrap(), new.as_object().unwrap(), treatment);
    changes
        .iter()
        .map(|c| c.compatibility)
        .max()
        .unwrap_or(Compatibility::Safe)
}

fn object(spec: &Json) -> Value {
    value(
        &json!({"apiVersion": "example.com/v1", "kind": "A", "metadata": {"name": "a", "resourceVersion": "1"}, "spec": spec}),
    )
}

fn create(resource: &Resource, mut object: Value) -> AdmitOutcome {
    let identity = NewObjectMeta {
        uid: "u".into(),
        created: "2020-01-01T00:00:00Z".into(),
        suffix: "00000".into(),
    };
    let metadata = object.as_object_mut().unwrap().get_mut("metadata").unwrap();
    // kube-apiserver refuses a create with a resource version.
    metadata.as_object_mut().unwrap().remove("resourceVersion");
    ask(resource, WriteOperation::Create(&identity), object)
}

fn ask(resource: &Resource, operation: WriteOperation<'_>, object: Value) -> AdmitOutcome {
    let request = Request {
        operation,
        object,
        findings: &[],
    };
    admit(resource, request, &AdmitOptions::default())
}

/// An update of a stored object, as a server reads it, to another one.
fn update(resource: &Resource, stored: &Value, to: Value) -> AdmitOutcome {
    let mut old = stored.clone();
    prune_and_default_stored(resource, &mut old).unwrap();
    ask(resource, WriteOperation::Update(&old), to)
}

/// Whether everything that is in one value is in another one, too. Nulls may go.
fn is_kept(value: &Value, within: &Value) -> bool {
    match (value, within) {
        (Value::Object(a), Value::Object(b)) => a
            .iter()
            .filter(|(_, v)| !v.is_null())
            .all(|(name, v)| b.get(name).is_some_and(|w| is_kept(v, w))),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(v, w)| is_kept(v, w))
        }
        _ => true,
    }
}

/// What contradicts a verdict; nothing where there is nothing to be said, since a cluster refuses one of the schemas.
fn contradiction(old: &Json, new: &Json, specs: &[Json]) -> Option<String> {
    let (before, after) = (resource(old)?, resource(new)?);
    let verdict = verdict(old, new);
    if verdict == Compatibility::Breaking {
        return None;
    }
    let created = specs.iter().map(|spec| create(&before, object(spec)));
    let stored: Vec<Value> = created
        .filter(|outcome| outcome.error.is_none())
        .map(|outcome| {
            let mut object = outcome.object;
            let metadata = object.as_object_mut().unwrap().get_mut("metadata").unwrap();
            metadata
                .as_object_mut()
                .unwrap()
                .insert("resourceVersion", "1".into());
            object
        })
        .collect();
    for object in &stored {
        let said = |what: &str, outcome: &AdmitOutcome| {
            let refusal = outcome.error.as_ref()?;
            Some(format!(
                "{verdict:?}, but {what} {}: {refusal:?}",
                object.to_json()
            ))
        };
        let mut loaded = object.clone();
        prune_and_default_stored(&after, &mut loaded).unwrap();
        if !is_kept(object, &loaded) {
            return Some(format!("{verdict:?}, but {} loses something", object.to_json()));
        }
        // A rule about changes may refuse a write that changes too little, then as now.
        if update(&before, object, with_label_change(object.clone()))
            .error
            .is_none()
        {
            let outcome = update(&after, object, with_label_change(object.clone()));
            if let Some(text) = said("refuses to touch", &outcome) {
                return Some(text);
            }
        }
        if verdict != Compatibility::Safe {
            continue;
        }
        if let Some(text) = said("refuses to create", &create(&after, object.clone())) {
            return Some(text);
        }
        for other in &stored {
            if update(&before, object, other.clone()).error.is_some() {
                continue;
            }
            let outcome = update(&after, object, other.clone());
            if let Some(text) = said(&format!("refuses to make {} of", other.to_json()), &outcome) {
                return Some(text);
            }
        }
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A change that is called safe refuses nothing that was accepted; one that is called safe with ratcheting refuses
    /// nothing that is not touched.
    #[test]
    fn verdicts_hold_for_generated_objects(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut choices = Choices::new(&bytes);
        let old = generate::definition(&mut choices);
        let new = generate::changed(&old, &mut choices);
        let specs: Vec<Json> = (0..8).map(|n| generate::spec(if n % 2 == 0 { &old } else { &new }, &mut choices)).collect();
        let found = contradiction(&old, &new, &specs);
        prop_assert!(found.is_none(), "{}\nold: {old}\nnew: {new}", found.unwrap_or_default());
    }
}

/// A field with a keyword, in a specification that has another one beside it.
fn around(field: &Json) -> Json {
    let spec = json!({"type": "object", "properties": {"x": field, "other": {"type": "string"}}});
    json!({"type": "object", "properties": {"spec": spec}})
}

/// Every keyword in both directions. What it says is held against objects with some values.
#[test]
fn every_keyword_has_a_verdict() {
    let integer = |keyword: &str, v: Json| json!({"type": "integer", keyword: v});
    let string = |keyword: &str, v: Json| json!({"type": "string", keyword: v});
    let list = |keyword: &str, v: Json| json!({"type": "array", "items": {"type": "string"}, keyword: v});
    let map = |keyword: &str, v: Json| json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, keyword: v});
    let keyed = |keys: Json| {
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": {
            "type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}})
    };
    let plain = |ty: &str| json!({"type": ty});
    let rule = |rule: &str| string("x-kubernetes-validations", json!([{"rule": rule}]));
    let open = |field: Option<Json>| {
        let mut open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        if let Some(field) = field {
            open["properties"] = json!({"a": field});
        }
        open
    };
    let any_list = json!({"type": "array", "items": {"type": "string"}});
    let any_map =
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}});
    let pairs = [
        ("type: string or integer", plain("string"), plain("integer")),
        ("type: integer or number", plain("integer"), plain("number")),
        (
            "format: none or int32",
            plain("integer"),
            integer("format", json!("int32")),
        ),
        (
            "format: none or date",
            plain("string"),
            string("format", json!("date")),
        ),
        ("title", plain("string"), string("title", json!("a"))),
        ("description", plain("string"), string("description", json!("a"))),
        (
            "default: none or some",
            plain("integer"),
            integer("default", json!(2)),
        ),
        (
            "default: one or another",
            integer("default", json!(1)),
            integer("default", json!(2)),
        ),
        (
            "maximum: none or some",
            plain("integer"),
            integer("maximum", json!(1)),
        ),
        (
            "maximum: 2 or 1",
            integer("maximum", json!(2)),
            integer("maximum", json!(1)),
        ),
        (
            "exclusiveMaximum",
            integer("maximum", json!(1)),
            json!({"type": "integer", "maximum": 1, "exclusiveMaximum": true}),
        ),
        (
            "minimum: none or some",
            plain("integer"),
            integer("minimum", json!(1)),
        ),
        (
            "minimum: 1 or 2",
            integer("minimum", json!(1)),
            integer("minimum", json!(2)),
        ),
        (
            "exclusiveMinimum",
            integer("minimum", json!(1)),
            json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}),
        ),
        (
            "multipleOf: none or some",
            plain("integer"),
            integer("multipleOf", json!(2)),
        ),
        (
            "multipleOf: 2 or 4",
            integer("multipleOf", json!(2)),
            integer("multipleOf", json!(4)),
        ),
        (
            "multipleOf: 2 or 3",
            integer("multipleOf", json!(2)),
            integer("multipleOf", json!(3)),
        ),
        (
            "maxLength: none or some",
            plain("string"),
            string("maxLength", json!(1)),
        ),
        (
            "maxLength: 2 or 1",
            string("maxLength", json!(2)),
            string("maxLength", json!(1)),
        ),
        (
            "minLength: none or 0",
            plain("string"),
            string("minLength", json!(0)),
        ),
        (
            "minLength: none or some",
            plain("string"),
            string("minLength", json!(1)),
        ),
        (
            "pattern: none or some",
            plain("string"),
            string("pattern", json!("^a")),
        ),
        (
            "pattern: one or another",
            string("pattern", json!("^a")),
            string("pattern", json!("^b")),
        ),
        (
            "maxItems: none or some",
            any_list.clone(),
            list("maxItems", json!(1)),
        ),
        (
            "minItems: none or some",
            any_list.clone(),
            list("minItems", json!(1)),
        ),
        (
            "uniqueItems: none or off",
            any_list.clone(),
            list("uniqueItems", json!(false)),
        ),
        (
            "maxProperties: none or some",
            any_map.clone(),
            map("maxProperties", json!(1)),
        ),
        (
            "minProperties: none or some",
            any_map.clone(),
            map("minProperties", json!(1)),
        ),
        (
            "required: none or some",
            any_map.clone(),
            map("required", json!(["a"])),
        ),
        (
            "required: in other order",
            map("required", json!(["a", "b"])),
            map("required", json!(["b", "a"])),
        ),
        (
            "enum: none or some",
            plain("string"),
            string("enum", json!(["a"])),
        ),
        (
            "enum: two or one",
            string("enum", json!(["a", "b"])),
            string("enum", json!(["a"])),
        ),
        (
            "allOf: none or some",
            plain("string"),
            string("allOf", json!([{"maxLength": 1}])),
        ),
        (
            "anyOf: none or some",
            plain("string"),
            string("anyOf", json!([{"maxLength": 1}])),
        ),
        (
            "anyOf: two or one",
            string("anyOf", json!([{"maxLength": 1}, {"pattern": "^a"}])),
            string("anyOf", json!([{"maxLength": 1}])),
        ),
        (
            "oneOf: none or some",
            plain("string"),
            string("oneOf", json!([{"maxLength": 1}])),
        ),
        (
            "oneOf: two or one",
            string("oneOf", json!([{"maxLength": 1}, {"pattern": "^ab"}])),
            string("oneOf", json!([{"maxLength": 1}])),
        ),
        (
            "not: none or some",
            plain("string"),
            string("not", json!({"maxLength": 1})),
        ),
        (
            "items: one or another",
            any_list.clone(),
            list("items", json!({"type": "string", "maxLength": 1})),
        ),
        (
            "properties: one or two",
            any_map.clone(),
            json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        ),
        (
            "additionalProperties: none or some",
            plain("object"),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
        ),
        (
            "additionalProperties: one or another",
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object", "additionalProperties": {"type": "string", "maxLength": 1}}),
        ),
        ("nullable", plain("string"), string("nullable", json!(true))),
        (
            "nullable: none or off",
            plain("string"),
            string("nullable", json!(false)),
        ),
        (
            "nullable with values",
            string("enum", json!(["a"])),
            json!({"type": "string", "enum": ["a"], "nullable": true}),
        ),
        (
            "x-kubernetes-preserve-unknown-fields",
            any_map.clone(),
            map("x-kubernetes-preserve-unknown-fields", json!(true)),
        ),
        (
            "a field that was unknown: a number",
            open(None),
            open(Some(plain("integer"))),
        ),
        (
            "a field that was unknown: an object",
            open(None),
            open(Some(plain("object"))),
        ),
        (
            "x-kubernetes-int-or-string",
            plain("integer"),
            json!({"x-kubernetes-int-or-string": true}),
        ),
        (
            "x-kubernetes-embedded-resource",
            open(None),
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true}),
        ),
        (
            "x-kubernetes-list-type: none or atomic",
            any_list.clone(),
            list("x-kubernetes-list-type", json!("atomic")),
        ),
        (
            "x-kubernetes-list-type: none or set",
            any_list,
            list("x-kubernetes-list-type", json!("set")),
        ),
        (
            "x-kubernetes-list-map-keys",
            keyed(json!(["a", "b"])),
            keyed(json!(["a"])),
        ),
        (
            "x-kubernetes-map-type: none or granular",
            any_map.clone(),
            map("x-kubernetes-map-type", json!("granular")),
        ),
        (
            "x-kubernetes-map-type: none or atomic",
            any_map,
            map("x-kubernetes-map-type", json!("atomic")),
        ),
        (
            "x-kubernetes-validations: none or some",
            plain("string"),
            rule("self.size() < 2"),
        ),
        (
            "x-kubernetes-validations: one or another",
            rule("self.size() < 2"),
            rule("self.size() < 3"),
        ),
        (
            "x-kubernetes-validations: constant",
            plain("string"),
            rule("self == oldSelf"),
        ),
        (
            "x-kubernetes-validations: growing",
            plain("string"),
            rule("self.size() > oldSelf.size()"),
        ),
        (
            "x-kubernetes-validations: messages",
            rule("self.size() < 2"),
            string(
                "x-kubernetes-validations",
                json!([{"rule": "self.size() < 2", "message": "short"}]),
            ),
        ),
        (
            "x-kubernetes-validations: optionalOldSelf",
            string(
                "x-kubernetes-validations",
                json!([{"rule": "oldSelf.orValue('') == self", "optionalOldSelf": true}]),
            ),
            rule("self == oldSelf"),
        ),
    ];
    let values = [
        json!(null),
        json!(0),
        json!(1),
        json!(2),
        json!(3),
        json!(4),
        json!(1.5),
        json!(3_000_000_000u64),
        json!(""),
        json!("a"),
        json!("b"),
        json!("ab"),
        json!("abc"),
        json!("2020-01-01"),
        json!([]),
        json!(["a"]),
        json!(["ab", "ab"]),
        json!([null]),
        json!({}),
        json!({"a": "a"}),
        json!({"a": "a", "b": 1}),
        json!({"b": 1}),
        json!({"a": "ab"}),
        json!({"a": 1}),
        json!({"a": {"c": 1}}),
        json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}),
        json!([{"a": "a", "b": "a"}, {"a": "a", "b": "b"}]),
    ];
    let specs: Vec<Json> = values
        .iter()
        .map(|v| json!({"x": v, "other": "o"}))
        .chain([json!({})])
        .collect();
    let mut table = String::new();
    for (what, a, b) in pairs {
        // Servers accept a list for a string with a format. CRD authors do not mean that.
        let lists = a["format"] == b["format"];
        let specs: Vec<Json> = specs
            .iter()
            .filter(|s| lists || !s["x"].is_array())
            .cloned()
            .collect();
        let (a, b) = (around(&a), around(&b));
        for (old, new) in [(&a, &b), (&b, &a)] {
            assert!(resource(old).is_some(), "{what}: {old}");
            assert_eq!(contradiction(old, new, &specs), None, "{what}");
        }
        writeln!(
            table,
            "{what}: {}, back: {}",
            verdict(&a, &b).as_str(),
            verdict(&b, &a).as_str()
        )
        .unwrap();
    }
    expect![[r#"
        type: string or integer: breaking, back: breaking
        type: integer or number: safe, back: safe with ratcheting
        format: none or int32: safe with ratcheting, back: safe
        format: none or date: safe with ratcheting, back: safe
        title: safe, back: safe
        description: safe, back: safe
        default: none or some: safe, back: safe
        default: one or another: safe, back: safe
        maximum: none or some: safe with ratcheting, back: safe
        maximum: 2 or 1: safe with ratcheting, back: safe
        exclusiveMaximum: safe with ratcheting, back: safe
        minimum: none or some: safe with ratcheting, back: safe
        minimum: 1 or 2: safe with ratcheting, back: safe
        exclusiveMinimum: safe with ratcheting, back: safe
        multipleOf: none or some: safe with ratcheting, back: safe
        multipleOf: 2 or 4: safe with ratcheting, back: safe
        multipleOf: 2 or 3: safe with ratcheting, back: safe with ratcheting
        maxLength: none or some: safe with ratcheting, back: safe
        maxLength: 2 or 1: safe with ratcheting, back: safe
        minLength: none or 0: safe, back: safe
        minLength: none or some: safe with ratcheting, back: safe
        pattern: none or some: safe with ratcheting, back: safe
        pattern: one or another: safe with ratcheting, back: safe with ratcheting
        maxItems: none or some: safe with ratcheting, back: safe
        minItems: none or some: safe with ratcheting, back: safe
        uniqueItems: none or off: safe, back: safe
        maxProperties: none or some: safe with ratcheting, back: safe
        minProperties: none or some: safe with ratcheting, back: safe
        required: none or some: safe with ratcheting, back: safe
        required: in other order: safe, back: safe
        enum: none or some: safe with ratcheting, back: safe
        enum: two or one: safe with ratcheting, back: safe
        allOf: none or some: safe with ratcheting, back: safe
        anyOf: none or some: safe with ratcheting, back: safe
        anyOf: two or one: safe with ratcheting, back: safe
        oneOf: none or some: safe with ratcheting, back: safe
        oneOf: two or one: safe with ratcheting, back: safe with ratcheting
        not: none or some: safe with ratcheting, back: safe
        items: one or another: safe with ratcheting, back: safe
        properties: one or two: breaking, back: safe
        additionalProperties: none or some: breaking, back: breaking
        additionalProperties: one or another: safe with ratcheting, back: safe
        nullable: safe, back: safe with ratcheting
        nullable: none or off: safe, back: safe
        nullable with values: safe with ratcheting, back: safe with ratcheting
        x-kubernetes-preserve-unknown-fields: safe, back: breaking
        a field that was unknown: a number: breaking, back: safe
        a field that was unknown: an object: breaking, back: safe
        x-kubernetes-int-or-string: safe, back: breaking
        x-kubernetes-embedded-resource: breaking, back: breaking
        x-kubernetes-list-type: none or atomic: safe, back: safe
        x-kubernetes-list-type: none or set: breaking, back: breaking
        x-kubernetes-list-map-keys: breaking, back: breaking
        x-kubernetes-map-type: none or granular: safe, back: safe
        x-kubernetes-map-type: none or atomic: breaking, back: breaking
        x-kubernetes-validations: none or some: safe with ratcheting, back: safe
        x-kubernetes-validations: one or another: safe with ratcheting, back: safe with ratcheting
        x-kubernetes-validations: constant: safe with ratcheting, back: safe
        x-kubernetes-validations: growing: breaking, back: safe
        x-kubernetes-validations: messages: safe, back: safe
        x-kubernetes-validations: optionalOldSelf: safe with ratcheting, back: breaking
    "#]]
    .assert_eq(&table);
}

/// What a change means depends on who looks at the place, and on whether a write can leave it alone.
#[test]
fn the_context_of_a_change_matters() {
    let spec = |extra: Json, x: Json| {
        let mut spec = json!({"type": "object", "properties": {"x": x, "y": {"type": "integer"}}});
        spec.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        json!({"type": "object", "properties": {"spec": spec}})
    };
    let rule = |rule: &str| json!({"x-kubernetes-validations": [{"rule": rule}]});
    let (without, with) = (
        json!({"type": "integer"}),
        json!({"type": "integer", "default": 1}),
    );
    let mut table = String::new();
    for (what, around) in [
        ("nothing", json!({})),
        ("required", json!({"required": ["x"]})),
        ("maxProperties", json!({"maxProperties": 1})),
        ("a rule about it", rule("!has(self.x) || self.x > 2")),
        ("a rule about something else", rule("!has(self.y) || self.y > 2")),
        ("a rule about changes", rule("has(self.x) == has(oldSelf.x)")),
        (
            "a rule about changes of something else",
            rule("has(self.y) == has(oldSelf.y)"),
        ),
        ("a rule about all of it", rule("self == oldSelf")),
    ] {
        let (a, b) = (spec(around.clone(), without.clone()), spec(around, with.clone()));
        let (there, back) = (verdict(&a, &b).as_str(), verdict(&b, &a).as_str());
        writeln!(table, "a default below {what}: {there}, back: {back}").unwrap();
    }
    let root = |extra: Json| {
        let mut root = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
        root.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        root
    };
    for (what, extra) in [
        ("required", json!({"required": ["spec"]})),
        ("a rule", rule("has(self.spec)")),
        (
            "a pattern of names",
            json!({"properties": {"spec": {"type": "object"}, "metadata": {"type": "object", "properties": {"name": {"type": "string", "pattern": "^a"}}}}}),
        ),
        (
            "metadata",
            json!({"properties": {"spec": {"type": "object"}, "metadata": {"type": "object"}}}),
        ),
    ] {
        let (a, b) = (root(json!({})), root(extra));
        let (there, back) = (verdict(&a, &b).as_str(), verdict(&b, &a).as_str());
        writeln!(table, "{what} at the root: {there}, back: {back}").unwrap();
    }
    expect![[r#"
        a default below nothing: safe, back: safe
        a default below required: safe, back: safe with ratcheting
        a default below maxProperties: safe with ratcheting, back: safe
        a default below a rule about it: safe with ratcheting, back: safe with ratcheting
        a default below a rule about something else: safe, back: safe
        a default below a rule about changes: breaking, back: breaking
        a default below a rule about changes of something else: safe, back: safe
        a default below a rule about all of it: breaking, back: breaking
        required at the root: breaking, back: safe
        a rule at the root: breaking, back: safe
        a pattern of names at the root: safe with ratcheting, back: safe
        metadata at the root: safe, back: safe
    "#]]
    .assert_eq(&table);
}
