//! `scantling cost`: what the rules of definitions cost, and which bounds would make them fit.

mod measure;

use crate::args;
use crate::catalog::{Catalog, CatalogEntry, OtherObjects, Texts};
use crate::cluster;
use crate::files;
use crate::locate::Location;
use crate::problem::{ExitStatus, Problem};
use crate::render::Report;
use crate::report::{Finding, ReportItem, ReportSubject, Severity, count};
use crate::rules::{self, Bound, BoundHint, EstimatedRule, RULE_LIMIT, Remedy, SCHEMA_LIMIT, schema_path};
use measure::{Measured, Measurements};
use rayon::prelude::*;
use scantling_schema::document::Schema;
use scantling_schema::structural::Interner;
use serde::Serialize;
use std::sync::Arc;

/// Estimates the rules, and measures them where there are objects.
pub(crate) fn run(flags: &args::Cost) -> Result<ExitStatus, Problem> {
    let (sources, mut problems) = files::find(flags.definitions.iter().chain(&flags.crds), flags.limits);
    let mut catalog = Catalog::new(flags.target, Texts::Kept);
    problems.extend(catalog.load(&sources, OtherObjects::Listed));
    let (objects, more) = files::find(&flags.filename, flags.limits);
    problems.extend(more);
    let cluster = cluster::asked_for(&flags.cluster)?;
    let estimated: Vec<_> = catalog
        .entries()
        .par_iter()
        .map(|entry| definition(entry, &catalog))
        .collect();
    let (mut items, mut schemas) = (Vec::new(), Vec::new());
    for estimated in estimated {
        items.extend(estimated.items);
        schemas.extend(estimated.schemas);
        problems.extend(estimated.problems);
    }
    let mut measurements = Measurements::default();
    problems.extend(measurements.measure_files(&catalog, &objects, flags.target));
    if let Some(cluster) = &cluster {
        problems.extend(measurements.measure_cluster(&catalog, cluster, flags.target));
    }
    let measured = !objects.is_empty() || cluster.is_some();
    if measured {
        for item in &mut items {
            item.measured = Some(measurements.rule(&item.name, &item.version, &item.path, item.index));
        }
    }
    let summary = CostSummary::new(&items);
    let mut report = Report::begin("CostReport", "cost", &flags.output);
    report.section("items");
    for item in &items {
        report.write_item(item)?;
    }
    report.write_problems(&problems)?;
    report.section("schemas");
    for schema in &schemas {
        report.write_item(schema)?;
    }
    if measured {
        report.section("objects");
        for object in &measurements.objects {
            report.write_item(object)?;
        }
    }
    if flags.output.verbose {
        catalog.note_skipped();
    }
    let line = summary.line();
    report.end(flags.output.summary.then_some((line.as_str(), &summary)))?;
    let over = schemas.iter().any(|schema| schema.total_cost > SCHEMA_LIMIT);
    Ok(ExitStatus::after(
        over || items.iter().any(RuleCost::is_flawed),
        &problems,
    ))
}

/// A rule of a version of a definition.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleCost {
    name: String,
    version: String,
    path: String,
    index: usize,
    rule: String,
    cost: u64,
    cardinality: u64,
    /// How often the rule is evaluated at most.
    evaluations: u64,
    message_expression_cost: u64,
    error: String,
    uses_old_self: bool,
    /// What all evaluations together cost at most.
    total_cost: u64,
    /// The same as a share of the limit for one rule.
    rule_share: f64,
    /// The same as a share of the limit for all rules of a schema.
    schema_share: f64,
    /// The lists, maps and strings without a bound that a rule over its limit looks at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unbounded: Vec<MissingBound>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hints: Vec<BoundAdvice>,
    /// What it cost for the objects that it ran for.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Measured>,
    file: Arc<str>,
    #[serde(flatten)]
    place: Option<Location>,
}

/// Bounds to set, so that a rule fits into its limit.
#[derive(Debug, Serialize)]
struct BoundAdvice {
    /// What needs a bound, or a smaller one.
    bounds: Vec<MissingBound>,
    /// The largest value of each with which the rule fits.
    value: u64,
}

