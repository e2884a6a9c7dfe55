//! `scantling validate`: validates objects as a server does.

pub(crate) mod metadata;
mod report_builder;
pub(crate) mod validator;
mod write;

use crate::args;
use crate::catalog::{Catalog, CrdTexts, OtherObjects, StoredObjects};
use crate::cluster;
use crate::files;
use crate::json_schemas::JsonSchemas;
use crate::locate::{Locatable, Location, LocationQuery, LocationVisitor};
use crate::problem::{ExitStatus, Problem, hint, note, warn};
use crate::render::{self, RenderedItem, Report};
use crate::report::{Finding, Issue, ReportItem, ReportSubject, Severity, UNDEFINED, count};
use crate::stream;
use crate::tools;
use crate::walk;
use scantling_value::Value;
use serde::Serialize;
use serde_json::value::RawValue;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use validator::{MissingSchemas, Skipped, Validator};

/// Validates the objects.
pub(crate) fn run(flags: &args::Validate) -> Result<ExitStatus, Problem> {
    let begun = Instant::now();
    let (mut sources, mut problems) = files::find(flags.inputs.all(), &flags.read);
    let limit = flags.read.max_input_bytes;
    let built = flags
        .inputs
        .kustomize
        .iter()
        .map(|directory| tools::kustomize(directory, limit));
    let charts = flags.inputs.helm.iter();
    let rendered = charts.map(|chart| tools::helm(chart, &flags.inputs.helm_values, limit));
    for output in built.chain(rendered) {
        match output {
            Ok(source) => sources.push(source),
            Err(problem) => problems.push(problem),
        }
    }
    let (crds, more) = files::find_schemas(&flags.crds, &flags.read);
    problems.extend(more);
    let (olds, more) = files::find(&flags.old, &flags.read);
    problems.extend(more);
    let mut catalog = Catalog::new(flags.target, CrdTexts::Kept);
    let cluster = cluster::asked_for(&flags.cluster)?;
    match &cluster {
        // CRDs of the cluster come first: of several for one kind, the last one is used, so files override the cluster.
        Some(cluster) => problems.extend(catalog.load_from(cluster, |_| true)),
        None if flags.old_from_cluster => {
            return Err(Problem::usage("--old-from-cluster needs a cluster")
                .hint("name one with --kubeconfig, --context, --server or --token"));
        }
        None => {}
    }
    problems.extend(catalog.load(&crds, OtherObjects::Listed));
    // CRDs beside the objects come last, because they are what the user is about to apply.
    problems.extend(catalog.load(&sources, OtherObjects::Skipped));
    let (mut stored, more) = StoredObjects::load(&olds);
    problems.extend(more);
    stored.cluster = cluster.as_ref().filter(|_| flags.old_from_cluster);

    let version = flags.target.kubernetes_version;
    let json_schemas = JsonSchemas::new(&flags.schema_location, flags.schema_cache.as_deref(), version);
    let validator = Validator {
        json_schemas: (!flags.schema_location.is_empty()).then_some(&json_schemas),
        stored: (flags.old_from_cluster || !flags.old.is_empty()).then_some(&stored),
        skip: &flags.skip,
        missing: if flags.ignore_missing_schemas {
            MissingSchemas::Skipped
        } else {
            MissingSchemas::Reported
        },
        show_object: flags.show_object,
        field_validation: flags.field_validation.into(),
        overrides: &flags.overrides,
        // Named files are validated whatever they contain; files of a directory may be skipped.
        named: walk::named(&sources),
        kustomize_namespaces: sources
            .iter()
            .filter_map(|source| Some((Arc::clone(&source.name), source.kustomize_namespace.clone()?)))
            .collect(),
        variables: &flags.var,
        subresource: flags.subresource,
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
            for verdict in results.reports {
                checked.summary.count(&verdict);
                // Rendering is expensive and needs no order, so the worker does it; the report only writes the bytes.
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
    // After the objects: only then is it known which CRDs were asked for and refused.
    for definition in validator.invalid_definitions(&sources) {
        summary.count(&definition);
        report.write_item(&definition)?;
    }
    let all: Vec<_> = sources.iter().chain(&crds).chain(&olds).cloned().collect();
    let (problems, skipped_files) = walk::skip_other_files(problems, &all);
    summary.skipped_files = skipped_files.len();
    summary.definitions = catalog.entries().len();
    report.write_problems(&problems)?;
    let line = summary.line(begun);
    report.end(flags.output.shows_summary().then_some((line.as_str(), &summary)))?;
    for Skipped { file, title, reason } in &skipped {
        note(&format!("{file}: {title}: skipped: {reason}"));
    }
    if flags.output.verbose {
        for file in &skipped_files {
            note(&format!("{}: skipped: {}", file.file, file.reason));
        }
        catalog.note_skipped();
    }
    if !flags.output.quiet {
        summary.remark(&problems);
    }
    // A refused object fails the command whatever `--fail-on` says.
    let warned = summary.warnings > 0 && flags.output.fail_on.includes(Severity::Warning);
    Ok(ExitStatus::after(summary.refused > 0 || warned, &problems))
}

/// The results for one document.
#[derive(Default)]
struct DocumentReports {
    pieces: Vec<RenderedItem>,
    summary: ValidateSummary,
    skipped: Vec<Skipped>,
    problems: Vec<Problem>,
}

/// The result for one object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectReport {
    pub(crate) file: Arc<str>,
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) accepted: bool,
    /// False if the CRD is invalid, so that the object could not be checked.
    #[serde(skip_serializing_if = "is_true")]
    pub(crate) checked: bool,
    /// False if errors about values that are not final became warnings.
    #[serde(rename = "final", skip_serializing_if = "is_true")]
    pub(crate) is_final: bool,
    pub(crate) errors: Vec<Issue>,
    pub(crate) warnings: Vec<String>,
    /// The locations of the warnings, if known.
    #[serde(skip_serializing_if = "no_location")]
    pub(crate) warning_positions: Vec<Option<Location>>,
    /// The queries for the locations of the warnings.
    #[serde(skip)]
    pub(crate) warning_queries: Vec<Option<LocationQuery>>,
    pub(crate) cel_cost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) object: Option<Box<RawValue>>,
    #[serde(skip)]
    pub(crate) stored: Option<Value>,
    #[serde(skip)]
    pub(crate) update: bool,
    /// True if only a JSON schema was available.
    #[serde(skip)]
    pub(crate) json_schema: bool,
    /// The CRD that it was validated against.
    #[serde(skip)]
    pub(crate) by: Option<Arc<str>>,
}

