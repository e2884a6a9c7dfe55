//! How an overload runs and what a run costs: the two run-time columns of the overload row.

use crate::estimate::{REGEX_FACTOR, TEXT_FACTOR, scaled, text_cost};
use crate::val::{Arena, Res, Val};
use scantling_notation::regex::Pattern;
use std::fmt;

/// How an overload runs. An implementation that meets a value of a type it does not take answers
/// [`EvalError::NoSuchOverload`](crate::val::EvalError::NoSuchOverload); it never sees errors.
#[derive(Clone, Copy)]
pub enum Run {
    /// By the program itself: operators that do not evaluate all their operands, field and index access, equality.
    Special,
    /// Without arguments.
    Nullary(for<'a> fn(&'a Arena) -> Res<'a>),
    /// On one argument.
    Unary(for<'a> fn(&'a Arena, Val<'a>) -> Res<'a>),
    /// On two arguments.
    Binary(for<'a> fn(&'a Arena, Val<'a>, Val<'a>) -> Res<'a>),
    /// On three arguments.
    Ternary(for<'a> fn(&'a Arena, Val<'a>, Val<'a>, Val<'a>) -> Res<'a>),
    /// On any number of arguments.
    Variadic(for<'a> fn(&'a Arena, &[Val<'a>]) -> Res<'a>),
    /// On arguments of which the second is a regular expression. It comes compiled: once, when it is a constant. The
    /// text stands before the message about an expression that turns out to be invalid at run time.
    Pattern(
        for<'a> fn(&'a Arena, &Pattern, &[Val<'a>]) -> Res<'a>,
        &'static str,
    ),
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Run::Special => "Special",
            Run::Nullary(_) => "Nullary",
            Run::Unary(_) => "Unary",
            Run::Binary(_) => "Binary",
            Run::Ternary(_) => "Ternary",
            Run::Variadic(_) => "Variadic",
            Run::Pattern(..) => "Pattern",
        })
    }
}

/// What a call cost that has run, without its arguments. An argument or result that is an error has size 1.
///
/// A server finds some costs by the overload, others by the function's name. Where the types of the arguments leave
/// several overloads to choose from, only those found by name hold: all others cost 1.
#[derive(Clone, Copy)]
pub enum Actual {
    /// The same whatever the arguments.
    Fixed(u64),
    /// Of the overload: a pass over one argument: its size times `factor`, rounded up.
    Pass {
        /// Which argument.
        arg: usize,
        /// The cost per unit of size.
        factor: f64,
    },
    /// Of the overload: a formula.
    Formula(Formula),
    /// Of the overload: a formula for a list.
    // UPSTREAM: a server fails altogether where the list is an error.
    ListFormula {
        /// Which argument the list is.
        list: usize,
        /// The formula.
        formula: Formula,
    },
    /// Of the function: a pass over one argument: its size times `factor`, rounded up.
    NamedPass {
        /// Which argument.
        arg: usize,
        /// The cost per unit of size.
        factor: f64,
    },
    /// Of the function: a formula.
    NamedFormula(Formula),
    /// Of the overload: a search of the first argument for the regular expression that is the second.
    Search,
    /// Of the function: such a search.
    NamedSearch,
    /// Such a search, of which the regular expression is known.
    SearchFor(RegexCost),
    /// Of the overload where it is known, else of the function.
    EitherFormula {
        /// What counts where the overload is known.
        overload: Formula,
        /// What counts otherwise.
        function: Formula,
    },
}

/// What a search for a regular expression costs: the length of that for every tenth character of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegexCost {
    for_ten: u64,
}

impl RegexCost {
    /// A search for a regular expression of that size.
    pub(crate) fn new(pattern: u64) -> Self {
        RegexCost {
            for_ten: scaled(pattern, REGEX_FACTOR),
        }
    }

    /// The cost of searching a text of that size. An empty one still costs something.
    #[inline]
    pub(crate) fn cost(self, text: u64) -> u64 {
        text_cost(text.saturating_add(1)).saturating_mul(self.for_ten)
    }
}

/// A cost from the arguments and the result; `None` stands for an error.
pub type Formula = for<'a> fn(&[Option<Val<'a>>], Option<Val<'a>>) -> u64;

