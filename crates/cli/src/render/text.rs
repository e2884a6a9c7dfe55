//! For people: each finding with its place in the file.

use crate::args::Output;
use crate::report::{Finding, Level, Subject, shorten};
use anstyle::{AnsiColor, Style};
use std::fmt::Write as _;

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
    pub(super) fn of_standard_output() -> Self {
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

    fn of(&self, level: Level) -> Style {
        match level {
            Level::Error => self.error,
            Level::Warning => self.warning,
            Level::Advice => self.advice,
        }
    }
}

/// How much is shown.
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
    pub(super) fn of(output: &Output) -> Self {
        match (output.quiet, output.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, false) => Verbosity::Normal,
            (false, true) => Verbosity::Verbose,
        }
    }
}

/// One subject as text.
pub(super) fn render(subject: &Subject, verbosity: Verbosity, palette: &Palette) -> String {
    let mut out = String::new();
    let shown = |f: &&Finding| verbosity != Verbosity::Quiet || f.level == Level::Error;
    for finding in subject.findings.iter().filter(shown) {
        self::finding(&mut out, subject, finding, palette);
    }
    let ok = palette.ok;
    if verbosity != Verbosity::Quiet && !subject.findings.iter().any(|f| f.level == Level::Error) {
        let _ = writeln!(
            out,
            "{}: {}: {ok}{}{ok:#}",
            subject.file, subject.name, subject.outcome
        );
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

fn finding(out: &mut String, subject: &Subject, finding: &Finding, palette: &Palette) {
    let (style, level, faint) = (palette.of(finding.level), finding.level.name(), palette.faint);
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
        let _ = writeln!(out, "{faint}{margin} |{faint:#}");
        let _ = writeln!(out, "{faint}{number} |{faint:#} {line}");
        if before.chars().count() < line.chars().count() {
            let _ = writeln!(out, "{faint}{margin} |{faint:#} {before}{style}^{style:#}");
        }
    }
    for note in &finding.notes {
        self::note(out, note, palette);
    }
}

fn note(out: &mut String, note: &str, palette: &Palette) {
    let faint = palette.faint;
    let _ = writeln!(out, "{faint}  ={faint:#} {note}");
}
