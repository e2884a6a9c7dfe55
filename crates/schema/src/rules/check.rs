//! Validates the rules of a CRD.

use super::compile::{CompiledRule, Environments, PreviouslyAccepted, compile};
use super::cost::{CostTotal, EXPRESSION_LIMIT, exceeds};
use super::shape::Shapes;
use super::visible_shape::VisibleShape;
use crate::definition::print_rule;
use crate::structural::{ListType, MapType, Structural, Type, ValidationRule};
use foldhash::HashMap;
use scantling_value::{BadValue, ErrorList, FieldError, Path};
use std::sync::Arc;

/// The settings for checking the rules of a CRD.
#[derive(Debug)]
pub struct RuleCheck<'a> {
    /// The environments of the Kubernetes version.
    pub environments: &'a Environments,
    /// The expressions that were accepted before.
    pub accepted: PreviouslyAccepted<'a>,
    /// The treatment of the cost limit of a single expression.
    pub expression_limit: ExpressionLimit,
}

/// The treatment of the cost limit of a single expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpressionLimit {
    /// Exceeding it is an error.
    Enforced,
    /// It is ignored, because the schema was accepted before.
    Lifted,
}

impl RuleCheck<'_> {
    /// Compiles all rules of a schema and adds up their cost. `at` is the path of the schema. `is_flawed`
    /// returns whether a node has other errors at or below its path; its rules are then skipped.
    pub fn schema(
        &self,
        schema: &Arc<Structural>,
        at: &Path<'_>,
        shapes: &mut Shapes,
        is_flawed: &dyn Fn(&Path<'_>) -> bool,
    ) -> ErrorList {
        let mut walk = RuleChecker {
            check: self,
            shapes,
            is_flawed,
            rule_presence: RulePresence::default(),
            total: CostTotal::default(),
            errors: ErrorList::new(),
        };
        let view = (!schema.rules.is_empty()).then(|| VisibleShape::of_resource(schema, walk.shapes));
        walk.node(
            schema,
            at,
            &SchemaLocation {
                view,
                cardinality: Some(1),
                uncorrelatable: None,
            },
        );
        let RuleChecker {
            total, mut errors, ..
        } = walk;
        errors.extend(total.errors(at));
        errors
    }
}

struct RuleChecker<'a> {
    check: &'a RuleCheck<'a>,
    shapes: &'a mut Shapes,
    is_flawed: &'a dyn Fn(&Path<'_>) -> bool,
    rule_presence: RulePresence,
    total: CostTotal,
    errors: ErrorList,
}

/// Caches whether schemas, or any schemas below them, have rules. Equal schemas share an entry.
#[derive(Default)]
struct RulePresence {
    /// By the address of the schema.
    known: HashMap<usize, bool>,
}

impl RulePresence {
    fn has_rules(&mut self, schema: &Arc<Structural>) -> bool {
        let children = || {
            let fields = schema.properties.iter().map(|(_, field)| field);
            fields.chain(&schema.items).chain(schema.additional_schema())
        };
        if !schema.rules.is_empty() || children().next().is_none() {
            return !schema.rules.is_empty();
        }
        // No schema is dropped during the walk, so an address identifies it.
        let address = Arc::as_ptr(schema).addr();
        if let Some(known) = self.known.get(&address) {
            return *known;
        }
        let has_rules = children().any(|child| self.has_rules(child));
        self.known.insert(address, has_rules);
        has_rules
    }
}

/// The context of a node from its parents.
struct SchemaLocation<'a> {
    /// The view of expressions, if there are rules here or above.
    view: Option<VisibleShape>,
    /// The maximum number of such values; `None` if a list or map above is unbounded.
    cardinality: Option<u64>,
    /// The topmost list whose elements cannot be correlated between old and new object.
    uncorrelatable: Option<&'a str>,
}

