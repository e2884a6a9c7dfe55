//! Values that do not fit their schema, where a server looks at them nevertheless: an update may keep what is wrong as
//! long as it does not change, and rules then meet it. Errors and costs are those of Kubernetes' own modules.
#![expect(
    clippy::unwrap_used,
    reason = "functions around tests, which the lints do not take for tests"
)]

use expect_test::{Expect, expect};
use scantling_admit::{AdmitOptions, Gates, Resource, ResourceCompiler, check};
use scantling_schema::definition::{Accepted, ApiVersion, Definition};
use scantling_value::{Limits, Value, json};

fn decode(text: &str) -> Value {
    json::decode(text.as_bytes(), Limits::SERVER).unwrap()
}

fn resource(schema: &str) -> Resource {
    let document = format!(
        r#"{{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {{"name": "widgets.example.com"}}, "spec": {{"group": "example.com", "scope": "Namespaced",
        "names": {{"plural": "widgets", "kind": "Widget"}}, "versions": [{{"name": "v1", "served": true, "storage": true,
        "schema": {{"openAPIV3Schema": {schema}}}}}]}}}}"#
    );
    let decoded = Definition::decode(decode(&document), ApiVersion::V1, Gates::default()).unwrap();
    let accepted = Accepted::assume_accepted(decoded.definition);
    ResourceCompiler::default().compile(&accepted, "v1").unwrap()
}

/// Checks an update that changes `other` of an object whose stored `spec` is `old`.
fn update(schema: &str, old: Option<&str>, new: &str, expect: &Expect) {
    let schema =
        format!(r#"{{"type": "object", "properties": {{"other": {{"type": "string"}}, "spec": {schema}}}}}"#);
    judge(&schema, old, new, expect);
}

fn judge(schema: &str, old: Option<&str>, new: &str, expect: &Expect) {
    let resource = resource(schema);
    let object = |other: &str, spec: &str| {
        let text = format!(
            r#"{{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {{"name": "a", "namespace": "b"}},
            "other": "{other}", "spec": {spec}}}"#
        );
        decode(&text)
    };
    let (old, new) = (old.map(|old| object("before", old)), object("after", new));
    let checked = check(&resource, &new, old.as_ref(), &AdmitOptions::default());
    let mut lines: Vec<String> = checked.errors.iter().map(ToString::to_string).collect();
    lines.sort();
    lines.push(format!("cost {}", checked.stats.rule_cost));
    expect.assert_eq(&lines.join("\n"));
}

fn list(element: &str, list_type: &str, rule: &str) -> String {
    format!(
        r#"{{"type": "array", "items": {element}, "x-kubernetes-list-type": "{list_type}",
        "x-kubernetes-validations": [{{"rule": "{rule}"}}]}}"#
    )
}

#[test]
fn an_unreadable_element_equals_nothing() {
    let schema = list(r#"{"type": "string"}"#, "set", "self == oldSelf");
    update(
        &schema,
        Some("[null]"),
        r#"["b"]"#,
        &expect![[r#"
            spec: Invalid value: failed rule: self == oldSelf
            cost 3"#]],
    );
}

#[test]
fn an_element_is_selected_before_it_is_read() {
    let element = r#"{"type": "object", "properties": {"c": {"type": "string"}}}"#;
    for (rule, cost) in [
        ("self[0].c == 'a'", 4),
        ("has(self[0].c)", 2),
        ("self[?0].?c.orValue('') == 'a'", 3),
    ] {
        let schema = list(element, "atomic", rule);
        let resource = resource(&format!(
            r#"{{"type": "object", "properties": {{"spec": {schema}}}}}"#
        ));
        let object = decode(
            r#"{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": [1, "a"]}"#,
        );
        let checked = check(&resource, &object, Some(&object), &AdmitOptions::default());
        assert_eq!(checked.stats.rule_cost, cost, "{rule}");
    }
}

#[test]
fn an_unreadable_optional_field_costs_nothing() {
    let schema = r#"{"type": "object", "properties": {"url": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "self.?url.orValue('').size() > 0"}]}"#;
    update(
        schema,
        Some(r#"{"url": true}"#),
        r#"{"url": true}"#,
        &expect![[r#"
            spec: Invalid value: "object": invalid data, expected string, got bool evaluating rule: self.?url.orValue('').size() > 0
            cost 3"#]],
    );
}

#[test]
fn int_or_string_has_no_field_rules() {
    judge(
        r#"{"type": "object", "x-kubernetes-int-or-string": true,
            "properties": {"spec": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'a'"}]}}}"#,
        None,
        r#""a""#,
        &expect![[r#"
            <nil>: Invalid value: "object":  in body must be of type integer,string: "object"
            cost 0"#]],
    );
    // The rules of elements count as rules nevertheless.
    update(
        r#"{"type": "object", "required": ["a"], "properties": {"a": {"type": "array", "x-kubernetes-int-or-string": true,
            "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self != 'a'"}]}}}}"#,
        None,
        "{}",
        &expect![[r#"
            <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
            spec.a: Required value
            cost 0"#]],
    );
}

#[test]
fn an_invalid_time_stops_metadata_decoding() {
    let schema = r#"{"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}"#;
    let resource = |metadata: &str| format!(r#"{{"apiVersion": "v1", "kind": "K", "metadata": {metadata}}}"#);
    update(
        schema,
        None,
        &resource(r#"{"annotations": 1, "deletionTimestamp": 1}"#),
        &expect![[r#"
            spec.metadata: Invalid value: {"annotations":1,"deletionTimestamp":1}: json: cannot unmarshal number into Go struct field ObjectMeta.deletionTimestamp of type string
            cost 0"#]],
    );
    update(
        schema,
        None,
        &resource(r#"{"managedFields": [{"manager": 1}, {"time": []}], "name": 3}"#),
        &expect![[r#"
            spec.metadata: Invalid value: {"managedFields":[{"manager":1},{"time":[]}],"name":3}: json: cannot unmarshal array into Go struct field ManagedFieldsEntry.managedFields.time of type string
            cost 0"#]],
    );
    update(
        schema,
        None,
        &resource(r#"{"annotations": 1, "name": 1}"#),
        &expect![[r#"
            spec.metadata: Invalid value: {"annotations":1,"name":1}: json: cannot unmarshal number into Go struct field ObjectMeta.annotations of type map[string]string
            cost 0"#]],
    );
}
