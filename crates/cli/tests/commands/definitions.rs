//! CRDs: which are used, which are refused, and what is advised.

use crate::project::Project;
use crate::{CRDS, run};
use expect_test::expect;
use std::path::Path;

#[test]
fn differing_crds_of_one_kind_are_reported() {
    let both = "validate --crds examples/crontab/definition.yaml --crds examples/crontab/tightened.yaml examples/crontab/object.yaml";
    let (_, err, _) = run(both, "");
    assert_eq!(
        err,
        "warning: examples/crontab/tightened.yaml: the CRD crontabs.stable.example.com differs from the one in \
         examples/crontab/definition.yaml; this one is used\n"
    );
}

/// Each line of the fixture names the expected codes.
#[test]
fn all_advice_has_locations() {
    let file = "crates/cli/tests/fixtures/lint-advice/definition.yaml";
    let (out, _, _) = run(&format!("lint -o json {file}"), "");
    let report: serde_json::Value = serde_json::from_str(&out).unwrap();
    let told = report["items"][0]["advice"].as_array().unwrap();
    let mut told: Vec<(u64, &str)> = told
        .iter()
        .map(|a| (a["line"].as_u64().unwrap(), a["code"].as_str().unwrap()))
        .collect();
    told.sort_unstable();
    told.dedup();
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)).unwrap();
    let marked: Vec<(u64, &str)> = (1..)
        .zip(text.lines())
        .filter_map(|(n, line)| Some((n, line.rsplit_once("  # ")?.1)))
        .flat_map(|(n, codes)| codes.split(", ").map(move |code| (n, code)))
        .collect();
    assert_eq!(told, marked);

    let (out, _, _) = run(&format!("lint --skip SCT01,SCT0301 {file}"), "");
    assert!(out.contains("advice[SCT0302]") && !out.contains("advice[SCT01") && !out.contains("SCT0301"));
    let (_, err, code) = run(&format!("lint --skip SCT9 {file}"), "");
    assert!(
        code == 2 && err.starts_with("error: there is no code SCT9\n"),
        "{err}"
    );
}

/// The example on the page of a code shows fields of a schema for which the code is reported.
#[test]
fn examples_on_pages_are_reported() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/codes/pages");
    let mut shown = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let page = std::fs::read_to_string(&path).unwrap();
        let Some((_, example)) = page.split_once("\n## Example\n") else {
            continue;
        };
        let fields = example.lines().take_while(|line| line.starts_with("    "));
        let fields: String = fields.map(|line| format!("          {line}\n")).collect();
        let definition = format!(
            "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: things.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{plural: things, singular: thing, kind: Thing, listKind: ThingList}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
{fields}"
        );
        let (out, err, _) = run("lint -", &definition);
        let code = path.file_stem().unwrap().to_str().unwrap();
        assert!(out.contains(&format!("[{code}]")), "{code}:\n{out}{err}");
        shown += 1;
    }
    assert!(shown >= 20, "{shown} pages have an example");
}

