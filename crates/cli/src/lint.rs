//! `scantling lint`: errors of CRDs that a cluster would refuse, and advice.

mod advice;

use crate::args;
use crate::catalog;
use crate::codes;
use crate::files;
use crate::input::InputObject;
use crate::locate::{DocumentLocator, Locatable, Location, LocationQuery, LocationVisitor, locate_all};
use crate::policy::{self, Directives, Fingerprint, Policy};
use crate::problem::{ExitStatus, Problem, note};
use crate::render::{self, RenderedItem, Report};
use crate::report::{Finding, Issue, ReportItem, ReportSubject, Severity, count};
use crate::stream;
use crate::walk;
use advice::Advice;
use scantling_admit::Warning;
use scantling_schema::definition::{Accepted, ValidationContext};
use scantling_schema::rules::Environments;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// Checks CRDs, or prints the page of a code.
pub(crate) fn run(flags: &args::Lint) -> Result<ExitStatus, Problem> {
    if let Some(code) = &flags.explain {
        return explain(code);
    }
    let begun = Instant::now();
    let policy = Policy::new(&flags.control)?;
    let paths = flags.paths.iter().chain(&flags.filename).chain(&flags.crds);
    let (sources, mut problems) = files::find_schemas(paths, &flags.read);
    let linter = Linter {
        flags,
        environments: Environments::for_version(flags.target.kubernetes_version),
        policy,
    };
    let mut report = Report::begin("LintReport", "lint", &flags.output);
    report.section("items");
    let renderer = report.renderer();
    let (mut summary, mut unusable, mut baseline) = (LintSummary::default(), Vec::new(), BTreeSet::new());
    let named = walk::named(&sources);
    let unread = stream::each_document(
        &sources,
        |document| -> Result<Vec<(DefinitionReport, RenderedItem)>, Problem> {
            let definitions = catalog::known_definitions(document)?
                .into_iter()
                .filter(InputObject::is_definition)
                // A patch of a CRD in a directory belongs to a kustomization; one that the user names is checked.
                .filter(|object| !object.is_definition_patch() || named.contains(&**document.file));
            let locator = DocumentLocator::new(document);
            let directives = Directives::new(document.text, document.start.line);
            let items = definitions.map(|object| linter.definition(document.file, &locator, object));
            let mut items: Vec<DefinitionReport> = items.collect();
            linter.locate(&mut items, &locator, &directives);
            let rendered = items.into_iter().map(|item| {
                let piece = renderer.piece(&item)?;
                Ok((item, piece))
            });
            rendered.collect()
        },
        |checked| match checked {
            Ok(items) => {
                for (item, piece) in items {
                    summary.add(&item);
                    if flags.control.write_baseline.is_some() {
                        // Fingerprints allocate, and are needed only with the flag.
                        baseline.extend(item.advice.iter().map(|advice| item.fingerprint(advice)));
                    }
                    report.add(piece);
                }
            }
            Err(problem) => unusable.push(problem),
        },
    );
    problems.extend(unread);
    problems.extend(unusable);
    let (problems, skipped) = walk::skip_other_files(problems, &sources);
    let mut problems = problems;
    summary.skipped_files = skipped.len();
    if summary.definitions == 0 && problems.is_empty() {
        problems.push(Problem::plain("no CustomResourceDefinition among the inputs"));
    }
    // Problems are items of the report, so they precede its summary.
    report.write_problems(&problems)?;
    let line = summary.line(begun);
    report.end(flags.output.shows_summary().then_some((line.as_str(), &summary)))?;
    if flags.output.verbose {
        for file in &skipped {
            note(&format!("{}: skipped: {}", file.file, file.reason));
        }
    }
    if let Some(file) = &flags.control.write_baseline {
        policy::write_baseline(file, &baseline)?;
    }
    let fails = |severity, number| number > 0 && flags.output.fail_on.includes(severity);
    let failed = fails(Severity::Error, summary.refused + summary.errors)
        || fails(Severity::Warning, summary.warnings)
        || fails(Severity::Advice, summary.advice);
    Ok(ExitStatus::after(failed, &problems))
}

