//! Costs of rules.

use crate::run;
use expect_test::expect;

#[test]
fn costs_are_compared_with_earlier_crds() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let crd = |rules: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: widgets.example.com}}\nspec:\n  \
             group: example.com\n  scope: Cluster\n  names: {{plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}}\n  \
             versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        \
             properties:\n          list:\n            type: array\n            maxItems: 10\n            items: {{type: integer}}\n            \
             x-kubernetes-validations: {rules}\n"
        )
    };
    std::fs::write(
        at("old.yaml"),
        crd("[{rule: 'self.all(x, x > 0)', message: positive}]"),
    )
    .unwrap();
    let new =
        "[{rule: 'self.all(x, x > 0)', message: positive}, {rule: 'self.size() > 0', message: not empty}]";
    std::fs::write(at("new.yaml"), crd(new).replace("maxItems: 10", "maxItems: 100")).unwrap();
    let path = directory.path().display().to_string();
    let (text, err, code) = run(&format!("cost --from {path}/old.yaml {path}/new.yaml"), "");
    assert_eq!((err.as_str(), code), ("", 0));
    let (markdown, _, _) = run(
        &format!("cost --from {path}/old.yaml {path}/new.yaml -o markdown"),
        "",
    );
    let (budget, _, code) = run(&format!("cost --budget 0.001% {path}/new.yaml"), "");
    assert_eq!(code, 1);
    expect![[r#"
        DIR/new.yaml:20:40: widgets.example.com v1 list rule 0: costs 502 × 1 evaluation = 502: 0.0% of a rule's limit (was 52): self.all(x, x > 0)
        DIR/new.yaml:20:89: widgets.example.com v1 list rule 1: costs 3 × 1 evaluation = 3: 0.0% of a rule's limit (new): self.size() > 0
        DIR/new.yaml:13:7: widgets.example.com v1: all rules together cost 505: 0.0% of a schema's limit (was 52)
        ### scantling cost

        | share of limit | cost | change | rule |
        | --- | ---: | ---: | --- |
        | `░░░░░░░░░░` 0.0% | 502 | +865% | **widgets.example.com v1 list** `self.all(x, x > 0)` |
        | `░░░░░░░░░░` 0.0% | 3 | new | **widgets.example.com v1 list** `self.size() > 0` |
        DIR/new.yaml:20:40: error: widgets.example.com v1 list rule 0: over the budget of 0%: costs 502 × 1 evaluation = 502: 0.0% of a rule's limit: self.all(x, x > 0)
           |
        20 |             x-kubernetes-validations: [{rule: 'self.all(x, x > 0)', message: positive}, {rule: 'self.size() > 0', message: not empty}]
           |                                        ^
        DIR/new.yaml:20:89: widgets.example.com v1 list rule 1: costs 3 × 1 evaluation = 3: 0.0% of a rule's limit: self.size() > 0
        DIR/new.yaml:13:7: widgets.example.com v1: all rules together cost 505: 0.0% of a schema's limit
    "#]].assert_eq(&[text, markdown, budget].concat().replace(&path, "DIR"));
}
