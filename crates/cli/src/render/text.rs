//! Human-readable text: each finding with its line.

use crate::args::Output;
use crate::locate::Location;
use crate::report::{Finding, ReportSubject, Severity, UNDEFINED};
use anstyle::{AnsiColor, Style};
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The colours of the output, and the width of the terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Palette {
    error: Style,
    warning: Style,
    advice: Style,
    ok: Style,
    faint: Style,
    /// The width of the terminal, if the output goes to one.
    width: Option<usize>,
}

impl Palette {
    /// Uses colours on a terminal, unless `NO_COLOR` or a similar variable is set.
    pub(super) fn for_standard_output() -> Self {
        let width = if std::io::stdout().is_terminal() {
            terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
        } else {
            None
        };
        match anstream::AutoStream::choice(&std::io::stdout()) {
            anstream::ColorChoice::Never => Palette {
                error: Style::new(),
                warning: Style::new(),
                advice: Style::new(),
                ok: Style::new(),
                faint: Style::new(),
                width,
            },
            _ => Palette {
                error: AnsiColor::Red.on_default().bold(),
                warning: AnsiColor::Yellow.on_default().bold(),
                advice: AnsiColor::Cyan.on_default().bold(),
                ok: AnsiColor::Green.on_default(),
                faint: Style::new().dimmed(),
                width,
            },
        }
    }

    /// The number of characters of a line that are shown after a line number: lines of generated files can be very long.
    fn excerpt_width(&self, number: usize) -> usize {
        // A bar, two spaces and two ellipses.
        self.width
            .map_or(160, |width| width.saturating_sub(number + 5).max(40))
    }

    fn style(&self, level: Severity) -> Style {
        match level {
            Severity::Unreadable | Severity::Error => self.error,
            Severity::Warning => self.warning,
            Severity::Advice => self.advice,
        }
    }
}

/// The amount of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verbosity {
    /// Errors only.
    Quiet,
    /// Findings and results.
    Normal,
    /// Details as well.
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

