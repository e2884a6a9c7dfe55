//! Functions over lists.

mod extended;

pub use extended::EXTENDED;

use crate::estimate::formula;
use crate::overload::{Estimate, Library, Overload, Ty};
use crate::run::{Actual, Run};
use crate::val::{self, Arena, Duration, EvalError, Res, Val};
use std::cmp::Ordering;

const A: Ty = Ty::Param("A");
const LIST_A: Ty = Ty::List(&A);

const SEARCH: Estimate = Estimate::Formula(formula::search);
const TRAVERSAL: Actual =
    Actual::NamedFormula(|args, _| super::traversal_cost(args.first().copied().flatten()));

const fn over(
    id: &'static str,
    function: &'static str,
    params: &'static [Ty],
    result: Ty,
    run: Run,
) -> Overload {
    Overload::member(id, function, params, result, run).costing(SEARCH, TRAVERSAL)
}

/// The list functions of Kubernetes: order, sums and search.
pub static KUBERNETES: Library = Library {
    name: "kubernetes.lists",
    overloads: &[
        over(
            "list_int_is_sorted_bool",
            "isSorted",
            &[Ty::List(&Ty::Int)],
            Ty::Bool,
            Run::Unary(is_sorted),
        ),
        over(
            "list_uint_is_sorted_bool",
            "isSorted",
            &[Ty::List(&Ty::Uint)],
            Ty::Bool,
            Run::Unary(is_sorted),
        ),
        over(
            "list_double_is_sorted_bool",
            "isSorted",
            &[Ty::List(&Ty::Double)],
            Ty::Bool,
            Run::Unary(is_sorted),
        ),
        over(
            "list_bool_is_sorted_bool",
            "isSorted",
            &[Ty::List(&Ty::Bool)],
            Ty::Bool,
            Run::Unary(is_sorted),
        ),
        over(
            "list_duration_is_sorted_bool",
            "isSorted",
            &[Ty::List(&Ty::Duration)],
            Ty::Bool,
            Run::Unary(is_sorted),
        ),
        over(
            "list_timestamp_is_sorted_bool",
            "isSorted",
            &[Ty::List(&Ty::Timestamp)],
            Ty::Bool,
            Run::Unary(is_sorted),
        ),
        over(
            "list_string_is_sorted_bool",
            "isSorted",
            &[Ty::List(&Ty::String)],
            Ty::Bool,
            Run::Unary(is_sorted),
        ),
        over(
            "list_bytes_is_sorted_bool",
            "isSorted",
            &[Ty::List(&Ty::Bytes)],
            Ty::Bool,
            Run::Unary(is_sorted),
        ),
        over(
            "list_int_sum_int",
            "sum",
            &[Ty::List(&Ty::Int)],
            Ty::Int,
            Run::Unary(sum_ints),
        ),
        over(
            "list_uint_sum_uint",
            "sum",
            &[Ty::List(&Ty::Uint)],
            Ty::Uint,
            Run::Unary(sum_uints),
        ),
        over(
            "list_double_sum_double",
            "sum",
            &[Ty::List(&Ty::Double)],
            Ty::Double,
            Run::Unary(sum_doubles),
        ),
        over(
            "list_duration_sum_duration",
            "sum",
            &[Ty::List(&Ty::Duration)],
            Ty::Duration,
            Run::Unary(sum_durations),
        ),
        over(
            "list_int_max_int",
            "max",
            &[Ty::List(&Ty::Int)],
            Ty::Int,
            Run::Unary(max),
        ),
        over(
            "list_uint_max_uint",
            "max",
            &[Ty::List(&Ty::Uint)],
            Ty::Uint,
            Run::Unary(max),
        ),
        over(
            "list_double_max_double",
            "max",
            &[Ty::List(&Ty::Double)],
            Ty::Double,
            Run::Unary(max),
        ),
        over(
            "list_bool_max_bool",
            "max",
            &[Ty::List(&Ty::Bool)],
            Ty::Bool,
            Run::Unary(max),
        ),
        over(
            "list_duration_max_duration",
            "max",
            &[Ty::List(&Ty::Duration)],
            Ty::Duration,
            Run::Unary(max),
        ),
        over(
            "list_timestamp_max_timestamp",
            "max",
            &[Ty::List(&Ty::Timestamp)],
            Ty::Timestamp,
            Run::Unary(max),
        ),
        over(
            "list_string_max_string",
            "max",
            &[Ty::List(&Ty::String)],
            Ty::String,
            Run::Unary(max),
        ),
        over(
            "list_bytes_max_bytes",
            "max",
            &[Ty::List(&Ty::Bytes)],
            Ty::Bytes,
            Run::Unary(max),
        ),
        over(
            "list_int_min_int",
            "min",
            &[Ty::List(&Ty::Int)],
            Ty::Int,
            Run::Unary(min),
        ),
        over(
            "list_uint_min_uint",
            "min",
            &[Ty::List(&Ty::Uint)],
            Ty::Uint,
            Run::Unary(min),
        ),
        over(
            "list_double_min_double",
            "min",
            &[Ty::List(&Ty::Double)],
            Ty::Double,
            Run::Unary(min),
        ),
        over(
            "list_bool_min_bool",
            "min",
            &[Ty::List(&Ty::Bool)],
            Ty::Bool,
            Run::Unary(min),
        ),
        over(
            "list_duration_min_duration",
            "min",
            &[Ty::List(&Ty::Duration)],
            Ty::Duration,
            Run::Unary(min),
        ),
        over(
            "list_timestamp_min_timestamp",
            "min",
            &[Ty::List(&Ty::Timestamp)],
            Ty::Timestamp,
            Run::Unary(min),
        ),
        over(
            "list_string_min_string",
            "min",
            &[Ty::List(&Ty::String)],
            Ty::String,
            Run::Unary(min),
        ),
        over(
            "list_bytes_min_bytes",
            "min",
            &[Ty::List(&Ty::Bytes)],
            Ty::Bytes,
            Run::Unary(min),
        ),
        over(
            "list_a_index_of_int",
            "indexOf",
            &[LIST_A, A],
            Ty::Int,
            Run::Binary(index_of),
        ),
        over(
            "list_a_last_index_of_int",
            "lastIndexOf",
            &[LIST_A, A],
            Ty::Int,
            Run::Binary(last_index_of),
        ),
    ],
    types: &[],
};

