//! Every form of output of every command that has forms, as files in `snapshots/`; JUnit and SARIF are held against the
//! rules of their schemas as well.
//!
//! After a change, `UPDATE_EXPECT=1 cargo test -p scantling --test forms` writes the new output.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use expect_test::expect_file;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const COMMANDS: [(&str, &str); 5] = [
    (
        "validate",
        "validate --crds examples/crontab/definition.yaml examples/crontab/invalid.yaml examples/crontab/object.yaml",
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
    assert!(output.stderr.is_empty(), "{arguments} -o {form}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_form_of_every_command() {
    for (name, arguments) in COMMANDS {
        for form in ["text", "json", "yaml", "junit", "sarif", "github"] {
            let path = format!("{}/tests/snapshots/{name}.{form}", env!("CARGO_MANIFEST_DIR"));
            expect_file![path].assert_eq(&output(arguments, form));
        }
    }
}

#[test]
fn yaml_says_what_json_says() {
    for (name, arguments) in COMMANDS {
        let limits = scantling_value::Limits::SERVER;
        let json = scantling_value::json::decode(output(arguments, "json").as_bytes(), limits).unwrap();
        let yaml = scantling_value::yaml::decode(output(arguments, "yaml").as_bytes(), limits).unwrap();
        assert_eq!(json, yaml, "{name}");
    }
}

/// What the schema of SARIF 2.1.0 allows in the objects that we write, with `!` before what it demands.
const SARIF: [(&str, &[&str]); 9] = [
    ("", &["$schema", "!version", "!runs"]),
    ("runs", &["!tool", "columnKind", "results"]),
    ("tool", &["!driver"]),
    ("driver", &["!name", "semanticVersion", "rules"]),
    ("rules", &["!id"]),
    ("results", &["ruleId", "level", "!message", "locations"]),
    ("message", &["text"]),
    ("locations", &["physicalLocation"]),
    ("physicalLocation", &["artifactLocation", "region"]),
];

#[test]
fn sarif_keeps_to_its_schema() {
    for (name, arguments) in COMMANDS {
        let log: Value = serde_json::from_str(&output(arguments, "sarif")).unwrap();
        object(name, "", &log);
        assert_eq!(log["version"], "2.1.0");
        let run = &log["runs"][0];
        assert!(["utf16CodeUnits", "unicodeCodePoints"].contains(&run["columnKind"].as_str().unwrap()));
        let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
        let rules: BTreeSet<&str> = rules.iter().map(|r| r["id"].as_str().unwrap()).collect();
        for result in run["results"].as_array().unwrap() {
            assert!(["none", "note", "warning", "error"].contains(&result["level"].as_str().unwrap()));
            assert!(rules.contains(result["ruleId"].as_str().unwrap()));
            assert!(!result["message"]["text"].as_str().unwrap().is_empty());
            let place = &result["locations"][0]["physicalLocation"];
            let uri = place["artifactLocation"]["uri"].as_str().unwrap();
            assert!(uri.bytes().all(|b| b.is_ascii_graphic()), "{uri}");
            for number in place["region"].as_object().into_iter().flat_map(|r| r.values()) {
                assert!(number.as_u64().unwrap() >= 1);
            }
        }
    }
}

fn object(command: &str, name: &str, value: &Value) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| object(command, name, item)),
        Value::Object(members) => {
            if let Some((_, allowed)) = SARIF.iter().find(|(n, _)| *n == name) {
                let known = |key: &str| allowed.iter().any(|a| a.trim_start_matches('!') == key);
                assert!(
                    members.keys().all(|key| known(key)),
                    "{command}: {name}: {members:?}"
                );
                let demanded = allowed.iter().filter_map(|a| a.strip_prefix('!'));
                for key in demanded {
                    assert!(members.contains_key(key), "{command}: {name} lacks {key}");
                }
            }
            members
                .iter()
                .for_each(|(key, value)| object(command, key, value));
        }
        _ => {}
    }
}

/// What the public schema of JUnit's reports allows: the element, where it stands, its attributes, with `!` before those
/// that it demands.
const JUNIT: [(&str, &str, &[&str]); 5] = [
    (
        "testsuites",
        "",
        &["name", "tests", "failures", "errors", "time", "disabled"],
    ),
    (
        "testsuite",
        "testsuites",
        &["!name", "!tests", "failures", "errors", "skipped", "time"],
    ),
    (
        "testcase",
        "testsuite",
        &["!name", "!classname", "file", "line", "time"],
    ),
    ("failure", "testcase", &["type", "message"]),
    ("system-out", "testcase", &[]),
];

#[test]
fn junit_keeps_to_its_schema() {
    for (name, arguments) in COMMANDS {
        let text = output(arguments, "junit");
        let mut counts: Vec<(String, usize, usize)> = Vec::new();
        for (parent, element, attributes) in elements(&text) {
            let (_, wanted, allowed) = JUNIT.iter().find(|(n, ..)| *n == element).unwrap();
            assert_eq!(*wanted, parent, "{name}: {element}");
            let known = |key: &str| allowed.iter().any(|a| a.trim_start_matches('!') == key);
            assert!(
                attributes.iter().all(|(key, _)| known(key)),
                "{name}: {element} {attributes:?}"
            );
            let value = |key: &str| attributes.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str());
            for key in allowed.iter().filter_map(|a| a.strip_prefix('!')) {
                assert!(value(key).is_some(), "{name}: {element} lacks {key}");
            }
            match element.as_str() {
                "testsuite" => counts.push((value("tests").unwrap().to_owned(), 0, 0)),
                "testcase" => counts.last_mut().unwrap().1 += 1,
                _ => {}
            }
        }
        for (said, found, _) in counts {
            assert_eq!(said, found.to_string(), "{name}");
        }
    }
    match Command::new("xmllint").arg("--version").output() {
        Ok(_) => {
            for (name, _) in COMMANDS {
                let file = format!("{}/tests/snapshots/{name}.junit", env!("CARGO_MANIFEST_DIR"));
                assert!(
                    Command::new("xmllint")
                        .args(["--noout", &file])
                        .status()
                        .unwrap()
                        .success()
                );
            }
        }
        Err(e) => println!("SKIPPED: no second reading of the XML: xmllint: {e}"),
    }
}

type Element = (String, String, Vec<(String, String)>);

/// The elements of a well-formed text, each with the one around it.
fn elements(text: &str) -> Vec<Element> {
    let mut found = Vec::new();
    let mut open: Vec<String> = Vec::new();
    let mut rest = text
        .strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>")
        .unwrap();
    while let Some((data, after)) = rest.split_once('<') {
        assert!(!data.contains('>'), "{data}");
        let (tag, after) = after.split_once('>').unwrap();
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut all = Vec::new();
        while !attributes.is_empty() {
            let (key, value) = attributes.split_once("=\"").unwrap();
            let (value, after) = value.split_once('"').unwrap();
            all.push((key.trim().to_owned(), value.to_owned()));
            attributes = after.trim_start();
        }
        found.push((open.last().cloned().unwrap_or_default(), name.to_owned(), all));
        if !closed {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty() && rest.trim().is_empty());
    found
}
