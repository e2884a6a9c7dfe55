//! Round trips of objects that use every field type, with the encoded bytes.

use super::*;
use crate::TypeTable;
use expect_test::expect;
use scantling_value::{Limits, Value, json};

fn write(object: &Value) -> Option<Vec<u8>> {
    TypeTable::latest().write_envelope(object)
}

fn read(body: &[u8]) -> Result<Value, String> {
    let envelope = open(body)?;
    let read = TypeTable::latest().read_envelope(&envelope);
    read.unwrap_or_else(|| Err("no protobuf encoding".to_owned()))
}

fn value(text: &str) -> Value {
    json::decode(text.as_bytes(), Limits::SAFE).unwrap()
}

/// Objects that use every field type.
const OBJECTS: &[&str] = &[
    r#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"one","labels":{"a":"b","c":""},
        "creationTimestamp":"2024-05-06T07:08:09Z","deletionGracePeriodSeconds":0,"generation":-1,
        "ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u","controller":false}],
        "managedFields":[{"manager":"m","operation":"Apply","apiVersion":"v1","time":"2024-05-06T07:08:09Z",
          "fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{}}}}}]},
        "spec":{"finalizers":["kubernetes"]},"status":{"phase":"Active"}}"#,
    r#"{"apiVersion":"v1","kind":"Event","metadata":{"name":"e","namespace":"d"},"involvedObject":{"kind":"K"},
        "source":{"component":"c"},"count":3,"eventTime":"2024-05-06T07:08:09.123456Z",
        "series":{"count":2,"lastObservedTime":"2024-05-06T07:08:09.000001Z"}}"#,
    r#"{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"e","namespace":"d"},"regarding":{"kind":"K"},
        "deprecatedSource":{"component":"c"},"deprecatedCount":3,"eventTime":"2024-05-06T07:08:09.123456Z",
        "related":{"name":"r"},"note":"n","reportingController":"c",
        "series":{"count":2,"lastObservedTime":"2024-05-06T07:08:09.000001Z"}}"#,
    r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"a":"AAEC"},"immutable":false,"type":"Opaque"}"#,
    r#"{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l","namespace":"d"},
        "spec":{"holderIdentity":"","leaseDurationSeconds":15,"leaseTransitions":0,
        "renewTime":"2024-05-06T07:08:09.123456Z"}}"#,
    r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"ws.g"},
        "spec":{"group":"g","names":{"plural":"ws","kind":"W","shortNames":["w"]},"scope":"Namespaced",
         "conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"caBundle":"AAEC","url":"https://a",
           "service":{"namespace":"n","name":"s","path":"","port":0}},"conversionReviewVersions":["v1"]}},
         "versions":[{"name":"v1","served":true,"storage":true,"deprecationWarning":"",
          "subresources":{"status":{},"scale":{"specReplicasPath":".a","statusReplicasPath":".b"}},
          "selectableFields":[{"jsonPath":".spec.a"}],
          "additionalPrinterColumns":[{"name":"A","type":"integer","jsonPath":".a","priority":1}],
          "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":false,
           "properties":{
            "any":{"default":{"a":[1,null,"x"]},"enum":["a",1,null],"maximum":1.5,"minimum":-3,"maxLength":0},
            "list":{"type":"array","items":{"type":"string"}},
            "tuple":{"type":"array","items":[{"type":"string"},{"type":"integer"}]},
            "open":{"additionalProperties":true},"closed":{"additionalProperties":false},
            "map":{"additionalProperties":{"type":"string"}},
            "depends":{"dependencies":{"a":["b"],"c":{"type":"object"}}},
            "rules":{"x-kubernetes-validations":[{"rule":"true","optionalOldSelf":false,"reason":"r"}]}}}}}]},
        "status":{"acceptedNames":{"plural":"ws","kind":"W"},"storedVersions":["v1"],
         "conditions":[{"type":"T","status":"True","lastTransitionTime":"2024-05-06T07:08:09Z"}]}}"#,
    r#"{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"name":"ws.g"},
        "spec":{"group":"g","version":"v1","names":{"plural":"ws","kind":"W"},"preserveUnknownFields":false,
         "validation":{"openAPIV3Schema":{"type":"object"}},"subresources":{"status":{}},
         "additionalPrinterColumns":[{"name":"A","type":"integer","JSONPath":".a"}]},
        "status":{"acceptedNames":{}}}"#,
    r#"{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"s"},"spec":{"replicas":-2147483648},
        "status":{"replicas":1,"selector":"a=b"}}"#,
    r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{},"spec":{"replicas":0,
        "selector":{"matchLabels":{"a":"b"}},"strategy":{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":0}},
        "template":{"metadata":{},"spec":{"containers":[{"name":"a",
          "resources":{"limits":{"cpu":"500m","memory":"1Gi"}},
          "livenessProbe":{"httpGet":{"port":"web"},"periodSeconds":1}}],
         "volumes":[{"name":"v","secret":{"secretName":"s"}}]}}},"status":{}}"#,
    r#"{"apiVersion":"v1","kind":"APIResourceList","groupVersion":"v1",
        "resources":[{"name":"a","kind":"A","namespaced":true,"verbs":["get"]}]}"#,
];

