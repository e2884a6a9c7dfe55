//! SARIF 2.1.0, for code scanning.

use super::{RenderedItem, codes_of, unwritable};
use crate::codes;
use crate::problem::Problem;
use crate::report::{Finding, ReportSubject, Severity};
use serde_json::{Value, json};

/// The position of a run's results in the log.
const RESULTS: &str = "\"results\": []";

/// Renders the log.
pub(super) fn document(pieces: &[RenderedItem]) -> Result<String, Problem> {
    let rules: Vec<Value> = codes_of(pieces).into_iter().map(rule).collect();
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
            "results": [],
        }],
    });
    let log = serde_json::to_string_pretty(&log).map_err(|e| unwritable(&e))?;
    // Results are inserted as text: they were rendered in parallel, and are too many to parse again.
    let texts = pieces.iter().map(|p| p.text.as_str());
    let results: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
    let filled = match results.as_slice() {
        [] => log,
        results => {
            let results = format!("\"results\": [\n        {}\n      ]", results.join(",\n        "));
            // Quotes inside strings are escaped, so only the list of the run matches.
            log.replacen(RESULTS, &results, 1)
        }
    };
    Ok(filled + "\n")
}

/// A code, with its page if it has one.
fn rule(code: &str) -> Value {
    match codes::find(code).and_then(|code| code.page.split_once("\n\n")) {
        Some((title, text)) => json!({
            "id": code,
            "shortDescription": {"text": title},
            "help": {"text": text},
        }),
        None => json!({"id": code}),
    }
}

/// The results for one subject, without the brackets of the list.
pub(super) fn results(subject: &ReportSubject) -> Result<String, Problem> {
    let mut texts = Vec::with_capacity(subject.findings.len());
    for finding in &subject.findings {
        let text = serde_json::to_string_pretty(&result(subject, finding)).map_err(|e| unwritable(&e))?;
        texts.push(text.replace('\n', "\n        "));
    }
    Ok(texts.join(",\n        "))
}

fn result(subject: &ReportSubject, finding: &Finding) -> Value {
    let level = match finding.level {
        Severity::Unreadable | Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Advice => "note",
    };
    let mut location = json!({"artifactLocation": {"uri": uri(&subject.file)}});
    if let (Some(place), Some(location)) = (&finding.location, location.as_object_mut()) {
        let region = json!({"startLine": place.line, "startColumn": place.column});
        location.insert("region".to_owned(), region);
    }
    json!({
        "ruleId": finding.code,
        "level": level,
        "message": {"text": subject.titled(&finding.text)},
        "locations": [{"physicalLocation": location}],
    })
}

/// A path as a relative reference; objects of a cluster have a URL.
fn uri(path: &str) -> String {
    if path.starts_with("https://") || path.starts_with("http://") {
        return path.to_owned();
    }
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