impl Actual {
    /// What most calls cost: 1.
    pub const NOMINAL: Actual = Actual::Fixed(1);

    /// A pass over the characters of an argument.
    pub const fn text_pass(arg: usize) -> Actual {
        Actual::Pass {
            arg,
            factor: TEXT_FACTOR,
        }
    }

    /// A pass over the characters of an argument, whatever the overload.
    pub const fn named_text_pass(arg: usize) -> Actual {
        Actual::NamedPass {
            arg,
            factor: TEXT_FACTOR,
        }
    }

    /// What the call costs where several overloads are left to choose from.
    #[must_use]
    pub fn undecided(self) -> Actual {
        match self {
            Actual::NamedPass { .. }
            | Actual::NamedFormula(_)
            | Actual::NamedSearch
            | Actual::SearchFor(_) => self,
            Actual::EitherFormula { function, .. } => Actual::NamedFormula(function),
            Actual::Fixed(_)
            | Actual::Pass { .. }
            | Actual::Formula(_)
            | Actual::ListFormula { .. }
            | Actual::Search => Actual::NOMINAL,
        }
    }

    /// The cost where some arguments are constants.
    #[must_use]
    pub(crate) fn given<'a>(self, constant: impl Fn(usize) -> Option<Val<'a>>) -> Actual {
        match self {
            Actual::Pass { arg, factor } | Actual::NamedPass { arg, factor } => match constant(arg) {
                Some(value) => Actual::Fixed(scaled(value.cost_size(), factor)),
                None => self,
            },
            Actual::Search | Actual::NamedSearch => match constant(1) {
                Some(pattern) => Actual::SearchFor(RegexCost::new(pattern.cost_size())),
                None => self,
            },
            Actual::Fixed(_)
            | Actual::Formula(_)
            | Actual::ListFormula { .. }
            | Actual::NamedFormula(_)
            | Actual::SearchFor(_)
            | Actual::EitherFormula { .. } => self,
        }
    }

    /// Whether there is no telling the cost, and so no going on.
    pub(crate) fn fails(self, args: &[Option<Val<'_>>]) -> bool {
        matches!(self, Actual::ListFormula { list, .. } if matches!(args.get(list), Some(None)))
    }

    /// The cost of a call.
    pub fn cost<'a>(self, args: &[Option<Val<'a>>], result: Option<Val<'a>>) -> u64 {
        let size = |arg: usize| size(args.get(arg).copied().flatten());
        match self {
            Actual::Fixed(cost) => cost,
            Actual::Pass { arg, factor } | Actual::NamedPass { arg, factor } => scaled(size(arg), factor),
            Actual::Search | Actual::NamedSearch => RegexCost::new(size(1)).cost(size(0)),
            Actual::SearchFor(searched) => searched.cost(size(0)),
            Actual::Formula(formula)
            | Actual::ListFormula { formula, .. }
            | Actual::NamedFormula(formula)
            | Actual::EitherFormula {
                overload: formula, ..
            } => formula(args, result),
        }
    }
}

impl fmt::Debug for Actual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Actual::Fixed(cost) => write!(f, "Fixed({cost})"),
            Actual::Pass { arg, factor } => write!(f, "Pass({arg}, {factor})"),
            Actual::Formula(_) => f.write_str("Formula"),
            Actual::ListFormula { list, .. } => write!(f, "ListFormula({list})"),
            Actual::NamedPass { arg, factor } => write!(f, "NamedPass({arg}, {factor})"),
            Actual::NamedFormula(_) => f.write_str("NamedFormula"),
            Actual::Search => f.write_str("Search"),
            Actual::NamedSearch => f.write_str("NamedSearch"),
            Actual::SearchFor(searched) => write!(f, "SearchFor({})", searched.for_ten),
            Actual::EitherFormula { .. } => f.write_str("EitherFormula"),
        }
    }
}

/// The size of an argument as cost counts it: see [`Val::cost_size`].
pub fn size(arg: Option<Val<'_>>) -> u64 {
    arg.map_or(1, Val::cost_size)
}
