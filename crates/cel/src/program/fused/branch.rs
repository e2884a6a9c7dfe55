//! Compiles programs to a decision graph.
//!
//! `a && b` is not a test: if `a` passes, the graph continues with `b`, otherwise with the failure edge. The same goes for
//! `||`, `!`, `c ? a : b` and the equality of two booleans. Their costs are added to the edges.

use super::fields::{JsonTypes, Layout, ObjectIndex, ROOT, SUBJECT, SlotPool};
use super::test::{
    Affix, Branch, BranchTable, Edge, EqualsAny, Fallback, FusedTest, NumberSource, OpPath, Quantifier,
    RegexSearch, TextConstant, TextSource,
};
use super::{MAX_CACHED_SEARCHES, SlotIndex};
use crate::program::Program;
use crate::program::fold::{ALL_CONDITION_COST, EXISTS_CONDITION_COST};
use crate::program::op::{
    Attribute, AttributeMode, AttributeRoot, Binary, CallOp, Comparison, Conditional, Equality, FoldOp,
    FoldStep, Op, QualifierKey, Relation, Unary, UnaryKind,
};
use crate::run::Actual;
use crate::shape::{Shape, ShapeKind};
use crate::val::Owned;
use scantling_notation::regex::Pattern;
use std::sync::Arc;

/// A variable whose fields have slots.
struct FusedVariable {
    slot: SlotIndex,
    /// The fields that are read of it, if it is an object.
    object: ObjectIndex,
    shape: Arc<Shape>,
    /// The pool from which its fields get their slots.
    end: SlotPool,
}

/// The slot of an attribute.
struct FieldSlot {
    slot: SlotIndex,
    /// The slot of the object around it, or its own.
    within: SlotIndex,
    shape: Arc<Shape>,
}

/// `all` or `exists` over a list in a slot.
struct QuantifiedList<'p> {
    list: FieldSlot,
    element: Arc<Shape>,
    predicate: &'p Op,
    /// The result of the predicate that ends the loop.
    decisive: bool,
    /// The cost of the loop condition.
    condition_cost: u64,
    /// The cost apart from the iterations.
    cost: u32,
}

/// Compiles programs to a decision graph.
pub(super) struct FusedBuilder {
    layout: Layout,
    branches: BranchTable,
    subject: FusedVariable,
    /// The variables of the enclosing comprehensions, by their index in the program.
    locals: Vec<(usize, FusedVariable)>,
    /// The searches whose results are cached.
    cached_searches: Vec<(SlotIndex, Pattern)>,
    /// The index of the current program.
    program: usize,
    /// The ops visited in the current program. Equality of booleans visits its right side twice.
    visited: usize,
}

/// Beyond this number of visited ops, the rest of a program is left to the interpreter, which bounds the graph.
const MAX_VISITED_OPS: usize = 500;

impl FusedBuilder {
    pub(super) fn new(shape: &Arc<Shape>) -> Self {
        let subject = FusedVariable {
            slot: SUBJECT,
            object: ROOT,
            shape: Arc::clone(shape),
            end: SlotPool::Front,
        };
        FusedBuilder {
            layout: Layout::new(),
            branches: BranchTable::default(),
            subject,
            locals: Vec::new(),
            cached_searches: Vec::new(),
            program: 0,
            visited: 0,
        }
    }

    /// Chains the programs. The graph is built back to front, since each test needs the edges that follow it.
    pub(super) fn all(&mut self, programs: &[Option<Arc<Program>>]) -> Edge {
        let mut entry = Edge::YES;
        for (index, program) in programs.iter().enumerate().rev() {
            if let Some(program) = program {
                (self.program, self.visited) = (index, 0);
                entry = self.root(&program.root, entry);
            }
        }
        entry
    }

    fn root(&mut self, root: &Op, next: Edge) -> Edge {
        if let Op::Fold(fold) = root
            && let Some(edge) = self.join(fold, next)
        {
            return edge;
        }
        self.layout.free_back();
        self.branch(root, OpPath::default(), next, Edge::NO)
    }

    pub(super) fn finish(mut self) -> (Layout, BranchTable) {
        self.branches.shrink();
        (self.layout, self.branches)
    }

