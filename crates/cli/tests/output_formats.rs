//! Every output format of every command, as files in `snapshots/`; JUnit and SARIF are also validated against their schemas,
//! and JSON against the contract that other programs rely on.
//!
//! After a change, `UPDATE_EXPECT=1 cargo test -p scantling --test output_formats` writes the new output.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]
#![expect(clippy::print_stdout, reason = "a test that is skipped says so")]

#[path = "support/time.rs"]
mod time;

use expect_test::expect_file;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use time::without_time;

const COMMANDS: [(&str, &str); 5] = [
    (
        "validate",
        "validate --crds examples/crontab/definition.yaml --field-validation warn examples/crontab/invalid.yaml examples/crontab/object.yaml",
    ),
    (
        "update",
        "validate --crds examples/crontab/definition.yaml --old examples/crontab/object.yaml examples/crontab/changed.yaml",
    ),
    (
        "lint",
        "lint examples/crontab/costly.yaml examples/crontab/definition.yaml",
    ),
    (
        "cost",
        "cost examples/crontab/costly.yaml examples/crontab/definition.yaml -f examples/crontab/object.yaml",
    ),
    (
        "upgrade",
        "upgrade --from examples/crontab/definition.yaml --to examples/crontab/tightened.yaml examples/crontab/object.yaml",
    ),
];

/// Inputs that could break a format: texts with line breaks and markup, unusual file names, empty inputs.
const UNUSUAL: [&str; 11] = [
    "validate crates/cli/tests/fixtures/unusual-texts/nothing.yaml",
    "validate crates/cli/tests/fixtures/unusual-texts",
    "validate --field-validation strict crates/cli/tests/fixtures/unusual-texts",
    "validate --old crates/cli/tests/fixtures/unusual-texts --show-object crates/cli/tests/fixtures/unusual-texts",
    "lint crates/cli/tests/fixtures/unusual-texts",
    "lint crates/cli/tests/fixtures/invalid-crd",
    "cost crates/cli/tests/fixtures/invalid-crd",
    "cost crates/cli/tests/fixtures/unusual-texts/definition.yaml -f crates/cli/tests/fixtures/unusual-texts",
    "upgrade --from crates/cli/tests/fixtures/unusual-texts/definition.yaml --to examples/crontab/definition.yaml crates/cli/tests/fixtures/unusual-texts",
    "upgrade --from examples/crontab/definition.yaml --to crates/cli/tests/fixtures/unusual-texts/definition.yaml examples/crontab",
    "upgrade --from examples/crontab/definition.yaml --to examples/crontab/tightened.yaml",
];

fn every_command() -> impl Iterator<Item = &'static str> {
    COMMANDS
        .into_iter()
        .map(|(_, arguments)| arguments)
        .chain(UNUSUAL)
}

fn output(arguments: &str, form: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_scantling"))
        .args(arguments.split_whitespace())
        .args(["--summary", "-o", form])
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .output()
        .unwrap();
    assert!(
        matches!(output.status.code(), Some(0 | 1)),
        "{arguments} -o {form}"
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("error:"), "{arguments} -o {form}: {said}");
    without_time(&String::from_utf8(output.stdout).unwrap())
}

#[test]
fn every_format_of_every_command() {
    for (name, arguments) in COMMANDS {
        for form in ["text", "json", "yaml", "junit", "sarif", "github", "markdown"] {
            let path = format!("{}/tests/snapshots/{name}.{form}", env!("CARGO_MANIFEST_DIR"));
            expect_file![path].assert_eq(&output(arguments, form));
        }
    }
}

#[test]
fn yaml_equals_json() {
    for arguments in every_command() {
        let limits = scantling_value::Limits::SERVER;
        let json = scantling_value::json::decode(output(arguments, "json").as_bytes(), limits).unwrap();
        let yaml = scantling_value::yaml::decode(output(arguments, "yaml").as_bytes(), limits).unwrap();
        assert_eq!(json.to_json(), yaml.to_json(), "{arguments}");
    }
}