/// The additions of version 1 to [`KUBERNETES`]: `includes`.
pub static KUBERNETES_INCLUDES: Library = Library {
    name: "kubernetes.lists includes",
    overloads: &[Overload::member(
        "list_includes_dyn_dyn",
        "includes",
        &[Ty::Dyn, Ty::Dyn],
        Ty::Bool,
        Run::Binary(includes),
    )
    .costing(Estimate::Formula(formula::includes), TRAVERSAL)],
    types: &[],
};

/// Returns whether a value has an order.
fn is_comparable(value: Val<'_>) -> bool {
    matches!(
        value,
        Val::Bool(_)
            | Val::Int(_)
            | Val::Uint(_)
            | Val::Double(_)
            | Val::Str(_)
            | Val::Bytes(_)
            | Val::Duration(_)
            | Val::Timestamp(_)
    )
}

fn comparable(value: Res<'_>) -> Res<'_> {
    value.and_then(|v| {
        if is_comparable(v) {
            Ok(v)
        } else {
            Err(EvalError::NoSuchOverload)
        }
    })
}

/// Compares two elements; incomparable ones count as equal.
fn order(a: Val<'_>, b: Val<'_>) -> Ordering {
    val::compare(a, b).unwrap_or(Ordering::Equal)
}

fn is_sorted<'a>(arena: &'a Arena, list: Val<'a>) -> Res<'a> {
    let mut previous = None;
    for item in list.list()?.iter(arena) {
        let item = comparable(item)?;
        // The rest of the list is not read, so errors behind this element do not surface.
        if previous.is_some_and(|p| order(p, item).is_gt()) {
            return Ok(Val::FALSE);
        }
        previous = Some(item);
    }
    Ok(Val::TRUE)
}

fn extreme<'a>(arena: &'a Arena, list: Val<'a>, better: Ordering, name: &str) -> Res<'a> {
    let mut best = None;
    for item in list.list()?.iter(arena) {
        let item = comparable(item)?;
        // Of equal elements the first stays.
        if best.is_none_or(|best| order(best, item) == better) {
            best = Some(item);
        }
    }
    best.ok_or_else(|| EvalError::message(format!("{name} called on empty list")))
}

fn max<'a>(arena: &'a Arena, list: Val<'a>) -> Res<'a> {
    extreme(arena, list, Ordering::Less, "max")
}

fn min<'a>(arena: &'a Arena, list: Val<'a>) -> Res<'a> {
    extreme(arena, list, Ordering::Greater, "min")
}

fn sum_ints<'a>(arena: &'a Arena, list: Val<'a>) -> Res<'a> {
    let mut sum: i64 = 0;
    for item in list.list()?.iter(arena) {
        // Each element must have the type of the sum: the checker cannot guarantee it for dynamic lists.
        sum = sum.checked_add(item?.int()?).ok_or(EvalError::IntOverflow)?;
    }
    Ok(Val::Int(sum))
}

fn sum_uints<'a>(arena: &'a Arena, list: Val<'a>) -> Res<'a> {
    let mut sum: u64 = 0;
    for item in list.list()?.iter(arena) {
        let Val::Uint(n) = item? else {
            return Err(EvalError::NoSuchOverload);
        };
        sum = sum.checked_add(n).ok_or(EvalError::UintOverflow)?;
    }
    Ok(Val::Uint(sum))
}

fn sum_doubles<'a>(arena: &'a Arena, list: Val<'a>) -> Res<'a> {
    let mut sum = 0.0;
    for item in list.list()?.iter(arena) {
        let Val::Double(n) = item? else {
            return Err(EvalError::NoSuchOverload);
        };
        sum += n;
    }
    Ok(Val::Double(sum))
}

fn sum_durations<'a>(arena: &'a Arena, list: Val<'a>) -> Res<'a> {
    let mut sum: i64 = 0;
    for item in list.list()?.iter(arena) {
        let Val::Duration(d) = item? else {
            return Err(EvalError::NoSuchOverload);
        };
        sum = sum.checked_add(d.nanos).ok_or(EvalError::IntOverflow)?;
    }
    Ok(Val::Duration(Duration { nanos: sum }))
}

/// Returns whether two values are equal; incomparable values are not.
fn same<'a>(arena: &'a Arena, item: &Res<'a>, value: Val<'a>) -> Result<bool, EvalError> {
    // The element is on the left: its list type and schema decide how the two compare.
    let equal = item.clone().and_then(|item| val::equal(arena, item, value));
    equal.or_else(|e| if e.is_final() { Err(e) } else { Ok(false) })
}

