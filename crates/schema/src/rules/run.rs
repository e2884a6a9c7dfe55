//! Evaluates the rules of an object.

mod fast_path;

use super::compiled::{CompiledRules, ExecutableRule};
use super::shape::declares_metadata;
use crate::correlate::OldList;
use crate::plan::{Features, PlanNode, Types};
use crate::structural::{Type, ValidationRule};
use crate::validate::Ratchet;
use fast_path::Before;
use scantling_cel::program::{Input, Limits, Program};
use scantling_cel::shape::Shape;
use scantling_cel::val::{Arena, EvalError, Val, read};
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
    let mut run = RuleRunner::new(options);
    let start = run.budget;
    let before = old.map_or(Before::Absent, |_| Before::Present);
    if options.meter.is_none() && run.fast_path(node, value, before) {
        run.report.cost = start.abs_diff(run.budget);
        run.assert_report(node, value, old);
        return run.report;
    }
    run.budget = start;
    run.walk(node, value, old)
}

/// The budget is exhausted: no further rule runs.
struct BudgetExhausted;

/// A value and the old one that it goes back to.
struct Correlated<'a> {
    node: &'a PlanNode,
    old: &'a Value,
    new: &'a Value,
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
            let answer = ratchet.unchanged(self.node, self.old, self.new);
            self.unchanged.set(Some(answer));
            answer
        })
    }
}

/// What ratcheting knows at a target: the value if it correlates, and else the nearest one around it that does.
#[derive(Clone, Copy)]
struct RatchetContext<'a> {
    correlated: Option<&'a Correlated<'a>>,
    around: Option<&'a Correlated<'a>>,
}

impl<'a> RatchetContext<'a> {
    const NOWHERE: RatchetContext<'static> = RatchetContext {
        correlated: None,
        around: None,
    };

    /// A value below, with its old value if that is known.
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

struct RuleRunner<'o> {
    options: &'o RuleOptions<'o>,
    budget: i64,
    report: RuleReport,
    arena: Arena,
}

impl<'o> RuleRunner<'o> {
    fn new(options: &'o RuleOptions<'o>) -> Self {
        RuleRunner {
            options,
            budget: i64::try_from(options.budget).unwrap_or(i64::MAX),
            report: RuleReport::default(),
            arena: Arena::new(),
        }
    }

    /// Runs one rule after the other, ready to say what is wrong.
    fn walk(mut self, node: &PlanNode, value: &Value, old: Option<&Value>) -> RuleReport {
        let start = self.budget;
        let ratchet = self.options.ratchet;
        let correlated = ratchet.and(old).map(|old| Correlated::new(node, old, value));
        let ratchet_context = RatchetContext {
            correlated: correlated.as_ref(),
            around: None,
        };
        // An exhausted budget is part of the report.
        let _ = self.value(node, value, old, ratchet_context, self.options.at);
        self.report.cost = start.abs_diff(self.budget);
        self.report
    }

    /// Holds what was found at a glance against what a walk finds that looks at each rule, in debug builds.
    fn assert_report(&self, node: &PlanNode, value: &Value, old: Option<&Value>) {
        if cfg!(debug_assertions) {
            let walk = RuleRunner::new(self.options).walk(node, value, old);
            assert!(walk.errors.is_empty() && walk.warnings.is_empty(), "{walk:?}");
            assert_eq!(walk.cost, self.report.cost);
        }
    }

