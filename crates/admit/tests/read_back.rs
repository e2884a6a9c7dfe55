//! A create whose result is normalized is not pruned and defaulted again: reading it back changes nothing.

use scantling_admit::{
    AdmitOptions, Gates, NewObjectMeta, Request, ResourceCompiler, WriteOperation, admit,
    prune_and_default_stored,
};
use scantling_schema::definition::{Accepted, ApiVersion, Definition};
use scantling_value::{Limits, yaml};

/// Properties of the schema, members of the object, and whether reading the object back may change it.
const TABLE: &[(&str, &str, bool)] = &[
    (
        "spec: {type: object, properties: {a: {type: integer, default: 1}}}",
        "spec: {b: 2}",
        false,
    ),
    (
        "spec: {type: object, default: {}, properties: {a: {type: integer, default: 1}}}",
        "other: 1",
        false,
    ),
    (
        "spec: {type: object, properties: {a: {type: string}}}",
        "spec: {a: null, b: null}",
        false,
    ),
    (
        "spec: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string, nullable: true}}}",
        "spec: {a: null, b: null}",
        false,
    ),
    (
        "spec: {type: object, properties: {l: {type: array, items: {type: object, properties: {a: {type: integer, default: 1}}}}}}",
        "spec: {l: [{}, {b: 1}]}",
        false,
    ),
    (
        "status: {type: object, properties: {a: {type: integer, default: 1}}}",
        "status: {}",
        false,
    ),
    (
        "status: {type: object, default: {a: 1}, properties: {a: {type: integer}}}",
        "status: {}",
        true,
    ),
    (
        "spec: {type: object, x-kubernetes-embedded-resource: true, properties: {a: {type: integer, default: 1}}}",
        "spec: {apiVersion: v1, kind: A, metadata: {name: a, other: 1}}",
        true,
    ),
];

#[test]
fn creates_read_back_as_they_were_admitted() {
    let decode = |text: &str| yaml::decode(text.as_bytes(), Limits::SAFE).unwrap();
    for (properties, members, may_change) in TABLE {
        let definition = decode(&format!(
            "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: widgets.example.com}}, \
             spec: {{group: example.com, scope: Cluster, names: {{plural: widgets, kind: Widget}}, versions: [{{name: v1, \
             served: true, storage: true, subresources: {{status: {{}}}}, schema: {{openAPIV3Schema: {{type: object, \
             properties: {{{properties}}}}}}}}}]}}}}"
        ));
        let definition = Definition::decode(definition, ApiVersion::V1, Gates::default()).unwrap();
        let accepted = Accepted::assume_accepted(definition.definition);
        let resource = ResourceCompiler::default().compile(&accepted, "v1").unwrap();
        assert_eq!(resource.creates_normalized(), !may_change, "{properties}");
        let meta = NewObjectMeta {
            uid: "u".into(),
            created: "2026-08-01T00:00:00Z".into(),
            suffix: "x7k2p".into(),
        };
        let request = Request {
            operation: WriteOperation::Create(&meta),
            object: decode(&format!(
                "{{apiVersion: example.com/v1, kind: Widget, metadata: {{name: a}}, {members}}}"
            )),
            findings: &[],
        };
        let outcome = admit(&resource, request, &AdmitOptions::default());
        assert_eq!(outcome.error, None, "{members}");
        let mut read = outcome.object.clone();
        prune_and_default_stored(&resource, &mut read).unwrap();
        assert!(
            *may_change || read == outcome.object,
            "{properties}: {}",
            read.to_json()
        );
    }
}
