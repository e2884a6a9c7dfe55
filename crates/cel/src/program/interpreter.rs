//! The interpreter: evaluates the tree of a program and counts its cost.
//!
//! `eval` computes any value and `test` a boolean, which spares conditions the detour through [`Val`]. Calls are in `call`, attributes in `attribute`, comprehensions in `fold`.

use super::call::ok;
use super::op::{
    AttributeMode, BlockOp, Conditional, ElementOp, Equality, InSet, MessageLiteral, Op, OptionalOr,
    OrResult, UnaryKind,
};
use super::{Input, Limits, Program};
use crate::env::Semantics;
use crate::estimate::{LIST_COST, MAP_COST, STRUCT_COST};
use crate::library::standard::{equal_cost, shorter_pass, shorter_text_cost};
use crate::shape::{Shape, ShapeKind};
use crate::val::{self, Arena, EvalError, Owned, Val};
use scantling_value::{Value, deadline, same_text};
use smallvec::SmallVec;
use std::sync::Arc;

/// The result of an operator.
pub(super) type Computed<T> = Result<T, EvalError>;

/// One evaluation.
pub(super) struct Interpreter<'a, 'c> {
    pub(super) arena: &'a Arena,
    pub(super) program: &'a Program,
    pub(super) inputs: &'c [Input<'a>],
    locals: SmallVec<[LocalValue<'a>; 6]>,
    cost: u64,
    limits: Limits<'c>,
    /// Loop iterations since the last check for an interrupt.
    iterations: u32,
}

