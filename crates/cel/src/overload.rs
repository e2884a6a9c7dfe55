//! Overloads: one row per overload holds its function, signature, implementation, and estimated and actual cost.

use crate::estimate::{CallEstimate, Operand};
use crate::run::{Actual, Run};
use crate::types::CelType;
use std::sync::Arc;

/// One overload of a function.
#[derive(Debug)]
pub struct Overload {
    /// The identifier of the overload: `add_int64`.
    pub id: &'static str,
    /// The function: `_+_`, `startsWith`.
    pub function: &'static str,
    /// The call style.
    pub style: Style,
    /// The types of the operands, starting with the receiver of a member function.
    pub params: &'static [Ty],
    /// The type of the result.
    pub result: Ty,
    /// The estimated cost.
    pub estimate: Estimate,
    /// The actual cost.
    pub actual: Actual,
    /// The implementation.
    pub run: Run,
}

impl Overload {
    /// A global function with estimated and actual cost 1.
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

    /// A member function with estimated and actual cost 1.
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

    /// Sets the costs.
    #[must_use]
    pub const fn costing(self, (estimate, actual): Costs) -> Overload {
        Overload {
            estimate,
            actual,
            ..self
        }
    }
}

/// The estimated and the actual cost.
pub type Costs = (Estimate, Actual);

/// A list of overloads, each written like a declaration:
///
/// `"list_size": member "size"(LIST) -> Int => Unary(size_of), COSTS;`
///
/// Types are variants of [`Ty`] or constants; the implementation is a variant of [`Run`]. Without costs, both are 1.
macro_rules! overloads {
    ($($id:literal: $style:ident $function:literal($($param:expr),*) -> $result:expr
        => $run:ident $(($($code:tt)*))? $(, $costs:expr)?;)*) => {{
        use $crate::overload::Ty::*;
        // Keeps the import in use: not every list names a type.
        const _: $crate::overload::Ty = Dyn;
        &[$($crate::overload::Overload::$style(
            $id,
            $function,
            &[$($param),*],
            $result,
            $crate::run::Run::$run $(($($code)*))?,
        )$(.costing($costs))?),*]
    }};
}
pub(crate) use overloads;

/// The call style of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `f(x, y)`, operators, and names with dots (`sets.contains(x, y)`).
    Global,
    /// `x.f(y)`
    Member,
}

/// A type in a signature. Unlike [`CelType`], it can be a constant.
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
    /// `type` without a parameter.
    AnyType,
    /// `wrapper(T)`
    Wrapper(&'static Ty),
    /// `optional_type(T)`
    Optional(&'static Ty),
    /// An opaque type without parameters: `net.IP`.
    Opaque(&'static str),
    /// An opaque type with parameters: `tuple(A, B)`.
    Parametric(&'static str, &'static [Ty]),
    /// A message type without visible fields: `kubernetes.Quantity`.
    Message(&'static str),
    /// A type parameter of the signature.
    Param(&'static str),
}

impl Ty {
    /// The corresponding [`CelType`].
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

/// The estimated cost of a call. The estimator adds the cost of the operands unless a variant says otherwise. Operands
/// count from 0; the receiver of a member function is operand 0.
///
/// Most overloads are [`Estimate::NOMINAL`]; formulas are in [`crate::estimate::formula`].
#[derive(Clone, Copy, Debug)]
pub enum Estimate {
    /// A fixed cost, with a result of unknown size.
    Fixed(u64),
    /// A pass over one operand: its size times `factor`, rounded up.
    Pass {
        /// The index of the operand.
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
    /// Concatenation of strings or bytes: a pass over the result, whose size is the sum.
    ConcatText,
    /// Concatenation of lists: a fixed cost; the size of the result is the sum.
    ConcatList,
    /// `list[i]`: a fixed cost; the result is an element.
    IndexList,
    /// `map[k]`: a fixed cost; the result is a value.
    IndexMap,
}

impl Estimate {
    /// A cost of 1, as for most functions.
    pub const NOMINAL: Estimate = Estimate::Fixed(1);

    /// A pass over the characters of an operand, with a result of unknown size.
    pub const fn text_pass(operand: usize) -> Estimate {
        Estimate::Pass {
            operand,
            factor: crate::estimate::TEXT_FACTOR,
            result: ResultSize::Unknown,
        }
    }
}

/// The size of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultSize {
    /// Unknown.
    Unknown,
    /// The size of the operand.
    Same,
    /// At most the size of the operand.
    UpTo,
}

/// A set of functions, macros and types that an environment may have.
#[derive(Debug)]
pub struct Library {
    /// The name for display.
    pub name: &'static str,
    /// The overloads, in the order in which the checker tries them.
    pub overloads: &'static [Overload],
    /// Type names that are identifiers (`int`, `optional_type`), and their types.
    pub types: &'static [(&'static str, Ty)],
}
