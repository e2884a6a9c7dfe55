//! The standard library: operators, conversions, and the functions that every environment has.

mod arithmetic;
mod convert;
mod order;
mod text;
mod time;

pub use order::CROSS_TYPE_ORDER;

use crate::estimate::{formula, text_cost};
use crate::overload::{Costs, Estimate, Library, Ty, overloads};
use crate::run::{Actual, size};
use crate::val::{self, Arena, EvalError, Res, Val};

/// The parts of the standard library. [`CROSS_TYPE_ORDER`] adds comparisons between number types.
pub static STANDARD: [&Library; 7] = [
    &CORE,
    &MESSAGES,
    &arithmetic::ARITHMETIC,
    &order::ORDER,
    &convert::CONVERSIONS,
    &text::TEXT,
    &time::TIME,
];

const A: Ty = Ty::Param("A");
const B: Ty = Ty::Param("B");
const LIST: Ty = Ty::List(&A);
const MAP: Ty = Ty::Map(&A, &B);

const CONDITIONAL: Costs = (Estimate::Conditional, Actual::Fixed(0));
const SHORT_CIRCUIT: Costs = (Estimate::ShortCircuit, Actual::Fixed(0));
const EQUAL: Costs = (
    Estimate::Formula(formula::equal),
    Actual::NamedFormula(equal_cost),
);
const NOT_EQUAL: Costs = (
    Estimate::Formula(formula::compare),
    Actual::NamedFormula(shorter_pass),
);
const INDEX_LIST: Costs = (Estimate::IndexList, Actual::NOMINAL);
const INDEX_MAP: Costs = (Estimate::IndexMap, Actual::NOMINAL);
const IN_LIST: Costs = (
    Estimate::Formula(formula::in_list),
    Actual::Pass { arg: 1, factor: 1.0 },
);

/// Logic, equality, selection and size.
static CORE: Library = Library {
    name: "core",
    overloads: overloads! {
        "conditional": global "_?_:_"(Bool, A, A) -> A => Special, CONDITIONAL;
        "logical_and": global "_&&_"(Bool, Bool) -> Bool => Special, SHORT_CIRCUIT;
        "logical_or": global "_||_"(Bool, Bool) -> Bool => Special, SHORT_CIRCUIT;
        "logical_not": global "!_"(Bool) -> Bool => Unary(|_, v| Ok(Val::Bool(!v.bool()?)));
        "not_strictly_false": global "@not_strictly_false"(Bool) -> Bool => Special;
        "equals": global "_==_"(A, A) -> Bool => Special, EQUAL;
        "not_equals": global "_!=_"(A, A) -> Bool => Special, NOT_EQUAL;
        "index_list": global "_[_]"(LIST, Int) -> A => Special, INDEX_LIST;
        "index_map": global "_[_]"(MAP, A) -> B => Special, INDEX_MAP;
        "in_list": global "@in"(A, LIST) -> Bool => Binary(is_in), IN_LIST;
        "in_map": global "@in"(A, MAP) -> Bool => Binary(is_in);
        "size_bytes": global "size"(Bytes) -> Int => Unary(size_of);
        "bytes_size": member "size"(Bytes) -> Int => Unary(size_of);
        "size_list": global "size"(LIST) -> Int => Unary(size_of);
        "list_size": member "size"(LIST) -> Int => Unary(size_of);
        "size_map": global "size"(MAP) -> Int => Unary(size_of);
        "map_size": member "size"(MAP) -> Int => Unary(size_of);
        "size_string": global "size"(String) -> Int => Unary(size_of);
        "string_size": member "size"(String) -> Int => Unary(size_of);
    },
    types: &[
        ("bool", Ty::Bool),
        ("bytes", Ty::Bytes),
        ("double", Ty::Double),
        ("int", Ty::Int),
        ("list", Ty::List(&Ty::Dyn)),
        ("map", Ty::Map(&Ty::Dyn, &Ty::Dyn)),
        ("null_type", Ty::Null),
        ("string", Ty::String),
        ("type", Ty::AnyType),
        ("uint", Ty::Uint),
    ],
};

