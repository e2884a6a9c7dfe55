//! Evaluates the rules of an object.

use super::compiled::ExecutableRule;
use super::shape::declares_metadata;
use crate::correlate::OldList;
use crate::plan::{Features, PlanNode, Types};
use crate::structural::{Type, ValidationRule};
use crate::validate::Ratchet;
use scantling_cel::program::{Input, Limits, Program};
use scantling_cel::shape::Shape;
use scantling_cel::val::{Arena, EvalError, Res, Val, read};
use scantling_value::{BadValue, ErrorKind, ErrorList, FieldError, Map, Path, TextList, Value, deadline, go};
use std::cell::Cell;

/// The cost budget of all rules of one object.
pub const BUDGET: u64 = 10_000_000;
/// The limits of one evaluation.
const LIMITS: Limits<'static> = Limits {
    cost: 1_000_000,
    interrupt: None,
};
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";
const MESSAGE_OUT_OF_BUDGET: &str = "messageExpression evaluation failed due to running out of cost budget, no further \
     validation rules will be run";
/// The error about rules on entries of a value whose type has no entries.
pub(crate) const NOT_COMPILED: &str =
    "rule compiler initialization error: failed to convert to declType for CEL validation rules";
/// The maximum length of a computed message.
const MAX_MESSAGE: usize = 5 * 1024;

/// The result of evaluating the rules of an object.
#[derive(Debug, Default)]
pub struct RuleReport {
    /// The errors.
    pub errors: ErrorList,
    /// Failures that existed before, as warnings.
    pub warnings: TextList,
    /// The cost of the rules. One more than the budget means that it was exhausted.
    pub cost: u64,
}

/// Called after each rule with the path of the value, the index of the rule there, and its cost, including
/// the message.
pub type Meter<'a> = &'a dyn Fn(&Path<'_>, usize, u64);

/// The options of rule evaluation.
#[derive(Clone, Copy)]
pub struct RuleOptions<'a> {
    /// The path of the value.
    pub at: &'a Path<'a>,
    /// Tolerates failures of rules on unchanged values.
    pub ratchet: Option<&'a Ratchet<'a>>,
    /// True if rules with an optional `oldSelf` run without an old value (part of ratcheting in
    /// kube-apiserver).
    pub optional_old_self: bool,
    /// The cost budget.
    pub budget: u64,
    /// Receives the cost of each rule.
    pub meter: Option<Meter<'a>>,
}

impl std::fmt::Debug for RuleOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RuleOptions")
            .field("at", &self.at)
            .field("ratchet", &self.ratchet)
            .field("optional_old_self", &self.optional_old_self)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

/// Evaluates the rules of a node and of everything below it; `old` is the old value.
pub fn run(node: &PlanNode, value: &Value, old: Option<&Value>, options: &RuleOptions<'_>) -> RuleReport {
    let budget = i64::try_from(options.budget).unwrap_or(i64::MAX);
    let mut runner = RuleRunner {
        options,
        budget,
        report: RuleReport::default(),
        // One arena for all rules: it keeps its memory between evaluations.
        arena: Arena::new(),
    };
    let correlated = options
        .ratchet
        .and(old)
        .map(|old| Correlated::new(node, old, value));
    let root = RuleTarget {
        node,
        value,
        old,
        ratchet: RatchetContext {
            correlated: correlated.as_ref(),
            around: None,
        },
        at: options.at,
    };
    // An exhausted budget is part of the report.
    let _ = runner.value(&root);
    runner.report.cost = budget.abs_diff(runner.budget);
    runner.report
}

/// The budget is exhausted: no further rule runs.
struct BudgetExhausted;

/// A value and the old value that it replaces.
struct Correlated<'a> {
    node: &'a PlanNode,
    old: &'a Value,
    new: &'a Value,
    /// The result of the comparison, once it was needed.
    unchanged: Cell<Option<bool>>,
}

impl<'a> Correlated<'a> {
    fn new(node: &'a PlanNode, old: &'a Value, new: &'a Value) -> Self {
        Correlated {
            node,
            old,
            new,
            unchanged: Cell::new(None),
        }
    }

    fn is_unchanged(&self, ratchet: &Ratchet<'_>) -> bool {
        let known = self.unchanged.get();
        known.unwrap_or_else(|| {
            let unchanged = ratchet.unchanged(self.node, self.old, self.new);
            self.unchanged.set(Some(unchanged));
            unchanged
        })
    }
}

