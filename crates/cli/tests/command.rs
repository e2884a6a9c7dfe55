//! The command line as its users meet it: every form of output, exit codes, bad input.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use expect_test::{Expect, expect};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a command at the root of the repository: standard output, standard error, exit code.
fn run(arguments: &str, input: &str) -> (String, String, i32) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut child = Command::new(env!("CARGO_BIN_EXE_scantling"))
        .args(arguments.split_whitespace())
        .current_dir(root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        text(output.stdout),
        text(output.stderr),
        output.status.code().unwrap(),
    )
}

#[track_caller]
fn check(arguments: &str, code: i32, expected: &Expect) {
    let (out, err, found) = run(arguments, "");
    assert_eq!(found, code, "{out}{err}");
    expected.assert_eq(&format!("{out}{err}"));
}

const INVALID: &str = "validate --crds examples/crontab/definition.yaml examples/crontab/invalid.yaml";

#[test]
fn as_text() {
    check(
        &format!("{INVALID} --summary"),
        1,
        &expect![[r#"
        examples/crontab/invalid.yaml:7:3: error: CronTab jobs/backup: spec.cronSpec: Invalid value: "hourly": spec.cronSpec in body should match '^(\S+\s+){4}\S+$'
          |
        7 |   cronSpec: hourly
          |   ^
        examples/crontab/invalid.yaml:8:3: error: CronTab jobs/backup: spec.replicas: Invalid value: replicas must not be below minReplicas
          |
        8 |   replicas: 2
          |   ^
        examples/crontab/invalid.yaml: warning: CronTab jobs/backup: unknown field "spec.colour"
        1 objects: 0 accepted, 1 refused, 1 warnings
    "#]],
    );
}

#[test]
fn as_json() {
    check(
        &format!("{INVALID} -o json"),
        1,
        &expect![[r#"
        {
          "kind": "ValidationReport",
          "items": [
            {
              "file": "examples/crontab/invalid.yaml",
              "apiVersion": "stable.example.com/v1",
              "kind": "CronTab",
              "namespace": "jobs",
              "name": "backup",
              "accepted": false,
              "errors": [
                {
                  "field": "spec.cronSpec",
                  "reason": "FieldValueInvalid",
                  "message": "Invalid value: \"hourly\": spec.cronSpec in body should match '^(\\S+\\s+){4}\\S+$'",
                  "line": 7,
                  "column": 3
                },
                {
                  "field": "spec.replicas",
                  "reason": "FieldValueInvalid",
                  "message": "Invalid value: replicas must not be below minReplicas",
                  "line": 8,
                  "column": 3
                }
              ],
              "warnings": [
                "unknown field \"spec.colour\""
              ],
              "celCost": 5
            }
          ]
        }
    "#]],
    );
}

#[test]
fn as_yaml() {
    check(
        &format!("{INVALID} -o yaml"),
        1,
        &expect![[r#"
        items:
        - accepted: false
          apiVersion: stable.example.com/v1
          celCost: 5
          errors:
          - column: 3
            field: spec.cronSpec
            line: 7
            message: 'Invalid value: "hourly": spec.cronSpec in body should match ''^(\S+\s+){4}\S+$'''
            reason: FieldValueInvalid
          - column: 3
            field: spec.replicas
            line: 8
            message: 'Invalid value: replicas must not be below minReplicas'
            reason: FieldValueInvalid
          file: examples/crontab/invalid.yaml
          kind: CronTab
          name: backup
          namespace: jobs
          warnings:
          - unknown field "spec.colour"
        kind: ValidationReport
    "#]],
    );
}

#[test]
fn as_junit() {
    check(
        &format!("{INVALID} -o junit"),
        1,
        &expect![[r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="scantling validate" tests="1" failures="1" errors="0">
          <testsuite name="examples/crontab/invalid.yaml" tests="1" failures="1" errors="0" skipped="0">
            <testcase name="CronTab jobs/backup" classname="scantling.validate" file="examples/crontab/invalid.yaml">
              <failure type="FieldValueInvalid" message="spec.cronSpec: Invalid value: &quot;hourly&quot;: spec.cronSpec in body should match '^(\S+\s+){4}\S+$'">examples/crontab/invalid.yaml:7:3: spec.cronSpec: Invalid value: &quot;hourly&quot;: spec.cronSpec in body should match '^(\S+\s+){4}\S+$'</failure>
              <failure type="FieldValueInvalid" message="spec.replicas: Invalid value: replicas must not be below minReplicas">examples/crontab/invalid.yaml:8:3: spec.replicas: Invalid value: replicas must not be below minReplicas</failure>
              <system-out>examples/crontab/invalid.yaml: warning: unknown field &quot;spec.colour&quot;
        </system-out>
            </testcase>
          </testsuite>
        </testsuites>
    "#]],
    );
}

#[test]
fn as_sarif() {
    check(
        &format!("{INVALID} -o sarif"),
        1,
        &expect![[r#"
        {
          "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
          "runs": [
            {
              "columnKind": "unicodeCodePoints",
              "results": [
                {
                  "level": "error",
                  "locations": [
                    {
                      "physicalLocation": {
                        "artifactLocation": {
                          "uri": "examples/crontab/invalid.yaml"
                        },
                        "region": {
                          "startColumn": 3,
                          "startLine": 7
                        }
                      }
                    }
                  ],
                  "message": {
                    "text": "CronTab jobs/backup: spec.cronSpec: Invalid value: \"hourly\": spec.cronSpec in body should match '^(\\S+\\s+){4}\\S+$'"
                  },
                  "ruleId": "FieldValueInvalid"
                },
                {
                  "level": "error",
                  "locations": [
                    {
                      "physicalLocation": {
                        "artifactLocation": {
                          "uri": "examples/crontab/invalid.yaml"
                        },
                        "region": {
                          "startColumn": 3,
                          "startLine": 8
                        }
                      }
                    }
                  ],
                  "message": {
                    "text": "CronTab jobs/backup: spec.replicas: Invalid value: replicas must not be below minReplicas"
                  },
                  "ruleId": "FieldValueInvalid"
                },
                {
                  "level": "warning",
                  "locations": [
                    {
                      "physicalLocation": {
                        "artifactLocation": {
                          "uri": "examples/crontab/invalid.yaml"
                        }
                      }
                    }
                  ],
                  "message": {
                    "text": "CronTab jobs/backup: unknown field \"spec.colour\""
                  },
                  "ruleId": "Warning"
                }
              ],
              "tool": {
                "driver": {
                  "name": "scantling",
                  "rules": [
                    {
                      "id": "FieldValueInvalid"
                    },
                    {
                      "id": "Warning"
                    }
                  ],
                  "semanticVersion": "0.1.0"
                }
              }
            }
          ],
          "version": "2.1.0"
        }
    "#]],
    );
}

#[test]
fn as_github() {
    check(
        &format!("{INVALID} -o github"),
        1,
        &expect![[r#"
        ::error file=examples/crontab/invalid.yaml,line=7,col=3,title=CronTab jobs/backup::spec.cronSpec: Invalid value: "hourly": spec.cronSpec in body should match '^(\S+\s+){4}\S+$'
        ::error file=examples/crontab/invalid.yaml,line=8,col=3,title=CronTab jobs/backup::spec.replicas: Invalid value: replicas must not be below minReplicas
        ::warning file=examples/crontab/invalid.yaml,title=CronTab jobs/backup::unknown field "spec.colour"
    "#]],
    );
}

#[test]
fn lint_as_json() {
    check(
        "lint -o json examples/crontab/costly.yaml",
        1,
        &expect![[r#"
        {
          "kind": "LintReport",
          "items": [
            {
              "file": "examples/crontab/costly.yaml",
              "name": "hostlists.stable.example.com",
              "accepted": false,
              "errors": [
                {
                  "field": "spec.validation.openAPIV3Schema.properties[spec].properties[hosts].items.x-kubernetes-validations[0].rule",
                  "reason": "FieldValueForbidden",
                  "message": "Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)",
                  "line": 25,
                  "column": 21
                },
                {
                  "field": "spec.validation.openAPIV3Schema.properties[spec].properties[hosts].items.x-kubernetes-validations[0].rule",
                  "reason": "FieldValueForbidden",
                  "message": "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema",
                  "line": 25,
                  "column": 21
                },
                {
                  "field": "spec.validation.openAPIV3Schema",
                  "reason": "FieldValueForbidden",
                  "message": "Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)",
                  "line": 14,
                  "column": 7
                }
              ],
              "warnings": [],
              "advice": [
                {
                  "code": "SCT0104",
                  "field": "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[hosts].items",
                  "message": "the rule `self.aliases.all(a, a.startsWith(self.name))` has no message: users are shown the rule",
                  "line": 22,
                  "column": 17
                },
                {
                  "code": "SCT0201",
                  "field": "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[hosts]",
                  "message": "the list has no x-kubernetes-list-type: server-side apply takes it as a whole",
                  "line": 20,
                  "column": 15
                },
                {
                  "code": "SCT0103",
                  "field": "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[hosts].items.properties[aliases]",
                  "message": "rules see this value, and it has no maxItems",
                  "line": 28,
                  "column": 21
                },
                {
                  "code": "SCT0201",
                  "field": "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[hosts].items.properties[aliases]",
                  "message": "the list has no x-kubernetes-list-type: server-side apply takes it as a whole",
                  "line": 28,
                  "column": 21
                },
                {
                  "code": "SCT0103",
                  "field": "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[hosts].items.properties[aliases].items",
                  "message": "rules see this value, and it has no maxLength",
                  "line": 28,
                  "column": 44
                },
                {
                  "code": "SCT0103",
                  "field": "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[hosts].items.properties[name]",
                  "message": "rules see this value, and it has no maxLength",
                  "line": 27,
                  "column": 21
                }
              ]
            }
          ]
        }
    "#]],
    );
}

#[test]
fn cost_as_json() {
    check(
        "cost -o json examples/crontab/costly.yaml",
        1,
        &expect![[r#"
        {
          "kind": "CostReport",
          "items": [
            {
              "name": "hostlists.stable.example.com",
              "version": "v1",
              "path": ".properties[spec].properties[hosts].items",
              "index": 0,
              "rule": "self.aliases.all(a, a.startsWith(self.name))",
              "cost": 329859674928,
              "cardinality": 1048576,
              "messageExpressionCost": 0,
              "error": "",
              "usesOldSelf": false,
              "totalCost": 345882938497302528,
              "ruleShare": 34588293849.730255,
              "schemaShare": 3458829384.9730253,
              "hints": [
                {
                  "bounds": [
                    {
                      "path": ".properties[spec].properties[hosts]",
                      "keyword": "maxItems"
                    },
                    {
                      "path": ".properties[spec].properties[hosts].items.properties[aliases]",
                      "keyword": "maxItems"
                    },
                    {
                      "path": ".properties[spec].properties[hosts].items.properties[name]",
                      "keyword": "maxLength"
                    }
                  ],
                  "value": 287
                }
              ]
            }
          ]
        }
    "#]],
    );
}

#[test]
fn upgrade_as_json() {
    let files = "--from examples/crontab/definition.yaml --to examples/crontab/tightened.yaml";
    check(
        &format!("upgrade -o json {files} examples/crontab/object.yaml"),
        0,
        &expect![[r#"
            {
              "kind": "UpgradeReport",
              "definitions": [
                {
                  "name": "crontabs.stable.example.com",
                  "verdict": "safe-with-ratcheting",
                  "changes": [
                    {
                      "version": "v1",
                      "path": ".properties[spec].properties[image]",
                      "what": "pattern changes from nothing to \"^example\\\\.com/\"",
                      "verdict": "safe-with-ratcheting"
                    },
                    {
                      "version": "v1",
                      "path": ".properties[spec].properties[replicas]",
                      "what": "maximum changes from 10 to 1",
                      "verdict": "safe-with-ratcheting"
                    }
                  ]
                }
              ],
              "items": [
                {
                  "file": "examples/crontab/object.yaml",
                  "kind": "CronTab",
                  "namespace": "jobs",
                  "name": "backup",
                  "outcome": "ratcheted",
                  "errors": [],
                  "ratcheted": [
                    {
                      "field": "spec.replicas",
                      "reason": "FieldValueInvalid",
                      "message": "Invalid value: 2: spec.replicas in body should be less than or equal to 1",
                      "line": 8,
                      "column": 3
                    }
                  ],
                  "pruned": [],
                  "defaulted": []
                }
              ]
            }
        "#]],
    );
}

#[test]
fn bad_input_is_named() {
    let crds = "--crds examples/crontab/definition.yaml";
    let cases = [
        ("validate absent.yaml", ""),
        ("validate -", "a: [\n"),
        ("validate -", "- 1\n"),
        ("validate -", "metadata: {name: a}\n"),
        ("validate docs", ""),
        (
            "validate --crds examples/crontab/object.yaml examples/crontab/object.yaml",
            "",
        ),
        (
            "validate --crds - examples/crontab/object.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: 1\n",
        ),
        ("cost absent.yaml", ""),
        ("store --data-dir absent check", ""),
    ];
    let mut all = String::new();
    for (arguments, input) in cases {
        let (_, err, code) = run(arguments, input);
        assert_eq!(code, 3, "{arguments}: {err}");
        all.push_str(&format!("{arguments}\n{err}"));
    }
    expect![[r#"
        validate absent.yaml
        error: cannot read absent.yaml: there is no such file or directory
        validate -
        error: <stdin>:2:1: yaml: line 1: did not find expected node content
        validate -
        error: <stdin>:1: the document is no Kubernetes object
        hint: an object is a mapping with apiVersion and kind
        validate -
        error: <stdin>:1: the object has no kind
        validate docs
        error: no manifests in docs
        hint: files whose names end in .yaml, .yml or .json are read from directories
        validate --crds examples/crontab/object.yaml examples/crontab/object.yaml
        error: no definition in examples/crontab/object.yaml
        hint: a definition is an object of kind CustomResourceDefinition
        validate --crds - examples/crontab/object.yaml
        error: <stdin>:1: the definition  cannot be read: json: cannot unmarshal number into Go struct field CustomResourceDefinition.spec of type v1.CustomResourceDefinitionSpec
        cost absent.yaml
        error: cannot read absent.yaml: there is no such file or directory
        store --data-dir absent check
        error: the store is not sound: cannot check absent/store: it holds no store
    "#]].assert_eq(&all);
    for arguments in [
        "validate",
        "no-such-command",
        "lint --explain SCT9999",
        "validate --feature-gates X=true .",
    ] {
        assert_eq!(run(arguments, "").2, 2, "{arguments}");
    }
    let unknown = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n";
    assert_eq!(run(&format!("validate {crds} -"), unknown).2, 1);
    assert_eq!(
        run(&format!("validate {crds} --ignore-missing-schemas -"), unknown).2,
        0
    );
    assert_eq!(run(&format!("validate {crds} --skip v1/Pod -"), unknown).2, 0);
}

#[test]
fn lists_and_several_documents() {
    let object = |name: &str, cron: &str| {
        format!(
            "{{apiVersion: stable.example.com/v1, kind: CronTab, metadata: {{name: {name}}}, spec: {{cronSpec: {cron}}}}}"
        )
    };
    let input = format!(
        "---\n{}\n---\n# nothing\n---\napiVersion: v1\nkind: List\nitems:\n- {}\n- {}\n",
        object("a", "\"* * * * *\""),
        object("b", "\"* * * * *\""),
        object("c", "never")
    );
    let (out, _, code) = run("validate --crds examples/crontab/definition.yaml -", &input);
    assert_eq!(code, 1);
    expect![[r#"
        <stdin>: CronTab a: accepted
        <stdin>: CronTab b: accepted
        <stdin>:10:82: error: CronTab c: spec.cronSpec: Invalid value: "never": spec.cronSpec in body should match '^(\S+\s+){4}\S+$'
           |
        10 | - {apiVersion: stable.example.com/v1, kind: CronTab, metadata: {name: c}, spec: {cronSpec: never}}
           |                                                                                  ^
    "#]].assert_eq(&out);
}
