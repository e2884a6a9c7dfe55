//! JUnit XML: a suite for each file, a case for each object.
//!
//! Elements and attributes are those of the schema of Jenkins' xUnit plugin. Some readers accept only one
//! failure per case, so all errors of an object are in one. Times are zero, because some readers require
//! them.

use super::RenderedItem;
use crate::report::{Finding, ReportSubject, Severity};
use std::fmt::Write as _;

/// Renders the report.
pub(super) fn document(command: &str, pieces: &[RenderedItem]) -> String {
    let file = |p: &RenderedItem| p.facts.as_ref().map(|k| k.file.clone()).unwrap_or_default();
    let failed = |p: &&RenderedItem| p.facts.as_ref().is_some_and(|k| k.failed);
    let unreadable = |p: &&RenderedItem| p.facts.as_ref().is_some_and(|k| k.unreadable);
    let counts = |pieces: &[RenderedItem]| {
        let (failures, errors) = (pieces.iter().filter(failed), pieces.iter().filter(unreadable));
        let (tests, failures, errors) = (pieces.len(), failures.count(), errors.count());
        format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"")
    };
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites name=\"scantling {command}\" {}>",
        counts(pieces)
    );
    // Items of one file are consecutive, because documents are reported in order.
    for suite in pieces.chunk_by(|a, b| file(a) == file(b)) {
        let file = suite.first().map(|p| escape(&file(p))).unwrap_or_default();
        let _ = writeln!(
            out,
            "  <testsuite name=\"{file}\" file=\"{file}\" {} skipped=\"0\" time=\"0\">",
            counts(suite)
        );
        for piece in suite {
            out.push_str(&piece.text);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// Renders one case.
pub(super) fn case(subject: &ReportSubject) -> String {
    // An unreadable file has no object name.
    let name = if subject.name.is_empty() {
        &*subject.file
    } else {
        &subject.name
    };
    let mut out = format!(
        "    <testcase name=\"{}\" classname=\"scantling\" time=\"0\"",
        escape(name)
    );
    if subject.findings.is_empty() {
        out.push_str("/>\n");
        return out;
    }
    out.push_str(">\n");
    let (errors, others): (Vec<&Finding>, Vec<&Finding>) =
        subject.findings.iter().partition(|f| f.level.is_error());
    if let Some((first, more)) = errors.split_first() {
        let (code, mut text) = (escape(&first.code), escape(&first.text));
        if !more.is_empty() {
            let _ = write!(text, " (and {} more)", more.len());
        }
        let element = match first.level {
            Severity::Unreadable => "error",
            _ => "failure",
        };
        let _ = write!(out, "      <{element} type=\"{code}\" message=\"{text}\">");
        for (n, finding) in errors.iter().enumerate() {
            let line_end = if n > 0 { "\n" } else { "" };
            let place = location_text(&subject.file, finding);
            let _ = write!(out, "{line_end}{}: {}", escape(&place), escape(&finding.text));
        }
        let _ = writeln!(out, "</{element}>");
    }
    if !others.is_empty() {
        out.push_str("      <system-out>");
        for finding in others {
            let (place, level) = (location_text(&subject.file, finding), finding.level.name());
            let _ = writeln!(out, "{}: {level}: {}", escape(&place), escape(&finding.text));
        }
        out.push_str("</system-out>\n");
    }
    out.push_str("    </testcase>\n");
    out
}

fn location_text(file: &str, finding: &Finding) -> String {
    match &finding.location {
        Some(place) => format!("{file}:{}:{}", place.line, place.column),
        None => file.to_owned(),
    }
}

/// Escapes text for XML. Characters that XML does not allow are replaced.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // In attributes, parsers replace plain line breaks and tabs by spaces.
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
