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
fn lint_accepts_what_a_server_accepts() {
    check("lint --skip SCT -", LOOSE, 0, &expect![[]]);
    let pruned = LOOSE.replace(
        "  version: v1\n",
        "  version: v1\n  preserveUnknownFields: false\n",
    );
    check("lint --skip SCT -", &pruned, 1, &expect![[]]);
    check(
        "lint --skip SCT -",
        &v1("", "{properties: {a: {}}}"),
        1,
        &expect![[]],
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
        &expect![[]],
    );
    check("validate -", &format!("{LOOSE}---\n{bad}"), 1, &expect![[]]);
    check(
        "validate --show-object -",
        &format!("{WITHOUT_SCHEMA}---\n{bad}"),
        0,
        &expect![[]],
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
fn versions_that_cannot_be_used_leave_others_their_cost() {
    let schema = "{type: object, properties: {s: {type: string, maxLength: 5, \
        x-kubernetes-validations: [{rule: self != '', message: m}]}}}";
    let definition = v1("", schema)
        + "  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, $ref: x}}}\n";
    check("cost -", &definition, 2, &expect![[]]);
}
