//! `scantling cost`: the estimated cost of rules, and bounds that bring it below the limit.

mod measure;

use crate::args;
use crate::catalog::{Catalog, CatalogEntry, CrdTexts, OtherObjects};
use crate::cluster;
use crate::files;
use crate::locate::Location;
use crate::problem::{ExitStatus, Problem, note};
use crate::render::{self, Report};
use crate::report::{CostRow, Finding, ReportItem, ReportSubject, Severity, count};
use crate::rules::{
    self, Bound, BoundHint, EstimatedRule, RULE_LIMIT, Remedy, SCHEMA_LIMIT, field_path, schema_path,
};
use crate::walk;
use measure::{Measured, Measurements};
use rayon::prelude::*;
use scantling_schema::document::Schema;
use scantling_schema::structural::Interner;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

/// Estimates the cost of rules, and measures it if there are objects.
pub(crate) fn run(flags: &args::Cost) -> Result<ExitStatus, Problem> {
    let begun = Instant::now();
    let (sources, mut problems) =
        files::find_schemas(flags.definitions.iter().chain(&flags.crds), &flags.read);
    let mut catalog = Catalog::new(flags.target, CrdTexts::Kept);
    problems.extend(catalog.load(&sources, OtherObjects::Listed));
    let (objects, more) = files::find(&flags.filename, &flags.read);
    problems.extend(more);
    let cluster = cluster::asked_for(&flags.cluster)?;
    let Estimate {
        mut items,
        mut schemas,
        problems: more,
    } = estimate(&catalog);
    problems.extend(more);
    if !flags.from.is_empty() {
        let (sources, more) = files::find_schemas(&flags.from, &flags.read);
        problems.extend(more);
        // Texts are kept only for locations, and earlier CRDs get none.
        let mut earlier = Catalog::new(flags.target, CrdTexts::Dropped);
        problems.extend(earlier.load(&sources, OtherObjects::Listed));
        compare(&mut items, &mut schemas, &estimate(&earlier));
    }
    for item in &mut items {
        item.budget = flags.budget;
    }
    for schema in &mut schemas {
        schema.budget = flags.budget;
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
    let all: Vec<_> = sources.into_iter().chain(objects).collect();
    let (problems, skipped) = walk::skip_other_files(problems, &all);
    let summary = CostSummary::new(catalog.entries().len(), &items, &schemas);
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
        for file in &skipped {
            note(&format!("{}: skipped: {}", file.file, file.reason));
        }
    }
    let line = summary.line(begun);
    report.end(flags.output.shows_summary().then_some((line.as_str(), &summary)))?;
    if items.is_empty() && problems.is_empty() && !flags.output.quiet {
        note("no CRD has rules");
    }
    let failed = items.iter().any(RuleCost::fails) || schemas.iter().any(SchemaCost::fails);
    Ok(ExitStatus::after(failed, &problems))
}

/// Estimates the rules of all CRDs.
fn estimate(catalog: &Catalog) -> Estimate {
    let each: Vec<Estimate> = catalog
        .entries()
        .par_iter()
        .map(|entry| definition(entry, catalog))
        .collect();
    let mut all = Estimate::default();
    for one in each {
        all.items.extend(one.items);
        all.schemas.extend(one.schemas);
        all.problems.extend(one.problems);
    }
    all
}

/// Adds the costs in earlier CRDs. A rule is the same if its expression and field are.
fn compare(items: &mut [RuleCost], schemas: &mut [SchemaCost], earlier: &Estimate) {
    // The index is not part of the key: a rule inserted above another does not change the other.
    let rule = |r: &RuleCost| (r.name.clone(), r.version.clone(), r.path.clone(), r.rule.clone());
    let schema = |s: &SchemaCost| (s.name.clone(), s.version.clone());
    let rules: BTreeMap<_, u64> = earlier.items.iter().map(|r| (rule(r), r.total_cost)).collect();
    let totals: BTreeMap<_, u64> = earlier
        .schemas
        .iter()
        .map(|s| (schema(s), s.total_cost))
        .collect();
    for item in items {
        // `Some(None)` marks a new rule; without `--from` the field stays absent from the report.
        item.previous = Some(rules.get(&rule(item)).copied());
    }
    for item in schemas {
        item.previous = Some(totals.get(&schema(item)).copied());
    }
}

