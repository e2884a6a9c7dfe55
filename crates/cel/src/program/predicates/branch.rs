//! From programs to questions, each with what comes next.
//!
//! `a && b` is no step of its own: where `a` holds, `b` is next, and where it does not, the answer is no. So it is with
//! `||`, `!`, `c ? a : b` and the equality of answers. What they cost stands on the way from one question to the next.

use super::fields::{End, Layout, Object, ROOT, SUBJECT, Types};
use super::question::{
    Affix, Branches, Constant, Edge, Listed, Number, Other, Quantifier, Question, Search, Step, Text, Way,
};
use super::{MOST_NOTES, Slot};
use crate::data::regex::Pattern;
use crate::program::Program;
use crate::program::fold::{ALL_ASKS, EXISTS_ASKS};
use crate::program::node::{
    Access, Binary, Call, Choice, Comparison, Equality, Fold, Key, Mode, Node, Operation, Relation, Root,
    Step as FoldStep, Unary,
};
use crate::run::Actual;
use crate::shape::{Kind, Shape};
use crate::val::Owned;
use std::sync::Arc;

/// A variable that questions are about.
struct Variable {
    slot: Slot,
    /// What is read of it, if it is an object.
    object: Object,
    shape: Arc<Shape>,
    /// Where that stands.
    end: End,
}

/// Where an access leads.
struct Place {
    slot: Slot,
    /// The object that it is a field of, or itself.
    within: Slot,
    shape: Arc<Shape>,
}

/// `all` or `exists` of a list that is at hand.
struct Range<'p> {
    list: Place,
    element: Arc<Shape>,
    predicate: &'p Node,
    /// The answer that ends it.
    decisive: bool,
    /// What it costs to ask whether to go on.
    asking: u64,
    /// What it costs apart from its elements.
    cost: u32,
}

/// Makes questions of programs.
pub(super) struct Builder {
    layout: Layout,
    branches: Branches,
    subject: Variable,
    /// The variables of folds, by their numbers in the program.
    locals: Vec<(usize, Variable)>,
    /// The searches whose results are noted.
    noted: Vec<(Slot, Pattern)>,
    /// The index of the program at work.
    program: usize,
    /// How many of its steps were looked at: some are more than once.
    looks: usize,
}

/// Programs that take more looks are not taken apart any further.
const MOST_LOOKS: usize = 500;

impl Builder {
    pub(super) fn new(shape: &Arc<Shape>) -> Self {
        let subject = Variable {
            slot: SUBJECT,
            object: ROOT,
            shape: Arc::clone(shape),
            end: End::Front,
        };
        Builder {
            layout: Layout::new(),
            branches: Branches::default(),
            subject,
            locals: Vec::new(),
            noted: Vec::new(),
            program: 0,
            looks: 0,
        }
    }

    /// Asks one program after the other, as long as they hold. They are put together from the last one on: each has to
    /// know what comes next.
    pub(super) fn all(&mut self, programs: &[Option<Arc<Program>>]) -> Edge {
        let mut entry = Edge::YES;
        for (index, program) in programs.iter().enumerate().rev() {
            if let Some(program) = program {
                (self.program, self.looks) = (index, 0);
                entry = self.root(&program.root, entry);
            }
        }
        entry
    }

    fn root(&mut self, root: &Node, next: Edge) -> Edge {
        if let Node::Fold(fold) = root
            && let Some(edge) = self.join(fold, next)
        {
            return edge;
        }
        self.layout.free_back();
        self.branch(root, Way::default(), next, Edge::NO)
    }

    pub(super) fn finish(mut self) -> (Layout, Branches) {
        self.branches.shrink();
        (self.layout, self.branches)
    }

    /// Asks what a step says, and goes on with one of the edges.
    fn branch(&mut self, node: &Node, way: Way, yes: Edge, no: Edge) -> Edge {
        self.looks += 1;
        if self.looks > MOST_LOOKS {
            return self.other(way, yes, no);
        }
        match node {
            Node::Const(Owned::Bool(answer)) => {
                if *answer {
                    yes
                } else {
                    no
                }
            }
            Node::And(terms) => {
                let [first, second] = &**terms;
                let second = self.branch(second, way.then(1), yes, no);
                self.branch(first, way.then(0), second, no)
            }
            Node::Or(terms) => {
                if let Some(question) = self.listed(node) {
                    return self.ask(question, yes, no);
                }
                let [first, second] = &**terms;
                let second = self.branch(second, way.then(1), yes, no);
                self.branch(first, way.then(0), yes, second)
            }
            Node::Unary(call) => self.negation(call, way, yes, no),
            Node::Choice(choice) => self.choice(choice, way, yes, no),
            Node::Equality(equality) => self.equality(equality, way, yes, no),
            node => match self.question(node, &way) {
                Some((question, cost)) => self.ask(question, yes.costing(cost), no.costing(cost)),
                None => self.other(way, yes, no),
            },
        }
    }

