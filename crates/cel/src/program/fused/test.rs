//! Questions whose answer is yes or no, and what comes next.

use super::SlotIndex;
use super::fields::{JsonTypes, ObjectIndex};
use crate::estimate::text_cost;
use crate::program::constant_set::ConstantSet;
use crate::program::op::{FoldStep, Op, Relation};
use crate::run::RegexCost;
use crate::shape::Shape;
use crate::val::text_size;
use scantling_notation::regex::Pattern;
use scantling_value::same_text;
use std::sync::Arc;

/// What is asked, and what comes next.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) test: Test,
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

/// All that fused add_test.
#[derive(Debug, Default)]
pub(super) struct BranchTable(Vec<Branch>);

impl BranchTable {
    /// The step that an edge leads to; `None` if it leads to an answer.
    #[inline]
    pub(super) fn step(&self, edge: Edge) -> Option<&Branch> {
        self.0.get(usize::try_from(edge.to).ok()?)
    }

    pub(super) fn step_mut(&mut self, edge: Edge) -> Option<&mut Branch> {
        self.0.get_mut(usize::try_from(edge.to).ok()?)
    }

    /// Adds a step, and returns the path to it.
    pub(super) fn add(&mut self, step: Branch) -> Edge {
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

/// A test whose answer is yes or no.
#[derive(Debug)]
pub(super) enum Test {
    /// Whether a field is there.
    Present {
        within: SlotIndex,
        field: SlotIndex,
        types: JsonTypes,
    },
    /// Whether a text is this one.
    Same {
        text: TextSource,
        constant: TextConstant,
    },
    /// Whether a text is one of these, asked one after the fallback.
    EqualsAny(SlotIndex, Box<EqualsAny>),
    /// Whether a text is one of these.
    OneOf { text: TextSource, set: Arc<ConstantSet> },
    /// Whether a text begins or ends so.
    Has {
        text: TextSource,
        affix: Affix,
        constant: Arc<str>,
    },
    /// Whether a text matches.
    Matches(RegexSearch),
    /// How two numbers compare.
    Numbers {
        left: NumberSource,
        right: NumberSource,
        relation: Relation,
    },
    /// Whether it is `true`.
    Truth(SlotIndex),
    /// `all` or `exists`.
    Each(Box<Quantifier>),
    /// Anything else: the fast_path walk knows.
    Fallback(Box<Fallback>),
}

/// A text that is at hand.
#[derive(Clone, Debug)]
pub(super) enum TextSource {
    FieldLayout(SlotIndex),
    /// What is found in one; empty where nothing is.
    Found(RegexSearch),
}

/// A text to compare with.
#[derive(Clone, Debug)]
pub(super) struct TextConstant {
    pub(super) text: Arc<str>,
    /// What a pass over it costs.
    pub(super) pass: u64,
}

impl TextConstant {
    pub(super) fn new(text: &Arc<str>) -> Self {
        TextConstant {
            text: Arc::clone(text),
            pass: text_cost(text_size(text)),
        }
    }
}

/// Texts that are compared with another one after the fallback, until one is the same: `x == 'a' || x == 'b'`
#[derive(Debug)]
pub(super) struct EqualsAny {
    constants: Box<[TextConstant]>,
    /// What it costs to get the text that is compared, each time.
    attribute: u64,
}

impl EqualsAny {
    pub(super) fn new(constants: Vec<TextConstant>, attribute: u32) -> Self {
        EqualsAny {
            constants: constants.into(),
            attribute: u64::from(attribute),
        }
    }

    /// Whether a text is one of them, and what it costs to find out. A pass over the text costs so much.
    #[inline]
    pub(super) fn contains(&self, text: &str, pass: u64) -> (bool, u64) {
        let mut cost = 0;
        for constant in &self.constants {
            cost += self.attribute + constant.pass.min(pass);
            if same_text(&constant.text, text) {
                return (true, cost);
            }
        }
        (false, cost)
    }
}

/// A search of a text for a regular expression.
#[derive(Clone, Debug)]
pub(super) struct RegexSearch {
    pub(super) slot: SlotIndex,
    pub(super) pattern: Pattern,
    pub(super) searched: RegexCost,
    /// Where it is noted what was found.
    pub(super) cache_slot: Option<u8>,
}

/// Which end of a text is asked about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Affix {
    Prefix,
    Suffix,
}

/// A number that is at hand.
#[derive(Clone, Copy, Debug)]
pub(super) enum NumberSource {
    TextConstant(i64),
    Integer(SlotIndex),
    SizeOfText(SlotIndex),
    SizeOfList(SlotIndex),
    SizeOfObject(SlotIndex),
}

/// `all` or `exists` of a list; or several `all` of the same list, which must all hold.
#[derive(Debug)]
pub(super) struct Quantifier {
    pub(super) list: SlotIndex,
    pub(super) element: SlotIndex,
    /// What is read of an element, if it is an object.
    pub(super) object: ObjectIndex,
    /// The shape of an element.
    pub(super) shape: Arc<Shape>,
    /// What is asked of each element.
    pub(super) entry: Edge,
    /// The answer that ends it.
    pub(super) decisive: bool,
    /// What it costs to add_test whether to go on.
    pub(super) fused_run: u64,
    /// How many fused are asked of each element.
    pub(super) fused: u64,
}

/// A test for the fast_path walk.
#[derive(Debug)]
pub(super) struct Fallback {
    /// The index of the program.
    pub(super) program: usize,
    pub(super) path: OpPath,
    /// The variables of folds around it, and what they hold.
    pub(super) locals: Box<[(usize, SlotIndex, Arc<Shape>)]>,
}

/// The path to a step of a program, from its root on.
#[derive(Debug, Default)]
pub(super) struct OpPath(Box<[u8]>);

impl OpPath {
    #[inline]
    pub(super) fn from<'p>(&self, root: &'p Op) -> Option<&'p Op> {
        self.0.iter().try_fold(root, |op, turn| op.part(*turn))
    }

    pub(super) fn then(&self, turn: u8) -> OpPath {
        OpPath(self.0.iter().copied().chain([turn]).collect())
    }
}

impl Op {
    /// The parts of the steps that are taken apart here.
    #[inline]
    fn part(&self, turn: u8) -> Option<&Op> {
        match self {
            Op::And(terms) | Op::Or(terms) => terms.get(usize::from(turn)),
            Op::Unary(call) => Some(&call.arg),
            Op::Equality(equality) if turn == 0 => Some(&equality.left),
            Op::Equality(equality) => Some(&equality.right),
            Op::Conditional(conditional) => Some(match turn {
                0 => &conditional.condition,
                1 => &conditional.if_true,
                _ => &conditional.if_false,
            }),
            Op::Fold(fold) => match &fold.step {
                FoldStep::All { predicate } | FoldStep::Exists { predicate } => Some(predicate),
                _ => None,
            },
            _ => None,
        }
    }
}
