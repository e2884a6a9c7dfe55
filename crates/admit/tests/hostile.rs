//! Schemas and objects made to exhaust a server: each gets its answer, in time and memory that grow with its size only.
#![expect(clippy::unwrap_used, reason = "a test may panic, and reads best so")]

use scantling_admit::{Checked, Gates, Options, Workshop, check};
use scantling_schema::definition::{ApiVersion, Definition};
use scantling_value::{Limits, Map, Value, json};

fn document(spec: &str) -> Value {
    let text = format!(
        r#"{{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {{"name": "things.example.com"}}, "spec": {{"group": "example.com", "scope": "Namespaced",
            "names": {{"plural": "things", "kind": "Thing"}}, "versions": [{{"name": "v1", "served": true,
            "storage": true, "schema": {{"openAPIV3Schema": {{"type": "object", "properties": {{"spec": {spec}}}}}}}}}]}}}}"#
    );
    json::decode(text.as_bytes(), Limits::SERVER).unwrap()
}

fn checked(schema: &str, spec: Value) -> Checked {
    let received = Definition::decode(document(schema), ApiVersion::V1, Gates::default()).unwrap();
    let definition = received.definition.spec;
    let version = definition.version("v1").unwrap();
    let resource = Workshop::default().resource(&definition, version).unwrap();
    let object = Value::Object(Map::from_iter([("spec", spec)]));
    check(&resource, &object, None, &Options::default())
}

#[test]
fn schemas_nest_only_so_deep() {
    let depth = 400;
    let schema = r#"{"type": "object", "properties": {"a": "#.repeat(depth)
        + r#"{"type": "string"}"#
        + &"}}".repeat(depth);
    let error = Definition::decode(document(&schema), ApiVersion::V1, Gates::default()).unwrap_err();
    assert_eq!(error.to_string(), "exceeded max depth");
}

#[test]
fn many_properties_are_as_quick_as_few() {
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
    assert_eq!(half.errors.len(), 15_000);
}

#[test]
fn enormous_enumerations_are_searched_not_walked() {
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
fn patterns_do_not_track_back() {
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
    assert_eq!(checked(schema, Value::Array(values(50_000))).errors.len(), 50_000);
}
