//! `scantling validate`: what a server would say to objects.

pub(crate) mod validator;

use crate::args;
use crate::catalog::{Catalog, OtherObjects, StoredObjects, Texts};
use crate::cluster;
use crate::files;
use crate::locate::Location;
use crate::problem::{ExitStatus, Problem, hint, note, warn};
use crate::render::{RenderedItem, Report};
use crate::report::{Finding, Issue, ReportItem, ReportSubject, UNDEFINED, count};
use crate::stream;
use scantling_value::Value;
use serde::Serialize;
use serde_json::value::RawValue;
use std::sync::Arc;
use validator::{MissingSchemas, Skipped, Validator};

/// Checks the objects.
pub(crate) fn run(flags: &args::Validate) -> Result<ExitStatus, Problem> {
    let (sources, mut problems) = files::find(flags.inputs.all(), flags.limits);
    let (crds, more) = files::find(&flags.crds, flags.limits);
    problems.extend(more);
    let (olds, more) = files::find(&flags.old, flags.limits);
    problems.extend(more);
    let mut catalog = Catalog::new(flags.target, Texts::Kept);
    let cluster = cluster::asked_for(&flags.cluster)?;
    match &cluster {
        Some(cluster) => problems.extend(catalog.load_from(cluster, |_| true)),
        None if flags.old_from_cluster => {
            return Err(Problem::usage("--old-from-cluster needs a cluster")
                .hint("name one by --kubeconfig, --context, --server or --token"));
        }
        None => {}
    }
    problems.extend(catalog.load(&crds, OtherObjects::Listed));
    problems.extend(catalog.load(&sources, OtherObjects::Skipped));
    let (mut stored, more) = StoredObjects::load(&olds);
    problems.extend(more);
    stored.cluster = cluster.as_ref().filter(|_| flags.old_from_cluster);

    let validator = Validator {
        stored: (flags.old_from_cluster || !flags.old.is_empty()).then_some(&stored),
        skip: &flags.skip,
        missing: if flags.ignore_missing_schemas {
            MissingSchemas::Skipped
        } else {
            MissingSchemas::Reported
        },
        show_object: flags.show_object,
        field_validation: flags.field_validation.into(),
        ..Validator::new(&catalog, flags.target)
    };
    let mut report = Report::begin("ValidationReport", "validate", &flags.output);
    report.section("items");
    let renderer = report.renderer();
    let mut summary = ValidateSummary::default();
    let (mut unusable, mut skipped) = (Vec::new(), Vec::new());
    let unread = stream::each_document(
        &sources,
        |document| {
            let results = validator.document(document);
            let mut checked = DocumentReports {
                problems: results.problems,
                skipped: results.skipped,
                ..DocumentReports::default()
            };
            checked.summary.skipped = checked.skipped.len();
            for verdict in results.report {
                checked.summary.count(&verdict);
                match renderer.piece(&verdict) {
                    Ok(piece) => checked.pieces.push(piece),
                    Err(problem) => checked.problems.push(problem),
                }
            }
            checked
        },
        |checked: DocumentReports| {
            summary.add(&checked.summary);
            if flags.output.verbose {
                skipped.extend(checked.skipped);
            }
            unusable.extend(checked.problems);
            for piece in checked.pieces {
                report.add(piece);
            }
        },
    );
    problems.extend(unread);
    problems.extend(unusable);
    for definition in validator.invalid_definitions(&sources) {
        summary.count(&definition);
        report.write_item(&definition)?;
    }
    report.write_problems(&problems)?;
    let line = summary.line();
    report.end(flags.output.summary.then_some((line.as_str(), &summary)))?;
    for Skipped { file, title, reason } in &skipped {
        note(&format!("{file}: {title}: skipped: {reason}"));
    }
    if flags.output.verbose {
        catalog.note_skipped();
    }
    if !flags.output.quiet {
        summary.remark(&problems);
    }
    Ok(ExitStatus::after(summary.refused > 0, &problems))
}

/// What came of one document.
#[derive(Default)]
struct DocumentReports {
    pieces: Vec<RenderedItem>,
    summary: ValidateSummary,
    skipped: Vec<Skipped>,
    problems: Vec<Problem>,
}

/// What became of one object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectReport {
    pub(crate) file: Arc<str>,
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) accepted: bool,
    /// False where the CRD is invalid, so that nothing can be said of the object.
    #[serde(skip_serializing_if = "is_true")]
    pub(crate) checked: bool,
    pub(crate) errors: Vec<Issue>,
    pub(crate) warnings: Vec<String>,
    /// Beside the warnings, where any place is known.
    #[serde(skip_serializing_if = "no_place")]
    pub(crate) warning_positions: Vec<Option<Location>>,
    pub(crate) cel_cost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<Box<RawValue>>,
    #[serde(skip)]
    pub(crate) stored: Option<Value>,
    #[serde(skip)]
    pub(crate) update: bool,
    /// The definition that it was checked against.
    #[serde(skip)]
    pub(crate) by: Option<Arc<str>>,
}

