//! The rules of a schema: their estimated costs, and bounds that would lower them.

use scantling_schema::rules::{Environments, Expression, PreviouslyAccepted, Shapes, VisibleShape, compile};
use scantling_schema::structural::{Additional, Structural, Type};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// The maximum estimated cost of an expression, over all values it may be evaluated for.
pub(crate) const RULE_LIMIT: u64 = 10_000_000;
/// The maximum estimated cost of all expressions of a schema.
pub(crate) const SCHEMA_LIMIT: u64 = 100_000_000;

/// A step from a schema to one below it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SchemaStep {
    /// `.properties[name]`
    Property(String),
    /// `.items`
    Items,
    /// `.additionalProperties`
    Additional,
}

impl SchemaStep {
    /// Returns the schema that the step leads to.
    pub(crate) fn below<'s>(&self, schema: &'s Structural) -> Option<&'s Arc<Structural>> {
        match self {
            SchemaStep::Property(name) => schema.property(name),
            SchemaStep::Items => schema.items.as_ref(),
            SchemaStep::Additional => schema.additional_schema(),
        }
    }
}

/// Returns the field that steps lead to, as users write it: `spec.rules[].filters[].type`. The root is empty.
pub(crate) fn field_path(steps: &[SchemaStep]) -> String {
    let mut out = String::new();
    for step in steps {
        match step {
            SchemaStep::Property(name) if name.contains(['.', '[', ']']) => {
                // Writing to a string cannot fail.
                let _ = write!(out, "['{name}']");
            }
            SchemaStep::Property(name) => {
                let dot = if out.is_empty() { "" } else { "." };
                let _ = write!(out, "{dot}{name}");
            }
            SchemaStep::Items | SchemaStep::Additional => out.push_str("[]"),
        }
    }
    out
}

/// Returns the path of steps in a schema, as the JSON contract has it: `.properties[spec].items`.
pub(crate) fn schema_path(steps: &[SchemaStep]) -> String {
    let mut out = String::new();
    for step in steps {
        let _ = match step {
            SchemaStep::Property(name) => write!(out, ".properties[{name}]"),
            SchemaStep::Items => write!(out, ".items"),
            SchemaStep::Additional => write!(out, ".additionalProperties"),
        };
    }
    out
}

/// A rule and its estimated cost.
#[derive(Clone, Debug)]
pub(crate) struct EstimatedRule {
    /// The schema that has the rule.
    pub(crate) at: Vec<SchemaStep>,
    /// Its index in the list of rules.
    pub(crate) index: usize,
    /// The expression.
    pub(crate) text: String,
    /// True if it has a message.
    pub(crate) has_message: bool,
    /// The maximum estimated cost of one evaluation.
    pub(crate) cost: u64,
    /// The estimator's bound on the number of values in one request, wherever the rule is.
    pub(crate) cardinality: u64,
    /// The maximum number of evaluations.
    pub(crate) evaluations: u64,
    /// The maximum cost of all evaluations, to which the limits apply.
    pub(crate) total: u64,
    /// The cost of its message expression.
    pub(crate) message_cost: u64,
    /// The compile error, if any.
    pub(crate) error: Option<String>,
    /// True if it reads the old value.
    pub(crate) uses_old_self: bool,
}

/// All rules of a schema, from the root down.
pub(crate) fn rules(schema: &Arc<Structural>, environments: &Environments) -> Vec<EstimatedRule> {
    let mut collector = RuleCollector {
        environments,
        shapes: Shapes::new(),
        with_rules: BTreeMap::new(),
        at: Vec::new(),
        found: Vec::new(),
    };
    collector.node(schema, None, Some(1));
    collector.found
}

struct RuleCollector<'a> {
    environments: &'a Environments,
    shapes: Shapes,
    /// The schemas by address, and whether they or their descendants have rules.
    with_rules: BTreeMap<usize, bool>,
    at: Vec<SchemaStep>,
    found: Vec<EstimatedRule>,
}

