//! The tree that a program walks.

use super::constant_set::ConstantSet;
use crate::message::Message;
use crate::overload::Overload;
use crate::run::Actual;
use crate::shape::Shape;
use crate::val::{Arena, EvalError, Owned, Res, Val};
use scantling_notation::regex::Pattern;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// A step. Its tag stands on its own, not in a corner of some value: it is read more often than anything else.
#[derive(Debug)]
#[repr(u8)]
pub(super) enum Op {
    /// A value that is known already.
    Const(Owned),
    /// A variable, or what is selected from one or from another value.
    Attribute(Box<Attribute>),
    /// `c ? a : b`, and what is selected from that.
    Conditional(Box<Conditional>),
    /// `a && b`
    And(Box<[Op; 2]>),
    /// `a || b`
    Or(Box<[Op; 2]>),
    /// Anything but `false` is `true`.
    NotStrictlyFalse(Box<Op>),
    /// `a == b` or `a != b`
    Equality(Box<Equality>),
    /// A call on one argument.
    Unary(Box<Unary>),
    /// A call on two arguments.
    Binary(Box<Binary>),
    /// `a < b` and its kin
    Comparison(Box<Comparison>),
    /// `a + b` of texts
    Concat(Box<Binary>),
    /// Any other call.
    Call(Box<CallOp>),
    /// `x in [constants]`
    InSet(Box<InSet>),
    /// `[a, ?b]`
    List(Box<[ElementOp]>),
    /// `{k: v, ?k: v}`
    Map(Box<[(Op, ElementOp)]>),
    /// `Type{f: v, ?f: v}`
    Message(Box<MessageLiteral>),
    /// A comprehension.
    Fold(Box<FoldOp>),
    /// `a.or(b)` or `a.orValue(b)` of an optional
    OptionalOr(Box<OptionalOr>),
    /// Values that are computed when they are first used, and what is made of them.
    Block(Box<BlockOp>),
    /// A name or a call that means nothing.
    Unresolved(EvalError),
}

impl Op {
    /// Whether the value can only be a boolean.
    pub(super) fn is_test(&self) -> bool {
        match self {
            Op::And(_)
            | Op::Or(_)
            | Op::NotStrictlyFalse(_)
            | Op::Equality(_)
            | Op::Comparison(_)
            | Op::InSet(_) => true,
            Op::Attribute(attribute) => attribute.mode == AttributeMode::Presence,
            Op::Unary(call) => call.kind == UnaryKind::Not,
            _ => false,
        }
    }
}

/// A variable or value, and what is selected from it.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) root: AttributeRoot,
    pub(super) path: Vec<Qualifier>,
    pub(super) mode: AttributeMode,
}

/// Where an attribute starts.
#[derive(Debug)]
pub(super) enum AttributeRoot {
    Input(usize),
    Local(usize),
    Value(Op),
}

/// What an attribute asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttributeMode {
    /// The value.
    Value,
    /// Whether it is there.
    Presence,
}

/// One selection.
#[derive(Debug)]
pub(super) struct Qualifier {
    pub(super) key: QualifierKey,
    /// Whether it may fail to find anything (`a.?b`, `a[?b]`).
    pub(super) optional: bool,
}

/// What a selection goes by.
#[derive(Debug)]
pub(super) enum QualifierKey {
    /// A name: a field or a key of a map.
    Name(Name),
    /// Any other constant.
    Const(Owned),
    /// A value known only at run time.
    Computed(Op),
}

/// A name to select by.
#[derive(Debug)]
pub(super) struct Name {
    /// As it stands in the expression.
    pub(super) name: Arc<str>,
    /// The field, where the checker knows the object's shape.
    pub(super) field: Option<KnownField>,
    /// Where it was found last: objects of one kind tend to have the same members.
    pub(super) hint: AtomicUsize,
}

/// A field of an object whose shape is known.
#[derive(Debug)]
pub(super) struct KnownField {
    /// The shape of the object.
    pub(super) within: Arc<Shape>,
    /// The field's name in JSON.
    pub(super) json: Box<str>,
    /// The shape of what it holds.
    pub(super) shape: Arc<Shape>,
}

/// `c ? a : b`, and what is selected from that.
#[derive(Debug)]
pub(super) struct Conditional {
    pub(super) condition: Op,
    pub(super) if_true: Op,
    pub(super) if_false: Op,
    pub(super) path: Vec<Qualifier>,
    pub(super) mode: AttributeMode,
}

/// `a.or(b)` or `a.orValue(b)` of an optional: `b` is evaluated only if `a` is empty.
#[derive(Debug)]
pub(super) struct OptionalOr {
    pub(super) optional: Op,
    pub(super) otherwise: Op,
    /// Whether `b` is an optional itself, or a value.
    pub(super) result_kind: OrResult,
}

/// What an optional_or result_kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrResult {
    Optional,
    Value,
}

#[derive(Debug)]
pub(super) struct Equality {
    pub(super) left: Op,
    pub(super) right: Op,
    pub(super) negated: bool,
}

/// A call on one argument.
#[derive(Debug)]
pub(super) struct Unary {
    pub(super) kind: UnaryKind,
    pub(super) run: for<'a> fn(&'a Arena, Val<'a>) -> Res<'a>,
    pub(super) arg: Op,
    pub(super) actual: Actual,
    pub(super) overload: &'static Overload,
}