#[derive(Debug, Serialize)]
struct MissingBound {
    path: String,
    keyword: &'static str,
    /// What it is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<u64>,
}

impl From<Bound> for MissingBound {
    fn from(bound: Bound) -> Self {
        MissingBound {
            path: schema_path(&bound.at),
            keyword: bound.keyword,
            now: bound.now,
        }
    }
}

impl From<BoundHint> for BoundAdvice {
    fn from(hint: BoundHint) -> Self {
        BoundAdvice {
            bounds: hint.bounds.into_iter().map(MissingBound::from).collect(),
            value: hint.value,
        }
    }
}

/// All rules of a version together.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SchemaCost {
    name: String,
    version: String,
    total_cost: u64,
    share: f64,
    file: Arc<str>,
    /// Where the schema stands.
    #[serde(flatten)]
    place: Option<Location>,
}

/// The estimated rules of a definition.
#[derive(Debug, Default)]
struct Estimate {
    items: Vec<RuleCost>,
    /// The sums over the rules of each version.
    schemas: Vec<SchemaCost>,
    /// The versions whose rules cannot be estimated.
    problems: Vec<Problem>,
}

/// Estimates the rules of a definition, version by version.
fn definition(entry: &CatalogEntry, catalog: &Catalog) -> Estimate {
    let spec = &entry.definition.spec;
    let mut estimate = Estimate::default();
    let Estimate {
        items,
        schemas,
        problems,
    } = &mut estimate;
    let (mut fields, mut roots) = (Vec::new(), Vec::new());
    for (n, version) in spec.versions().iter().enumerate() {
        let Some(document) = spec.schema_of(version) else {
            continue;
        };
        let structural = match Schema::new(document).structural(&mut Interner::new()) {
            Ok(structural) => structural,
            Err(why) => {
                problems.push(entry.unusable(&format!("version {}: {why}", version.name)));
                continue;
            }
        };
        let root = entry.schema_field(n);
        let before = items.len();
        for rule in rules::rules(&structural, catalog.environments()) {
            let remedy = if rule.total > RULE_LIMIT {
                rules::remedy(document, &structural, &rule, catalog.environments())
            } else {
                Remedy::default()
            };
            let mut item = RuleCost::new(entry, &version.name, rule);
            item.unbounded = remedy.unbounded.into_iter().map(MissingBound::from).collect();
            item.hints = remedy.hints.into_iter().map(BoundAdvice::from).collect();
            fields.push(format!(
                "{root}{}.x-kubernetes-validations[{}]",
                item.path, item.index
            ));
            items.push(item);
        }
        let own = items.get(before..).unwrap_or_default();
        if !own.is_empty() {
            schemas.push(SchemaCost::new(entry, &version.name, own));
            roots.push(root);
        }
    }
    fields.extend(roots);
    let mut places = entry.places(&fields).into_iter();
    for item in items {
        item.place = places.next().flatten();
    }
    for schema in schemas {
        schema.place = places.next().flatten();
    }
    estimate
}

impl SchemaCost {
    fn new(entry: &CatalogEntry, version: &str, rules: &[RuleCost]) -> Self {
        let total_cost = rules.iter().fold(0u64, |sum, r| sum.saturating_add(r.total_cost));
        SchemaCost {
            name: entry.definition.name().to_owned(),
            version: version.to_owned(),
            total_cost,
            share: total_cost as f64 / SCHEMA_LIMIT as f64,
            file: Arc::clone(&entry.file),
            place: None,
        }
    }
}

impl RuleCost {
    fn new(entry: &CatalogEntry, version: &str, rule: EstimatedRule) -> Self {
        let share = |limit: u64| rule.total as f64 / limit as f64;
        RuleCost {
            name: entry.definition.name().to_owned(),
            version: version.to_owned(),
            path: schema_path(&rule.at),
            index: rule.index,
            cost: rule.cost,
            cardinality: rule.cardinality,
            evaluations: rule.evaluations,
            message_expression_cost: rule.message_cost,
            error: rule.error.unwrap_or_default(),
            uses_old_self: rule.uses_old_self,
            total_cost: rule.total,
            rule_share: share(RULE_LIMIT),
            schema_share: share(SCHEMA_LIMIT),
            rule: rule.text,
            unbounded: Vec::new(),
            hints: Vec::new(),
            measured: None,
            file: Arc::clone(&entry.file),
            place: None,
        }
    }

