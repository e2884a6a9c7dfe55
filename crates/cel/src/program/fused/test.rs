//! The tests of the decision graph and the edges between them.

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

/// A test and the edges behind it.
#[derive(Debug)]
pub(super) struct Branch {
    pub(super) test: FusedTest,
    pub(super) yes: Edge,
    pub(super) no: Edge,
}

/// The next branch or a result, and the cost of the operators in between.
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

    /// Returns whether the edge ends in failure.
    pub(super) fn is_no(self) -> bool {
        self.to == Self::NO.to
    }

    /// Returns whether the edge ends in success.
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

/// The decision graph.
#[derive(Debug, Default)]
pub(super) struct BranchTable(Vec<Branch>);

impl BranchTable {
    /// The branch that an edge leads to; `None` if it leads to a result.
    #[inline]
    pub(super) fn step(&self, edge: Edge) -> Option<&Branch> {
        self.0.get(usize::try_from(edge.to).ok()?)
    }

    pub(super) fn step_mut(&mut self, edge: Edge) -> Option<&mut Branch> {
        self.0.get_mut(usize::try_from(edge.to).ok()?)
    }

    /// Adds a branch and returns the edge to it.
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

/// A boolean test.
#[derive(Debug)]
pub(super) enum FusedTest {
    /// `has(a.b)`
    Present {
        within: SlotIndex,
        field: SlotIndex,
        types: JsonTypes,
    },
    /// `a == 'x'`
    Same {
        text: TextSource,
        constant: TextConstant,
    },
    /// `a == 'x' || a == 'y'`
    EqualsAny(SlotIndex, Box<EqualsAny>),
    /// `a in ['x', 'y']`
    OneOf { text: TextSource, set: Arc<ConstantSet> },
    /// `a.startsWith('x')` or `a.endsWith('x')`
    Has {
        text: TextSource,
        affix: Affix,
        constant: Arc<str>,
    },
    /// `a.matches('x')`
    Matches(RegexSearch),
    /// A comparison of integers.
    Numbers {
        left: NumberSource,
        right: NumberSource,
        relation: Relation,
    },
    /// A boolean field.
    Truth(SlotIndex),
    /// `all` or `exists`.
    Each(Box<Quantifier>),
    /// An op that the interpreter evaluates.
    Fallback(Box<Fallback>),
}

/// The source of a string.
#[derive(Clone, Debug)]
pub(super) enum TextSource {
    Field(SlotIndex),
    /// `a.find('x')`, which is empty without a match.
    Found(RegexSearch),
}

/// A string constant.
#[derive(Clone, Debug)]
pub(super) struct TextConstant {
    pub(super) text: Arc<str>,
    /// The cost of a pass over it.
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

/// String constants that are compared in order up to the first equal one: `x == 'a' || x == 'b'`.
#[derive(Debug)]
pub(super) struct EqualsAny {
    constants: Box<[TextConstant]>,
    /// The cost of the attribute, which every comparison evaluates again.
    attribute: u64,
}

impl EqualsAny {
    pub(super) fn new(constants: Vec<TextConstant>, attribute: u32) -> Self {
        EqualsAny {
            constants: constants.into(),
            attribute: u64::from(attribute),
        }
    }

    /// Returns whether a string equals one of the constants, and the cost. `pass` is the cost of a pass over the string.
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

/// A search for a regular expression.
#[derive(Clone, Debug)]
pub(super) struct RegexSearch {
    pub(super) slot: SlotIndex,
    pub(super) pattern: Pattern,
    pub(super) searched: RegexCost,
    /// The index in the cache of results.
    pub(super) cache_slot: Option<u8>,
}

/// The end of a string.
#[derive(Clone, Copy, Debug)]
pub(super) enum Affix {
    Prefix,
    Suffix,
}

/// The source of an integer.
#[derive(Clone, Copy, Debug)]
pub(super) enum NumberSource {
    Constant(i64),
    Integer(SlotIndex),
    SizeOfText(SlotIndex),
    SizeOfList(SlotIndex),
    SizeOfObject(SlotIndex),
}

/// `all` or `exists` over a list, or several `all` over the same list.
#[derive(Debug)]
pub(super) struct Quantifier {
    pub(super) list: SlotIndex,
    pub(super) element: SlotIndex,
    /// The fields that are read of an element, if it is an object.
    pub(super) object: ObjectIndex,
    /// The shape of the elements.
    pub(super) shape: Arc<Shape>,
    /// The edge into the predicate.
    pub(super) entry: Edge,
    /// The result of the predicate that ends the loop.
    pub(super) decisive: bool,
    /// The cost of the loop condition.
    pub(super) condition_cost: u64,
    /// The number of merged predicates.
    pub(super) fused: u64,
}

/// An op that the interpreter evaluates.
#[derive(Debug)]
pub(super) struct Fallback {
    /// The index of the program.
    pub(super) program: usize,
    pub(super) path: OpPath,
    /// The variables of the enclosing comprehensions: index, slot and shape.
    pub(super) locals: Box<[(usize, SlotIndex, Arc<Shape>)]>,
}

/// The path from the root of a program to an op.
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
    /// The operand with an index, for ops that the graph decomposes.
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
