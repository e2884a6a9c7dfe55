//! Searches for regular expressions.

use crate::estimate::formula;
use crate::overload::{Estimate, Library, Overload, Ty};
use crate::run::{Actual, Run};
use crate::val::{Arena, EvalError, Res, Val};
use scantling_notation::regex::Pattern;

const S: Ty = Ty::String;
const COMPLAINT: &str = "Illegal regex: ";
const STRINGS: Ty = Ty::List(&Ty::String);

/// `find` and `findAll`.
pub static REGEX: Library = Library {
    name: "kubernetes.regex",
    overloads: &[
        Overload::member(
            "string_find_string",
            "find",
            &[S, S],
            S,
            Run::Pattern(find, COMPLAINT),
        )
        .costing(Estimate::Formula(formula::find), Actual::NamedSearch),
        Overload::member(
            "string_find_all_string",
            "findAll",
            &[S, S],
            STRINGS,
            Run::Pattern(find_all, COMPLAINT),
        )
        .costing(Estimate::Formula(formula::find), Actual::NamedSearch),
        Overload::member(
            "string_find_all_string_int",
            "findAll",
            &[S, S, Ty::Int],
            STRINGS,
            Run::Pattern(find_all, COMPLAINT),
        )
        .costing(Estimate::Formula(formula::find), Actual::NamedSearch),
    ],
    types: &[],
};

fn find<'a>(_: &'a Arena, pattern: &Pattern, args: &[Val<'a>]) -> Res<'a> {
    let &[text, _] = args else {
        return Err(EvalError::NoSuchOverload);
    };
    // No match and an empty match give the same result.
    Ok(Val::Str(pattern.find(text.str()?).unwrap_or("")))
}

fn find_all<'a>(arena: &'a Arena, pattern: &Pattern, args: &[Val<'a>]) -> Res<'a> {
    let (text, limit) = match *args {
        [text, _] => (text.str()?, -1),
        [text, _, limit] => (text.str()?, limit.int()?),
        _ => return Err(EvalError::NoSuchOverload),
    };
    // A negative limit means no limit.
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = pattern.matches(text, limit).into_iter();
    arena.list(found.map(Val::Str).collect::<Vec<_>>())
}