impl RuleCollector<'_> {
    fn has_rules(&mut self, schema: &Arc<Structural>) -> bool {
        if !schema.rules.is_empty() {
            return true;
        }
        // Shared subschemas are searched once. Addresses identify them, because the root keeps all of them alive.
        let address = Arc::as_ptr(schema).addr();
        if let Some(known) = self.with_rules.get(&address) {
            return *known;
        }
        let properties = schema.properties.iter().map(|(_, property)| property);
        let mut below = properties.chain(&schema.items).chain(schema.additional_schema());
        let has_rules = below.any(|schema| self.has_rules(schema));
        self.with_rules.insert(address, has_rules);
        has_rules
    }

    /// Visits a schema. `view` is the view of rules above it, if there are any.
    fn node(&mut self, schema: &Arc<Structural>, view: Option<VisibleShape>, times: Option<u64>) {
        if !self.has_rules(schema) {
            return;
        }
        // A view begins at the topmost rule: schemas above it need no CEL types, which are expensive to build.
        let view = match view {
            None if schema.rules.is_empty() => None,
            // The root has the type of a resource: `metadata` has a fixed type whatever the schema declares.
            None if self.at.is_empty() => Some(VisibleShape::of_resource(schema, &mut self.shapes)),
            None => Some(VisibleShape::of_schema(schema, &mut self.shapes)),
            view => view,
        };
        if let Some(shape) = view.as_ref().and_then(VisibleShape::shape)
            && !schema.rules.is_empty()
        {
            // As for a new CRD. Rules of stored CRDs compile with laxer environments, which would hide an error.
            let compiled = compile(&schema.rules, shape, self.environments, PreviouslyAccepted::None);
            for (index, (rule, compiled)) in schema.rules.iter().zip(&compiled).enumerate() {
                let cost = |e: &Option<Result<Expression, String>>| match e {
                    Some(Ok(expression)) => expression.max_cost,
                    _ => 0,
                };
                let error = |e: &Option<Result<Expression, String>>| e.as_ref()?.as_ref().err().cloned();
                let once = cost(&compiled.rule);
                // As kube-apiserver does: an unbounded list above makes it fall back to the estimate by request size.
                let evaluations = times.unwrap_or(compiled.max_cardinality);
                self.found.push(EstimatedRule {
                    at: self.at.clone(),
                    index,
                    text: rule.rule.to_string(),
                    has_message: !rule.message.is_empty() || !rule.message_expression.is_empty(),
                    cost: once,
                    cardinality: compiled.max_cardinality,
                    evaluations,
                    total: once.saturating_mul(evaluations),
                    message_cost: cost(&compiled.message),
                    // The error of the rule comes first: without a rule, its message is never evaluated.
                    error: error(&compiled.rule).or_else(|| error(&compiled.message)),
                    uses_old_self: compiled.uses_old_self,
                });
            }
        }
        for (name, property) in &schema.properties {
            let view = view
                .as_ref()
                .map(|v| v.property(name, property, &mut self.shapes));
            self.below(SchemaStep::Property(name.to_string()), property, view, times);
        }
        let entries = times.zip(max_entries(schema)).map(|(a, b)| a.saturating_mul(b));
        if let Some(items) = &schema.items {
            self.below(
                SchemaStep::Items,
                items,
                view.as_ref().map(VisibleShape::entry),
                entries,
            );
        }
        if let Some(values) = schema.additional_schema() {
            let view = view.as_ref().map(VisibleShape::entry);
            self.below(SchemaStep::Additional, values, view, entries);
        }
    }

    fn below(
        &mut self,
        step: SchemaStep,
        schema: &Arc<Structural>,
        view: Option<VisibleShape>,
        times: Option<u64>,
    ) {
        self.at.push(step);
        self.node(schema, view, times);
        self.at.pop();
    }
}

fn max_entries(schema: &Structural) -> Option<u64> {
    let limits = schema.validation.as_deref();
    let max = match schema.ty {
        Some(Type::Array) => limits?.max_items?,
        _ => limits?.max_properties?,
    };
    // kube-apiserver's estimator also treats a negative bound as zero.
    Some(u64::try_from(max).unwrap_or(0))
}

/// A bound on the size of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The schema that has or lacks it.
    pub(crate) at: Vec<SchemaStep>,
    /// `maxItems`, `maxProperties` or `maxLength`.
    pub(crate) keyword: &'static str,
    /// The current value; `None` if missing.
    pub(crate) now: Option<u64>,
}

