//! Functions on strings.

use crate::estimate::{formula, text_cost};
use crate::overload::{Estimate, Library, Overload, Ty};
use crate::run::{Actual, Run, size};
use crate::val::{Arena, EvalError, Res, Val};
use scantling_notation::regex::Pattern;

const TWO: &[Ty] = &[Ty::String, Ty::String];

pub(super) static TEXT: Library = Library {
    name: "text",
    overloads: &[
        Overload::member(
            "contains_string",
            "contains",
            TWO,
            Ty::Bool,
            Run::Binary(contains),
        )
        .costing(
            Estimate::Formula(formula::contains),
            Actual::Formula(contains_cost),
        ),
        Overload::member(
            "ends_with_string",
            "endsWith",
            TWO,
            Ty::Bool,
            Run::Binary(ends_with),
        )
        .costing(Estimate::text_pass(1), Actual::text_pass(1)),
        Overload::member(
            "starts_with_string",
            "startsWith",
            TWO,
            Ty::Bool,
            Run::Binary(starts_with),
        )
        .costing(Estimate::text_pass(1), Actual::text_pass(1)),
        Overload::global("matches", "matches", TWO, Ty::Bool, Run::Pattern(matches, ""))
            .costing(Estimate::Formula(formula::matches), Actual::Search),
        Overload::member(
            "matches_string",
            "matches",
            TWO,
            Ty::Bool,
            Run::Pattern(matches, ""),
        )
        .costing(Estimate::Formula(formula::matches), Actual::Search),
    ],
    types: &[],
};

fn contains<'a>(_: &'a Arena, text: Val<'a>, part: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(text.str()?.contains(part.str()?)))
}

fn starts_with<'a>(_: &'a Arena, text: Val<'a>, start: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(text.str()?.starts_with(start.str()?)))
}

fn ends_with<'a>(_: &'a Arena, text: Val<'a>, end: Val<'a>) -> Res<'a> {
    Ok(Val::Bool(text.str()?.ends_with(end.str()?)))
}

fn matches<'a>(_: &'a Arena, pattern: &Pattern, args: &[Val<'a>]) -> Res<'a> {
    // One implementation for both call styles: the receiver of `text.matches(regex)` is the first argument.
    let text = args.first().ok_or(EvalError::NoSuchOverload)?.str()?;
    Ok(Val::Bool(pattern.is_match(text)))
}

fn arg_size<'a>(args: &[Option<Val<'a>>], n: usize) -> u64 {
    size(args.get(n).copied().flatten())
}

fn contains_cost<'a>(args: &[Option<Val<'a>>], _: Option<Val<'a>>) -> u64 {
    // As expensive as comparing everywhere, although the search is linear: kube-apiserver counts the product.
    text_cost(arg_size(args, 0)).saturating_mul(text_cost(arg_size(args, 1)))
}