    fn is_flawed(&self) -> bool {
        self.total_cost > RULE_LIMIT || !self.error.is_empty()
    }

    /// The rule's own line of the text output.
    fn line(&self) -> String {
        let measured = match &self.measured {
            None => String::new(),
            Some(Measured { evaluations: 0, .. }) => "; it did not run".to_owned(),
            Some(m) => format!(
                "; measured {} in {} evaluations, {} at most",
                m.total_cost, m.evaluations, m.max_cost
            ),
        };
        format!(
            "costs {} × {} = {}: {:.1}% of a rule's limit: {}{measured}",
            self.cost,
            count(
                usize::try_from(self.evaluations).unwrap_or(usize::MAX),
                "evaluation"
            ),
            self.total_cost,
            self.rule_share * 100.0,
            self.rule
        )
    }
}

impl ReportItem for RuleCost {
    fn subject(&self) -> ReportSubject {
        let mut findings = Vec::new();
        if !self.error.is_empty() {
            findings.push(finding(
                "CompileError",
                self.error.clone(),
                Vec::new(),
                self.place.clone(),
            ));
        } else if self.total_cost > RULE_LIMIT {
            let unbounded = self.unbounded.iter().map(|limit| {
                let MissingBound { path, keyword, .. } = limit;
                format!("{} has no {keyword}", named(path))
            });
            let notes = unbounded
                .chain(self.hints.iter().map(BoundAdvice::description))
                .collect();
            findings.push(finding("CostLimit", self.line(), notes, self.place.clone()));
        }
        ReportSubject {
            file: Arc::clone(&self.file),
            place: self.place.clone(),
            name: format!("{} {} {}[{}]", self.name, self.version, self.path, self.index),
            findings,
            outcome: self.line(),
            details: Vec::new(),
            body: None,
        }
    }
}

impl ReportItem for SchemaCost {
    fn subject(&self) -> ReportSubject {
        let line = format!(
            "all rules together cost {}: {:.1}% of a schema's limit",
            self.total_cost,
            self.share * 100.0
        );
        let findings = if self.total_cost > SCHEMA_LIMIT {
            vec![finding("CostLimit", line.clone(), Vec::new(), self.place.clone())]
        } else {
            Vec::new()
        };
        ReportSubject {
            file: Arc::clone(&self.file),
            place: self.place.clone(),
            name: format!("{} {}", self.name, self.version),
            findings,
            outcome: line,
            details: Vec::new(),
            body: None,
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CostSummary {
    rules: usize,
    over_limit: usize,
    broken: usize,
}

impl CostSummary {
    fn new(items: &[RuleCost]) -> Self {
        CostSummary {
            rules: items.len(),
            over_limit: items.iter().filter(|i| i.total_cost > RULE_LIMIT).count(),
            broken: items.iter().filter(|i| !i.error.is_empty()).count(),
        }
    }

    fn line(&self) -> String {
        let CostSummary {
            rules,
            over_limit,
            broken,
        } = self;
        let rules = count(*rules, "rule");
        format!("{rules}: {over_limit} over the limit, {broken} that do not compile")
    }
}

fn finding(code: &str, text: String, notes: Vec<String>, place: Option<Location>) -> Finding {
    Finding {
        level: Severity::Error,
        code: code.to_owned(),
        text,
        place,
        notes,
    }
}

fn named(path: &str) -> &str {
    if path.is_empty() { "the root" } else { path }
}

impl BoundAdvice {
    fn description(&self) -> String {
        let bound = |b: &MissingBound| {
            let now = b.now.map(|now| format!(" (now {now})")).unwrap_or_default();
            format!("{}{now} at {}", b.keyword, named(&b.path))
        };
        let bounds: Vec<String> = self.bounds.iter().map(bound).collect();
        format!("it fits with {} of at most {}", bounds.join(" and "), self.value)
    }
}
