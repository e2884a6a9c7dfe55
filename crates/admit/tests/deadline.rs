//! A write that runs out of time has no outcome: at whichever step of whichever walk the deadline passes, the answer is
//! the one without a deadline or none.
#![expect(clippy::unwrap_used, reason = "a test may panic, and reads best so")]

use scantling_admit::{
    AdmitOptions, Gates, NewObjectMeta, Request, Resource, ResourceCompiler, WriteOperation, admit,
    prune_and_default_stored,
};
use scantling_schema::definition::{Accepted, ApiVersion, Definition};
use scantling_value::deadline::testing::at_every_step;
use scantling_value::{Limits, Value, yaml};

fn read(text: &str) -> Value {
    yaml::decode(text.as_bytes(), Limits::SAFE).unwrap()
}

fn resource(spec: &str, gates: Gates) -> Resource {
    let definition = format!(
        "{{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {{name: things.example.com}},
          spec: {{group: example.com, scope: Cluster, names: {{plural: things, singular: thing, kind: Thing}},
          versions: [{{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object,
          properties: {{spec: {spec}}}}}}}}}]}}}}"
    );
    let definition = Definition::decode(read(&definition), ApiVersion::V1, gates).unwrap();
    let accepted = Accepted::assume_accepted(definition.definition);
    ResourceCompiler::default().compile(&accepted, "v1").unwrap()
}

fn object(spec: &str) -> Value {
    let text = format!(
        "{{apiVersion: example.com/v1, kind: Thing, metadata: {{name: a, uid: u, resourceVersion: \"1\",
          creationTimestamp: 2026-08-01T00:00:00Z}}, spec: {spec}}}"
    );
    read(&text)
}

struct Case {
    about: &'static str,
    schema: &'static str,
    old: &'static str,
    new: &'static str,
}

const CASES: &[Case] = &[
    Case {
        about: "limits that are kept",
        schema: "{type: object, properties: {l: {type: array, items: {type: string, maxLength: 2, pattern: '^a'}}}}",
        old: "{l: [a]}",
        new: "{l: [a, ab, ac, ad]}",
    },
    Case {
        about: "limits that are not",
        schema: "{type: object, properties: {l: {type: array, items: {type: integer, minimum: 3}}}}",
        old: "{l: [1]}",
        new: "{l: [1, 2, 3, 4]}",
    },
    Case {
        about: "branches of which one fits",
        schema: "{type: object, properties: {l: {type: array, items: {type: integer,
                  anyOf: [{minimum: 9}, {maximum: 1}], not: {enum: [0]}}}}}",
        old: "{l: []}",
        new: "{l: [9, 1, 12]}",
    },
    Case {
        about: "branches of which none fits",
        schema: "{type: object, properties: {l: {type: array, items: {type: integer,
                  oneOf: [{minimum: 9}, {minimum: 8}], allOf: [{minimum: 7}]}}}}",
        old: "{l: []}",
        new: "{l: [9, 1, 12]}",
    },
    Case {
        about: "rules that are kept",
        schema: "{type: object, properties: {l: {type: array, maxItems: 9, items: {type: integer}}},
                  x-kubernetes-validations: [{rule: 'self.l.all(x, self.l.exists(y, y >= x))'}]}",
        old: "{l: [1]}",
        new: "{l: [1, 2, 3]}",
    },
    Case {
        about: "rules that are broken, with a message that is computed",
        schema: "{type: object, properties: {l: {type: array, maxItems: 9, items: {type: object, properties:
                  {n: {type: integer}}, x-kubernetes-validations: [{rule: 'self.n > 5', messageExpression:
                  '\"no: \" + string(self.n)'}]}}}, x-kubernetes-validations: [{rule: 'self.l.size() < 2'}]}",
        old: "{l: [{n: 9}]}",
        new: "{l: [{n: 9}, {n: 1}, {n: 2}]}",
    },
    Case {
        about: "rules about a change",
        schema: "{type: object, properties: {n: {type: integer}, l: {type: array, maxItems: 9, items: {type: integer}}},
                  x-kubernetes-validations: [{rule: 'oldSelf.l.all(x, x in self.l)'}]}",
        old: "{l: [1, 2]}",
        new: "{l: [1, 2, 3], n: 1}",
    },
    Case {
        about: "defaults and unknown fields",
        schema: "{type: object, properties: {l: {type: array, items: {type: object, properties: {a: {type: string,
                  default: x}, b: {type: object, default: {}, properties: {c: {type: integer, default: 1}}}}}}}}",
        old: "{l: []}",
        new: "{l: [{}, {a: y}, {z: 1, b: {y: 2}}], zz: {}}",
    },
    Case {
        about: "sets and keyed lists with duplicates",
        schema: "{type: object, properties: {s: {type: array, x-kubernetes-list-type: set, items: {type: string}},
                  m: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object,
                  required: [k], properties: {k: {type: string}, v: {type: integer}}}}}}",
        old: "{s: [a], m: [{k: a, v: 1}]}",
        new: "{s: [a, b, b], m: [{k: a, v: 2}, {k: a}, {k: b}]}",
    },
    Case {
        about: "what updates may not change",
        schema: "{type: object, properties: {f: {type: array, items: {type: integer}, x-kubernetes-immutable: true},
                  m: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k],
                  x-kubernetes-immutable-keys: true, items: {type: object, required: [k],
                  properties: {k: {type: string}, v: {type: integer}}}}}}",
        old: "{f: [1, 2], m: [{k: a, v: 1}]}",
        new: "{f: [1, 3], m: [{k: a, v: 2}, {k: b}]}",
    },
    Case {
        about: "unions",
        schema: "{type: object, properties: {l: {type: array, items: {type: object, properties: {a: {type: string},
                  b: {type: string}}, x-kubernetes-unions: [{fields: {a: A, b: B}}]}}}}",
        old: "{l: [{a: x}]}",
        new: "{l: [{a: x}, {b: y}, {a: x, b: y}, {}]}",
    },
];

#[test]
fn writes_and_reads_observe_the_deadline() {
    let gates = Gates {
        immutability: true,
        unions: true,
        ..Gates::default()
    };
    let options = AdmitOptions {
        gates,
        ..AdmitOptions::default()
    };
    let identity = NewObjectMeta {
        uid: "u".into(),
        created: "2026-08-01T00:00:00Z".into(),
        suffix: "x7k2p".into(),
    };
    for case in CASES {
        let resource = resource(case.schema, gates);
        let (old, new) = (object(case.old), object(case.new));
        // Rules compile on first use, which must not count as steps.
        resource.plan.compile_rules();
        let write = |operation: WriteOperation<'_>| {
            let request = Request {
                operation,
                object: new.clone(),
                findings: &[],
            };
            let outcome = admit(&resource, request, &options);
            (outcome.object, outcome.error, outcome.warnings)
        };
        for operation in [WriteOperation::Create(&identity), WriteOperation::Update(&old)] {
            let steps = at_every_step(|| write(operation));
            assert!(steps > 3, "{}: {steps} steps", case.about);
        }
        at_every_step(|| {
            let mut stored = new.clone();
            prune_and_default_stored(&resource, &mut stored).unwrap();
            stored
        });
    }
}
