//! Analyses the fields that rules read.

use super::compatibility::rules;
use crate::rules::SchemaStep;
use scantling_cel::ast::{Ast, Expr, ExprKind};
use scantling_cel::syntax::{ParseOptions, parse};
use scantling_value::{Map, Value};

/// The way in which a rule reads a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concern {
    /// It does not.
    None,
    /// It does.
    State,
    /// It also reads the old value: it runs whatever an update changes.
    Change,
}

/// Returns whether a rule reads a field below its own schema.
pub(super) fn concern(rule: &str, below: &[SchemaStep]) -> Concern {
    // A rule that does not parse may read anything. The CRD is refused anyway.
    let Ok(ast) = parse(rule, &ParseOptions::default()) else {
        return Concern::Change;
    };
    let chains = chains(&ast);
    let mut concerned = chains.iter().filter(|chain| chain.leads_to(below)).peekable();
    if concerned.peek().is_none() {
        Concern::None
    } else if chains.iter().any(|chain| chain.root == OLD) {
        Concern::Change
    } else {
        Concern::State
    }
}

/// Returns whether a rule reads the old value.
pub(super) fn compares(rule: &str) -> bool {
    let Ok(ast) = parse(rule, &ParseOptions::default()) else {
        return true;
    };
    chains(&ast).iter().any(|chain| chain.root == OLD)
}

/// Returns whether any rule at a schema or below it reads the old value.
pub(super) fn compare_states(schema: &Map) -> bool {
    let own = rules(schema.get("x-kubernetes-validations"));
    let below = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::values)
        .chain(schema.get("items"))
        .chain(schema.get("additionalProperties"));
    own.iter().any(|rule| compares(rule.text)) || below.filter_map(Value::as_object).any(compare_states)
}

/// Returns whether a rule holds for every unchanged value. `schema` is its own: reading a field that may be
/// missing makes a rule fail.
pub(super) fn holds_unchanged(rule: &str, schema: Option<&Map>) -> bool {
    parse(rule, &ParseOptions::default()).is_ok_and(|ast| holds(&ast.root, schema))
}

fn holds(expression: &Expr, schema: Option<&Map>) -> bool {
    let ExprKind::Call { function, args, .. } = &expression.kind else {
        return false;
    };
    let [a, b] = args.as_slice() else {
        return false;
    };
    // `==` of two paths that exist cannot fail; any other call might.
    match &**function {
        "_&&_" => holds(a, schema) && holds(b, schema),
        // CEL absorbs an error of one operand of `||` if the other one is true.
        "_||_" => holds(a, schema) || holds(b, schema),
        "_==_" | "_<=_" | "_>=_" => match (SelectChain::new(a), SelectChain::new(b)) {
            // The roots are not compared: for an unchanged value, `self` and `oldSelf` are equal.
            (Some(a), Some(b)) => !a.test && !b.test && a.fields == b.fields && a.is_there(schema),
            _ => false,
        },
        _ => false,
    }
}

const NEW: &str = "self";
const OLD: &str = "oldSelf";

/// `self.spec.replicas`
struct SelectChain<'e> {
    root: &'e str,
    fields: Vec<&'e str>,
    /// True if it is a presence test of the last field.
    test: bool,
}

impl<'e> SelectChain<'e> {
    fn new(mut expression: &'e Expr) -> Option<Self> {
        let (mut fields, mut tests) = (Vec::new(), false);
        loop {
            match &expression.kind {
                ExprKind::Ident(name) if matches!(&**name, NEW | OLD) => {
                    fields.reverse();
                    return Some(SelectChain {
                        root: name,
                        fields,
                        test: tests,
                    });
                }
                ExprKind::Select { operand, field, test } => {
                    tests = tests || *test;
                    fields.push(&**field);
                    expression = operand;
                }
                _ => return None,
            }
        }
    }

    /// Returns whether the selected value contains the field, or the field contains it.
    fn leads_to(&self, below: &[SchemaStep]) -> bool {
        // `zip` ends with the shorter path: a rule that reads a parent sees its children, too.
        self.fields.iter().zip(below).all(|(field, step)| match step {
            // Names that are not identifiers are escaped in rules.
            SchemaStep::Property(name) => field == name || field.contains("__"),
            SchemaStep::Items | SchemaStep::Additional => true,
        })
    }

    /// Returns whether every field on the path is required.
    fn is_there(&self, schema: Option<&Map>) -> bool {
        let mut schema = schema;
        self.fields.iter().all(|field| {
            // A chain through lists or maps has no `properties` here, so it counts as missing.
            let property = || schema?.get("properties")?.get(field)?.as_object();
            let required = || {
                let required = schema?.get("required")?.as_array()?;
                required.iter().find(|name| name.as_str() == Some(field))
            };
            // kube-apiserver applies defaults before rules run, so a field with a default is present.
            let there = required().is_some() || property().is_some_and(|p| p.contains_key("default"));
            schema = property();
            there
        })
    }
}

/// All selections of an expression from the object.
fn chains(ast: &Ast) -> Vec<SelectChain<'_>> {
    let (mut found, mut pending) = (Vec::new(), vec![&ast.root]);
    while let Some(expression) = pending.pop() {
        match SelectChain::new(expression) {
            Some(chain) => found.push(chain),
            None => expression.for_each_child(|child| pending.push(child)),
        }
    }
    found
}
