//! Control over findings: severities, baselines, comments, and the configuration file.

use crate::project::Project;
use expect_test::expect;

/// A CRD with a list without a type and a rule without a message.
const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              names:
                type: array
                maxItems: 8
                items: {type: string, maxLength: 8}
              size:
                type: integer
                x-kubernetes-validations:
                - rule: self > 2
";
const OBJECT: &str =
    "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\nspec: {size: 3, colour: blue}\n";

#[test]
fn codes_are_selected_ignored_and_denied() {
    let project = Project::new(&[("crd.yaml", CRD)]);
    let mut all = String::new();
    for flags in [
        "",
        "--select SCT02",
        "--ignore SCT0201,SCT0104",
        "--deny SCT0201 --ignore SCT01",
        "--severity SCT02=warning,SCT01=off",
        "--severity SCT02=warning,SCT01=off --fail-on warning",
        "--select SCT0104 --fail-on advice",
        "--select SCT99",
        "--severity SCT0201=fatal",
    ] {
        let (out, code) = project.run(&format!("lint crd.yaml -o github {flags}"));
        all.push_str(&format!("{flags}: {code}\n{out}"));
    }
    expect![[r#"
        : 0
        ::notice file=crd.yaml,line=26,col=19,title=widgets.example.com::v1 spec.size: the rule `self > 2` has no message: users see the expression
        ::notice file=crd.yaml,line=19,col=15,title=widgets.example.com::v1 spec.names: the list has no x-kubernetes-list-type: server-side apply replaces it as a whole
        ::notice file=crd.yaml,line=26,col=19,title=widgets.example.com::v1 spec.size: the rule can be replaced by minimum: 2 with exclusiveMinimum, which costs nothing
        --select SCT02: 0
        ::notice file=crd.yaml,line=19,col=15,title=widgets.example.com::v1 spec.names: the list has no x-kubernetes-list-type: server-side apply replaces it as a whole
        --ignore SCT0201,SCT0104: 0
        ::notice file=crd.yaml,line=26,col=19,title=widgets.example.com::v1 spec.size: the rule can be replaced by minimum: 2 with exclusiveMinimum, which costs nothing
        --deny SCT0201 --ignore SCT01: 1
        ::error file=crd.yaml,line=19,col=15,title=widgets.example.com::v1 spec.names: the list has no x-kubernetes-list-type: server-side apply replaces it as a whole
        --severity SCT02=warning,SCT01=off: 0
        ::warning file=crd.yaml,line=19,col=15,title=widgets.example.com::v1 spec.names: the list has no x-kubernetes-list-type: server-side apply replaces it as a whole
        --severity SCT02=warning,SCT01=off --fail-on warning: 1
        ::warning file=crd.yaml,line=19,col=15,title=widgets.example.com::v1 spec.names: the list has no x-kubernetes-list-type: server-side apply replaces it as a whole
        --select SCT0104 --fail-on advice: 1
        ::notice file=crd.yaml,line=26,col=19,title=widgets.example.com::v1 spec.size: the rule `self > 2` has no message: users see the expression
        --select SCT99: 2
        error: there is no code SCT99
        hint: known codes are SCT0101, SCT0102, SCT0103, SCT0104, SCT0105, SCT0106, SCT0107, SCT0108, SCT0201, SCT0202, SCT0301, SCT0302, SCT0303, SCT0304, SCT0305, SCT0306, SCT0401, SCT0402, SCT0403, SCT0404, SCT0501, SCT0502, SCT0503, SCT0601, SCT1001, SCT1002, SCT1003, SCT1004, SCT1005, SCT1006, SCT1007, SCT1008, SCT1009, SCT1010, SCT1011, SCT1101, SCT1102, SCT1103, SCT1104, SCT1105, SCT1106, SCT1107, SCT1108, SCT1109, SCT1110, SCT1111, SCT1112, SCT1113, SCT1114, SCT1201, SCT1202, SCT1203, SCT1204, SCT1205
        --severity SCT0201=fatal: 2
        error: invalid value 'SCT0201=fatal' for '--severity <CODE=SEVERITY,…>': a severity is error, warning, advice or off

        For more information, try '--help'.
    "#]].assert_eq(&all);
}

#[test]
fn comments_silence_findings_below_them() {
    let silenced = CRD
        .replace(
            "              names:",
            "              names: # scantling: ignore SCT0201",
        )
        .replace(
            "                x-kubernetes-validations:",
            "                x-kubernetes-validations: # scantling: ignore",
        );
    let project = Project::new(&[("crd.yaml", &silenced)]);
    assert_eq!(
        project.run("lint crd.yaml"),
        ("crd.yaml: widgets.example.com: accepted\n".to_owned(), 0)
    );
}

#[test]
fn baselines_hide_known_findings() {
    let project = Project::new(&[("crd.yaml", CRD)]);
    let (_, code) = project.run("lint crd.yaml --write-baseline known.yaml");
    assert_eq!(code, 0);
    // The findings move to other lines, and one is new.
    let grown = CRD.replace(
        "              size:",
        "              ports:\n                type: array\n                maxItems: 8\n                items: {type: integer}\n              size:",
    );
    project.write("crd.yaml", &grown);
    let (out, code) = project.run("lint crd.yaml --baseline known.yaml --fail-on advice -o github");
    assert_eq!(code, 1);
    expect![[r#"
        ::notice file=crd.yaml,line=23,col=15,title=widgets.example.com::v1 spec.ports: the list has no x-kubernetes-list-type: server-side apply replaces it as a whole
        findings:
        - at: spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].x-kubernetes-validations[0].rule
          code: SCT0104
          file: crd.yaml
          name: widgets.example.com
        - at: spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size].x-kubernetes-validations[0].rule
          code: SCT0105
          file: crd.yaml
          name: widgets.example.com
        - at: spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[names]
          code: SCT0201
          file: crd.yaml
          name: widgets.example.com
        kind: Baseline
    "#]].assert_eq(&(out + &project.read("known.yaml")));
    let (out, code) = project.run("lint crd.yaml --baseline absent.yaml");
    assert_eq!(code, 3, "{out}");
}

#[test]
fn upgrade_verdicts_have_codes_and_severities() {
    let wider = CRD
        .replace("maxItems: 8", "maxItems: 4")
        .replace("type: integer\n", "type: integer\n                default: 5\n");
    let project = Project::new(&[("old.yaml", CRD), ("new.yaml", &wider)]);
    let mut all = String::new();
    for flags in ["", "--fail-on warning", "--ignore SCT11", "--deny SCT1105"] {
        let (out, code) = project.run(&format!(
            "upgrade --from old.yaml --to new.yaml -o github {flags}"
        ));
        all.push_str(&format!("{flags}: {code}\n{out}"));
    }
    expect![[r#"
        : 0
        ::warning file=new.yaml,line=21,col=17,title=widgets.example.com::v1 spec.names: maxItems changes from 8 to 4 (safe with ratcheting)
        ::warning file=new.yaml,line=25,col=17,title=widgets.example.com::v1 spec.size: default changes from nothing to 5 (safe)
        --fail-on warning: 1
        ::warning file=new.yaml,line=21,col=17,title=widgets.example.com::v1 spec.names: maxItems changes from 8 to 4 (safe with ratcheting)
        ::warning file=new.yaml,line=25,col=17,title=widgets.example.com::v1 spec.size: default changes from nothing to 5 (safe)
        --ignore SCT11: 0
        --deny SCT1105: 1
        ::error file=new.yaml,line=21,col=17,title=widgets.example.com::v1 spec.names: maxItems changes from 8 to 4 (safe with ratcheting)
        ::warning file=new.yaml,line=25,col=17,title=widgets.example.com::v1 spec.size: default changes from nothing to 5 (safe)
    "#]].assert_eq(&all);
}

/// A repository configures its checks once, also for some of its files.
#[test]
fn the_configuration_file_is_found_from_below() {
    let project = Project::new(&[
        (
            "scantling.yaml",
            "crds: [crds]\nfailOn: warning\noutput: github\nvalidate:\n  paths: [apps]\nlint:\n  severity: {SCT0104: error}\n\
             overrides:\n- paths: ['apps/test/**']\n  fieldValidation: ignore\n- paths: ['apps/old/*.yaml']\n  skip: [Widget]\n\
             - paths: ['crds/*']\n  ignore: [SCT0201]\n",
        ),
        ("crds/widgets.yaml", CRD),
        ("apps/main.yaml", OBJECT),
        ("apps/test/main.yaml", OBJECT),
        ("apps/old/main.yaml", OBJECT),
    ]);
    let mut all = String::new();
    for (directory, command) in [
        ("", "validate"),
        (
            "",
            "validate --field-validation warn --fail-on error --output text --summary",
        ),
        ("apps/test", "validate main.yaml --output text"),
        ("", "lint"),
        ("", "validate --no-config apps/test --output text"),
        ("", "explain widgets.spec.size --output text"),
    ] {
        let (out, code) = project.run_in(directory, command);
        all.push_str(&format!("{directory}$ {command}: {code}\n{out}"));
    }
    expect![[r#"
        $ validate: 1
        ::error file=apps/main.yaml,line=4,col=17,title=Widget a::Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.colour"
        $ validate --field-validation warn --fail-on error --output text --summary: 0
        apps/main.yaml:4:17: warning: Widget a: unknown field "spec.colour"
          |
        4 | spec: {size: 3, colour: blue}
          |                 ^
        apps/main.yaml: Widget a: accepted
        apps/test/main.yaml: Widget a: accepted
        1 CRD, 2 objects: 2 accepted, 0 refused, 1 warning, 1 skipped
        apps/test$ validate main.yaml --output text: 0
        main.yaml: Widget a: accepted
        $ lint: 1
        ::error file=crds/widgets.yaml,line=26,col=19,title=widgets.example.com::v1 spec.size: the rule `self > 2` has no message: users see the expression
        ::notice file=crds/widgets.yaml,line=26,col=19,title=widgets.example.com::v1 spec.size: the rule can be replaced by minimum: 2 with exclusiveMinimum, which costs nothing
        $ validate --no-config apps/test --output text: 1
        apps/test/main.yaml:2:1: error: Widget a: no matches for kind "Widget" in version "example.com/v1"
        hint: 1 object without a schema (1 Widget): name the CRDs with --crds, or skip such kinds with --ignore-missing-schemas or --skip
        $ explain widgets.spec.size --output text: 0
        KIND:     Widget
        VERSION:  example.com/v1
        FIELD:    spec.size <integer>

        CONSTRAINTS:
            integer

        RULES:
            self > 2
                cost: 2 (0.0% of the limit)
    "#]].assert_eq(&all);
}

#[test]
fn mistakes_in_the_configuration_have_positions() {
    let project = Project::new(&[("crd.yaml", CRD)]);
    let mut all = String::new();
    for text in [
        "crdz: [a]\n",
        "lint:\n  sevrity: {SCT0201: error}\n",
        "failOn: sometimes\n",
        "severity:\n  SCT0999: error\n",
        "validate:\n  showObject: perhaps\n",
        "kubernetesVersion: newest\n",
        "overrides:\n- ignore: [SCT0201]\n",
        "overrides:\n- paths: ['[']\n",
        "overrides:\n- paths: [a]\n  colour: blue\n",
        "overrides:\n- paths: [a]\n  fieldValidation: sometimes\n",
        "crds: [a\n",
        "- a\n",
        "---\n---\na: 1\n---\nb: 2\n",
    ] {
        project.write("scantling.yaml", text);
        let (out, code) = project.run("lint crd.yaml");
        assert_ne!(code, 0, "{text}{out}");
        all.push_str(&format!("{text}{out}"));
    }
    project.write("scantling.yaml", "");
    assert_eq!(project.run("lint crd.yaml -q"), (String::new(), 0));
    assert_eq!(project.run("lint crd.yaml --config absent.yaml").1, 3);
    expect![[r#"
        crdz: [a]
        error: scantling.yaml:1:1: unknown setting `crdz`
        hint: did you mean `crd`?
        lint:
          sevrity: {SCT0201: error}
        error: scantling.yaml:2:3: unknown setting `sevrity`
        hint: did you mean `severity`?
        failOn: sometimes
        error: scantling.yaml:1:1: invalid value 'sometimes'
        severity:
          SCT0999: error
        error: scantling.yaml:1:1: invalid value 'SCT0999=error': there is no code SCT0999
        validate:
          showObject: perhaps
        error: scantling.yaml:2:3: the value is not true or false
        kubernetesVersion: newest
        error: scantling.yaml:1:1: invalid value 'newest': a version is written as 1.37
        overrides:
        - ignore: [SCT0201]
        error: scantling.yaml:2:3: an override has no `paths`
        overrides:
        - paths: ['[']
        error: scantling.yaml:2:3: error parsing glob 'DIR/[': unclosed character class; missing ']'
        overrides:
        - paths: [a]
          colour: blue
        error: scantling.yaml:3:3: unknown setting `colour` of an override
        hint: an override has paths, severity, ignore, deny, skip, fieldValidation and ignoreMissingSchemas
        overrides:
        - paths: [a]
          fieldValidation: sometimes
        error: scantling.yaml:3:3: the value is not strict, warn or ignore
        crds: [a
        error: scantling.yaml:2:1: yaml: line 1: did not find expected ',' or ']'
        - a
        error: scantling.yaml:1:1: the configuration is not a mapping
        ---
        ---
        a: 1
        ---
        b: 2
        error: scantling.yaml: the configuration has more than one document
    "#]]
    .assert_eq(&all);
}

/// A setting for all commands is a value of each flag that takes such values.
#[test]
fn settings_of_the_same_name_but_another_meaning_are_not_mixed() {
    let project = Project::new(&[
        ("crd.yaml", CRD),
        ("scantling.yaml", "output: json\nkubernetesVersion: '1.36'\n"),
    ]);
    let (out, code) = project.run("compile crd.yaml");
    assert_eq!(code, 0, "{out}");
    assert!(out.starts_with("apiVersion:"), "{out}");
    let (out, code) = project.run("sample crd.yaml --kubernetes-version 1.37");
    assert_eq!(code, 0, "{out}");
}