/// The bounds of all lists, maps and strings that affect the cost of a rule: those above it and below it.
fn bounds(schema: &Structural, rule_at: &[SchemaStep]) -> Vec<Bound> {
    let (mut found, mut here) = (Vec::new(), schema);
    for (depth, step) in rule_at.iter().enumerate() {
        // An object has each of its fields once; lists and maps have any number of entries.
        if matches!(step, SchemaStep::Items | SchemaStep::Additional)
            && let Some(at) = rule_at.get(..depth)
        {
            found.extend(bound(here, at));
        }
        match step.below(here) {
            Some(next) => here = next,
            None => return found,
        }
    }
    collect(here, &mut rule_at.to_vec(), &mut found);
    found
}

fn collect(schema: &Structural, at: &mut Vec<SchemaStep>, found: &mut Vec<Bound>) {
    found.extend(bound(schema, at));
    let properties = schema
        .properties
        .iter()
        .map(|(n, s)| (SchemaStep::Property(n.to_string()), s));
    let items = schema.items.iter().map(|s| (SchemaStep::Items, s));
    let values = schema
        .additional_schema()
        .into_iter()
        .map(|s| (SchemaStep::Additional, s));
    for (step, below) in properties.chain(items).chain(values) {
        at.push(step);
        collect(below, at, found);
        at.pop();
    }
}

/// The bound of a schema whose values can have any size.
fn bound(schema: &Structural, at: &[SchemaStep]) -> Option<Bound> {
    let limits = schema.validation.as_deref();
    let (keyword, now) = match schema.ty? {
        Type::Array => ("maxItems", limits.and_then(|l| l.max_items)),
        Type::Object if schema.additional_schema().is_some() => {
            ("maxProperties", limits.and_then(|l| l.max_properties))
        }
        Type::String if limits.is_none_or(|l| l.enumeration.is_empty() && !is_short(&l.format)) => {
            ("maxLength", limits.and_then(|l| l.max_length))
        }
        _ => return None,
    };
    Some(Bound {
        at: at.to_vec(),
        keyword,
        // kube-apiserver's estimator also treats a negative bound as zero.
        now: now.map(|n| u64::try_from(n).unwrap_or(0)),
    })
}

/// Formats with a fixed assumed length in the cost model.
fn is_short(format: &str) -> bool {
    matches!(format, "date" | "date-time" | "duration")
}

/// Bounds that bring a rule below its limit.
#[derive(Clone, Debug)]
pub(crate) struct BoundHint {
    /// The bounds to set.
    pub(crate) bounds: Vec<Bound>,
    /// The maximum value for each of them.
    pub(crate) value: u64,
}

/// The reasons why a rule exceeds its limit, and proposed changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remedy {
    /// The missing bounds that affect its cost.
    pub(crate) unbounded: Vec<Bound>,
    /// The proposed bounds: each single missing one that suffices, otherwise all that help, together. If that
    /// is not enough, existing bounds must be lowered as well.
    pub(crate) hints: Vec<BoundHint>,
}

/// Finds bounds that bring a rule below its limit.
pub(crate) fn remedy(schema: &Arc<Structural>, rule: &EstimatedRule, environments: &Environments) -> Remedy {
    let mut bounds = bounds(schema, &rule.at);
    // The sort is stable: bounds that the rule names come first and keep the order of the schema.
    bounds.sort_by_key(|bound| !rule.may_look_at(&bound.at));
    let search = BoundSearch::new(schema, rule, environments);
    let missing = || bounds.iter().filter(|b| b.now.is_none());
    let mut unbounded = search.helping(missing());
    if unbounded.is_empty() {
        // If the cost saturates, no single bound helps.
        let looked_at = missing().filter(|b| rule.may_look_at(&b.at));
        unbounded = looked_at.take(MAX_CANDIDATES).cloned().collect();
    }
    let mut hints = search.hints(unbounded.clone());
    // The missing bounds do not suffice, so existing ones have to be lowered as well.
    if hints.is_empty() {
        hints = search.hints(search.helping(bounds.iter()));
    }
    Remedy { unbounded, hints }
}

/// A missing bound that would lower the estimated cost of a rule.
#[derive(Clone, Debug)]
pub(crate) struct Saving {
    pub(crate) bound: Bound,
    /// The value of the bound for which the saving was estimated.
    pub(crate) value: u64,
    /// The difference in total cost.
    pub(crate) saved: u64,
}