fn index_of<'a>(arena: &'a Arena, list: Val<'a>, value: Val<'a>) -> Res<'a> {
    first_index(arena, list.list()?.iter(arena).enumerate(), value)
}

fn last_index_of<'a>(arena: &'a Arena, list: Val<'a>, value: Val<'a>) -> Res<'a> {
    let list = list.list()?;
    let backward = (0..list.len())
        .rev()
        .filter_map(|i| Some((i, list.get(arena, i)?)));
    first_index(arena, backward, value)
}

fn first_index<'a>(
    arena: &'a Arena,
    items: impl Iterator<Item = (usize, Res<'a>)>,
    value: Val<'a>,
) -> Res<'a> {
    for (i, item) in items {
        if same(arena, &item, value)? {
            return Ok(Val::Int(i64::try_from(i).unwrap_or(i64::MAX)));
        }
    }
    Ok(Val::Int(-1))
}

fn includes<'a>(arena: &'a Arena, target: Val<'a>, value: Val<'a>) -> Res<'a> {
    let Some(list) = target.as_list() else {
        // `includes` is also defined for a target that is not a list and then is its own only element.
        return same(arena, &Ok(target), value).map(Val::Bool);
    };
    for item in list.iter(arena) {
        if same(arena, &item, value)? {
            return Ok(Val::TRUE);
        }
    }
    Ok(Val::FALSE)
}
