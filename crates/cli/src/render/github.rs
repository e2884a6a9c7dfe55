//! Annotations of GitHub Actions.

use crate::report::{ReportSubject, Severity};
use std::fmt::Write as _;

/// Renders findings as workflow commands, one per line.
pub(super) fn render(subject: &ReportSubject) -> String {
    let mut out = String::new();
    for finding in &subject.findings {
        let command = match finding.level {
            Severity::Unreadable | Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Advice => "notice",
        };
        let _ = write!(out, "::{command} file={}", property(&subject.file));
        if let Some(place) = &finding.location {
            let _ = write!(out, ",line={},col={}", place.line, place.column);
        }
        if !subject.name.is_empty() {
            let _ = write!(out, ",title={}", property(&subject.name));
        }
        let _ = writeln!(out, "::{}", data(&finding.text));
    }
    out
}

fn data(text: &str) -> String {
    // The percent sign first, because the other escapes contain it.
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    // In properties, commas and colons are syntax.
    data(text).replace(':', "%3A").replace(',', "%2C")
}
