//! Slicing, flattening, sorting and ranges.

use super::super::scalars::ScalarSet;
use super::{is_comparable, order, quicksort, same};
use crate::estimate::{LIST_COST, TEXT_FACTOR, formula};
use crate::overload::{Costs, Estimate, Library, Ty, overloads};
use crate::run::{Actual, size};
use crate::val::{Arena, EvalError, List, Res, Val};
use scantling_value::deadline;

const T: Ty = Ty::Param("T");
const LIST_T: Ty = Ty::List(&T);

/// Slicing, flattening, sorting and ranges (version 3).
pub static EXTENDED: Library = Library {
    name: "lists",
    overloads: overloads! {
        "list_slice": member "slice"(LIST_T, Int, Int) -> LIST_T => Ternary(slice), SLICE;
        "list_flatten": member "flatten"(List(&LIST_T)) -> LIST_T
            => Unary(|arena, list| flatten(arena, list, Val::Int(1))), FLATTEN;
        "list_flatten_int": member "flatten"(List(&Dyn), Int) -> List(&Dyn) => Binary(flatten), FLATTEN;
        "list_int_sort": member "sort"(List(&Int)) -> List(&Int) => Unary(sort), SORT;
        "list_uint_sort": member "sort"(List(&Uint)) -> List(&Uint) => Unary(sort), SORT;
        "list_double_sort": member "sort"(List(&Double)) -> List(&Double) => Unary(sort), SORT;
        "list_bool_sort": member "sort"(List(&Bool)) -> List(&Bool) => Unary(sort), SORT;
        "list_google.protobuf.Duration_sort": member "sort"(List(&Duration)) -> List(&Duration)
            => Unary(sort), SORT;
        "list_google.protobuf.Timestamp_sort": member "sort"(List(&Timestamp)) -> List(&Timestamp)
            => Unary(sort), SORT;
        "list_string_sort": member "sort"(List(&String)) -> List(&String) => Unary(sort), SORT_TEXT;
        "list_bytes_sort": member "sort"(List(&Bytes)) -> List(&Bytes) => Unary(sort), SORT_TEXT;
        "list_int_sortByAssociatedKeys": member "@sortByAssociatedKeys"(LIST_T, List(&Int)) -> LIST_T
            => Binary(sort_by_keys), SORT_BY;
        "list_uint_sortByAssociatedKeys": member "@sortByAssociatedKeys"(LIST_T, List(&Uint)) -> LIST_T
            => Binary(sort_by_keys), SORT_BY;
        "list_double_sortByAssociatedKeys": member "@sortByAssociatedKeys"(LIST_T, List(&Double)) -> LIST_T
            => Binary(sort_by_keys), SORT_BY;
        "list_bool_sortByAssociatedKeys": member "@sortByAssociatedKeys"(LIST_T, List(&Bool)) -> LIST_T
            => Binary(sort_by_keys), SORT_BY;
        "list_google.protobuf.Duration_sortByAssociatedKeys":
            member "@sortByAssociatedKeys"(LIST_T, List(&Duration)) -> LIST_T => Binary(sort_by_keys), SORT_BY;
        "list_google.protobuf.Timestamp_sortByAssociatedKeys":
            member "@sortByAssociatedKeys"(LIST_T, List(&Timestamp)) -> LIST_T => Binary(sort_by_keys), SORT_BY;
        "list_string_sortByAssociatedKeys": member "@sortByAssociatedKeys"(LIST_T, List(&String)) -> LIST_T
            => Binary(sort_by_keys), SORT_BY_TEXT;
        "list_bytes_sortByAssociatedKeys": member "@sortByAssociatedKeys"(LIST_T, List(&Bytes)) -> LIST_T
            => Binary(sort_by_keys), SORT_BY_TEXT;
        "lists_range": global "lists.range"(Int) -> List(&Int) => Unary(range), RANGE;
        "list_reverse": member "reverse"(LIST_T) -> LIST_T => Unary(reverse), REVERSE;
        "list_distinct": member "distinct"(LIST_T) -> LIST_T => Unary(distinct), SORT;
    },
    types: &[],
};

