//! Reports of commands, in the form that all renderers take.

use crate::locate::{Location, LocationQuery, LocationVisitor};
use crate::problem::{InputProblem, Problem};
use scantling_value::FieldError;
use serde::Serialize;
use std::sync::Arc;

/// An error of a field, as the causes of a `Status` describe it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Issue {
    /// The field.
    pub(crate) field: String,
    /// The machine-readable reason.
    pub(crate) reason: String,
    /// The text.
    pub(crate) message: String,
    /// The location of the field.
    #[serde(flatten)]
    pub(crate) location: Option<Location>,
    /// The query for the location.
    #[serde(skip)]
    pub(crate) query: Option<LocationQuery>,
    /// The value, if the message does not contain it.
    #[serde(skip)]
    pub(crate) value: Option<String>,
    /// The value before the update.
    #[serde(skip)]
    pub(crate) old: Option<String>,
    /// Other locations that the error is about.
    #[serde(skip)]
    pub(crate) related: Vec<RelatedLocation>,
    /// Advice for the user.
    #[serde(skip)]
    pub(crate) help: Option<String>,
}

/// Another location that an error refers to, and the query for it.
#[derive(Clone, Debug)]
pub(crate) struct RelatedLocation {
    pub(crate) query: Option<LocationQuery>,
    pub(crate) location: Option<Location>,
}

impl Issue {
    /// A server's error about a field.
    pub(crate) fn new(error: &FieldError, query: Option<LocationQuery>) -> Self {
        Issue {
            field: error.field().to_owned(),
            query,
            ..Issue::plain(error.reason(), error.message())
        }
    }

    /// Visits the locations, for [`Locatable`](crate::locate::Locatable).
    pub(crate) fn visit_locations(&mut self, visit: &mut LocationVisitor<'_>) {
        visit(&mut self.query, &mut self.location);
        for related in &mut self.related {
            visit(&mut related.query, &mut related.location);
        }
    }

    /// An error about a whole object.
    pub(crate) fn plain(reason: &str, message: impl Into<String>) -> Self {
        Issue {
            field: String::new(),
            reason: reason.to_owned(),
            message: message.into(),
            location: None,
            query: None,
            value: None,
            old: None,
            related: Vec::new(),
            help: None,
        }
    }

    /// The error of a client for a kind that no CRD defines.
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

/// The reason of an error about a kind that no CRD defines.
pub(crate) const UNDEFINED: &str = "NotFound";

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Severity {
    /// The input cannot be read or decoded.
    #[serde(rename = "error")]
    Unreadable,
    /// A server refuses it.
    Error,
    /// A server warns of it.
    Warning,
    /// Scantling advises against it.
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

/// A finding.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) level: Severity,
    /// The reason or code.
    pub(crate) code: String,
    /// The text, with the field.
    pub(crate) text: String,
    pub(crate) location: Option<Location>,
    /// Further lines: `old: 3`.
    pub(crate) notes: Vec<String>,
}

impl Finding {
    /// A finding without notes.
    pub(crate) fn new(level: Severity, code: &str, text: String, location: Option<&Location>) -> Self {
        Finding {
            level,
            code: code.to_owned(),
            text,
            location: location.cloned(),
            notes: Vec::new(),
        }
    }

    /// An error.
    pub(crate) fn error(issue: &Issue) -> Self {
        let text = issue.field_and_message();
        Finding {
            notes: notes(issue),
            ..Finding::new(Severity::Error, &issue.reason, text, issue.location.as_ref())
        }
    }

    /// A server's warning.
    pub(crate) fn warning(text: &str, location: Option<&Location>) -> Self {
        Finding::new(Severity::Warning, "Warning", text.to_owned(), location)
    }
}

/// A CRD, rule or object, and the findings about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReportSubject {
    /// The file.
    pub(crate) file: Arc<str>,
    /// The location in the file, if known.
    pub(crate) location: Option<Location>,
    /// Its name: `CronTab default/a`.
    pub(crate) name: String,
    pub(crate) findings: Vec<Finding>,
    /// The result without errors: `accepted`.
    pub(crate) outcome: String,
    /// Details, for `--verbose`.
    pub(crate) details: Vec<String>,
    /// Text that is part of the result, shown in any case.
    pub(crate) body: Option<String>,
    /// The cost of a rule or schema.
    pub(crate) cost: Option<CostRow>,
}

/// The cost of a rule or schema, as a row of a table.
#[derive(Clone, Debug)]
pub(crate) struct CostRow {
    /// The share of the limit.
    pub(crate) share: f64,
    pub(crate) total: u64,
    /// The total cost in earlier CRDs, if they are known and have the rule.
    pub(crate) previous: Option<Option<u64>>,
    /// CRD, version and field.
    pub(crate) at: String,
    pub(crate) rule: String,
}

impl ReportSubject {
    /// Returns a text about the subject, after its name.
    pub(crate) fn titled(&self, text: &str) -> String {
        if self.name.is_empty() {
            text.to_owned()
        } else {
            format!("{}: {text}", self.name)
        }
    }
}

/// An item of a report. Its serialised form is that of the JSON contract.
pub(crate) trait ReportItem: Serialize {
    /// Returns the item in the form that all renderers take.
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
        let InputProblem {
            file,
            location,
            message,
        } = problem.input()?;
        let mut issue = Issue::plain("BadRequest", message);
        issue.location.clone_from(location);
        // With the fields of an object, so that consumers of JSON see one schema of items.
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
            findings: vec![finding],
            ..ReportSubject::default()
        }
    }
}

fn notes(issue: &Issue) -> Vec<String> {
    let value = issue
        .value
        .iter()
        .map(|value| format!("value: {}", shorten(value)));
    let old = issue.old.iter().map(|old| format!("old: {}", shorten(old)));
    let related = issue
        .related
        .iter()
        .filter_map(|related| related.location.as_ref());
    let related = related.map(|at| format!("also at {}:{}", at.line, at.column));
    let help = issue.help.iter().map(|help| format!("help: {help}"));
    value.chain(old).chain(related).chain(help).collect()
}

/// Returns a number with its unit: `1 object`, `2 objects`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        number => format!("{number} {thing}s"),
    }
}

/// Shortens a value: values can be large.
fn shorten(value: &str) -> String {
    const MAX: usize = 160;
    if value.chars().count() <= MAX {
        return value.to_owned();
    }
    let mut short: String = value.chars().take(MAX).collect();
    short.push('…');
    short
}