/// The value of a variable of a comprehension or block.
pub(super) enum LocalValue<'a> {
    Absent,
    Val(Val<'a>),
    Json(&'a Value, &'a Shape),
    /// Evaluated on first use.
    Lazy(&'a Op),
    Error(EvalError),
}

/// Loop iterations between two checks for an interrupt.
const INTERRUPT_EVERY: u32 = 100;

impl<'a, 'c> Interpreter<'a, 'c> {
    #[inline]
    pub(super) fn new(
        program: &'a Program,
        arena: &'a Arena,
        inputs: &'c [Input<'a>],
        limits: Limits<'c>,
    ) -> Self {
        Interpreter {
            arena,
            program,
            inputs,
            locals: SmallVec::new(),
            cost: 0,
            limits,
            iterations: 0,
        }
    }

    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    /// Adds to the cost. Beyond the limit the evaluation ends.
    #[inline]
    pub(super) fn charge(&mut self, cost: u64) -> Computed<()> {
        // Saturates instead of wrapping, so that a huge cost exceeds every limit.
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limits.cost {
            return Err(EvalError::CostLimitExceeded);
        }
        Ok(())
    }

    /// Charges for a computed value or error, unless the error is final.
    #[inline]
    pub(super) fn charge_for<T>(&mut self, computed: Computed<T>, cost: u64) -> Computed<T> {
        match computed {
            Err(e) if e.is_final() => Err(e),
            // An error of the cost limit takes precedence over the computed one: cel-go checks the limit after every
            // node.
            computed => self.charge(cost).and(computed),
        }
    }

    pub(super) fn refund(&mut self, cost: u64) {
        self.cost = self.cost.saturating_sub(cost);
    }

    /// Counts a loop iteration. An interrupt ends the evaluation.
    #[inline]
    pub(super) fn tick(&mut self) -> Computed<()> {
        self.iterations += 1;
        if self.iterations < INTERRUPT_EVERY {
            return Ok(());
        }
        // Interrupts are checked only in loops: the rest of an expression is bounded by its size and by the
        // cost of its calls.
        self.iterations = 0;
        // The cost limit bounds one rule. The deadline also stops a request that runs many rules.
        deadline::tick_by(INTERRUPT_EVERY);
        if self.limits.interrupt.is_some_and(|interrupt| interrupt()) {
            return Err(EvalError::Interrupted);
        }
        Ok(())
    }

    #[inline]
    pub(super) fn set(&mut self, local: usize, value: LocalValue<'a>) {
        if local >= self.locals.len() {
            // Grown on demand: most rules have no comprehension, and an empty `SmallVec` costs nothing.
            self.locals.resize_with(local + 1, || LocalValue::Absent);
        }
        // Always there: the variables have just been extended to include it.
        if let Some(slot) = self.locals.get_mut(local) {
            *slot = value;
        }
    }

    pub(super) fn set_result(&mut self, local: usize, value: Computed<Val<'a>>) {
        let value = match value {
            Ok(value) => LocalValue::Val(value),
            Err(e) => LocalValue::Error(e),
        };
        self.set(local, value);
    }

    #[inline]
    pub(super) fn local(&self, local: usize) -> Option<&LocalValue<'a>> {
        self.locals.get(local)
    }

    /// Evaluates a lazy variable on its first use.
    #[inline(never)]
    pub(super) fn force(&mut self, local: usize, op: &'a Op) {
        let value = self.eval(op);
        self.set_result(local, value);
    }

    /// Evaluates an op.
    // Every arm is only a call, so that no op pays for the stack frame of another.
    pub(super) fn eval(&mut self, op: &'a Op) -> Computed<Val<'a>> {
        match op {
            Op::Attribute(attribute) => self.attribute(attribute),
            Op::Const(constant) => self.constant(constant),
            Op::Binary(call) => self.binary(call),
            Op::Concat(call) => self.concat(call),
            Op::Unary(call) if call.kind != UnaryKind::Not => self.unary(call),
            Op::Call(call) => self.call(call),
            Op::Conditional(conditional) => self.conditional(conditional),
            Op::Fold(fold) => self.fold(fold),
            Op::List(elements) => self.list(elements),
            Op::Map(entries) => self.map(entries),
            Op::Message(literal) => self.message(literal),
            Op::Block(block) => self.block(block),
            Op::OptionalOr(optional_or) => self.optional_or(optional_or),
            Op::Unresolved(error) => self.unresolved(error),
            Op::And(_)
            | Op::Or(_)
            | Op::NotStrictlyFalse(_)
            | Op::Equality(_)
            | Op::Comparison(_)
            | Op::InSet(_)
            | Op::Unary(_) => self.eval_test(op),
        }
    }

    #[inline(never)]
    fn eval_test(&mut self, op: &'a Op) -> Computed<Val<'a>> {
        self.test(op).map(Val::Bool)
    }

    /// Evaluates an op whose value must be a boolean; any other value is the error `no such overload`.
    pub(super) fn test(&mut self, op: &'a Op) -> Computed<bool> {
        match op {
            Op::And(terms) => self.junction(terms, false),
            Op::Or(terms) => self.junction(terms, true),
            Op::Equality(equality) => self.equality(equality),
            Op::Comparison(comparison) => self.comparison(comparison),
            Op::Attribute(attribute) if attribute.mode == AttributeMode::Presence => self.presence(attribute),
            Op::Unary(call) if call.kind == UnaryKind::Not => self.negation(call),
            Op::InSet(in_set) => self.in_set(in_set),
            // With qualifiers, the branches are values that something is selected from.
            Op::Conditional(conditional) if conditional.path.is_empty() => self.test_conditional(conditional),
            Op::Const(Owned::Bool(constant)) => Ok(*constant),
            Op::NotStrictlyFalse(term) => self.not_strictly_false(term),
            op => self.test_value(op),
        }
    }

    #[inline(never)]
    fn test_value(&mut self, op: &'a Op) -> Computed<bool> {
        self.eval(op).and_then(as_bool)
    }

    #[inline(never)]
    fn constant(&self, value: &'a Owned) -> Computed<Val<'a>> {
        value.val(self.arena)
    }

    #[inline(never)]
    fn unresolved(&mut self, error: &EvalError) -> Computed<Val<'a>> {
        self.charge(1)?;
        Err(error.clone())
    }

    /// `@not_strictly_false(a)`: anything but `false` is `true`.
    #[inline(never)]
    fn not_strictly_false(&mut self, term: &'a Op) -> Computed<bool> {
        // The call is charged even if its argument is an error, which it absorbs.
        let value = self.test(term);
        match self.charge_for(value, 1) {
            Err(e) if !e.is_final() => Ok(true),
            value => value,
        }
    }

    /// `a && b` and `a || b`. A decisive term wins over an error in the other term, on either side.
    #[inline(never)]
    fn junction(&mut self, terms: &'a [Op; 2], decisive: bool) -> Computed<bool> {
        let [first, second] = terms;
        match self.test(first) {
            Ok(term) if term == decisive => Ok(decisive),
            // The second term decides alone: with the neutral element on the left, `&&` and `||` are the identity.
            Ok(_) => self.test(second),
            Err(e) if e.is_final() => Err(e),
            Err(e) => self.junction_after_error(e, second, decisive),
        }
    }

    /// If neither term is decisive, the error of the first one stands.
    #[cold]
    fn junction_after_error(&mut self, first: EvalError, second: &'a Op, decisive: bool) -> Computed<bool> {
        match self.test(second) {
            Ok(term) if term == decisive => Ok(decisive),
            Err(e) if e.is_final() => Err(e),
            _ => Err(first),
        }
    }

    /// The branch that the condition selects.
    #[inline]
    fn branch(&mut self, conditional: &'a Conditional) -> Computed<&'a Op> {
        Ok(if self.test(&conditional.condition)? {
            &conditional.if_true
        } else {
            &conditional.if_false
        })
    }

    #[inline(never)]
    fn conditional(&mut self, conditional: &'a Conditional) -> Computed<Val<'a>> {
        let branch = self.branch(conditional)?;
        let value = self.resolve(branch)?;
        if conditional.path.is_empty() {
            return Ok(value);
        }
        self.qualify_conditional(conditional, value)
    }

    #[inline(never)]
    fn test_conditional(&mut self, conditional: &'a Conditional) -> Computed<bool> {
        match self.branch(conditional)? {
            // A branch that is an attribute costs only its qualifiers; `test` would charge 1 more.
            branch @ Op::Attribute(_) => self.resolve(branch).and_then(as_bool),
            branch => self.test(branch),
        }
    }

    /// Evaluates an op that is part of another attribute. There an attribute costs only its qualifiers, since
    /// kube-apiserver resolves both as one.
    pub(super) fn resolve(&mut self, op: &'a Op) -> Computed<Val<'a>> {
        match op {
            Op::Attribute(attribute) => self.resolve_attribute(attribute),
            op => self.eval(op),
        }
    }

    /// `a.or(b)` and `a.orValue(b)`, which cost nothing themselves.
    #[inline(never)]
    fn optional_or(&mut self, optional_or: &'a OptionalOr) -> Computed<Val<'a>> {
        match self.eval(&optional_or.optional)? {
            Val::Optional(None) => self.eval(&optional_or.otherwise),
            Val::Optional(Some(value)) if optional_or.result_kind == OrResult::Value => Ok(*value),
            optional @ Val::Optional(_) => Ok(optional),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    #[inline(never)]
    fn in_set(&mut self, in_set: &'a InSet) -> Computed<bool> {
        // Nothing has been charged or evaluated if this fails, so the general path can start over.
        if let Some((text, cost)) = self.string_operand(&in_set.value) {
            self.charge(cost)?;
            return Ok(in_set.set.contains(Val::Str(text)));
        }
        let value = self.operand(&in_set.value)?;
        Ok(in_set.set.contains(value))
    }

    /// The string that an op gives, and its cost, if it is a constant or a declared field.
    #[inline]
    pub(super) fn string_operand(&self, op: &'a Op) -> Option<(&'a str, u64)> {
        match op {
            Op::Attribute(attribute) if attribute.mode == AttributeMode::Value => {
                match self.declared_value(attribute)? {
                    (Value::String(text), shape)
                        // A string of any other shape is read as bytes, a timestamp or a duration, or does not fit.
                        if matches!(shape.kind, ShapeKind::String | ShapeKind::IntOrString) =>
                    {
                        Some((text, attribute.cost()))
                    }
                    _ => None,
                }
            }
            Op::Const(Owned::Str(text)) => Some((text, 0)),
            _ => None,
        }
    }

    /// `a == b` and `a != b`. Comparisons with constants come first because most rules consist of them.
    #[inline(never)]
    fn equality(&mut self, equality: &'a Equality) -> Computed<bool> {
        let Equality { left, right, negated } = equality;
        match right {
            Op::Const(Owned::Str(b)) => {
                if let Some((a, cost)) = self.string_operand(left) {
                    self.charge(cost)?;
                    self.charge(shorter_text_cost(a, b))?;
                    return Ok(same_text(a, b) != *negated);
                }
            }
            Op::Const(Owned::Int(b)) => {
                if let Some((a, cost)) = self.int_operand(left) {
                    self.charge(cost)?;
                    self.charge(1)?;
                    return Ok((a == *b) != *negated);
                }
            }
            _ => {}
        }
        self.any_equality(equality)
    }

    #[inline(never)]
    fn any_equality(&mut self, equality: &'a Equality) -> Computed<bool> {
        let Equality { left, right, negated } = equality;
        let a = match self.operand(left) {
            Ok(a) => a,
            Err(e) if e.is_final() => return Err(e),
            // cel-go evaluates the right operand even if the left one is an error, and its cost counts.
            left => {
                let right = self.eval(right);
                return self.equality_error(left, right, *negated);
            }
        };
        let b = match self.operand(right) {
            Ok(b) => b,
            right => return self.equality_error(Ok(a), right, *negated),
        };
        let equal = match (a, b) {
            // Scalars need neither a formula for their cost nor the arena.
            (Val::Int(a), Val::Int(b)) => {
                self.charge(1)?;
                a == b
            }
            (Val::Str(a), Val::Str(b)) => {
                self.charge(shorter_text_cost(a, b))?;
                same_text(a, b)
            }
            (Val::Bool(a), Val::Bool(b)) => {
                self.charge(1)?;
                a == b
            }
            _ => {
                self.charge(equality_cost(Some(a), Some(b), *negated))?;
                match val::equal(self.arena, a, b) {
                    Err(e) if e.is_final() => return Err(e),
                    // Incomparable values are different.
                    equal if *negated => equal == Ok(true),
                    // `==` of values that do not compare is an error; cel-go's `!=` only asks whether `==` is true.
                    equal => equal?,
                }
            }
        };
        Ok(equal != *negated)
    }

    /// The operator costs the same if an operand is an error.
    #[cold]
    fn equality_error(
        &mut self,
        left: Computed<Val<'a>>,
        right: Computed<Val<'a>>,
        negated: bool,
    ) -> Computed<bool> {
        let cost = equality_cost(ok(&left), ok(&right), negated);
        let right = match right {
            Err(e) if e.is_final() => return Err(e),
            right => right,
        };
        self.charge_for(left.and(right), cost).and_then(as_bool)
    }

    #[inline(never)]
    fn list(&mut self, elements: &'a [ElementOp]) -> Computed<Val<'a>> {
        let items = self.elements(elements);
        // Charged even if an element is an error: cel-go counts the constructor whatever its elements give.
        let items = self.charge_for(items, LIST_COST)?;
        self.arena.list(items)
    }

    fn elements(&mut self, elements: &'a [ElementOp]) -> Computed<SmallVec<[Val<'a>; 4]>> {
        let mut items = SmallVec::with_capacity(elements.len());
        for element in elements {
            match (element.optional, self.eval(&element.op)?) {
                (false, value) => items.push(value),
                (true, Val::Optional(value)) => items.extend(value.copied()),
                (true, value) => {
                    return Err(EvalError::message(format!(
                        "cannot initialize optional list element from non-optional value {value}"
                    )));
                }
            }
        }
        Ok(items)
    }

    #[inline(never)]
    fn map(&mut self, entries: &'a [(Op, ElementOp)]) -> Computed<Val<'a>> {
        let entries = self.entries(entries);
        let entries = self.charge_for(entries, MAP_COST)?;
        // kube-apiserver lets the last of several equal keys win.
        if self.program.semantics == Semantics::Specification {
            check_keys(entries.iter().map(|(key, _)| *key))?;
        }
        self.arena.map(entries)
    }

    fn entries(&mut self, entries: &'a [(Op, ElementOp)]) -> Computed<Vec<(Val<'a>, Val<'a>)>> {
        let mut items: Vec<(Val<'a>, Val<'a>)> = Vec::with_capacity(entries.len());
        for (key, element) in entries {
            let key = self.eval(key)?;
            match (element.optional, self.eval(&element.op)?) {
                (false, value) => items.push((key, value)),
                (true, Val::Optional(Some(value))) => items.push((key, *value)),
                // An absent entry removes an earlier one with the same key.
                (true, Val::Optional(None)) => items.retain(|(k, _)| val::key_order(*k, key).is_ne()),
                (true, value) => return Err(not_optional(key, value)),
            }
        }
        Ok(items)
    }

    #[inline(never)]
    fn message(&mut self, literal: &'a MessageLiteral) -> Computed<Val<'a>> {
        let fields = self.fields(&literal.fields);
        let fields = self.charge_for(fields, STRUCT_COST)?;
        // Object types of a schema check, but kube-apiserver cannot construct them.
        let Some(message) = literal.message else {
            return Err(EvalError::message(format!("unknown type '{}'", literal.name)));
        };
        let known = fields.iter().map(|(name, value)| match message.field(name) {
            Some(field) => Ok((field, *value)),
            None => Err(EvalError::message(format!("no such field '{name}'"))),
        });
        message.make(self.arena, &known.collect::<Result<Vec<_>, _>>()?)
    }

    fn fields(&mut self, fields: &'a [(Arc<str>, ElementOp)]) -> Computed<Vec<(&'a str, Val<'a>)>> {
        let mut set: Vec<(&'a str, Val<'a>)> = Vec::with_capacity(fields.len());
        for (name, element) in fields {
            match (element.optional, self.eval(&element.op)?) {
                (false, value) => set.push((name, value)),
                (true, Val::Optional(Some(value))) => set.push((name, *value)),
                // An absent field removes an earlier one with the same name.
                (true, Val::Optional(None)) => set.retain(|(n, _)| *n != name.as_ref()),
                (true, value) => return Err(not_optional(name, value)),
            }
        }
        Ok(set)
    }

    #[inline(never)]
    fn block(&mut self, block: &'a BlockOp) -> Computed<Val<'a>> {
        for (i, value) in block.values.iter().enumerate() {
            // Lazy, so that a value that is never used costs nothing and its error does not surface.
            self.set(block.first + i, LocalValue::Lazy(value));
        }
        self.eval(&block.result)
    }
}

#[inline]
pub(super) fn as_bool(value: Val<'_>) -> Computed<bool> {
    match value {
        Val::Bool(value) => Ok(value),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn equality_cost<'a>(a: Option<Val<'a>>, b: Option<Val<'a>>, negated: bool) -> u64 {
    if negated {
        shorter_pass(&[a, b], None)
    } else {
        equal_cost(&[a, b], None)
    }
}

#[cold]
fn not_optional(entry: impl std::fmt::Display, value: Val<'_>) -> EvalError {
    EvalError::message(format!(
        "cannot initialize optional entry '{entry}' from non-optional value {value}"
    ))
}

/// Checks that the keys have types that the specification allows and are distinct.
pub(super) fn check_keys<'a>(keys: impl Iterator<Item = Val<'a>>) -> Result<(), EvalError> {
    let mut keys: Vec<_> = keys.collect();
    if !keys
        .iter()
        .all(|k| matches!(k, Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Str(_)))
    {
        return Err(EvalError::message("unsupported key type"));
    }
    // Sorted, so that equal keys are adjacent even if one is an `int` and the other a `uint`.
    keys.sort_by(|a, b| val::key_order(*a, *b));
    let repeated = |pair: &[Val<'a>]| matches!(pair, [a, b] if val::is_same_key(*a, *b));
    if keys.windows(2).any(repeated) {
        return Err(EvalError::message("Failed with repeated key"));
    }
    Ok(())
}
