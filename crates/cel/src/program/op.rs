//! The tree of operations that the interpreter evaluates.

use super::constant_set::ConstantSet;
use crate::message::Message;
use crate::overload::Overload;
use crate::run::Actual;
use crate::shape::Shape;
use crate::val::{Arena, EvalError, Owned, Res, Val};
use scantling_notation::regex::Pattern;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// An operation. `repr(u8)` keeps the tag in a byte of its own instead of a niche, because dispatch reads it all the
/// time.
#[derive(Debug)]
#[repr(u8)]
pub(super) enum Op {
    /// A constant.
    Const(Owned),
    /// A variable or value with qualifiers.
    Attribute(Box<Attribute>),
    /// `c ? a : b` with qualifiers.
    Conditional(Box<Conditional>),
    /// `a && b`
    And(Box<[Op; 2]>),
    /// `a || b`
    Or(Box<[Op; 2]>),
    /// `@not_strictly_false(a)`
    NotStrictlyFalse(Box<Op>),
    /// `a == b` or `a != b`
    Equality(Box<Equality>),
    /// A call with one argument.
    Unary(Box<Unary>),
    /// A call with two arguments.
    Binary(Box<Binary>),
    /// `a < b`, `a <= b`, `a > b`, `a >= b`
    Comparison(Box<Comparison>),
    /// `a + b` of strings
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
    /// `cel.@block([values], result)`
    Block(Box<BlockOp>),
    /// A name or call that the checker could not resolve.
    Unresolved(EvalError),
}

/// A variable or value with qualifiers.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) root: AttributeRoot,
    pub(super) path: Vec<Qualifier>,
    pub(super) mode: AttributeMode,
}

/// The start of an attribute.
#[derive(Debug)]
pub(super) enum AttributeRoot {
    Input(usize),
    Local(usize),
    Value(Op),
}

/// The result of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttributeMode {
    /// The value.
    Value,
    /// The presence of the value: `has(a.b)`.
    Presence,
}

/// One selection: `.b` or `[b]`.
#[derive(Debug)]
pub(super) struct Qualifier {
    pub(super) key: QualifierKey,
    /// True if the result is optional (`a.?b`, `a[?b]`).
    pub(super) optional: bool,
}

/// The key of a qualifier.
#[derive(Debug)]
pub(super) enum QualifierKey {
    /// The name of a field or the key of a map.
    Name(Name),
    /// Any other constant.
    Const(Owned),
    /// A value known only at run time.
    Computed(Op),
}

/// A name as a key.
#[derive(Debug)]
pub(super) struct Name {
    /// The name in the expression.
    pub(super) name: Arc<str>,
    /// The field, if the checker knows the shape of the object.
    pub(super) field: Option<KnownField>,
    /// The position of the last match. Objects of a kind tend to have the same members in the same positions.
    // Atomic, because a program is evaluated on several threads at once.
    pub(super) hint: AtomicUsize,
}

/// A field of an object whose shape is known.
#[derive(Debug)]
pub(super) struct KnownField {
    /// The shape of the object.
    // Held as a reference of its own: while the program lives, no other shape can get the same address.
    pub(super) within: Arc<Shape>,
    /// The field's name in JSON.
    pub(super) json: Box<str>,
    /// The shape of the field.
    pub(super) shape: Arc<Shape>,
}

/// `c ? a : b` with qualifiers.
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
    /// The kind of `b`: an optional or a value.
    pub(super) result_kind: OrResult,
}

/// The result of `a.or(b)` or `a.orValue(b)`.
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

/// A call with one argument.
#[derive(Debug)]
pub(super) struct Unary {
    pub(super) kind: UnaryKind,
    pub(super) run: for<'a> fn(&'a Arena, Val<'a>) -> Res<'a>,
    pub(super) arg: Op,
    pub(super) actual: Actual,
    pub(super) overload: &'static Overload,
}

/// Functions of one argument that the interpreter implements itself.
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

/// A call with two arguments.
#[derive(Debug)]
pub(super) struct Binary {
    /// The arithmetic operator, if the checker has determined that both arguments are integers.
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

    /// `None` on overflow.
    #[inline]
    pub(super) fn result(self, a: i64, b: i64) -> Option<i64> {
        match self {
            Arithmetic::Add => a.checked_add(b),
            Arithmetic::Subtract => a.checked_sub(b),
            Arithmetic::Multiply => a.checked_mul(b),
        }
    }
}

/// `a < b`, `a <= b`, `a > b` or `a >= b`
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) relation: Relation,
    pub(super) call: Binary,
}

/// A relation of integers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Relation {
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
            Relation::Less => a < b,
            Relation::LessOrEqual => a <= b,
            Relation::Greater => a > b,
            Relation::GreaterOrEqual => a >= b,
        }
    }
}

/// A call with any number of arguments, or several candidate overloads.
#[derive(Debug)]
pub(super) struct CallOp {
    /// The candidate overloads. The first one that fits the arguments is called.
    pub(super) candidates: Box<[&'static Overload]>,
    pub(super) order: ArgEvaluation,
    pub(super) args: Box<[Op]>,
    pub(super) actual: Actual,
    /// The compiled regular expression, if it is a constant.
    pub(super) pattern: Option<Pattern>,
}

/// The arguments that are evaluated if one is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgEvaluation {
    /// All of them.
    All,
    /// Those up to the error. The call then costs nothing, unless the error is in the last argument.
    UntilError,
}

/// `x in [constants]`
#[derive(Debug)]
pub(super) struct InSet {
    pub(super) value: Op,
    pub(super) set: ConstantSet,
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
    /// The message type; `None` for types that the program cannot construct.
    pub(super) message: Option<&'static Message>,
    pub(super) fields: Box<[(Arc<str>, ElementOp)]>,
}

/// A comprehension.
#[derive(Debug)]
pub(super) struct FoldOp {
    pub(super) range: Op,
    /// The variable for the element, key or index.
    pub(super) first: usize,
    /// The variable for the value, with two variables.
    pub(super) second: Option<usize>,
    pub(super) accumulator: usize,
    pub(super) init: Op,
    pub(super) step: FoldStep,
    pub(super) result: Op,
}

/// The loop body. The common macros have bodies of their own.
#[derive(Debug)]
pub(super) enum FoldStep {
    /// Any other comprehension: replaces the accumulator while the condition holds.
    Replace { condition: Op, step: Op },
    /// `all`
    All { predicate: Op },
    /// `exists`
    Exists { predicate: Op },
    /// `map` and `filter`
    Append { filter: Option<Op>, element: Op },
    /// `transformMap` and `transformMapEntry`
    Insert { filter: Option<Op>, entry: Insertion },
}

/// The entries that an iteration adds to a map.
#[derive(Debug)]
pub(super) enum Insertion {
    Entry { key: Op, value: Op },
    Map(Op),
}

/// `cel.@block([values], result)`: the values are evaluated on first use.
#[derive(Debug)]
pub(super) struct BlockOp {
    pub(super) first: usize,
    pub(super) values: Box<[Op]>,
    pub(super) result: Op,
}