    fn value(
        &mut self,
        node: &PlanNode,
        value: &Value,
        old: Option<&Value>,
        ratchet_context: RatchetContext<'_>,
        at: &Path<'_>,
    ) -> Result<(), BudgetExhausted> {
        if value.is_null() || !node.has(Features::RULES) {
            return Ok(());
        }
        deadline::tick();
        let old = old.filter(|old| !old.is_null());
        if node.is(Features::RULES) {
            self.rules(node, value, old, ratchet_context, at)?;
        }
        if !node.has_below(Features::RULES) {
            return Ok(());
        }
        // An integer or a string has no parts, whatever its schema declares.
        let has_parts = || !node.schema().is_int_or_string();
        match value {
            Value::Object(map) if node.types() == Types::OBJECT && has_parts() => {
                self.object(node, map, old.and_then(Value::as_object), ratchet_context, at)
            }
            Value::Array(list) if node.types() == Types::ARRAY && has_parts() => {
                self.list(node, list, old, ratchet_context, at)
            }
            Value::Object(_) | Value::Array(_) => {
                self.report_uncompiled(node, value, at);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Reports entries of a value of the wrong type, which may have been stored before its CRD changed: rules
    /// cannot be compiled for them.
    fn report_uncompiled(&mut self, node: &PlanNode, value: &Value, at: &Path<'_>) {
        let mut entry = |node: &PlanNode, value: &Value, at: &Path<'_>| {
            if value.is_null() || !node.has(Features::RULES) {
                return;
            }
            deadline::tick();
            if node.is(Features::RULES) {
                let ty = node.schema().ty.map_or("", Type::as_str);
                self.fail(|| FieldError::invalid(at, ty, NOT_COMPILED));
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

    fn list(
        &mut self,
        node: &PlanNode,
        list: &[Value],
        old: Option<&Value>,
        ratchet_context: RatchetContext<'_>,
        at: &Path<'_>,
    ) -> Result<(), BudgetExhausted> {
        let Some(items) = node.items().filter(|n| n.has(Features::RULES)) else {
            return Ok(());
        };
        let old = old.and_then(|old| OldList::for_value(node, old));
        for (i, item) in list.iter().enumerate() {
            let before = old.as_ref().and_then(|old| old.get(item));
            let correlated = ratchet_context.correlate(items, before, item);
            self.value(
                items,
                item,
                before,
                ratchet_context.child(correlated.as_ref()),
                &at.index(i),
            )?;
        }
        Ok(())
    }

    fn object(
        &mut self,
        node: &PlanNode,
        map: &Map,
        old: Option<&Map>,
        ratchet_context: RatchetContext<'_>,
        at: &Path<'_>,
    ) -> Result<(), BudgetExhausted> {
        let root = ratchet_context.around.is_none();
        let mut result = Ok(());
        node.all_members(map.iter(), Features::RULES, |member| {
            let (name, value, child, at) = (member.name, member.value, member.node, member.at(at));
            let before = old.and_then(|old| old.get(name));
            let correlated = ratchet_context.correlate(child, before, value);
            let below = if root && matches!(name.as_str(), "apiVersion" | "kind") {
                // These name the type that both objects were converted to: their old value is not known.
                RatchetContext::NOWHERE
            } else {
                ratchet_context.child(correlated.as_ref())
            };
            result = if node.is_resource() && name == "metadata" && !declares_metadata(node.schema()) {
                self.names(child, value, before, below, &at)
            } else {
                self.value(child, value, before, below, &at)
            };
            result.is_ok()
        });
        result
    }

    /// In the metadata of a resource, expressions see only names.
    fn names(
        &mut self,
        node: &PlanNode,
        value: &Value,
        old: Option<&Value>,
        ratchet_context: RatchetContext<'_>,
        at: &Path<'_>,
    ) -> Result<(), BudgetExhausted> {
        for name in ["generateName", "name"] {
            if let (Some(child), Some(value)) = (node.property(name), value.get(name)) {
                let before = old.and_then(|old| old.get(name));
                let correlated = ratchet_context.correlate(child, before, value);
                self.value(
                    child,
                    value,
                    before,
                    ratchet_context.child(correlated.as_ref()),
                    &at.field(name),
                )?;
            }
        }
        Ok(())
    }

    fn rules(
        &mut self,
        node: &PlanNode,
        value: &Value,
        old: Option<&Value>,
        ratchet_context: RatchetContext<'_>,
        at: &Path<'_>,
    ) -> Result<(), BudgetExhausted> {
        let Some(compiled_rules) = node.rules().and_then(|rules| rules.compiled(node.schema())) else {
            return Ok(());
        };
        let target = RuleTarget {
            node,
            value,
            at,
            ratchet_context,
        };
        if self.budget <= 0 {
            self.fail(|| target.error(OUT_OF_BUDGET));
            return self.spent();
        }
        let all_kept = self.options.meter.is_none() && self.all_hold(compiled_rules, value);
        if all_kept && !compiled_rules.has_others {
            return Ok(());
        }
        let inputs = [
            Input::Json(value, &compiled_rules.shape),
            old.map_or(Input::Absent, |old| Input::Json(old, &compiled_rules.shape)),
        ];
        for (index, (rule, compiled)) in node.schema().rules.iter().zip(&compiled_rules.rules).enumerate() {
            if all_kept && compiled_rules.fused.include(index) {
                continue;
            }
            let program = match &compiled.program {
                None => continue,
                Some(Err(why)) => {
                    self.fail(|| target.error(&format!("rule compile error: {why}")));
                    continue;
                }
                Some(Ok(program)) => program,
            };
            if compiled.uses_old_self && old.is_none() && !self.runs_without_old(rule) {
                continue;
            }
            let before = self.budget;
            let result = if compiled.sees_plain_old_self && self.holds(program, &inputs) {
                Ok(())
            } else {
                self.rule(&target, rule, compiled, program, compiled_rules, old)
            };
            if let Some(meter) = self.options.meter {
                meter(at, index, before.abs_diff(self.budget));
            }
            result?;
        }
        Ok(())
    }

    /// Evaluates the fused rules; returns whether all hold. If so, charges their cost.
    #[inline]
    fn all_hold(&mut self, compiled_rules: &CompiledRules, value: &Value) -> bool {
        self.arena.reset();
        let cost = compiled_rules.fused.all_hold(value, &self.arena, LIMITS.cost);
        cost.is_some_and(|cost| self.pay(cost))
    }

    /// Evaluates a rule in fast mode; returns whether it holds. If so, charges its cost.
    fn holds<'v>(&mut self, program: &'v Program, inputs: &[Input<'v>]) -> bool {
        self.arena.reset();
        let Some((true, cost)) = program.test(&self.arena, inputs, LIMITS) else {
            return false;
        };
        self.pay(cost)
    }

    /// Charges a cost, if the budget suffices.
    #[inline]
    fn pay(&mut self, cost: u64) -> bool {
        deadline::tick_for(usize::try_from(cost).unwrap_or(usize::MAX));
        match i64::try_from(cost) {
            Ok(cost) if cost <= self.budget => {
                self.budget -= cost;
                true
            }
            _ => false,
        }
    }

    #[inline(never)]
    fn rule(
        &mut self,
        target: &RuleTarget<'_>,
        rule: &ValidationRule,
        compiled: &ExecutableRule,
        program: &Program,
        compiled_rules: &CompiledRules,
        old: Option<&Value>,
    ) -> Result<(), BudgetExhausted> {
        let optional = rule.optional_old_self == Some(true);
        let answer = self.evaluate(
            program,
            compiled_rules,
            target.value,
            OldSelf::new(old, optional, rule),
        );
        let answer = self.charge(answer).map_err(|BudgetExhausted| {
            self.fail(|| target.error(OUT_OF_BUDGET));
            BudgetExhausted
        })?;
        match answer {
            Ok(RuleResult::True) => {}
            Ok(_) => self.failed(target, rule, compiled, compiled_rules, old)?,
            Err(error) => {
                let rule_label = rule_label(rule);
                if error == EvalError::CostLimitExceeded {
                    self.fail(|| target.error(&format!(
                        "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {rule_label}"
                    )));
                    return self.spent();
                }
                self.fail(|| {
                    let why = error.to_string();
                    // The checker cannot know the type of int-or-string.
                    target.error(&if why.starts_with("no such overload") {
                        format!(
                            "'{why}': call arguments did not match a supported operator, function or macro signature for rule: {rule_label}"
                        )
                    } else {
                        format!("{why} evaluating rule: {rule_label}")
                    })
                });
            }
        }
        Ok(())
    }

    fn runs_without_old(&self, rule: &ValidationRule) -> bool {
        rule.applies_on_create || (rule.optional_old_self == Some(true) && self.options.optional_old_self)
    }

    /// Builds the error of a rule that is false.
    fn failed(
        &mut self,
        target: &RuleTarget<'_>,
        rule: &ValidationRule,
        compiled: &ExecutableRule,
        compiled_rules: &CompiledRules,
        old: Option<&Value>,
    ) -> Result<(), BudgetExhausted> {
        let ratcheted = !compiled.uses_old_self && self.is_ratcheted(target.ratchet_context);
        let mut detail = None;
        if let Some(message) = &compiled.message {
            // Message expressions never see an optional.
            let answer = self.evaluate(
                message,
                compiled_rules,
                target.value,
                OldSelf::new(old, false, rule),
            );
            let text = rule.message_expression.as_str();
            let Ok(answer) = self.charge(answer) else {
                const SPENT: &str = "messageExpression evaluation failed due to running out of cost budget, no further \
                     validation rules will be run";
                self.report_failure(ratcheted, || target.error_below(compiled, SPENT));
                return self.spent();
            };
            detail = match answer {
                Ok(RuleResult::Text(message)) => usable_message(&message),
                Err(EvalError::CostLimitExceeded) => {
                    self.report_failure(ratcheted, || {
                        let why = format!(
                            "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
                            go::quote(text)
                        );
                        target.error_below(compiled, &why)
                    });
                    return self.spent();
                }
                Ok(_) | Err(_) => None,
            };
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

    fn is_ratcheted(&self, ratchet_context: RatchetContext<'_>) -> bool {
        let nearest = ratchet_context.correlated.or(ratchet_context.around);
        self.options
            .ratchet
            .zip(nearest)
            .is_some_and(|(ratchet, nearest)| nearest.is_unchanged(ratchet))
    }

    fn evaluate(
        &mut self,
        program: &Program,
        compiled_rules: &CompiledRules,
        value: &Value,
        old: OldSelf<'_>,
    ) -> Evaluation {
        self.arena.reset();
        let arena = &self.arena;
        let old = match old.input(arena, &compiled_rules.shape) {
            Ok(input) => input,
            Err(error) => {
                return Evaluation {
                    answer: Err(error),
                    cost: 0,
                };
            }
        };
        let outcome = program.eval(arena, &[Input::Json(value, &compiled_rules.shape), old], LIMITS);
        let answer = outcome.result.map(|val| match val {
            Val::Bool(true) => RuleResult::True,
            Val::Str(text) => RuleResult::Text(text.to_owned()),
            _ => RuleResult::Other,
        });
        Evaluation {
            answer,
            cost: outcome.cost,
        }
    }

    /// Charges the cost of an evaluation.
    fn charge(&mut self, evaluated: Evaluation) -> Result<Result<RuleResult, EvalError>, BudgetExhausted> {
        if self.pay(evaluated.cost) {
            return Ok(evaluated.answer);
        }
        self.budget = -1;
        Err(BudgetExhausted)
    }

    fn spent(&mut self) -> Result<(), BudgetExhausted> {
        self.budget = -1;
        Err(BudgetExhausted)
    }

    fn fail(&mut self, error: impl FnOnce() -> FieldError) {
        self.report.errors.push_with(error);
    }

    fn report_failure(&mut self, ratcheted: bool, error: impl FnOnce() -> FieldError) {
        if ratcheted {
            self.report.warnings.push_with(|| error().to_string());
        } else {
            self.fail(error);
        }
    }
}

struct Evaluation {
    answer: Result<RuleResult, EvalError>,
    cost: u64,
}

enum RuleResult {
    True,
    Text(String),
    Other,
}

/// The value of `oldSelf`.
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

/// A value that a rule is about.
struct RuleTarget<'a> {
    node: &'a PlanNode,
    value: &'a Value,
    at: &'a Path<'a>,
    ratchet_context: RatchetContext<'a>,
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

    fn error_below(&self, compiled: &ExecutableRule, why: &str) -> FieldError {
        self.at_path(
            compiled,
            ErrorKind::Invalid,
            self.type_name().into(),
            why.to_owned(),
        )
    }

    fn failure(&self, rule: &ValidationRule, compiled: &ExecutableRule, detail: String) -> FieldError {
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
    let fine = !message.is_empty() && message.len() <= MAX_MESSAGE && !message.contains('\n');
    fine.then(|| message.to_owned())
}
