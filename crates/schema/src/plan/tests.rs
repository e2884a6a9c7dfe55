//! Snapshots of compiled plans: changes to compilation show here.

mod dump;

use super::{Plan, PlanCompiler};
use crate::document::Schema;
use crate::structural::Interner;
use expect_test::expect;
use scantling_value::{Limits, yaml};

fn plan(schema: &str) -> Plan {
    let schema = yaml::decode(schema.as_bytes(), Limits::SAFE).unwrap();
    let structural = Schema::new(&schema).structural(&mut Interner::new()).unwrap();
    PlanCompiler::new().compile(&structural)
}

#[test]
fn plans_are_readable() {
    let plan = plan(
        "
type: object
required: [spec]
properties:
  spec:
    type: object
    properties:
      replicas: {type: integer, format: int32, minimum: 1, default: 3}
      names: {type: array, maxItems: 5, x-kubernetes-list-type: set, items: {type: string, maxLength: 63, pattern: '^a'}}
      port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
      raw: {type: object, x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true}
      labels: {type: object, additionalProperties: {type: string, enum: [a, b]}, x-kubernetes-immutable-keys: true}
    x-kubernetes-validations: [{rule: self.replicas < 10}]
",
    );
    expect![[r#"
        object; requires spec
          spec: object; rule "self.replicas < 10"
            labels: object; immutable keys
              {}: string; in ["a", "b"]
            names: array; set; items ..5
              []: string; length ..63; matches "^a"
            port: integer,string
              anyOf: integer
              anyOf: string
            raw: object; open; resource
            replicas: integer; default 3; value 1..; format int32
    "#]]
    .assert_eq(&plan.to_string());
}
