//! Resource quantities.

use super::ordered::{Ordered, compare_to, is_greater, is_less, key, reading, sign_of};
use crate::overload::{Library, Overload, Ty};
use crate::run::Run;
use crate::val::{Arena, EvalError, Opaque, Res, Val};
use scantling_notation::quantity::Quantity;
use std::sync::Arc;

/// The name of the type.
pub const TYPE: &str = "kubernetes.Quantity";
const Q: Ty = Ty::Message(TYPE);

/// Parsing, comparison and arithmetic of quantities.
pub static QUANTITIES: Library = Library {
    name: "kubernetes.quantity",
    overloads: &[
        reading(Overload::global(
            "string_to_quantity",
            "quantity",
            &[Ty::String],
            Q,
            Run::Unary(quantity),
        )),
        reading(Overload::global(
            "is_quantity_string",
            "isQuantity",
            &[Ty::String],
            Ty::Bool,
            Run::Unary(is_quantity),
        )),
        Overload::global("quantity_sign", "sign", &[Q], Ty::Int, Run::Unary(sign)),
        Overload::member(
            "quantity_is_greater_than",
            "isGreaterThan",
            &[Q, Q],
            Ty::Bool,
            Run::Binary(is_greater::<QuantityValue>),
        ),
        Overload::member(
            "quantity_is_less_than",
            "isLessThan",
            &[Q, Q],
            Ty::Bool,
            Run::Binary(is_less::<QuantityValue>),
        ),
        Overload::member(
            "quantity_compare_to",
            "compareTo",
            &[Q, Q],
            Ty::Int,
            Run::Binary(compare_to::<QuantityValue>),
        ),
        Overload::member(
            "quantity_get_float",
            "asApproximateFloat",
            &[Q],
            Ty::Double,
            Run::Unary(as_approximate_float),
        ),
        Overload::member(
            "quantity_get_int",
            "asInteger",
            &[Q],
            Ty::Int,
            Run::Unary(as_integer),
        ),
        Overload::member(
            "quantity_is_integer",
            "isInteger",
            &[Q],
            Ty::Bool,
            Run::Unary(is_integer),
        ),
        Overload::member("quantity_add", "add", &[Q, Q], Q, Run::Binary(add)),
        Overload::member("quantity_add_int", "add", &[Q, Ty::Int], Q, Run::Binary(add)),
        Overload::member("quantity_sub", "sub", &[Q, Q], Q, Run::Binary(sub)),
        Overload::member("quantity_sub_int", "sub", &[Q, Ty::Int], Q, Run::Binary(sub)),
    ],
    types: &[],
};

/// A quantity at run time.
#[derive(Clone, Debug)]
struct QuantityValue {
    quantity: Quantity,
    origin: QuantityOrigin,
}

/// The origin of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QuantityOrigin {
    Text,
    /// UPSTREAM: sums and differences on the right of `==` equal nothing.
    Arithmetic,
}

impl Opaque for QuantityValue {
    fn type_name(&self) -> &'static str {
        TYPE
    }

    fn equals(&self, other: Val<'_>) -> Result<bool, EvalError> {
        // Only the right side decides, so `a == b` may fail where `b == a` holds.
        let other = other.opaque::<QuantityValue>()?;
        match other.origin {
            QuantityOrigin::Text => Ok(self.quantity == other.quantity),
            QuantityOrigin::Arithmetic => Err(EvalError::NoSuchOverload),
        }
    }

    fn share(&self) -> Arc<dyn Opaque> {
        Arc::new(self.clone())
    }
}

impl Ordered for QuantityValue {
    type Key = Quantity;

    fn key(&self) -> &Quantity {
        &self.quantity
    }
}

fn get(value: Val<'_>) -> Result<&Quantity, EvalError> {
    key::<QuantityValue>(value)
}

fn quantity<'a>(arena: &'a Arena, text: Val<'a>) -> Res<'a> {
    let quantity = Quantity::parse(text.str()?).map_err(|e| EvalError::message(e.to_string()))?;
    arena.opaque(QuantityValue {
        quantity,
        origin: QuantityOrigin::Text,
    })
}

fn is_quantity<'a>(_: &'a Arena, text: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(Quantity::parse(text.str()?).is_ok()))
}

fn sign<'a>(_: &'a Arena, q: Val<'a>) -> Res<'a> {
    Ok(sign_of(get(q)?.sign()))
}

fn as_approximate_float<'a>(_: &'a Arena, q: Val<'a>) -> Res<'a> {
    Ok(Val::Double(get(q)?.as_approximate_float()))
}

fn as_integer<'a>(_: &'a Arena, q: Val<'a>) -> Res<'a> {
    // A fraction, or a number beyond 64 bits, is an error; `isInteger` tells in advance.
    let integer = get(q)?.as_integer();
    integer
        .map(Val::Int)
        .ok_or_else(|| EvalError::message("cannot convert value to integer"))
}

fn is_integer<'a>(_: &'a Arena, q: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(get(q)?.as_integer().is_some()))
}

fn operand(value: Val<'_>) -> Result<Quantity, EvalError> {
    match value {
        // `add` and `sub` have overloads for quantities and integers, which share an implementation.
        Val::Int(n) => Ok(Quantity::from_int(n)),
        _ => get(value).cloned(),
    }
}

fn add<'a>(arena: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    computed(arena, get(a)?.add(&operand(b)?))
}

fn sub<'a>(arena: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    computed(arena, get(a)?.sub(&operand(b)?))
}

fn computed<E: std::fmt::Display>(arena: &Arena, result: Result<Quantity, E>) -> Res<'_> {
    let quantity = result.map_err(|e| EvalError::message(e.to_string()))?;
    arena.opaque(QuantityValue {
        quantity,
        origin: QuantityOrigin::Arithmetic,
    })
}