    /// Compiles a boolean op. Returns the edge that enters it.
    fn branch(&mut self, op: &Op, path: OpPath, yes: Edge, no: Edge) -> Edge {
        self.visited += 1;
        if self.visited > MAX_VISITED_OPS {
            return self.fallback(path, yes, no);
        }
        match op {
            Op::Const(Owned::Bool(answer)) => {
                if *answer {
                    yes
                } else {
                    no
                }
            }
            Op::And(terms) => {
                let [first, second] = &**terms;
                let second = self.branch(second, path.then(1), yes, no);
                self.branch(first, path.then(0), second, no)
            }
            Op::Or(terms) => {
                if let Some(test) = self.equals_any(op) {
                    return self.add_test(test, yes, no);
                }
                let [first, second] = &**terms;
                let second = self.branch(second, path.then(1), yes, no);
                self.branch(first, path.then(0), yes, second)
            }
            Op::Unary(call) => self.negation(call, path, yes, no),
            Op::Conditional(conditional) => self.conditional(conditional, path, yes, no),
            Op::Equality(equality) => self.equality(equality, path, yes, no),
            op => match self.test(op, &path) {
                Some((test, cost)) => self.add_test(test, yes.costing(cost), no.costing(cost)),
                None => self.fallback(path, yes, no),
            },
        }
    }

    fn add_test(&mut self, test: FusedTest, yes: Edge, no: Edge) -> Edge {
        self.branches.add(Branch { test, yes, no })
    }

    fn fallback(&mut self, path: OpPath, yes: Edge, no: Edge) -> Edge {
        let local = |(number, variable): &(usize, FusedVariable)| {
            (*number, variable.slot, Arc::clone(&variable.shape))
        };
        let fallback = Fallback {
            program: self.program,
            path,
            locals: self.locals.iter().map(local).collect(),
        };
        self.add_test(FusedTest::Fallback(Box::new(fallback)), yes, no)
    }

    /// `!a` swaps the edges.
    fn negation(&mut self, call: &Unary, path: OpPath, yes: Edge, no: Edge) -> Edge {
        match (call.kind, call.actual) {
            (UnaryKind::Not, Actual::Fixed(cost)) => match u32::try_from(cost) {
                Ok(cost) => self.branch(&call.arg, path.then(0), no.costing(cost), yes.costing(cost)),
                Err(_) => self.fallback(path, yes, no),
            },
            _ => self.fallback(path, yes, no),
        }
    }

    fn conditional(&mut self, conditional: &Conditional, path: OpPath, yes: Edge, no: Edge) -> Edge {
        // Attributes in branches are resolved as part of the conditional, which costs less than evaluating
        // them.
        let is_field = |op: &Op| matches!(op, Op::Attribute(_));
        if !conditional.path.is_empty() || is_field(&conditional.if_true) || is_field(&conditional.if_false) {
            return self.fallback(path, yes, no);
        }
        let selected_branch = self.branch(&conditional.if_true, path.then(1), yes, no);
        let otherwise = self.branch(&conditional.if_false, path.then(2), yes, no);
        self.branch(&conditional.condition, path.then(0), selected_branch, otherwise)
    }

    fn equality(&mut self, equality: &Equality, path: OpPath, yes: Edge, no: Edge) -> Edge {
        let Equality { left, right, negated } = equality;
        let (same, different) = if *negated { (no, yes) } else { (yes, no) };
        if left.is_test() && right.is_test() {
            let (same, different) = (same.costing(1), different.costing(1));
            let if_so = self.branch(right, path.then(1), same, different);
            let if_not = self.branch(right, path.then(1), different, same);
            return self.branch(left, path.then(0), if_so, if_not);
        }
        match self.compared(left, right) {
            Some((test, cost)) => self.add_test(test, same.costing(cost), different.costing(cost)),
            None => self.fallback(path, yes, no),
        }
    }

    /// Equality with a constant.
    fn compared(&mut self, left: &Op, right: &Op) -> Option<(FusedTest, u32)> {
        match right {
            Op::Const(Owned::Str(constant)) => {
                let (text, cost) = self.text(left)?;
                let constant = TextConstant::new(constant);
                Some((FusedTest::Same { text, constant }, cost))
            }
            Op::Const(Owned::Int(constant)) => {
                let (left, cost) = self.number(left)?;
                let test = FusedTest::Numbers {
                    left,
                    right: NumberSource::Constant(*constant),
                    relation: Relation::Equal,
                };
                Some((test, cost + 1))
            }
            _ => None,
        }
    }