impl RuleChecker<'_> {
    fn node(&mut self, schema: &Arc<Structural>, at: &Path<'_>, location: &SchemaLocation<'_>) {
        if !self.rule_presence.has_rules(schema) {
            return;
        }
        let cardinality = match (location.cardinality, max_children(schema)) {
            (Some(here), Some(children)) => Some(here.saturating_mul(children)),
            _ => None,
        };
        let properties = at.field("properties");
        let here;
        let below_properties = match location.uncorrelatable {
            // As on kube-apiserver, only the known map types correlate.
            None if schema.map_type() == Some(MapType::Unsupported) => {
                here = at.to_string();
                Some(here.as_str())
            }
            above => above,
        };
        for (name, property) in &schema.properties {
            let view = match &location.view {
                Some(view) => Some(view.property(name, property, self.shapes)),
                None => self.topmost_view(property),
            };
            let location = SchemaLocation {
                view,
                cardinality,
                uncorrelatable: below_properties,
            };
            self.node(property, &properties.key(name), &location);
        }
        if let Some(items) = &schema.items {
            let view = self.entry(location, items);
            let list;
            let uncorrelatable = match location.uncorrelatable {
                // kube-apiserver does not correlate the elements of sets, either.
                None if schema.list_type() != Some(ListType::Map) => {
                    list = at.to_string();
                    Some(list.as_str())
                }
                above => above,
            };
            let location = SchemaLocation {
                view,
                cardinality,
                uncorrelatable,
            };
            self.node(items, &at.field("items"), &location);
        }
        if let Some(values) = schema.additional_schema() {
            let view = self.entry(location, values);
            let location = SchemaLocation {
                view,
                cardinality,
                ..*location
            };
            self.node(values, &at.field("additionalProperties"), &location);
        }
        // kube-apiserver reports the rules of a schema after those below it.
        if !schema.rules.is_empty() && !(self.is_flawed)(at) {
            self.rules(schema, &at.field("x-kubernetes-validations"), location);
        }
    }

    fn entry(&mut self, parent: &SchemaLocation<'_>, schema: &Arc<Structural>) -> Option<VisibleShape> {
        match &parent.view {
            Some(view) => Some(view.entry()),
            None => self.topmost_view(schema),
        }
    }

    /// The view of a node with rules that has no rules above it.
    fn topmost_view(&mut self, schema: &Arc<Structural>) -> Option<VisibleShape> {
        (!schema.rules.is_empty()).then(|| VisibleShape::of_schema(schema, self.shapes))
    }

    fn rules(&mut self, schema: &Structural, at: &Path<'_>, location: &SchemaLocation<'_>) {
        let Some(view) = &location.view else {
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
            self.rule(rule, compiled, &at.index(n), location);
        }
    }

    fn rule(
        &mut self,
        rule: &ValidationRule,
        compiled: &CompiledRule,
        at: &Path<'_>,
        location: &SchemaLocation<'_>,
    ) {
        let rule_at = at.field("rule");
        let max_cost = match &compiled.rule {
            Some(Ok(expression)) => expression.max_cost,
            _ => 0,
        };
        // Below an unbounded list or map, the size of a request limits the number of evaluations.
        let times = location.cardinality.unwrap_or(compiled.max_cardinality);
        self.cost(&rule_at, "estimated rule cost", max_cost.saturating_mul(times));
        if let Some(Err(problem)) = &compiled.rule {
            self.errors.push_with(|| {
                FieldError::invalid(&rule_at, BadValue::Raw(print_rule(rule)), problem.as_str())
            });
        }
        let message_at = at.field("messageExpression");
        match &compiled.message {
            Some(Ok(expression)) => {
                // UPSTREAM: not multiplied by the number of evaluations, unlike the cost of the rule.
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
            if let Some(list) = location.uncorrelatable {
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

/// The maximum number of values of a child per value of this schema; `None` if unbounded.
fn max_children(schema: &Structural) -> Option<u64> {
    let limits = schema.validation.as_deref();
    let max = match schema.ty {
        Some(Type::Object) if schema.additional.is_some() => limits?.max_properties?,
        Some(Type::Array) => limits?.max_items?,
        _ => 1,
    };
    Some(u64::try_from(max).unwrap_or(0))
}
