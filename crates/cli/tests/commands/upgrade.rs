//! Changes of CRDs.

use crate::run;
use expect_test::expect;

/// The changes of a CRD whose `spec.a` has one schema and then another, with further fields of the version.
fn upgraded((old, old_version): (&str, &str), (new, new_version): (&str, &str), object: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let crd = |schema: &str, version: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: \
             widgets.example.com}}\nspec:\n  group: example.com\n  scope: Cluster\n  names: {{plural: widgets, kind: \
             Widget}}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    {version}\n    schema:\n      \
             openAPIV3Schema:\n        type: object\n        properties:\n          spec:\n            {schema}\n"
        )
    };
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("old.yaml"), crd(old, old_version)).unwrap();
    std::fs::write(at("new.yaml"), crd(new, new_version)).unwrap();
    let object = format!("apiVersion: example.com/v1\nkind: Widget\nmetadata: {{name: a}}\nspec: {object}\n");
    let command = format!("upgrade --from {} --to {} -", at("old.yaml"), at("new.yaml"));
    let (out, err, _) = run(&command, &object);
    let said = format!("{out}{err}").replace(directory.path().to_str().unwrap(), "");
    let lines = said.lines().filter(|line| line.starts_with(['/', '<']));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn upgrade_verdicts_match_the_effect_on_objects() {
    let spec = |schema: &str| format!("{{type: object, properties: {{a: {schema}}}}}");
    let mut all = String::new();
    for (old, new, object) in [
        ("{type: string}", "{type: integer}", "{a: x}"),
        ("{x-kubernetes-int-or-string: true}", "{type: string}", "{a: 1}"),
        (
            "{type: array, items: {type: object, required: [k], properties: {k: {type: string}}}}",
            "{type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string}}}}",
            "{a: []}",
        ),
        (
            "{type: string}",
            "{type: string, x-kubernetes-validations: [{rule: 'self != \"b\"'}]}",
            "{a: c}",
        ),
        (
            "{type: object}",
            "{type: object, properties: {b: {type: string}}}",
            "{a: {b: c}}",
        ),
    ] {
        all.push_str(&upgraded((&spec(old), ""), (&spec(new), ""), object));
        all.push('\n');
    }
    let plain = "{type: object, properties: {a: {type: string}}}";
    let status = "{type: object, properties: {a: {type: string}}}\n          status: {type: object}";
    all.push_str(&upgraded(
        (plain, ""),
        (status, "subresources: {status: {}}"),
        "{a: b}",
    ));
    expect![[r#"
        /new.yaml:18:45: error[SCT1104]: widgets.example.com: v1 spec.a: type changes from "string" to "integer" (breaking)
        <stdin>:4:8: warning[SCT1202]: Widget a: accepted only while it stays unchanged: spec.a: Invalid value: "string": spec.a in body must be of type integer: "string"
        <stdin>: Widget a: ok while its invalid values stay unchanged

        /new.yaml:18:41: advice[SCT1104]: widgets.example.com: v1 spec.a: x-kubernetes-int-or-string changes from true to nothing (safe)
        /new.yaml:18:45: error[SCT1104]: widgets.example.com: v1 spec.a: type changes from nothing to "string" (breaking)
        <stdin>:4:8: warning[SCT1202]: Widget a: accepted only while it stays unchanged: spec.a: Invalid value: "integer": spec.a in body must be of type string: "integer"
        <stdin>: Widget a: ok while its invalid values stay unchanged

        /new.yaml:18:58: error[SCT1109]: widgets.example.com: v1 spec.a: x-kubernetes-list-type changes from nothing to "map" (breaking)
        <stdin>: Widget a: ok

        /new.yaml:18:86: warning[SCT1110]: widgets.example.com: v1 spec.a: the rule `self != "b"` is added (safe with ratcheting)
        /new.yaml: widgets.example.com: safe with ratcheting
        <stdin>: Widget a: ok

        /new.yaml:18:72: advice[SCT1102]: widgets.example.com: v1 spec.a.b: the field is added (safe)
        /new.yaml: widgets.example.com: safe
        <stdin>: Widget a: ok

        /new.yaml:9:5: advice[SCT1008]: widgets.example.com: v1: /status is served (safe)
        /new.yaml:19:11: advice[SCT1102]: widgets.example.com: v1 status: the field is added (safe)
        /new.yaml: widgets.example.com: safe
        <stdin>: Widget a: ok
    "#]].assert_eq(&all);
}
