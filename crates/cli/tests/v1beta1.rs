//! Definitions of `apiextensions.k8s.io/v1beta1` and schemas that are not structural, on the command line.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "support/program.rs"]
mod program;

use expect_test::{Expect, expect};
use program::{fed, scantling};
use std::fs;

const LOOSE: &str = "apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: as.b.c}
spec:
  group: b.c
  names: {plural: as, kind: A}
  version: v1
  validation:
    openAPIV3Schema:
      properties:
        spec:
          required: [size]
          anyOf:
          - properties: {size: {type: integer, minimum: 1}}
          - properties: {size: {type: string}}
";

const WITHOUT_SCHEMA: &str = "apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: as.b.c}
spec:
  group: b.c
  names: {plural: as, kind: A}
  version: v1
";

/// A definition of `v1` with this schema.
fn v1(rest: &str, schema: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: as.b.c}}
spec:
  group: b.c
  scope: Namespaced
  names: {{plural: as, singular: a, kind: A, listKind: AList}}
{rest}  versions:
  - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {schema}}}}}
"
    )
}

fn check(arguments: &str, input: &str, code: i32, wanted: &Expect) {
    let output = fed(scantling().args(arguments.split_whitespace()), input);
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    wanted.assert_eq(&text);
    assert_eq!(output.status.code(), Some(code), "{text}");
}