/// The cost of a call that builds a list, at `factor` per element.
fn making(factor: f64, size: u64) -> u64 {
    ((size as f64 * factor) as u64).saturating_add(1 + LIST_COST)
}

const PAIRWISE: Actual = Actual::ListFormula {
    list: 0,
    formula: |args, _| pairwise(args, 0),
};
const SORT: Costs = (Estimate::Formula(formula::pairwise), PAIRWISE);
const SORT_TEXT: Costs = (Estimate::Formula(formula::pairwise_text), PAIRWISE);

const PAIRWISE_KEYS: Actual = Actual::ListFormula {
    list: 1,
    formula: |args, _| pairwise(args, 1),
};
const SORT_BY: Costs = (Estimate::Formula(formula::pairwise_keys), PAIRWISE_KEYS);
const SORT_BY_TEXT: Costs = (Estimate::Formula(formula::pairwise_text_keys), PAIRWISE_KEYS);

const OUTPUT: Actual = Actual::Formula(|_, result| making(1.0, size(result)));
const SLICE: Costs = (Estimate::Formula(formula::slice), OUTPUT);
const RANGE: Costs = (Estimate::Formula(formula::range), OUTPUT);
const REVERSE: Costs = (Estimate::Formula(formula::reverse), OUTPUT);

const FLATTEN: Costs = (
    Estimate::Formula(formula::flatten),
    Actual::Formula(|args, _| {
        let depth = match args.get(1) {
            Some(Some(Val::Int(depth))) => *depth as f64,
            _ => 1.0,
        };
        // A negative depth is an error, but not free.
        let depth = if depth < 0.0 { 1.0 } else { depth };
        making(depth, size(args.first().copied().flatten()))
    }),
);

/// The quadratic cost of comparing all pairs; the first element decides whether they are text.
fn pairwise(args: &[Option<Val<'_>>], list: usize) -> u64 {
    let arena = Arena::new();
    let Some(list) = args.get(list).copied().flatten().and_then(Val::as_list) else {
        return making(2.0, 0);
    };
    let text = matches!(list.get(&arena, 0), Some(Ok(Val::Str(_) | Val::Bytes(_))));
    let factor = if text { 2.0 + TEXT_FACTOR } else { 2.0 };
    let n = list.len() as u64;
    making(factor, n.saturating_mul(n))
}

fn slice<'a>(arena: &'a Arena, list: Val<'a>, start: Val<'a>, end: Val<'a>) -> Res<'a> {
    let (list, start, end) = (list.list()?, start.int()?, end.int()?);
    let fail = |why: &str| Err(EvalError::message(format!("cannot slice({start}, {end}), {why}")));
    // The order of the checks is cel-go's, because several of them may fail.
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return fail("negative indexes not supported");
    };
    if from > to {
        return fail("start index must be less than or equal to end index");
    }
    if list.len() < to {
        return fail(&format!("list is length {}", list.len()));
    }
    // Copied without failing at elements that cannot be read: their errors surface when they are used.
    arena.list_of((from..to).filter_map(|i| list.get(arena, i)))
}

fn flatten<'a>(arena: &'a Arena, list: Val<'a>, depth: Val<'a>) -> Res<'a> {
    let (list, depth) = (list.list()?, depth.int()?);
    if depth < 0 {
        return Err(EvalError::message("level must be non-negative"));
    }
    let mut items = Vec::new();
    // The open lists: the position in each, and the levels left to flatten below it.
    let mut open = vec![(list, 0, depth)];
    while let Some((list, next, depth)) = open.last_mut() {
        // A stack instead of recursion: the nesting of lists is up to the caller.
        let Some(item) = list.get(arena, *next) else {
            open.pop();
            continue;
        };
        *next += 1;
        match item.as_ref().ok().and_then(|item| item.as_list()) {
            Some(inner) if *depth > 0 => {
                let depth = *depth - 1;
                open.push((inner, 0, depth));
            }
            _ => items.push(item),
        }
    }
    arena.list_of(items.into_iter())
}

