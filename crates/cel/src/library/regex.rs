//! Searches for regular expressions.

use crate::estimate::formula;
use crate::overload::{Costs, Estimate, Library, Ty, overloads};
use crate::run::Actual;
use crate::val::{Arena, EvalError, Res, Val};
use scantling_notation::regex::Pattern;

const S: Ty = Ty::String;
const COMPLAINT: &str = "Illegal regex: ";
const STRINGS: Ty = Ty::List(&Ty::String);
const FIND: Costs = (Estimate::Formula(formula::find), Actual::NamedSearch);

/// `find` and `findAll`.
pub static REGEX: Library = Library {
    name: "kubernetes.regex",
    overloads: overloads! {
        "string_find_string": member "find"(S, S) -> S => Pattern(find, COMPLAINT), FIND;
        "string_find_all_string": member "findAll"(S, S) -> STRINGS => Pattern(find_all, COMPLAINT), FIND;
        "string_find_all_string_int": member "findAll"(S, S, Int) -> STRINGS
            => Pattern(find_all, COMPLAINT), FIND;
    },
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
