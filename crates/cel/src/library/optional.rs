//! Optional values. The overloads include the operators `.?` and `[?]`, which the program implements.

use crate::overload::{Library, Overload, Ty};
use crate::run::{Actual, Run};
use crate::val::{Arena, EvalError, Res, Timestamp, Val};

const K: Ty = Ty::Param("K");
const V: Ty = Ty::Param("V");
const OPTIONAL: Ty = Ty::Optional(&V);
const LIST: Ty = Ty::List(&V);
const MAP: Ty = Ty::Map(&K, &V);
const OPTIONAL_LIST: Ty = Ty::List(&OPTIONAL);

/// Construction of optionals, access to their values, and optional selection.
pub static OPTIONALS: Library = Library {
    name: "optional",
    overloads: &[
        Overload::global(
            "optional_of",
            "optional.of",
            &[V],
            OPTIONAL,
            Run::Unary(optional_of),
        ),
        Overload::global(
            "optional_ofNonZeroValue",
            "optional.ofNonZeroValue",
            &[V],
            OPTIONAL,
            Run::Unary(of_non_zero),
        ),
        Overload::global(
            "optional_none",
            "optional.none",
            &[],
            OPTIONAL,
            Run::Nullary(|_| Ok(Val::NONE)),
        ),
        Overload::member("optional_value", "value", &[OPTIONAL], V, Run::Unary(value)),
        Overload::member(
            "optional_hasValue",
            "hasValue",
            &[OPTIONAL],
            Ty::Bool,
            Run::Unary(has_value),
        ),
        // The alternative is evaluated only if needed, and the choice itself is free.
        free(Overload::member(
            "optional_or_optional",
            "or",
            &[OPTIONAL, OPTIONAL],
            OPTIONAL,
            Run::Special,
        )),
        free(Overload::member(
            "optional_orValue_value",
            "orValue",
            &[OPTIONAL, V],
            V,
            Run::Special,
        )),
        Overload::global(
            "select_optional_field",
            "_?._",
            &[Ty::Dyn, Ty::String],
            OPTIONAL,
            Run::Special,
        ),
        Overload::global(
            "list_optindex_optional_int",
            "_[?_]",
            &[LIST, Ty::Int],
            OPTIONAL,
            Run::Special,
        ),
        Overload::global(
            "optional_list_optindex_optional_int",
            "_[?_]",
            &[Ty::Optional(&LIST), Ty::Int],
            OPTIONAL,
            Run::Special,
        ),
        Overload::global(
            "map_optindex_optional_value",
            "_[?_]",
            &[MAP, K],
            OPTIONAL,
            Run::Special,
        ),
        Overload::global(
            "optional_map_optindex_optional_value",
            "_[?_]",
            &[Ty::Optional(&MAP), K],
            OPTIONAL,
            Run::Special,
        ),
        Overload::global(
            "optional_list_index_int",
            "_[_]",
            &[Ty::Optional(&LIST), Ty::Int],
            OPTIONAL,
            Run::Special,
        ),
        Overload::global(
            "optional_map_index_value",
            "_[_]",
            &[Ty::Optional(&MAP), K],
            OPTIONAL,
            Run::Special,
        ),
        Overload::member("list_last", "last", &[LIST], OPTIONAL, Run::Unary(last)),
        Overload::member("list_first", "first", &[LIST], OPTIONAL, Run::Unary(first)),
        Overload::global(
            "optional_unwrap",
            "optional.unwrap",
            &[OPTIONAL_LIST],
            LIST,
            Run::Unary(unwrap),
        ),
        Overload::member(
            "optional_unwrapOpt",
            "unwrapOpt",
            &[OPTIONAL_LIST],
            LIST,
            Run::Unary(unwrap),
        ),
    ],
    types: &[("optional_type", OPTIONAL)],
};

const fn free(row: Overload) -> Overload {
    let estimate = row.estimate;
    row.costing(estimate, Actual::Fixed(0))
}

fn optional_of<'a>(arena: &'a Arena, value: Val<'a>) -> Res<'a> {
    arena.some(value)
}

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

fn has_value<'a>(_: &'a Arena, optional: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(optional.optional()?.is_some()))
}

fn first<'a>(arena: &'a Arena, list: Val<'a>) -> Res<'a> {
    arena.optional(list.list()?.get(arena, 0).transpose()?)
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
