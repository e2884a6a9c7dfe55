//! Built-in kinds in the pipeline.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use expect_test::{Expect, expect};
use scantling_admit::{
    AdmissionError, AdmitOptions, BuiltinResource, FieldValidation, NewObjectMeta, NormalizeMode, Normalized,
    Request, WriteOperation, admit,
};
use scantling_apitypes::TypeTable;
use scantling_schema::meta::Scope;
use scantling_value::{Limits, Value, yaml};

fn resource(group: &str, version: &'static str, kind: &str) -> BuiltinResource {
    BuiltinResource::new(
        TypeTable::latest(),
        (group, version, kind),
        (group, version),
        Scope::Namespaced,
    )
    .unwrap()
}

fn decode(text: &str) -> Value {
    yaml::decode(text.as_bytes(), Limits::SAFE).unwrap()
}

fn new_object() -> NewObjectMeta {
    NewObjectMeta {
        uid: "7a1c".into(),
        created: "2026-08-01T00:00:00Z".into(),
        suffix: "x7k2p".into(),
    }
}

/// Creates a config map, or updates `old`.
#[track_caller]
fn check(old: Option<&str>, object: &str, field_validation: FieldValidation, expect: &Expect) {
    let resource = resource("", "v1", "ConfigMap");
    let (meta, old) = (new_object(), old.map(decode));
    let request = Request {
        operation: old
            .as_ref()
            .map_or(WriteOperation::Create(&meta), WriteOperation::Update),
        object: decode(object),
        findings: &[],
    };
    let options = AdmitOptions {
        field_validation,
        ..AdmitOptions::default()
    };
    let outcome = admit(&resource, request, &options);
    let result = match &outcome.error {
        Some(AdmissionError::Strict(found)) => format!("Strict: {}", found.strict_error()),
        Some(error) => format!("{error:?}"),
        None => outcome.object.to_json(),
    };
    let warnings = outcome.warnings.iter().map(ToString::to_string);
    let lines: Vec<String> = std::iter::once(result).chain(warnings).collect();
    expect.assert_eq(&lines.join("\n"));
}

const EMPTY: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}";

#[test]
fn create_sets_metadata() {
    check(
        None,
        EMPTY,
        FieldValidation::Warn,
        &expect![[
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"creationTimestamp":"2026-08-01T00:00:00Z","name":"a","namespace":"b","uid":"7a1c"}}"#
        ]],
    );
}

#[test]
fn unknown_fields_follow_field_validation() {
    let object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, date: {a: b}}";
    check(
        None,
        object,
        FieldValidation::Strict,
        &expect![[r#"Strict: unknown field "date""#]],
    );
    check(
        None,
        object,
        FieldValidation::Warn,
        &expect![[r#"
            {"apiVersion":"v1","kind":"ConfigMap","metadata":{"creationTimestamp":"2026-08-01T00:00:00Z","name":"a","namespace":"b","uid":"7a1c"}}
            unknown field "date""#]],
    );
}

#[test]
fn update_keeps_system_fields() {
    check(
        Some(
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b, uid: u, resourceVersion: '7', \
             creationTimestamp: '2026-01-01T00:00:00Z'}}",
        ),
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}, data: {k: v}}",
        FieldValidation::Warn,
        &expect![[
            r#"{"apiVersion":"v1","data":{"k":"v"},"kind":"ConfigMap","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","name":"a","namespace":"b","resourceVersion":"7","uid":"u"}}"#
        ]],
    );
}

#[test]
fn a_caller_acts_between_stages() {
    let resource = resource("", "v1", "ConfigMap");
    let (meta, options) = (new_object(), AdmitOptions::default());
    let mut normalized =
        Normalized::new(&resource, decode(EMPTY), &[], NormalizeMode::Request, &options).unwrap();
    let metadata = normalized
        .object_mut()
        .as_object_mut()
        .unwrap()
        .get_mut("metadata");
    metadata
        .and_then(Value::as_object_mut)
        .unwrap()
        .insert("labels", decode("{owner: me}"));
    let mut prepared = normalized
        .prepare(WriteOperation::Create(&meta), &options)
        .unwrap();
    prepared
        .object_mut()
        .as_object_mut()
        .unwrap()
        .insert("data", decode("{'a b': c}"));
    let rejected = prepared.validate().unwrap_err();
    let errors: Vec<String> = rejected.error.errors().iter().map(ToString::to_string).collect();
    assert_eq!(rejected.object.str_at(["metadata", "labels", "owner"]), "me");
    expect![[
        r#"data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"#
    ]]
    .assert_eq(&errors.join("\n"));
}