    /// `x == 'a' || x == 'b'`
    fn equals_any(&mut self, op: &Op) -> Option<FusedTest> {
        let mut terms = Vec::new();
        equalities(op, &mut terms)?;
        let mut text = None;
        for (attribute, _) in &terms {
            let found = self.field(attribute)?;
            if *text.get_or_insert(found) != found {
                return None;
            }
        }
        let (slot, cost) = text?;
        let constants = terms.iter().map(|(_, constant)| TextConstant::new(constant));
        let equals_any = EqualsAny::new(constants.collect(), cost);
        Some(FusedTest::EqualsAny(slot, Box::new(equals_any)))
    }

    /// The test for an op that is not a logical operator, and its cost.
    fn test(&mut self, op: &Op, path: &OpPath) -> Option<(FusedTest, u32)> {
        match op {
            Op::Attribute(attribute) => match attribute.mode {
                AttributeMode::Presence => self.presence(attribute),
                AttributeMode::Value => self.truth(attribute),
            },
            Op::Comparison(comparison) => self.comparison(comparison),
            Op::InSet(member) => {
                let (text, cost) = self.text(&member.value)?;
                let set = Arc::clone(&member.set);
                Some((FusedTest::OneOf { text, set }, cost))
            }
            Op::Binary(call) => self.affix(call),
            Op::Call(call) => {
                let (search, cost) = self.search(call, "matches")?;
                Some((FusedTest::Matches(search), cost))
            }
            Op::Fold(fold) => self.quantifier(fold, path),
            _ => None,
        }
    }

    fn presence(&mut self, attribute: &Attribute) -> Option<(FusedTest, u32)> {
        if attribute.path.is_empty() {
            return None;
        }
        let place = self.slot_of(attribute)?;
        let test = FusedTest::Present {
            within: place.within,
            field: place.slot,
            types: JsonTypes::for_shape(&place.shape)?,
        };
        Some((test, steps(attribute)?))
    }

    fn truth(&mut self, attribute: &Attribute) -> Option<(FusedTest, u32)> {
        let place = self.slot_of(attribute)?;
        matches!(place.shape.kind, ShapeKind::Bool).then_some(())?;
        Some((FusedTest::Truth(place.slot), steps(attribute)? + 1))
    }

    fn comparison(&mut self, comparison: &Comparison) -> Option<(FusedTest, u32)> {
        let Comparison { relation, call } = comparison;
        let (left, left_cost) = self.number(&call.left)?;
        let (right, right_cost) = self.number(&call.right)?;
        let test = FusedTest::Numbers {
            left,
            right,
            relation: *relation,
        };
        Some((test, left_cost + right_cost + 1))
    }

    /// `a.startsWith("b")` or `a.endsWith("b")`
    fn affix(&mut self, call: &Binary) -> Option<(FusedTest, u32)> {
        let affix = match call.overload.id {
            "starts_with_string" => Affix::Prefix,
            "ends_with_string" => Affix::Suffix,
            _ => return None,
        };
        let (Op::Const(Owned::Str(constant)), Actual::Fixed(cost)) = (&call.right, call.actual) else {
            return None;
        };
        let (text, text_cost) = self.text(&call.left)?;
        let constant = Arc::clone(constant);
        let test = FusedTest::Has {
            text,
            affix,
            constant,
        };
        Some((test, text_cost + u32::try_from(cost).ok()?))
    }

    /// The source of a string, and its cost without that of a search.
    fn text(&mut self, op: &Op) -> Option<(TextSource, u32)> {
        match op {
            Op::Attribute(attribute) => {
                let (slot, cost) = self.field(attribute)?;
                Some((TextSource::Field(slot), cost))
            }
            Op::Call(call) => {
                let (search, cost) = self.search(call, "find")?;
                Some((TextSource::Found(search), cost))
            }
            _ => None,
        }
    }