/// The published schema of SARIF 2.1.0, which comes with the `serde-sarif` crate.
fn sarif_schema() -> Option<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        println!("SKIPPED: SARIF is not held against its schema: cargo metadata: {why}");
        return None;
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut packages = metadata["packages"].as_array().unwrap().iter();
    let package = packages.find(|package| package["name"] == "serde-sarif").unwrap();
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    let schema = std::fs::read(manifest.parent().unwrap().join("src/schema.json")).unwrap();
    let mut schema: Value = serde_json::from_slice(&schema).unwrap();
    // The published pattern has a bracket too many, which an erratum removed; our output has no language.
    for of in ["run", "toolComponent"] {
        let language = schema
            .pointer_mut(&format!("/definitions/{of}/properties/language"))
            .unwrap();
        language.as_object_mut().unwrap().remove("pattern").unwrap();
    }
    let title = schema["title"].as_str().unwrap();
    assert!(title.contains("(SARIF) Version 2.1.0"), "{title}");
    Some(schema)
}

#[test]
fn sarif_matches_its_schema() {
    let Some(schema) = sarif_schema() else {
        return;
    };
    let schema = jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .unwrap();
    assert!(!schema.is_valid(&serde_json::json!({"version": "2.1.0", "runs": [{}]})));
    let mut results = 0;
    for arguments in every_command() {
        let log: Value = serde_json::from_str(&output(arguments, "sarif")).unwrap();
        let errors: Vec<String> = schema
            .iter_errors(&log)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{arguments}: {errors:?}");
        // Beyond the schema: results refer to rules in the log and have a message.
        let run = &log["runs"][0];
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        let rules: BTreeSet<&str> = rules.iter().map(|r| r["id"].as_str().unwrap()).collect();
        for result in run["results"].as_array().unwrap() {
            assert!(
                rules.contains(result["ruleId"].as_str().unwrap()),
                "{arguments}: {result}"
            );
            assert!(
                !result["message"]["text"].as_str().unwrap().is_empty(),
                "{arguments}"
            );
            results += 1;
        }
    }
    assert!(results > 50, "{results}");
}

/// The elements of the schema of Jenkins' xUnit plugin (`junit-10.xsd`) that we write: their children, and
/// their attributes, with `!` before required ones.
const JUNIT: [(&str, &[&str], &[&str]); 5] = [
    (
        "testsuites",
        &["testsuite"],
        &["name", "time", "tests", "failures", "errors"],
    ),
    (
        "testsuite",
        &["testsuite", "properties", "testcase", "system-out", "system-err"],
        &[
            "!name",
            "!tests",
            "!failures",
            "!errors",
            "group",
            "time",
            "skipped",
            "timestamp",
            "hostname",
            "id",
            "package",
            "file",
            "log",
            "url",
        ],
    ),
    (
        "testcase",
        &["skipped", "error", "failure", "system-out", "system-err"],
        &["!name", "time", "classname", "group"],
    ),
    ("failure", &[], &["type", "message"]),
    ("system-out", &[], &[]),
];

#[test]
fn junit_matches_its_schema() {
    let mut cases = 0;
    for arguments in every_command() {
        let text = output(arguments, "junit");
        let document = roxmltree::Document::parse(&text).unwrap_or_else(|e| panic!("{arguments}: {e}"));
        let root = document.root_element();
        assert_eq!(root.tag_name().name(), "testsuites", "{arguments}");
        root.descendants()
            .filter(roxmltree::Node::is_element)
            .for_each(|node| element(arguments, node));
        let named = |node: roxmltree::Node<'_, '_>, name: &str| {
            node.descendants()
                .filter(|n| n.tag_name().name() == name)
                .count()
                .to_string()
        };
        let suites = root.children().filter(roxmltree::Node::is_element);
        for node in suites.chain([root]) {
            assert_eq!(
                node.attribute("tests"),
                Some(named(node, "testcase").as_str()),
                "{arguments}"
            );
            assert_eq!(
                node.attribute("failures"),
                Some(named(node, "failure").as_str()),
                "{arguments}"
            );
        }
        cases += root
            .descendants()
            .filter(|node| node.has_tag_name("testcase"))
            .count();
    }
    assert!(cases > 30, "{cases}");
}