/// The cost of a rule.
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
    /// The maximum number of evaluations.
    evaluations: u64,
    message_expression_cost: u64,
    error: String,
    uses_old_self: bool,
    /// The maximum cost of all evaluations.
    total_cost: u64,
    /// The same as a share of the limit for one rule.
    rule_share: f64,
    /// The same as a share of the limit for all rules of a schema.
    schema_share: f64,
    /// The total cost in earlier CRDs: absent without `--from`, null for a new rule.
    #[serde(rename = "previousTotalCost", skip_serializing_if = "Option::is_none")]
    previous: Option<Option<u64>>,
    #[serde(skip)]
    budget: Option<f64>,
    /// The field of the kind: `spec.rules[].filters[].type`.
    at: String,
    /// The lists, maps and strings without a bound that a rule over its limit reads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unbounded: Vec<MissingBound>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hints: Vec<BoundAdvice>,
    /// The measured cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    measured: Option<Measured>,
    file: Arc<str>,
    #[serde(flatten)]
    location: Option<Location>,
}

/// Bounds with which a rule is below its limit.
#[derive(Debug, Serialize)]
struct BoundAdvice {
    /// The bounds to set or lower.
    bounds: Vec<MissingBound>,
    /// The largest value of each with which the rule is below its limit.
    value: u64,
}

#[derive(Debug, Serialize)]
struct MissingBound {
    path: String,
    /// The field of the kind.
    at: String,
    keyword: &'static str,
    /// The current value.
    #[serde(skip_serializing_if = "Option::is_none")]
    now: Option<u64>,
}