    fn ask(&mut self, question: Question, yes: Edge, no: Edge) -> Edge {
        self.branches.add(Step { question, yes, no })
    }

    fn other(&mut self, way: Way, yes: Edge, no: Edge) -> Edge {
        let local =
            |(number, variable): &(usize, Variable)| (*number, variable.slot, Arc::clone(&variable.shape));
        let other = Other {
            program: self.program,
            way,
            locals: self.locals.iter().map(local).collect(),
        };
        self.ask(Question::Other(Box::new(other)), yes, no)
    }

    /// `!a`: the other way round.
    fn negation(&mut self, call: &Unary, way: Way, yes: Edge, no: Edge) -> Edge {
        match (call.operation, call.actual) {
            (Operation::Not, Actual::Fixed(cost)) => match u32::try_from(cost) {
                Ok(cost) => self.branch(&call.arg, way.then(0), no.costing(cost), yes.costing(cost)),
                Err(_) => self.other(way, yes, no),
            },
            _ => self.other(way, yes, no),
        }
    }

    fn choice(&mut self, choice: &Choice, way: Way, yes: Edge, no: Edge) -> Edge {
        // A field that is chosen costs less than one that is asked for.
        let is_field = |node: &Node| matches!(node, Node::Access(_));
        if !choice.path.is_empty() || is_field(&choice.yes) || is_field(&choice.no) {
            return self.other(way, yes, no);
        }
        let chosen = self.branch(&choice.yes, way.then(1), yes, no);
        let otherwise = self.branch(&choice.no, way.then(2), yes, no);
        self.branch(&choice.condition, way.then(0), chosen, otherwise)
    }

    fn equality(&mut self, equality: &Equality, way: Way, yes: Edge, no: Edge) -> Edge {
        let Equality { left, right, negated } = equality;
        let (same, different) = if *negated { (no, yes) } else { (yes, no) };
        if left.is_test() && right.is_test() {
            let (same, different) = (same.costing(1), different.costing(1));
            let if_so = self.branch(right, way.then(1), same, different);
            let if_not = self.branch(right, way.then(1), different, same);
            return self.branch(left, way.then(0), if_so, if_not);
        }
        match self.compared(left, right) {
            Some((question, cost)) => self.ask(question, same.costing(cost), different.costing(cost)),
            None => self.other(way, yes, no),
        }
    }

    /// Whether a value equals a constant.
    fn compared(&mut self, left: &Node, right: &Node) -> Option<(Question, u32)> {
        match right {
            Node::Const(Owned::Str(constant)) => {
                let (text, cost) = self.text(left)?;
                let constant = Constant::new(constant);
                Some((Question::Same { text, constant }, cost))
            }
            Node::Const(Owned::Int(constant)) => {
                let (left, cost) = self.number(left)?;
                let question = Question::Numbers {
                    left,
                    right: Number::Constant(*constant),
                    relation: Relation::Equal,
                };
                Some((question, cost + 1))
            }
            _ => None,
        }
    }

    /// `x == 'a' || x == 'b'`
    fn listed(&mut self, node: &Node) -> Option<Question> {
        let mut terms = Vec::new();
        equalities(node, &mut terms)?;
        let mut text = None;
        for (access, _) in &terms {
            let found = self.field(access)?;
            if *text.get_or_insert(found) != found {
                return None;
            }
        }
        let (slot, cost) = text?;
        let constants = terms.iter().map(|(_, constant)| Constant::new(constant));
        let listed = Listed::new(constants.collect(), cost);
        Some(Question::Listed(slot, Box::new(listed)))
    }

    /// A question that is about a step as a whole, and what it costs to ask it.
    fn question(&mut self, node: &Node, way: &Way) -> Option<(Question, u32)> {
        match node {
            Node::Access(access) => match access.mode {
                Mode::Presence => self.presence(access),
                Mode::Value => self.truth(access),
            },
            Node::Comparison(comparison) => self.comparison(comparison),
            Node::Member(member) => {
                let (text, cost) = self.text(&member.value)?;
                let set = Arc::clone(&member.set);
                Some((Question::OneOf { text, set }, cost))
            }
            Node::Binary(call) => self.affix(call),
            Node::Call(call) => {
                let (search, cost) = self.search(call, "matches")?;
                Some((Question::Matches(search), cost))
            }
            Node::Fold(fold) => self.quantifier(fold, way),
            _ => None,
        }
    }

    fn presence(&mut self, access: &Access) -> Option<(Question, u32)> {
        if access.path.is_empty() {
            return None;
        }
        let place = self.place(access)?;
        let question = Question::Present {
            within: place.within,
            field: place.slot,
            types: Types::of(&place.shape)?,
        };
        Some((question, steps(access)?))
    }

