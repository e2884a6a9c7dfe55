//! Errors of CRDs with several errors, compared with Kubernetes' own modules.
#![expect(
    clippy::unwrap_used,
    reason = "functions around tests, which the lints do not take for tests"
)]

use expect_test::{Expect, expect};
use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::definition::{ApiVersion, Definition, Gates, ValidationContext};
use scantling_schema::rules::Environments;
use scantling_value::{ErrorList, Limits, json};

/// Validates a CRD whose objects have a `spec` with that schema.
fn check(schema: &str) -> ErrorList {
    let document = format!(
        r#"{{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {{"name": "widgets.example.com"}}, "spec": {{"group": "example.com", "scope": "Namespaced",
        "names": {{"plural": "widgets", "kind": "Widget"}}, "versions": [{{"name": "v1", "served": true, "storage": true,
        "schema": {{"openAPIV3Schema": {{"type": "object", "properties": {{"spec": {schema}}}}}}}}}]}}}}"#
    );
    let document = json::decode(document.as_bytes(), Limits::default()).unwrap();
    let received = Definition::decode(document, ApiVersion::V1, Gates::default()).unwrap();
    let mut definition = received.definition;
    definition.prepare_create(Gates::default());
    let environments = Environments::for_version(KubernetesVersion::LATEST);
    definition.validate(&ValidationContext {
        api: ApiVersion::V1,
        gates: Gates::default(),
        environments: &environments,
    })
}

fn assert_lines(lines: impl Iterator<Item = String>, expect: &Expect) {
    let below_spec = "spec.validation.openAPIV3Schema.properties[spec]";
    let mut lines: Vec<String> = lines
        .map(|l| l.trim_start_matches(below_spec).to_owned())
        .collect();
    lines.sort();
    expect.assert_eq(&lines.join("\n"));
}

/// Compares the fields of the errors.
fn fields(schema: &str, expect: &Expect) {
    assert_lines(check(schema).iter().map(|e| e.field().to_owned()), expect);
}

/// Compares the errors in full.
fn texts(schema: &str, expect: &Expect) {
    assert_lines(check(schema).iter().map(ToString::to_string), expect);
}

#[test]
fn element_rules_are_checked_despite_list_errors() {
    let rules = |rule: &str| format!(r#""x-kubernetes-validations": [{{"rule": "{rule}"}}]"#);
    let keyed = r#""type": "array", "maxItems": 3, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]"#;
    fields(
        &format!(
            r#"{{{keyed}, "items": {{"type": "boolean", {}}}, {}}}"#,
            rules("self.a"),
            rules("self.zz")
        ),
        &expect![[r#"
            .items.type
            .items.x-kubernetes-validations[0].rule"#]],
    );
    fields(
        &format!(
            r#"{{{keyed}, "x-kubernetes-int-or-string": true, "items": {{"type": "boolean", {}}}, {}}}"#,
            rules("self"),
            rules("true")
        ),
        &expect![[r#"
            .items.type
            .items.x-kubernetes-validations"#]],
    );
}

#[test]
fn string_formats_do_not_apply_to_numbers() {
    texts(
        r#"{"type": "integer", "format": "url", "default": -1e19}"#,
        &expect![[r#"
            .default: Invalid value: "": Checked value must be of type integer (default format) in 
            .default: Invalid value: "float64":  in body must be of type url: "float64""#]],
    );
}
