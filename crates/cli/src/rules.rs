//! The rules of a schema: what each is estimated to cost, and which bounds would make it cost less.

use scantling_schema::document::Schema;
use scantling_schema::rules::{Environments, Expression, PreviouslyAccepted, Shapes, View, compile};
use scantling_schema::structural::{Interner, Structural, Type};
use scantling_value::{Map, Value};
use std::fmt::Write as _;
use std::sync::Arc;

/// The most that an expression may be estimated to cost, over all the values it may be evaluated for.
pub(crate) const RULE_LIMIT: u64 = 10_000_000;
/// The most that all expressions of a schema together may.
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

/// Returns the field that steps lead to, as users write it: `spec.rules[].filters[].type`. The root is empty.
pub(crate) fn field_path(steps: &[SchemaStep]) -> String {
    let mut out = String::new();
    for step in steps {
        match step {
            SchemaStep::Property(name) if name.contains(['.', '[', ']']) => {
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

/// A rule, and what is known of it.
#[derive(Clone, Debug)]
pub(crate) struct EstimatedRule {
    /// Where it stands.
    pub(crate) at: Vec<SchemaStep>,
    /// Its place in the list of rules there.
    pub(crate) index: usize,
    /// The expression.
    pub(crate) text: String,
    /// Whether it says what is wrong in words.
    pub(crate) has_message: bool,
    /// What one evaluation is estimated to cost at most.
    pub(crate) cost: u64,
    /// The estimator's bound on the number of values in one request, wherever the rule is.
    pub(crate) cardinality: u64,
    /// How often the rule is evaluated at most.
    pub(crate) evaluations: u64,
    /// What all evaluations together cost at most: what the limits are about.
    pub(crate) total: u64,
    /// The cost of its message expression.
    pub(crate) message_cost: u64,
    /// Why it does not compile.
    pub(crate) error: Option<String>,
    /// Whether it compares with the state before an update.
    pub(crate) uses_old_self: bool,
}

/// All rules of a schema, from the root down.
pub(crate) fn rules(schema: &Arc<Structural>, environments: &Environments) -> Vec<EstimatedRule> {
    let mut shapes = Shapes::new();
    let view = View::of_resource(schema, &mut shapes);
    let mut collector = RuleCollector {
        environments,
        shapes,
        at: Vec::new(),
        found: Vec::new(),
    };
    collector.node(schema, &view, Some(1));
    collector.found
}

struct RuleCollector<'a> {
    environments: &'a Environments,
    shapes: Shapes,
    at: Vec<SchemaStep>,
    found: Vec<EstimatedRule>,
}

impl RuleCollector<'_> {
    fn node(&mut self, schema: &Arc<Structural>, view: &View, times: Option<u64>) {
        if let Some(shape) = view.shape()
            && !schema.rules.is_empty()
        {
            let compiled = compile(&schema.rules, shape, self.environments, PreviouslyAccepted::None);
            for (index, (rule, compiled)) in schema.rules.iter().zip(&compiled).enumerate() {
                let cost = |e: &Option<Result<Expression, String>>| match e {
                    Some(Ok(expression)) => expression.max_cost,
                    _ => 0,
                };
                let error = |e: &Option<Result<Expression, String>>| e.as_ref()?.as_ref().err().cloned();
                let once = cost(&compiled.rule);
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
                    error: error(&compiled.rule).or_else(|| error(&compiled.message)),
                    uses_old_self: compiled.uses_old_self,
                });
            }
        }
        for (name, property) in &schema.properties {
            let view = view.property(name, property, &mut self.shapes);
            self.below(SchemaStep::Property(name.to_string()), property, &view, times);
        }
        let entries = times.zip(max_entries(schema)).map(|(a, b)| a.saturating_mul(b));
        if let Some(items) = &schema.items {
            self.below(SchemaStep::Items, items, &view.entry(), entries);
        }
        if let Some(values) = schema.additional_schema() {
            self.below(SchemaStep::Additional, values, &view.entry(), entries);
        }
    }

    fn below(&mut self, step: SchemaStep, schema: &Arc<Structural>, view: &View, times: Option<u64>) {
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
    Some(u64::try_from(max).unwrap_or(0))
}

/// A bound on the size of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The schema that has it, or lacks it.
    pub(crate) at: Vec<SchemaStep>,
    /// `maxItems`, `maxProperties` or `maxLength`.
    pub(crate) keyword: &'static str,
    /// What it is; none where it is missing.
    pub(crate) now: Option<u64>,
}