#[test]
fn lint_agrees_with_kube_apiserver() {
    check(
        "lint --skip SCT -",
        LOOSE,
        0,
        &expect![[r#"
        <stdin>: warning: as.b.c: apiextensions.k8s.io/v1beta1 CustomResourceDefinition is deprecated in v1.16+, unavailable in v1.22+; use apiextensions.k8s.io/v1 CustomResourceDefinition
        <stdin>: warning: as.b.c: the condition NonStructuralSchema will be set: [spec.preserveUnknownFields: Invalid value: true: must be false, spec.versions[0].schema.openAPIV3Schema.properties[spec].anyOf[0].properties[size].type: Forbidden: must be empty to be structural, spec.versions[0].schema.openAPIV3Schema.properties[spec].anyOf[1].properties[size].type: Forbidden: must be empty to be structural, spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields, spec.versions[0].schema.openAPIV3Schema.type: Required value: must not be empty at the root]
        <stdin>: as.b.c: accepted
    "#]],
    );
    let pruned = LOOSE.replace(
        "  version: v1\n",
        "  version: v1\n  preserveUnknownFields: false\n",
    );
    check(
        "lint --skip SCT -",
        &pruned,
        1,
        &expect![[r#"
        <stdin>:15:33: error: as.b.c: spec.validation.openAPIV3Schema.properties[spec].anyOf[0].properties[size].type: Forbidden: must be empty to be structural
           |
        15 |           - properties: {size: {type: integer, minimum: 1}}
           |                                 ^
        <stdin>:16:33: error: as.b.c: spec.validation.openAPIV3Schema.properties[spec].anyOf[1].properties[size].type: Forbidden: must be empty to be structural
           |
        16 |           - properties: {size: {type: string}}
           |                                 ^
        <stdin>:12:9: error: as.b.c: spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields
           |
        12 |         spec:
           |         ^
        <stdin>:10:5: error: as.b.c: spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root
           |
        10 |     openAPIV3Schema:
           |     ^
        <stdin>: warning: as.b.c: apiextensions.k8s.io/v1beta1 CustomResourceDefinition is deprecated in v1.16+, unavailable in v1.22+; use apiextensions.k8s.io/v1 CustomResourceDefinition
    "#]],
    );
    check(
        "lint --skip SCT -",
        &v1("", "{properties: {a: {}}}"),
        1,
        &expect![[r#"
            <stdin>:9:85: error: as.b.c: spec.validation.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields
              |
            9 |   - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {properties: {a: {}}}}}
              |                                                                                     ^
            <stdin>:9:54: error: as.b.c: spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root
              |
            9 |   - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {properties: {a: {}}}}}
              |                                                      ^
        "#]],
    );
}

#[test]
fn objects_are_validated_and_not_pruned() {
    let good = "apiVersion: b.c/v1\nkind: A\nmetadata: {name: a, namespace: d}\nspec: {size: x, more: 1}\n";
    let bad = good.replace("size: x", "size: 0");
    check(
        "validate --show-object -",
        &format!("{LOOSE}---\n{good}"),
        0,
        &expect![[r#"
            <stdin>: warning: CustomResourceDefinition as.b.c: apiextensions.k8s.io/v1beta1 CustomResourceDefinition is deprecated in v1.16+, unavailable in v1.22+; use apiextensions.k8s.io/v1 CustomResourceDefinition
            <stdin>: CustomResourceDefinition as.b.c: accepted
            <stdin>: A d/a: accepted
            ---
            apiVersion: b.c/v1
            kind: A
            metadata:
              generation: 1
              name: a
              namespace: d
            spec:
              more: 1
              size: x
        "#]],
    );
    check(
        "validate -",
        &format!("{LOOSE}---\n{bad}"),
        1,
        &expect![[r#"
        <stdin>: warning: CustomResourceDefinition as.b.c: apiextensions.k8s.io/v1beta1 CustomResourceDefinition is deprecated in v1.16+, unavailable in v1.22+; use apiextensions.k8s.io/v1 CustomResourceDefinition
        <stdin>: CustomResourceDefinition as.b.c: accepted
        <stdin>:20:1: error: A d/a: <nil>: Invalid value: "": "spec" must validate at least one schema (anyOf)
           |
        20 | spec: {size: 0, more: 1}
           | ^
        <stdin>:20:8: error: A d/a: spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1
           |
        20 | spec: {size: 0, more: 1}
           |        ^
    "#]],
    );
    check(
        "validate --show-object -",
        &format!("{WITHOUT_SCHEMA}---\n{bad}"),
        0,
        &expect![[r#"
            <stdin>: warning: CustomResourceDefinition as.b.c: apiextensions.k8s.io/v1beta1 CustomResourceDefinition is deprecated in v1.16+, unavailable in v1.22+; use apiextensions.k8s.io/v1 CustomResourceDefinition
            <stdin>: CustomResourceDefinition as.b.c: accepted
            <stdin>: A d/a: accepted
            ---
            apiVersion: b.c/v1
            kind: A
            metadata:
              generation: 1
              name: a
              namespace: d
            spec:
              more: 1
              size: 0
        "#]],
    );
}

#[test]
fn upgrades_are_updates() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let old = file("old.yaml", LOOSE);
    let kept = file(
        "kept.yaml",
        &v1(
            "  preserveUnknownFields: true\n",
            "{properties: {spec: {required: [size]}}}",
        ),
    );
    let pruned = file("pruned.yaml", &v1("", "{properties: {spec: {required: [size]}}}"));
    let refused = |new: &str| {
        let arguments = format!("upgrade --from {old} --to {new} -o json");
        let output = fed(scantling().args(arguments.split_whitespace()), "");
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    let said = refused(&kept);
    assert!(!said.contains("must not be empty"), "{said}");
    let said = refused(&pruned);
    assert!(said.contains("must not be empty at the root"), "{said}");
}

#[test]
fn unusable_versions_do_not_hide_costs_of_others() {
    let schema = "{type: object, properties: {s: {type: string, maxLength: 5, \
        x-kubernetes-validations: [{rule: self != '', message: m}]}}}";
    let definition = v1("", schema)
        + "  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, $ref: x}}}\n";
    check(
        "cost -",
        &definition,
        3,
        &expect![[r#"
            <stdin>:9:158: as.b.c v1 s rule 0: costs 1 × 1 evaluation = 1: 0.0% of a rule's limit: self != ''
            <stdin>:9:54: as.b.c v1: all rules together cost 1: 0.0% of a schema's limit
            error: <stdin>: cannot use the CRD as.b.c: version v2: OpenAPIV3Schema '$ref' is not supported
            hint: `scantling lint` reports all errors of a CRD
        "#]],
    );
}
