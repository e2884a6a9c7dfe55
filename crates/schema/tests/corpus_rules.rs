//! Compares cost, cardinality and compile errors of the rules of real CRDs with those of kube-apiserver.
//!
//! Reads `../shared/conformance/corpus/open.jsonl.gz` beside the workspace.

use scantling_cel::kubernetes::KubernetesVersion;
use scantling_schema::document::Schema;
use scantling_schema::rules::{
    CompiledRule, Environments, Expression, PreviouslyAccepted, Shapes, VisibleShape, compile,
};
use scantling_schema::structural::{Interner, Structural};
use scantling_testkit::corpus;
use scantling_value::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// The maximum number of differences shown.
const SHOWN: usize = 40;

#[test]
fn costs_and_errors() {
    let Some(cases) = corpus::cases() else {
        return;
    };
    let environments = Environments::for_version(KubernetesVersion::new(1, 37));
    let (mut interner, mut shapes) = (Interner::new(), Shapes::new());
    let (mut definitions, mut rules, mut wrong, mut report) = (0, 0, 0, String::new());
    for case in cases {
        definitions += 1;
        let mut found = RuleFacts::default();
        for version in list(&case, "crd.spec.versions") {
            let Some(document) = at(version, "schema.openAPIV3Schema") else {
                continue;
            };
            let Ok(schema) = Schema::new(document).structural(&mut interner) else {
                continue;
            };
            let name = text(version, "name");
            let mut walk = RuleWalk {
                environments: &environments,
                shapes: &mut shapes,
                version: name,
                facts: &mut found,
            };
            let view = VisibleShape::of_resource(&schema, walk.shapes);
            walk.node(&schema, &view, "");
        }
        for rule in list(&case, "rules") {
            rules += 1;
            let key = (
                text(rule, "version").into(),
                text(rule, "path").into(),
                number(rule, "index"),
            );
            let expected = Fact {
                rule: text(rule, "rule").to_owned(),
                cost: number(rule, "cost"),
                cardinality: number(rule, "cardinality"),
                uses_old_self: at(rule, "usesOldSelf").and_then(Value::as_bool).unwrap_or(false),
                message_cost: number(rule, "messageExpressionCost"),
                error: text(rule, "error").to_owned(),
                message_error: text(rule, "messageExpressionError").to_owned(),
            };
            let actual = found.remove(&key);
            if actual.as_ref().is_some_and(|actual| same(actual, &expected)) {
                continue;
            }
            wrong += 1;
            if wrong <= SHOWN {
                let name = at(&case, "crd.metadata.name")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                writeln!(
                    report,
                    "{name} {key:?}\n  expected {expected:?}\n  found    {actual:?}"
                )
                .expect("strings grow");
            }
        }
        for (key, fact) in found {
            wrong += 1;
            writeln!(report, "{key:?} is not in the corpus: {fact:?}").expect("strings grow");
        }
    }
    println!(
        "conformance: corpus/rules {}/{rules}\n({definitions} definitions)",
        rules - wrong
    );
    assert!(wrong == 0, "{wrong} of {rules} rules differ:\n{report}");
}

/// By version, path and index.
type RuleFacts = BTreeMap<(String, String, u64), Fact>;

#[derive(Debug, PartialEq)]
struct Fact {
    rule: String,
    cost: u64,
    cardinality: u64,
    uses_old_self: bool,
    message_cost: u64,
    error: String,
    message_error: String,
}

impl Fact {
    fn new(rule: &str, compiled: &CompiledRule) -> Self {
        let cost = |e: &Option<Result<Expression, String>>| match e {
            Some(Ok(expression)) => expression.max_cost,
            _ => 0,
        };
        let error = |e: &Option<Result<Expression, String>>| match e {
            Some(Err(problem)) => problem.clone(),
            _ => String::new(),
        };
        Fact {
            rule: rule.to_owned(),
            cost: cost(&compiled.rule),
            cardinality: compiled.max_cardinality,
            uses_old_self: compiled.uses_old_self,
            message_cost: cost(&compiled.message),
            error: error(&compiled.rule),
            message_error: error(&compiled.message),
        }
    }
}

/// A cost after a round trip through JSON.
fn as_read(cost: u64) -> u64 {
    if i64::try_from(cost).is_ok() {
        cost
    } else {
        cost as f64 as u64
    }
}

/// Compares facts; type names contain a random number.
fn same(a: &Fact, b: &Fact) -> bool {
    let plain = |text: &str| {
        let mut parts = text.split("selfType");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            out.push_str("selfType");
            out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
        }
        out
    };
    let without_numbers = |f: &Fact| (plain(&f.error), plain(&f.message_error));
    let numbers = |f: &Fact| {
        (
            f.rule.clone(),
            as_read(f.cost),
            f.cardinality,
            f.uses_old_self,
            f.message_cost,
        )
    };
    numbers(a) == numbers(b) && without_numbers(a) == without_numbers(b)
}

struct RuleWalk<'a> {
    environments: &'a Environments,
    shapes: &'a mut Shapes,
    version: &'a str,
    facts: &'a mut RuleFacts,
}

impl RuleWalk<'_> {
    fn node(&mut self, schema: &Arc<Structural>, view: &VisibleShape, path: &str) {
        if let Some(shape) = view.shape()
            && !schema.rules.is_empty()
        {
            let compiled = compile(&schema.rules, shape, self.environments, PreviouslyAccepted::None);
            for (n, (rule, compiled)) in schema.rules.iter().zip(&compiled).enumerate() {
                let key = (self.version.to_owned(), path.to_owned(), n as u64);
                self.facts.insert(key, Fact::new(&rule.rule, compiled));
            }
        }
        for (name, property) in &schema.properties {
            let view = view.property(name, property, self.shapes);
            self.node(property, &view, &format!("{path}.properties[{name}]"));
        }
        if let Some(items) = &schema.items {
            self.node(items, &view.entry(), &format!("{path}.items"));
        }
        if let Some(values) = schema.additional_schema() {
            self.node(values, &view.entry(), &format!("{path}.additionalProperties"));
        }
    }
}

fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |v, key| v.get(key))
}

fn list<'v>(value: &'v Value, path: &str) -> &'v [Value] {
    at(value, path).and_then(Value::as_array).unwrap_or(&[])
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Costs beyond the range of integers are doubles.
fn number(value: &Value, key: &str) -> u64 {
    match value.get(key) {
        Some(Value::Int(n)) => u64::try_from(*n).unwrap_or(0),
        Some(Value::Float(f)) => *f as u64,
        _ => 0,
    }
}
