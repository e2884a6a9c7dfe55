//! For people: each finding with its place in the file.

use crate::args::Output;
use crate::locate::Location;
use crate::report::{Finding, ReportSubject, Severity};
use anstyle::{AnsiColor, Style};
use std::fmt::Write as _;
use unicode_width::UnicodeWidthChar as _;

/// The colours of a text, or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Palette {
    error: Style,
    warning: Style,
    advice: Style,
    ok: Style,
    faint: Style,
}

impl Palette {
    /// Colours on a terminal, and where the user wants them: `NO_COLOR` and its relatives are heard.
    pub(super) fn for_standard_output() -> Self {
        match anstream::AutoStream::choice(&std::io::stdout()) {
            anstream::ColorChoice::Never => Palette {
                error: Style::new(),
                warning: Style::new(),
                advice: Style::new(),
                ok: Style::new(),
                faint: Style::new(),
            },
            _ => Palette {
                error: AnsiColor::Red.on_default().bold(),
                warning: AnsiColor::Yellow.on_default().bold(),
                advice: AnsiColor::Cyan.on_default().bold(),
                ok: AnsiColor::Green.on_default(),
                faint: Style::new().dimmed(),
            },
        }
    }

    fn style(&self, level: Severity) -> Style {
        match level {
            Severity::Unreadable | Severity::Error => self.error,
            Severity::Warning => self.warning,
            Severity::Advice => self.advice,
        }
    }
}

/// How much is visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verbosity {
    /// Errors alone.
    Quiet,
    /// What was found, and what became of each subject.
    Normal,
    /// And how that came about.
    Verbose,
}

impl Verbosity {
    pub(super) fn from_flags(output: &Output) -> Self {
        match (output.quiet, output.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, false) => Verbosity::Normal,
            (false, true) => Verbosity::Verbose,
        }
    }
}

/// One subject as text.
pub(super) fn render(subject: &ReportSubject, verbosity: Verbosity, palette: &Palette) -> String {
    let mut out = String::new();
    let visible = |f: &&Finding| verbosity != Verbosity::Quiet || f.level.is_error();
    for finding in subject.findings.iter().filter(visible) {
        self::finding(&mut out, subject, finding, palette);
    }
    let ok = palette.ok;
    if verbosity != Verbosity::Quiet && !subject.findings.iter().any(|f| f.level.is_error()) {
        origin(&mut out, subject, subject.place.as_ref());
        let _ = writeln!(out, ": {}: {ok}{}{ok:#}", subject.name, subject.outcome);
    }
    if verbosity == Verbosity::Verbose {
        for detail in &subject.details {
            note(&mut out, detail, palette);
        }
    }
    if let Some(body) = &subject.body {
        out.push_str(body);
    }
    out
}

fn finding(out: &mut String, subject: &ReportSubject, finding: &Finding, palette: &Palette) {
    let (style, level, faint) = (palette.style(finding.level), finding.level.name(), palette.faint);
    origin(out, subject, finding.place.as_ref());
    let code = match finding.level {
        Severity::Advice => format!("[{}]", finding.code),
        Severity::Unreadable | Severity::Error | Severity::Warning => String::new(),
    };
    // Texts of a server may have lines of their own, which belong below the first one.
    let text = finding.text.replace('\n', "\n      ");
    let _ = writeln!(out, ": {style}{level}{code}{style:#}: {}", subject.titled(&text));
    if let Some(place) = &finding.place {
        let number = place.line.to_string();
        let margin = " ".repeat(number.len());
        let (line, before) = excerpt(&place.text, place.column.saturating_sub(place.missing + 1));
        let _ = writeln!(out, "{faint}{margin} |{faint:#}");
        let _ = writeln!(out, "{faint}{number} |{faint:#} {line}");
        let _ = writeln!(out, "{faint}{margin} |{faint:#} {before}{style}^{style:#}");
    }
    for note in &finding.notes {
        self::note(out, note, palette);
    }
}

/// The file, and the place in it.
fn origin(out: &mut String, subject: &ReportSubject, place: Option<&Location>) {
    out.push_str(&subject.file);
    if let Some(place) = place {
        let _ = write!(out, ":{}:{}", place.line, place.column);
    }
}

fn note(out: &mut String, note: &str, palette: &Palette) {
    let faint = palette.faint;
    let _ = writeln!(out, "{faint}  ={faint:#} {note}");
}

/// The most characters of a line that are visible: those of generated files can be endless.
const WIDTH: usize = 160;

/// The part of a line around one of its characters, and the space before that character.
fn excerpt(line: &str, at: usize) -> (String, String) {
    // A terminal is not to obey what stands in a file.
    let tame = |c: char| {
        if c.is_control() && c != '\t' {
            '\u{fffd}'
        } else {
            c
        }
    };
    let count = line.chars().count();
    let start = if count <= WIDTH || at < WIDTH * 3 / 4 {
        0
    } else {
        at - WIDTH / 2
    };
    let mut visible = String::from(if start > 0 { "…" } else { "" });
    visible.extend(line.chars().skip(start).take(WIDTH).map(tame));
    let before = at - start.min(at) + usize::from(start > 0);
    if start + WIDTH < count {
        visible.push('…');
    }
    let space = visible.chars().take(before).map(|c| match c {
        // A caret stands right only below the same tabs.
        '\t' => "\t".to_owned(),
        c => " ".repeat(c.width().unwrap_or(0)),
    });
    let space = space.collect();
    (visible, space)
}

#[cfg(test)]
mod tests {
    use super::excerpt;

    #[test]
    fn carets_stand_below_their_character() {
        let long = format!("{}x{}", "a".repeat(300), "b".repeat(300));
        let cases = [
            ("a: b", 3, "a: b".to_owned(), "   ".to_owned()),
            ("\ta: b", 1, "\ta: b".to_owned(), "\t".to_owned()),
            ("日本: b", 4, "日本: b".to_owned(), " ".repeat(6)),
            ("e\u{301}: b", 4, "e\u{301}: b".to_owned(), " ".repeat(3)),
            ("\u{1b}[31m", 1, "\u{fffd}[31m".to_owned(), " ".to_owned()),
            (&long, 0, format!("{}…", "a".repeat(160)), String::new()),
            (
                &long,
                300,
                format!("…{}x{}…", "a".repeat(80), "b".repeat(79)),
                " ".repeat(81),
            ),
        ];
        for (line, at, visible, space) in cases {
            assert_eq!(excerpt(line, at), (visible, space), "{line}");
        }
    }
}