/// The bounds of all lists, maps and strings that bear on the cost of a rule: those above its place, and those below
/// it.
fn bounds(schema: &Structural, rule_at: &[SchemaStep]) -> Vec<Bound> {
    let (mut found, mut here) = (Vec::new(), schema);
    for (depth, step) in rule_at.iter().enumerate() {
        let next = match step {
            SchemaStep::Property(name) => here.property(name),
            SchemaStep::Items => here.items.as_ref(),
            SchemaStep::Additional => here.additional_schema(),
        };
        // A record has each of its fields once; lists and maps have any number of entries.
        if matches!(step, SchemaStep::Items | SchemaStep::Additional)
            && let Some(at) = rule_at.get(..depth)
        {
            found.extend(bound(here, at));
        }
        match next {
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

/// The bound of a schema whose values can be of any size.
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
        now: now.map(|n| u64::try_from(n).unwrap_or(0)),
    })
}

/// Formats whose texts have a length that rules are charged for instead of a bound.
fn is_short(format: &str) -> bool {
    matches!(format, "date" | "date-time" | "duration")
}

/// Bounds that make a rule fit into its limit.
#[derive(Clone, Debug)]
pub(crate) struct BoundHint {
    /// Set all of these…
    pub(crate) bounds: Vec<Bound>,
    /// …to this, or less.
    pub(crate) value: u64,
}

/// Why a rule does not fit into its limit, and what would change that.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remedy {
    /// The missing bounds that bear on its cost.
    pub(crate) unbounded: Vec<Bound>,
    /// Bounds that make it fit: each missing one alone that suffices, or else all that help, together. Where that is not
    /// enough, bounds that are there have to become smaller as well.
    pub(crate) hints: Vec<BoundHint>,
}

/// Finds out what would make a rule fit.
pub(crate) fn remedy(
    document: &Value,
    schema: &Structural,
    rule: &EstimatedRule,
    environments: &Environments,
) -> Remedy {
    let Some(document) = reduced(document, &rule.at, rule.index) else {
        return Remedy::default();
    };
    let mut bounds = bounds(schema, &rule.at);
    bounds.sort_by_key(|bound| !rule.may_look_at(&bound.at));
    let search = BoundSearch {
        document,
        rule,
        environments,
    };
    let missing = || bounds.iter().filter(|b| b.now.is_none());
    let mut unbounded = search.helping(missing());
    if unbounded.is_empty() {
        // No single one helps where the cost is beyond all numbers.
        let looked_at = missing().filter(|b| rule.may_look_at(&b.at));
        unbounded = looked_at.take(MAX_CANDIDATES).cloned().collect();
    }
    let mut hints = search.hints(unbounded.clone());
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
    document: &Value,
    schema: &Structural,
    rule: &EstimatedRule,
    environments: &Environments,
    worth: u64,
) -> Vec<Saving> {
    if rule.total < worth {
        return Vec::new();
    }
    let Some(document) = reduced(document, &rule.at, rule.index) else {
        return Vec::new();
    };
    let search = BoundSearch {
        document,
        rule,
        environments,
    };
    let mut missing = bounds(schema, &rule.at);
    missing.retain(|bound| bound.now.is_none());
    missing.sort_by_key(|bound| !rule.may_look_at(&bound.at));
    let saving = |bound: Bound| {
        let value = match bound.keyword {
            "maxLength" => 256,
            _ => 64,
        };
        let total = search.total(std::slice::from_ref(&bound), value)?;
        let saved = rule.total.checked_sub(total).filter(|saved| *saved >= worth)?;
        Some(Saving { bound, value, saved })
    };
    missing
        .into_iter()
        .take(MAX_CANDIDATES)
        .filter_map(saving)
        .collect()
}

impl EstimatedRule {
    /// Whether the rule names the fields on the way to a place. One that compares whole objects looks at others, too.
    fn may_look_at(&self, at: &[SchemaStep]) -> bool {
        at.iter().skip(self.at.len()).all(|step| match step {
            SchemaStep::Property(name) => {
                self.text.contains(name) || !name.chars().all(|c| c.is_alphanumeric() || c == '_')
            }
            SchemaStep::Items | SchemaStep::Additional => true,
        })
    }
}

/// So many bounds are tried out for a rule.
const MAX_CANDIDATES: usize = 24;
/// No bound above this is worth setting: requests are not that large.
const MAX_BOUND: u64 = 3 << 20;

struct BoundSearch<'a> {
    /// The schema, without what does not bear on the rule.
    document: Value,
    rule: &'a EstimatedRule,
    environments: &'a Environments,
}