impl ObjectReport {
    /// A report without results.
    fn new(file: &Arc<str>, kind: &str) -> Self {
        ObjectReport {
            file: Arc::clone(file),
            api_version: String::new(),
            kind: kind.to_owned(),
            namespace: String::new(),
            name: String::new(),
            accepted: true,
            checked: true,
            is_final: true,
            errors: Vec::new(),
            warnings: Vec::new(),
            warning_positions: Vec::new(),
            warning_queries: Vec::new(),
            cel_cost: 0,
            object: None,
            stored: None,
            update: false,
            json_schema: false,
            by: None,
        }
    }
}

impl Locatable for ObjectReport {
    fn visit_locations(&mut self, visit: &mut LocationVisitor<'_>) {
        for issue in &mut self.errors {
            issue.visit_locations(visit);
        }
        self.warning_positions.resize(self.warning_queries.len(), None);
        for (query, location) in self.warning_queries.iter_mut().zip(&mut self.warning_positions) {
            visit(query, location);
        }
    }
}

fn is_true(value: &bool) -> bool {
    *value
}

fn no_location(places: &[Option<Location>]) -> bool {
    places.iter().all(Option::is_none)
}

#[derive(Debug, Default, Serialize)]
struct ValidateSummary {
    accepted: usize,
    refused: usize,
    warnings: usize,
    /// The number of refused objects that could not be checked, because their CRD is invalid.
    #[serde(rename = "notChecked")]
    not_checked: usize,
    /// The number of accepted objects with values that are not final.
    #[serde(rename = "notFinal")]
    not_final: usize,
    skipped: usize,
    /// Files, or documents of files, that are not meant for a cluster.
    #[serde(rename = "skippedFiles")]
    skipped_files: usize,
    /// The number of CRDs in use.
    definitions: usize,
    /// The number of refused objects by their kind, for kinds without a CRD.
    #[serde(skip)]
    undefined: BTreeMap<String, usize>,
    /// The number of objects for which only a JSON schema was available.
    #[serde(rename = "jsonSchema")]
    json_schema: usize,
}

