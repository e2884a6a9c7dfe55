//! Problems that end a command, and exit codes.

use crate::locate::Location;
use crate::wrap::wrapped_message;
use anstyle::{AnsiColor, Style};
use std::borrow::Cow;
use std::fmt;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;

/// The result of a command, which decides its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ExitStatus {
    /// No findings.
    Success,
    /// There are findings.
    Findings,
    /// The command line is invalid.
    Usage,
    /// An input could not be read or loaded.
    Unreadable,
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> ExitCode {
        ExitCode::from(match status {
            ExitStatus::Success => 0,
            ExitStatus::Findings => 1,
            ExitStatus::Usage => 2,
            ExitStatus::Unreadable => 3,
        })
    }
}

impl ExitStatus {
    /// Returns the exit status of a command that has written its report. Problems outweigh findings; those that the report
    /// does not contain are printed now.
    pub(crate) fn after(found: bool, problems: &[Problem]) -> Self {
        let results = if found {
            ExitStatus::Findings
        } else {
            ExitStatus::Success
        };
        let problems = problems.iter().map(|problem| {
            // A problem with an input is an item of the report already.
            if problem.input.is_none() {
                problem.print();
            }
            problem.exit_status
        });
        problems.fold(results, Ord::max)
    }
}

/// An operation that failed: what, where, and advice.
#[derive(Debug)]
pub(crate) struct Problem {
    what: String,
    hint: Option<String>,
    exit_status: ExitStatus,
    input: Option<Box<InputProblem>>,
    /// The reason why the input may be skipped if the user did not name it.
    skip_reason: Option<&'static str>,
}

/// The input that a problem is about. Reports list such problems beside their findings.
#[derive(Debug)]
pub(crate) struct InputProblem {
    pub(crate) file: Arc<str>,
    pub(crate) location: Option<Location>,
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
            exit_status: ExitStatus::Unreadable,
            input: None,
            skip_reason: None,
        }
    }

    /// An input that cannot be read or decoded.
    pub(crate) fn in_file(file: &Arc<str>, location: Option<Location>, why: impl fmt::Display) -> Self {
        let message = why.to_string();
        let what = match &location {
            Some(at) => format!("{file}:{}:{}: {message}", at.line, at.column),
            None => format!("{file}: {message}"),
        };
        let input = InputProblem {
            file: Arc::clone(file),
            location,
            message,
        };
        Problem {
            input: Some(Box::new(input)),
            ..Problem::plain(what)
        }
    }

    /// A file that is skipped because it is not meant for a cluster.
    pub(crate) fn skipped_file(file: &Arc<str>, reason: &'static str) -> Self {
        Problem::in_file(file, None, reason).skippable(reason)
    }

    /// Marks the input as one that may be skipped if the user did not name it.
    #[must_use]
    pub(crate) fn skippable(mut self, reason: &'static str) -> Self {
        self.skip_reason = Some(reason);
        self
    }

    /// Returns why the input may be skipped if the user did not name it.
    pub(crate) fn skip_reason(&self) -> Option<&'static str> {
        self.skip_reason
    }

    /// The input that the problem is about.
    pub(crate) fn input(&self) -> Option<&InputProblem> {
        self.input.as_deref()
    }

    /// Returns the advice for the user.
    pub(crate) fn help(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// An invalid command line.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Problem {
            exit_status: ExitStatus::Usage,
            ..Problem::plain(what)
        }
    }

    /// Adds advice for the user.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Returns the exit status of a command that the problem ends.
    pub(crate) fn exit_status(&self) -> ExitStatus {
        self.exit_status
    }

    /// Prints the problem to standard error.
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

/// Prints a warning to standard error.
pub(crate) fn warn(text: &str) {
    say(AnsiColor::Yellow.on_default().bold(), "warning", text);
}

/// Prints a note to standard error.
pub(crate) fn note(text: &str) {
    say(Style::new().dimmed(), "note", text);
}

/// Prints a hint to standard error.
pub(crate) fn hint(text: &str) {
    say(AnsiColor::Cyan.on_default(), "hint", text);
}

fn say(style: Style, title: &str, text: &str) {
    let stderr = std::io::stderr();
    let size = if stderr.is_terminal() {
        terminal_size::terminal_size_of(stderr)
    } else {
        None
    };
    // Without a terminal, lines are not wrapped: other programs read them.
    let text = match size {
        Some((width, _)) => Cow::from(wrapped_message(text, title.len() + 2, width.0.into())),
        None => Cow::from(text),
    };
    anstream::eprintln!("{style}{title}{style:#}: {text}");
}