/// The well-known protobuf types; see [`crate::message`].
static MESSAGES: Library = Library {
    name: "messages",
    overloads: &[],
    types: &[
        ("google.protobuf.Any", Ty::Dyn),
        ("google.protobuf.BoolValue", Ty::Wrapper(&Ty::Bool)),
        ("google.protobuf.BytesValue", Ty::Wrapper(&Ty::Bytes)),
        ("google.protobuf.DoubleValue", Ty::Wrapper(&Ty::Double)),
        ("google.protobuf.Duration", Ty::Duration),
        ("google.protobuf.Empty", Ty::Message("google.protobuf.Empty")),
        ("google.protobuf.FloatValue", Ty::Wrapper(&Ty::Double)),
        ("google.protobuf.Int32Value", Ty::Wrapper(&Ty::Int)),
        ("google.protobuf.Int64Value", Ty::Wrapper(&Ty::Int)),
        ("google.protobuf.ListValue", Ty::List(&Ty::Dyn)),
        ("google.protobuf.StringValue", Ty::Wrapper(&Ty::String)),
        ("google.protobuf.Struct", Ty::Map(&Ty::String, &Ty::Dyn)),
        ("google.protobuf.Timestamp", Ty::Timestamp),
        ("google.protobuf.UInt32Value", Ty::Wrapper(&Ty::Uint)),
        ("google.protobuf.UInt64Value", Ty::Wrapper(&Ty::Uint)),
        ("google.protobuf.Value", Ty::Dyn),
    ],
};

/// `x in list` by equality, `x in map` by key.
fn is_in<'a>(arena: &'a Arena, value: Val<'a>, aggregate: Val<'a>) -> Res<'a> {
    if let Some(list) = aggregate.as_list() {
        return val::contains(arena, list, value).map(Val::Bool);
    }
    match aggregate.map()?.get(arena, value) {
        // The value is read as well: if it cannot be read, the result is that error.
        Some(Err(e)) => Err(e),
        found => Ok(Val::Bool(found.is_some())),
    }
}

fn size_of<'a>(_: &'a Arena, v: Val<'a>) -> Res<'a> {
    if !matches!(v, Val::Str(_) | Val::Bytes(_)) && v.as_list().is_none() && v.as_map().is_none() {
        return Err(EvalError::NoSuchOverload);
    }
    i64::try_from(v.cost_size())
        .map(Val::Int)
        .map_err(|_| EvalError::IntOverflow)
}

/// Opaque values compare in one step, everything else in a pass over the shorter operand.
pub(crate) fn equal_cost<'a>(args: &[Option<Val<'a>>], result: Option<Val<'a>>) -> u64 {
    match args.first() {
        // Only the left operand counts, as in kube-apiserver's `CallCost`.
        Some(Some(Val::Opaque(_))) => 1,
        _ => shorter_pass(args, result),
    }
}

/// The cost of a pass over the shorter of two texts.
#[inline]
pub(crate) fn shorter_text_cost(a: &str, b: &str) -> u64 {
    /// Up to this many characters cost 1.
    const FEW: usize = 10;
    match a.len().min(b.len()) {
        0 => 0,
        1..=FEW => 1,
        _ => text_cost(shorter_text(a, b)),
    }
}

/// The size of the shorter text. A character takes at most four bytes, so a text four times as long in bytes
/// need not be counted.
fn shorter_text(a: &str, b: &str) -> u64 {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let size = val::text_size(short);
    if long.len() as u64 / 4 >= size {
        size
    } else {
        size.min(val::text_size(long))
    }
}

/// The cost of a pass over the shorter operand.
pub(crate) fn shorter_pass<'a>(args: &[Option<Val<'a>>], _: Option<Val<'a>>) -> u64 {
    match args {
        [Some(Val::Str(a)), Some(Val::Str(b))] => shorter_text_cost(a, b),
        // An argument that is an error has size 1, so comparing with one is cheap.
        _ => text_cost(args.iter().copied().map(size).min().unwrap_or(1)),
    }
}