/// The value whose comparison with its old value decides about ratcheting: the target itself if it correlates, otherwise
/// the nearest value around it that does.
#[derive(Clone, Copy)]
struct RatchetContext<'a> {
    correlated: Option<&'a Correlated<'a>>,
    around: Option<&'a Correlated<'a>>,
}

impl<'a> RatchetContext<'a> {
    const NONE: RatchetContext<'static> = RatchetContext {
        correlated: None,
        around: None,
    };

    /// Correlates a value below with its old value, if this value correlates itself.
    fn correlate<'v>(
        self,
        node: &'v PlanNode,
        old: Option<&'v Value>,
        new: &'v Value,
    ) -> Option<Correlated<'v>> {
        self.correlated?;
        old.map(|old| Correlated::new(node, old, new))
    }

    fn child(self, correlated: Option<&'a Correlated<'a>>) -> RatchetContext<'a> {
        match self.correlated {
            Some(here) => RatchetContext {
                correlated,
                around: Some(here),
            },
            None => self,
        }
    }
}

/// A value whose rules, or the rules below it, are evaluated.
#[derive(Clone, Copy)]
struct RuleTarget<'a> {
    node: &'a PlanNode,
    value: &'a Value,
    old: Option<&'a Value>,
    ratchet: RatchetContext<'a>,
    at: &'a Path<'a>,
}

struct RuleRunner<'o> {
    options: &'o RuleOptions<'o>,
    /// The remaining budget; -1 once it is exhausted.
    budget: i64,
    report: RuleReport,
    arena: Arena,
}