    /// A call that searches a field for a constant regular expression.
    fn search(&mut self, call: &CallOp, function: &str) -> Option<(RegexSearch, u32)> {
        let ([Op::Attribute(attribute), _], Actual::SearchFor(searched)) = (&*call.args, call.actual) else {
            return None;
        };
        let pattern = call.pattern.clone()?;
        if !call
            .candidates
            .iter()
            .all(|overload| overload.function == function)
        {
            return None;
        }
        let (slot, cost) = self.field(attribute)?;
        let search = RegexSearch {
            slot,
            cache_slot: self.cache_slot(slot, &pattern),
            pattern,
            searched,
        };
        Some((search, cost))
    }

    /// The cache for the result of a search. Fields of list elements change, so they have none.
    fn cache_slot(&mut self, slot: SlotIndex, pattern: &Pattern) -> Option<u8> {
        if !self.layout.is_front(slot) {
            return None;
        }
        let is_same = |(at, cached): &(SlotIndex, Pattern)| *at == slot && cached == pattern;
        let known = self.cached_searches.iter().position(is_same);
        let cache_slot = known.or_else(|| {
            (self.cached_searches.len() < MAX_CACHED_SEARCHES).then(|| {
                self.cached_searches.push((slot, pattern.clone()));
                self.cached_searches.len() - 1
            })
        });
        u8::try_from(cache_slot?).ok()
    }

    /// The slot and cost of a string field. `IntOrString` fields are left to the interpreter, because comparing them with
    /// another type is not an error.
    fn field(&mut self, attribute: &Attribute) -> Option<(SlotIndex, u32)> {
        let place = self.value(attribute)?;
        matches!(place.shape.kind, ShapeKind::String).then_some(())?;
        Some((place.slot, steps(attribute)? + 1))
    }

    /// The source of an integer, and its cost.
    fn number(&mut self, op: &Op) -> Option<(NumberSource, u32)> {
        match op {
            Op::Const(Owned::Int(i)) => Some((NumberSource::Constant(*i), 0)),
            Op::Attribute(attribute) => {
                let place = self.value(attribute)?;
                matches!(place.shape.kind, ShapeKind::Int).then_some(())?;
                Some((NumberSource::Integer(place.slot), steps(attribute)? + 1))
            }
            Op::Unary(call) if call.kind == UnaryKind::Size => {
                let (Op::Attribute(attribute), Actual::Fixed(cost)) = (&call.arg, call.actual) else {
                    return None;
                };
                let place = self.value(attribute)?;
                let size = match place.shape.kind {
                    ShapeKind::String => NumberSource::SizeOfText(place.slot),
                    ShapeKind::List { .. } => NumberSource::SizeOfList(place.slot),
                    ShapeKind::Object { .. } | ShapeKind::Map { .. } => {
                        NumberSource::SizeOfObject(place.slot)
                    }
                    _ => return None,
                };
                Some((size, steps(attribute)? + 1 + u32::try_from(cost).ok()?))
            }
            _ => None,
        }
    }

