//! Walking the tree where everything is fast_path: no step meets an error, and values are what the checker expects.
//!
//! Nearly every rule that runs is kept, by an object that fits its schema. This walk answers for those alone. It has no
//! errors to carry, asks about the limit at the end, and hands on booleans as such; whatever it meets that is not fast_path,
//! it result_kind up, and the [`Interpreter`](super::interpreter::Interpreter) starts from the beginning: evaluation has no effects, so that
//! nothing is lost but time, and room in the arena. Where it result_kind an answer, that and its cost are the interpreter's.

mod attribute;
mod fold;
mod supported;

pub(super) use supported::is_supported;

use super::call::dispatch;
use super::interpreter::{INTERRUPT_EVERY, check_keys, equality_cost};
use super::op::{
    AttributeMode, Binary, BlockOp, CallOp, Comparison, Conditional, ElementOp, Equality, InSet, Op,
    OptionalOr, OrResult, Unary, UnaryKind,
};
use super::{Evaluation, Input, Limits, Program};
use crate::estimate::{LIST_COST, MAP_COST, text_cost};
use crate::library::standard::shorter_text_cost;
use crate::run::Actual;
use crate::shape::{Shape, ShapeKind};
use crate::val::{self, Arena, EvalError, Owned, Val, text_size};
use scantling_value::{Value, deadline, same_text};
use smallvec::SmallVec;

/// One evaluation.
pub(super) struct FastPath<'a, 'c> {
    arena: &'a Arena,
    inputs: &'c [Input<'a>],
    locals: SmallVec<[LocalValue<'a>; 6]>,
    cost: u64,
    limits: Limits<'c>,
    /// The steps of folds since it was last asked whether to stop.
    steps: u32,
    interrupted: bool,
}

