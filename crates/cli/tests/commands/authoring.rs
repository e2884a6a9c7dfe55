//! Commands for authors of CRDs: test, compile, explain, sample.

use crate::project::Project;
use expect_test::expect;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            description: The wanted state.
            required: [mode]
            properties:
              mode: {type: string, enum: [Fast, Slow]}
              size: {type: integer, default: 1, minimum: 0, maximum: 9}
              ports:
                type: array
                maxItems: 4
                items:
                  type: object
                  properties:
                    name: {type: string, maxLength: 8}
            x-kubernetes-validations:
            - rule: \"self.mode == 'Fast' || self.size < 5\"
              message: slow widgets are small
          status:
            type: object
            properties:
              size: {type: integer}
";
const SUITE: &str = "\
name: Widget
crds: [../crds]
cases:
- name: a widget has a size
  create:
    apiVersion: example.com/v1
    kind: Widget
    spec: {mode: Fast}
  expect:
    stored:
      apiVersion: example.com/v1
      kind: Widget
      spec: {mode: Fast, size: 2}
- name: a size has a limit # this comment stays
  create:
    apiVersion: example.com/v1
    kind: Widget
    spec: {mode: Fast, size: 10}
- name: slow widgets are small
  old: {apiVersion: example.com/v1, kind: Widget, spec: {mode: Slow}}
  scale: {replicas: 5}
  expect:
    errors: [slow widgets are small]
";

fn project() -> Project {
    Project::new(&[("crds/widgets.yaml", CRD), ("tests/widgets.test.yaml", SUITE)])
}