/// The missing bounds that would lower the estimated cost of a rule by at least `worth`.
pub(crate) fn savings(
    schema: &Arc<Structural>,
    rule: &EstimatedRule,
    environments: &Environments,
    worth: u64,
) -> Vec<Saving> {
    if rule.total < worth {
        return Vec::new();
    }
    let mut missing = bounds(schema, &rule.at);
    missing.retain(|bound| bound.now.is_none());
    // Candidates are truncated next; those that the rule names are the most promising.
    missing.sort_by_key(|bound| !rule.may_look_at(&bound.at));
    missing.truncate(MAX_CANDIDATES);
    let mut found = Vec::new();
    BoundSearch::new(schema, rule, environments).savings(&missing, worth, &mut found);
    found
}

impl EstimatedRule {
    /// Returns whether the rule names the fields of a path. A rule that compares whole objects reads others,
    /// too.
    fn may_look_at(&self, at: &[SchemaStep]) -> bool {
        at.iter().skip(self.at.len()).all(|step| match step {
            SchemaStep::Property(name) => {
                // A name that is not an identifier is escaped in the rule, so its absence there proves nothing.
                self.text.contains(name) || !name.chars().all(|c| c.is_alphanumeric() || c == '_')
            }
            SchemaStep::Items | SchemaStep::Additional => true,
        })
    }
}

/// The maximum number of bounds tried for a rule.
const MAX_CANDIDATES: usize = 24;
/// Larger bounds are pointless: requests are not that large.
const MAX_BOUND: u64 = 3 << 20;

struct BoundSearch<'a> {
    schema: &'a Arc<Structural>,
    rule: &'a EstimatedRule,
    environments: &'a Environments,
    /// Most of the schema is the same in every estimate.
    shapes: RefCell<Shapes>,
    /// The number of estimates so far.
    estimates: Cell<usize>,
}

impl<'a> BoundSearch<'a> {
    fn new(schema: &'a Arc<Structural>, rule: &'a EstimatedRule, environments: &'a Environments) -> Self {
        BoundSearch {
            schema,
            rule,
            environments,
            shapes: RefCell::default(),
            estimates: Cell::default(),
        }
    }

    /// Finds the bounds that save enough. If all of some bounds together do not, none of them does.
    fn savings(&self, bounds: &[Bound], worth: u64, found: &mut Vec<Saving>) {
        // Examples for the estimate: authors choose their own bounds.
        let value = |bound: &Bound| match bound.keyword {
            "maxLength" => 256,
            _ => 64,
        };
        let total = self.total(bounds.iter().map(|bound| (bound, value(bound))));
        let saved = total.and_then(|total| self.rule.total.checked_sub(total));
        // An estimate compiles the rule, so halves that save nothing together are not tried one by one.
        let Some(saved) = saved.filter(|saved| *saved >= worth && !bounds.is_empty()) else {
            return;
        };
        if let [bound] = bounds {
            found.push(Saving {
                bound: bound.clone(),
                value: value(bound),
                saved,
            });
            return;
        }
        let (first, second) = bounds.split_at(bounds.len() / 2);
        self.savings(first, worth, found);
        self.savings(second, worth, found);
    }

