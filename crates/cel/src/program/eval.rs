//! Walking the tree.

use super::call::ok;
use super::node::{Alternative, Block, Choice, Construction, Element, Equality, Gives, Member, Node};
use super::{Input, Limits, Program};
use crate::env::Strictness;
use crate::estimate::{LIST_COST, MAP_COST, STRUCT_COST};
use crate::library::standard::{equal_cost, shorter_pass, shorter_text_cost};
use crate::shape::Shape;
use crate::val::{self, Arena, EvalError, Owned, Res, Val};
use scantling_value::{Value, deadline, same_text};
use smallvec::SmallVec;
use std::sync::Arc;

/// One evaluation.
pub(super) struct Machine<'a, 'c> {
    pub(super) arena: &'a Arena,
    pub(super) program: &'a Program,
    /// Read where they are: most rules read each of them a few times.
    pub(super) inputs: &'c [Input<'a>],
    locals: SmallVec<[Slot<'a>; 6]>,
    cost: u64,
    limits: Limits<'c>,
    steps: u32,
}

/// What a variable of a fold or block holds.
pub(super) enum Slot<'a> {
    Absent,
    Val(Val<'a>),
    Json(&'a Value, &'a Shape),
    /// To be computed when it is first used.
    Lazy(&'a Node),
    Error(EvalError),
}

/// The most steps of folds between two questions whether to stop.
pub(super) const INTERRUPT_EVERY: u32 = 100;

impl<'a, 'c> Machine<'a, 'c> {
    /// A machine that has no variables yet: it is made where it stands, and not moved once it has them.
    #[inline]
    pub(super) fn new(
        program: &'a Program,
        arena: &'a Arena,
        inputs: &'c [Input<'a>],
        limits: Limits<'c>,
    ) -> Self {
        Machine {
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
            self.locals.resize_with(self.program.locals, || Slot::Absent);
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
    pub(super) fn set(&mut self, local: usize, value: Slot<'a>) {
        if let Some(place) = self.locals.get_mut(local) {
            *place = value;
        }
    }

    /// Sets a variable to a value or to the error in its place.
    pub(super) fn set_result(&mut self, local: usize, value: Res<'a>) {
        self.set(
            local,
            match value {
                Ok(v) => Slot::Val(v),
                Err(e) => Slot::Error(e),
            },
        );
    }

    /// What a variable holds, as far as it is known without computing it.
    #[inline]
    pub(super) fn local(&self, local: usize) -> &Slot<'a> {
        self.locals.get(local).unwrap_or(&Slot::Absent)
    }

    /// Computes what a variable is to hold when it is first used.
    #[inline(never)]
    pub(super) fn force(&mut self, local: usize, node: &'a Node) {
        let value = self.eval(node);
        self.set_result(local, value);
    }

    /// The value of a step.
    // Every arm is a call alone: what is recursive has frames of its own, and none of them is paid for by the others.
    pub(super) fn eval(&mut self, node: &'a Node) -> Res<'a> {
        match node {
            Node::Const(value) => self.constant(value),
            Node::Access(access) => self.access(access),
            Node::Binary(call) => self.binary(call),
            Node::Comparison(comparison) => self.comparison(comparison),
            Node::Join(call) => self.join(call),
            Node::And(terms) => self.junction(terms, false),
            Node::Or(terms) => self.junction(terms, true),
            Node::Equality(equality) => self.equality(equality),
            Node::Choice(choice) => self.choice(choice),
            Node::NotStrictlyFalse(term) => self.not_strictly_false(term),
            Node::Unary(call) => self.unary(call),
            Node::Call(call) => self.call(call),
            Node::Member(member) => self.member(member),
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Message(construction) => self.message(construction),
            Node::Fold(fold) => self.fold(fold),
            Node::Block(block) => self.block(block),
            Node::Alternative(alternative) => self.alternative(alternative),
            Node::Unresolved(error) => self.unresolved(error),
        }
    }

    #[inline(never)]
    fn constant(&self, value: &'a Owned) -> Res<'a> {
        value.val(self.arena)
    }

    #[inline(never)]
    fn not_strictly_false(&mut self, term: &'a Node) -> Res<'a> {
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

    /// The value of a step that stands where an access would be resolved as part of another: there the access
    /// itself costs nothing.
    pub(super) fn resolve(&mut self, node: &'a Node) -> Res<'a> {
        match node {
            Node::Access(access) => self.resolve_access(access),
            node => self.eval(node),
        }
    }

    /// `a && b` and `a || b`: one term that decides is enough, whatever the other one is.
    #[inline(never)]
    fn junction(&mut self, terms: &'a [Node; 2], decisive: bool) -> Res<'a> {
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
    fn undecided(&mut self, first: EvalError, second: &'a Node, decisive: bool) -> Res<'a> {
        if first.is_final() {
            return Err(first);
        }
        match self.eval(second) {
            Ok(Val::Bool(b)) if b == decisive => Ok(Val::Bool(b)),
            Err(e) if e.is_final() => Err(e),
            _ => Err(first),
        }
    }

    /// `a.or(b)` and `a.orValue(b)`: the choice itself is free.
    #[inline(never)]
    fn alternative(&mut self, alternative: &'a Alternative) -> Res<'a> {
        match self.eval(&alternative.optional)? {
            Val::Optional(None) => self.eval(&alternative.otherwise),
            Val::Optional(Some(value)) if alternative.gives == Gives::Value => Ok(*value),
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
    fn choice(&mut self, choice: &'a Choice) -> Res<'a> {
        let chosen = match self.eval(&choice.condition)? {
            Val::Bool(true) => &choice.yes,
            Val::Bool(false) => &choice.no,
            _ => return Err(EvalError::NoSuchOverload),
        };
        let value = self.resolve(chosen)?;
        if choice.path.is_empty() {
            return Ok(value);
        }
        self.walk_choice(choice, value)
    }

    #[inline(never)]
    fn member(&mut self, member: &'a Member) -> Res<'a> {
        let value = self.operand(&member.value)?;
        Ok(Val::Bool(member.set.contains(value)))
    }

    #[inline(never)]
    fn list(&mut self, elements: &'a [Element]) -> Res<'a> {
        let items = self.elements(elements);
        let items = self.charge_for(items, LIST_COST)?;
        self.arena.list(items)
    }

    fn elements(&mut self, elements: &'a [Element]) -> Result<SmallVec<[Val<'a>; 4]>, EvalError> {
        let mut items = SmallVec::with_capacity(elements.len());
        for element in elements {
            let value = self.eval(&element.node)?;
            if !element.optional {
                items.push(value);
                continue;
            }
            let Val::Optional(value) = value else {
                return Err(EvalError::text(format!(
                    "cannot initialize optional list element from non-optional value {value}"
                )));
            };
            items.extend(value.copied());
        }
        Ok(items)
    }

    #[inline(never)]
    fn map(&mut self, entries: &'a [(Node, Element)]) -> Res<'a> {
        let entries = self.entries(entries);
        let entries = self.charge_for(entries, MAP_COST)?;
        if self.program.strictness == Strictness::Specification {
            check_keys(entries.iter().map(|(key, _)| *key))?;
        }
        self.arena.map(entries)
    }

    fn entries(&mut self, entries: &'a [(Node, Element)]) -> Result<Vec<(Val<'a>, Val<'a>)>, EvalError> {
        let mut items: Vec<(Val<'a>, Val<'a>)> = Vec::with_capacity(entries.len());
        for (key, element) in entries {
            let key = self.eval(key)?;
            let value = self.eval(&element.node)?;
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
    fn message(&mut self, construction: &'a Construction) -> Res<'a> {
        let fields = self.fields(&construction.fields);
        let fields = self.charge_for(fields, STRUCT_COST)?;
        let Some(message) = construction.message else {
            return Err(EvalError::text(format!("unknown type '{}'", construction.name)));
        };
        let known = fields.iter().map(|(name, value)| match message.field(name) {
            Some(field) => Ok((field, *value)),
            None => Err(EvalError::text(format!("no such field '{name}'"))),
        });
        message.make(self.arena, &known.collect::<Result<Vec<_>, _>>()?)
    }

    fn fields(&mut self, fields: &'a [(Arc<str>, Element)]) -> Result<Vec<(&'a str, Val<'a>)>, EvalError> {
        let mut set: Vec<(&'a str, Val<'a>)> = Vec::with_capacity(fields.len());
        for (name, element) in fields {
            let value = self.eval(&element.node)?;
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
    fn block(&mut self, block: &'a Block) -> Res<'a> {
        for (i, value) in block.values.iter().enumerate() {
            self.set(block.first + i, Slot::Lazy(value));
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
    EvalError::text(format!(
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
        return Err(EvalError::text("unsupported key type"));
    }
    keys.sort_by(|a, b| val::key_order(*a, *b));
    let repeated = |pair: &[Val<'a>]| matches!(pair, [a, b] if val::is_same_key(*a, *b));
    if keys.windows(2).any(repeated) {
        return Err(EvalError::text("Failed with repeated key"));
    }
    Ok(())
}
