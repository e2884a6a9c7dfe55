//! Walking the tree where everything is plain: no step meets an error, and values are what the checker expects.
//!
//! Nearly every rule that runs is kept, by an object that fits its schema. This walk answers for those alone. It has no
//! errors to carry, asks about the limit at the end, and hands on booleans as such; whatever it meets that is not plain,
//! it gives up, and the [`Machine`](super::eval::Machine) starts from the beginning: evaluation has no effects, so that
//! nothing is lost but time, and room in the arena. Where it gives an answer, that and its cost are the machine's.

use super::access::follow;
use super::call::dispatch;
use super::eval::equality_cost;
use super::node::{
    Access, Binary, Call, Choice, Comparison, Element, Equality, Fold, Key, Member, Mode, Node, Operation,
    Qualifier, Root, Step, Unary,
};
use super::{Input, Program};
use crate::estimate::{LIST_COST, text_cost};
use crate::library::standard::shorter_text_cost;
use crate::run::Actual;
use crate::shape::{Kind, Shape};
use crate::stack::SHALLOW;
use crate::val::{self, Arena, List, ListData, Map, Owned, Val, element_shape, read, text_size};
use scantling_value::{Value, same_text};
use smallvec::SmallVec;

/// The most variables that a plain program has.
const MOST_LOCALS: usize = 6;

/// Whether a program may be tried this way.
pub(super) fn is_plain(root: &Node, locals: usize, levels: usize) -> bool {
    locals <= MOST_LOCALS && levels <= SHALLOW && root.is_plain()
}

/// One evaluation.
pub(super) struct Plain<'a, 'c> {
    arena: &'a Arena,
    inputs: &'c [Input<'a>],
    locals: [Local<'a>; MOST_LOCALS],
    cost: u64,
    limit: u64,
}