    /// The parts of a comprehension that is `all` or `exists` over a declared list.
    fn range<'p>(&mut self, fold: &'p FoldOp) -> Option<QuantifiedList<'p>> {
        let (predicate, decisive, condition_cost) = match &fold.step {
            FoldStep::All { predicate } => (predicate, false, ALL_CONDITION_COST),
            FoldStep::Exists { predicate } => (predicate, true, EXISTS_CONDITION_COST),
            _ => return None,
        };
        let (Op::Attribute(range), None) = (&fold.range, fold.second) else {
            return None;
        };
        let gives_accumulator = |attribute: &Attribute| {
            matches!(attribute.root, AttributeRoot::Local(n) if n == fold.accumulator)
                && attribute.path.is_empty()
                && attribute.mode == AttributeMode::Value
        };
        if !matches!(&fold.result, Op::Attribute(attribute) if gives_accumulator(attribute)) {
            return None;
        }
        let list = self.value(range)?;
        let ShapeKind::List { element, .. } = &list.shape.kind else {
            return None;
        };
        Some(QuantifiedList {
            element: Arc::clone(element),
            list,
            predicate,
            decisive,
            condition_cost,
            // The final read of the result costs 1 more.
            cost: steps(range)? + 2,
        })
    }

    fn quantifier(&mut self, fold: &FoldOp, path: &OpPath) -> Option<(FusedTest, u32)> {
        let range = self.range(fold)?;
        let element = FusedVariable {
            slot: self.layout.take(SlotPool::Back)?,
            object: self.layout.object()?,
            shape: Arc::clone(&range.element),
            end: SlotPool::Back,
        };
        let quantifier = Quantifier {
            list: range.list.slot,
            element: element.slot,
            object: element.object,
            shape: Arc::clone(&range.element),
            entry: self.each((fold.first, element), range.predicate, path, Edge::YES),
            decisive: range.decisive,
            condition_cost: range.condition_cost,
            fused: 1,
        };
        Some((FusedTest::Each(Box::new(quantifier)), range.cost))
    }

    /// Merges `all` into a following `all` over the same list, so that each element is visited once. If an element fails,
    /// neither the failing rule nor the cost matters: the programs are evaluated one by one then.
    fn join(&mut self, fold: &FoldOp, next: Edge) -> Option<Edge> {
        let range = self.range(fold).filter(|range| !range.decisive)?;
        let step = self.branches.step(next).filter(|step| step.no.is_no())?;
        let FusedTest::Each(quantifier) = &step.test else {
            return None;
        };
        if quantifier.list != range.list.slot || quantifier.decisive {
            return None;
        }
        let element = FusedVariable {
            slot: quantifier.element,
            object: quantifier.object,
            shape: Arc::clone(&quantifier.shape),
            end: SlotPool::Back,
        };
        let rest = quantifier.entry;
        let entry = self.each((fold.first, element), range.predicate, &OpPath::default(), rest);
        let step = self.branches.step_mut(next)?;
        step.yes = step.yes.costing(range.cost);
        if let FusedTest::Each(quantifier) = &mut step.test {
            quantifier.entry = entry;
            quantifier.condition_cost += range.condition_cost;
            quantifier.fused += 1;
        }
        Some(next)
    }

    /// Compiles the predicate for one element.
    fn each(&mut self, element: (usize, FusedVariable), predicate: &Op, path: &OpPath, next: Edge) -> Edge {
        self.locals.push(element);
        let entry = self.branch(predicate, path.then(0), next, Edge::NO);
        self.locals.pop();
        entry
    }

    fn value(&mut self, attribute: &Attribute) -> Option<FieldSlot> {
        (attribute.mode == AttributeMode::Value).then_some(())?;
        self.slot_of(attribute)
    }

    /// The slot of an attribute that selects only declared fields of a variable.
    fn slot_of(&mut self, attribute: &Attribute) -> Option<FieldSlot> {
        let variable = match &attribute.root {
            AttributeRoot::Input(0) => &self.subject,
            AttributeRoot::Local(local) => &self.locals.iter().find(|(number, _)| number == local)?.1,
            AttributeRoot::Input(_) | AttributeRoot::Value(_) => return None,
        };
        let (mut object, end) = (variable.object, variable.end);
        let mut place = FieldSlot {
            slot: variable.slot,
            within: variable.slot,
            shape: Arc::clone(&variable.shape),
        };
        for (i, qualifier) in attribute.path.iter().enumerate() {
            let (QualifierKey::Name(name), false) = (&qualifier.key, qualifier.optional) else {
                return None;
            };
            let field = name.field.as_ref()?;
            if !Arc::ptr_eq(&field.within, &place.shape) {
                return None;
            }
            if i > 0 {
                object = self.layout.nested(object, place.slot)?;
            }
            place = FieldSlot {
                slot: self.layout.field(object, &field.json, end)?,
                within: place.slot,
                shape: Arc::clone(&field.shape),
            };
        }
        Some(place)
    }
}

/// Collects the terms of `a == 'x' || b == 'y'`, if all are of this form.
fn equalities<'p>(op: &'p Op, terms: &mut Vec<(&'p Attribute, &'p Arc<str>)>) -> Option<()> {
    match op {
        Op::Or(both) => both.iter().try_for_each(|term| equalities(term, terms)),
        Op::Equality(equality) => match &**equality {
            Equality {
                left: Op::Attribute(attribute),
                right: Op::Const(Owned::Str(constant)),
                negated: false,
            } => {
                terms.push((attribute, constant));
                Some(())
            }
            _ => None,
        },
        _ => None,
    }
}

/// The number of qualifiers of an attribute.
fn steps(attribute: &Attribute) -> Option<u32> {
    u32::try_from(attribute.path.len()).ok()
}