fn explain(code: &str) -> Result<ExitStatus, Problem> {
    let code = codes::find(code).ok_or_else(|| policy::unknown_code(code))?;
    render::write(format!("{}: {}", code.id, code.page))?;
    Ok(ExitStatus::Success)
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct LintSummary {
    definitions: usize,
    refused: usize,
    /// Findings whose severity is raised to error.
    errors: usize,
    warnings: usize,
    advice: usize,
    #[serde(skip_serializing_if = "is_zero")]
    skipped_files: usize,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl LintSummary {
    fn add(&mut self, item: &DefinitionReport) {
        let found = |severity| item.advice.iter().filter(|a| a.severity == severity).count();
        self.definitions += 1;
        self.refused += usize::from(!item.accepted);
        self.errors += found(Severity::Error);
        self.warnings += item.warnings.len() + found(Severity::Warning);
        self.advice += found(Severity::Advice);
    }

    fn line(&self, begun: Instant) -> String {
        let all = count(self.definitions, "CRD");
        let mut line = format!("{all}: {} refused", self.refused);
        for (number, what) in [(self.errors, "error"), (self.warnings, "warning")] {
            if number > 0 {
                line.push_str(&format!(", {}", count(number, what)));
            }
        }
        line.push_str(&format!(", {} of advice", count(self.advice, "piece")));
        if self.skipped_files > 0 {
            line.push_str(&format!(", {} skipped", count(self.skipped_files, "file")));
        }
        line + &render::elapsed(begun)
    }
}

/// The result for one CRD.
#[derive(Debug, Serialize)]
struct DefinitionReport {
    file: Arc<str>,
    name: String,
    accepted: bool,
    errors: Vec<Issue>,
    warnings: Vec<String>,
    advice: Vec<Advice>,
    /// The locations of the warnings, and how they are looked up.
    #[serde(skip)]
    warning_positions: Vec<Option<Location>>,
    #[serde(skip)]
    warning_queries: Vec<Option<LocationQuery>>,
}

impl DefinitionReport {
    fn fingerprint(&self, advice: &Advice) -> Fingerprint {
        Fingerprint {
            code: advice.code.to_owned(),
            file: self.file.to_string(),
            name: self.name.clone(),
            at: advice.field.clone(),
        }
    }
}

impl Locatable for DefinitionReport {
    fn visit_locations(&mut self, visit: &mut LocationVisitor<'_>) {
        for issue in &mut self.errors {
            issue.visit_locations(visit);
        }
        self.warning_positions.resize(self.warning_queries.len(), None);
        for (query, location) in self.warning_queries.iter_mut().zip(&mut self.warning_positions) {
            visit(query, location);
        }
        for advice in &mut self.advice {
            visit(&mut advice.query, &mut advice.location);
        }
    }
}

impl ReportItem for DefinitionReport {
    fn subject(&self) -> ReportSubject {
        let errors = self.errors.iter().map(Finding::error);
        let locations = self.warning_positions.iter().map(Option::as_ref);
        let warnings = self.warnings.iter().zip(locations.chain(std::iter::repeat(None)));
        let warnings = warnings.map(|(text, location)| Finding::warning(text, location));
        let advice = self.advice.iter().map(|a| {
            let at = format!("{} {}", a.version, a.path);
            let text = match at.trim() {
                "" => a.message.clone(),
                at => format!("{at}: {}", a.message),
            };
            Finding::new(a.severity, a.code, text, a.location.as_ref())
        });
        ReportSubject {
            file: Arc::clone(&self.file),
            name: self.name.clone(),
            findings: errors.chain(warnings).chain(advice).collect(),
            outcome: "accepted".to_owned(),
            ..ReportSubject::default()
        }
    }
}

struct Linter<'a> {
    flags: &'a args::Lint,
    environments: Environments,
    policy: Policy,
}

impl Linter<'_> {
    /// Looks up the locations of findings and applies the policy. Comments that silence findings need the lines of all of
    /// them; without such comments, only findings that are shown are looked up.
    fn locate(&self, items: &mut [DefinitionReport], locator: &DocumentLocator<'_>, directives: &Directives) {
        if directives.is_empty() {
            items
                .iter_mut()
                .for_each(|item| self.apply_policy(item, directives));
            // A lookup reads the whole text, and advice that is not shown needs no line.
            let output = &self.flags.output;
            if output.quiet && output.output == args::OutputFormat::Text {
                let hidden = items.iter_mut().flat_map(|item| &mut item.advice);
                hidden
                    .filter(|advice| !advice.severity.is_error())
                    .for_each(|advice| advice.query = None);
            }
            locate_all(locator, items);
        } else {
            locate_all(locator, items);
            items
                .iter_mut()
                .for_each(|item| self.apply_policy(item, directives));
        }
    }

    fn apply_policy(&self, item: &mut DefinitionReport, directives: &Directives) {
        let mut all = std::mem::take(&mut item.advice);
        all.retain_mut(|advice| {
            let line = advice.location.as_ref().map(|at| at.line);
            let finding = (advice.code, &*item.file);
            let fingerprint = || item.fingerprint(advice);
            match self
                .policy
                .severity(finding, advice.severity, (directives, line), fingerprint)
            {
                Some(severity) => {
                    advice.severity = severity;
                    true
                }
                None => false,
            }
        });
        item.advice = all;
    }

    /// Checks a CRD.
    fn definition(
        &self,
        file: &Arc<str>,
        locator: &DocumentLocator<'_>,
        object: InputObject,
    ) -> DefinitionReport {
        let mut item = DefinitionReport {
            file: Arc::clone(file),
            name: object.name().to_owned(),
            accepted: false,
            errors: Vec::new(),
            warnings: Vec::new(),
            advice: Vec::new(),
            warning_positions: Vec::new(),
            warning_queries: Vec::new(),
        };
        // Duplicate fields are found in the text; later checks see only the last value of each.
        let mut warnings: Vec<Warning> = object
            .found_in_text
            .iter()
            .cloned()
            .map(Warning::Finding)
            .collect();
        let index = object.index.clone();
        let entry = match catalog::entry(file, object, self.flags.target) {
            Ok(entry) => entry,
            Err(why) => {
                item.errors.push(Issue {
                    query: locator.field(&index, ""),
                    ..Issue::plain("BadRequest", why)
                });
                return item;
            }
        };
        warnings.extend(entry.api.deprecation().map(|text| Warning::Text(text.to_owned())));
        warnings.extend(entry.unknown.iter().cloned().map(Warning::Finding));
        let setting = ValidationContext {
            api: entry.api,
            gates: self.flags.target.feature_gates,
            environments: &self.environments,
        };
        match Accepted::create(entry.definition.clone(), &setting) {
            Ok(acceptance) => {
                item.accepted = true;
                warnings.extend(acceptance.warnings.into_iter().map(Warning::Text));
                let condition = acceptance.accepted.non_structural_condition();
                let text = condition.map(|c| format!("the condition {} will be set: {}", c.ty, c.message));
                warnings.extend(text.map(Warning::Text));
            }
            Err(errors) => {
                let issue = |e| Issue::new(e, locator.field(&index, &entry.written(e.field())));
                item.errors = errors.iter().map(issue).collect();
            }
        }
        item.advice = advice::advice(&entry, &self.environments, locator, &index);
        let query = |warning| locator.warning(&index, warning);
        item.warning_queries = warnings.iter().map(query).collect();
        item.warnings = warnings.iter().map(ToString::to_string).collect();
        item
    }
}
