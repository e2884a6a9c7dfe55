//! Schemas and objects made to exhaust a server: each gets its answer, in time and memory that grow with its size only.
#![expect(clippy::unwrap_used, reason = "a test may panic, and reads best so")]

use scantling_admit::{
    AdmissionError, AdmitOptions, AdmitOutcome, FieldValidation, Gates, NewObjectMeta, Request,
    ResourceCompiler, ValidationResult, WriteOperation, admit, check,
};
use scantling_schema::definition::{Accepted, ApiVersion, Definition};
use scantling_value::{BoundedItem, Finding, Limits, Map, Value, json};

fn document(spec: &str) -> Value {
    let text = format!(
        r#"{{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {{"name": "things.example.com"}}, "spec": {{"group": "example.com", "scope": "Namespaced",
            "names": {{"plural": "things", "kind": "Thing"}}, "versions": [{{"name": "v1", "served": true,
            "storage": true, "schema": {{"openAPIV3Schema": {{"type": "object", "properties": {{"spec": {spec}}}}}}}}}]}}}}"#
    );
    json::decode(text.as_bytes(), Limits::SERVER).unwrap()
}

fn checked(schema: &str, spec: Value) -> ValidationResult {
    let received = Definition::decode(document(schema), ApiVersion::V1, Gates::default()).unwrap();
    let accepted = Accepted::assume_accepted(received.definition);
    let resource = ResourceCompiler::default().compile(&accepted, "v1").unwrap();
    let object = Value::Object(Map::from_iter([("spec", spec)]));
    check(&resource, &object, None, &AdmitOptions::default())
}

#[test]
fn schema_depth_is_bounded() {
    let depth = 400;
    let schema = r#"{"type": "object", "properties": {"a": "#.repeat(depth)
        + r#"{"type": "string"}"#
        + &"}}".repeat(depth);
    let error = Definition::decode(document(&schema), ApiVersion::V1, Gates::default()).unwrap_err();
    assert_eq!(error.to_string(), "exceeded max depth");
}