fn sort<'a>(arena: &'a Arena, list: Val<'a>) -> Res<'a> {
    let list = list.list()?;
    sorted(arena, list, list)
}

fn sort_by_keys<'a>(arena: &'a Arena, list: Val<'a>, keys: Val<'a>) -> Res<'a> {
    sorted(arena, list.list()?, keys.list()?)
}

fn sorted<'a>(arena: &'a Arena, list: List<'a>, keys: List<'a>) -> Res<'a> {
    if list.len() != keys.len() {
        return Err(EvalError::message(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            list.len(),
            keys.len()
        )));
    }
    let mut sorted: Vec<Val<'a>> = Vec::with_capacity(keys.len());
    for key in keys.iter(arena) {
        // The type of the first key determines that of the others.
        match (key, sorted.first()) {
            (Err(e), _) if e.is_final() => return Err(e),
            (Ok(key), None) if is_comparable(key) => sorted.push(key),
            (_, None) => return Err(EvalError::message("list elements must be comparable")),
            (Ok(key), Some(first)) if key.type_name() == first.type_name() => sorted.push(key),
            (_, Some(_)) => return Err(EvalError::message("list elements must have the same type")),
        }
    }
    // cel-go returns the list itself, so it keeps its list type and its schema.
    if sorted.is_empty() {
        return Ok(list.into());
    }
    // The elements may have errors of their own; only the keys must be readable.
    let mut items: Vec<_> = sorted.into_iter().zip(list.iter(arena)).collect();
    // As in cel-go, a key that does not compare (NaN) is less than none.
    quicksort::sort(&mut items, |(a, _), (b, _)| order(*a, *b).is_lt());
    arena.list_of(items.into_iter().map(|(_, item)| item))
}

/// The maximum number of elements of a range.
// cel-go's limit: the cost is known only after the list has been built.
const MAX_RANGE: i64 = 1_000_000;

fn range<'a>(arena: &'a Arena, n: Val<'a>) -> Res<'a> {
    let n = n.int()?;
    if n < 0 {
        return Err(EvalError::message(format!(
            "lists.range: size must be non-negative, got {n}"
        )));
    }
    if n > MAX_RANGE {
        return Err(EvalError::message(format!(
            "lists.range: size {n} exceeds maximum allowed ({MAX_RANGE})"
        )));
    }
    arena.list((0..n).map(Val::Int).collect::<Vec<_>>())
}

fn reverse<'a>(arena: &'a Arena, list: Val<'a>) -> Res<'a> {
    let list = list.list()?;
    let backward = (0..list.len()).rev();
    arena.list_of(backward.filter_map(|i| list.get(arena, i)))
}

fn distinct<'a>(arena: &'a Arena, list: Val<'a>) -> Res<'a> {
    let list = list.list()?;
    if list.is_empty() {
        return Ok(list.into());
    }
    // `take` succeeds at the first occurrence only, so the order of the list is kept.
    if let Some(mut scalars) = ScalarSet::of_list(arena, list) {
        return arena.list_of(list.iter(arena).filter(|item| match item {
            Ok(item) => scalars.take(*item),
            Err(_) => true,
        }));
    }
    // Elements that cannot be read are equal to nothing.
    let mut items: Vec<Res<'a>> = Vec::new();
    for item in list.iter(arena) {
        // Quadratic for values without a hash, and the cost is charged only afterwards.
        deadline::tick_for(items.len());
        let mut seen = false;
        for other in items.iter().flatten() {
            seen = same(arena, &item, *other)?;
            if seen {
                break;
            }
        }
        if !seen {
            items.push(item);
        }
    }
    arena.list_of(items.into_iter())
}
