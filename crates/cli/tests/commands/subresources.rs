//! Writes to subresources, encrypted documents, and schemas from a server.

use crate::run;
use expect_test::expect;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec:\n  \
    group: example.com\n  scope: Namespaced\n  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}\n  \
    versions:\n  - name: v1\n    served: true\n    storage: true\n    subresources:\n      status: {}\n      \
    scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}\n    schema:\n      openAPIV3Schema:\n        \
    type: object\n        properties:\n          spec:\n            type: object\n            properties:\n              \
    replicas: {type: integer, maximum: 5}\n              secret: {type: string, maxLength: 8}\n          status:\n            \
    type: object\n            properties:\n              replicas: {type: integer}\n              phase: {type: string, enum: [Ready]}\n";
const STORED: &str =
    "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a, namespace: b}\nspec: {replicas: 1}\n";

/// Validates an input against the CRD and a stored object, with further flags. Returns the output and the exit code.
fn validated(flags: &str, input: &str) -> (String, i32) {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("crd.yaml"), CRD).unwrap();
    std::fs::write(at("stored.yaml"), STORED).unwrap();
    let path = directory.path().display().to_string();
    let flags = flags.replace("DIR", &path);
    let (out, err, code) = run(&format!("validate --crds {path}/crd.yaml {flags} -"), input);
    ((out + &err).replace(&path, "DIR"), code)
}

#[test]
fn a_status_is_written_through_its_subresource() {
    let status = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a, namespace: b}\nspec: {replicas: 100}\nstatus: {phase: Ready}\n";
    // The spec of the input does not count.
    let (accepted, code) = validated("--subresource status --old DIR/stored.yaml --show-object", status);
    assert_eq!(code, 0, "{accepted}");
    let (refused, code) = validated("--subresource status", &status.replace("Ready", "Lost"));
    assert_eq!(code, 1);
    expect![[r#"
        <stdin>: Widget b/a: update accepted
        ---
        apiVersion: example.com/v1
        kind: Widget
        metadata:
          generation: 1
          name: a
          namespace: b
        spec:
          replicas: 1
        status:
          phase: Ready
        <stdin>:5:10: error: Widget b/a: status.phase: Unsupported value: "Lost": supported values: "Ready"
          |
        5 | status: {phase: Lost}
          |          ^
    "#]]
    .assert_eq(&(accepted + &refused));
    let (out, code) = validated(
        "--subresource status --skip CustomResourceDefinition",
        "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: LoadBalancer, ports: [{port: 80}]}\nstatus: {loadBalancer: {ingress: [{ip: x}]}}\n",
    );
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("status.loadBalancer.ingress[0].ip"), "{out}");
}