    fn truth(&mut self, access: &Access) -> Option<(Question, u32)> {
        let place = self.place(access)?;
        matches!(place.shape.kind, Kind::Bool).then_some(())?;
        Some((Question::Truth(place.slot), steps(access)? + 1))
    }

    fn comparison(&mut self, comparison: &Comparison) -> Option<(Question, u32)> {
        let Comparison { relation, call } = comparison;
        let (left, left_cost) = self.number(&call.left)?;
        let (right, right_cost) = self.number(&call.right)?;
        let question = Question::Numbers {
            left,
            right,
            relation: *relation,
        };
        Some((question, left_cost + right_cost + 1))
    }

    /// `a.startsWith("b")` or `a.endsWith("b")`
    fn affix(&mut self, call: &Binary) -> Option<(Question, u32)> {
        let affix = match call.overload.id {
            "starts_with_string" => Affix::Prefix,
            "ends_with_string" => Affix::Suffix,
            _ => return None,
        };
        let (Node::Const(Owned::Str(constant)), Actual::Fixed(cost)) = (&call.right, call.actual) else {
            return None;
        };
        let (text, text_cost) = self.text(&call.left)?;
        let constant = Arc::clone(constant);
        let question = Question::Has {
            text,
            affix,
            constant,
        };
        Some((question, text_cost + u32::try_from(cost).ok()?))
    }

    /// A text that is at hand, and what it costs to get it, save for the search.
    fn text(&mut self, node: &Node) -> Option<(Text, u32)> {
        match node {
            Node::Access(access) => {
                let (slot, cost) = self.field(access)?;
                Some((Text::Field(slot), cost))
            }
            Node::Call(call) => {
                let (search, cost) = self.search(call, "find")?;
                Some((Text::Found(search), cost))
            }
            _ => None,
        }
    }

