//! What commands report, in the form that all renderers understand.

use crate::locate::Location;
use crate::problem::{InputProblem, Problem};
use scantling_value::FieldError;
use serde::Serialize;
use std::sync::Arc;

/// Something that is wrong with a field, as the causes of a `Status` say it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Issue {
    /// The field.
    pub(crate) field: String,
    /// The machine-readable reason.
    pub(crate) reason: String,
    /// The text.
    pub(crate) message: String,
    /// Where it stands.
    #[serde(flatten)]
    pub(crate) place: Option<Location>,
    /// The value that it is about, where the text does not tell.
    #[serde(skip)]
    pub(crate) value: Option<String>,
    /// The value before the update.
    #[serde(skip)]
    pub(crate) old: Option<String>,
    /// Where else in the file.
    #[serde(skip)]
    pub(crate) also: Vec<Location>,
    /// What the user may do about it.
    #[serde(skip)]
    pub(crate) help: Option<String>,
}

impl Issue {
    /// What a server says of a field, and where that stands.
    pub(crate) fn new(error: &FieldError, place: Option<Location>) -> Self {
        Issue {
            field: error.field().to_owned(),
            reason: error.reason().to_owned(),
            message: error.message(),
            place,
            value: None,
            old: None,
            also: Vec::new(),
            help: None,
        }
    }

    /// What is said of an object as a whole.
    pub(crate) fn plain(reason: &str, message: impl Into<String>) -> Self {
        Issue {
            field: String::new(),
            reason: reason.to_owned(),
            message: message.into(),
            place: None,
            value: None,
            old: None,
            also: Vec::new(),
            help: None,
        }
    }

    /// What a client says of a kind that nobody defines.
    pub(crate) fn undefined(kind: &str, api_version: &str) -> Self {
        let message = format!("no matches for kind \"{kind}\" in version \"{api_version}\"");
        Issue::plain(UNDEFINED, message)
    }

    /// Field and message, as a server prints them.
    pub(crate) fn field_and_message(&self) -> String {
        if self.field.is_empty() {
            self.message.clone()
        } else {
            format!("{}: {}", self.field, self.message)
        }
    }
}

/// The reason of what is said of a kind that nobody defines.
pub(crate) const UNDEFINED: &str = "NotFound";

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The input cannot be read or decoded.
    Unreadable,
    /// A server refuses it.
    Error,
    /// A server warns of it.
    Warning,
    /// We would do it differently.
    Advice,
}

impl Severity {
    pub(crate) fn is_error(self) -> bool {
        matches!(self, Severity::Unreadable | Severity::Error)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Severity::Unreadable | Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Advice => "advice",
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) level: Severity,
    /// The reason or code.
    pub(crate) code: String,
    /// The text, with the field.
    pub(crate) text: String,
    pub(crate) place: Option<Location>,
    /// Further lines: `old: 3`.
    pub(crate) notes: Vec<String>,
}

impl Finding {
    /// An error.
    pub(crate) fn error(issue: &Issue) -> Self {
        Finding {
            level: Severity::Error,
            code: issue.reason.clone(),
            text: issue.field_and_message(),
            place: issue.place.clone(),
            notes: notes(issue),
        }
    }

    /// A server's warning.
    pub(crate) fn warning(text: &str, place: Option<&Location>) -> Self {
        Finding {
            level: Severity::Warning,
            code: "Warning".to_owned(),
            text: text.to_owned(),
            place: place.cloned(),
            notes: Vec::new(),
        }
    }
}

/// What was looked at, and what was found.
#[derive(Clone, Debug)]
pub(crate) struct ReportSubject {
    /// The file.
    pub(crate) file: Arc<str>,
    /// Where in it, as far as that is known.
    pub(crate) place: Option<Location>,
    /// What it is: `CronTab default/a`.
    pub(crate) name: String,
    pub(crate) findings: Vec<Finding>,
    /// What to say where nothing was found: `ok`, `skipped: no definition`.
    pub(crate) outcome: String,
    /// How that came about.
    pub(crate) details: Vec<String>,
    /// Text that belongs to the result itself, shown whatever was found.
    pub(crate) body: Option<String>,
}

impl ReportSubject {
    /// A text about the subject, after its name.
    pub(crate) fn titled(&self, text: &str) -> String {
        if self.name.is_empty() {
            text.to_owned()
        } else {
            format!("{}: {text}", self.name)
        }
    }
}

/// One thing that a command reports about. Its serialised form is that of the JSON contract.
pub(crate) trait ReportItem: Serialize {
    /// The same in the form that all renderers understand.
    fn subject(&self) -> ReportSubject;
}

/// An input that cannot be read or decoded, as an item of a report.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UnreadableInput {
    file: Arc<str>,
    api_version: &'static str,
    kind: &'static str,
    namespace: &'static str,
    name: &'static str,
    accepted: bool,
    errors: [Issue; 1],
    warnings: [String; 0],
    #[serde(skip)]
    help: Option<String>,
}

impl UnreadableInput {
    /// The item for a problem that is about an input.
    pub(crate) fn new(problem: &Problem) -> Option<Self> {
        let InputProblem { file, place, message } = problem.input()?;
        let mut issue = Issue::plain("BadRequest", message);
        issue.place.clone_from(place);
        Some(UnreadableInput {
            file: Arc::clone(file),
            api_version: "",
            kind: "",
            namespace: "",
            name: "",
            accepted: false,
            errors: [issue],
            warnings: [],
            help: problem.help().map(str::to_owned),
        })
    }
}

impl ReportItem for UnreadableInput {
    fn subject(&self) -> ReportSubject {
        let [issue] = &self.errors;
        let notes = self.help.iter().map(|help| format!("help: {help}"));
        let finding = Finding {
            level: Severity::Unreadable,
            notes: notes.collect(),
            ..Finding::error(issue)
        };
        ReportSubject {
            file: Arc::clone(&self.file),
            place: None,
            name: String::new(),
            findings: vec![finding],
            outcome: String::new(),
            details: Vec::new(),
            body: None,
        }
    }
}

fn notes(issue: &Issue) -> Vec<String> {
    let value = issue
        .value
        .iter()
        .map(|value| format!("value: {}", shorten(value)));
    let old = issue.old.iter().map(|old| format!("old: {}", shorten(old)));
    let also = issue
        .also
        .iter()
        .map(|place| format!("also at {}:{}", place.line, place.column));
    let help = issue.help.iter().map(|help| format!("help: {help}"));
    value.chain(old).chain(also).chain(help).collect()
}

/// A number of things.
pub(crate) fn count(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        number => format!("{number} {thing}s"),
    }
}

/// Values can be endless.
fn shorten(value: &str) -> String {
    const MAX: usize = 160;
    if value.chars().count() <= MAX {
        return value.to_owned();
    }
    let mut short: String = value.chars().take(MAX).collect();
    short.push('…');
    short
}