#[test]
fn lookup_is_independent_of_the_number_of_properties() {
    let names: Vec<String> = (0..30_000)
        .map(|n| format!("field-with-a-long-name-{n:06}"))
        .collect();
    let properties: Vec<String> = names
        .iter()
        .map(|n| format!(r#""{n}": {{"type": "integer"}}"#))
        .collect();
    let schema = format!(
        r#"{{"type": "object", "properties": {{{}}}}}"#,
        properties.join(",")
    );
    let fields = |value: fn(usize) -> Value| -> Map {
        names
            .iter()
            .enumerate()
            .map(|(i, n)| (n.as_str(), value(i)))
            .collect()
    };
    assert!(
        checked(&schema, fields(|_| Value::Int(1)).into())
            .errors
            .is_empty()
    );
    let half = checked(
        &schema,
        fields(|i| if i % 2 == 0 { Value::Int(1) } else { "x".into() }).into(),
    );
    assert_eq!(half.errors.total(), 15_000);
}

#[test]
fn large_enums_are_searched() {
    let listed: Vec<String> = (0..50_000).map(|n| format!(r#""value-{n}""#)).collect();
    let schema = format!(
        r#"{{"type": "array", "items": {{"type": "string", "enum": [{}]}}}}"#,
        listed.join(",")
    );
    let values = (0..50_000).map(|n| Value::from(format!("value-{n}"))).collect();
    assert!(checked(&schema, Value::Array(values)).errors.is_empty());
    assert_eq!(
        checked(&schema, Value::Array(vec!["other".into()])).errors.len(),
        1
    );
}

#[test]
fn patterns_match_in_linear_time() {
    for pattern in [
        "^(a+)+$",
        "^(a|a)*$",
        "^(a*)*b$",
        "(.*a){12}$",
        "^([a-z]+)*[0-9]$",
    ] {
        let schema = format!(r#"{{"type": "string", "pattern": "{pattern}"}}"#);
        let text = "a".repeat(200_000) + "!";
        assert_eq!(checked(&schema, text.into()).errors.len(), 1, "{pattern}");
    }
}

#[test]
fn long_sets_are_hashed() {
    let schema = r#"{"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}"#;
    let values = |wrap: usize| {
        (0..100_000)
            .map(|n| Value::from(format!("{}", n % wrap)))
            .collect()
    };
    assert!(checked(schema, Value::Array(values(100_000))).errors.is_empty());
    assert_eq!(
        checked(schema, Value::Array(values(50_000))).errors.total(),
        50_000
    );
}

/// The bytes of all errors as text.
fn bytes(checked: &ValidationResult) -> usize {
    checked.errors.iter().map(|e| e.to_string().len()).sum()
}

const MAX_BYTES: usize = 1 << 20;

#[test]
fn errors_with_long_lists_of_supported_values_are_bounded() {
    let listed: Vec<String> = (0..60_000).map(|n| format!(r#""v{n}""#)).collect();
    let schema = format!(
        r#"{{"type": "array", "items": {{"type": "string", "enum": [{}]}}}}"#,
        listed.join(",")
    );
    let bad = checked(&schema, Value::Array(vec!["x".into(); 2000]));
    assert_eq!(bad.errors.total(), 2000);
    assert!(bytes(&bad) <= MAX_BYTES, "{} bytes", bytes(&bad));
    let first = bad.errors.first().unwrap().to_string();
    let start = r#"spec[0]: Unsupported value: "x": supported values: "v0", "v1", "v2","#;
    assert!(first.starts_with(start), "{first:.100}");
    assert!(first.ends_with(" more"), "{first:.100}");
    let last = bad.errors.last().unwrap();
    assert_eq!(last.omitted(), 2000 - (bad.errors.len() - 1));

    let listed: Vec<String> = (0..200).map(|n| format!(r#""v{n}""#)).collect();
    let schema = format!(
        r#"{{"type": "array", "items": {{"type": "string", "enum": [{}]}}}}"#,
        listed.join(",")
    );
    let bad = checked(&schema, Value::Array(vec!["x".into(); 16_000]));
    assert_eq!(bad.errors.total(), 16_000);
    assert!(bytes(&bad) <= MAX_BYTES, "{} bytes", bytes(&bad));
    let first = bad.errors.first().unwrap().to_string();
    assert!(
        first.ends_with(r#", "v199""#),
        "all values are listed: {first:.100}"
    );
}

#[test]
fn errors_that_echo_large_values_are_bounded() {
    let long = "x".repeat(1 << 20);
    let text = |value: &str| Value::from(value);
    let limits = r#""pattern": "^y$""#;
    let items = |n: usize| Value::Array(vec![text(&"x".repeat(n)); 3_000_000 / n]);
    let list = format!(r#"{{"type": "array", "items": {{"type": "string", {limits}}}}}"#);
    let one = format!(r#"{{"type": "string", {limits}}}"#);
    let junctors: Vec<String> = (0..200).map(|n| format!(r#"{{"pattern": "^{n}$"}}"#)).collect();
    let all_of = format!(r#"{{"type": "string", "allOf": [{}]}}"#, junctors.join(","));
    let any_of = format!(r#"{{"type": "string", "anyOf": [{}]}}"#, junctors.join(","));
    let map = format!(r#"{{"type": "object", "additionalProperties": {{"type": "string", {limits}}}}}"#);
    let keyed = Value::Object(Map::from_iter([(long.as_str(), text("x"))]));
    let rule = r#"{"type": "array", "items": {"type": "string", "maxLength": 9,
        "x-kubernetes-validations": [{"rule": "self == 'y'"}]}}"#;
    for (schema, spec, errors) in [
        (list.as_str(), items(1000), 3000),
        (&list, items(1_000_000), 3),
        (&one, text(&long), 1),
        (&all_of, text(&long), 201),
        (&any_of, text(&long), 2),
        (&map, keyed, 1),
        (rule, Value::Array(vec![text("x"); 100_000]), 100_000),
    ] {
        let bad = checked(schema, spec);
        assert_eq!(bad.errors.total(), errors, "{schema:.80}");
        assert!(bytes(&bad) <= MAX_BYTES, "{schema:.80}: {} bytes", bytes(&bad));
        assert!(bad.errors.len() > 1 || errors == 1, "{schema:.80}");
    }
}

/// Nested alternatives keep the errors of the best branch at each level.
#[test]
fn nested_alternatives_keep_few_errors() {
    let depth = 30;
    let schema = r#"{"type": "string", "anyOf": [{"pattern": "^y$"}, "#.to_owned()
        + &r#"{"anyOf": [{"pattern": "^y$"}, "#.repeat(depth)
        + r#"{"pattern": "^z$"}"#
        + &"]}".repeat(depth + 1);
    let bad = checked(&schema, "x".repeat(1 << 20).into());
    assert!(!bad.errors.is_empty());
    assert!(bytes(&bad) <= MAX_BYTES, "{} bytes", bytes(&bad));
}

#[test]
fn large_numeric_enums_are_searched() {
    let listed: Vec<String> = (0..50_000).map(|n| n.to_string()).collect();
    let schema = format!(
        r#"{{"type": "array", "items": {{"type": "integer", "enum": [{}]}}}}"#,
        listed.join(",")
    );
    let values = (0..50_000).map(Value::Int).collect();
    assert!(checked(&schema, Value::Array(values)).errors.is_empty());
}

fn admitted(schema: &str, object: Value, field_validation: FieldValidation) -> AdmitOutcome {
    let received = Definition::decode(document(schema), ApiVersion::V1, Gates::default()).unwrap();
    let accepted = Accepted::assume_accepted(received.definition);
    let resource = ResourceCompiler::default().compile(&accepted, "v1").unwrap();
    let identity = NewObjectMeta {
        uid: "u".into(),
        created: "2026-01-01T00:00:00Z".into(),
        suffix: "abcde".into(),
    };
    let request = Request {
        operation: WriteOperation::Create(&identity),
        object,
        findings: &[],
    };
    let options = AdmitOptions {
        field_validation,
        ..AdmitOptions::default()
    };
    admit(&resource, request, &options)
}

fn thing(spec: Value, labels: Map) -> Value {
    let metadata = Map::from_iter([
        ("name", "a".into()),
        ("namespace", "default".into()),
        ("labels", Value::Object(labels)),
    ]);
    Value::Object(Map::from_iter([
        ("apiVersion", "example.com/v1".into()),
        ("kind", "Thing".into()),
        ("metadata", metadata.into()),
        ("spec", spec),
    ]))
}

#[test]
fn label_errors_are_bounded() {
    let labels = (0..120_000).map(|n| (format!("!{n}"), Value::from(""))).collect();
    let outcome = admitted(
        r#"{"type": "object"}"#,
        thing(Map::new().into(), labels),
        FieldValidation::Warn,
    );
    let Some(AdmissionError::Invalid(errors)) = outcome.error else {
        panic!("{:?}", outcome.error);
    };
    assert_eq!((errors.total(), errors.len()), (120_000, 1001));
}

#[test]
fn unknown_fields_are_bounded() {
    let spec: Map = (0..400_000).map(|n| (format!("f{n}"), Value::Int(1))).collect();
    let object = || thing(spec.clone().into(), Map::new());
    let outcome = admitted(r#"{"type": "object"}"#, object(), FieldValidation::Warn);
    assert_eq!((outcome.error, outcome.warnings.len()), (None, 1001));
    let outcome = admitted(r#"{"type": "object"}"#, object(), FieldValidation::Strict);
    let Some(AdmissionError::Strict(found)) = outcome.error else {
        panic!("{:?}", outcome.error);
    };
    assert_eq!(found.len(), 1001);
    assert_eq!(found.first().unwrap().to_string(), r#"unknown field "spec.f0""#);
    assert_eq!(found.last(), Some(&Finding::Omitted(399_000)));
}

#[test]
fn defaults_are_bounded() {
    let properties: Vec<String> = (0..9000)
        .map(|n| format!(r#""p{n}": {{"type": "string", "default": "x"}}"#))
        .collect();
    let schema = format!(
        r#"{{"type": "object", "properties": {{"a": {{"type": "array", "items": {{"type": "object",
            "properties": {{{}}}}}}}}}}}"#,
        properties.join(",")
    );
    let spec = |n: usize| -> Value {
        let items = vec![Value::Object(Map::new()); n];
        Value::Object(Map::from_iter([("a", Value::Array(items))]))
    };
    let outcome = admitted(&schema, thing(spec(10), Map::new()), FieldValidation::Warn);
    assert_eq!(outcome.error, None);
    let first = outcome
        .object
        .at(["spec", "a"])
        .and_then(Value::as_array)
        .unwrap();
    assert_eq!(first[0].as_object().unwrap().len(), 9000);
    let outcome = admitted(&schema, thing(spec(1000), Map::new()), FieldValidation::Warn);
    assert_eq!(outcome.error.as_ref().map(AdmissionError::status), Some(413));
}
