//! `scantling lint`: what a cluster would say to definitions, and what we would advise.

mod advice;
mod pages;

use crate::args;
use crate::catalog;
use crate::files;
use crate::input::InputObject;
use crate::locate::{DocumentLocator, Location, Spots, place_all};
use crate::problem::{ExitStatus, Problem};
use crate::render::{self, RenderedItem, Report};
use crate::report::{Finding, Issue, ReportItem, ReportSubject, Severity, count};
use crate::stream;
use advice::Advice;
use scantling_merge::patch;
use scantling_schema::definition::{Accepted, ValidationContext};
use scantling_schema::rules::Environments;
use serde::Serialize;
use std::sync::Arc;

/// Checks the definitions, or explains a code.
pub(crate) fn run(flags: &args::Lint) -> Result<ExitStatus, Problem> {
    if let Some(code) = &flags.explain {
        return explain(code);
    }
    if let Some(code) = flags.skip.iter().find(|code| !is_known(code)) {
        return Ok(unknown_code(code));
    }
    let (sources, mut problems) = files::find(
        flags.paths.iter().chain(&flags.filename).chain(&flags.crds),
        flags.limits,
    );
    let linter = Linter {
        flags,
        environments: Environments::for_version(flags.target.kubernetes_version),
    };
    let mut report = Report::begin("LintReport", "lint", &flags.output);
    report.section("items");
    let renderer = report.renderer();
    let (mut summary, mut unusable) = (LintSummary::default(), Vec::new());
    let unread = stream::each_document(
        &sources,
        |document| -> Result<Vec<(LintSummary, RenderedItem)>, Problem> {
            let definitions = document
                .known_objects()?
                .into_iter()
                .filter(InputObject::is_definition);
            let sent = DocumentLocator::new(document);
            let items = definitions.map(|object| linter.definition(document.file, &sent, object));
            place_all(&sent, items.collect(), DefinitionReport::placed)
                .into_iter()
                .map(|item| Ok((LintSummary::for_definition(&item), renderer.piece(&item)?)))
                .collect()
        },
        |checked| match checked {
            Ok(items) => {
                for (counts, piece) in items {
                    summary.add(&counts);
                    report.add(piece);
                }
            }
            Err(problem) => unusable.push(problem),
        },
    );
    problems.extend(unread);
    problems.extend(unusable);
    if summary.definitions == 0 && problems.is_empty() {
        problems.push(Problem::plain("there is no definition among the inputs"));
    }
    report.write_problems(&problems)?;
    let line = summary.line();
    report.end(flags.output.summary.then_some((line.as_str(), &summary)))?;
    Ok(ExitStatus::after(summary.refused > 0, &problems))
}

/// The page of a code.
pub(crate) fn page(code: &str) -> Option<&'static str> {
    let mut pages = pages::PAGES.iter();
    pages.find(|(known, _)| *known == code).map(|(_, page)| *page)
}

fn explain(code: &str) -> Result<ExitStatus, Problem> {
    match pages::PAGES.iter().find(|(c, _)| c.eq_ignore_ascii_case(code)) {
        Some((code, page)) => {
            render::write(format!("{code}: {page}"))?;
            Ok(ExitStatus::Well)
        }
        None => Ok(unknown_code(code)),
    }
}

/// Whether a word is a code, or the beginning of some.
fn is_known(code: &str) -> bool {
    !code.is_empty() && pages::PAGES.iter().any(|(known, _)| known.starts_with(code))
}

fn unknown_code(code: &str) -> ExitStatus {
    let known: Vec<&str> = pages::PAGES.iter().map(|(code, _)| *code).collect();
    let hint = format!("known codes are {}", known.join(", "));
    Problem::plain(format!("there is no code {code}"))
        .hint(hint)
        .print();
    ExitStatus::Usage
}

#[derive(Debug, Default, Serialize)]
struct LintSummary {
    definitions: usize,
    refused: usize,
    advice: usize,
}

impl LintSummary {
    fn for_definition(item: &DefinitionReport) -> Self {
        LintSummary {
            definitions: 1,
            refused: usize::from(!item.accepted),
            advice: item.advice.len(),
        }
    }

    fn add(&mut self, other: &LintSummary) {
        self.definitions += other.definitions;
        self.refused += other.refused;
        self.advice += other.advice;
    }

