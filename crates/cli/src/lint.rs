//! `scantling lint`: what a cluster would say to definitions, and what we would advise.

mod advice;
mod pages;

use crate::args;
use crate::catalog;
use crate::files::{self, Source};
use crate::input::{self, Document, Object};
use crate::locate::{locate, path_in};
use crate::problem::{Problem, Verdict};
use crate::render;
use crate::report::{Finding, Issue, Level, Report, Subject};
use advice::Advice;
use rayon::prelude::*;
use scantling_schema::definition::{Accepted, Setting};
use scantling_schema::rules::Environments;
use scantling_value::Value;
use serde::Serialize;
use std::sync::Arc;

/// Checks the definitions, or explains a code.
pub(crate) fn run(flags: &args::Lint) -> Result<Verdict, Problem> {
    if let Some(code) = &flags.explain {
        return explain(code);
    }
    let (sources, mut problems) = files::find(flags.paths.iter().chain(&flags.filename).chain(&flags.crds));
    let linter = Linter {
        flags,
        environments: Environments::of(flags.target.kubernetes_version),
    };
    let checked: Vec<_> = sources.par_iter().map(|source| linter.file(source)).collect();
    let mut items = Vec::new();
    for (found, more) in checked {
        items.extend(found);
        problems.extend(more);
    }
    if items.is_empty() && problems.is_empty() {
        problems.push(Problem::plain("there is no definition among the inputs"));
    }
    let report = LintReport {
        kind: "LintReport",
        items,
    };
    render::print(&report, &flags.output)?;
    for problem in &problems {
        problem.print();
    }
    Ok(if !problems.is_empty() {
        Verdict::Unreadable
    } else if report.items.iter().all(|item| item.accepted) {
        Verdict::Well
    } else {
        Verdict::Findings
    })
}

fn explain(code: &str) -> Result<Verdict, Problem> {
    match pages::PAGES.iter().find(|(c, _)| c.eq_ignore_ascii_case(code)) {
        Some((code, page)) => {
            render::write(&format!("{code}: {page}"))?;
            Ok(Verdict::Well)
        }
        None => {
            let known: Vec<&str> = pages::PAGES.iter().map(|(code, _)| *code).collect();
            let hint = format!("known codes are {}", known.join(", "));
            Problem::plain(format!("there is no code {code}"))
                .hint(hint)
                .print();
            Ok(Verdict::Usage)
        }
    }
}

#[derive(Debug, Serialize)]
struct LintReport {
    kind: &'static str,
    items: Vec<Item>,
}

/// What became of one definition.
#[derive(Debug, Serialize)]
struct Item {
    file: Arc<str>,
    name: String,
    accepted: bool,
    errors: Vec<Issue>,
    warnings: Vec<String>,
    advice: Vec<Advice>,
}

impl Report for LintReport {
    const COMMAND: &'static str = "lint";

    fn subjects(&self) -> Vec<Subject> {
        self.items.iter().map(Item::subject).collect()
    }

    fn summary(&self) -> String {
        let refused = self.items.iter().filter(|i| !i.accepted).count();
        let advice: usize = self.items.iter().map(|i| i.advice.len()).sum();
        format!(
            "{} definitions: {refused} refused, {advice} pieces of advice",
            self.items.len()
        )
    }
}

impl Item {
    fn subject(&self) -> Subject {
        let errors = self.errors.iter().map(Finding::error);
        let warnings = self.warnings.iter().map(|w| Finding::warning(w));
        let advice = self.advice.iter().map(|a| Finding {
            level: Level::Advice,
            code: a.code.to_owned(),
            text: format!("{}: {}", a.field, a.message),
            place: a.place.clone(),
            notes: Vec::new(),
        });
        Subject {
            file: Arc::clone(&self.file),
            name: self.name.clone(),
            findings: errors.chain(warnings).chain(advice).collect(),
            outcome: "accepted".to_owned(),
            body: None,
        }
    }
}

struct Linter<'a> {
    flags: &'a args::Lint,
    environments: Environments,
}

impl Linter<'_> {
    fn file(&self, source: &Source) -> (Vec<Item>, Vec<Problem>) {
        let bytes = match source.read() {
            Ok(bytes) => bytes,
            Err(problem) => return (Vec::new(), vec![problem]),
        };
        let (documents, mut problems) = input::documents(&source.name, &bytes);
        let mut items = Vec::new();
        for document in &documents {
            match document.objects(&source.name) {
                Ok(objects) => {
                    let definitions = objects.into_iter().filter(Object::is_definition);
                    items.extend(definitions.map(|object| self.definition(source, document, object)));
                }
                Err(problem) => problems.push(problem),
            }
        }
        (items, problems)
    }

    fn definition(&self, source: &Source, document: &Document<'_>, object: Object) -> Item {
        let mut item = Item {
            file: Arc::clone(&source.name),
            name: object.name().to_owned(),
            accepted: false,
            errors: Vec::new(),
            warnings: object.found_in_text.clone(),
            advice: Vec::new(),
        };
        let (index, sent) = (object.index, object.value.clone());
        let entry = match catalog::entry(source, object, self.flags.target) {
            Ok(entry) => entry,
            Err(why) => {
                item.errors.push(Issue {
                    field: String::new(),
                    reason: "BadRequest".to_owned(),
                    message: why,
                    place: None,
                    old: None,
                });
                return item;
            }
        };
        item.warnings.extend(
            entry
                .unknown
                .iter()
                .map(|field| format!("unknown field \"{field}\"")),
        );
        let setting = Setting {
            api: entry.api,
            gates: self.flags.target.feature_gates,
            environments: &self.environments,
        };
        match Accepted::create(entry.definition.clone(), &setting) {
            Ok(acceptance) => {
                item.accepted = true;
                item.warnings.extend(acceptance.warnings);
            }
            Err(errors) => {
                let paths: Vec<_> = errors
                    .iter()
                    .map(|e| path_in(&written(e.field(), &sent), &sent))
                    .collect();
                let places = locate(document, index, &paths);
                item.errors = errors
                    .iter()
                    .zip(places)
                    .map(|(e, place)| Issue::new(e, place))
                    .collect();
            }
        }
        item.advice = advice::of(&entry.definition, &self.environments);
        let paths: Vec<_> = item.advice.iter().map(|a| path_in(&a.field, &sent)).collect();
        for (advice, place) in item.advice.iter_mut().zip(locate(document, index, &paths)) {
            advice.place = place;
        }
        item
    }
}

/// A field as it was written: what all versions share is told at the top, wherever it stands.
fn written(field: &str, sent: &Value) -> String {
    match field.strip_prefix("spec.validation") {
        Some(rest) if sent.at(["spec", "validation"]).is_none() => format!("spec.versions[0].schema{rest}"),
        _ => field.to_owned(),
    }
}