#[test]
fn unchecked_objects_are_reported() {
    let thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n";
    let mut all = String::new();
    for (arguments, input) in [
        (format!("validate {CRDS} -"), "---\n# nothing\n---\n"),
        (format!("validate {CRDS} --ignore-missing-schemas -"), thing),
        (format!("validate {CRDS} -"), thing),
        (format!("validate {CRDS} -q -"), thing),
        (
            format!(
                "validate {CRDS} --old examples/crontab/object.yaml --old examples/crontab/changed.yaml -"
            ),
            "",
        ),
    ] {
        let (_, err, code) = run(&arguments, input);
        all.push_str(&format!("{arguments}: {code}\n{err}"));
    }
    expect![[r#"
        validate --crds examples/crontab/definition.yaml -: 0
        warning: no object was checked (0 skipped)
        validate --crds examples/crontab/definition.yaml --ignore-missing-schemas -: 0
        warning: no object was checked (1 skipped)
        validate --crds examples/crontab/definition.yaml -: 1
        hint: 1 object without a schema (1 Thing): name the CRDs with --crds, or skip such kinds with --ignore-missing-schemas or --skip
        validate --crds examples/crontab/definition.yaml -q -: 1
        validate --crds examples/crontab/definition.yaml --old examples/crontab/object.yaml --old examples/crontab/changed.yaml -: 0
        warning: examples/crontab/changed.yaml: there are several versions of CronTab jobs/backup; this one is used
        warning: no object was checked (0 skipped)
    "#]].assert_eq(&all);
}

#[test]
fn objects_of_invalid_crds_are_not_checked() {
    let directory = tempfile::tempdir().unwrap();
    let crd = directory.path().join("crd.yaml");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/crontab/definition.yaml");
    let text = std::fs::read_to_string(example).unwrap();
    std::fs::write(&crd, text.replace("type: integer", "type: intger")).unwrap();
    let crd = crd.to_str().unwrap();
    let (out, err, code) = run(
        &format!("validate --summary --crds {crd} examples/crontab/object.yaml"),
        "",
    );
    assert_eq!(code, 1, "{out}{err}");
    expect![[r#"
        examples/crontab/object.yaml:2:1: error: CronTab jobs/backup: not checked: a cluster refuses the CustomResourceDefinition crontabs.stable.example.com
          |
        2 | kind: CronTab
          | ^
        CRD:52:17: error: CustomResourceDefinition crontabs.stable.example.com: spec.validation.openAPIV3Schema.properties[spec].properties[minReplicas].default: Invalid value: "integer":  in body must be of type intger: "integer"
           |
        52 |                 default: 0
           |                 ^
        CRD:48:17: error: CustomResourceDefinition crontabs.stable.example.com: spec.validation.openAPIV3Schema.properties[spec].properties[replicas].default: Invalid value: "integer":  in body must be of type intger: "integer"
           |
        48 |                 default: 1
           |                 ^
        CRD:50:17: error: CustomResourceDefinition crontabs.stable.example.com: spec.validation.openAPIV3Schema.properties[spec].properties[minReplicas].type: Unsupported value: "intger": supported values: "array", "boolean", "integer", "number", "object", "string"
           |
        50 |                 type: intger
           |                 ^
        CRD:45:17: error: CustomResourceDefinition crontabs.stable.example.com: spec.validation.openAPIV3Schema.properties[spec].properties[replicas].type: Unsupported value: "intger": supported values: "array", "boolean", "integer", "number", "object", "string"
           |
        45 |                 type: intger
           |                 ^
        1 CRD, 2 objects: 0 accepted, 2 refused, 0 warnings, 1 not checked
    "#]].assert_eq(&format!("{out}{err}").replace(crd, "CRD"));
}

#[test]
fn other_objects_beside_crds_are_skipped_and_listed() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().to_str().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/crontab/definition.yaml");
    std::fs::copy(example, directory.path().join("crd.yaml")).unwrap();
    let other = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [crd.yaml]\n";
    std::fs::write(directory.path().join("kustomization.yaml"), other).unwrap();
    for command in [
        format!("validate --crds {name} examples/crontab/object.yaml"),
        format!("cost {name}"),
        format!("upgrade --from {name} --to {name}"),
    ] {
        let (out, err, code) = run(&command, "");
        assert_eq!((code, err.as_str()), (0, ""), "{command}: {out}");
        let (_, err, code) = run(&format!("{command} -v"), "");
        assert_eq!(code, 0);
        assert!(
            err.contains("Kustomization (no name): skipped: not a CustomResourceDefinition"),
            "{err}"
        );
    }
}

#[test]
fn near_misses_of_known_kinds_are_errors() {
    let object = |api_version: &str, kind: &str| {
        format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\n---\n")
    };
    let input = [
        object("stable.example.com/v2", "CronTab"),
        object("stable.example.com/v1", "Crontab"),
        object("stable.exmaple.com/v1", "CronTab"),
        object("stable.example.com/v1", "Backup"),
        object("other.example.com/v1", "Thing"),
    ]
    .concat();
    let (out, err, code) = run(
        &format!("validate {CRDS} --ignore-missing-schemas --summary -v -"),
        &input,
    );
    assert_eq!(code, 1);
    expect![[r#"
        <stdin>:2:1: error: CronTab a: no matches for kind "CronTab" in version "stable.example.com/v2"
          |
        2 | kind: CronTab
          | ^
          = help: did you mean kind CronTab in stable.example.com/v1?
          = the rules that ran cost 0
        <stdin>:6:1: error: Crontab a: no matches for kind "Crontab" in version "stable.example.com/v1"
          |
        6 | kind: Crontab
          | ^
          = help: did you mean kind CronTab in stable.example.com/v1?
          = the rules that ran cost 0
        <stdin>:10:1: error: CronTab a: no matches for kind "CronTab" in version "stable.exmaple.com/v1"
           |
        10 | kind: CronTab
           | ^
          = help: did you mean kind CronTab in stable.example.com/v1?
          = the rules that ran cost 0
        1 CRD, 3 objects: 0 accepted, 3 refused, 0 warnings, 2 skipped
        note: <stdin>: Backup a: skipped: no schema
        note: <stdin>: Thing a: skipped: no schema
    "#]]
    .assert_eq(&format!("{out}{err}"));
}

#[test]
fn v1beta1_crds_are_reported_as_deprecated() {
    let definition = "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: as.b.c}\nspec:\n  \
        group: b.c\n  scope: Cluster\n  preserveUnknownFields: false\n  names: {plural: as, singular: a, kind: A, listKind: AList}\n  version: v1\n  validation:\n    \
        openAPIV3Schema:\n      type: object\n      properties: {spec: {type: object, properties: {a: {type: integer}}}}\n";
    let object = "apiVersion: b.c/v1\nkind: A\nmetadata: {name: a}\nspec: {a: 1, b: 2}\n";
    let (lint, _, code) = run("lint -", definition);
    assert_eq!(code, 0);
    let (validate, _, code) = run(
        "validate --field-validation warn --show-object -",
        &format!("{definition}---\n{object}"),
    );
    assert_eq!(code, 0);
    expect![[r#"
        <stdin>: warning: as.b.c: apiextensions.k8s.io/v1beta1 CustomResourceDefinition is deprecated in v1.16+, unavailable in v1.22+; use apiextensions.k8s.io/v1 CustomResourceDefinition
        <stdin>: as.b.c: accepted
        <stdin>: warning: CustomResourceDefinition as.b.c: apiextensions.k8s.io/v1beta1 CustomResourceDefinition is deprecated in v1.16+, unavailable in v1.22+; use apiextensions.k8s.io/v1 CustomResourceDefinition
        <stdin>: CustomResourceDefinition as.b.c: accepted
        <stdin>:18:14: warning: A a: unknown field "spec.b"
           |
        18 | spec: {a: 1, b: 2}
           |              ^
        <stdin>: A a: accepted
        ---
        apiVersion: b.c/v1
        kind: A
        metadata:
          generation: 1
          name: a
        spec:
          a: 1
    "#]].assert_eq(&format!("{lint}{validate}"));
}

/// A CRD whose `spec` has one schema.
fn crd(spec: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: widgets.example.com}}\nspec:\n  \
         group: example.com\n  scope: Cluster\n  names: {{plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}}\n  \
         versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        \
         properties:\n          spec: {spec}\n"
    )
}

/// A rule that only tests for presence needs no bounds; a list without a bound whose items have a rule does.
#[test]
fn bounds_are_advised_where_they_lower_the_cost() {
    let presence = "{type: object, properties: {a: {type: string}, b: {type: string}}, x-kubernetes-validations: [{rule: \
                    '!(has(self.a) && has(self.b))', message: not both}]}";
    let (out, _, _) = run("lint --select SCT0103 -", &crd(presence));
    assert!(!out.contains("SCT0103"), "{out}");
    let list = "{type: object, properties: {list: {type: array, items: {type: object, properties: {a: {type: string, maxLength: 8}}, \
                x-kubernetes-validations: [{rule: \"self.a.startsWith('b')\", message: begins with b}]}}}}";
    let (out, _, _) = run("lint --select SCT0103 -", &crd(list));
    expect![[r#"
        <stdin>:16:45: advice[SCT0103]: widgets.example.com: v1 spec.list: no maxItems: a bound of 64 lowers the estimated cost of rules by 3145536 (31% of a rule's limit)
           |
        16 |           spec: {type: object, properties: {list: {type: array, items: {type: object, properties: {a: {type: string, maxLength: 8}}, x-kubernetes-validations: […
           |                                             ^
        <stdin>: widgets.example.com: accepted
    "#]].assert_eq(&out);
}

/// The estimator's bound is not the number of evaluations.
#[test]
fn costs_name_the_number_of_evaluations() {
    let rule = "{type: object, properties: {a: {type: integer}}, x-kubernetes-validations: [{rule: 'self.a > 0', message: positive}]}";
    let (json, _, code) = run("cost -o json -", &crd(rule));
    assert_eq!(code, 0);
    let numbers: Vec<&str> = json
        .lines()
        .filter(|l| l.contains("cardinality") || l.contains("evaluations"))
        .collect();
    let (text, _, _) = run("cost -", &crd(rule));
    expect![[r#"
              "cardinality": 1048576,
              "evaluations": 1,
        <stdin>:16:93: widgets.example.com v1 spec rule 0: costs 3 × 1 evaluation = 3: 0.0% of a rule's limit: self.a > 0
        <stdin>:13:7: widgets.example.com v1: all rules together cost 3: 0.0% of a schema's limit
    "#]].assert_eq(&format!("{}\n{text}", numbers.join("\n")));
}

/// `validate` and `lint` report the same line of a CRD's error.
#[test]
fn errors_of_crds_have_the_same_location_in_validate_and_lint() {
    let broken = crd("{type: object, properties: {a: {type: intger}}}")
        .replace("spec: {type", "spec:\n            {type");
    let place = |out: String| out.split(": error").next().unwrap().to_owned();
    let (lint, _, _) = run("lint -", &broken);
    let (validate, _, _) = run("validate -", &broken);
    assert_eq!(place(lint), "<stdin>:17:45");
    assert_eq!(place(validate), "<stdin>:17:45");
}

/// A file that names no CRD is of no interest to `lint` and `cost`, even if it is broken.
#[test]
fn broken_files_without_crds_are_skipped() {
    let definition = crd("{type: object, properties: {a: {type: integer}}}");
    let project = Project::new(&[
        ("widgets.yaml", &definition),
        (
            "broken.yaml",
            "apiVersion: v1\nkind: Service\nmetadata: {name: a\n",
        ),
    ]);
    let (lint, code) = project.run("lint . -v --summary");
    assert_eq!(code, 0);
    let (cost, code) = project.run("cost . -v --summary");
    assert_eq!(code, 0);
    let (named, code) = project.run("lint broken.yaml");
    assert_eq!(code, 3);
    project.write("broken.yaml", &definition.replace("scope: ", "scope: ["));
    let (broken, code) = project.run("cost .");
    assert_eq!(code, 3);
    expect![[r#"
        widgets.yaml: widgets.example.com: accepted
        1 CRD: 0 refused, 0 pieces of advice, 1 file skipped
        note: broken.yaml: skipped: neither valid YAML nor a CustomResourceDefinition
        1 CRD, 0 rules: 0 over the limit, 0 that do not compile
        note: broken.yaml: skipped: neither valid YAML nor a CustomResourceDefinition
        note: no CRD has rules
        broken.yaml:4:1: error: yaml: line 3: did not find expected ',' or '}'
          |
        4 | 
          | ^
        broken.yaml:7:8: error: yaml: line 6: did not find expected ',' or ']'
          |
        7 |   names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
          |        ^
    "#]]
    .assert_eq(&[lint, cost, named, broken].concat());
}