fn element(arguments: &str, node: roxmltree::Node<'_, '_>) {
    let name = node.tag_name().name();
    let (_, children, attributes) = JUNIT.iter().find(|(n, ..)| *n == name).unwrap();
    for child in node.children() {
        if child.is_element() {
            assert!(
                children.contains(&child.tag_name().name()),
                "{arguments}: {child:?} in {name}"
            );
        } else if !children.is_empty() {
            assert_eq!(
                child.text().unwrap_or_default().trim(),
                "",
                "{arguments}: text in {name}"
            );
        }
    }
    for attribute in node.attributes() {
        let known = |a: &&str| a.trim_start_matches('!') == attribute.name();
        assert!(
            attributes.iter().any(known),
            "{arguments}: {} of {name}",
            attribute.name()
        );
    }
    for needed in attributes.iter().filter_map(|a| a.strip_prefix('!')) {
        assert!(node.has_attribute(needed), "{arguments}: {name} lacks {needed}");
    }
    // Readers that accept one failure per case must not miss the others.
    let failures = node.children().filter(|child| child.has_tag_name("failure"));
    assert!(failures.count() <= 1, "{arguments}");
}

/// A command, the kind of its report, the path of its items, and the type of each key of an item.
type ReportContract = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// The keys of each report and their types, as other programs rely on them. There may be more.
const CONTRACT: [ReportContract; 4] = [
    (
        "lint",
        "LintReport",
        "items",
        &[
            ("file", "string"),
            ("name", "string"),
            ("accepted", "boolean"),
            ("errors", "issues"),
            ("advice", "advice"),
        ],
    ),
    (
        "cost",
        "CostReport",
        "items",
        &[
            ("name", "string"),
            ("version", "string"),
            ("path", "string"),
            ("index", "number"),
            ("rule", "string"),
            ("cost", "number"),
            ("cardinality", "number"),
            ("messageExpressionCost", "number"),
            ("error", "string"),
        ],
    ),
    (
        "validate",
        "ValidationReport",
        "items",
        &[
            ("file", "string"),
            ("apiVersion", "string"),
            ("kind", "string"),
            ("namespace", "string"),
            ("name", "string"),
            ("accepted", "boolean"),
            ("errors", "issues"),
            ("warnings", "strings"),
            ("celCost", "number"),
        ],
    ),
    (
        "upgrade",
        "UpgradeReport",
        "items",
        &[
            ("file", "string"),
            ("kind", "string"),
            ("namespace", "string"),
            ("name", "string"),
            ("outcome", "string"),
            ("errors", "issues"),
            ("ratcheted", "issues"),
        ],
    ),
];

#[test]
fn json_matches_its_documented_schema() {
    for arguments in every_command() {
        let command = arguments.split(' ').next().unwrap();
        let (_, kind, items, keys) = CONTRACT.iter().find(|(c, ..)| *c == command).unwrap();
        let report: Value = serde_json::from_str(&output(arguments, "json")).unwrap();
        assert_eq!(report["kind"], *kind, "{arguments}");
        assert_eq!(
            report["definitions"].is_array(),
            command == "upgrade",
            "{arguments}"
        );
        for item in report[items].as_array().unwrap() {
            for (key, form) in *keys {
                assert!(is(&item[key], form), "{arguments}: {key}: {item}");
            }
            let shown = item.get("object").is_some();
            assert!(shown == arguments.contains("--show-object") || command != "validate" || !shown);
            if command == "upgrade" {
                let outcome = item["outcome"].as_str().unwrap();
                assert!(
                    ["ok", "ratcheted", "refused"].contains(&outcome),
                    "{arguments}: {outcome}"
                );
            }
        }
    }
}

fn is(value: &Value, form: &str) -> bool {
    let all = |keys: &[&str]| {
        let each = |v: &Value| keys.iter().all(|key| v[key].is_string());
        value.as_array().is_some_and(|list| list.iter().all(each))
    };
    match form {
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_u64(),
        "strings" => value
            .as_array()
            .is_some_and(|list| list.iter().all(Value::is_string)),
        "issues" => all(&["field", "reason", "message"]),
        _ => all(&["code", "field", "message"]),
    }
}
