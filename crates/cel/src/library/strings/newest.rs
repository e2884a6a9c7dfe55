//! Version 5: like version 4, with a cost for every function and a limited precision of numbers.

use super::{
    FORMAT_PASS, I, QUOTE, S, STRINGS, char_at, format, index_of, join, last_index_of, last_index_of_from,
    lower_ascii, quote, replace, reverse, split, string_functions, substring, substring_from, upper_ascii,
};
use crate::estimate::{Bounds, CallEstimate, LIST_COST, Operand, TEXT_FACTOR, text_cost};
use crate::overload::{Costs, Estimate, Library};
use crate::run::{Actual, size};
use crate::val::Val;

/// All functions of version 5.
pub static NEWEST: Library = Library {
    name: "strings 5",
    overloads: string_functions!(
        [CHAR_AT, SEARCH, SAME_SIZE, REPLACE, SPLIT, SUBSTRING, UP_TO_SIZE, JOIN]
        "string_reverse": member "reverse"(S) -> S => Unary(reverse), SAME_SIZE;
        "string_format": member "format"(S, List(&Dyn)) -> S => Binary(format::limited), FORMAT_PASS;
        "strings_quote": global "strings.quote"(S) -> S => Unary(quote), QUOTE;
    ),
    types: &[],
};

const CHAR_AT: Costs = (Estimate::Formula(char_at_cost), Actual::Formula(actual_char_at));
const SEARCH: Costs = (Estimate::Formula(search_cost), Actual::Formula(actual_search));
const SAME_SIZE: Costs = (Estimate::Formula(same_size), Actual::Formula(actual_transform));
const UP_TO_SIZE: Costs = (Estimate::Formula(up_to_size), Actual::Formula(actual_transform));
const SUBSTRING: Costs = (
    Estimate::Formula(substring_cost),
    Actual::Formula(actual_transform),
);
const REPLACE: Costs = (Estimate::Formula(replace_cost), Actual::Formula(actual_replace));
const SPLIT: Costs = (Estimate::Formula(split_cost), Actual::Formula(actual_split));
const JOIN: Costs = (Estimate::Formula(join_cost), Actual::Formula(actual_join));

const ONE: Bounds = Bounds::exactly(1);

fn operand_size(operands: &[Operand<'_>], n: usize) -> Bounds {
    operands.get(n).map_or(Bounds::UNKNOWN, Operand::size)
}

fn one_pass_cost(size: Bounds) -> Bounds {
    size.scaled(TEXT_FACTOR).plus(ONE)
}

fn same_size(operands: &[Operand<'_>]) -> CallEstimate {
    let text = operand_size(operands, 0);
    CallEstimate::sized(one_pass_cost(text).plus(text), text)
}

fn up_to_size(operands: &[Operand<'_>]) -> CallEstimate {
    let text = operand_size(operands, 0);
    let result = Bounds::up_to(text.max);
    CallEstimate::sized(one_pass_cost(text).plus(result), result)
}

fn char_at_cost(operands: &[Operand<'_>]) -> CallEstimate {
    CallEstimate::sized(
        one_pass_cost(operand_size(operands, 0)).plus(ONE),
        Bounds::up_to(1),
    )
}

fn substring_cost(operands: &[Operand<'_>]) -> CallEstimate {
    let text = operand_size(operands, 0);
    let index = |n: usize, otherwise| {
        operands
            .get(n)
            .and_then(Operand::constant_index)
            .unwrap_or(otherwise)
    };
    // UPSTREAM: a start after the end wraps around.
    let result = Bounds::exactly(index(2, text.max).wrapping_sub(index(1, 0)));
    CallEstimate::sized(one_pass_cost(text).plus(result), result)
}

fn search_cost(operands: &[Operand<'_>]) -> CallEstimate {
    let pairs = operand_size(operands, 0).times(operand_size(operands, 1));
    CallEstimate::cost(one_pass_cost(pairs))
}

fn at_least_one(size: Bounds) -> Bounds {
    Bounds::new(size.min.max(1), size.max.max(1))
}

fn replace_cost(operands: &[Operand<'_>]) -> CallEstimate {
    let (text, old) = (operand_size(operands, 0), operand_size(operands, 1));
    let new = operand_size(operands, 2).plus(ONE);
    let result = Bounds::new(
        text.min.min(new.min),
        text.max.saturating_add(1).saturating_mul(new.max),
    );
    CallEstimate::sized(
        one_pass_cost(at_least_one(text).times(at_least_one(old))).plus(result),
        result,
    )
}

fn split_cost(operands: &[Operand<'_>]) -> CallEstimate {
    let text = operand_size(operands, 0);
    let result = Bounds::up_to(text.max);
    CallEstimate::sized(
        one_pass_cost(text.plus(ONE))
            .plus(result.scaled(1.0))
            .plus(Bounds::exactly(LIST_COST)),
        result,
    )
}

fn join_cost(operands: &[Operand<'_>]) -> CallEstimate {
    let list = operand_size(operands, 0);
    let separator = operands.get(1).map_or(0, |o| o.size().max);
    let most = list
        .max
        .saturating_mul(separator.saturating_add(1))
        .saturating_add(separator);
    let result = Bounds::up_to(most);
    CallEstimate::sized(one_pass_cost(list.plus(ONE)).plus(result.scaled(1.0)), result)
}

fn arg_size(args: &[Option<Val<'_>>], n: usize) -> u64 {
    size(args.get(n).copied().flatten())
}

fn actual_pass(size: u64) -> u64 {
    text_cost(size).saturating_add(1)
}

fn actual_char_at(args: &[Option<Val<'_>>], _: Option<Val<'_>>) -> u64 {
    actual_pass(arg_size(args, 0)).saturating_add(1)
}

fn actual_transform(args: &[Option<Val<'_>>], result: Option<Val<'_>>) -> u64 {
    actual_pass(arg_size(args, 0)).saturating_add(size(result))
}

fn actual_search(args: &[Option<Val<'_>>], _: Option<Val<'_>>) -> u64 {
    actual_pass(arg_size(args, 0).saturating_mul(arg_size(args, 1)))
}

fn actual_replace(args: &[Option<Val<'_>>], result: Option<Val<'_>>) -> u64 {
    let pairs = arg_size(args, 0).max(1).saturating_mul(arg_size(args, 1).max(1));
    actual_pass(pairs).saturating_add(size(result))
}

fn actual_split(args: &[Option<Val<'_>>], result: Option<Val<'_>>) -> u64 {
    actual_pass(arg_size(args, 0).saturating_add(1))
        .saturating_add(size(result))
        .saturating_add(LIST_COST)
}

fn actual_join(args: &[Option<Val<'_>>], result: Option<Val<'_>>) -> u64 {
    actual_pass(arg_size(args, 0).saturating_add(1)).saturating_add(size(result))
}