/// Renders one subject.
pub(super) fn render(subject: &ReportSubject, verbosity: Verbosity, palette: &Palette) -> String {
    let mut out = String::new();
    let visible = |f: &&Finding| verbosity != Verbosity::Quiet || f.level.is_error();
    for finding in subject.findings.iter().filter(visible) {
        self::finding(&mut out, subject, finding, palette);
    }
    let ok = palette.ok;
    // An error is its own outcome.
    if verbosity != Verbosity::Quiet
        && !subject.outcome.is_empty()
        && !subject.findings.iter().any(|f| f.level.is_error())
    {
        origin(&mut out, subject, subject.location.as_ref());
        let head = out.rsplit('\n').next().map_or(0, str::len) + 2;
        let text = fit(
            &format!("{}: {}", subject.name, subject.outcome),
            head,
            palette.width,
        );
        let _ = match text.strip_suffix(&subject.outcome) {
            Some(name) => writeln!(out, ": {name}{ok}{}{ok:#}", subject.outcome),
            // A long outcome has several lines.
            None => writeln!(out, ": {text}"),
        };
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
    origin(out, subject, finding.location.as_ref());
    let code = if finding.code.starts_with("SCT") {
        format!("[{}]", finding.code)
    } else {
        String::new()
    };
    let text = &finding.text;
    let head = out.rsplit('\n').next().map_or(0, str::len) + level.len() + code.len() + 4;
    let text = fit(&subject.titled(text), head, palette.width);
    let _ = writeln!(out, ": {style}{level}{code}{style:#}: {text}");
    // The line of an unknown kind only repeats the message.
    let is_evident = finding.code == UNDEFINED && finding.notes.is_empty();
    if let Some(place) = finding.location.as_ref().filter(|_| !is_evident) {
        let number = place.line.to_string();
        let margin = " ".repeat(number.len());
        // Columns count from the start of the line, and a part of a long line may be missing.
        let at = place.column.saturating_sub(place.missing + 1);
        let (line, before) = excerpt(&place.text, at, palette.excerpt_width(number.len()));
        let _ = writeln!(out, "{faint}{margin} |{faint:#}");
        let _ = writeln!(out, "{faint}{number} |{faint:#} {line}");
        let _ = writeln!(out, "{faint}{margin} |{faint:#} {before}{style}^{style:#}");
    }
    for note in &finding.notes {
        self::note(out, note, palette);
    }
}

/// Writes the file and the position in it.
fn origin(out: &mut String, subject: &ReportSubject, place: Option<&Location>) {
    out.push_str(&subject.file);
    if let Some(place) = place {
        let _ = write!(out, ":{}:{}", place.line, place.column);
    }
}

fn note(out: &mut String, note: &str, palette: &Palette) {
    let faint = palette.faint;
    let note = fit(note, NOTE_HEAD, palette.width);
    let _ = writeln!(out, "{faint}  ={faint:#} {note}");
}

/// The maximum number of lines of a text on a terminal; the rest is elided.
const MAX_LINES: usize = 6;
/// The width of the prefix of a note.
const NOTE_HEAD: usize = 4;
/// The indentation of further lines.
const INDENT: &str = "      ";

/// Wraps a text to the width of the terminal; `head` is the width of its prefix. Further lines are indented:
/// kube-apiserver's messages may have several. Without a terminal, lines are not wrapped: other programs read them.
fn fit(text: &str, head: usize, width: Option<usize>) -> String {
    // On a very narrow terminal, wrapped text would be harder to read than broken lines.
    let Some(width) = width.filter(|width| *width >= 40) else {
        return text.replace('\n', &format!("\n{INDENT}"));
    };
    let (mut out, mut used, mut lines) = (String::new(), head, 1);
    let mut after_break = false;
    let words = text
        .split_inclusive('\n')
        .flat_map(|line| line.split_inclusive(' '));
    for word in words {
        let size = word.trim_end().width();
        // The last line needs room for the ellipsis.
        let limit = width - usize::from(lines == MAX_LINES);
        if used > INDENT.len() && used + size > limit || after_break {
            out.truncate(out.trim_end().len());
            if lines == MAX_LINES {
                out.push('…');
                return out;
            }
            out.push('\n');
            out.push_str(INDENT);
            (used, lines) = (INDENT.len(), lines + 1);
        }
        after_break = word.ends_with('\n');
        let word = word.trim_end_matches('\n');
        if size > limit.saturating_sub(used) {
            // For one long value, the beginning is enough.
            out.extend(word.chars().take(limit.saturating_sub(used + 1)));
            out.push_str("… ");
            // Nothing more fits on this line.
            used = width;
        } else {
            out.push_str(word);
            used += word.width();
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// The part of a line around one of its characters, and the space before that character.
fn excerpt(line: &str, at: usize, width: usize) -> (String, String) {
    // Control characters of a file must not reach the terminal.
    let tame = |c: char| {
        if c.is_control() && c != '\t' {
            '\u{fffd}'
        } else {
            c
        }
    };
    let count = line.chars().count();
    let start = if count <= width || at < width * 3 / 4 {
        0
    } else {
        at - width / 2
    };
    let mut visible = String::from(if start > 0 { "…" } else { "" });
    visible.extend(line.chars().skip(start).take(width).map(tame));
    // The ellipsis at the beginning takes a column.
    let before = at - start.min(at) + usize::from(start > 0);
    if start + width < count {
        visible.push('…');
    }
    let space = visible.chars().take(before).map(|c| match c {
        // A caret is aligned only below the same tabs.
        '\t' => "\t".to_owned(),
        c => " ".repeat(c.width().unwrap_or(0)),
    });
    let space = space.collect();
    (visible, space)
}

#[cfg(test)]
mod tests {
    use super::{excerpt, fit};

    #[test]
    fn carets_are_below_their_character() {
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
            assert_eq!(excerpt(line, at, 160), (visible, space), "{line}");
        }
    }

    #[test]
    fn texts_fit_the_terminal() {
        let text = "one two three four five six seven eight nine ten";
        assert_eq!(fit(text, 30, None), text);
        assert_eq!(
            fit(text, 30, Some(40)),
            "one two\n      three four five six seven eight\n      nine ten"
        );
        let long = "a".repeat(100);
        assert_eq!(fit(&long, 10, Some(40)), format!("\n      {}…", "a".repeat(33)));
        let many = "word ".repeat(100);
        let fitted = fit(&many, 10, Some(40));
        assert_eq!(fitted.lines().count(), 6);
        assert!(
            fitted.ends_with('…') && fitted.lines().all(|line| line.chars().count() <= 40),
            "{fitted}"
        );
        // The lines of a message stay lines.
        assert_eq!(fit("one two\nthree", 30, Some(40)), "one two\n      three");
        assert_eq!(fit("one two\nthree", 30, None), "one two\n      three");
        assert_eq!(fit(&"line\n".repeat(9), 10, Some(40)).lines().count(), 6);
    }
}