    fn line(&self) -> String {
        let LintSummary {
            definitions,
            refused,
            advice,
        } = self;
        let (all, advice) = (count(*definitions, "definition"), count(*advice, "piece"));
        format!("{all}: {refused} refused, {advice} of advice")
    }
}

/// What became of one definition.
#[derive(Debug, Serialize)]
struct DefinitionReport {
    file: Arc<str>,
    name: String,
    accepted: bool,
    errors: Vec<Issue>,
    warnings: Vec<String>,
    advice: Vec<Advice>,
    /// Beside the warnings.
    #[serde(skip)]
    places: Vec<Option<Location>>,
}

impl DefinitionReport {
    /// Takes the places of errors, warnings and advice.
    fn placed(&mut self, [errors, warnings, advice]: [Vec<Option<Location>>; 3]) {
        for (issue, place) in self.errors.iter_mut().zip(errors) {
            issue.place = place;
        }
        self.places = warnings;
        for (advice, place) in self.advice.iter_mut().zip(advice) {
            advice.place = place;
        }
    }
}

impl ReportItem for DefinitionReport {
    fn subject(&self) -> ReportSubject {
        let errors = self.errors.iter().map(Finding::error);
        let places = self
            .places
            .iter()
            .map(Option::as_ref)
            .chain(std::iter::repeat(None));
        let warnings = self.warnings.iter().zip(places);
        let warnings = warnings.map(|(text, place)| Finding::warning(text, place));
        let advice = self.advice.iter().map(|a| Finding {
            level: Severity::Advice,
            code: a.code.to_owned(),
            text: format!("{}: {}", a.field, a.message),
            place: a.place.clone(),
            notes: Vec::new(),
        });
        ReportSubject {
            file: Arc::clone(&self.file),
            place: None,
            name: self.name.clone(),
            findings: errors.chain(warnings).chain(advice).collect(),
            outcome: "accepted".to_owned(),
            details: Vec::new(),
            body: None,
        }
    }
}

struct Linter<'a> {
    flags: &'a args::Lint,
    environments: Environments,
}

impl Linter<'_> {
    /// Checks a definition, and says which places are to be looked up: of errors, warnings and advice.
    fn definition(
        &self,
        file: &Arc<str>,
        sent: &DocumentLocator<'_>,
        object: InputObject,
    ) -> (DefinitionReport, Spots) {
        let mut item = DefinitionReport {
            file: Arc::clone(file),
            name: object.name().to_owned(),
            accepted: false,
            errors: Vec::new(),
            warnings: patch::warnings(&object.found_in_text),
            advice: Vec::new(),
            places: Vec::new(),
        };
        let index = object.index.clone();
        let entry = match catalog::entry(file, object, self.flags.target) {
            Ok(entry) => entry,
            Err(why) => {
                item.errors.push(Issue::plain("BadRequest", why));
                return (item, [vec![sent.spelled(&index, "")], Vec::new(), Vec::new()]);
            }
        };
        item.warnings.extend(entry.api.deprecation().map(str::to_owned));
        item.warnings.extend(
            entry
                .unknown
                .iter()
                .map(|field| format!("unknown field \"{field}\"")),
        );
        let setting = ValidationContext {
            api: entry.api,
            gates: self.flags.target.feature_gates,
            environments: &self.environments,
        };
        match Accepted::create(entry.definition.clone(), &setting) {
            Ok(acceptance) => {
                item.accepted = true;
                item.warnings.extend(acceptance.warnings);
                let condition = acceptance.accepted.non_structural_condition();
                let told = condition.map(|c| format!("the condition {} will be set: {}", c.ty, c.message));
                item.warnings.extend(told);
            }
            Err(errors) => item.errors = errors.iter().map(|e| Issue::new(e, None)).collect(),
        }
        item.advice = advice::advice(&entry.definition, &entry.unknown, &self.environments);
        let skipped = |code: &str| self.flags.skip.iter().any(|skip| code.starts_with(skip.as_str()));
        item.advice.retain(|advice| !skipped(advice.code));
        let errors = item.errors.iter().map(|e| entry.written(&e.field));
        let spots = [
            errors.map(|field| sent.spelled(&index, &field)).collect(),
            item.warnings.iter().map(|text| sent.said(&index, text)).collect(),
            item.advice
                .iter()
                .map(|advice| sent.spelled(&index, &advice.field))
                .collect(),
        ];
        (item, spots)
    }
}
