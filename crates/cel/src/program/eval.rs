//! Walking the tree.

use super::node::{Alternative, Block, Choice, Element, Equality, Gives, Member, Node};
use super::{Input, Limits, Program};
use crate::env::Strictness;
use crate::estimate::{LIST_COST, MAP_COST};
use crate::library::standard::{equal_cost, shorter_pass};
use crate::shape::Shape;
use crate::val::{self, Arena, EvalError, Res, Val, read};
use scantling_value::Value;
use smallvec::SmallVec;

/// One evaluation.
pub(super) struct Machine<'a, 'c> {
    pub(super) arena: &'a Arena,
    pub(super) program: &'a Program,
    slots: SmallVec<[Slot<'a>; 6]>,
    cost: u64,
    limits: Limits<'c>,
    steps: u32,
}

/// What a variable holds.
pub(super) enum Slot<'a> {
    Absent,
    Val(Val<'a>),
    Json(&'a Value, &'a Shape),
    /// To be computed when it is first used.
    Lazy(&'a Node),
    Error(EvalError),
}

/// The most steps of folds between two questions whether to stop.
const INTERRUPT_EVERY: u32 = 100;

impl<'a, 'c> Machine<'a, 'c> {
    pub(super) fn new(
        program: &'a Program,
        arena: &'a Arena,
        inputs: &[Input<'a>],
        limits: Limits<'c>,
    ) -> Self {
        let mut slots = SmallVec::new();
        for input in inputs.iter().take(program.inputs.len()) {
            slots.push(match *input {
                Input::Absent => Slot::Absent,
                Input::Json(value, shape) => Slot::Json(value, shape),
                Input::Val(v) => Slot::Val(v),
            });
        }
        while slots.len() < program.inputs.len() + program.locals {
            slots.push(Slot::Absent);
        }
        Machine {
            arena,
            program,
            slots,
            cost: 0,
            limits,
            steps: 0,
        }
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
        match self.limits.interrupt {
            Some(interrupt) if interrupt() => Err(EvalError::Interrupted),
            _ => Ok(()),
        }
    }

    /// Sets a variable.
    #[inline]
    pub(super) fn set(&mut self, slot: usize, value: Slot<'a>) {
        if let Some(place) = self.slots.get_mut(slot) {
            *place = value;
        }
    }

    /// Sets a variable to a value or to the error in its place.
    pub(super) fn set_result(&mut self, slot: usize, value: Res<'a>) {
        self.set(
            slot,
            match value {
                Ok(v) => Slot::Val(v),
                Err(e) => Slot::Error(e),
            },
        );
    }

    /// What a variable holds, computed by now.
    #[inline]
    pub(super) fn slot(&mut self, slot: usize) -> &Slot<'a> {
        if let Some(Slot::Lazy(node)) = self.slots.get(slot) {
            let node = *node;
            let value = self.eval(node);
            self.set_result(slot, value);
        }
        self.slots.get(slot).unwrap_or(&Slot::Absent)
    }

    /// The JSON that a variable holds, if it holds that.
    #[inline]
    pub(super) fn json(&self, slot: usize) -> Option<(&'a Value, &'a Shape)> {
        match self.slots.get(slot) {
            Some(Slot::Json(value, shape)) => Some((value, shape)),
            _ => None,
        }
    }

    /// The value of a variable.
    #[inline]
    pub(super) fn load(&mut self, slot: usize) -> Res<'a> {
        let arena = self.arena;
        match self.slot(slot) {
            Slot::Val(v) => Ok(*v),
            Slot::Json(value, shape) => read(arena, value, shape),
            Slot::Error(e) => Err(e.clone()),
            Slot::Absent | Slot::Lazy(_) => Err(self.absent(slot)),
        }
    }

    #[cold]
    pub(super) fn absent(&self, slot: usize) -> EvalError {
        let name = self.program.inputs.get(slot).map_or("", |name| name.as_ref());
        EvalError::text(format!("no such attribute(s): {name}"))
    }

    /// The value of a step.
    pub(super) fn eval(&mut self, node: &'a Node) -> Res<'a> {
        match node {
            Node::Const(value) => value.val(self.arena),
            Node::Access(access) => self.access(access),
            Node::Binary(call) => self.binary(call),
            Node::And(terms) => self.junction(terms, false),
            Node::Or(terms) => self.junction(terms, true),
            Node::Equality(equality) => self.equality(equality),
            Node::Choice(choice) => self.choice(choice),
            Node::NotStrictlyFalse(term) => {
                let value = self.eval(term);
                self.charge(1)?;
                match value {
                    Ok(Val::Bool(b)) => Ok(Val::Bool(b)),
                    Err(e) if e.is_final() => Err(e),
                    _ => Ok(Val::TRUE),
                }
            }
            Node::Unary(call) => self.unary(call),
            Node::Call(call) => self.call(call),
            Node::Member(member) => self.member(member),
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Fold(fold) => self.fold(fold),
            Node::Block(block) => self.block(block),
            Node::Alternative(alternative) => self.alternative(alternative),
            Node::Unresolved(error) => {
                self.charge(1)?;
                Err(error.clone())
            }
        }
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
    fn junction(&mut self, terms: &'a [Node; 2], decisive: bool) -> Res<'a> {
        let mut error = None;
        for term in terms {
            match self.eval(term) {
                Ok(Val::Bool(b)) if b == decisive => return Ok(Val::Bool(decisive)),
                Ok(Val::Bool(_)) => {}
                Ok(_) => error = error.or(Some(EvalError::NoSuchOverload)),
                Err(e) if e.is_final() => return Err(e),
                Err(e) => error = error.or(Some(e)),
            }
        }
        error.map_or(Ok(Val::Bool(!decisive)), Err)
    }

    /// `a.or(b)` and `a.orValue(b)`: the choice itself is free.
    fn alternative(&mut self, alternative: &'a Alternative) -> Res<'a> {
        match self.eval(&alternative.optional)? {
            Val::Optional(None) => self.eval(&alternative.otherwise),
            Val::Optional(Some(value)) if alternative.gives == Gives::Value => Ok(*value),
            optional @ Val::Optional(_) => Ok(optional),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    fn equality(&mut self, equality: &'a Equality) -> Res<'a> {
        let left = self.operand(&equality.left);
        let right = self.operand(&equality.right);
        let args = [left.as_ref().ok().copied(), right.as_ref().ok().copied()];
        let cost = match args {
            [Some(Val::Int(_) | Val::Bool(_) | Val::Double(_)), _] => 1,
            _ if equality.negated => shorter_pass(&args, None),
            _ => equal_cost(&args, None),
        };
        self.charge(cost)?;
        let (left, right) = (left?, right?);
        if equality.negated {
            // What cannot be compared is different.
            match val::equal(self.arena, left, right) {
                Err(e) if e.is_final() => Err(e),
                equal => Ok(Val::Bool(equal != Ok(true))),
            }
        } else {
            val::equal(self.arena, left, right).map(Val::Bool)
        }
    }

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

    fn member(&mut self, member: &'a Member) -> Res<'a> {
        let value = self.eval(&member.value)?;
        Ok(Val::Bool(val::find_key(&member.set, value)))
    }

    fn list(&mut self, elements: &'a [Element]) -> Res<'a> {
        let items = self.elements(elements);
        self.charge(LIST_COST)?;
        self.arena.list(items?)
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

    fn map(&mut self, entries: &'a [(Node, Element)]) -> Res<'a> {
        let entries = self.entries(entries);
        self.charge(MAP_COST)?;
        let entries = entries?;
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
                return Err(EvalError::text(format!(
                    "cannot initialize optional entry '{key}' from non-optional value {value}"
                )));
            };
            match value {
                Some(value) => items.push((key, *value)),
                // An entry that is absent takes back one of the same key.
                None => items.retain(|(k, _)| val::key_order(*k, key).is_ne()),
            }
        }
        Ok(items)
    }

    fn block(&mut self, block: &'a Block) -> Res<'a> {
        for (i, value) in block.values.iter().enumerate() {
            self.set(block.first + i, Slot::Lazy(value));
        }
        self.eval(&block.result)
    }
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