    /// A call of a function that searches a field for a constant.
    fn search(&mut self, call: &Call, function: &str) -> Option<(Search, u32)> {
        let ([Node::Access(access), _], Actual::SearchFor(searched)) = (&*call.args, call.actual) else {
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
        let (slot, cost) = self.field(access)?;
        let search = Search {
            slot,
            note: self.note(slot, &pattern),
            pattern,
            searched,
        };
        Some((search, cost))
    }

    /// Where it is noted what a search finds, if its text stays the same for all predicates.
    fn note(&mut self, slot: Slot, pattern: &Pattern) -> Option<u8> {
        if !self.layout.is_front(slot) {
            return None;
        }
        let is_same = |noted: &(Slot, Pattern)| noted.0 == slot && noted.1 == *pattern;
        let known = self.noted.iter().position(is_same);
        let note = known.or_else(|| {
            (self.noted.len() < MOST_NOTES).then(|| {
                self.noted.push((slot, pattern.clone()));
                self.noted.len() - 1
            })
        });
        u8::try_from(note?).ok()
    }

    /// The field that a text is, and what it costs to get it. One that may also be an integer is left to the plain walk:
    /// no error comes of comparing it with the other type.
    fn field(&mut self, access: &Access) -> Option<(Slot, u32)> {
        let place = self.value(access)?;
        matches!(place.shape.kind, Kind::String).then_some(())?;
        Some((place.slot, steps(access)? + 1))
    }

    /// A number that is at hand, and what it costs to get it.
    fn number(&mut self, node: &Node) -> Option<(Number, u32)> {
        match node {
            Node::Const(Owned::Int(i)) => Some((Number::Constant(*i), 0)),
            Node::Access(access) => {
                let place = self.value(access)?;
                matches!(place.shape.kind, Kind::Int).then_some(())?;
                Some((Number::Integer(place.slot), steps(access)? + 1))
            }
            Node::Unary(call) if call.operation == Operation::Size => {
                let (Node::Access(access), Actual::Fixed(cost)) = (&call.arg, call.actual) else {
                    return None;
                };
                let place = self.value(access)?;
                let size = match place.shape.kind {
                    Kind::String => Number::SizeOfText(place.slot),
                    Kind::List { .. } => Number::SizeOfList(place.slot),
                    Kind::Object { .. } | Kind::Map { .. } => Number::SizeOfObject(place.slot),
                    _ => return None,
                };
                Some((size, steps(access)? + 1 + u32::try_from(cost).ok()?))
            }
            _ => None,
        }
    }

    /// What a fold is about, if it is `all` or `exists` of a list that is at hand.
    fn range<'p>(&mut self, fold: &'p Fold) -> Option<Range<'p>> {
        let (predicate, decisive, asking) = match &fold.step {
            FoldStep::All { predicate } => (predicate, false, ALL_ASKS),
            FoldStep::Exists { predicate } => (predicate, true, EXISTS_ASKS),
            _ => return None,
        };
        let (Node::Access(range), None) = (&fold.range, fold.second) else {
            return None;
        };
        let gives_accumulator = |access: &Access| {
            matches!(access.root, Root::Local(n) if n == fold.accumulator)
                && access.path.is_empty()
                && access.mode == Mode::Value
        };
        if !matches!(&fold.result, Node::Access(access) if gives_accumulator(access)) {
            return None;
        }
        let list = self.value(range)?;
        let Kind::List { element, .. } = &list.shape.kind else {
            return None;
        };
        Some(Range {
            element: Arc::clone(element),
            list,
            predicate,
            decisive,
            asking,
            // The result is read once more.
            cost: steps(range)? + 2,
        })
    }

    fn quantifier(&mut self, fold: &Fold, way: &Way) -> Option<(Question, u32)> {
        let range = self.range(fold)?;
        let element = Variable {
            slot: self.layout.take(End::Back)?,
            object: self.layout.object()?,
            shape: Arc::clone(&range.element),
            end: End::Back,
        };
        let quantifier = Quantifier {
            list: range.list.slot,
            element: element.slot,
            object: element.object,
            shape: Arc::clone(&range.element),
            entry: self.each((fold.first, element), range.predicate, way, Edge::YES),
            decisive: range.decisive,
            asking: range.asking,
            predicates: 1,
        };
        Some((Question::Each(Box::new(quantifier)), range.cost))
    }

    /// Where the next step asks all elements of a list that a fold asks, too, it may ask for both: then each element is
    /// looked at once. (If one does not fit, it does not matter which of them it was, nor what that costs.)
    fn join(&mut self, fold: &Fold, next: Edge) -> Option<Edge> {
        let range = self.range(fold).filter(|range| !range.decisive)?;
        let step = self.branches.step(next).filter(|step| step.no.is_no())?;
        let Question::Each(quantifier) = &step.question else {
            return None;
        };
        if quantifier.list != range.list.slot || quantifier.decisive {
            return None;
        }
        let element = Variable {
            slot: quantifier.element,
            object: quantifier.object,
            shape: Arc::clone(&quantifier.shape),
            end: End::Back,
        };
        let rest = quantifier.entry;
        let entry = self.each((fold.first, element), range.predicate, &Way::default(), rest);
        let step = self.branches.step_mut(next)?;
        step.yes = step.yes.costing(range.cost);
        if let Question::Each(quantifier) = &mut step.question {
            quantifier.entry = entry;
            quantifier.asking += range.asking;
            quantifier.predicates += 1;
        }
        Some(next)
    }

    /// What the predicate of a fold asks of each element, before it goes on.
    fn each(&mut self, element: (usize, Variable), predicate: &Node, way: &Way, next: Edge) -> Edge {
        self.locals.push(element);
        let entry = self.branch(predicate, way.then(0), next, Edge::NO);
        self.locals.pop();
        entry
    }

    fn value(&mut self, access: &Access) -> Option<Place> {
        (access.mode == Mode::Value).then_some(())?;
        self.place(access)
    }

    /// Where an access leads that follows declared fields from a variable on.
    fn place(&mut self, access: &Access) -> Option<Place> {
        let variable = match &access.root {
            Root::Input(0) => &self.subject,
            Root::Local(local) => &self.locals.iter().find(|(number, _)| number == local)?.1,
            Root::Input(_) | Root::Value(_) => return None,
        };
        let (mut object, end) = (variable.object, variable.end);
        let mut place = Place {
            slot: variable.slot,
            within: variable.slot,
            shape: Arc::clone(&variable.shape),
        };
        for (i, qualifier) in access.path.iter().enumerate() {
            let (Key::Name(name), false) = (&qualifier.key, qualifier.optional) else {
                return None;
            };
            let field = name.field.as_ref()?;
            if !Arc::ptr_eq(&field.within, &place.shape) {
                return None;
            }
            if i > 0 {
                object = self.layout.below(object, place.slot)?;
            }
            place = Place {
                slot: self.layout.field(object, &field.json, end)?,
                within: place.slot,
                shape: Arc::clone(&field.shape),
            };
        }
        Some(place)
    }
}

/// The terms of an alternative, in order, if all of them compare a field with a text.
fn equalities<'p>(node: &'p Node, terms: &mut Vec<(&'p Access, &'p Arc<str>)>) -> Option<()> {
    match node {
        Node::Or(both) => both.iter().try_for_each(|term| equalities(term, terms)),
        Node::Equality(equality) => match &**equality {
            Equality {
                left: Node::Access(access),
                right: Node::Const(Owned::Str(constant)),
                negated: false,
            } => {
                terms.push((access, constant));
                Some(())
            }
            _ => None,
        },
        _ => None,
    }
}

/// The number of selections that an access makes.
fn steps(access: &Access) -> Option<u32> {
    u32::try_from(access.path.len()).ok()
}
