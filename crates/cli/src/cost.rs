//! `scantling cost`: what the rules of definitions cost, and which bounds would make them fit.

use crate::args;
use crate::catalog::{Catalog, Entry, OtherObjects};
use crate::files;
use crate::problem::{Problem, Verdict};
use crate::render;
use crate::report::{Finding, Level, Report, Subject};
use crate::rules::{self, Hint, RULE_LIMIT, Rule, SCHEMA_LIMIT, spell};
use rayon::prelude::*;
use scantling_schema::document::Schema;
use scantling_schema::structural::Interner;
use serde::Serialize;
use std::sync::Arc;

/// Estimates the rules.
pub(crate) fn run(flags: &args::Cost) -> Result<Verdict, Problem> {
    let (sources, mut problems) = files::find(flags.definitions.iter().chain(&flags.crds));
    let mut catalog = Catalog::new(flags.target);
    problems.extend(catalog.load(&sources, OtherObjects::Unexpected));
    let items: Vec<Item> = catalog
        .entries()
        .par_iter()
        .flat_map_iter(|entry| definition(entry, &catalog))
        .collect();
    let objects = if flags.filename.is_empty() {
        Vec::new()
    } else {
        let (sources, more) = files::find(&flags.filename);
        problems.extend(more);
        let (measured, more) = crate::validate::measure(&catalog, &sources, flags.target);
        problems.extend(more);
        measured
    };
    let report = CostReport {
        kind: "CostReport",
        items,
        objects,
    };
    render::print(&report, &flags.output)?;
    for problem in &problems {
        problem.print();
    }
    Ok(if !problems.is_empty() {
        Verdict::Unreadable
    } else if report.items.iter().any(Item::is_flawed) {
        Verdict::Findings
    } else {
        Verdict::Well
    })
}

#[derive(Debug, Serialize)]
struct CostReport {
    kind: &'static str,
    items: Vec<Item>,
    /// What the rules cost that ran for objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    objects: Vec<Measured>,
}

/// What the rules of an object cost.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Measured {
    pub(crate) file: Arc<str>,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) cel_cost: u64,
}

/// A rule of a version of a definition.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    name: String,
    version: String,
    path: String,
    index: usize,
    rule: String,
    cost: u64,
    cardinality: u64,
    message_expression_cost: u64,
    error: String,
    uses_old_self: bool,
    /// What all evaluations together cost at most.
    total_cost: u64,
    /// The same as a share of the limit for one rule.
    rule_share: f64,
    /// The same as a share of the limit for all rules of a schema.
    schema_share: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hints: Vec<Advice>,
    #[serde(skip)]
    file: Arc<str>,
}

/// Bounds to set, so that a rule fits into its limit.
#[derive(Debug, Serialize)]
struct Advice {
    /// The schemas that lack a bound.
    bounds: Vec<Bound>,
    /// The largest value of each with which the rule fits.
    value: u64,
}

#[derive(Debug, Serialize)]
struct Bound {
    path: String,
    keyword: &'static str,
}

impl From<Hint> for Advice {
    fn from(hint: Hint) -> Self {
        let bound = |m: rules::Missing| Bound {
            path: spell(&m.at),
            keyword: m.keyword,
        };
        Advice {
            bounds: hint.bounds.into_iter().map(bound).collect(),
            value: hint.value,
        }
    }
}

fn definition(entry: &Entry, catalog: &Catalog) -> Vec<Item> {
    let spec = &entry.definition.spec;
    let mut items = Vec::new();
    for version in spec.versions() {
        let Some(document) = spec.schema_of(version) else {
            continue;
        };
        let Ok(structural) = Schema::new(document).structural(&mut Interner::new()) else {
            continue;
        };
        for rule in rules::rules(&structural, catalog.environments()) {
            let hints = if rule.total > RULE_LIMIT {
                rules::hints(document, &structural, &rule, catalog.environments())
            } else {
                Vec::new()
            };
            let mut item = Item::new(entry, &version.name, rule);
            item.hints = hints.into_iter().map(Advice::from).collect();
            items.push(item);
        }
    }
    items
}

impl Item {
    fn new(entry: &Entry, version: &str, rule: Rule) -> Self {
        let share = |limit: u64| rule.total as f64 / limit as f64;
        Item {
            name: entry.definition.name().to_owned(),
            version: version.to_owned(),
            path: spell(&rule.at),
            index: rule.index,
            cost: rule.cost,
            cardinality: rule.cardinality,
            message_expression_cost: rule.message_cost,
            error: rule.error.unwrap_or_default(),
            uses_old_self: rule.uses_old_self,
            total_cost: rule.total,
            rule_share: share(RULE_LIMIT),
            schema_share: share(SCHEMA_LIMIT),
            rule: rule.text,
            hints: Vec::new(),
            file: Arc::clone(&entry.file),
        }
    }

    fn is_flawed(&self) -> bool {
        self.total_cost > RULE_LIMIT || !self.error.is_empty()
    }

    /// The rule's own line of the text output.
    fn line(&self) -> String {
        format!(
            "costs {} each, {} in all: {:.1}% of a rule's limit: {}",
            self.cost,
            self.total_cost,
            self.rule_share * 100.0,
            self.rule
        )
    }
}

impl Report for CostReport {
    const COMMAND: &'static str = "cost";

    fn subjects(&self) -> Vec<Subject> {
        let rules = self.items.iter().map(|item| {
            let mut findings = Vec::new();
            if !item.error.is_empty() {
                findings.push(finding("CompileError", item.error.clone(), Vec::new()));
            } else if item.total_cost > RULE_LIMIT {
                let notes = item.hints.iter().map(Advice::text).collect();
                findings.push(finding("CostLimit", item.line(), notes));
            }
            Subject {
                file: Arc::clone(&item.file),
                name: format!("{} {} {}[{}]", item.name, item.version, item.path, item.index),
                findings,
                outcome: item.line(),
                body: None,
            }
        });
        let objects = self.objects.iter().map(|o| Subject {
            file: Arc::clone(&o.file),
            name: format!("{} {}/{}", o.kind, o.namespace, o.name),
            findings: Vec::new(),
            outcome: format!("the rules that ran cost {}", o.cel_cost),
            body: None,
        });
        rules.chain(objects).collect()
    }

    fn summary(&self) -> String {
        let over = self.items.iter().filter(|i| i.total_cost > RULE_LIMIT).count();
        let broken = self.items.iter().filter(|i| !i.error.is_empty()).count();
        format!(
            "{} rules: {over} over the limit, {broken} that do not compile",
            self.items.len()
        )
    }
}

fn finding(code: &str, text: String, notes: Vec<String>) -> Finding {
    Finding {
        level: Level::Error,
        code: code.to_owned(),
        text,
        place: None,
        notes,
    }
}

impl Advice {
    fn text(&self) -> String {
        let bounds: Vec<String> = self
            .bounds
            .iter()
            .map(|b| {
                format!(
                    "{} at {}",
                    b.keyword,
                    if b.path.is_empty() { "the root" } else { &b.path }
                )
            })
            .collect();
        format!("it fits with {} of at most {}", bounds.join(" and "), self.value)
    }
}
