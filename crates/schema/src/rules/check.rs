//! What is wrong with the rules of a definition.

use super::compile::{Accepted, CompiledRule, Environments, compile};
use super::cost::{EXPRESSION_LIMIT, Total, exceeds};
use super::shape::Shapes;
use super::view::View;
use crate::definition::print_rule;
use crate::structural::{ListType, MapType, Structural, Type, ValidationRule};
use foldhash::HashMap;
use scantling_value::{BadValue, ErrorList, FieldError, Path};
use std::sync::Arc;

/// How the rules of a definition are checked.
#[derive(Debug)]
pub struct Check<'a> {
    /// The environments of the server's version.
    pub environments: &'a Environments,
    /// Which expressions have been accepted before.
    pub accepted: Accepted<'a>,
    /// Whether the limit on the cost of a single expression holds.
    pub expression_limit: ExpressionLimit,
}

/// Whether the limit on the cost of a single expression holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpressionLimit {
    /// It does.
    Enforced,
    /// It does not: the schema is the one that was accepted before.
    Lifted,
}

impl Check<'_> {
    /// Compiles all rules of a schema and adds up their cost. `at` is the path of the schema; `is_flawed` tells of
    /// the path of a node whether there are other errors at it or below it: its rules are then left alone.
    pub fn schema(
        &self,
        schema: &Arc<Structural>,
        at: &Path<'_>,
        shapes: &mut Shapes,
        is_flawed: &dyn Fn(&Path<'_>) -> bool,
    ) -> ErrorList {
        let mut walk = Walk {
            check: self,
            shapes,
            is_flawed,
            ruled: Ruled::default(),
            total: Total::default(),
            errors: ErrorList::new(),
        };
        let view = (!schema.rules.is_empty()).then(|| View::of_resource(schema, walk.shapes));
        walk.node(
            schema,
            at,
            &Place {
                view,
                cardinality: Some(1),
                uncorrelatable: None,
            },
        );
        let Walk {
            total, mut errors, ..
        } = walk;
        errors.extend(total.errors(at));
        errors
    }
}

struct Walk<'a> {
    check: &'a Check<'a>,
    shapes: &'a mut Shapes,
    is_flawed: &'a dyn Fn(&Path<'_>) -> bool,
    ruled: Ruled,
    total: Total,
    errors: ErrorList,
}

/// Tells whether schemas, or any below them, have rules. Equal schemas are one, wherever they stand.
#[derive(Default)]
struct Ruled {
    /// By the address of the schema.
    known: HashMap<usize, bool>,
}

impl Ruled {
    fn has_rules(&mut self, schema: &Arc<Structural>) -> bool {
        let children = || {
            let fields = schema.properties.iter().map(|(_, field)| field);
            fields.chain(&schema.items).chain(schema.additional_schema())
        };
        if !schema.rules.is_empty() || children().next().is_none() {
            return !schema.rules.is_empty();
        }
        let address = Arc::as_ptr(schema).addr();
        if let Some(known) = self.known.get(&address) {
            return *known;
        }
        let has_rules = children().any(|child| self.has_rules(child));
        self.known.insert(address, has_rules);
        has_rules
    }
}

/// What is known of a node from the way to it.
struct Place<'a> {
    /// What expressions see, where there are rules here or above.
    view: Option<View>,
    /// How often there may be such a value; `None` where a list or map above is not limited.
    cardinality: Option<u64>,
    /// The topmost list whose elements cannot be told to be the same before and after an update.
    uncorrelatable: Option<&'a str>,
}

