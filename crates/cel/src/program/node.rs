//! The tree that a program walks.

use super::set::Set;
use crate::data::regex::Pattern;
use crate::message::Message;
use crate::overload::Overload;
use crate::run::Actual;
use crate::shape::Shape;
use crate::val::{Arena, EvalError, Owned, Res, Val};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// A step. Its tag stands on its own, not in a corner of some value: it is read more often than anything else.
#[derive(Debug)]
#[repr(u8)]
pub(super) enum Node {
    /// A value that is known already.
    Const(Owned),
    /// A variable, or what is selected from one or from another value.
    Access(Box<Access>),
    /// `c ? a : b`, and what is selected from that.
    Choice(Box<Choice>),
    /// `a && b`
    And(Box<[Node; 2]>),
    /// `a || b`
    Or(Box<[Node; 2]>),
    /// Anything but `false` is `true`.
    NotStrictlyFalse(Box<Node>),
    /// `a == b` or `a != b`
    Equality(Box<Equality>),
    /// A call on one argument.
    Unary(Box<Unary>),
    /// A call on two arguments.
    Binary(Box<Binary>),
    /// `a < b` and its kin
    Comparison(Box<Comparison>),
    /// `a + b` of texts
    Join(Box<Binary>),
    /// Any other call.
    Call(Box<Call>),
    /// `x in [constants]`
    Member(Box<Member>),
    /// `[a, ?b]`
    List(Box<[Element]>),
    /// `{k: v, ?k: v}`
    Map(Box<[(Node, Element)]>),
    /// `Type{f: v, ?f: v}`
    Message(Box<Construction>),
    /// A comprehension.
    Fold(Box<Fold>),
    /// `a.or(b)` or `a.orValue(b)` of an optional
    Alternative(Box<Alternative>),
    /// Values that are computed when they are first used, and what is made of them.
    Block(Box<Block>),
    /// A name or a call that means nothing.
    Unresolved(EvalError),
}

/// A variable or value, and what is selected from it.
#[derive(Debug)]
pub(super) struct Access {
    pub(super) root: Root,
    pub(super) path: Vec<Qualifier>,
    pub(super) mode: Mode,
}

/// Where an access starts.
#[derive(Debug)]
pub(super) enum Root {
    Input(usize),
    Local(usize),
    Value(Node),
}

/// What an access asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The value.
    Value,
    /// Whether it is there.
    Presence,
}

/// One selection.
#[derive(Debug)]
pub(super) struct Qualifier {
    pub(super) key: Key,
    /// Whether it may fail to find anything (`a.?b`, `a[?b]`).
    pub(super) optional: bool,
}

/// What a selection goes by.
#[derive(Debug)]
pub(super) enum Key {
    /// A name: a field or a key of a map.
    Name(Name),
    /// Any other constant.
    Const(Owned),
    /// A value known only at run time.
    Node(Node),
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
pub(super) struct Choice {
    pub(super) condition: Node,
    pub(super) yes: Node,
    pub(super) no: Node,
    pub(super) path: Vec<Qualifier>,
    pub(super) mode: Mode,
}

/// `a.or(b)` or `a.orValue(b)` of an optional: `b` is evaluated only if `a` is empty.
#[derive(Debug)]
pub(super) struct Alternative {
    pub(super) optional: Node,
    pub(super) otherwise: Node,
    /// Whether `b` is an optional itself, or a value.
    pub(super) gives: Gives,
}

/// What an alternative gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gives {
    Optional,
    Value,
}

#[derive(Debug)]
pub(super) struct Equality {
    pub(super) left: Node,
    pub(super) right: Node,
    pub(super) negated: bool,
}

/// A call on one argument.
#[derive(Debug)]
pub(super) struct Unary {
    pub(super) operation: Operation,
    pub(super) run: for<'a> fn(&'a Arena, Val<'a>) -> Res<'a>,
    pub(super) arg: Node,
    pub(super) actual: Actual,
    pub(super) overload: &'static Overload,
}

/// What a call on one argument does, where that is known without calling it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// `!a`
    Not,
    /// `size(a)`
    Size,
    /// Anything else.
    Other,
}

impl Operation {
    pub(super) fn of(function: &str) -> Operation {
        match function {
            "!_" => Operation::Not,
            "size" => Operation::Size,
            _ => Operation::Other,
        }
    }
}

/// A call on two arguments.
#[derive(Debug)]
pub(super) struct Binary {
    /// What it does with integers, where it is decided that they are.
    pub(super) arithmetic: Option<Arithmetic>,
    pub(super) run: for<'a> fn(&'a Arena, Val<'a>, Val<'a>) -> Res<'a>,
    pub(super) left: Node,
    pub(super) right: Node,
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
    pub(super) fn of(overload: &str) -> Option<Arithmetic> {
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
    pub(super) fn of(function: &str) -> Option<Relation> {
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
pub(super) struct Call {
    /// What may be called; the first that fits the arguments is.
    pub(super) candidates: Box<[&'static Overload]>,
    pub(super) order: Order,
    pub(super) args: Box<[Node]>,
    pub(super) actual: Actual,
    /// The regular expression, where it is a constant.
    pub(super) pattern: Option<Pattern>,
}

/// Which arguments of a call are evaluated where one is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// All of them.
    All,
    /// Those up to the error. Unless it is the last one, the call then costs nothing.
    Stop,
}

/// `x in [constants]`
#[derive(Debug)]
pub(super) struct Member {
    pub(super) value: Node,
    pub(super) set: Arc<Set>,
}

/// An element of a list literal, or a value of a map literal.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) node: Node,
    pub(super) optional: bool,
}

/// `Type{f: v, ?f: v}`
#[derive(Debug)]
pub(super) struct Construction {
    pub(super) name: Arc<str>,
    /// The type of that name; `None` where it has no values.
    pub(super) message: Option<&'static Message>,
    pub(super) fields: Box<[(Arc<str>, Element)]>,
}

/// A comprehension.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) range: Node,
    /// The slot of the element, key or index.
    pub(super) first: usize,
    /// The slot of the value, with two variables.
    pub(super) second: Option<usize>,
    pub(super) accumulator: usize,
    pub(super) init: Node,
    pub(super) step: Step,
    pub(super) result: Node,
}

/// What a fold does with each element.
#[derive(Debug)]
pub(super) enum Step {
    /// Goes on while the condition holds, and replaces the accumulator.
    Replace { condition: Node, step: Node },
    /// `all`: keeps on as long as the accumulator is not false.
    All { predicate: Node },
    /// `exists`: keeps on as long as the accumulator is not true.
    Exists { predicate: Node },
    /// `map`, `filter`: adds to a list.
    Append { filter: Option<Node>, element: Node },
    /// `transformMap`, `transformMapEntry`: adds to a map, by a call that is in the table of a library.
    Insert { filter: Option<Node>, entry: Insertion },
}

/// What is added to a map.
#[derive(Debug)]
pub(super) enum Insertion {
    Entry { key: Node, value: Node },
    Map(Node),
}

/// Values that are computed when they are first used, and what is made of them.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) first: usize,
    pub(super) values: Box<[Node]>,
    pub(super) result: Node,
}