impl From<Bound> for MissingBound {
    fn from(bound: Bound) -> Self {
        MissingBound {
            path: schema_path(&bound.at),
            at: field_path(&bound.at),
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

/// The cost of all rules of a version.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SchemaCost {
    name: String,
    version: String,
    total_cost: u64,
    share: f64,
    #[serde(rename = "previousTotalCost", skip_serializing_if = "Option::is_none")]
    previous: Option<Option<u64>>,
    #[serde(skip)]
    budget: Option<f64>,
    file: Arc<str>,
    /// The location of the schema.
    #[serde(flatten)]
    location: Option<Location>,
}

/// The estimated rules of CRDs.
#[derive(Debug, Default)]
struct Estimate {
    items: Vec<RuleCost>,
    /// The sums over the rules of each version.
    schemas: Vec<SchemaCost>,
    /// The versions whose rules cannot be estimated.
    problems: Vec<Problem>,
}

/// Estimates the rules of a CRD, version by version.
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
        // A private interner: CRDs are estimated in parallel, and pointers are not compared across versions here.
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
            // The search compiles the rule many times, so only rules that a cluster refuses are worth it.
            let remedy = if rule.total > RULE_LIMIT {
                rules::remedy(&structural, &rule, catalog.environments())
            } else {
                Remedy::default()
            };
            let mut item = RuleCost::new(entry, &version.name, rule);
            item.unbounded = remedy.unbounded.into_iter().map(MissingBound::from).collect();
            item.hints = remedy.hints.into_iter().map(BoundAdvice::from).collect();
            fields.push(format!(
                // The order is that of `items`, because the locations are assigned to them by position below.
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
    // All fields in one lookup, because each lookup parses the text once.
    fields.extend(roots);
    let mut locations = entry.locations(&fields).into_iter();
    for item in items {
        item.location = locations.next().flatten();
    }
    for schema in schemas {
        schema.location = locations.next().flatten();
    }
    estimate
}

impl SchemaCost {
    fn fails(&self) -> bool {
        self.total_cost > SCHEMA_LIMIT || self.is_over_budget()
    }

    fn is_over_budget(&self) -> bool {
        self.budget.is_some_and(|budget| self.share > budget)
    }

    fn new(entry: &CatalogEntry, version: &str, rules: &[RuleCost]) -> Self {
        // kube-apiserver sums with an overflow guard as well, so a saturated sum is over every limit.
        let total_cost = rules.iter().fold(0u64, |sum, r| sum.saturating_add(r.total_cost));
        SchemaCost {
            name: entry.definition.name().to_owned(),
            version: version.to_owned(),
            total_cost,
            share: total_cost as f64 / SCHEMA_LIMIT as f64,
            previous: None,
            budget: None,
            file: Arc::clone(&entry.file),
            location: None,
        }
    }
}

/// Formats the earlier cost.
fn previous(cost: Option<Option<u64>>) -> String {
    match cost {
        None => String::new(),
        Some(None) => " (new)".to_owned(),
        Some(Some(cost)) => format!(" (was {cost})"),
    }
}

impl RuleCost {
    fn new(entry: &CatalogEntry, version: &str, rule: EstimatedRule) -> Self {
        let share = |limit: u64| rule.total as f64 / limit as f64;
        RuleCost {
            name: entry.definition.name().to_owned(),
            version: version.to_owned(),
            path: schema_path(&rule.at),
            at: field_path(&rule.at),
            previous: None,
            budget: None,
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
            location: None,
        }
    }

    fn fails(&self) -> bool {
        self.total_cost > RULE_LIMIT || !self.error.is_empty() || self.is_over_budget()
    }

    fn is_over_budget(&self) -> bool {
        self.budget.is_some_and(|budget| self.rule_share > budget)
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
        let change = previous(self.previous);
        format!(
            "costs {} × {} = {}: {} of a rule's limit{change}: {}{measured}",
            self.cost,
            count(
                usize::try_from(self.evaluations).unwrap_or(usize::MAX),
                "evaluation"
            ),
            self.total_cost,
            percent(self.rule_share),
            self.rule
        )
    }
}

impl ReportItem for RuleCost {
    fn subject(&self) -> ReportSubject {
        let mut findings = Vec::new();
        if !self.error.is_empty() {
            findings.push(error("CompileError", self.error.clone(), self.location.as_ref()));
        } else if self.total_cost > RULE_LIMIT {
            let unbounded = self.unbounded.iter().map(|limit| {
                let MissingBound { at, keyword, .. } = limit;
                format!("{} has no {keyword}", named(at))
            });
            let notes = unbounded
                .chain(self.hints.iter().map(BoundAdvice::description))
                .collect();
            findings.push(Finding {
                notes,
                ..error("CostLimit", self.line(), self.location.as_ref())
            });
        } else if self.is_over_budget() {
            let text = format!(
                "over the budget of {:.0}%: {}",
                self.budget.unwrap_or_default() * 100.0,
                self.line()
            );
            findings.push(error("CostBudget", text, self.location.as_ref()));
        }
        ReportSubject {
            file: Arc::clone(&self.file),
            location: self.location.clone(),
            name: format!(
                "{} {} {} rule {}",
                self.name,
                self.version,
                named(&self.at),
                self.index
            ),
            findings,
            outcome: self.line(),
            cost: Some(CostRow {
                share: self.rule_share,
                total: self.total_cost,
                previous: self.previous,
                at: format!("{} {} {}", self.name, self.version, self.at),
                rule: self.rule.clone(),
            }),
            ..ReportSubject::default()
        }
    }
}

impl ReportItem for SchemaCost {
    fn subject(&self) -> ReportSubject {
        let line = format!(
            "all rules together cost {}: {} of a schema's limit{}",
            self.total_cost,
            percent(self.share),
            previous(self.previous)
        );
        let findings = if self.total_cost > SCHEMA_LIMIT {
            vec![error("CostLimit", line.clone(), self.location.as_ref())]
        } else if self.is_over_budget() {
            let text = format!(
                "over the budget of {:.0}%: {line}",
                self.budget.unwrap_or_default() * 100.0
            );
            vec![error("CostBudget", text, self.location.as_ref())]
        } else {
            Vec::new()
        };
        ReportSubject {
            file: Arc::clone(&self.file),
            location: self.location.clone(),
            name: format!("{} {}", self.name, self.version),
            findings,
            outcome: line,
            ..ReportSubject::default()
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CostSummary {
    definitions: usize,
    rules: usize,
    over_limit: usize,
    broken: usize,
    /// The number of rules and schemas over the budget.
    over_budget: usize,
}

impl CostSummary {
    fn new(definitions: usize, items: &[RuleCost], schemas: &[SchemaCost]) -> Self {
        let rules = items.iter().filter(|i| i.is_over_budget()).count();
        CostSummary {
            definitions,
            rules: items.len(),
            over_limit: items.iter().filter(|i| i.total_cost > RULE_LIMIT).count(),
            broken: items.iter().filter(|i| !i.error.is_empty()).count(),
            over_budget: rules + schemas.iter().filter(|s| s.is_over_budget()).count(),
        }
    }

    fn line(&self, begun: Instant) -> String {
        let mut line = format!(
            "{}, {}: {} over the limit, {} that do not compile",
            count(self.definitions, "CRD"),
            count(self.rules, "rule"),
            self.over_limit,
            self.broken
        );
        if self.over_budget > 0 {
            line.push_str(&format!(", {} over the budget", self.over_budget));
        }
        line + &render::elapsed(begun)
    }
}

fn error(code: &str, text: String, location: Option<&Location>) -> Finding {
    Finding::new(Severity::Error, code, text, location)
}

/// Formats a share.
fn percent(share: f64) -> String {
    // Beyond this, the number says only that the rule has no bound at all.
    if share > 100.0 {
        "more than 100 times".to_owned()
    } else {
        format!("{:.1}%", share * 100.0)
    }
}

fn named(path: &str) -> &str {
    if path.is_empty() { "the root" } else { path }
}

impl BoundAdvice {
    fn description(&self) -> String {
        let bound = |b: &MissingBound| {
            let now = b.now.map(|now| format!(" (now {now})")).unwrap_or_default();
            format!("{}{now} at {}", b.keyword, named(&b.at))
        };
        let bounds: Vec<String> = self.bounds.iter().map(bound).collect();
        format!(
            "it fits the limit with {} of at most {}",
            bounds.join(" and "),
            self.value
        )
    }
}
