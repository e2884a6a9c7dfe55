//! Objects of custom kinds.

use crate::{CRDS, run};
use expect_test::expect;
use std::path::Path;

#[test]
fn warnings_and_strict_errors_have_locations() {
    let input = "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {name: a}\nspec:\n  cronSpec: '* * * * *'\n  \
                 cronSpec: '* * * * *'\n  colour: blue\n  env: [{name: a, colour: blue}]\n";
    let (warned, _, code) = run(&format!("validate {CRDS} --field-validation warn -"), input);
    assert_eq!(code, 0);
    let (strict, _, code) = run(&format!("validate {CRDS} -"), input);
    assert_eq!(code, 1);
    let (json, _, _) = run(
        &format!("validate {CRDS} --field-validation warn -o json -"),
        input,
    );
    let (github, _, _) = run(
        &format!("validate {CRDS} --field-validation warn -o github -"),
        input,
    );
    expect![[r#"
        <stdin>:6:3: warning: CronTab a: line 6: key "cronSpec" already set in map
          |
        6 |   cronSpec: '* * * * *'
          |   ^
        <stdin>:7:3: warning: CronTab a: unknown field "spec.colour"
          |
        7 |   colour: blue
          |   ^
        <stdin>:8:19: warning: CronTab a: unknown field "spec.env[0].colour"
          |
        8 |   env: [{name: a, colour: blue}]
          |                   ^
        <stdin>: CronTab a: accepted
        <stdin>:6:3: error: CronTab a: CronTab in version "v1" cannot be handled as a CronTab: strict decoding error: yaml: unmarshal errors:
                line 6: key "cronSpec" already set in map, unknown field "spec.colour", unknown field "spec.env[0].colour"
          |
        6 |   cronSpec: '* * * * *'
          |   ^
          = also at 7:3
          = also at 8:19
        {
          "kind": "ValidationReport",
          "items": [
            {
              "file": "<stdin>",
              "apiVersion": "stable.example.com/v1",
              "kind": "CronTab",
              "namespace": "",
              "name": "a",
              "accepted": true,
              "errors": [],
              "warnings": [
                "line 6: key \"cronSpec\" already set in map",
                "unknown field \"spec.colour\"",
                "unknown field \"spec.env[0].colour\""
              ],
              "warningPositions": [
                {
                  "line": 6,
                  "column": 3
                },
                {
                  "line": 7,
                  "column": 3
                },
                {
                  "line": 8,
                  "column": 19
                }
              ],
              "celCost": 5
            }
          ]
        }
        ::warning file=<stdin>,line=6,col=3,title=CronTab a::line 6: key "cronSpec" already set in map
        ::warning file=<stdin>,line=7,col=3,title=CronTab a::unknown field "spec.colour"
        ::warning file=<stdin>,line=8,col=19,title=CronTab a::unknown field "spec.env[0].colour"
    "#]].assert_eq(&format!("{warned}{strict}{json}{github}"));
}

#[test]
fn deprecated_versions_are_reported() {
    let definition = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/crontab/definition.yaml"),
    );
    let definition = definition
        .unwrap()
        .replace("  - name: v1\n", "  - name: v1\n    deprecated: true\n");
    let object = "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {name: a}\nspec: {cronSpec: '* * * * *'}\n";
    let (out, err, code) = run("validate -", &format!("{definition}---\n{object}"));
    assert_eq!(code, 0, "{err}");
    assert!(
        out.contains("warning: CronTab a: stable.example.com/v1 CronTab is deprecated"),
        "{out}"
    );
}

#[test]
fn namespaces_of_cluster_scoped_objects_are_removed() {
    let definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
        metadata: {name: as.example.com, namespace: odd}\nspec:\n  group: example.com\n  scope: Cluster\n  \
        names: {plural: as, singular: a, kind: A, listKind: AList}\n  versions:\n  - name: v1\n    served: true\n    \
        storage: true\n    schema:\n      openAPIV3Schema: {type: object}\n";
    let object = "apiVersion: example.com/v1\nkind: A\nmetadata: {name: a, namespace: odd}\n";
    let (out, err, code) = run("lint -", definition);
    assert_eq!(code, 0, "{out}{err}");
    let (out, err, code) = run("validate -", &format!("{definition}---\n{object}"));
    assert_eq!(code, 0, "{out}{err}");
}

/// A server decides about metadata, too. What only it knows is left out.
#[test]
fn show_object_has_the_stored_metadata() {
    let object = |metadata: &str| {
        format!(
            "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {metadata}\nspec: {{cronSpec: '* * * * *'}}\n"
        )
    };
    let directory = tempfile::tempdir().unwrap();
    let old = directory.path().join("old.yaml");
    std::fs::write(
        &old,
        object("{name: a, uid: u, generation: 3, resourceVersion: '7'}"),
    )
    .unwrap();
    let mut all = String::new();
    for (what, arguments, metadata) in [
        (
            "create",
            String::new(),
            "{name: a, uid: mine, creationTimestamp: null, generation: 9, selfLink: /a, labels: {a: b}}",
        ),
        ("generated", String::new(), "{generateName: a-}"),
        (
            "update",
            format!("--old {}", old.display()),
            "{name: a, generation: 9, labels: {a: b}}",
        ),
    ] {
        let (out, err, code) = run(
            &format!("validate {CRDS} --show-object {arguments} -"),
            &object(metadata),
        );
        assert_eq!((err.as_str(), code), ("", 0), "{out}");
        let shown = out
            .split("metadata:")
            .nth(1)
            .unwrap()
            .split("spec:")
            .next()
            .unwrap()
            .to_owned();
        all.push_str(&format!("{what}:{shown}"));
    }
    expect![[r#"
        create:
          generation: 1
          labels:
            a: b
          name: a
        generated:
          generateName: a-
          generation: 1
        update:
          generation: 3
          labels:
            a: b
          name: a
          uid: u
    "#]]
    .assert_eq(&all);
}