impl BoundSearch<'_> {
    /// The bounds that make the rule cost less.
    fn helping<'b>(&self, bounds: impl Iterator<Item = &'b Bound>) -> Vec<Bound> {
        let helps = |b: &&Bound| {
            let total = self.total(std::slice::from_ref(b), 1);
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
        let fits = |value: u64| self.total(&bounds, value).is_some_and(|t| t <= RULE_LIMIT);
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

    /// What the rule costs if these bounds are set; those that are smaller already stay.
    fn total(&self, bounds: &[Bound], value: u64) -> Option<u64> {
        let mut document = self.document.clone();
        for bound in bounds {
            let schema = descend(&mut document, &bound.at)?;
            let value = bound.now.map_or(value, |now| value.min(now));
            schema.insert(bound.keyword, Value::Int(i64::try_from(value).ok()?));
        }
        let structural = Schema::new(&document).structural(&mut Interner::new()).ok()?;
        let all = rules(&structural, self.environments);
        all.iter()
            .find(|r| r.at == self.rule.at && r.index == 0)
            .map(|r| r.total)
    }
}

/// The schema with one rule alone, and above it with nothing but the way to it: costs are found many times over.
fn reduced(document: &Value, steps: &[SchemaStep], index: usize) -> Option<Value> {
    let mut members = document.as_object()?.clone();
    let rules = members.remove("x-kubernetes-validations");
    let Some((step, rest)) = steps.split_first() else {
        let mut here = Value::Object(members);
        strip_rules(&mut here);
        let rule = rules?.as_array()?.get(index)?.clone();
        here.as_object_mut()?
            .insert("x-kubernetes-validations", Value::Array(vec![rule]));
        return Some(here);
    };
    let below = below(&members, step).and_then(|below| reduced(below, rest, index))?;
    for keyword in ["properties", "items", "additionalProperties"] {
        members.remove(keyword);
    }
    match step {
        SchemaStep::Property(name) => {
            let properties = Map::from_iter([(name.as_str(), below)]);
            members.insert("properties", Value::Object(properties));
        }
        SchemaStep::Items => {
            members.insert("items", below);
        }
        SchemaStep::Additional => {
            members.insert("additionalProperties", below);
        }
    }
    Some(Value::Object(members))
}

fn below<'v>(members: &'v Map, step: &SchemaStep) -> Option<&'v Value> {
    match step {
        SchemaStep::Property(name) => members.get("properties")?.get(name),
        SchemaStep::Items => members.get("items"),
        SchemaStep::Additional => members.get("additionalProperties"),
    }
}

fn strip_rules(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    members.remove("x-kubernetes-validations");
    if let Some(properties) = members.get_mut("properties").and_then(Value::as_object_mut) {
        properties.iter_mut().for_each(|(_, schema)| strip_rules(schema));
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(schema) = members.get_mut(keyword) {
            strip_rules(schema);
        }
    }
}

fn descend<'v>(document: &'v mut Value, steps: &[SchemaStep]) -> Option<&'v mut Map> {
    let mut here = document;
    for step in steps {
        let members = here.as_object_mut()?;
        here = match step {
            SchemaStep::Property(name) => members.get_mut("properties")?.as_object_mut()?.get_mut(name)?,
            SchemaStep::Items => members.get_mut("items")?,
            SchemaStep::Additional => members.get_mut("additionalProperties")?,
        };
    }
    here.as_object_mut()
}

#[cfg(test)]
mod tests {
    use super::{RULE_LIMIT, remedy, rules};
    use proptest::prelude::*;
    use scantling_admit::Gates;
    use scantling_cel::kubernetes::KubernetesVersion;
    use scantling_schema::definition::{Accepted, ApiVersion, Definition, ValidationContext};
    use scantling_schema::document::Schema;
    use scantling_schema::rules::Environments;
    use scantling_schema::structural::Interner;
    use scantling_value::{Limits, Value, json};

    /// Whether a cluster finds a rule of the schema too dear.
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

        /// A cluster accepts a rule with the bound that is proposed, and refuses it with the next larger one.
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
                let found = remedy(&document, &structural, rule, &environments).hints;
                prop_assert!(!found.is_empty());
                for hint in found {
                    for (value, dear) in [(hint.value, false), (hint.value + 1, true)] {
                        let mut document = document.clone();
                        for bound in &hint.bounds {
                            let value = bound.now.map_or(value, |now| value.min(now));
                            let schema = super::descend(&mut document, &bound.at).unwrap();
                            schema.insert(bound.keyword, Value::Int(i64::try_from(value).unwrap()));
                        }
                        prop_assert_eq!(is_too_dear(&document, &environments), dear, "{:?} {}", hint, value);
                    }
                }
            }
        }
    }

    /// The bounds that are missing, and those that are proposed.
    fn remedied(document: &str) -> String {
        let environments = Environments::for_version(KubernetesVersion::new(1, 37));
        let document = json::decode(document.as_bytes(), Limits::SAFE).unwrap();
        let structural = Schema::new(&document).structural(&mut Interner::new()).unwrap();
        let rules = rules(&structural, &environments);
        let remedy = remedy(&document, &structural, &rules[0], &environments);
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

    /// Of many fields, those count that the rule looks at.
    #[test]
    fn many_other_fields_do_not_matter() {
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

    /// Costs beyond all numbers come down once everything has a bound.
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