#[test]
fn protobuf_round_trips() {
    for text in OBJECTS {
        let object = value(text);
        let read = read(&write(&object).unwrap()).unwrap();
        assert_eq!(read.to_json(), object.to_json());
    }
}

#[test]
fn required_fields_are_written_empty() {
    let status = value(r#"{"apiVersion":"v1","kind":"Status","status":"Failure","details":{},"code":404}"#);
    let display = write(&status).unwrap().escape_ascii().to_string();
    expect![[r#"k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12$\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1a\x00\"\x00*\n\n\x00\x12\x00\x1a\x00(\x002\x000\x94\x03\x1a\x00\"\x00"#]]
    .assert_eq(&display);
}

#[test]
fn malformed_messages_are_refused() {
    for text in OBJECTS {
        let body = write(&value(text)).unwrap();
        for end in 0..body.len() {
            let _ = read(&body[..end]);
        }
        for i in 0..body.len() {
            let mut other = body.clone();
            other[i] ^= 0x55;
            let _ = read(&other);
        }
    }
}

#[test]
fn invalid_managed_fields_become_a_string() {
    let text =
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"managedFields":[{"fieldsV1":{"f:a":{}}}]}}"#;
    let body = write(&value(text)).unwrap();
    let broken = body.escape_ascii().to_string();
    assert!(broken.contains(r#"{\"f:a\":{}}"#), "{broken}");
    let at = body.windows(2).position(|two| two == b"}}").unwrap();
    let mut other = body;
    other[at] = b'!';
    let fields = read(&other).unwrap().to_json();
    assert!(fields.contains(r#""fieldsV1":"{\"f:a\":{!}""#), "{fields}");
}

#[test]
fn wrong_wire_types_name_the_field() {
    let mut message = Vec::new();
    number(&mut message, 1, 7);
    let table = TypeTable::latest();
    let meta = table.known("meta/v1", "ObjectMeta");
    let read = table.read_protobuf(meta, &message, Limits::SAFE.depth);
    assert_eq!(read.unwrap_err(), "proto: wrong wireType = 0 for field Name");
}

#[test]
fn depth_is_limited() {
    let mut not = Vec::new();
    for _ in 0..300 {
        let mut outer = Vec::new();
        bytes(&mut outer, 28, &not);
        not = outer;
    }
    let schema = TypeTable::latest().known("apiextensions/v1", "JSONSchemaProps");
    let read = TypeTable::latest().read_protobuf(schema, &not, Limits::SAFE.depth);
    assert_eq!(read.unwrap_err(), "exceeded max depth");
}

#[test]
fn events_are_framed() {
    let object =
        value(r#"{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"a"}}"#);
    let framed = watch_event("ADDED", &write(&object).unwrap()).unwrap();
    let length = u32::from_be_bytes(framed[..4].try_into().unwrap());
    assert_eq!(length as usize, framed.len() - 4);
    assert!(write(&value(r#"{"apiVersion":"g/v1","kind":"W"}"#)).is_none());
}
