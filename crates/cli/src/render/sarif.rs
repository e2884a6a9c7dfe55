//! SARIF 2.1.0, for code scanning.

use crate::problem::Problem;
use crate::report::{Finding, Level, Report, Subject};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The report as a SARIF log.
pub(super) fn render<R: Report>(report: &R) -> Result<String, Problem> {
    let subjects = report.subjects();
    let findings = || {
        subjects
            .iter()
            .flat_map(|s| s.findings.iter().map(move |f| (s, f)))
    };
    let codes: BTreeSet<&str> = findings().map(|(_, f)| f.code.as_str()).collect();
    let rules: Vec<Value> = codes.iter().map(|code| json!({"id": code})).collect();
    let results: Vec<Value> = findings().map(|(s, f)| result(s, f)).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "scantling",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            }},
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    let text = serde_json::to_string_pretty(&log);
    text.map(|t| t + "\n")
        .map_err(|e| Problem::new("cannot write the report", e))
}

fn result(subject: &Subject, finding: &Finding) -> Value {
    let level = match finding.level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Advice => "note",
    };
    let mut location = json!({"artifactLocation": {"uri": uri(&subject.file)}});
    if let (Some(place), Some(location)) = (&finding.place, location.as_object_mut()) {
        let region = json!({"startLine": place.line, "startColumn": place.column});
        location.insert("region".to_owned(), region);
    }
    json!({
        "ruleId": finding.code,
        "level": level,
        "message": {"text": format!("{}: {}", subject.name, finding.text)},
        "locations": [{"physicalLocation": location}],
    })
}

/// A path as a relative reference.
fn uri(path: &str) -> String {
    let path = path.trim_start_matches("./");
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(byte.into());
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}
