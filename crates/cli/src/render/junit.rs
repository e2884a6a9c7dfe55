//! JUnit XML: a suite for each file, a case for each object.

use crate::report::{Finding, Level, Report, Subject};
use std::fmt::Write as _;

/// The report as XML.
pub(super) fn render<R: Report>(report: &R) -> String {
    let subjects = report.subjects();
    let failed = |s: &&Subject| s.findings.iter().any(|f| f.level == Level::Error);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let (tests, failures) = (subjects.len(), subjects.iter().filter(failed).count());
    let command = R::COMMAND;
    let _ = writeln!(
        out,
        "<testsuites name=\"scantling {command}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\">"
    );
    for suite in subjects.chunk_by(|a, b| a.file == b.file) {
        let (tests, failures) = (suite.len(), suite.iter().filter(failed).count());
        let file = suite.first().map(|s| escape(&s.file)).unwrap_or_default();
        let _ = writeln!(
            out,
            "  <testsuite name=\"{file}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"0\">"
        );
        for subject in suite {
            case(&mut out, subject, command, &file);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn case(out: &mut String, subject: &Subject, command: &str, file: &str) {
    let name = escape(&subject.name);
    let _ = write!(
        out,
        "    <testcase name=\"{name}\" classname=\"scantling.{command}\" file=\"{file}\""
    );
    if subject.findings.is_empty() {
        out.push_str("/>\n");
        return;
    }
    out.push_str(">\n");
    let of = |errors: bool| {
        subject
            .findings
            .iter()
            .filter(move |f| (f.level == Level::Error) == errors)
    };
    for finding in of(true) {
        let (code, text) = (escape(&finding.code), escape(&finding.text));
        let place = escape(&placed(file, finding));
        let _ = writeln!(
            out,
            "      <failure type=\"{code}\" message=\"{text}\">{place}: {text}</failure>"
        );
    }
    if of(false).next().is_some() {
        out.push_str("      <system-out>");
        for finding in of(false) {
            let (level, text) = (finding.level.name(), escape(&finding.text));
            let _ = writeln!(out, "{}: {level}: {text}", escape(&placed(file, finding)));
        }
        out.push_str("</system-out>\n");
    }
    out.push_str("    </testcase>\n");
}

fn placed(file: &str, finding: &Finding) -> String {
    match &finding.place {
        Some(place) => format!("{file}:{}:{}", place.line, place.column),
        None => file.to_owned(),
    }
}

/// Text for XML. Characters that XML cannot hold are replaced.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