#[test]
fn a_scale_is_written_to_the_stored_object() {
    let scale = |replicas: u32| {
        format!(
            "apiVersion: autoscaling/v1\nkind: Scale\nmetadata: {{name: a, namespace: b}}\nspec: {{replicas: {replicas}}}\n"
        )
    };
    let flags = "--subresource scale --old DIR/stored.yaml";
    let (accepted, code) = validated(flags, &scale(5));
    assert_eq!(code, 0, "{accepted}");
    let (refused, code) = validated(flags, &scale(6));
    assert_eq!(code, 1);
    let (absent, code) = validated(flags, &scale(5).replace("name: a", "name: c"));
    assert_eq!(code, 1);
    let (other, code) = validated(flags, STORED);
    assert_eq!(code, 1);
    let (alone, code) = validated("--subresource scale", &scale(5));
    assert_eq!(code, 2);
    expect![[r#"
        <stdin>: Scale b/a: update accepted
        <stdin>:4:8: error: Scale b/a: spec.replicas: Invalid value: 6: spec.replicas in body should be less than or equal to 5
          |
        4 | spec: {replicas: 6}
          |        ^
          = old: 1
        <stdin>:3:1: error: Scale b/c: no stored object with this namespace and name has a scale subresource
          |
        3 | metadata: {name: c, namespace: b}
          | ^
        <stdin>:2:1: error: Widget b/a: a write to /scale is an object of kind Scale in autoscaling/v1
          |
        2 | kind: Widget
          | ^
        error: --subresource scale needs the stored objects: name them with --old
    "#]].assert_eq(&[accepted, refused, absent, other, alone].concat());
}

/// Encrypted values are not what a cluster gets, and the `sops` member is not part of the object.
#[test]
fn documents_of_sops_are_validated_without_their_secrets() {
    let encrypted = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec:\n  replicas: 6\n  secret: ENC[AES256_GCM,data:abc,iv:def,tag:ghi,type:str]\nsops: {mac: x, lastmodified: '2026-01-01T00:00:00Z'}\n---\n\
        apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {password: 'ENC[AES256_GCM,data:abc,iv:def,tag:ghi,type:str]'}\nsops: {mac: x}\n";
    let (out, code) = validated("", encrypted);
    assert_eq!(code, 1);
    expect![[r#"
        <stdin>:5:3: error: Widget a: spec.replicas: Invalid value: 6: spec.replicas in body should be less than or equal to 5
          |
        5 |   replicas: 6
          |   ^
        <stdin>:7:1: warning: Widget a: encrypted by SOPS: encrypted values are not validated
          |
        7 | sops: {mac: x, lastmodified: '2026-01-01T00:00:00Z'}
          | ^
        <stdin>:6:3: warning: Widget a: not validated, because the value is not final: spec.secret: Too long: may not be more than 8 bytes
          |
        6 |   secret: ENC[AES256_GCM,data:abc,iv:def,tag:ghi,type:str]
          |   ^
        <stdin>:13:1: warning: Secret a: encrypted by SOPS: encrypted values are not validated
           |
        13 | sops: {mac: x}
           | ^
        <stdin>:9:1: warning: Secret a: not validated, because the value is not final: illegal base64 data at input byte 3
          |
        9 | apiVersion: v1
          | ^
        <stdin>: Secret a: accepted, except for values that are not final
    "#]].assert_eq(&out);
}

/// Users repair a manifest in one pass: the cluster would name the unknown field only.
#[test]
fn unknown_fields_and_other_errors_are_shown_together() {
    let (custom, code) = validated("", &STORED.replace("replicas: 1", "replicas: 6, colour: blue"));
    assert_eq!(code, 1);
    let (builtin, code) = validated(
        "",
        "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 0}], colour: blue}\n",
    );
    assert_eq!(code, 1);
    expect![[r#"
        <stdin>:4:21: error: Widget b/a: Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.colour"
          |
        4 | spec: {replicas: 6, colour: blue}
          |                     ^
          = help: a cluster reports the errors that follow only once this one is fixed
        <stdin>:4:8: error: Widget b/a: spec.replicas: Invalid value: 6: spec.replicas in body should be less than or equal to 5
          |
        4 | spec: {replicas: 6, colour: blue}
          |        ^
        <stdin>:4:28: error: Service a: Service in version "v1" cannot be handled as a Service: strict decoding error: unknown field "spec.colour"
          |
        4 | spec: {ports: [{port: 0}], colour: blue}
          |                            ^
          = help: a cluster reports the errors that follow only once this one is fixed
        <stdin>:4:17: error: Service a: spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive
          |
        4 | spec: {ports: [{port: 0}], colour: blue}
          |                 ^
        <stdin>:4:16: error: Service a: spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive
          |
        4 | spec: {ports: [{port: 0}], colour: blue}
          |                ^
    "#]].assert_eq(&(custom + &builtin));
}

/// Answers requests for one schema, and refuses all others.
fn schema_server(requests: usize) -> (u16, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let mut paths = Vec::new();
        for _ in 0..requests {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            let mut buffer = [0; 1024];
            while !head.ends_with(b"\r\n\r\n") {
                let count = stream.read(&mut buffer).unwrap();
                head.extend_from_slice(buffer.get(..count).unwrap_or_default());
            }
            let head = String::from_utf8(head).unwrap();
            let path = head.split(' ').nth(1).unwrap().to_owned();
            let schema = r#"{"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}"#;
            let answer = match path.as_str() {
                "/example.org/gadget_v1.json" => {
                    format!("200 OK\r\ncontent-length: {}\r\n\r\n{schema}", schema.len())
                }
                _ => "404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
            };
            write!(stream, "HTTP/1.1 {answer}").unwrap();
            paths.push(path);
        }
        paths
    });
    (port, server)
}

#[test]
fn schemas_are_downloaded_and_cached() {
    let (port, server) = schema_server(2);
    let cache = tempfile::tempdir().unwrap();
    let flags = format!(
        "--schema-location http://127.0.0.1:{port}/{{{{.Group}}}}/{{{{.ResourceKind}}}}_{{{{.ResourceAPIVersion}}}}.json --schema-cache {}",
        cache.path().display()
    );
    let objects = "apiVersion: example.org/v1\nkind: Gadget\nmetadata: {name: a}\nspec: {size: large}\n---\n\
        apiVersion: example.org/v1\nkind: Gizmo\nmetadata: {name: a}\n";
    let (first, code) = validated(&flags, objects);
    assert_eq!(code, 1, "{first}");
    assert_eq!(
        server.join().unwrap(),
        ["/example.org/gadget_v1.json", "/example.org/gizmo_v1.json"]
    );
    // The server is gone; what it sent is kept.
    let (second, code) = validated(&flags, objects.split("---").next().unwrap());
    assert_eq!(code, 1, "{second}");
    expect![[r#"
        <stdin>:4:8: error: Gadget a: spec.size: "large" is not of type "integer"
          |
        4 | spec: {size: large}
          |        ^
        <stdin>:7:1: error: Gizmo a: no matches for kind "Gizmo" in version "example.org/v1"
        hint: 1 object validated against JSON schemas only, which have no rules and no defaults
        hint: 1 object without a schema (1 Gizmo): name the CRDs with --crds, or skip such kinds with --ignore-missing-schemas or --skip
        <stdin>:4:8: error: Gadget a: spec.size: "large" is not of type "integer"
          |
        4 | spec: {size: large}
          |        ^
        hint: 1 object validated against JSON schemas only, which have no rules and no defaults
    "#]].assert_eq(&(first + &second));
}
