//! For people: each finding with its place in the file.

use crate::args::Output;
use crate::report::{Finding, Level, Report, Subject};
use anstyle::{AnsiColor, Style};
use std::fmt::Write as _;

const FAINT: Style = Style::new().dimmed();

fn style(level: Level) -> Style {
    match level {
        Level::Error => AnsiColor::Red.on_default().bold(),
        Level::Warning => AnsiColor::Yellow.on_default().bold(),
        Level::Advice => AnsiColor::Cyan.on_default().bold(),
    }
}

/// The report as text.
pub(super) fn render<R: Report>(report: &R, output: &Output) -> String {
    let mut out = String::new();
    for subject in report.subjects() {
        self::subject(&mut out, &subject, output);
    }
    if output.summary {
        out.push_str(&report.summary());
        out.push('\n');
    }
    out
}

fn subject(out: &mut String, subject: &Subject, output: &Output) {
    let shown = |f: &&Finding| !output.quiet || f.level == Level::Error;
    for finding in subject.findings.iter().filter(shown) {
        self::finding(out, subject, finding);
    }
    let ok = AnsiColor::Green.on_default();
    if !output.quiet && !subject.findings.iter().any(|f| f.level == Level::Error) {
        let _ = writeln!(
            out,
            "{}: {}: {ok}{}{ok:#}",
            subject.file, subject.name, subject.outcome
        );
    }
    if let Some(body) = &subject.body {
        out.push_str(body);
    }
}

fn finding(out: &mut String, subject: &Subject, finding: &Finding) {
    let (style, level) = (style(finding.level), finding.level.name());
    let _ = write!(out, "{}", subject.file);
    if let Some(place) = &finding.place {
        let _ = write!(out, ":{}:{}", place.line, place.column);
    }
    let code = match finding.level {
        Level::Advice => format!("[{}]", finding.code),
        Level::Error | Level::Warning => String::new(),
    };
    // Texts of a server may have lines of their own, which belong below the first one.
    let text = finding.text.replace('\n', "\n      ");
    let _ = writeln!(out, ": {style}{level}{code}{style:#}: {}: {text}", subject.name);
    if let Some(place) = &finding.place {
        let number = place.line.to_string();
        let margin = " ".repeat(number.len());
        // A caret stands right only below the same tabs.
        let before: String = place
            .text
            .chars()
            .take(place.column.saturating_sub(1))
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let line = shorten(&place.text);
        let _ = writeln!(out, "{FAINT}{margin} |{FAINT:#}");
        let _ = writeln!(out, "{FAINT}{number} |{FAINT:#} {line}");
        if before.chars().count() < line.chars().count() {
            let _ = writeln!(out, "{FAINT}{margin} |{FAINT:#} {before}{style}^{style:#}");
        }
    }
    for note in &finding.notes {
        let _ = writeln!(out, "{FAINT}  ={FAINT:#} {note}");
    }
}

/// Lines of generated files can be endless.
fn shorten(line: &str) -> String {
    const MAX: usize = 160;
    if line.chars().count() <= MAX {
        return line.to_owned();
    }
    let mut short: String = line.chars().take(MAX).collect();
    short.push('…');
    short
}
