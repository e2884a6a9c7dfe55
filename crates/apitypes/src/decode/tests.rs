//! Findings and errors of decoding.

use super::*;
use crate::TypeTable;
use expect_test::{Expect, expect};

/// Decodes a text as a kind: returns the findings and the encoded object, or the error.
fn decode(group: &str, version: &str, kind: &str, text: &str) -> String {
    let table = TypeTable::latest();
    let definition = table.kind(group, version, kind).unwrap();
    let document = decode_raw(text.as_bytes()).unwrap();
    let decoded = match table.decode(definition, document, Extensions::NONE) {
        Ok(decoded) => decoded,
        Err(e) => return e.to_string(),
    };
    let mut out = String::new();
    for finding in &decoded.findings {
        out += &format!("{finding}\n");
    }
    let object = Value::Object(table.canonical(definition, decoded.members));
    let mut json = Vec::new();
    table.write_json(definition, &object, &mut json);
    out + &String::from_utf8(json).unwrap()
}

fn check(kind: (&str, &str, &str), text: &str, expected: &Expect) {
    expected.assert_eq(&decode(kind.0, kind.1, kind.2, text));
}

const POD: (&str, &str, &str) = ("", "v1", "Pod");
const DEPLOYMENT: (&str, &str, &str) = ("apps", "v1", "Deployment");

#[test]
fn unknown_and_duplicate_fields_are_findings() {
    check(
        DEPLOYMENT,
        r#"{"spec":{"replicas":1,"replicas":2,"templates":{},"template":{"spec":{"containers":[{"name":"a","imagePolicy":"x"}]}}}}"#,
        &expect![[r#"
            duplicate field "spec.replicas"
            unknown field "spec.templates"
            unknown field "spec.template.spec.containers[0].imagePolicy"
            {"metadata":{},"spec":{"replicas":2,"selector":null,"template":{"metadata":{},"spec":{"containers":[{"name":"a","resources":{}}]}},"strategy":{}},"status":{}}"#]],
    );
}

#[test]
fn type_errors_match_go() {
    for (text, expected) in [
        (
            r#"{"spec":{"containers":{}}}"#,
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            r#"{"spec":{"containers":[{"ports":[{"containerPort":"80"}]}]}}"#,
            "json: cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        (
            r#"{"spec":{"activeDeadlineSeconds":1.5}}"#,
            "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.activeDeadlineSeconds of type int64",
        ),
        (
            r#"{"spec":{"restartPolicy":3}}"#,
            "json: cannot unmarshal number into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
        ),
        (
            r#"{"metadata":{"labels":{"a":1}}}"#,
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            r#"{"spec":{"containers":[{"resources":{"limits":[]}}]}}"#,
            "json: cannot unmarshal array into Go struct field ResourceRequirements.spec.containers.resources.limits of type v1.ResourceList",
        ),
    ] {
        assert_eq!(decode(POD.0, POD.1, POD.2, text), expected, "{text}");
    }
}

#[test]
fn custom_types_have_their_own_decoder() {
    check(
        POD,
        r#"{"metadata":{"creationTimestamp":"2026-01-02T03:04:05.6+01:00"},"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":"web"},"tcpSocket":{"port":8080}},"resources":{"limits":{"cpu":0.5,"memory":"1024Ki"}}}]}}"#,
        &expect![[r#"
            {"metadata":{"creationTimestamp":"2026-01-02T02:04:05Z"},"spec":{"containers":[{"name":"","resources":{"limits":{"cpu":"500m","memory":"1Mi"}},"livenessProbe":{"httpGet":{"port":"web"},"tcpSocket":{"port":8080}}}]},"status":{}}"#]],
    );
    for (text, expected) in [
        (
            r#"{"spec":{"containers":[{"resources":{"limits":{"cpu":"x"}}}]}}"#,
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (
            r#"{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":true}}}]}}"#,
            "json: cannot unmarshal bool into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
        ),
    ] {
        assert_eq!(decode(POD.0, POD.1, POD.2, text), expected, "{text}");
    }
}

#[test]
fn inlined_structs_are_flattened() {
    check(
        POD,
        r#"{"spec":{"volumes":[{"name":"a","secret":{"secretName":"s","items":null},"hostpath":{}}],"containers":null}}"#,
        &expect![[r#"
            unknown field "spec.volumes[0].hostpath"
            {"metadata":{},"spec":{"volumes":[{"name":"a","secret":{"secretName":"s"}}],"containers":null},"status":{}}"#]],
    );
}

#[test]
fn decoded_objects_are_converted() {
    let table = TypeTable::latest();
    let definition = table.kind("apps", "v1", "Deployment").unwrap();
    let convert = |text: &str| {
        let mut object = json::decode(text.as_bytes(), Limits::SAFE).unwrap();
        match table.convert(definition, &mut object, Extensions::NONE) {
            Ok(unknown) => {
                let unknown: Vec<String> = unknown.iter().map(ToString::to_string).collect();
                format!("{} {}", unknown.join(", "), object.to_json())
            }
            Err(e) => e.to_string(),
        }
    };
    let table = [
        (
            r#"{"spec":{"replicas":4294967297,"x":1}}"#,
            r#"unknown field "spec.x" {"spec":{"replicas":1}}"#,
        ),
        (r#"{"spec":{"replicas":"1"}}"#, "unrecognized type: int32"),
        (r#"{"spec":{"replicas":1.5}}"#, "cannot convert float64 to int32"),
        (r#"{"spec":[]}"#, "cannot restore struct from: slice"),
        (
            r#"{"spec":{"strategy":{"rollingUpdate":{"maxSurge":true}}}}"#,
            "json: cannot unmarshal bool into Go value of type int32",
        ),
    ];
    for (text, expected) in table {
        assert_eq!(convert(text), expected, "{text}");
    }
}
