//! Any schema and any object: admission never panics, is idempotent, and an unchanged object never fails for
//! a keyword that ratchets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use scantling_admit::{
    AdmissionError, AdmitOptions, AdmitOutcome, Gates, NewObjectMeta, Request, Resource, ResourceCompiler,
    WriteOperation, admit, check,
};
use scantling_schema::default::{PrunedDefaults, check_defaults};
use scantling_schema::definition::{Accepted, ApiVersion, Definition};
use scantling_value::{Limits, Map, Path, Value, json};

const GATES: Gates = Gates {
    ratcheting: true,
    expressions: true,
    field_validation: true,
    immutability: true,
    unions: true,
    rules_on_create: true,
    cbor: false,
};

// The input is `{"schema": …, "object": …}`: the schema of `spec`, and its value.
fuzz_target!(|text: &[u8]| {
    let Ok(input) = json::decode(text, Limits { depth: 60 }) else {
        return;
    };
    let (Some(schema), Some(spec)) = (input.get("schema"), input.get("object")) else {
        return;
    };
    let Some(resource) = resource(schema) else { return };
    let options = AdmitOptions {
        gates: GATES,
        ..AdmitOptions::default()
    };
    let identity = NewObjectMeta {
        uid: "u".into(),
        created: "2026-08-01T00:00:00Z".into(),
        suffix: "abcde".into(),
    };
    let create = |object: Value| {
        let operation = WriteOperation::Create(&identity);
        admit(
            &resource,
            Request {
                operation,
                object,
                findings: &[],
            },
            &options,
        )
    };
    let first = create(object(spec.clone()));
    let second = create(first.object.clone());
    match (&first.error, &second.error) {
        (None, None) => assert_eq!(first.object, second.object, "admitting twice gives the same"),
        // A refused object may have been changed before it was refused.
        (Some(_), _) => {}
        (None, Some(why)) => panic!("what was admitted is refused: {why:?}"),
    }

    let mut old = first.object.clone();
    if let Some(metadata) = old
        .as_object_mut()
        .and_then(|o| o.get_mut("metadata"))
        .and_then(Value::as_object_mut)
    {
        // An update needs a resource version.
        metadata.insert("resourceVersion", Value::from("1"));
    }
    let request = Request {
        operation: WriteOperation::Update(&old),
        object: old.clone(),
        findings: &[],
    };
    let unchanged = admit(&resource, request, &options);
    if let Some(AdmissionError::Immutable(errors)) = &unchanged.error {
        panic!("nothing has changed: {errors:?}");
    }
    // All remaining keywords ratchet, and a schema without extensions describes every field that pruning
    // keeps.
    let text = schema.to_json();
    let ratchets = !text.contains("x-kubernetes-") && !text.contains("additionalProperties");
    if let Some(refusal) = unchanged
        .error
        .as_ref()
        .filter(|_| ratchets && first_is_stored(&first))
    {
        panic!("an object that did not change is refused: {refusal:?}");
    }
    // Rules may require a change.
    let whole = check(&resource, &old, None, &options);
    if whole.errors.is_empty() && unchanged.error.is_some() && !resource.plan.root().has_rules() {
        panic!(
            "a valid object that did not change is refused: {:?}",
            unchanged.error
        );
    }
});

/// Returns whether an object could have been stored before its schema became stricter: its structure and
/// metadata are valid.
fn first_is_stored(first: &AdmitOutcome) -> bool {
    let about_limits = |refusal: &AdmissionError| match refusal {
        AdmissionError::Invalid(errors) => errors.iter().all(|e| !e.field().starts_with("metadata")),
        _ => false,
    };
    first.error.as_ref().is_none_or(about_limits)
}

fn resource(spec: &Value) -> Option<Resource> {
    let crd = format!(
        r#"{{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {{"name": "things.example.com"}}, "spec": {{"group": "example.com", "scope": "Cluster",
        "names": {{"plural": "things", "kind": "Thing"}}, "versions": [{{"name": "v1", "served": true, "storage": true,
        "schema": {{"openAPIV3Schema": {{"type": "object", "properties": {{"spec": {}}}}}}}}}]}}}}"#,
        spec.to_json()
    );
    let crd = json::decode(crd.as_bytes(), Limits::SERVER).ok()?;
    let definition = Definition::decode(crd, ApiVersion::V1, GATES).ok()?.definition;
    // Accepted without validation: most random schemas would be refused for their form.
    let accepted = Accepted::assume_accepted(definition);
    let resource = ResourceCompiler::default().compile(&accepted, "v1").ok()?;
    // CRDs whose defaults are no values of their schema are rejected.
    let errors = check_defaults(&resource.plan, &Path::ROOT, PrunedDefaults::Required);
    errors.is_empty().then_some(resource)
}

fn object(spec: Value) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name", Value::from("a"));
    let mut object = Map::new();
    object.insert("apiVersion", Value::from("example.com/v1"));
    object.insert("kind", Value::from("Thing"));
    object.insert("metadata", Value::Object(metadata));
    object.insert("spec", spec);
    Value::Object(object)
}
