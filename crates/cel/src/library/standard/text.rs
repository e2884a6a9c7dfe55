//! Functions on strings.

use crate::estimate::{formula, text_cost};
use crate::overload::{Costs, Estimate, Library, overloads};
use crate::run::{Actual, size};
use crate::val::{Arena, EvalError, Res, Val};
use scantling_notation::regex::Pattern;

const CONTAINS: Costs = (
    Estimate::Formula(formula::contains),
    Actual::Formula(contains_cost),
);
/// A pass over the second operand.
const PASS: Costs = (Estimate::text_pass(1), Actual::text_pass(1));
const MATCHES: Costs = (Estimate::Formula(formula::matches), Actual::Search);

pub(super) static TEXT: Library = Library {
    name: "text",
    overloads: overloads! {
        "contains_string": member "contains"(String, String) -> Bool
            => Binary(|_, text, part| Ok(Val::Bool(text.str()?.contains(part.str()?)))), CONTAINS;
        "ends_with_string": member "endsWith"(String, String) -> Bool
            => Binary(|_, text, part| Ok(Val::Bool(text.str()?.ends_with(part.str()?)))), PASS;
        "starts_with_string": member "startsWith"(String, String) -> Bool
            => Binary(|_, text, part| Ok(Val::Bool(text.str()?.starts_with(part.str()?)))), PASS;
        "matches": global "matches"(String, String) -> Bool => Pattern(matches, ""), MATCHES;
        "matches_string": member "matches"(String, String) -> Bool => Pattern(matches, ""), MATCHES;
    },
    types: &[],
};

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