/// The number of kinds without a schema that the advice names.
const MAX_NAMED_KINDS: usize = 6;

impl ValidateSummary {
    fn count(&mut self, report: &ObjectReport) {
        if report.accepted {
            self.accepted += 1;
        } else {
            self.refused += 1;
        }
        let undefined = |e: &Issue| e.reason == UNDEFINED && e.help.is_none();
        self.json_schema += usize::from(report.json_schema);
        self.not_checked += usize::from(!report.checked);
        self.not_final += usize::from(report.accepted && !report.is_final);
        if report.errors.iter().any(undefined) {
            *self.undefined.entry(report.kind.clone()).or_default() += 1;
        }
        self.warnings += report.warnings.len();
    }

    fn add(&mut self, other: &ValidateSummary) {
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.warnings += other.warnings;
        self.not_checked += other.not_checked;
        self.not_final += other.not_final;
        self.skipped += other.skipped;
        for (kind, number) in &other.undefined {
            *self.undefined.entry(kind.clone()).or_default() += number;
        }
        self.json_schema += other.json_schema;
    }

    /// Prints hints about unexpected results.
    fn remark(&self, problems: &[Problem]) {
        if self.accepted + self.refused == 0 && problems.is_empty() {
            warn(&format!("no object was checked ({} skipped)", self.skipped));
        }
        if self.json_schema > 0 {
            let objects = count(self.json_schema, "object");
            hint(&format!(
                "{objects} validated against JSON schemas only, which have no rules and no defaults"
            ));
        }
        if !self.undefined.is_empty() {
            let objects = count(self.undefined.values().sum(), "object");
            hint(&format!(
                "{objects} without a schema ({}): name the CRDs with --crds, or skip such kinds with \
                 --ignore-missing-schemas or --skip",
                self.undefined_kinds()
            ));
        }
    }

    /// The most frequent kinds without a schema, so that users see which CRDs they lack.
    fn undefined_kinds(&self) -> String {
        let mut kinds: Vec<(&String, &usize)> = self.undefined.iter().collect();
        kinds.sort_by_key(|(kind, number)| (Reverse(*number), *kind));
        let named = kinds.iter().take(MAX_NAMED_KINDS);
        let mut parts: Vec<String> = named.map(|(kind, number)| format!("{number} {kind}")).collect();
        if let Some(more) = kinds.len().checked_sub(MAX_NAMED_KINDS).filter(|more| *more > 0) {
            parts.push(count(more, "other kind"));
        }
        parts.join(", ")
    }

    fn line(&self, begun: Instant) -> String {
        let ValidateSummary {
            accepted,
            refused,
            warnings,
            not_checked,
            not_final,
            skipped,
            ..
        } = self;
        let open = match not_final {
            0 => String::new(),
            number => format!(" ({number} with values that are not final)"),
        };
        let mut line = format!(
            "{}, {}: {accepted} accepted{open}, {refused} refused, {}",
            count(self.definitions, "CRD"),
            count(accepted + refused, "object"),
            count(*warnings, "warning")
        );
        for (number, what) in [(not_checked, "not checked"), (skipped, "skipped")] {
            if *number > 0 {
                line.push_str(&format!(", {number} {what}"));
            }
        }
        if self.skipped_files > 0 {
            line.push_str(&format!(", {} skipped", count(self.skipped_files, "file")));
        }
        line + &render::elapsed(begun)
    }
}

/// The name of an object in messages: `CronTab jobs/backup`.
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
            name: title(&self.kind, &self.namespace, &self.name),
            findings: errors
                .chain(warnings.map(|(text, place)| Finding::warning(text, place)))
                .collect(),
            outcome: match (self.update, self.is_final) {
                (true, true) => "update accepted",
                (false, true) => "accepted",
                (true, false) => "update accepted, except for values that are not final",
                (false, false) => "accepted, except for values that are not final",
            }
            .to_owned(),
            details: self.by.iter().map(ToString::to_string).chain([cost]).collect(),
            body: stored,
            ..ReportSubject::default()
        }
    }
}