impl ObjectReport {
    /// An object about which nothing is known yet.
    fn new(file: &Arc<str>, kind: &str) -> Self {
        ObjectReport {
            file: Arc::clone(file),
            api_version: String::new(),
            kind: kind.to_owned(),
            namespace: String::new(),
            name: String::new(),
            accepted: true,
            checked: true,
            errors: Vec::new(),
            warnings: Vec::new(),
            warning_positions: Vec::new(),
            cel_cost: 0,
            object: None,
            stored: None,
            update: false,
            by: None,
        }
    }

    /// Takes the places of errors, of what else the last error is about, and of warnings.
    fn placed(&mut self, [errors, also, warnings]: [Vec<Option<Location>>; 3]) {
        for (issue, place) in self.errors.iter_mut().zip(errors) {
            issue.place = place;
        }
        if let Some(issue) = self.errors.last_mut() {
            issue.also = also.into_iter().flatten().collect();
        }
        self.warning_positions = warnings;
    }
}

fn is_true(value: &bool) -> bool {
    *value
}

fn no_place(places: &[Option<Location>]) -> bool {
    places.iter().all(Option::is_none)
}

#[derive(Debug, Default, Serialize)]
struct ValidateSummary {
    accepted: usize,
    refused: usize,
    warnings: usize,
    /// How many of those that were refused could not be checked, because their CRD is invalid.
    #[serde(rename = "notChecked")]
    not_checked: usize,
    skipped: usize,
    /// How many of those that were refused are of kinds without a definition.
    #[serde(skip)]
    undefined: usize,
}

impl ValidateSummary {
    fn count(&mut self, report: &ObjectReport) {
        if report.accepted {
            self.accepted += 1;
        } else {
            self.refused += 1;
        }
        let undefined = |e: &Issue| e.reason == UNDEFINED && e.help.is_none();
        self.not_checked += usize::from(!report.checked);
        self.undefined += usize::from(report.errors.iter().any(undefined));
        self.warnings += report.warnings.len();
    }

    fn add(&mut self, other: &ValidateSummary) {
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.warnings += other.warnings;
        self.not_checked += other.not_checked;
        self.skipped += other.skipped;
        self.undefined += other.undefined;
    }

    /// Says what users may not expect.
    fn remark(&self, problems: &[Problem]) {
        if self.accepted + self.refused == 0 && problems.is_empty() {
            warn(&format!("no object was checked ({} skipped)", self.skipped));
        }
        if self.undefined > 0 {
            let objects = count(self.undefined, "object");
            hint(&format!(
                "{objects} without a CRD: name the CRD files with --crds, or skip such kinds with \
                 --ignore-missing-schemas or --skip"
            ));
        }
    }

    fn line(&self) -> String {
        let ValidateSummary {
            accepted,
            refused,
            warnings,
            not_checked,
            skipped,
            ..
        } = self;
        let mut line = format!(
            "{}: {accepted} accepted, {refused} refused, {}",
            count(accepted + refused, "object"),
            count(*warnings, "warning")
        );
        for (number, what) in [(not_checked, "not checked"), (skipped, "skipped")] {
            if *number > 0 {
                line.push_str(&format!(", {number} {what}"));
            }
        }
        line
    }
}

/// An object as texts name it: `CronTab jobs/backup`.
pub(crate) fn title(kind: &str, namespace: &str, name: &str) -> String {
    let name = if name.is_empty() { "(no name)" } else { name };
    match namespace {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}

impl ReportItem for ObjectReport {
    fn subject(&self) -> ReportSubject {
        let errors = self.errors.iter().map(Finding::error);
        let places = self.warning_positions.iter().map(Option::as_ref);
        let places = places.chain(std::iter::repeat(None));
        let warnings = self.warnings.iter().zip(places);
        let stored = self
            .stored
            .as_ref()
            .map(|v| format!("---\n{}", scantling_value::yaml::encode(v)));
        let cost = format!("the rules that ran cost {}", self.cel_cost);
        ReportSubject {
            file: Arc::clone(&self.file),
            place: None,
            name: title(&self.kind, &self.namespace, &self.name),
            findings: errors
                .chain(warnings.map(|(text, place)| Finding::warning(text, place)))
                .collect(),
            outcome: if self.update {
                "update accepted"
            } else {
                "accepted"
            }
            .to_owned(),
            details: self.by.iter().map(ToString::to_string).chain([cost]).collect(),
            body: stored,
        }
    }
}