/// What a variable of a fold holds.
#[derive(Clone, Copy)]
enum Local<'a> {
    Absent,
    Val(Val<'a>),
    Json(&'a Value, &'a Shape),
    /// To be computed when it is first used.
    Lazy(&'a Node),
}

/// Where a selection has arrived.
#[derive(Clone, Copy)]
enum Place<'a> {
    Json(&'a Value, &'a Shape),
    Val(Val<'a>),
}

/// Whether a fold goes on.
enum Flow {
    On,
    Done,
}

impl<'a, 'c> Plain<'a, 'c> {
    /// The value of a program and its cost; `None` where only the machine can tell.
    #[inline]
    pub(super) fn run(
        program: &'a Program,
        arena: &'a Arena,
        inputs: &'c [Input<'a>],
        limit: u64,
    ) -> Option<(Val<'a>, u64)> {
        let mut plain = Plain::new(arena, inputs, limit);
        let value = plain.val(&program.root)?;
        (plain.cost <= limit).then_some((value, plain.cost))
    }

    /// As [`Plain::run`], of a program that says yes or no.
    #[inline]
    pub(super) fn test_root(
        program: &'a Program,
        arena: &'a Arena,
        inputs: &'c [Input<'a>],
        limit: u64,
    ) -> Option<(bool, u64)> {
        let mut plain = Plain::new(arena, inputs, limit);
        let answer = plain.test(&program.root)?;
        (plain.cost <= limit).then_some((answer, plain.cost))
    }

    #[inline]
    fn new(arena: &'a Arena, inputs: &'c [Input<'a>], limit: u64) -> Self {
        Plain {
            arena,
            inputs,
            locals: [Local::Absent; MOST_LOCALS],
            cost: 0,
            limit,
        }
    }

    #[inline]
    fn charge(&mut self, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
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
    fn test(&mut self, node: &'a Node) -> Option<bool> {
        match node {
            Node::And(terms) => self.junction(terms, false),
            Node::Or(terms) => self.junction(terms, true),
            Node::Equality(equality) => self.equality(equality),
            Node::Comparison(comparison) => self.comparison(comparison),
            Node::Access(access) if access.mode == Mode::Presence => self.presence(access),
            Node::Unary(call) if call.operation == Operation::Not => self.negation(call),
            Node::Member(member) => self.member(member),
            Node::Choice(choice) => self.choice(choice),
            Node::Const(Owned::Bool(answer)) => Some(*answer),
            node => self.other_test(node),
        }
    }

    #[inline(never)]
    fn other_test(&mut self, node: &'a Node) -> Option<bool> {
        if let Node::NotStrictlyFalse(term) = node {
            let answer = self.test(term)?;
            self.charge(1);
            return Some(answer);
        }
        match self.any(node)? {
            Val::Bool(answer) => Some(answer),
            _ => None,
        }
    }

    #[inline(never)]
    fn junction(&mut self, terms: &'a [Node; 2], decisive: bool) -> Option<bool> {
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
    fn choice(&mut self, choice: &'a Choice) -> Option<bool> {
        let chosen = self.chosen(choice)?;
        let answer = self.test(chosen)?;
        self.refund_access(chosen);
        Some(answer)
    }

    #[inline(never)]
    fn member(&mut self, member: &'a Member) -> Option<bool> {
        if let Some((text, cost)) = self.text_at_hand(&member.value) {
            self.charge(cost);
            return Some(member.set.contains_text(text));
        }
        let value = self.val(&member.value)?;
        Some(member.set.contains(value))
    }

    /// The value of a step.
    fn val(&mut self, node: &'a Node) -> Option<Val<'a>> {
        match node {
            Node::Access(access) if access.mode == Mode::Value => self.access(access),
            Node::Const(constant) => Some(constant.key()),
            node if node.is_test() => self.answer(node),
            node => self.any(node),
        }
    }

    #[inline(never)]
    fn answer(&mut self, node: &'a Node) -> Option<Val<'a>> {
        self.test(node).map(Val::Bool)
    }

    /// The value of a step that may give anything.
    fn any(&mut self, node: &'a Node) -> Option<Val<'a>> {
        match node {
            Node::Unary(call) => self.unary(call),
            Node::Binary(call) => self.binary(call),
            Node::Join(call) => self.join(call),
            Node::Call(call) => self.call(call),
            Node::Choice(choice) => self.either(choice),
            Node::Fold(fold) => self.fold(fold),
            Node::List(elements) => self.list(elements),
            Node::Access(access) if access.mode == Mode::Value => self.access(access),
            Node::Const(constant) => Some(constant.key()),
            _ => None,
        }
    }

    #[inline(never)]
    fn either(&mut self, choice: &'a Choice) -> Option<Val<'a>> {
        let chosen = self.chosen(choice)?;
        let value = self.val(chosen)?;
        self.refund_access(chosen);
        Some(value)
    }

    /// What is selected costs, but not the access itself, where it stands as a part of another step.
    #[inline]
    fn refund_access(&mut self, node: &Node) {
        if matches!(node, Node::Access(access) if access.mode == Mode::Value) {
            self.cost = self.cost.saturating_sub(1);
        }
    }

    #[inline]
    fn chosen(&mut self, choice: &'a Choice) -> Option<&'a Node> {
        Some(if self.test(&choice.condition)? {
            &choice.yes
        } else {
            &choice.no
        })
    }

    #[inline]
    fn json_root(&self, root: &Root) -> Option<(&'a Value, &'a Shape)> {
        match root {
            Root::Input(n) => match self.inputs.get(*n) {
                Some(Input::Json(value, shape)) => Some((value, shape)),
                _ => None,
            },
            Root::Local(n) => match self.locals.get(*n) {
                Some(Local::Json(value, shape)) => Some((value, shape)),
                _ => None,
            },
            Root::Value(_) => None,
        }
    }

    /// Where an access leads that starts in JSON and follows declared fields.
    #[inline]
    fn place(&self, access: &'a Access) -> Option<(&'a Value, &'a Shape)> {
        follow(self.json_root(&access.root)?, &access.path)
    }

    #[inline(never)]
    fn access(&mut self, access: &'a Access) -> Option<Val<'a>> {
        if let Some((value, shape)) = self.place(access) {
            self.charge(access.cost());
            return read(self.arena, value, shape).ok();
        }
        self.walk(access)
    }

    /// The value of an access that leads through more than declared fields.
    #[inline(never)]
    fn walk(&mut self, access: &'a Access) -> Option<Val<'a>> {
        let mut place = self.start(&access.root)?;
        for qualifier in &access.path {
            place = self.select(place, qualifier)?;
        }
        self.charge(access.cost());
        self.read(place)
    }

    fn start(&mut self, root: &'a Root) -> Option<Place<'a>> {
        if let Some((value, shape)) = self.json_root(root) {
            return Some(Place::Json(value, shape));
        }
        match root {
            Root::Input(n) => match self.inputs.get(*n)? {
                Input::Val(value) => Some(Place::Val(*value)),
                Input::Absent | Input::Json(..) => None,
            },
            Root::Local(n) => match *self.locals.get(*n)? {
                Local::Val(value) => Some(Place::Val(value)),
                Local::Lazy(node) => {
                    let value = self.val(node)?;
                    self.set(*n, Local::Val(value));
                    Some(Place::Val(value))
                }
                Local::Absent | Local::Json(..) => None,
            },
            Root::Value(node) => self.val(node).map(Place::Val),
        }
    }

    fn read(&self, place: Place<'a>) -> Option<Val<'a>> {
        match place {
            Place::Json(value, shape) => read(self.arena, value, shape).ok(),
            Place::Val(value) => Some(value),
        }
    }

    /// One selection. It is paid for with the access.
    fn select(&mut self, place: Place<'a>, qualifier: &'a Qualifier) -> Option<Place<'a>> {
        let key = match &qualifier.key {
            Key::Name(name) => {
                if let Place::Json(Value::Object(object), shape) = place {
                    return name
                        .member(object, shape)?
                        .map(|(value, shape)| Place::Json(value, shape));
                }
                Val::Str(&name.name)
            }
            Key::Const(key) => key.key(),
            Key::Node(node) => {
                let key = self.val(node)?;
                self.refund_access(node);
                key
            }
        };
        let container = self.read(place)?;
        if let Some(map) = container.as_map() {
            return map.get(self.arena, key)?.ok().map(Place::Val);
        }
        let (list, Val::Int(index)) = (container.as_list()?, key) else {
            return None;
        };
        let index = usize::try_from(index).ok()?;
        match list {
            List::Json(items, shape) => Some(Place::Json(items.get(index)?, element_shape(shape))),
            list => list.get(self.arena, index)?.ok().map(Place::Val),
        }
    }

    /// Whether there is what an access asks for.
    #[inline(never)]
    fn presence(&mut self, access: &'a Access) -> Option<bool> {
        let (last, way) = access.path.split_last()?;
        let (value, shape) = follow(self.json_root(&access.root)?, way)?;
        self.charge(access.path.len() as u64);
        match last.declared(value, shape) {
            Some(None) => Some(false),
            Some(Some((value, shape))) => self.is_readable(value, shape),
            None => match (&last.key, value) {
                (Key::Name(name), Value::Object(object)) => match name.member(object, shape)? {
                    Some((value, shape)) => self.is_readable(value, shape),
                    None => Some(false),
                },
                _ => None,
            },
        }
    }

    /// What cannot be read is an error, even if nobody wants to know more than that it is there.
    #[inline]
    fn is_readable(&self, value: &'a Value, shape: &'a Shape) -> Option<bool> {
        match (value, &shape.kind) {
            (Value::String(_), Kind::String) | (Value::Int(_), Kind::Int) | (Value::Bool(_), Kind::Bool) => {
                Some(true)
            }
            _ => read(self.arena, value, shape).is_ok().then_some(true),
        }
    }

    /// The text that a step gives, and what it costs, where it is a constant or a declared field.
    #[inline]
    fn text_at_hand(&self, node: &'a Node) -> Option<(&'a str, u64)> {
        match node {
            Node::Access(access) if access.mode == Mode::Value => match self.place(access)? {
                (Value::String(text), shape) if matches!(shape.kind, Kind::String | Kind::IntOrString) => {
                    Some((text, access.cost()))
                }
                _ => None,
            },
            Node::Const(Owned::Str(text)) => Some((text, 0)),
            _ => None,
        }
    }

    /// As [`Plain::text_at_hand`], of integers and of the sizes of fields.
    #[inline]
    fn int_at_hand(&self, node: &'a Node) -> Option<(i64, u64)> {
        match node {
            Node::Const(Owned::Int(i)) => Some((*i, 0)),
            node => self.int_of_field(node),
        }
    }

    fn int_of_field(&self, node: &'a Node) -> Option<(i64, u64)> {
        match node {
            Node::Access(access) if access.mode == Mode::Value => match self.place(access)? {
                (Value::Int(i), shape) if matches!(shape.kind, Kind::Int | Kind::IntOrString) => {
                    Some((*i, access.cost()))
                }
                _ => None,
            },
            Node::Unary(call) if call.operation == Operation::Size => match (&call.arg, call.actual) {
                (Node::Access(access), Actual::Fixed(cost)) if access.mode == Mode::Value => {
                    let (value, shape) = self.place(access)?;
                    let size = match (value, &shape.kind) {
                        (Value::Array(items), Kind::List { .. }) => items.len() as u64,
                        (Value::String(text), Kind::String) => text_size(text),
                        (Value::Object(object), Kind::Object { .. } | Kind::Map { .. }) => {
                            object.len() as u64
                        }
                        _ => return None,
                    };
                    Some((i64::try_from(size).ok()?, access.cost() + cost))
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
            Node::Const(Owned::Str(b)) => {
                if let Some((a, cost)) = self.text_at_hand(left) {
                    self.charge(cost + shorter_text_cost(a, b));
                    return Some(same_text(a, b) != *negated);
                }
            }
            Node::Const(Owned::Int(b)) => {
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
            (Operation::Size, Val::JsonList(items, _)) => Some(items.len() as u64),
            (Operation::Size, Val::JsonMap(object, _)) => Some(object.len() as u64),
            (Operation::Size, Val::Str(text)) => Some(text_size(text)),
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
        let (left, right) = (self.val(&call.left)?, self.val(&call.right)?);
        self.apply(call, left, right)
    }

    fn apply(&mut self, call: &'a Binary, left: Val<'a>, right: Val<'a>) -> Option<Val<'a>> {
        let result = (call.run)(self.arena, left, right).ok()?;
        self.charge_call(call.actual, &[Some(left), Some(right)], result);
        Some(result)
    }

    fn join(&mut self, call: &'a Binary) -> Option<Val<'a>> {
        match (self.val(&call.left)?, self.val(&call.right)?) {
            (Val::Str(a), Val::Str(b)) => {
                let joined = self.arena.join(a, b).ok()?;
                self.charge(text_cost(text_size(joined)));
                Some(Val::Str(joined))
            }
            (left, right) => self.apply(call, left, right),
        }
    }

    #[inline(never)]
    fn call(&mut self, call: &'a Call) -> Option<Val<'a>> {
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

    fn list(&mut self, elements: &'a [Element]) -> Option<Val<'a>> {
        let mut items: SmallVec<[Val<'a>; 4]> = SmallVec::with_capacity(elements.len());
        for element in elements {
            items.push(self.val(&element.node)?);
        }
        self.charge(LIST_COST);
        self.arena.list(items).ok()
    }

    fn set(&mut self, local: usize, value: Local<'a>) {
        if let Some(place) = self.locals.get_mut(local) {
            *place = value;
        }
    }

    #[inline(never)]
    fn fold(&mut self, fold: &'a Fold) -> Option<Val<'a>> {
        let range = self.val(&fold.range)?;
        let result = match &fold.step {
            // `@not_strictly_false(@result)`
            Step::All { predicate } => self.quantify(fold, range, predicate, false, 2)?,
            // `@not_strictly_false(!@result)`
            Step::Exists { predicate } => self.quantify(fold, range, predicate, true, 3)?,
            Step::Replace { condition, step } => {
                // A value that nobody asks for is not computed.
                self.set(fold.accumulator, Local::Lazy(&fold.init));
                self.each(fold, range, |plain| {
                    if !plain.test(condition)? {
                        return Some(Flow::Done);
                    }
                    let value = plain.val(step)?;
                    plain.set(fold.accumulator, Local::Val(value));
                    Some(Flow::On)
                })?;
                return self.val(&fold.result);
            }
            Step::Append { filter, element } => {
                let list_cost = if matches!(element, Node::Const(_)) {
                    0
                } else {
                    LIST_COST
                };
                let mut items: SmallVec<[Val<'a>; 8]> = SmallVec::new();
                self.each(fold, range, |plain| {
                    let passes = match filter {
                        Some(filter) => plain.test(filter)?,
                        None => true,
                    };
                    if passes {
                        items.push(plain.val(element)?);
                        plain.charge(2 + list_cost);
                    }
                    Some(Flow::On)
                })?;
                self.arena.list(items).ok()?
            }
            Step::Insert { .. } => return None,
        };
        self.set(fold.accumulator, Local::Val(result));
        self.val(&fold.result)
    }

    /// Takes a step for each element until it is done.
    #[inline]
    fn each(
        &mut self,
        fold: &'a Fold,
        range: Val<'a>,
        mut step: impl FnMut(&mut Self) -> Option<Flow>,
    ) -> Option<()> {
        let mut turn = |plain: &mut Self| {
            let flow = step(plain)?;
            (plain.cost <= plain.limit).then_some(flow)
        };
        if let Some(list) = range.as_list() {
            for i in 0..list.len() {
                let item = self.item(list, i)?;
                match fold.second {
                    None => self.set(fold.first, item),
                    Some(second) => {
                        self.set(fold.first, Local::Val(Val::Int(i64::try_from(i).ok()?)));
                        self.set(second, item);
                    }
                }
                if let Flow::Done = turn(self)? {
                    break;
                }
            }
            return Some(());
        }
        let map: Map<'a> = range.as_map()?;
        for key in map.keys() {
            self.set(fold.first, Local::Val(key));
            if let Some(second) = fold.second {
                let value = map.get(self.arena, key)?.ok()?;
                self.set(second, Local::Val(value));
            }
            if let Flow::Done = turn(self)? {
                break;
            }
        }
        Some(())
    }

    #[inline]
    fn item(&self, list: List<'a>, index: usize) -> Option<Local<'a>> {
        match list {
            List::Json(items, shape) => Some(Local::Json(items.get(index)?, element_shape(shape))),
            List::Data(ListData::Vals { items, .. }) => items.get(index).copied().map(Local::Val),
            list => list.get(self.arena, index)?.ok().map(Local::Val),
        }
    }

    /// `all` and `exists`, until one element decides. Asking whether to go on has its cost, too.
    fn quantify(
        &mut self,
        fold: &'a Fold,
        range: Val<'a>,
        predicate: &'a Node,
        decisive: bool,
        question: u64,
    ) -> Option<Val<'a>> {
        let mut decided = false;
        self.each(fold, range, |plain| {
            plain.charge(question);
            if decided {
                return Some(Flow::Done);
            }
            plain.charge(1);
            decided = plain.test(predicate)? == decisive;
            Some(Flow::On)
        })?;
        Some(Val::Bool(decided == decisive))
    }
}

impl Node {
    /// Whether this can give nothing but a boolean.
    #[inline]
    fn is_test(&self) -> bool {
        match self {
            Node::And(_)
            | Node::Or(_)
            | Node::NotStrictlyFalse(_)
            | Node::Equality(_)
            | Node::Comparison(_)
            | Node::Member(_) => true,
            Node::Access(access) => access.mode == Mode::Presence,
            Node::Unary(call) => call.operation == Operation::Not,
            _ => false,
        }
    }

    /// Whether a plain walk may get through.
    fn is_plain(&self) -> bool {
        let all = |nodes: &[Node]| nodes.iter().all(Node::is_plain);
        match self {
            Node::Const(value) => !matches!(value, Owned::Optional(_)),
            Node::Access(access) => access.is_plain(),
            Node::Choice(choice) => {
                let Choice {
                    condition,
                    yes,
                    no,
                    path,
                    mode: _,
                } = &**choice;
                path.is_empty() && [condition, yes, no].into_iter().all(Node::is_plain)
            }
            Node::And(terms) | Node::Or(terms) => all(&**terms),
            Node::NotStrictlyFalse(term) => term.is_plain(),
            Node::Equality(equality) => equality.left.is_plain() && equality.right.is_plain(),
            Node::Unary(call) => call.arg.is_plain(),
            Node::Binary(call) | Node::Join(call) => call.left.is_plain() && call.right.is_plain(),
            Node::Comparison(comparison) => {
                comparison.call.left.is_plain() && comparison.call.right.is_plain()
            }
            Node::Call(call) => all(&call.args),
            Node::Member(member) => member.value.is_plain(),
            Node::List(elements) => elements.iter().all(|e| !e.optional && e.node.is_plain()),
            Node::Fold(fold) => fold.is_plain(),
            Node::Map(_) | Node::Message(_) | Node::Alternative(_) | Node::Block(_) | Node::Unresolved(_) => {
                false
            }
        }
    }
}

impl Access {
    fn is_plain(&self) -> bool {
        let root = match &self.root {
            Root::Input(_) | Root::Local(_) => true,
            Root::Value(node) => self.mode == Mode::Value && node.is_plain(),
        };
        let plain = |qualifier: &Qualifier| {
            !qualifier.optional
                && match &qualifier.key {
                    Key::Name(_) => true,
                    Key::Const(key) => !matches!(key, Owned::Optional(_)),
                    Key::Node(node) => node.is_plain(),
                }
        };
        root && self.path.iter().all(plain)
    }
}

impl Fold {
    fn is_plain(&self) -> bool {
        let step = match &self.step {
            Step::All { predicate } | Step::Exists { predicate } => predicate.is_plain(),
            Step::Replace { condition, step } => {
                self.init.is_plain() && condition.is_plain() && step.is_plain()
            }
            Step::Append { filter, element } => {
                filter.as_ref().is_none_or(Node::is_plain) && element.is_plain()
            }
            Step::Insert { .. } => false,
        };
        step && self.range.is_plain() && self.result.is_plain()
    }
}