    /// The bounds that make the rule cost less.
    fn helping<'b>(&self, bounds: impl Iterator<Item = &'b Bound>) -> Vec<Bound> {
        let helps = |b: &&Bound| {
            // One is the smallest useful bound: if it does not help, no larger one does.
            let total = self.total(std::iter::once((*b, 1)));
            total.is_some_and(|t| t < self.rule.total)
        };
        bounds.take(MAX_CANDIDATES).filter(helps).cloned().collect()
    }

    fn hints(&self, helping: Vec<Bound>) -> Vec<BoundHint> {
        let alone = helping.iter().filter_map(|b| self.largest(vec![b.clone()]));
        let alone: Vec<BoundHint> = alone.collect();
        if alone.is_empty() && helping.len() > 1 {
            self.largest(helping).into_iter().collect()
        } else {
            alone
        }
    }

    /// The largest value of the bounds with which the rule fits.
    fn largest(&self, bounds: Vec<Bound>) -> Option<BoundHint> {
        let fits = |value: u64| {
            let total = self.total(bounds.iter().map(|bound| (bound, value)));
            total.is_some_and(|t| t <= RULE_LIMIT)
        };
        // The cost grows with the bound, so a bisection finds the limit.
        if !fits(1) {
            return None;
        }
        let (mut good, mut bad) = (1, MAX_BOUND);
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            if fits(middle) {
                good = middle;
            } else {
                bad = middle;
            }
        }
        Some(BoundHint { bounds, value: good })
    }

    /// The cost of the rule with these bounds; smaller existing ones stay.
    fn total<'b>(&self, bounds: impl Iterator<Item = (&'b Bound, u64)>) -> Option<u64> {
        self.estimates.set(self.estimates.get() + 1);
        let mut schema = Arc::clone(self.schema);
        // Later bounds see the earlier ones: each call copies only the schemas on its path.
        for (bound, value) in bounds {
            schema = bounded(&schema, &bound.at, bound, value)?;
        }
        let (mut here, mut times) = (&schema, Some(1u64));
        for step in &self.rule.at {
            if !matches!(step, SchemaStep::Property(_)) {
                times = times.zip(max_entries(here)).map(|(a, b)| a.saturating_mul(b));
            }
            here = step.below(here)?;
        }
        let mut shapes = self.shapes.borrow_mut();
        let shape = match self.rule.at.is_empty() {
            true => shapes.of_resource(here)?,
            false => shapes.of_schema(here)?,
        };
        let rule = here.rules.get(self.rule.index)?;
        let compiled = compile(
            std::slice::from_ref(rule),
            &shape,
            self.environments,
            PreviouslyAccepted::None,
        );
        let compiled = compiled.first()?;
        let once = compiled.rule.as_ref()?.as_ref().ok()?.max_cost;
        Some(once.saturating_mul(times.unwrap_or(compiled.max_cardinality)))
    }
}

/// Returns a schema with a bound at the end of some steps.
fn bounded(schema: &Structural, steps: &[SchemaStep], bound: &Bound, value: u64) -> Option<Arc<Structural>> {
    let mut schema = schema.clone();
    match steps.split_first() {
        Some((step, rest)) => {
            let below = match step {
                SchemaStep::Property(name) => {
                    let mut properties = schema.properties.iter_mut();
                    properties.find_map(|(known, below)| (known == name).then_some(below))?
                }
                SchemaStep::Items => schema.items.as_mut()?,
                SchemaStep::Additional => match schema.additional.as_mut()? {
                    Additional::Schema(values) => values,
                    Additional::Any(_) => return None,
                },
            };
            *below = bounded(below, rest, bound, value)?;
        }
        None => {
            let limits = schema.validation.get_or_insert_default();
            let limit = match bound.keyword {
                "maxItems" => &mut limits.max_items,
                "maxProperties" => &mut limits.max_properties,
                _ => &mut limits.max_length,
            };
            // A proposal never raises a bound that the author chose.
            let value = bound.now.map_or(value, |now| value.min(now));
            *limit = Some(i64::try_from(value).ok()?);
        }
    }
    Some(Arc::new(schema))
}

#[cfg(test)]
mod tests {
    use super::{RULE_LIMIT, SchemaStep, remedy, rules};
    use proptest::prelude::*;
    use scantling_admit::Gates;
    use scantling_cel::kubernetes::KubernetesVersion;
    use scantling_schema::definition::{Accepted, ApiVersion, Definition, ValidationContext};
    use scantling_schema::document::Schema;
    use scantling_schema::rules::Environments;
    use scantling_schema::structural::Interner;
    use scantling_value::{Limits, Map, Value, json};

