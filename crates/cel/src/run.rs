//! The run-time columns of an overload: implementation and actual cost.

use crate::estimate::{REGEX_FACTOR, TEXT_FACTOR, scaled, text_cost};
use crate::val::{Arena, Res, Val};
use scantling_notation::regex::Pattern;
use std::fmt;

/// The implementation of an overload. It returns [`EvalError::NoSuchOverload`](crate::val::EvalError::NoSuchOverload) for
/// a value of the wrong type. It is only called if no argument is an error.
#[derive(Clone, Copy)]
pub enum Run {
    /// Implemented by the interpreter: short-circuit operators, attributes, equality.
    Special,
    /// No arguments.
    Nullary(for<'a> fn(&'a Arena) -> Res<'a>),
    /// One argument.
    Unary(for<'a> fn(&'a Arena, Val<'a>) -> Res<'a>),
    /// Two arguments.
    Binary(for<'a> fn(&'a Arena, Val<'a>, Val<'a>) -> Res<'a>),
    /// Three arguments.
    Ternary(for<'a> fn(&'a Arena, Val<'a>, Val<'a>, Val<'a>) -> Res<'a>),
    /// Any number of arguments.
    Variadic(for<'a> fn(&'a Arena, &[Val<'a>]) -> Res<'a>),
    /// The second argument is a regular expression, which is compiled once if it is a constant. The string is a prefix
    /// for the error message of an invalid expression at run time.
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

/// The actual cost of a call without its arguments. An argument or result that is an error has size 1.
///
/// kube-apiserver looks up some costs by overload and others by function name. If the checker leaves several overloads,
/// only costs by name apply; all other calls cost 1.
#[derive(Clone, Copy)]
pub enum Actual {
    /// A fixed cost.
    Fixed(u64),
    /// By overload: a pass over one argument, its size times `factor`, rounded up.
    Pass {
        /// The index of the argument.
        arg: usize,
        /// The cost per unit of size.
        factor: f64,
    },
    /// By overload: a formula.
    Formula(Formula),
    /// By overload: a formula for a list.
    // UPSTREAM: kube-apiserver fails altogether if the list is an error.
    ListFormula {
        /// The index of the list argument.
        list: usize,
        /// The formula.
        formula: Formula,
    },
    /// By function: a pass over one argument, its size times `factor`, rounded up.
    NamedPass {
        /// The index of the argument.
        arg: usize,
        /// The cost per unit of size.
        factor: f64,
    },
    /// By function: a formula.
    NamedFormula(Formula),
    /// By overload: a search in the first argument for the regular expression in the second.
    Search,
    /// By function: the same search.
    NamedSearch,
    /// The same search for a constant regular expression.
    SearchFor(RegexCost),
    /// By overload if it is known, otherwise by function.
    EitherFormula {
        /// The formula by overload.
        overload: Formula,
        /// The formula by function.
        function: Formula,
    },
}

/// The cost of a search for a regular expression: its length, for every ten characters of the text.
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

    /// The cost of searching a text of this size. Even an empty text has a cost.
    #[inline]
    pub(crate) fn cost(self, text: u64) -> u64 {
        text_cost(text.saturating_add(1)).saturating_mul(self.for_ten)
    }
}

/// Computes a cost from the arguments and the result; `None` stands for an error.
pub type Formula = for<'a> fn(&[Option<Val<'a>>], Option<Val<'a>>) -> u64;

impl Actual {
    /// The cost of most calls: 1.
    pub const NOMINAL: Actual = Actual::Fixed(1);

    /// A pass over the characters of an argument.
    pub const fn text_pass(arg: usize) -> Actual {
        Actual::Pass {
            arg,
            factor: TEXT_FACTOR,
        }
    }

    /// A pass over the characters of an argument, by function.
    pub const fn named_text_pass(arg: usize) -> Actual {
        Actual::NamedPass {
            arg,
            factor: TEXT_FACTOR,
        }
    }

    /// The cost if the checker leaves several overloads.
    #[must_use]
    pub fn undecided(self) -> Actual {
        match self {
            Actual::NamedPass { .. }
            | Actual::NamedFormula(_)
            | Actual::NamedSearch
            | Actual::SearchFor(_) => self,
            // The overload's formula needs the overload's identifier, which kube-apiserver does not know here.
            Actual::EitherFormula { function, .. } => Actual::NamedFormula(function),
            Actual::Fixed(_)
            | Actual::Pass { .. }
            | Actual::Formula(_)
            | Actual::ListFormula { .. }
            | Actual::Search => Actual::NOMINAL,
        }
    }

    /// Precomputes the parts that depend on constant arguments.
    #[must_use]
    pub(crate) fn given<'a>(self, constant: impl Fn(usize) -> Option<Val<'a>>) -> Actual {
        match self {
            Actual::Pass { arg, factor } | Actual::NamedPass { arg, factor } => match constant(arg) {
                // The size of a constant never changes, so neither does the cost.
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

    /// Returns whether kube-apiserver fails to compute the cost, which ends the evaluation.
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

/// The size of an argument for the cost, see [`Val::cost_size`].
pub fn size(arg: Option<Val<'_>>) -> u64 {
    // cel-go's values for errors have no size, and everything without a size counts as 1.
    arg.map_or(1, Val::cost_size)
}
