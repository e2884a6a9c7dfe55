//! Functions over lists.

mod extended;
mod quicksort;

pub use extended::EXTENDED;

use crate::estimate::formula;
use crate::overload::{Costs, Estimate, Library, Ty, overloads};
use crate::run::Actual;
use crate::val::{self, Arena, Duration, EvalError, Res, Val};
use std::cmp::Ordering;

const A: Ty = Ty::Param("A");
const LIST_A: Ty = Ty::List(&A);

const TRAVERSAL: Actual =
    Actual::NamedFormula(|args, _| super::traversal_cost(args.first().copied().flatten()));
const SEARCH: Costs = (Estimate::Formula(formula::search), TRAVERSAL);
const INCLUDES: Costs = (Estimate::Formula(formula::includes), TRAVERSAL);

/// The list functions of Kubernetes: order, sums and search.
pub static KUBERNETES: Library = Library {
    name: "kubernetes.lists",
    overloads: overloads! {
        "list_int_is_sorted_bool": member "isSorted"(List(&Int)) -> Bool => Unary(is_sorted), SEARCH;
        "list_uint_is_sorted_bool": member "isSorted"(List(&Uint)) -> Bool => Unary(is_sorted), SEARCH;
        "list_double_is_sorted_bool": member "isSorted"(List(&Double)) -> Bool => Unary(is_sorted), SEARCH;
        "list_bool_is_sorted_bool": member "isSorted"(List(&Bool)) -> Bool => Unary(is_sorted), SEARCH;
        "list_duration_is_sorted_bool": member "isSorted"(List(&Duration)) -> Bool
            => Unary(is_sorted), SEARCH;
        "list_timestamp_is_sorted_bool": member "isSorted"(List(&Timestamp)) -> Bool
            => Unary(is_sorted), SEARCH;
        "list_string_is_sorted_bool": member "isSorted"(List(&String)) -> Bool => Unary(is_sorted), SEARCH;
        "list_bytes_is_sorted_bool": member "isSorted"(List(&Bytes)) -> Bool => Unary(is_sorted), SEARCH;
        "list_int_sum_int": member "sum"(List(&Int)) -> Int => Unary(sum_ints), SEARCH;
        "list_uint_sum_uint": member "sum"(List(&Uint)) -> Uint => Unary(sum_uints), SEARCH;
        "list_double_sum_double": member "sum"(List(&Double)) -> Double => Unary(sum_doubles), SEARCH;
        "list_duration_sum_duration": member "sum"(List(&Duration)) -> Duration
            => Unary(sum_durations), SEARCH;
        "list_int_max_int": member "max"(List(&Int)) -> Int => Unary(max), SEARCH;
        "list_uint_max_uint": member "max"(List(&Uint)) -> Uint => Unary(max), SEARCH;
        "list_double_max_double": member "max"(List(&Double)) -> Double => Unary(max), SEARCH;
        "list_bool_max_bool": member "max"(List(&Bool)) -> Bool => Unary(max), SEARCH;
        "list_duration_max_duration": member "max"(List(&Duration)) -> Duration => Unary(max), SEARCH;
        "list_timestamp_max_timestamp": member "max"(List(&Timestamp)) -> Timestamp => Unary(max), SEARCH;
        "list_string_max_string": member "max"(List(&String)) -> String => Unary(max), SEARCH;
        "list_bytes_max_bytes": member "max"(List(&Bytes)) -> Bytes => Unary(max), SEARCH;
        "list_int_min_int": member "min"(List(&Int)) -> Int => Unary(min), SEARCH;
        "list_uint_min_uint": member "min"(List(&Uint)) -> Uint => Unary(min), SEARCH;
        "list_double_min_double": member "min"(List(&Double)) -> Double => Unary(min), SEARCH;
        "list_bool_min_bool": member "min"(List(&Bool)) -> Bool => Unary(min), SEARCH;
        "list_duration_min_duration": member "min"(List(&Duration)) -> Duration => Unary(min), SEARCH;
        "list_timestamp_min_timestamp": member "min"(List(&Timestamp)) -> Timestamp => Unary(min), SEARCH;
        "list_string_min_string": member "min"(List(&String)) -> String => Unary(min), SEARCH;
        "list_bytes_min_bytes": member "min"(List(&Bytes)) -> Bytes => Unary(min), SEARCH;
        "list_a_index_of_int": member "indexOf"(LIST_A, A) -> Int => Binary(index_of), SEARCH;
        "list_a_last_index_of_int": member "lastIndexOf"(LIST_A, A) -> Int => Binary(last_index_of), SEARCH;
    },
    types: &[],
};

/// The additions of version 1 to [`KUBERNETES`]: `includes`.
pub static KUBERNETES_INCLUDES: Library = Library {
    name: "kubernetes.lists includes",
    overloads: overloads! {
        "list_includes_dyn_dyn": member "includes"(Dyn, Dyn) -> Bool => Binary(includes), INCLUDES;
    },
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
