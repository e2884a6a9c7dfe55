//! Lists as sets.

use super::scalars::ScalarSet;
use crate::estimate::formula;
use crate::overload::{Costs, Estimate, Library, Ty, overloads};
use crate::run::{Actual, size};
use crate::val::{self, Arena, EvalError, List, Res, Val};

const LIST: Ty = Ty::List(&Ty::Param("T"));
const ONE_WAY: Costs = (
    Estimate::Formula(formula::sets_one_way),
    Actual::Formula(|args, _| pairs(args, 1.0)),
);
const BOTH_WAYS: Costs = (
    Estimate::Formula(formula::sets_both_ways),
    Actual::Formula(|args, _| pairs(args, 2.0)),
);

/// Subsets, intersections and equivalence.
pub static SETS: Library = Library {
    name: "sets",
    overloads: overloads! {
        "list_sets_contains_list": global "sets.contains"(LIST, LIST) -> Bool => Binary(contains), ONE_WAY;
        "list_sets_equivalent_list": global "sets.equivalent"(LIST, LIST) -> Bool
            => Binary(equivalent), BOTH_WAYS;
        "list_sets_intersects_list": global "sets.intersects"(LIST, LIST) -> Bool
            => Binary(intersects), ONE_WAY;
    },
    types: &[],
};

/// The cost of comparing every element of one list with every element of the other.
fn pairs(args: &[Option<Val<'_>>], factor: f64) -> u64 {
    let n = |i: usize| size(args.get(i).copied().flatten());
    // Wraps around like Go's multiplication of unsigned integers; real lists are too short for that.
    ((n(0).wrapping_mul(n(1)) as f64 * factor) as u64).saturating_add(1)
}

fn contains<'a>(arena: &'a Arena, list: Val<'a>, part: Val<'a>) -> Res<'a> {
    contains_all(arena, list.list()?, part.list()?).map(Val::Bool)
}

fn contains_all<'a>(arena: &'a Arena, list: List<'a>, part: List<'a>) -> Result<bool, EvalError> {
    // Built once for all elements of the other list.
    let scalars = ScalarSet::of_list(arena, list);
    for item in part.iter(arena) {
        if !is_in(arena, list, scalars.as_ref(), item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns whether a value is in a list, using its set of scalars if there is one.
fn is_in<'a>(
    arena: &'a Arena,
    list: List<'a>,
    scalars: Option<&ScalarSet<'a>>,
    item: Val<'a>,
) -> Result<bool, EvalError> {
    match scalars.and_then(|scalars| scalars.contains(item)) {
        Some(found) => Ok(found),
        None => val::contains(arena, list, item),
    }
}

fn equivalent<'a>(arena: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    let (a, b) = (a.list()?, b.list()?);
    Ok(Val::Bool(
        contains_all(arena, a, b)? && contains_all(arena, b, a)?,
    ))
}

fn intersects<'a>(arena: &'a Arena, a: Val<'a>, b: Val<'a>) -> Res<'a> {
    let (a, b) = (a.list()?, b.list()?);
    let scalars = ScalarSet::of_list(arena, b);
    for item in a.iter(arena) {
        // Incomparable elements are not in the other list.
        match item.and_then(|item| is_in(arena, b, scalars.as_ref(), item)) {
            Ok(true) => return Ok(Val::TRUE),
            Err(e) if e.is_final() => return Err(e),
            _ => {}
        }
    }
    Ok(Val::FALSE)
}
