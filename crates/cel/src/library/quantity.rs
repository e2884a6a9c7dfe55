//! Resource quantities.

use super::ordered::{Ordered, PARSING, compare_to, is_greater, is_less, key, sign_of};
use crate::overload::{Library, Ty, overloads};
use crate::val::{Arena, EvalError, Opaque, Res, Val};
use scantling_notation::quantity::Quantity;
use std::sync::Arc;

/// The name of the type.
pub const TYPE: &str = "kubernetes.Quantity";
const Q: Ty = Ty::Message(TYPE);

/// Parsing, comparison and arithmetic of quantities.
pub static QUANTITIES: Library = Library {
    name: "kubernetes.quantity",
    overloads: overloads! {
        "string_to_quantity": global "quantity"(String) -> Q => Unary(quantity), PARSING;
        "is_quantity_string": global "isQuantity"(String) -> Bool
            => Unary(|_, text| Ok(Val::Bool(Quantity::parse(text.str()?).is_ok()))), PARSING;
        "quantity_sign": global "sign"(Q) -> Int => Unary(|_, q| Ok(sign_of(get(q)?.sign())));
        "quantity_is_greater_than": member "isGreaterThan"(Q, Q) -> Bool
            => Binary(is_greater::<QuantityValue>);
        "quantity_is_less_than": member "isLessThan"(Q, Q) -> Bool => Binary(is_less::<QuantityValue>);
        "quantity_compare_to": member "compareTo"(Q, Q) -> Int => Binary(compare_to::<QuantityValue>);
        "quantity_get_float": member "asApproximateFloat"(Q) -> Double
            => Unary(|_, q| Ok(Val::Double(get(q)?.as_approximate_float())));
        "quantity_get_int": member "asInteger"(Q) -> Int => Unary(as_integer);
        "quantity_is_integer": member "isInteger"(Q) -> Bool
            => Unary(|_, q| Ok(Val::Bool(get(q)?.as_integer().is_some())));
        "quantity_add": member "add"(Q, Q) -> Q => Binary(add);
        "quantity_add_int": member "add"(Q, Int) -> Q => Binary(add);
        "quantity_sub": member "sub"(Q, Q) -> Q => Binary(sub);
        "quantity_sub_int": member "sub"(Q, Int) -> Q => Binary(sub);
    },
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

fn as_integer<'a>(_: &'a Arena, q: Val<'a>) -> Res<'a> {
    // A fraction, or a number beyond 64 bits, is an error; `isInteger` tells in advance.
    let integer = get(q)?.as_integer();
    integer
        .map(Val::Int)
        .ok_or_else(|| EvalError::message("cannot convert value to integer"))
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