impl RuleRunner<'_> {
    fn value(&mut self, target: &RuleTarget<'_>) -> Result<(), BudgetExhausted> {
        let RuleTarget { node, value, .. } = *target;
        if value.is_null() || !node.has(Features::RULES) {
            return Ok(());
        }
        deadline::tick();
        // A null counts as no old value, as on kube-apiserver.
        let target = &RuleTarget {
            old: target.old.filter(|old| !old.is_null()),
            ..*target
        };
        if node.has_here(Features::RULES) {
            self.rules(target)?;
        }
        if !node.has_below(Features::RULES) {
            return Ok(());
        }
        // An integer or a string has no parts, whatever its schema declares.
        let has_parts = || !node.schema().is_int_or_string();
        match value {
            Value::Object(map) if node.types() == Types::OBJECT && has_parts() => self.object(target, map),
            Value::Array(list) if node.types() == Types::ARRAY && has_parts() => self.list(target, list),
            Value::Object(_) | Value::Array(_) => {
                self.report_uncompiled(node, value, target.at);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Evaluates the rules of a value below another one.
    fn child(
        &mut self,
        parent: &RuleTarget<'_>,
        node: &PlanNode,
        value: &Value,
        old: Option<&Value>,
        at: &Path<'_>,
    ) -> Result<(), BudgetExhausted> {
        let correlated = parent.ratchet.correlate(node, old, value);
        self.value(&RuleTarget {
            node,
            value,
            old,
            ratchet: parent.ratchet.child(correlated.as_ref()),
            at,
        })
    }

    /// Reports entries of a value of the wrong type, which may have been stored before its CRD changed: rules
    /// cannot be compiled for them.
    fn report_uncompiled(&mut self, node: &PlanNode, value: &Value, at: &Path<'_>) {
        let mut entry = |node: &PlanNode, value: &Value, at: &Path<'_>| {
            if value.is_null() || !node.has(Features::RULES) {
                return;
            }
            deadline::tick();
            if node.has_here(Features::RULES) {
                let ty = node.schema().ty.map_or("", Type::as_str);
                self.report_error(|| FieldError::invalid(at, ty, NOT_COMPILED));
            }
            self.report_uncompiled(node, value, at);
        };
        match (value, node.items(), node.additional()) {
            (Value::Array(list), Some(items), _) => {
                for (i, item) in list.iter().enumerate() {
                    entry(items, item, &at.index(i));
                }
            }
            (Value::Object(map), _, Some(values)) => {
                for (key, value) in map.iter().filter(|(key, _)| node.property(key).is_none()) {
                    entry(values, value, &at.key(key));
                }
            }
            _ => {}
        }
    }

    fn list(&mut self, target: &RuleTarget<'_>, list: &[Value]) -> Result<(), BudgetExhausted> {
        let Some(items) = target.node.items().filter(|n| n.has(Features::RULES)) else {
            return Ok(());
        };
        let old = target.old.and_then(|old| OldList::for_value(target.node, old));
        for (i, item) in list.iter().enumerate() {
            let before = old.as_ref().and_then(|old| old.get(item));
            self.child(target, items, item, before, &target.at.index(i))?;
        }
        Ok(())
    }

    fn object(&mut self, target: &RuleTarget<'_>, map: &Map) -> Result<(), BudgetExhausted> {
        let RuleTarget { node, ratchet, .. } = *target;
        let old = target.old.and_then(Value::as_object);
        let mut result = Ok(());
        // kube-apiserver iterates over Go maps; the sorted order makes an exhausted budget reproducible.
        node.all_members(map.iter(), Features::RULES, |member| {
            let at = member.at(target.at);
            let before = old.and_then(|old| old.get(member.name));
            let is_hidden_metadata =
                node.is_resource() && member.name == "metadata" && !declares_metadata(node.schema());
            result = if is_hidden_metadata {
                let correlated = ratchet.correlate(member.node, before, member.value);
                self.names(&RuleTarget {
                    node: member.node,
                    value: member.value,
                    old: before,
                    ratchet: ratchet.child(correlated.as_ref()),
                    at: &at,
                })
            } else if target.at.is_root() && matches!(member.name.as_str(), "apiVersion" | "kind") {
                // These name the type that both objects were converted to: their old value is not known.
                self.value(&RuleTarget {
                    node: member.node,
                    value: member.value,
                    old: before,
                    ratchet: RatchetContext::NONE,
                    at: &at,
                })
            } else {
                self.child(target, member.node, member.value, before, &at)
            };
            result.is_ok()
        });
        result
    }

    /// Evaluates the rules of metadata whose fields the schema of the resource does not declare: expressions
    /// see only names there.
    fn names(&mut self, metadata: &RuleTarget<'_>) -> Result<(), BudgetExhausted> {
        for name in ["generateName", "name"] {
            if let (Some(node), Some(value)) = (metadata.node.property(name), metadata.value.get(name)) {
                let before = metadata.old.and_then(|old| old.get(name));
                self.child(metadata, node, value, before, &metadata.at.field(name))?;
            }
        }
        Ok(())
    }

    fn rules(&mut self, target: &RuleTarget<'_>) -> Result<(), BudgetExhausted> {
        let schema = target.node.schema();
        let Some(compiled_rules) = target.node.rules().and_then(|rules| rules.compiled(schema)) else {
            return Ok(());
        };
        // A budget that the last value used up exactly is reported here, at the next value with rules.
        if self.budget <= 0 {
            self.report_error(|| target.error(OUT_OF_BUDGET));
            return self.exhaust_budget();
        }
        let shape = &*compiled_rules.shape;
        for (index, (rule, compiled)) in schema.rules.iter().zip(&compiled_rules.rules).enumerate() {
            let program = match &compiled.program {
                None => continue,
                Some(Err(why)) => {
                    self.report_error(|| target.error(&format!("rule compile error: {why}")));
                    continue;
                }
                Some(Ok(program)) => program,
            };
            if compiled.uses_old_self && target.old.is_none() && !self.runs_without_old(rule) {
                continue;
            }
            let before = self.budget;
            let result = self.rule(target, rule, compiled, program, shape);
            if let Some(meter) = self.options.meter {
                meter(target.at, index, before.abs_diff(self.budget));
            }
            result?;
        }
        Ok(())
    }

    /// Charges a cost, if the budget suffices.
    #[inline]
    fn charge(&mut self, cost: u64) -> bool {
        // Cost is roughly proportional to time, so it also advances the check of the deadline.
        deadline::tick_for(usize::try_from(cost).unwrap_or(usize::MAX));
        match i64::try_from(cost) {
            Ok(cost) if cost <= self.budget => {
                self.budget -= cost;
                true
            }
            _ => false,
        }
    }

    /// Evaluates a rule and reports its error.
    fn rule(
        &mut self,
        target: &RuleTarget<'_>,
        rule: &ValidationRule,
        compiled: &ExecutableRule,
        program: &Program,
        shape: &Shape,
    ) -> Result<(), BudgetExhausted> {
        let old = OldSelf::new(target.old, rule.optional_old_self == Some(true), rule);
        let holds = self.evaluate(program, shape, target.value, old, |result| Ok(is_true(result?)));
        match holds {
            Some(Ok(true)) => Ok(()),
            Some(Ok(false)) => self.report_broken_rule(target, rule, compiled, shape),
            Some(Err(error)) => self.report_rule_error(target, rule, &error),
            None => {
                self.report_error(|| target.error(OUT_OF_BUDGET));
                self.exhaust_budget()
            }
        }
    }

    /// Reports a rule that cannot be evaluated.
    #[cold]
    fn report_rule_error(
        &mut self,
        target: &RuleTarget<'_>,
        rule: &ValidationRule,
        error: &EvalError,
    ) -> Result<(), BudgetExhausted> {
        let rule_label = rule_label(rule);
        if *error == EvalError::CostLimitExceeded {
            self.report_error(|| target.error(&format!(
                "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {rule_label}"
            )));
            return self.exhaust_budget();
        }
        self.report_error(|| {
            let why = error.to_string();
            // The checker cannot know the type of int-or-string.
            // kube-apiserver decides by the text of the error.
            target.error(&if why.starts_with("no such overload") {
                format!(
                    "'{why}': call arguments did not match a supported operator, function or macro signature for rule: {rule_label}"
                )
            } else {
                format!("{why} evaluating rule: {rule_label}")
            })
        });
        Ok(())
    }

    /// Returns whether a rule that uses `oldSelf` runs for a value that has no old value.
    fn runs_without_old(&self, rule: &ValidationRule) -> bool {
        rule.applies_on_create || (rule.optional_old_self == Some(true) && self.options.optional_old_self)
    }

    /// Reports a rule that is false, with its computed message if it has one.
    #[cold]
    fn report_broken_rule(
        &mut self,
        target: &RuleTarget<'_>,
        rule: &ValidationRule,
        compiled: &ExecutableRule,
        shape: &Shape,
    ) -> Result<(), BudgetExhausted> {
        // A transition rule has compared the old value itself, so its failure is about this change.
        let ratcheted = !compiled.uses_old_self && self.is_ratcheted(target.ratchet);
        let mut detail = None;
        if let Some(message) = &compiled.message {
            // Message expressions never see an optional.
            let old = OldSelf::new(target.old, false, rule);
            let why = match self.evaluate(message, shape, target.value, old, |result| match result? {
                Val::Str(text) => Ok(usable_message(text)),
                _ => Ok(None),
            }) {
                Some(Ok(message)) => {
                    detail = message;
                    None
                }
                Some(Err(EvalError::CostLimitExceeded)) => Some(format!(
                    "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                    go::quote(&rule.message_expression)
                )),
                // kube-apiserver only logs other errors and uses the rule's message.
                Some(_) => None,
                None => Some(MESSAGE_OUT_OF_BUDGET.to_owned()),
            };
            if let Some(why) = why {
                self.report_failure(ratcheted, || target.error_below(compiled, why));
                return self.exhaust_budget();
            }
        }
        self.report_failure(ratcheted, || {
            let detail = detail.unwrap_or_else(|| match rule.message.as_str() {
                "" => format!("failed rule: {}", rule.rule.trim()),
                message => message.trim().to_owned(),
            });
            target.failure(rule, compiled, detail)
        });
        Ok(())
    }

    fn is_ratcheted(&self, context: RatchetContext<'_>) -> bool {
        let nearest = context.correlated.or(context.around);
        self.options
            .ratchet
            .zip(nearest)
            .is_some_and(|(ratchet, nearest)| nearest.is_unchanged(ratchet))
    }

    /// Evaluates a program, charges its cost, and takes what is needed from the result before the arena is reused.
    /// Returns `None` if the budget does not suffice.
    #[inline]
    fn evaluate<T>(
        &mut self,
        program: &Program,
        shape: &Shape,
        value: &Value,
        old: OldSelf<'_>,
        take: impl FnOnce(Res<'_>) -> Result<T, EvalError>,
    ) -> Option<Result<T, EvalError>> {
        self.arena.reset();
        let arena = &self.arena;
        let old = match old.input(arena, shape) {
            Ok(input) => input,
            Err(error) => return Some(Err(error)),
        };
        let outcome = program.eval(arena, &[Input::Json(value, shape), old], LIMITS);
        // Charged even if the result is an error: the work was done.
        let taken = take(outcome.result);
        self.charge(outcome.cost).then_some(taken)
    }

    fn exhaust_budget(&mut self) -> Result<(), BudgetExhausted> {
        self.budget = -1;
        Err(BudgetExhausted)
    }

    fn report_error(&mut self, error: impl FnOnce() -> FieldError) {
        self.report.errors.push_with(error);
    }

    /// Reports a failure as an error, or as a warning if ratcheting tolerates it.
    fn report_failure(&mut self, ratcheted: bool, error: impl FnOnce() -> FieldError) {
        if ratcheted {
            self.report.warnings.push_with(|| error().to_string());
        } else {
            self.report_error(error);
        }
    }
}

fn is_true(result: Val<'_>) -> bool {
    matches!(result, Val::Bool(true))
}

/// The value of `oldSelf` in an evaluation.
enum OldSelf<'v> {
    Absent,
    Null,
    Plain(&'v Value),
    Optional(Option<&'v Value>),
}

impl<'v> OldSelf<'v> {
    fn new(old: Option<&'v Value>, optional: bool, rule: &ValidationRule) -> Self {
        match old {
            old if optional => OldSelf::Optional(old),
            Some(old) => OldSelf::Plain(old),
            None if rule.applies_on_create => OldSelf::Null,
            None => OldSelf::Absent,
        }
    }

    #[inline]
    fn input<'a>(self, arena: &'a Arena, shape: &'a Shape) -> Result<Input<'a>, EvalError>
    where
        'v: 'a,
    {
        Ok(match self {
            OldSelf::Absent => Input::Absent,
            OldSelf::Null => Input::Val(Val::Null),
            OldSelf::Plain(old) => Input::Json(old, shape),
            OldSelf::Optional(old) => {
                let old = old.map(|old| read(arena, old, shape)).transpose()?;
                Input::Val(arena.optional(old)?)
            }
        })
    }
}

impl RuleTarget<'_> {
    /// The type as errors name it; int-or-string has none.
    fn type_name(&self) -> &'static str {
        self.node.schema().ty.map_or("", Type::as_str)
    }

    /// An error about the rule rather than the value: it shows the type.
    fn error(&self, why: &str) -> FieldError {
        FieldError::invalid(self.at, self.type_name(), why)
    }

    /// The same at the `fieldPath` of the rule.
    fn error_below(&self, compiled: &ExecutableRule, why: String) -> FieldError {
        self.at_path(compiled, ErrorKind::Invalid, self.type_name().into(), why)
    }

    fn failure(&self, rule: &ValidationRule, compiled: &ExecutableRule, detail: String) -> FieldError {
        // kube-apiserver shows only scalars.
        let value = match self.node.schema().ty {
            Some(Type::Object | Type::Array) => BadValue::Omitted,
            _ => BadValue::Value(self.value.clone()),
        };
        match rule.reason.as_deref() {
            Some("FieldValueForbidden") => {
                self.at_path(compiled, ErrorKind::Forbidden, BadValue::Omitted, detail)
            }
            Some("FieldValueRequired") => {
                self.at_path(compiled, ErrorKind::Required, BadValue::Omitted, detail)
            }
            // UPSTREAM: an error about a duplicate cannot have a message.
            Some("FieldValueDuplicate") => self.at_path(compiled, ErrorKind::Duplicate, value, String::new()),
            _ => self.at_path(compiled, ErrorKind::Invalid, value, detail),
        }
    }

    fn at_path(
        &self,
        compiled: &ExecutableRule,
        kind: ErrorKind,
        value: BadValue,
        detail: String,
    ) -> FieldError {
        let Some(path) = &compiled.field_path else {
            return FieldError::new(kind, self.at, value, detail);
        };
        let field = if self.at.is_root() {
            path.to_string()
        } else {
            format!("{}.{path}", self.at)
        };
        FieldError::with_field(kind, field, value, detail).located(self.at)
    }
}

/// The rule as errors name it.
fn rule_label(rule: &ValidationRule) -> &str {
    match rule.message.as_str() {
        "" => rule.rule.trim(),
        message => message.trim(),
    }
}

/// A computed message, if it is a single line of acceptable length.
fn usable_message(message: &str) -> Option<String> {
    let message = message.trim();
    let is_usable = !message.is_empty() && message.len() <= MAX_MESSAGE && !message.contains('\n');
    is_usable.then(|| message.to_owned())
}
