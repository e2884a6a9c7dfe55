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
    expect![[""]].assert_eq(&all);
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
        ("crd.yaml: widgets.example.com: ok\n".to_owned(), 0)
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
    expect![[""]].assert_eq(&(out + &project.read("known.yaml")));
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
    expect![[""]].assert_eq(&all);
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
    expect![[""]].assert_eq(&all);
}

#[test]
fn mistakes_in_the_configuration_have_positions() {
    let project = Project::new(&[("crd.yaml", CRD)]);
    let mut all = String::new();
    for text in [
        "crd: [a]\n",
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
    expect![[""]].assert_eq(&all);
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