/// What a call on one argument does, where that is known without calling it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnaryKind {
    /// `!a`
    Not,
    /// `size(a)`
    Size,
    /// Anything else.
    Other,
}

impl UnaryKind {
    pub(super) fn from_function(function: &str) -> UnaryKind {
        match function {
            "!_" => UnaryKind::Not,
            "size" => UnaryKind::Size,
            _ => UnaryKind::Other,
        }
    }
}

/// A call on two arguments.
#[derive(Debug)]
pub(super) struct Binary {
    /// What it does with integers, where it is decided that they are.
    pub(super) arithmetic: Option<Arithmetic>,
    pub(super) run: for<'a> fn(&'a Arena, Val<'a>, Val<'a>) -> Res<'a>,
    pub(super) left: Op,
    pub(super) right: Op,
    pub(super) actual: Actual,
    pub(super) overload: &'static Overload,
}

/// `+`, `-` or `*` of integers
#[derive(Clone, Copy, Debug)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
}

impl Arithmetic {
    pub(super) fn from_overload(overload: &str) -> Option<Arithmetic> {
        match overload {
            "add_int64" => Some(Arithmetic::Add),
            "subtract_int64" => Some(Arithmetic::Subtract),
            "multiply_int64" => Some(Arithmetic::Multiply),
            _ => None,
        }
    }

    /// `None` where the result is no integer of 64 bits.
    #[inline]
    pub(super) fn result(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Arithmetic::Add => a.checked_add(b),
            Arithmetic::Subtract => a.checked_sub(b),
            Arithmetic::Multiply => a.checked_mul(b),
        }
    }
}

/// A call of an operator that asks for an order.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) relation: Relation,
    pub(super) call: Binary,
}

/// `<`, `<=`, `>`, `>=` or, where that is asked of integers alone, `==`
#[derive(Clone, Copy, Debug)]
pub(super) enum Relation {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Relation {
    pub(super) fn from_function(function: &str) -> Option<Relation> {
        match function {
            "_<_" => Some(Relation::Less),
            "_<=_" => Some(Relation::LessOrEqual),
            "_>_" => Some(Relation::Greater),
            "_>=_" => Some(Relation::GreaterOrEqual),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn holds(self, a: i64, b: i64) -> bool {
        match self {
            Relation::Equal => a == b,
            Relation::Less => a < b,
            Relation::LessOrEqual => a <= b,
            Relation::Greater => a > b,
            Relation::GreaterOrEqual => a >= b,
        }
    }
}

/// A call on any number of arguments.
#[derive(Debug)]
pub(super) struct CallOp {
    /// What may be called; the first that fits the arguments is.
    pub(super) candidates: Box<[&'static Overload]>,
    pub(super) order: ArgEvaluation,
    pub(super) args: Box<[Op]>,
    pub(super) actual: Actual,
    /// The regular expression, where it is a constant.
    pub(super) pattern: Option<Pattern>,
}

/// Which arguments of a call are evaluated where one is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgEvaluation {
    /// All of them.
    All,
    /// Those up to the error. Unless it is the last one, the call then costs nothing.
    UntilError,
}

/// `x in [constants]`
#[derive(Debug)]
pub(super) struct InSet {
    pub(super) value: Op,
    pub(super) set: Arc<ConstantSet>,
}

/// An element of a list literal, or a value of a map literal.
#[derive(Debug)]
pub(super) struct ElementOp {
    pub(super) op: Op,
    pub(super) optional: bool,
}

/// `Type{f: v, ?f: v}`
#[derive(Debug)]
pub(super) struct MessageLiteral {
    pub(super) name: Arc<str>,
    /// The type of that name; `None` where it has no values.
    pub(super) message: Option<&'static Message>,
    pub(super) fields: Box<[(Arc<str>, ElementOp)]>,
}

/// A comprehension.
#[derive(Debug)]
pub(super) struct FoldOp {
    pub(super) range: Op,
    /// The slot of the element, key or index.
    pub(super) first: usize,
    /// The slot of the value, with two variables.
    pub(super) second: Option<usize>,
    pub(super) accumulator: usize,
    pub(super) init: Op,
    pub(super) step: FoldStep,
    pub(super) result: Op,
}

/// What a fold does with each element.
#[derive(Debug)]
pub(super) enum FoldStep {
    /// Goes on while the condition holds, and replaces the accumulator.
    Replace { condition: Op, step: Op },
    /// `all`: keeps on as long as the accumulator is not false.
    All { predicate: Op },
    /// `exists`: keeps on as long as the accumulator is not true.
    Exists { predicate: Op },
    /// `map`, `filter`: adds to a list.
    Append { filter: Option<Op>, element: Op },
    /// `transformMap`, `transformMapEntry`: adds to a map, by a call that is in the table of a library.
    Insert { filter: Option<Op>, entry: Insertion },
}

/// What is added to a map.
#[derive(Debug)]
pub(super) enum Insertion {
    Entry { key: Op, value: Op },
    Map(Op),
}

/// Values that are computed when they are first used, and what is made of them.
#[derive(Debug)]
pub(super) struct BlockOp {
    pub(super) first: usize,
    pub(super) values: Box<[Op]>,
    pub(super) result: Op,
}
