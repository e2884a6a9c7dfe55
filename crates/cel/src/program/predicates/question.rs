//! Questions whose answer is yes or no, and what comes next.

use super::Slot;
use super::fields::{Object, Types};
use crate::data::regex::Pattern;
use crate::estimate::text_cost;
use crate::program::node::{Node, Relation, Step as FoldStep};
use crate::program::set::Set;
use crate::run::Searched;
use crate::shape::Shape;
use crate::val::text_size;
use scantling_value::same_text;
use std::sync::Arc;

/// What is asked, and what comes next.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) question: Question,
    pub(super) yes: Edge,
    pub(super) no: Edge,
}

/// Where it goes on, and what is to be paid for getting there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    to: u32,
    pub(super) cost: u32,
}

impl Edge {
    pub(super) const YES: Edge = Edge {
        to: u32::MAX,
        cost: 0,
    };
    pub(super) const NO: Edge = Edge {
        to: u32::MAX - 1,
        cost: 0,
    };

    /// Whether it leads to the answer no.
    pub(super) fn is_no(self) -> bool {
        self.to == Self::NO.to
    }

    /// Whether it leads to the answer yes, if it leads to an answer.
    #[inline]
    pub(super) fn is_yes(self) -> bool {
        self.to == Self::YES.to
    }

    pub(super) fn costing(self, more: u32) -> Edge {
        Edge {
            cost: self.cost.saturating_add(more),
            ..self
        }
    }
}

/// All that predicates ask.
#[derive(Debug, Default)]
pub(super) struct Branches(Vec<Step>);

impl Branches {
    /// The step that an edge leads to; `None` if it leads to an answer.
    #[inline]
    pub(super) fn step(&self, edge: Edge) -> Option<&Step> {
        self.0.get(usize::try_from(edge.to).ok()?)
    }

    pub(super) fn step_mut(&mut self, edge: Edge) -> Option<&mut Step> {
        self.0.get_mut(usize::try_from(edge.to).ok()?)
    }

    /// Adds a step, and returns the way to it.
    pub(super) fn add(&mut self, step: Step) -> Edge {
        let edge = Edge {
            to: u32::try_from(self.0.len()).unwrap_or(Edge::NO.to),
            cost: 0,
        };
        self.0.push(step);
        edge
    }

    pub(super) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }
}

/// A question whose answer is yes or no.
#[derive(Debug)]
pub(super) enum Question {
    /// Whether a field is there.
    Present { within: Slot, field: Slot, types: Types },
    /// Whether a text is this one.
    Same { text: Text, constant: Constant },
    /// Whether a text is one of these, asked one after the other.
    Listed(Slot, Box<Listed>),
    /// Whether a text is one of these.
    OneOf { text: Text, set: Arc<Set> },
    /// Whether a text begins or ends so.
    Has {
        text: Text,
        affix: Affix,
        constant: Arc<str>,
    },
    /// Whether a text matches.
    Matches(Search),
    /// How two numbers compare.
    Numbers {
        left: Number,
        right: Number,
        relation: Relation,
    },
    /// Whether it is `true`.
    Truth(Slot),
    /// `all` or `exists`.
    Each(Box<Quantifier>),
    /// Anything else: the plain walk knows.
    Other(Box<Other>),
}

/// A text that is at hand.
#[derive(Clone, Debug)]
pub(super) enum Text {
    Field(Slot),
    /// What is found in one; empty where nothing is.
    Found(Search),
}

/// A text to compare with.
#[derive(Clone, Debug)]
pub(super) struct Constant {
    pub(super) text: Arc<str>,
    /// What a pass over it costs.
    pub(super) pass: u64,
}

impl Constant {
    pub(super) fn new(text: &Arc<str>) -> Self {
        Constant {
            text: Arc::clone(text),
            pass: text_cost(text_size(text)),
        }
    }
}

/// Texts that are compared with another one after the other, until one is the same: `x == 'a' || x == 'b'`
#[derive(Debug)]
pub(super) struct Listed {
    constants: Box<[Constant]>,
    /// What it costs to get the text that is compared, each time.
    access: u64,
}

impl Listed {
    pub(super) fn new(constants: Vec<Constant>, access: u32) -> Self {
        Listed {
            constants: constants.into(),
            access: u64::from(access),
        }
    }

    /// Whether a text is one of them, and what it costs to find out. A pass over the text costs so much.
    #[inline]
    pub(super) fn contains(&self, text: &str, pass: u64) -> (bool, u64) {
        let mut cost = 0;
        for constant in &self.constants {
            cost += self.access + constant.pass.min(pass);
            if same_text(&constant.text, text) {
                return (true, cost);
            }
        }
        (false, cost)
    }
}

/// A search of a text for a regular expression.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pub(super) slot: Slot,
    pub(super) pattern: Pattern,
    pub(super) searched: Searched,
    /// Where it is noted what was found.
    pub(super) note: Option<u8>,
}

/// Which end of a text is asked about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Affix {
    Prefix,
    Suffix,
}

/// A number that is at hand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Constant(i64),
    Integer(Slot),
    SizeOfText(Slot),
    SizeOfList(Slot),
    SizeOfObject(Slot),
}

/// `all` or `exists` of a list; or several `all` of the same list, which must all hold.
#[derive(Debug)]
pub(super) struct Quantifier {
    pub(super) list: Slot,
    pub(super) element: Slot,
    /// What is read of an element, if it is an object.
    pub(super) object: Object,
    /// The shape of an element.
    pub(super) shape: Arc<Shape>,
    /// What is asked of each element.
    pub(super) entry: Edge,
    /// The answer that ends it.
    pub(super) decisive: bool,
    /// What it costs to ask whether to go on.
    pub(super) asking: u64,
    /// How many predicates are asked of each element.
    pub(super) predicates: u64,
}

/// A question for the plain walk.
#[derive(Debug)]
pub(super) struct Other {
    /// The index of the program.
    pub(super) program: usize,
    pub(super) way: Way,
    /// The variables of folds around it, and what they hold.
    pub(super) locals: Box<[(usize, Slot, Arc<Shape>)]>,
}

/// The way to a step of a program, from its root on.
#[derive(Debug, Default)]
pub(super) struct Way(Box<[u8]>);

impl Way {
    #[inline]
    pub(super) fn from<'p>(&self, root: &'p Node) -> Option<&'p Node> {
        self.0.iter().try_fold(root, |node, turn| node.part(*turn))
    }

    pub(super) fn then(&self, turn: u8) -> Way {
        Way(self.0.iter().copied().chain([turn]).collect())
    }
}

impl Node {
    /// The parts of the steps that are taken apart here.
    #[inline]
    fn part(&self, turn: u8) -> Option<&Node> {
        match self {
            Node::And(terms) | Node::Or(terms) => terms.get(usize::from(turn)),
            Node::Unary(call) => Some(&call.arg),
            Node::Equality(equality) if turn == 0 => Some(&equality.left),
            Node::Equality(equality) => Some(&equality.right),
            Node::Choice(choice) => Some(match turn {
                0 => &choice.condition,
                1 => &choice.yes,
                _ => &choice.no,
            }),
            Node::Fold(fold) => match &fold.step {
                FoldStep::All { predicate } | FoldStep::Exists { predicate } => Some(predicate),
                _ => None,
            },
            _ => None,
        }
    }
}
