//! Optional values. The overloads include the operators `.?` and `[?]`, which the program implements.

use crate::overload::{Costs, Estimate, Library, Ty, overloads};
use crate::run::Actual;
use crate::val::{Arena, EvalError, Res, Timestamp, Val};

const K: Ty = Ty::Param("K");
const V: Ty = Ty::Param("V");
const OPTIONAL: Ty = Ty::Optional(&V);
const LIST: Ty = Ty::List(&V);
const MAP: Ty = Ty::Map(&K, &V);
const OPTIONAL_LIST: Ty = Ty::List(&OPTIONAL);
const FREE: Costs = (Estimate::NOMINAL, Actual::Fixed(0));

/// Construction of optionals, access to their values, and optional selection.
pub static OPTIONALS: Library = Library {
    name: "optional",
    overloads: overloads! {
        "optional_of": global "optional.of"(V) -> OPTIONAL => Unary(Arena::some);
        "optional_ofNonZeroValue": global "optional.ofNonZeroValue"(V) -> OPTIONAL => Unary(of_non_zero);
        "optional_none": global "optional.none"() -> OPTIONAL => Nullary(|_| Ok(Val::NONE));
        "optional_value": member "value"(OPTIONAL) -> V => Unary(value);
        "optional_hasValue": member "hasValue"(OPTIONAL) -> Bool
            => Unary(|_, optional| Ok(Val::Bool(optional.optional()?.is_some())));
        // The alternative is evaluated only if needed, and the choice itself is free.
        "optional_or_optional": member "or"(OPTIONAL, OPTIONAL) -> OPTIONAL => Special, FREE;
        "optional_orValue_value": member "orValue"(OPTIONAL, V) -> V => Special, FREE;
        "select_optional_field": global "_?._"(Dyn, String) -> OPTIONAL => Special;
        "list_optindex_optional_int": global "_[?_]"(LIST, Int) -> OPTIONAL => Special;
        "optional_list_optindex_optional_int": global "_[?_]"(Optional(&LIST), Int) -> OPTIONAL => Special;
        "map_optindex_optional_value": global "_[?_]"(MAP, K) -> OPTIONAL => Special;
        "optional_map_optindex_optional_value": global "_[?_]"(Optional(&MAP), K) -> OPTIONAL => Special;
        "optional_list_index_int": global "_[_]"(Optional(&LIST), Int) -> OPTIONAL => Special;
        "optional_map_index_value": global "_[_]"(Optional(&MAP), K) -> OPTIONAL => Special;
        "list_last": member "last"(LIST) -> OPTIONAL => Unary(last);
        "list_first": member "first"(LIST) -> OPTIONAL
            => Unary(|arena, list| arena.optional(list.list()?.get(arena, 0).transpose()?));
        "optional_unwrap": global "optional.unwrap"(OPTIONAL_LIST) -> LIST => Unary(unwrap);
        "optional_unwrapOpt": member "unwrapOpt"(OPTIONAL_LIST) -> LIST => Unary(unwrap);
    },
    types: &[("optional_type", OPTIONAL)],
};

fn of_non_zero<'a>(arena: &'a Arena, value: Val<'a>) -> Res<'a> {
    let is_zero = match value {
        Val::Null => true,
        Val::Bool(b) => !b,
        Val::Int(n) => n == 0,
        Val::Uint(n) => n == 0,
        Val::Double(n) => n == 0.0,
        Val::Str(s) => s.is_empty(),
        Val::Bytes(b) => b.is_empty(),
        Val::Duration(d) => d.nanos == 0,
        // Go's zero time is the beginning of year 1, not of 1970.
        Val::Timestamp(t) => t.seconds == Timestamp::MIN_SECONDS && t.nanos == 0,
        // UPSTREAM: input lists and objects are never zero values.
        Val::JsonList(..) | Val::JsonMap(..) | Val::Type(_) | Val::Optional(_) | Val::Opaque(_) => false,
        Val::List(_) | Val::OwnedList(_) => value.list()?.is_empty(),
        Val::Map(_) | Val::OwnedMap(_) => value.map()?.is_empty(),
    };
    if is_zero { Ok(Val::NONE) } else { arena.some(value) }
}

fn value<'a>(_: &'a Arena, optional: Val<'a>) -> Res<'a> {
    optional
        .optional()?
        .ok_or_else(|| EvalError::message("optional.none() dereference"))
}

fn last<'a>(arena: &'a Arena, list: Val<'a>) -> Res<'a> {
    let list = list.list()?;
    let last = list.len().checked_sub(1).and_then(|i| list.get(arena, i));
    arena.optional(last.transpose()?)
}

fn unwrap<'a>(arena: &'a Arena, list: Val<'a>) -> Res<'a> {
    let mut items = Vec::new();
    for (i, item) in list.list()?.iter(arena).enumerate() {
        match item? {
            // Empty optionals are dropped.
            Val::Optional(value) => items.extend(value.copied()),
            // The first element decides whether this is a list of optionals.
            _ if i == 0 => return Err(EvalError::NoSuchOverload),
            other => return Err(EvalError::message(format!("value {other} is not optional"))),
        }
    }
    arena.list(items)
}
