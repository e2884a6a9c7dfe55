//! JUnit XML: a suite for each file, a case for each object.

use super::Piece;
use crate::report::{Finding, Level, Subject};
use std::fmt::Write as _;

/// The whole report.
pub(super) fn document(command: &str, pieces: &[Piece]) -> String {
    let file = |p: &Piece| p.kept.as_ref().map(|k| k.file.clone()).unwrap_or_default();
    let failed = |p: &&Piece| p.kept.as_ref().is_some_and(|k| k.failed);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let (tests, failures) = (pieces.len(), pieces.iter().filter(failed).count());
    let _ = writeln!(
        out,
        "<testsuites name=\"scantling {command}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\">"
    );
    for suite in pieces.chunk_by(|a, b| file(a) == file(b)) {
        let (tests, failures) = (suite.len(), suite.iter().filter(failed).count());
        let file = suite.first().map(|p| escape(&file(p))).unwrap_or_default();
        let _ = writeln!(
            out,
            "  <testsuite name=\"{file}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"0\">"
        );
        for piece in suite {
            out.push_str(&piece.text);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// One case.
pub(super) fn case(subject: &Subject) -> String {
    let mut out = String::new();
    let (name, file) = (escape(&subject.name), escape(&subject.file));
    let _ = write!(
        out,
        "    <testcase name=\"{name}\" classname=\"scantling\" file=\"{file}\""
    );
    if subject.findings.is_empty() {
        out.push_str("/>\n");
        return out;
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
        let place = escape(&placed(&subject.file, finding));
        let _ = writeln!(
            out,
            "      <failure type=\"{code}\" message=\"{text}\">{place}: {text}</failure>"
        );
    }
    if of(false).next().is_some() {
        out.push_str("      <system-out>");
        for finding in of(false) {
            let (level, text) = (finding.level.name(), escape(&finding.text));
            let _ = writeln!(
                out,
                "{}: {level}: {text}",
                escape(&placed(&subject.file, finding))
            );
        }
        out.push_str("</system-out>\n");
    }
    out.push_str("    </testcase>\n");
    out
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