/// What a variable of a fold holds.
#[derive(Clone, Copy)]
pub(super) enum LocalValue<'a> {
    Absent,
    Val(Val<'a>),
    Json(&'a Value, &'a Shape),
    /// To be computed when it is first used.
    Lazy(&'a Op),
}

impl<'a, 'c> FastPath<'a, 'c> {
    /// What a program result_kind; `None` where only the interpreter can tell.
    #[inline]
    pub(super) fn run(
        program: &'a Program,
        arena: &'a Arena,
        inputs: &'c [Input<'a>],
        limits: Limits<'c>,
    ) -> Option<Evaluation<'a>> {
        let mut fast_path = FastPath::new(arena, inputs, limits);
        let result = match fast_path.val(&program.root) {
            Some(value) => Ok(value),
            None if fast_path.interrupted => Err(EvalError::Interrupted),
            None => return None,
        };
        fast_path.cost().map(|cost| Evaluation { result, cost })
    }

    /// The answer of a program that says yes or no, and its cost; `None` where only the interpreter can tell.
    #[inline]
    pub(super) fn test_root(
        program: &'a Program,
        arena: &'a Arena,
        inputs: &'c [Input<'a>],
        limits: Limits<'c>,
    ) -> Option<(bool, u64)> {
        let mut fast_path = FastPath::new(arena, inputs, limits);
        let answer = fast_path.test(&program.root)?;
        fast_path.cost().map(|cost| (answer, cost))
    }

    #[inline]
    pub(super) fn new(arena: &'a Arena, inputs: &'c [Input<'a>], limits: Limits<'c>) -> Self {
        FastPath {
            arena,
            inputs,
            locals: SmallVec::new(),
            cost: 0,
            limits,
            steps: 0,
            interrupted: false,
        }
    }

    #[inline]
    pub(super) fn charge(&mut self, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
    }

    /// What has been paid so far, if that is within the limit.
    #[inline]
    pub(super) fn cost(&self) -> Option<u64> {
        (self.cost <= self.limits.cost).then_some(self.cost)
    }

    /// Counts a step of a fold; beyond a limit, there is no going on.
    #[inline]
    pub(super) fn tick(&mut self) -> Option<()> {
        self.cost()?;
        self.steps += 1;
        if self.steps < INTERRUPT_EVERY {
            return Some(());
        }
        self.steps = 0;
        deadline::tick_by(INTERRUPT_EVERY);
        self.interrupted = self.limits.interrupt.is_some_and(|interrupt| interrupt());
        (!self.interrupted).then_some(())
    }

    #[inline]
    fn charge_call(&mut self, actual: Actual, args: &[Option<Val<'a>>], result: Val<'a>) {
        match actual {
            Actual::Fixed(cost) => self.charge(cost),
            actual => self.charge(actual.cost(args, Some(result))),
        }
    }

    /// The answer of a step that says yes or no.
    // Every arm is a call alone: none pays for the frames of the others.
    pub(super) fn test(&mut self, op: &'a Op) -> Option<bool> {
        match op {
            Op::And(terms) => self.junction(terms, false),
            Op::Or(terms) => self.junction(terms, true),
            Op::Equality(equality) => self.equality(equality),
            Op::Comparison(comparison) => self.comparison(comparison),
            Op::Attribute(attribute) if attribute.mode == AttributeMode::Presence => self.presence(attribute),
            Op::Unary(call) if call.operation == UnaryKind::Not => self.negation(call),
            Op::InSet(member) => self.member(member),
            Op::Conditional(conditional) => self.conditional(conditional),
            Op::Const(Owned::Bool(answer)) => Some(*answer),
            op => self.other_test(op),
        }
    }

    #[inline(never)]
    fn other_test(&mut self, op: &'a Op) -> Option<bool> {
        if let Op::NotStrictlyFalse(term) = op {
            let answer = self.test(term)?;
            self.charge(1);
            return Some(answer);
        }
        match self.any(op)? {
            Val::Bool(answer) => Some(answer),
            _ => None,
        }
    }

    #[inline(never)]
    fn junction(&mut self, terms: &'a [Op; 2], decisive: bool) -> Option<bool> {
        let [first, second] = terms;
        if self.test(first)? == decisive {
            return Some(decisive);
        }
        self.test(second)
    }

    #[inline(never)]
    fn negation(&mut self, call: &'a Unary) -> Option<bool> {
        let answer = !self.test(&call.arg)?;
        self.charge_call(call.actual, &[Some(Val::Bool(!answer))], Val::Bool(answer));
        Some(answer)
    }

    #[inline(never)]
    fn conditional(&mut self, conditional: &'a Conditional) -> Option<bool> {
        let selected_branch = self.selected_branch(conditional)?;
        let answer = self.test(selected_branch)?;
        self.refund_attribute(selected_branch);
        Some(answer)
    }

    #[inline(never)]
    fn member(&mut self, member: &'a InSet) -> Option<bool> {
        if let Some((text, cost)) = self.text_at_hand(&member.value) {
            self.charge(cost);
            return Some(member.set.contains_text(text));
        }
        let value = self.val(&member.value)?;
        Some(member.set.contains(value))
    }

    /// The value of a step.
    fn val(&mut self, op: &'a Op) -> Option<Val<'a>> {
        match op {
            Op::Attribute(attribute) if attribute.mode == AttributeMode::Value => self.attribute(attribute),
            Op::Const(constant) => Some(constant.key()),
            Op::Binary(call) => self.binary(call),
            Op::Concat(call) => self.concat(call),
            op if op.is_test() => self.answer(op),
            op => self.any(op),
        }
    }

    #[inline(never)]
    fn answer(&mut self, op: &'a Op) -> Option<Val<'a>> {
        self.test(op).map(Val::Bool)
    }

    /// The value of a step that may give anything.
    fn any(&mut self, op: &'a Op) -> Option<Val<'a>> {
        match op {
            Op::Unary(call) => self.unary(call),
            Op::Binary(call) => self.binary(call),
            Op::Concat(call) => self.concat(call),
            Op::Call(call) => self.call(call),
            Op::Conditional(conditional) => self.either(conditional),
            Op::Fold(fold) => self.fold(fold),
            Op::List(elements) => self.list(elements),
            Op::Map(entries) => self.map(entries),
            Op::OptionalOr(optional_or) => self.optional_or(optional_or),
            Op::Block(block) => self.block(block),
            Op::Attribute(attribute) if attribute.mode == AttributeMode::Value => self.attribute(attribute),
            Op::Const(constant) => Some(constant.key()),
            _ => None,
        }
    }

    #[inline(never)]
    fn either(&mut self, conditional: &'a Conditional) -> Option<Val<'a>> {
        let selected_branch = self.selected_branch(conditional)?;
        let value = self.val(selected_branch)?;
        self.refund_attribute(selected_branch);
        Some(value)
    }

    /// What is selected costs, but not the attribute itself, where it stands as a part of another step.
    #[inline]
    fn refund_attribute(&mut self, op: &Op) {
        if matches!(op, Op::Attribute(attribute) if attribute.mode == AttributeMode::Value) {
            self.cost = self.cost.saturating_sub(1);
        }
    }

    #[inline]
    fn selected_branch(&mut self, conditional: &'a Conditional) -> Option<&'a Op> {
        Some(if self.test(&conditional.condition)? {
            &conditional.yes
        } else {
            &conditional.no
        })
    }

    /// The text that a step result_kind, and what it costs, where it is a constant or a declared field.
    #[inline]
    fn text_at_hand(&self, op: &'a Op) -> Option<(&'a str, u64)> {
        match op {
            Op::Attribute(attribute) if attribute.mode == AttributeMode::Value => {
                match self.place(attribute)? {
                    (Value::String(text), shape)
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

    /// As [`FastPath::text_at_hand`], of integers and of the sizes of fields.
    #[inline]
    fn int_at_hand(&self, op: &'a Op) -> Option<(i64, u64)> {
        match op {
            Op::Const(Owned::Int(i)) => Some((*i, 0)),
            op => self.int_of_field(op),
        }
    }

    fn int_of_field(&self, op: &'a Op) -> Option<(i64, u64)> {
        match op {
            Op::Attribute(attribute) if attribute.mode == AttributeMode::Value => match self
                .place(attribute)?
            {
                (Value::Int(i), shape) if matches!(shape.kind, ShapeKind::Int | ShapeKind::IntOrString) => {
                    Some((*i, attribute.cost()))
                }
                _ => None,
            },
            Op::Unary(call) if call.operation == UnaryKind::Size => match (&call.arg, call.actual) {
                (Op::Attribute(attribute), Actual::Fixed(cost)) if attribute.mode == AttributeMode::Value => {
                    let (value, shape) = self.place(attribute)?;
                    let size = match (value, &shape.kind) {
                        (Value::Array(items), ShapeKind::List { .. }) => items.len() as u64,
                        (Value::String(text), ShapeKind::String) => text_size(text),
                        (Value::Object(object), ShapeKind::Object { .. } | ShapeKind::Map { .. }) => {
                            object.len() as u64
                        }
                        _ => return None,
                    };
                    Some((i64::try_from(size).ok()?, attribute.cost() + cost))
                }
                _ => None,
            },
            _ => None,
        }
    }

    #[inline(never)]
    fn equality(&mut self, equality: &'a Equality) -> Option<bool> {
        let Equality { left, right, negated } = equality;
        match right {
            right if right.is_test() && left.is_test() => {
                let (a, b) = (self.test(left)?, self.test(right)?);
                self.charge(1);
                return Some((a == b) != *negated);
            }
            Op::Const(Owned::Str(b)) => {
                if let Some((a, cost)) = self.text_at_hand(left) {
                    self.charge(cost + shorter_text_cost(a, b));
                    return Some(same_text(a, b) != *negated);
                }
            }
            Op::Const(Owned::Int(b)) => {
                if let Some((a, cost)) = self.int_at_hand(left) {
                    self.charge(cost + 1);
                    return Some((a == *b) != *negated);
                }
            }
            _ => {}
        }
        self.any_equality(equality)
    }

    #[inline(never)]
    fn any_equality(&mut self, equality: &'a Equality) -> Option<bool> {
        let Equality { left, right, negated } = equality;
        let equal = match (self.val(left)?, self.val(right)?) {
            (Val::Str(a), Val::Str(b)) => {
                self.charge(shorter_text_cost(a, b));
                same_text(a, b)
            }
            (Val::Int(a), Val::Int(b)) => {
                self.charge(1);
                a == b
            }
            (Val::Bool(a), Val::Bool(b)) => {
                self.charge(1);
                a == b
            }
            (a, b) => {
                self.charge(equality_cost(Some(a), Some(b), *negated));
                val::equal(self.arena, a, b).ok()?
            }
        };
        Some(equal != *negated)
    }

    #[inline(never)]
    fn comparison(&mut self, comparison: &'a Comparison) -> Option<bool> {
        let Comparison { relation, call } = comparison;
        if let Some((a, left)) = self.int_at_hand(&call.left)
            && let Some((b, right)) = self.int_at_hand(&call.right)
        {
            self.charge(left + right + 1);
            return Some(relation.holds(a, b));
        }
        self.any_comparison(comparison)
    }

    #[inline(never)]
    fn any_comparison(&mut self, comparison: &'a Comparison) -> Option<bool> {
        let Comparison { relation, call } = comparison;
        match (self.val(&call.left)?, self.val(&call.right)?) {
            (Val::Int(a), Val::Int(b)) => {
                self.charge(1);
                Some(relation.holds(a, b))
            }
            (a, b) => match self.apply(call, a, b)? {
                Val::Bool(answer) => Some(answer),
                _ => None,
            },
        }
    }

    #[inline(never)]
    fn unary(&mut self, call: &'a Unary) -> Option<Val<'a>> {
        let arg = self.val(&call.arg)?;
        let size = match (call.operation, arg) {
            (UnaryKind::Size, Val::JsonList(items, _)) => Some(items.len() as u64),
            (UnaryKind::Size, Val::JsonMap(object, _)) => Some(object.len() as u64),
            (UnaryKind::Size, Val::Str(text)) => Some(text_size(text)),
            _ => None,
        };
        let result = match size {
            Some(size) => Val::Int(i64::try_from(size).ok()?),
            None => (call.run)(self.arena, arg).ok()?,
        };
        self.charge_call(call.actual, &[Some(arg)], result);
        Some(result)
    }

    #[inline(never)]
    fn binary(&mut self, call: &'a Binary) -> Option<Val<'a>> {
        if let (Some(arithmetic), Actual::Fixed(cost)) = (call.arithmetic, call.actual)
            && let Some((a, left)) = self.int_at_hand(&call.left)
            && let Some((b, right)) = self.int_at_hand(&call.right)
        {
            self.charge(left + right + cost);
            return arithmetic.result(a, b).map(Val::Int);
        }
        let (left, right) = (self.val(&call.left)?, self.val(&call.right)?);
        self.apply(call, left, right)
    }

    fn apply(&mut self, call: &'a Binary, left: Val<'a>, right: Val<'a>) -> Option<Val<'a>> {
        let result = (call.run)(self.arena, left, right).ok()?;
        self.charge_call(call.actual, &[Some(left), Some(right)], result);
        Some(result)
    }

    fn concat(&mut self, call: &'a Binary) -> Option<Val<'a>> {
        if let Some((a, left)) = self.text_at_hand(&call.left)
            && let Some((b, right)) = self.text_at_hand(&call.right)
        {
            self.charge(left + right);
            return self.concat_strings(a, b);
        }
        match (self.val(&call.left)?, self.val(&call.right)?) {
            (Val::Str(a), Val::Str(b)) => self.concat_strings(a, b),
            (left, right) => self.apply(call, left, right),
        }
    }

    #[inline]
    fn concat_strings(&mut self, a: &str, b: &str) -> Option<Val<'a>> {
        let joined = self.arena.concat_strings(a, b).ok()?;
        self.charge(text_cost(text_size(joined)));
        Some(Val::Str(joined))
    }

    #[inline(never)]
    fn call(&mut self, call: &'a CallOp) -> Option<Val<'a>> {
        if let [left, right] = &*call.args {
            let args = [self.val(left)?, self.val(right)?];
            let result = dispatch(self.arena, &call.candidates, call.pattern.as_ref(), &args).ok()?;
            self.charge_call(call.actual, &args.map(Some), result);
            return Some(result);
        }
        let mut args: SmallVec<[Val<'a>; 4]> = SmallVec::new();
        for arg in &call.args {
            args.push(self.val(arg)?);
        }
        let result = dispatch(self.arena, &call.candidates, call.pattern.as_ref(), &args).ok()?;
        let known: SmallVec<[Option<Val<'a>>; 4]> = args.iter().copied().map(Some).collect();
        self.charge_call(call.actual, &known, result);
        Some(result)
    }

    fn list(&mut self, elements: &'a [ElementOp]) -> Option<Val<'a>> {
        let mut items: SmallVec<[Val<'a>; 4]> = SmallVec::with_capacity(elements.len());
        for element in elements {
            items.extend(self.element(element)?);
        }
        self.charge(LIST_COST);
        self.arena.list(items).ok()
    }

    /// An element of a list or a value of a map, unless it may be absent and is.
    #[inline]
    fn element(&mut self, element: &'a ElementOp) -> Option<Option<Val<'a>>> {
        match (element.optional, self.val(&element.op)?) {
            (false, value) => Some(Some(value)),
            (true, Val::Optional(value)) => Some(value.copied()),
            (true, _) => None,
        }
    }

    /// A map of keys that differ; others are left to the interpreter.
    #[inline(never)]
    fn map(&mut self, entries: &'a [(Op, ElementOp)]) -> Option<Val<'a>> {
        let mut items = Vec::with_capacity(entries.len());
        let mut keys: SmallVec<[Val<'a>; 4]> = SmallVec::new();
        for (key, element) in entries {
            let key = self.val(key)?;
            keys.push(key);
            items.extend(self.element(element)?.map(|value| (key, value)));
        }
        check_keys(keys.into_iter()).ok()?;
        self.charge(MAP_COST);
        self.arena.map(items).ok()
    }

    #[inline(never)]
    fn optional_or(&mut self, optional_or: &'a OptionalOr) -> Option<Val<'a>> {
        match self.val(&optional_or.optional)? {
            Val::Optional(None) => self.val(&optional_or.otherwise),
            Val::Optional(Some(value)) if optional_or.result_kind == OrResult::Value => Some(*value),
            optional @ Val::Optional(_) => Some(optional),
            _ => None,
        }
    }

    #[inline(never)]
    fn block(&mut self, block: &'a BlockOp) -> Option<Val<'a>> {
        for (i, value) in block.values.iter().enumerate() {
            self.set(block.first + i, LocalValue::Lazy(value));
        }
        self.val(&block.result)
    }
}
