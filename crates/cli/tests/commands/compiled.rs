//! `compile` against Kubernetes' own packages: `fixtures/compiled/verdicts.jsonl` has schemas with extensions, the same
//! schemas as compiled, and random creates and updates with the verdict of Kubernetes 1.37 on the compiled schema.

use crate::project::Project;
use scantling_value::{Limits, yaml};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const VERDICTS: &str = include_str!("../fixtures/compiled/verdicts.jsonl");
const GATES: &str =
    "CustomResourceImmutability=true,CustomResourceUnions=true,CustomResourceRulesOnCreate=true";

fn definition(number: usize, spec: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things{number}.example.com")},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {
                "plural": format!("things{number}"),
                "singular": format!("thing{number}"),
                "kind": format!("Thing{number}"),
                "listKind": format!("Thing{number}List"),
            },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
            }],
        },
    })
}

fn lines(objects: &[Value]) -> String {
    objects.iter().map(|object| format!("{object}\n")).collect()
}

/// The verdicts of a run by the names of objects, and whether each is as recorded.
fn differences(project: &Project, arguments: &str, wanted: &BTreeMap<String, bool>) -> Vec<String> {
    let (out, _) = project.run(&format!("validate {arguments} --old old.json new.json -o json"));
    let report: Value = serde_json::from_str(&out).unwrap();
    let items = report.get("items").and_then(Value::as_array).unwrap();
    assert_eq!(items.len(), wanted.len());
    let differs = |item: &&Value| {
        let name = item.get("name").and_then(Value::as_str).unwrap();
        let accepted = item.get("accepted").and_then(Value::as_bool);
        wanted.get(name) != accepted.as_ref()
    };
    items.iter().filter(differs).map(Value::to_string).collect()
}

#[test]
fn compiled_rules_decide_as_kubernetes_does() {
    let (mut extended, mut compiled, mut old, mut new) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut wanted = BTreeMap::new();
    for (n, line) in VERDICTS.lines().enumerate() {
        let record: Value = serde_json::from_str(line).unwrap();
        extended.push(definition(n, &record["schema"]));
        compiled.push(record["compiled"].clone());
        for (c, case) in record["cases"].as_array().unwrap().iter().enumerate() {
            let name = format!("case-{n}-{c}");
            let object = |spec: &Value| {
                json!({
                    "apiVersion": "example.com/v1",
                    "kind": format!("Thing{n}"),
                    "metadata": {"name": name, "namespace": "default"},
                    "spec": spec,
                })
            };
            old.extend(case.get("old").map(object));
            new.push(object(&case["new"]));
            wanted.insert(name.clone(), case["accepted"].as_bool().unwrap());
        }
    }
    let project = Project::new(&[
        ("extended.json", &lines(&extended)),
        ("old.json", &lines(&old)),
        ("new.json", &lines(&new)),
    ]);
    let (out, code) = project.run("compile extended.json --output compiled");
    assert_eq!(code, 0, "{out}");
    for (n, compiled) in compiled.iter().enumerate() {
        let text = project.read(&format!("compiled/things{n}.example.com.yaml"));
        let crd = yaml::decode(text.as_bytes(), Limits::SAFE).unwrap().to_json();
        let crd: Value = serde_json::from_str(&crd).unwrap();
        let schema = crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec");
        assert_eq!(schema, Some(compiled), "the verdicts must be recorded again");
    }
    let with_extensions = format!("--crds extended.json --feature-gates {GATES}");
    assert_eq!(differences(&project, &with_extensions, &wanted), [""; 0]);
    assert_eq!(differences(&project, "--crds compiled", &wanted), [""; 0]);
}
