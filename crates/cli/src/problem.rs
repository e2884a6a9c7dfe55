//! What keeps a command from doing its work, and how commands end.

use crate::locate::Location;
use anstyle::{AnsiColor, Style};
use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ExitStatus {
    /// All is well.
    Well,
    /// There are findings.
    Findings,
    /// The command line makes no sense.
    Usage,
    /// Something could not be read or loaded.
    Unreadable,
}

impl From<ExitStatus> for ExitCode {
    fn from(verdict: ExitStatus) -> ExitCode {
        ExitCode::from(match verdict {
            ExitStatus::Well => 0,
            ExitStatus::Findings => 1,
            ExitStatus::Usage => 2,
            ExitStatus::Unreadable => 3,
        })
    }
}

impl ExitStatus {
    /// The verdict of a command that has written its report. Problems outweigh findings; those that the report does not
    /// contain are printed now.
    pub(crate) fn after(found: bool, problems: &[Problem]) -> Self {
        let results = if found {
            ExitStatus::Findings
        } else {
            ExitStatus::Well
        };
        let problems = problems.iter().map(|problem| {
            if problem.input.is_none() {
                problem.print();
            }
            problem.verdict
        });
        problems.fold(results, Ord::max)
    }
}

/// Something that could not be read, loaded or done: what and where, and what may help.
#[derive(Debug)]
pub(crate) struct Problem {
    what: String,
    hint: Option<String>,
    verdict: ExitStatus,
    input: Option<Box<InputProblem>>,
}

/// The input that a problem is about. Reports list such problems beside their findings.
#[derive(Debug)]
pub(crate) struct InputProblem {
    pub(crate) file: Arc<str>,
    pub(crate) place: Option<Location>,
    pub(crate) message: String,
}

impl Problem {
    pub(crate) fn new(what: impl fmt::Display, why: impl fmt::Display) -> Self {
        Problem::plain(format!("{what}: {why}"))
    }

    pub(crate) fn plain(what: impl Into<String>) -> Self {
        Problem {
            what: what.into(),
            hint: None,
            verdict: ExitStatus::Unreadable,
            input: None,
        }
    }

    /// An input that cannot be read or decoded.
    pub(crate) fn in_file(file: &Arc<str>, place: Option<Location>, why: impl fmt::Display) -> Self {
        let message = why.to_string();
        let what = match &place {
            Some(place) => format!("{file}:{}:{}: {message}", place.line, place.column),
            None => format!("{file}: {message}"),
        };
        let input = InputProblem {
            file: Arc::clone(file),
            place,
            message,
        };
        Problem {
            input: Some(Box::new(input)),
            ..Problem::plain(what)
        }
    }

    /// The input that the problem is about.
    pub(crate) fn input(&self) -> Option<&InputProblem> {
        self.input.as_deref()
    }

    /// The advice for the user.
    pub(crate) fn help(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// A command line that makes no sense.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Problem {
            verdict: ExitStatus::Usage,
            ..Problem::plain(what)
        }
    }

    /// Adds what the user may do about it.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// How a command ends that this ends.
    pub(crate) fn verdict(&self) -> ExitStatus {
        self.verdict
    }

    /// Tells the user, on standard error.
    pub(crate) fn print(&self) {
        let style = AnsiColor::Red.on_default().bold();
        say(style, "error", &self.what);
        if let Some(hint) = &self.hint {
            self::hint(hint);
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl<T> From<Problem> for Result<T, Problem> {
    fn from(problem: Problem) -> Self {
        Err(problem)
    }
}

/// Tells the user of something that does not keep the command from working.
pub(crate) fn warn(text: &str) {
    say(AnsiColor::Yellow.on_default().bold(), "warning", text);
}

/// Tells the user of something that they asked to see.
pub(crate) fn note(text: &str) {
    say(Style::new().dimmed(), "note", text);
}

/// Tells the user what may help.
pub(crate) fn hint(text: &str) {
    say(AnsiColor::Cyan.on_default(), "hint", text);
}

fn say(style: Style, title: &str, text: &str) {
    anstream::eprintln!("{style}{title}{style:#}: {text}");
}