#[test]
fn test_reports_have_every_format() {
    let project = project();
    let mut all = String::new();
    for form in ["text", "junit", "json", "github", "markdown"] {
        let (out, code) = project.run(&format!("test tests -o {form}"));
        assert_eq!(code, 1, "{form}: {out}");
        all.push_str(&format!("$ {form}\n{out}"));
    }
    let (sarif, code) = project.run("test tests -o sarif");
    assert_eq!(code, 1);
    assert!(sarif.contains("\"startLine\": 4"), "{sarif}");
    expect![[r#"
        $ text
        tests/widgets.test.yaml:4:3: error: Widget: a widget has a size: spec.size: expected 2, got 1
          |
        4 | - name: a widget has a size
          |   ^
        tests/widgets.test.yaml:14:3: error: Widget: a size has a limit: expected no error, got: Widget.example.com "test" is invalid: spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9
           |
        14 | - name: a size has a limit # this comment stays
           |   ^
        tests/widgets.test.yaml:19:3: Widget: slow widgets are small: passed
        1 passed, 2 failed
        $ junit
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="scantling test" tests="3" failures="2" errors="0">
          <testsuite name="tests/widgets.test.yaml" file="tests/widgets.test.yaml" tests="3" failures="2" errors="0" skipped="0" time="0">
            <testcase name="Widget: a widget has a size" classname="scantling" time="0">
              <failure type="TestFailure" message="spec.size: expected 2, got 1">tests/widgets.test.yaml:4:3: spec.size: expected 2, got 1</failure>
            </testcase>
            <testcase name="Widget: a size has a limit" classname="scantling" time="0">
              <failure type="TestFailure" message="expected no error, got: Widget.example.com &quot;test&quot; is invalid: spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9">tests/widgets.test.yaml:14:3: expected no error, got: Widget.example.com &quot;test&quot; is invalid: spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9</failure>
            </testcase>
            <testcase name="Widget: slow widgets are small" classname="scantling" time="0"/>
          </testsuite>
        </testsuites>
        $ json
        {
          "kind": "TestReport",
          "items": [
            {
              "file": "tests/widgets.test.yaml",
              "suite": "Widget",
              "name": "a widget has a size",
              "passed": false,
              "olderMessage": false,
              "failures": [
                "spec.size: expected 2, got 1"
              ],
              "celCost": 3,
              "line": 4,
              "column": 3
            },
            {
              "file": "tests/widgets.test.yaml",
              "suite": "Widget",
              "name": "a size has a limit",
              "passed": false,
              "olderMessage": false,
              "failures": [
                "expected no error, got: Widget.example.com \"test\" is invalid: spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9"
              ],
              "celCost": 3,
              "line": 14,
              "column": 3
            },
            {
              "file": "tests/widgets.test.yaml",
              "suite": "Widget",
              "name": "slow widgets are small",
              "passed": true,
              "olderMessage": false,
              "failures": [],
              "celCost": 6,
              "line": 19,
              "column": 3
            }
          ],
          "summary": {
            "passed": 1,
            "failed": 2,
            "olderMessages": 0
          }
        }
        $ github
        ::error file=tests/widgets.test.yaml,line=4,col=3,title=Widget%3A a widget has a size::spec.size: expected 2, got 1
        ::error file=tests/widgets.test.yaml,line=14,col=3,title=Widget%3A a size has a limit::expected no error, got: Widget.example.com "test" is invalid: spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9
        $ markdown
        ### scantling test

        1 passed, 2 failed

        | severity | where | finding |
        | --- | --- | --- |
        | ❌ error | `tests/widgets.test.yaml:4` | **Widget: a widget has a size**: spec.size: expected 2, got 1 |
        | ❌ error | `tests/widgets.test.yaml:14` | **Widget: a size has a limit**: expected no error, got: Widget.example.com "test" is invalid: spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9 |
    "#]].assert_eq(&all);
}

#[test]
fn expectations_are_rewritten() {
    let project = project();
    let (out, code) = project.run("test tests --update");
    assert_eq!(code, 0, "{out}");
    let (again, code) = project.run("test tests");
    assert_eq!(code, 0, "{again}");
    expect![[r#"
        name: Widget
        crds: [../crds]
        cases:
        - name: a widget has a size
          create:
            apiVersion: example.com/v1
            kind: Widget
            spec: {mode: Fast}
          expect:
            stored:
              apiVersion: example.com/v1
              kind: Widget
              spec:
                mode: Fast
                size: 1
        - name: a size has a limit # this comment stays
          create:
            apiVersion: example.com/v1
            kind: Widget
            spec: {mode: Fast, size: 10}
          expect:
            errors:
            - field: spec.size
              message: 'Invalid value: 10: spec.size in body should be less than or equal to
                9'
        - name: slow widgets are small
          old: {apiVersion: example.com/v1, kind: Widget, spec: {mode: Slow}}
          scale: {replicas: 5}
          expect:
            errors: [slow widgets are small]
    "#]]
    .assert_eq(&project.read("tests/widgets.test.yaml"));
}

#[test]
fn cases_that_cannot_run_are_not_rewritten() {
    let suite = SUITE.replacen("kind: Widget", "kind: Gadget", 1);
    let project = Project::new(&[("crds/widgets.yaml", CRD), ("tests/widgets.test.yaml", &suite)]);
    let (out, code) = project.run("test tests --update");
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("2 passed, 1 failed"), "{out}");
    let (out, code) = project.run("test tests");
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("2 passed, 1 failed"), "{out}");
}

#[test]
fn coverage_lists_what_no_case_exercises() {
    let project = project();
    let (out, code) = project.run("test tests --update --coverage -q");
    assert_eq!(code, 0, "{out}");
    let (out, _) = project.run("test tests --coverage");
    expect![[r#"
        tests/widgets.test.yaml:4:3: Widget: a widget has a size: passed
        tests/widgets.test.yaml:16:3: Widget: a size has a limit: passed
        tests/widgets.test.yaml:26:3: Widget: slow widgets are small: passed
        crds/widgets.yaml: advice: Widget example.com/v1: spec: no case depends on `self.size < 5` in the rule `self.mode == 'Fast' || self.size < 5`
        crds/widgets.yaml: advice: Widget example.com/v1: spec: no case omits this required field
        crds/widgets.yaml: advice: Widget example.com/v1: spec.mode: no case omits this required field
        crds/widgets.yaml: advice: Widget example.com/v1: spec.ports: no case breaks maxItems: 4
        crds/widgets.yaml: advice: Widget example.com/v1: spec.ports[].name: no case breaks maxLength: 8
        crds/widgets.yaml: advice: Widget example.com/v1: spec.size: no case breaks minimum: 0
        3 passed, 0 failed, 6 constraints not exercised
    "#]].assert_eq(&out);
}

#[test]
fn mistakes_in_test_files_have_positions() {
    let mut all = String::new();
    for (from, to) in [
        ("  create:\n", "  creat:\n"),
        ("crds: [../crds]", "crds: [../absent]"),
        ("crds: [../crds]\n", ""),
        ("cases:\n", "case:\n"),
        ("{replicas: 5}", "5"),
        (
            "errors: [slow widgets are small]",
            "error: slow widgets are small",
        ),
        ("kind: Widget", "kind: Gadget"),
    ] {
        let project = project();
        project.write("tests/widgets.test.yaml", &SUITE.replacen(from, to, 1));
        let (out, code) = project.run("test tests -q");
        assert_ne!(code, 0, "{to}");
        all.push_str(&format!("$ {to}: {code}\n{out}"));
    }
    let project = project();
    for (command, wanted) in [("test crds", 3), ("test absent", 3), ("test", 2)] {
        let (out, code) = project.run(command);
        assert_eq!(code, wanted, "{command}: {out}");
        all.push_str(&format!("$ {command}\n{out}"));
    }
    expect![[r#"
        $   creat:
        : 3
        tests/widgets.test.yaml:5:3: error: unknown field `creat`; did you mean `create`?
          |
        5 |   creat:
          |   ^
        0 passed, 0 failed
        $ crds: [../absent]: 3
        absent: error: cannot read: no such file or directory
        0 passed, 0 failed
        $ : 1
        tests/widgets.test.yaml:3:3: error: Widget: a widget has a size: no CRD for kind "Widget" in version "example.com/v1"
          |
        3 | - name: a widget has a size
          |   ^
        tests/widgets.test.yaml:13:3: error: Widget: a size has a limit: no CRD for kind "Widget" in version "example.com/v1"
           |
        13 | - name: a size has a limit # this comment stays
           |   ^
        tests/widgets.test.yaml:18:3: error: Widget: slow widgets are small: no CRD for kind "Widget" in version "example.com/v1"
           |
        18 | - name: slow widgets are small
           |   ^
        0 passed, 3 failed
        $ case:
        : 3
        tests/widgets.test.yaml:3:1: error: unknown field `case`; did you mean `cases`?
          |
        3 | case:
          | ^
        0 passed, 0 failed
        $ 5: 3
        tests/widgets.test.yaml:21:3: error: a mapping is expected here
           |
        21 |   scale: 5
           |   ^
        0 passed, 0 failed
        $ error: slow widgets are small: 3
        tests/widgets.test.yaml:23:5: error: unknown field `error`; did you mean `errors`?
           |
        23 |     error: slow widgets are small
           |     ^
        0 passed, 0 failed
        $ kind: Gadget: 1
        tests/widgets.test.yaml:4:3: error: Widget: a widget has a size: no CRD for kind "Gadget" in version "example.com/v1"
          |
        4 | - name: a widget has a size
          |   ^
        tests/widgets.test.yaml:14:3: error: Widget: a size has a limit: expected no error, got: Widget.example.com "test" is invalid: spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9
           |
        14 | - name: a size has a limit # this comment stays
           |   ^
        1 passed, 2 failed
        $ test crds
        0 passed, 0 failed
        error: no test cases
        hint: test files end in .test.yaml, _test.yaml or .testsuite.yaml, or are named one by one
        $ test absent
        absent: error: cannot read: no such file or directory
        0 passed, 0 failed
        $ test
        error: the following required arguments were not provided:
          <FILE|DIR>...

        Usage: scantling test <FILE|DIR>...

        For more information, try '--help'.
    "#]].assert_eq(&all);
}

/// A suite runs again when its CRD changes; other suites do not.
#[test]
fn watched_suites_run_again() {
    let project = Project::new(&[
        ("crds/widgets.yaml", CRD),
        ("other/crd.yaml", CRD),
        ("tests/a.test.yaml", &SUITE.replace("size: 2", "size: 1")),
        ("tests/b.test.yaml", &SUITE.replace("../crds", "../other")),
    ]);
    let mut child = project
        .command("")
        .args(["test", "tests", "--watch", "-q"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut summary = || {
        let lines = lines.by_ref().map(Result::unwrap);
        lines
            .filter(|line| line.contains(" passed, "))
            .take(1)
            .next()
            .unwrap()
    };
    assert_eq!(summary(), "3 passed, 3 failed");
    project.write("crds/widgets.yaml", &CRD.replace("maximum: 9", "maximum: 10"));
    assert_eq!(summary(), "3 passed, 0 failed");
    project.write("tests/b.test.yaml", &SUITE.replace("size: 2", "size: 1"));
    assert_eq!(summary(), "3 passed, 0 failed");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The layout of openshift/api: suites beside generated manifests, and feature gates.
#[test]
fn suites_of_openshift_run_unchanged() {
    let manifest = |profile: &str, maximum: u32| {
        CRD.replace("maximum: 9", &format!("maximum: {maximum}")).replace(
            "metadata: {name: widgets.example.com}",
            &format!(
                "metadata:\n  name: widgets.example.com\n  annotations:\n    include.release.openshift.io/self-managed-high-availability: \
                 'true'\n    release.openshift.io/feature-set: {profile}"
            ),
        )
    };
    let gates = |set: &str, state: &str| {
        format!(
            "apiVersion: config.openshift.io/v1\nkind: FeatureGate\nmetadata:\n  annotations:\n    \
             include.release.openshift.io/self-managed-high-availability: 'false'\n    release.openshift.io/feature-set: {set}\n\
             status:\n  featureGates:\n  - {state}: [{{name: LargeWidgets}}]\n"
        )
    };
    let suite = "\
apiVersion: apiextensions.k8s.io/v1
name: Widget
crdName: widgets.example.com
featureGates: [LargeWidgets]
tests:
  onCreate:
  - name: a large widget
    initial: |
      apiVersion: example.com/v1
      kind: Widget
      spec: {mode: Fast, size: 20}
    expected: |
      apiVersion: example.com/v1
      kind: Widget
      spec: {mode: Fast, size: 20}
  - name: an older message
    initial: |
      apiVersion: example.com/v1
      kind: Widget
      spec: {mode: Slow, size: 20}
    expectedError: 'spec: Invalid value: \"object\": slow widgets are small'
  onUpdate:
  - name: an old widget
    initialCRDPatches:
    - {op: remove, path: /spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/mode/enum}
    initial: |
      apiVersion: example.com/v1
      kind: Widget
      spec: {mode: Old}
    updated: |
      apiVersion: example.com/v1
      kind: Widget
      spec: {mode: Old, ports: [{name: a}]}
    expected: |
      apiVersion: example.com/v1
      kind: Widget
      spec: {mode: Old, size: 1, ports: [{name: a}]}
  - name: another status
    initial: |
      apiVersion: example.com/v1
      kind: Widget
      spec: {mode: Fast}
    updated: |
      apiVersion: example.com/v1
      kind: Widget
      spec: {mode: Fast}
      status: {size: large}
    expectedStatusError: 'status.size: Invalid value: \"string\"'
";
    let project = Project::new(&[
        ("v1/zz_generated.crd-manifests/a.yaml", &manifest("Default", 9)),
        (
            "v1/zz_generated.crd-manifests/b.yaml",
            &manifest("TechPreviewNoUpgrade", 30),
        ),
        (
            "payload-manifests/featuregates/a.yaml",
            &gates("Default", "disabled"),
        ),
        (
            "payload-manifests/featuregates/b.yaml",
            &gates("TechPreviewNoUpgrade", "enabled"),
        ),
        ("v1/tests/widgets.example.com/Large.yaml", suite),
    ]);
    let (out, code) = project.run("test v1");
    assert_eq!(code, 0, "{out}");
    expect![[r#"
        v1/tests/widgets.example.com/Large.yaml:7:5: Widget [b.yaml]: a large widget: passed
        v1/tests/widgets.example.com/Large.yaml:16:5: Widget [b.yaml]: an older message: passed, with the message of an older release of Kubernetes
        v1/tests/widgets.example.com/Large.yaml:23:5: Widget [b.yaml]: an old widget: passed
        v1/tests/widgets.example.com/Large.yaml:38:5: Widget [b.yaml]: another status: passed
        4 passed, 0 failed (1 with messages of older releases of Kubernetes)
    "#]].assert_eq(&out);
}

/// Older suites of openshift/api are beside their API, and name a manifest instead of a CRD.
#[test]
fn older_suites_of_openshift_run_unchanged() {
    let suite = "\
apiVersion: apiextensions.k8s.io/v1
name: Widget
crd: widgets.crd.yaml
tests:
  onCreate:
  - name: a fast widget
    initial: |
      apiVersion: example.com/v1
      kind: Widget
      spec: {mode: Fast, size: 2}
";
    let project = Project::new(&[
        ("v1/zz_generated.crd-manifests/widgets.crd.yaml", CRD),
        ("v1/widgets.testsuite.yaml", suite),
        (
            "v2/widgets.testsuite.yaml",
            &suite.replace("widgets.crd", "gadgets.crd"),
        ),
    ]);
    let (found, code) = project.run("test v1");
    assert_eq!(code, 0, "{found}");
    let (absent, code) = project.run("test v2");
    assert_eq!(code, 3, "{absent}");
    expect![[r#"
        v1/widgets.testsuite.yaml:6:5: Widget [widgets.crd.yaml]: a fast widget: passed
        1 passed, 0 failed
        v2/widgets.testsuite.yaml: error: no manifest gadgets.crd.yaml beside the suite or in zz_generated.crd-manifests
        0 passed, 0 failed
    "#]].assert_eq(&[found, absent].concat());
}

#[test]
fn compiled_crds_are_written_to_a_directory() {
    let immutable = CRD
        .replace("enum: [Fast, Slow]", "enum: [Fast, Slow], x-kubernetes-immutable: true")
        .replace(
            "              ports:\n",
            "              note: {type: string, nullable: true, x-kubernetes-immutable: true}\n              ports:\n",
        );
    let project = Project::new(&[("crds/widgets.yaml", &immutable), ("plain/widgets.yaml", CRD)]);
    let (refused, code) = project.run("compile crds --output out");
    assert_eq!(code, 1);
    project.write(
        "crds/widgets.yaml",
        &immutable.replace(", nullable: true", ", maxLength: 8"),
    );
    let (compiled, code) = project.run("compile crds --output out");
    assert_eq!(code, 0);
    // The result is a plain CRD, and compiling it again changes nothing.
    let (linted, code) = project.run("lint out -q");
    assert_eq!((linted.as_str(), code), ("", 0));
    let text = project.read("out/widgets.example.com.yaml");
    assert!(!text.contains("x-kubernetes-immutable"), "{text}");
    let note = "note: widgets.example.com: 0 extensions to compile\n";
    assert_eq!(project.run("compile out"), (text + note, 0));
    let (none, code) = project.run("compile absent");
    assert_eq!(code, 3);
    expect![[r#"
        error: crds/widgets.yaml: widgets.example.com v1: spec.note: x-kubernetes-immutable cannot be compiled: rules cannot tell null from a field that is not set; remove `nullable`
        note: widgets.example.com v1: spec.mode: x-kubernetes-immutable became `self == oldSelf` (cost 3, 0.0% of the limit)
        note: widgets.example.com v1: spec.note: x-kubernetes-immutable became `has(self.note) == has(oldSelf.note) && (!has(self.note) || (self.note == oldSelf.note))` (cost 13, 0.0% of the limit)
    "#]].assert_eq(&(refused + &compiled + &none));
}

#[test]
fn fields_are_explained() {
    let project = project();
    let mut all = String::new();
    for command in [
        "widgets.spec",
        "wd.spec.ports[].name",
        "Widget.spec.ports.name -o json",
        "widgets.example.com.status",
        "widgets.spec.colour",
        "widget.spec.sise",
        "wigdets.spec",
        "widgets --api-version v2",
    ] {
        let (out, code) = project.run(&format!("explain --crds crds {command}"));
        all.push_str(&format!("$ {command}: {code}\n{out}"));
    }
    expect![[r#"
        $ widgets.spec: 0
        KIND:     Widget
        VERSION:  example.com/v1
        FIELD:    spec <object>

        DESCRIPTION:
            The wanted state.

        CONSTRAINTS:
            object, required

        RULES:
            self.mode == 'Fast' || self.size < 5
                message: slow widgets are small
                cost: 6 (0.0% of the limit)

        FIELDS:
          mode <string> -required-
            string, one of "Fast", "Slow"
          ports <[]object>
            array, maxItems 4
          size <integer>
            integer, default 1, minimum 0, maximum 9
        $ wd.spec.ports[].name: 0
        KIND:     Widget
        VERSION:  example.com/v1
        FIELD:    spec.ports[].name <string>

        CONSTRAINTS:
            string, maxLength 8
        $ Widget.spec.ports.name -o json: 0
        {
          "kind": "Widget",
          "apiVersion": "example.com/v1",
          "field": "spec.ports.name",
          "type": "string",
          "description": "",
          "facts": "string, maxLength 8",
          "rules": [],
          "fields": []
        }
        $ widgets.example.com.status: 0
        KIND:     Widget
        VERSION:  example.com/v1
        FIELD:    status <object>

        CONSTRAINTS:
            object

        FIELDS:
          size <integer>
        $ widgets.spec.colour: 3
        error: there is no field spec.colour
        $ widget.spec.sise: 3
        error: there is no field spec.sise
        hint: did you mean spec.size?
        $ wigdets.spec: 3
        error: no CRD or built-in kind is called wigdets
        hint: did you mean widgets?
        $ widgets --api-version v2: 3
        error: crds/widgets.yaml: the CRD widgets.example.com has no version v2
        hint: its versions are v1
    "#]]
    .assert_eq(&all);
}

#[test]
fn samples_are_valid() {
    let project = project();
    let mut all = String::new();
    for flags in ["", "--full"] {
        let (sample, code) = project.run(&format!("sample crds {flags}"));
        assert_eq!(code, 0, "{sample}");
        project.write("sample.yaml", &sample);
        let (out, code) = project.run("validate --crds crds sample.yaml -q");
        assert_eq!((out.as_str(), code), ("", 0));
        all.push_str(&sample);
    }
    // No object satisfies both rules.
    let impossible = CRD.replace(
        "            - rule: \"self.mode == 'Fast' || self.size < 5\"",
        "            - {rule: 'self.size > 5', message: large}\n            - rule: 'self.size < 3'",
    );
    project.write("crds/widgets.yaml", &impossible);
    let (out, code) = project.run("sample crds");
    assert_eq!(code, 3);
    expect![[r#"
        apiVersion: example.com/v1
        kind: Widget
        metadata:
          name: example
          namespace: default
        spec:
          mode: Fast
        apiVersion: example.com/v1
        kind: Widget
        metadata:
          name: example
          namespace: default
        # The wanted state.
        # (object, required)
        spec:
          # (string, required, one of "Fast", "Slow")
          mode: Fast
          # (array, maxItems 4)
          ports:
            # (string, maxLength 8)
          - name: example
          # (integer, default 1, minimum 0, maximum 9)
          size: 1
        error: crds/widgets.yaml: no valid object of the CRD widgets.example.com was found: spec: Invalid value: large
        hint: values are derived from keywords; rules are satisfied by trial, which does not always succeed
    "#]].assert_eq(&(all + &out));
}
