//! The overload row: one row of a library's table says of an overload which function it belongs to, its signature,
//! what it costs before and after the fact, and how it runs.

use crate::estimate::{CallEstimate, Operand};
use crate::run::{Actual, Run};
use crate::types::CelType;
use std::sync::Arc;

/// One overload of a function.
#[derive(Debug)]
pub struct Overload {
    /// The name by which the checker records it: `add_int64`.
    pub id: &'static str,
    /// The function it belongs to: `_+_`, `startsWith`.
    pub function: &'static str,
    /// How it is called.
    pub style: Style,
    /// The types of the operands; a member function's receiver is the first.
    pub params: &'static [Ty],
    /// The type of the result.
    pub result: Ty,
    /// What a call costs, as far as the expression and the schema tell.
    pub estimate: Estimate,
    /// What a call cost that has run.
    pub actual: Actual,
    /// How it runs.
    pub run: Run,
}

impl Overload {
    /// A row for `function(…)` that costs 1 before and after the fact.
    pub const fn global(
        id: &'static str,
        function: &'static str,
        params: &'static [Ty],
        result: Ty,
        run: Run,
    ) -> Overload {
        Overload {
            id,
            function,
            style: Style::Global,
            params,
            result,
            estimate: Estimate::NOMINAL,
            actual: Actual::NOMINAL,
            run,
        }
    }

    /// A row for `x.function(…)` that costs 1 before and after the fact.
    pub const fn member(
        id: &'static str,
        function: &'static str,
        params: &'static [Ty],
        result: Ty,
        run: Run,
    ) -> Overload {
        Overload {
            style: Style::Member,
            ..Overload::global(id, function, params, result, run)
        }
    }

    /// The same row with other costs.
    #[must_use]
    pub const fn costing(self, estimate: Estimate, actual: Actual) -> Overload {
        Overload {
            estimate,
            actual,
            ..self
        }
    }
}

/// How a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `f(x, y)`, operators, and names with dots (`sets.contains(x, y)`).
    Global,
    /// `x.f(y)`
    Member,
}

/// A type in a signature, made so that rows can be constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ty {
    /// Anything.
    Dyn,
    /// `null_type`
    Null,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `uint`
    Uint,
    /// `double`
    Double,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `google.protobuf.Duration`
    Duration,
    /// `google.protobuf.Timestamp`
    Timestamp,
    /// `list(E)`
    List(&'static Ty),
    /// `map(K, V)`
    Map(&'static Ty, &'static Ty),
    /// `type(T)`
    Type(&'static Ty),
    /// `type`, of whatever.
    AnyType,
    /// `wrapper(T)`
    Wrapper(&'static Ty),
    /// `optional_type(T)`
    Optional(&'static Ty),
    /// A type without parameters that only functions look into: `net.IP`.
    Opaque(&'static str),
    /// The same with parameters: `tuple(A, B)`.
    Parametric(&'static str, &'static [Ty]),
    /// A message type that shows no fields: `kubernetes.Quantity`.
    Message(&'static str),
    /// A type parameter; the same name is the same type within one row.
    Param(&'static str),
}

impl Ty {
    /// The type that this describes.
    pub fn to_type(self) -> CelType {
        match self {
            Ty::Dyn => CelType::Dyn,
            Ty::Null => CelType::Null,
            Ty::Bool => CelType::Bool,
            Ty::Int => CelType::Int,
            Ty::Uint => CelType::Uint,
            Ty::Double => CelType::Double,
            Ty::String => CelType::String,
            Ty::Bytes => CelType::Bytes,
            Ty::Duration => CelType::Duration,
            Ty::Timestamp => CelType::Timestamp,
            Ty::List(element) => CelType::list(element.to_type()),
            Ty::Map(key, value) => CelType::map(key.to_type(), value.to_type()),
            Ty::Type(of) => CelType::of_type(of.to_type()),
            Ty::AnyType => CelType::Type(None),
            Ty::Wrapper(of) => CelType::Wrapper(Arc::new(of.to_type())),
            Ty::Optional(value) => CelType::optional(value.to_type()),
            Ty::Opaque(name) => CelType::Opaque(name.into(), Arc::new([])),
            Ty::Parametric(name, params) => {
                CelType::Opaque(name.into(), params.iter().map(|param| param.to_type()).collect())
            }
            Ty::Message(name) => CelType::Message(name.into()),
            Ty::Param(name) => CelType::Param(name.into()),
        }
    }
}

/// What a call costs before it has run. The cost of its operands is added by the estimator, except where a variant
/// says otherwise. Operands count from 0; a member function's receiver is operand 0.
///
/// Most rows are [`Estimate::NOMINAL`]; the formulas for the others are in [`crate::estimate::formula`].
#[derive(Clone, Copy, Debug)]
pub enum Estimate {
    /// The same cost whatever the operands; nothing is known of the size of the result.
    Fixed(u64),
    /// A pass over one operand: its size times `factor`, rounded up.
    Pass {
        /// Which operand.
        operand: usize,
        /// The cost per unit of size.
        factor: f64,
        /// The size of the result.
        result: ResultSize,
    },
    /// A formula over the operands.
    Formula(fn(&[Operand<'_>]) -> CallEstimate),
    /// `&&` and `||`: at least the left operand, at most both.
    ShortCircuit,
    /// `?:`: the condition and one of the branches.
    Conditional,
    /// Joining two strings or bytes: a pass over the result, which is as long as both.
    ConcatText,
    /// Joining two lists: constant, but the result is as long as both.
    ConcatList,
    /// `list[i]`: constant; the result is an element.
    IndexList,
    /// `map[k]`: constant; the result is a value.
    IndexMap,
}

impl Estimate {
    /// What most calls cost: 1.
    pub const NOMINAL: Estimate = Estimate::Fixed(1);

    /// A pass over the characters of an operand, where nothing is known of the size of the result.
    pub const fn text_pass(operand: usize) -> Estimate {
        Estimate::Pass {
            operand,
            factor: crate::estimate::TEXT_FACTOR,
            result: ResultSize::Unknown,
        }
    }
}

/// What is known of the size of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultSize {
    /// Nothing beyond what its type tells.
    Unknown,
    /// The size of the operand passed over.
    Same,
    /// Anything up to the size of the operand passed over.
    UpTo,
}

/// A set of functions, macros and types that an environment may have.
#[derive(Debug)]
pub struct Library {
    /// A name for people.
    pub name: &'static str,
    /// The overloads, in the order in which the checker tries them.
    pub overloads: &'static [Overload],
    /// CelType names that are identifiers (`int`, `optional_type`), with what they name.
    pub types: &'static [(&'static str, Ty)],
}