impl Walk<'_> {
    fn node(&mut self, schema: &Arc<Structural>, at: &Path<'_>, place: &Place<'_>) {
        if !self.ruled.has_rules(schema) {
            return;
        }
        let cardinality = match (place.cardinality, max_children(schema)) {
            (Some(here), Some(children)) => Some(here.saturating_mul(children)),
            _ => None,
        };
        let properties = at.field("properties");
        let here;
        let below_properties = match place.uncorrelatable {
            None if schema.map_type() == Some(MapType::Unsupported) => {
                here = at.to_string();
                Some(here.as_str())
            }
            above => above,
        };
        for (name, property) in &schema.properties {
            let view = match &place.view {
                Some(view) => Some(view.property(name, property, self.shapes)),
                None => self.fresh(property),
            };
            let place = Place {
                view,
                cardinality,
                uncorrelatable: below_properties,
            };
            self.node(property, &properties.key(name), &place);
        }
        if let Some(items) = &schema.items {
            let view = self.entry(place, items);
            let list;
            let uncorrelatable = match place.uncorrelatable {
                None if schema.list_type() != Some(ListType::Map) => {
                    list = at.to_string();
                    Some(list.as_str())
                }
                above => above,
            };
            let place = Place {
                view,
                cardinality,
                uncorrelatable,
            };
            self.node(items, &at.field("items"), &place);
        }
        if let Some(values) = schema.additional_schema() {
            let view = self.entry(place, values);
            let place = Place {
                view,
                cardinality,
                ..*place
            };
            self.node(values, &at.field("additionalProperties"), &place);
        }
        if !schema.rules.is_empty() && !(self.is_flawed)(at) {
            self.rules(schema, &at.field("x-kubernetes-validations"), place);
        }
    }

    fn entry(&mut self, parent: &Place<'_>, schema: &Arc<Structural>) -> Option<View> {
        match &parent.view {
            Some(view) => Some(view.entry()),
            None => self.fresh(schema),
        }
    }

    /// The view of a node with rules that has none above it.
    fn fresh(&mut self, schema: &Arc<Structural>) -> Option<View> {
        (!schema.rules.is_empty()).then(|| View::of(schema, self.shapes))
    }

    fn rules(&mut self, schema: &Structural, at: &Path<'_>, place: &Place<'_>) {
        let Some(view) = &place.view else {
            return;
        };
        let shape = match view.shape_or_problem() {
            Ok(shape) => shape,
            Err(problem) => {
                self.errors.push_with(|| FieldError::internal(at, problem));
                return;
            }
        };
        let compiled = compile(&schema.rules, shape, self.check.environments, self.check.accepted);
        for (n, (rule, compiled)) in schema.rules.iter().zip(&compiled).enumerate() {
            self.rule(rule, compiled, &at.index(n), place);
        }
    }

    fn rule(&mut self, rule: &ValidationRule, compiled: &CompiledRule, at: &Path<'_>, place: &Place<'_>) {
        let rule_at = at.field("rule");
        let max_cost = match &compiled.rule {
            Some(Ok(expression)) => expression.max_cost,
            _ => 0,
        };
        let times = place.cardinality.unwrap_or(compiled.max_cardinality);
        self.cost(&rule_at, "estimated rule cost", max_cost.saturating_mul(times));
        if let Some(Err(problem)) = &compiled.rule {
            self.errors.push_with(|| {
                FieldError::invalid(&rule_at, BadValue::Raw(print_rule(rule)), problem.as_str())
            });
        }
        let message_at = at.field("messageExpression");
        match &compiled.message {
            Some(Ok(expression)) => {
                self.cost(
                    &message_at,
                    "estimated messageExpression cost",
                    expression.max_cost,
                );
            }
            Some(Err(problem)) => {
                self.errors.push_with(|| {
                    FieldError::invalid(&message_at, BadValue::Raw(print_rule(rule)), problem.as_str())
                });
            }
            None => {}
        }
        if compiled.uses_old_self {
            if let Some(list) = place.uncorrelatable {
                let problem = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                );
                self.errors
                    .push(FieldError::invalid(&rule_at, rule.rule.as_str(), problem));
            }
        } else if let Some(optional) = rule.optional_old_self {
            let problem = "may not be set if oldSelf is not used in rule";
            self.errors
                .push_with(|| FieldError::invalid(&at.field("optionalOldSelf"), optional, problem));
        }
    }

    fn cost(&mut self, at: &Path<'_>, name: &str, cost: u64) {
        if self.check.expression_limit == ExpressionLimit::Enforced && cost > EXPRESSION_LIMIT {
            self.errors
                .push(FieldError::forbidden(at, exceeds(name, cost, EXPRESSION_LIMIT)));
        }
        self.total.add(at, cost);
    }
}

/// How many values of a child there may be for one of this schema; `None` where nothing limits that.
fn max_children(schema: &Structural) -> Option<u64> {
    let limits = schema.validation.as_deref();
    let max = match schema.ty {
        Some(Type::Object) if schema.additional.is_some() => limits?.max_properties?,
        Some(Type::Array) => limits?.max_items?,
        _ => 1,
    };
    Some(u64::try_from(max).unwrap_or(0))
}
