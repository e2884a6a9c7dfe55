//! Walking the tree.

use super::call::ok;
use super::op::{BlockOp, Conditional, ElementOp, Equality, InSet, MessageLiteral, Op, OptionalOr, OrResult};
use super::{Input, Limits, Program};
use crate::env::Semantics;
use crate::estimate::{LIST_COST, MAP_COST, STRUCT_COST};
use crate::library::standard::{equal_cost, shorter_pass, shorter_text_cost};
use crate::shape::Shape;
use crate::val::{self, Arena, EvalError, Owned, Res, Val};
use scantling_value::{Value, deadline, same_text};
use smallvec::SmallVec;
use std::sync::Arc;

/// One evaluation.
pub(super) struct Interpreter<'a, 'c> {
    pub(super) arena: &'a Arena,
    pub(super) program: &'a Program,
    /// Read where they are: most rules read each of them a few times.
    pub(super) inputs: &'c [Input<'a>],
    locals: SmallVec<[LocalValue<'a>; 6]>,
    cost: u64,
    limits: Limits<'c>,
    steps: u32,
}

/// What a variable of a fold or block holds.
pub(super) enum LocalValue<'a> {
    Absent,
    Val(Val<'a>),
    Json(&'a Value, &'a Shape),
    /// To be computed when it is first used.
    Lazy(&'a Op),
    Error(EvalError),
}

/// The most steps of folds between two questions whether to stop.
pub(super) const INTERRUPT_EVERY: u32 = 100;

impl<'a, 'c> Interpreter<'a, 'c> {
    /// A interpreter that has no variables yet: it is made where it stands, and not moved once it has them.
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
            steps: 0,
        }
    }

    /// Runs the program.
    #[inline]
    pub(super) fn run(&mut self) -> Res<'a> {
        if self.program.locals > 0 {
            self.locals
                .resize_with(self.program.locals, || LocalValue::Absent);
        }
        self.eval(&self.program.root)
    }

    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    /// Adds to the cost; beyond the limit, the evaluation ends.
    #[inline]
    pub(super) fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limits.cost {
            Err(EvalError::CostLimitExceeded)
        } else {
            Ok(())
        }
    }

    /// Charges for what was done, unless that was the end of the evaluation.
    #[inline]
    pub(super) fn charge_for<T>(&mut self, done: Result<T, EvalError>, cost: u64) -> Result<T, EvalError> {
        match done {
            Err(e) if e.is_final() => Err(e),
            done => self.charge(cost).and(done),
        }
    }

    /// Takes back a cost.
    pub(super) fn refund(&mut self, cost: u64) {
        self.cost = self.cost.saturating_sub(cost);
    }

    /// Counts a step of a fold; asked to stop, the evaluation ends.
    #[inline]
    pub(super) fn tick(&mut self) -> Result<(), EvalError> {
        self.steps += 1;
        if self.steps < INTERRUPT_EVERY {
            return Ok(());
        }
        self.steps = 0;
        deadline::tick_by(INTERRUPT_EVERY);
        match self.limits.interrupt {
            Some(interrupt) if interrupt() => Err(EvalError::Interrupted),
            _ => Ok(()),
        }
    }

    /// Sets a variable.
    #[inline]
    pub(super) fn set(&mut self, local: usize, value: LocalValue<'a>) {
        if let Some(place) = self.locals.get_mut(local) {
            *place = value;
        }
    }

    /// Sets a variable to a value or to the error in its place.
    pub(super) fn set_result(&mut self, local: usize, value: Res<'a>) {
        self.set(
            local,
            match value {
                Ok(v) => LocalValue::Val(v),
                Err(e) => LocalValue::Error(e),
            },
        );
    }

    /// What a variable holds, as far as it is known without computing it.
    #[inline]
    pub(super) fn local(&self, local: usize) -> &LocalValue<'a> {
        self.locals.get(local).unwrap_or(&LocalValue::Absent)
    }

    /// Computes what a variable is to hold when it is first used.
    #[inline(never)]
    pub(super) fn force(&mut self, local: usize, op: &'a Op) {
        let value = self.eval(op);
        self.set_result(local, value);
    }

    /// The value of a step.
    // Every arm is a call alone: what is recursive has frames of its own, and none of them is paid for by the others.
    pub(super) fn eval(&mut self, op: &'a Op) -> Res<'a> {
        match op {
            Op::Const(value) => self.constant(value),
            Op::Attribute(attribute) => self.attribute(attribute),
            Op::Binary(call) => self.binary(call),
            Op::Comparison(comparison) => self.comparison(comparison),
            Op::Concat(call) => self.concat(call),
            Op::And(terms) => self.junction(terms, false),
            Op::Or(terms) => self.junction(terms, true),
            Op::Equality(equality) => self.equality(equality),
            Op::Conditional(conditional) => self.conditional(conditional),
            Op::NotStrictlyFalse(term) => self.not_strictly_false(term),
            Op::Unary(call) => self.unary(call),
            Op::Call(call) => self.call(call),
            Op::InSet(member) => self.member(member),
            Op::List(elements) => self.list(elements),
            Op::Map(entries) => self.map(entries),
            Op::Message(literal) => self.message(literal),
            Op::Fold(fold) => self.fold(fold),
            Op::Block(block) => self.block(block),
            Op::OptionalOr(optional_or) => self.optional_or(optional_or),
            Op::Unresolved(error) => self.unresolved(error),
        }
    }

    #[inline(never)]
    fn constant(&self, value: &'a Owned) -> Res<'a> {
        value.val(self.arena)
    }

    #[inline(never)]
    fn not_strictly_false(&mut self, term: &'a Op) -> Res<'a> {
        let value = self.eval(term);
        match self.charge_for(value, 1) {
            Ok(Val::Bool(b)) => Ok(Val::Bool(b)),
            Err(e) if e.is_final() => Err(e),
            _ => Ok(Val::TRUE),
        }
    }

    #[inline(never)]
    fn unresolved(&mut self, error: &EvalError) -> Res<'a> {
        self.charge(1)?;
        Err(error.clone())
    }

    /// The value of a step that stands where an attribute would be resolved as part of another: there the attribute
    /// itself costs nothing.
    pub(super) fn resolve(&mut self, op: &'a Op) -> Res<'a> {
        match op {
            Op::Attribute(attribute) => self.resolve_attribute(attribute),
            op => self.eval(op),
        }
    }

    /// `a && b` and `a || b`: one term that decides is enough, whatever the other one is.
    #[inline(never)]
    fn junction(&mut self, terms: &'a [Op; 2], decisive: bool) -> Res<'a> {
        let [first, second] = terms;
        match self.eval(first) {
            Ok(Val::Bool(b)) if b == decisive => Ok(Val::Bool(b)),
            Ok(Val::Bool(_)) => match self.eval(second) {
                Ok(Val::Bool(b)) => Ok(Val::Bool(b)),
                Ok(_) => Err(EvalError::NoSuchOverload),
                Err(e) => Err(e),
            },
            Ok(_) => self.undecided(EvalError::NoSuchOverload, second, decisive),
            Err(e) => self.undecided(e, second, decisive),
        }
    }

    /// Where the first term gave no answer, the second may; if it does not either, the first error stands.
    #[cold]
    fn undecided(&mut self, first: EvalError, second: &'a Op, decisive: bool) -> Res<'a> {
        if first.is_final() {
            return Err(first);
        }
        match self.eval(second) {
            Ok(Val::Bool(b)) if b == decisive => Ok(Val::Bool(b)),
            Err(e) if e.is_final() => Err(e),
            _ => Err(first),
        }
    }

    /// `a.or(b)` and `a.orValue(b)`: the conditional itself is free.
    #[inline(never)]
    fn optional_or(&mut self, optional_or: &'a OptionalOr) -> Res<'a> {
        match self.eval(&optional_or.optional)? {
            Val::Optional(None) => self.eval(&optional_or.otherwise),
            Val::Optional(Some(value)) if optional_or.result_kind == OrResult::Value => Ok(*value),
            optional @ Val::Optional(_) => Ok(optional),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    #[inline(never)]
    fn equality(&mut self, equality: &'a Equality) -> Res<'a> {
        let Equality { left, right, negated } = equality;
        let a = match self.operand(left) {
            Ok(a) => a,
            Err(e) if e.is_final() => return Err(e),
            left => {
                let right = self.eval(right);
                return self.equality_error(left, right, *negated);
            }
        };
        let b = match self.operand(right) {
            Ok(b) => b,
            right => return self.equality_error(Ok(a), right, *negated),
        };
        match (a, b) {
            (Val::Int(a), Val::Int(b)) => {
                self.charge(1)?;
                Ok(Val::Bool((a == b) != *negated))
            }
            (Val::Str(a), Val::Str(b)) => self.equal_texts(a, b, *negated),
            (Val::Bool(a), Val::Bool(b)) => {
                self.charge(1)?;
                Ok(Val::Bool((a == b) != *negated))
            }
            _ => self.any_equality(a, b, *negated),
        }
    }

    #[inline]
    fn equal_texts(&mut self, a: &str, b: &str, negated: bool) -> Res<'a> {
        self.charge(shorter_text_cost(a, b))?;
        Ok(Val::Bool(same_text(a, b) != negated))
    }

    #[inline(never)]
    fn any_equality(&mut self, a: Val<'a>, b: Val<'a>, negated: bool) -> Res<'a> {
        self.charge(equality_cost(Some(a), Some(b), negated))?;
        match val::equal(self.arena, a, b) {
            Err(e) if e.is_final() => Err(e),
            // What cannot be compared is different.
            equal if negated => Ok(Val::Bool(equal != Ok(true))),
            equal => equal.map(Val::Bool),
        }
    }

    #[cold]
    fn equality_error(&mut self, left: Res<'a>, right: Res<'a>, negated: bool) -> Res<'a> {
        let cost = equality_cost(ok(&left), ok(&right), negated);
        let right = match right {
            Err(e) if e.is_final() => return Err(e),
            right => right,
        };
        self.charge_for(left.and(right), cost)
    }

    #[inline(never)]
    fn conditional(&mut self, conditional: &'a Conditional) -> Res<'a> {
        let selected_branch = match self.eval(&conditional.condition)? {
            Val::Bool(true) => &conditional.yes,
            Val::Bool(false) => &conditional.no,
            _ => return Err(EvalError::NoSuchOverload),
        };
        let value = self.resolve(selected_branch)?;
        if conditional.path.is_empty() {
            return Ok(value);
        }
        self.qualify_conditional(conditional, value)
    }

    #[inline(never)]
    fn member(&mut self, member: &'a InSet) -> Res<'a> {
        let value = self.operand(&member.value)?;
        Ok(Val::Bool(member.set.contains(value)))
    }

    #[inline(never)]
    fn list(&mut self, elements: &'a [ElementOp]) -> Res<'a> {
        let items = self.elements(elements);
        let items = self.charge_for(items, LIST_COST)?;
        self.arena.list(items)
    }

    fn elements(&mut self, elements: &'a [ElementOp]) -> Result<SmallVec<[Val<'a>; 4]>, EvalError> {
        let mut items = SmallVec::with_capacity(elements.len());
        for element in elements {
            let value = self.eval(&element.op)?;
            if !element.optional {
                items.push(value);
                continue;
            }
            let Val::Optional(value) = value else {
                return Err(EvalError::message(format!(
                    "cannot initialize optional list element from non-optional value {value}"
                )));
            };
            items.extend(value.copied());
        }
        Ok(items)
    }

    #[inline(never)]
    fn map(&mut self, entries: &'a [(Op, ElementOp)]) -> Res<'a> {
        let entries = self.entries(entries);
        let entries = self.charge_for(entries, MAP_COST)?;
        if self.program.semantics == Semantics::Specification {
            check_keys(entries.iter().map(|(key, _)| *key))?;
        }
        self.arena.map(entries)
    }

    fn entries(&mut self, entries: &'a [(Op, ElementOp)]) -> Result<Vec<(Val<'a>, Val<'a>)>, EvalError> {
        let mut items: Vec<(Val<'a>, Val<'a>)> = Vec::with_capacity(entries.len());
        for (key, element) in entries {
            let key = self.eval(key)?;
            let value = self.eval(&element.op)?;
            if !element.optional {
                items.push((key, value));
                continue;
            }
            let Val::Optional(value) = value else {
                return Err(not_optional(key, value));
            };
            match value {
                Some(value) => items.push((key, *value)),
                // An entry that is absent takes back one of the same key.
                None => items.retain(|(k, _)| val::key_order(*k, key).is_ne()),
            }
        }
        Ok(items)
    }

    #[inline(never)]
    fn message(&mut self, literal: &'a MessageLiteral) -> Res<'a> {
        let fields = self.fields(&literal.fields);
        let fields = self.charge_for(fields, STRUCT_COST)?;
        let Some(message) = literal.message else {
            return Err(EvalError::message(format!("unknown type '{}'", literal.name)));
        };
        let known = fields.iter().map(|(name, value)| match message.field(name) {
            Some(field) => Ok((field, *value)),
            None => Err(EvalError::message(format!("no such field '{name}'"))),
        });
        message.make(self.arena, &known.collect::<Result<Vec<_>, _>>()?)
    }

    fn fields(&mut self, fields: &'a [(Arc<str>, ElementOp)]) -> Result<Vec<(&'a str, Val<'a>)>, EvalError> {
        let mut set: Vec<(&'a str, Val<'a>)> = Vec::with_capacity(fields.len());
        for (name, element) in fields {
            let value = self.eval(&element.op)?;
            match (element.optional, value) {
                (false, value) => set.push((name, value)),
                (true, Val::Optional(Some(value))) => set.push((name, *value)),
                // A field that is absent takes back one of the same name.
                (true, Val::Optional(None)) => set.retain(|(n, _)| *n != name.as_ref()),
                (true, value) => return Err(not_optional(name, value)),
            }
        }
        Ok(set)
    }

    #[inline(never)]
    fn block(&mut self, block: &'a BlockOp) -> Res<'a> {
        for (i, value) in block.values.iter().enumerate() {
            self.set(block.first + i, LocalValue::Lazy(value));
        }
        self.eval(&block.result)
    }
}

pub(super) fn equality_cost<'a>(a: Option<Val<'a>>, b: Option<Val<'a>>, negated: bool) -> u64 {
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

/// Whether keys are of the types that the specification allows, and all different.
pub(super) fn check_keys<'a>(keys: impl Iterator<Item = Val<'a>>) -> Result<(), EvalError> {
    let mut keys: Vec<_> = keys.collect();
    if !keys
        .iter()
        .all(|k| matches!(k, Val::Bool(_) | Val::Int(_) | Val::Uint(_) | Val::Str(_)))
    {
        return Err(EvalError::message("unsupported key type"));
    }
    keys.sort_by(|a, b| val::key_order(*a, *b));
    let repeated = |pair: &[Val<'a>]| matches!(pair, [a, b] if val::is_same_key(*a, *b));
    if keys.windows(2).any(repeated) {
        return Err(EvalError::message("Failed with repeated key"));
    }
    Ok(())
}