    /// Returns whether a cluster refuses a rule of the schema for its cost.
    fn is_too_dear(schema: &Value, environments: &Environments) -> bool {
        let definition = format!(
            r#"{{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {{"name":
            "widgets.example.com"}}, "spec": {{"group": "example.com", "scope": "Cluster", "names": {{"plural": "widgets",
            "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}}, "versions": [{{"name": "v1", "served": true,
            "storage": true, "schema": {{"openAPIV3Schema": {}}}}}]}}}}"#,
            schema.to_json()
        );
        let definition = json::decode(definition.as_bytes(), Limits::SAFE).unwrap();
        let definition = Definition::decode(definition, ApiVersion::V1, Gates::default()).unwrap();
        let setting = ValidationContext {
            api: ApiVersion::V1,
            gates: Gates::default(),
            environments,
        };
        let errors = Accepted::create(definition.definition, &setting)
            .err()
            .unwrap_or_default();
        let (dear, other): (Vec<_>, Vec<_>) = errors.iter().partition(|e| e.to_string().contains("cost"));
        assert!(other.is_empty(), "{other:?}");
        dear.iter()
            .any(|e| e.to_string().contains("estimated rule cost exceeds budget"))
    }

    fn schema(rule: &str, at_item: bool, sizes: [Option<u32>; 4]) -> Value {
        let bound = |keyword: &str, size: Option<u32>| {
            size.map(|n| format!(r#", "{keyword}": {n}"#)).unwrap_or_default()
        };
        let rules = format!(
            r#", "x-kubernetes-validations": [{{"rule": {}}}]"#,
            Value::from(rule).to_json()
        );
        let (outer, inner) = if at_item {
            ("", rules.as_str())
        } else {
            (rules.as_str(), "")
        };
        let [items, name, tags, tag] = sizes;
        let text = format!(
            r#"{{"type": "object", "properties": {{"spec": {{"type": "object"{outer}, "properties": {{"list": {{"type":
            "array"{}, "items": {{"type": "object"{inner}, "properties": {{"name": {{"type": "string"{}}}, "tags": {{"type":
            "object"{}, "additionalProperties": {{"type": "string"{}}}}}}}}}}}}}}}}}}}"#,
            bound("maxItems", items),
            bound("maxLength", name),
            bound("maxProperties", tags),
            bound("maxLength", tag),
        );
        json::decode(text.as_bytes(), Limits::SAFE).unwrap()
    }

    const OUTER: [&str; 3] = [
        "self.list.all(x, x.name.startsWith('a'))",
        "self.list.all(x, self.list.exists_one(y, x.name == y.name))",
        "self.list.all(x, x.tags.all(k, x.tags[k].contains(x.name)))",
    ];
    const INNER: [&str; 3] = [
        "self.name.matches('^a+$')",
        "self.tags.all(k, self.tags[k] != self.name)",
        "self.tags.all(k, self.tags.exists(l, k == l))",
    ];

    fn size() -> impl Strategy<Value = Option<u32>> {
        prop_oneof![
            Just(None),
            (1..2000u32).prop_map(Some),
            (1..200_000u32).prop_map(Some)
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// A cluster accepts a rule with the proposed bound, and refuses it with the next larger one.
        #[test]
        fn proposed_bounds_are_the_largest_that_fit(
            rule in 0..3usize,
            at_item: bool,
            sizes in [size(), size(), size(), size()],
        ) {
            let environments = Environments::for_version(KubernetesVersion::new(1, 37));
            let rule = if at_item { INNER[rule] } else { OUTER[rule] };
            let document = schema(rule, at_item, sizes);
            let structural = Schema::new(&document).structural(&mut Interner::new()).unwrap();
            let rules = rules(&structural, &environments);
            let rule = &rules[0];
            prop_assert_eq!(rule.total > RULE_LIMIT, is_too_dear(&document, &environments));
            if rule.total > RULE_LIMIT {
                let found = remedy(&structural, rule, &environments).hints;
                prop_assert!(!found.is_empty());
                for hint in found {
                    for (value, dear) in [(hint.value, false), (hint.value + 1, true)] {
                        let mut document = document.clone();
                        for bound in &hint.bounds {
                            let value = bound.now.map_or(value, |now| value.min(now));
                            let schema = descend(&mut document, &bound.at);
                            schema.insert(bound.keyword, Value::Int(i64::try_from(value).unwrap()));
                        }
                        prop_assert_eq!(is_too_dear(&document, &environments), dear, "{:?} {}", hint, value);
                    }
                }
            }
        }
    }

    fn descend<'v>(document: &'v mut Value, steps: &[SchemaStep]) -> &'v mut Map {
        let mut here = document.as_object_mut().unwrap();
        for step in steps {
            let below = match step {
                SchemaStep::Property(name) => here
                    .get_mut("properties")
                    .and_then(Value::as_object_mut)
                    .and_then(|p| p.get_mut(name)),
                SchemaStep::Items => here.get_mut("items"),
                SchemaStep::Additional => here.get_mut("additionalProperties"),
            };
            here = below.unwrap().as_object_mut().unwrap();
        }
        here
    }

    /// The missing bounds, and the proposed ones.
    fn remedied(document: &str) -> String {
        let environments = Environments::for_version(KubernetesVersion::new(1, 37));
        let document = json::decode(document.as_bytes(), Limits::SAFE).unwrap();
        let structural = Schema::new(&document).structural(&mut Interner::new()).unwrap();
        let rules = rules(&structural, &environments);
        let remedy = remedy(&structural, &rules[0], &environments);
        let spelled = |b: &super::Bound| format!("{}{}", super::schema_path(&b.at), b.keyword);
        let unbounded: Vec<String> = remedy.unbounded.iter().map(spelled).collect();
        let hints = remedy.hints.iter().map(|hint| {
            let bounds: Vec<String> = hint.bounds.iter().map(spelled).collect();
            format!("{} <= {}", bounds.join(" and "), hint.value)
        });
        format!(
            "{}; {}",
            unbounded.join(", "),
            hints.collect::<Vec<_>>().join(", ")
        )
    }

    /// Advice on a rule that no bound makes cheaper costs one estimate, and a single bound is found in a few.
    #[test]
    fn savings_take_few_estimates() {
        let environments = Environments::for_version(KubernetesVersion::new(1, 37));
        let fields: Vec<String> = (0..24)
            .map(|n| format!(r#""a{n}": {{"type": "string"}}"#))
            .collect();
        for (rule, expected, most) in [
            // The fields are named, but only their presence is read.
            ("[1, 2, 3].all(x, x > 0) && !(has(self.a0) && has(self.a1))", 0, 1),
            ("self.a5.matches('^a+$')", 1, 11),
        ] {
            let document = format!(
                r#"{{"type": "object", "properties": {{{}}}, "x-kubernetes-validations": [{{"rule": {}}}]}}"#,
                fields.join(", "),
                Value::from(rule).to_json()
            );
            let document = json::decode(document.as_bytes(), Limits::SAFE).unwrap();
            let structural = Schema::new(&document).structural(&mut Interner::new()).unwrap();
            let rules = rules(&structural, &environments);
            let bounds = super::bounds(&structural, &[]);
            assert_eq!(bounds.len(), 24);
            let search = super::BoundSearch::new(&structural, &rules[0], &environments);
            let mut found = Vec::new();
            search.savings(&bounds, 1, &mut found);
            assert_eq!(found.len(), expected, "{rule}: {found:?}");
            assert!(
                search.estimates.get() <= most,
                "{rule}: {}",
                search.estimates.get()
            );
        }
    }

    /// Only fields that the rule reads count.
    #[test]
    fn unrelated_fields_do_not_affect_proposals() {
        let others: Vec<String> = (0..60)
            .map(|n| format!("\"a{n}\": {{\"type\": \"string\"}}"))
            .collect();
        let found = remedied(&format!(
            r#"{{"type": "object", "properties": {{{}, "z": {{"type": "array", "items": {{"type": "integer"}}}}}},
            "x-kubernetes-validations": [{{"rule": "self.z.all(x, self.z.all(y, x == y))"}}]}}"#,
            others.join(", ")
        ));
        expect_test::expect![".properties[z]maxItems; .properties[z]maxItems <= 1413"].assert_eq(&found);
    }

    /// Saturated costs become finite once everything has a bound.
    #[test]
    fn lists_of_lists_of_lists_need_all_their_bounds() {
        let mut schema = r#"{"type": "string"}"#.to_owned();
        let mut rule = "v0 != ''".to_owned();
        for n in 0..8 {
            schema = format!(r#"{{"type": "array", "items": {schema}}}"#);
            rule = format!("v{}.all(v{n}, {rule})", n + 1);
        }
        let rule = rule.replace("v8", "self.list");
        let found = remedied(&format!(
            r#"{{"type": "object", "properties": {{"list": {schema}}}, "x-kubernetes-validations": [{{"rule": "{rule}"}}]}}"#
        ));
        assert!(found.ends_with(".itemsmaxLength <= 6"), "{found}");
        assert_eq!(found.matches("maxItems").count(), 16, "{found}");
    }
}
