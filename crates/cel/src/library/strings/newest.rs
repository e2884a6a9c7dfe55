//! Version 5: like version 4, with a cost for every function and a limited precision of numbers.

use super::{FORMAT_PARAMS, I, QUOTE, S, STRINGS, format};
use crate::estimate::{Bounds, CallEstimate, LIST_COST, Operand, TEXT_FACTOR, text_cost};
use crate::overload::{Estimate, Library, Overload};
use crate::run::{Actual, Run, size};
use crate::val::Val;

/// All functions of version 5.
pub static NEWEST: Library = Library {
    name: "strings 5",
    overloads: &[
        Overload::member(
            "string_char_at_int",
            "charAt",
            &[S, I],
            S,
            Run::Binary(super::char_at),
        )
        .costing(Estimate::Formula(char_at), Actual::Formula(actual_char_at)),
        Overload::member(
            "string_index_of_string",
            "indexOf",
            &[S, S],
            I,
            Run::Binary(super::index_of),
        )
        .costing(Estimate::Formula(search), Actual::Formula(actual_search)),
        Overload::member(
            "string_index_of_string_int",
            "indexOf",
            &[S, S, I],
            I,
            Run::Ternary(super::index_of_from),
        )
        .costing(Estimate::Formula(search), Actual::Formula(actual_search)),
        Overload::member(
            "string_last_index_of_string",
            "lastIndexOf",
            &[S, S],
            I,
            Run::Binary(super::last_index_of),
        )
        .costing(Estimate::Formula(search), Actual::Formula(actual_search)),
        Overload::member(
            "string_last_index_of_string_int",
            "lastIndexOf",
            &[S, S, I],
            I,
            Run::Ternary(super::last_index_of_from),
        )
        .costing(Estimate::Formula(search), Actual::Formula(actual_search)),
        Overload::member(
            "string_lower_ascii",
            "lowerAscii",
            &[S],
            S,
            Run::Unary(super::lower_ascii),
        )
        .costing(Estimate::Formula(same_size), Actual::Formula(actual_transform)),
        Overload::member(
            "string_replace_string_string",
            "replace",
            &[S, S, S],
            S,
            Run::Ternary(super::replace),
        )
        .costing(Estimate::Formula(replace), Actual::Formula(actual_replace)),
        Overload::member(
            "string_replace_string_string_int",
            "replace",
            &[S, S, S, I],
            S,
            Run::Variadic(super::replace_some),
        )
        .costing(Estimate::Formula(replace), Actual::Formula(actual_replace)),
        Overload::member(
            "string_split_string",
            "split",
            &[S, S],
            STRINGS,
            Run::Binary(super::split),
        )
        .costing(Estimate::Formula(split), Actual::Formula(actual_split)),
        Overload::member(
            "string_split_string_int",
            "split",
            &[S, S, I],
            STRINGS,
            Run::Ternary(super::split_some),
        )
        .costing(Estimate::Formula(split), Actual::Formula(actual_split)),
        Overload::member(
            "string_substring_int",
            "substring",
            &[S, I],
            S,
            Run::Binary(super::substring_from),
        )
        .costing(Estimate::Formula(substring), Actual::Formula(actual_transform)),
        Overload::member(
            "string_substring_int_int",
            "substring",
            &[S, I, I],
            S,
            Run::Ternary(super::substring),
        )
        .costing(Estimate::Formula(substring), Actual::Formula(actual_transform)),
        Overload::member("string_trim", "trim", &[S], S, Run::Unary(super::trim))
            .costing(Estimate::Formula(up_to_size), Actual::Formula(actual_transform)),
        Overload::member(
            "string_upper_ascii",
            "upperAscii",
            &[S],
            S,
            Run::Unary(super::upper_ascii),
        )
        .costing(Estimate::Formula(same_size), Actual::Formula(actual_transform)),
        Overload::member("string_reverse", "reverse", &[S], S, Run::Unary(super::reverse))
            .costing(Estimate::Formula(same_size), Actual::Formula(actual_transform)),
        Overload::member("list_join", "join", &[STRINGS], S, Run::Unary(super::join_all))
            .costing(Estimate::Formula(join), Actual::Formula(actual_join)),
        Overload::member(
            "list_join_string",
            "join",
            &[STRINGS, S],
            S,
            Run::Binary(super::join),
        )
        .costing(Estimate::Formula(join), Actual::Formula(actual_join)),
        Overload::member(
            "string_format",
            "format",
            FORMAT_PARAMS,
            S,
            Run::Binary(format::limited),
        )
        .costing(Estimate::text_pass(0), Actual::text_pass(0)),
        QUOTE,
    ],
    types: &[],
};

const ONE: Bounds = Bounds::exactly(1);

fn operand_size(operands: &[Operand<'_>], n: usize) -> Bounds {
    operands.get(n).map_or(Bounds::UNKNOWN, Operand::size)
}

fn pass(size: Bounds) -> Bounds {
    size.scaled(TEXT_FACTOR).plus(ONE)
}

fn giving(cost: Bounds, result: Bounds) -> CallEstimate {
    CallEstimate {
        cost,
        result: Some(result),
    }
}

fn same_size(operands: &[Operand<'_>]) -> CallEstimate {
    let text = operand_size(operands, 0);
    giving(pass(text).plus(text), text)
}

fn up_to_size(operands: &[Operand<'_>]) -> CallEstimate {
    let text = operand_size(operands, 0);
    let result = Bounds::up_to(text.max);
    giving(pass(text).plus(result), result)
}

fn char_at(operands: &[Operand<'_>]) -> CallEstimate {
    giving(pass(operand_size(operands, 0)).plus(ONE), Bounds::up_to(1))
}

fn substring(operands: &[Operand<'_>]) -> CallEstimate {
    let text = operand_size(operands, 0);
    let index = |n: usize, otherwise| {
        operands
            .get(n)
            .and_then(Operand::constant_index)
            .unwrap_or(otherwise)
    };
    // UPSTREAM: a start after the end wraps around.
    let result = Bounds::exactly(index(2, text.max).wrapping_sub(index(1, 0)));
    giving(pass(text).plus(result), result)
}

fn search(operands: &[Operand<'_>]) -> CallEstimate {
    let pairs = operand_size(operands, 0).times(operand_size(operands, 1));
    CallEstimate::cost(pass(pairs))
}

fn at_least_one(size: Bounds) -> Bounds {
    Bounds {
        min: size.min.max(1),
        max: size.max.max(1),
    }
}

fn replace(operands: &[Operand<'_>]) -> CallEstimate {
    let (text, old) = (operand_size(operands, 0), operand_size(operands, 1));
    let new = operand_size(operands, 2).plus(ONE);
    let result = Bounds {
        min: text.min.min(new.min),
        max: text.max.saturating_add(1).saturating_mul(new.max),
    };
    giving(
        pass(at_least_one(text).times(at_least_one(old))).plus(result),
        result,
    )
}

fn split(operands: &[Operand<'_>]) -> CallEstimate {
    let text = operand_size(operands, 0);
    let result = Bounds::up_to(text.max);
    giving(
        pass(text.plus(ONE))
            .plus(result.scaled(1.0))
            .plus(Bounds::exactly(LIST_COST)),
        result,
    )
}

fn join(operands: &[Operand<'_>]) -> CallEstimate {
    let list = operand_size(operands, 0);
    let separator = operands.get(1).map_or(0, |o| o.size().max);
    let most = list
        .max
        .saturating_mul(separator.saturating_add(1))
        .saturating_add(separator);
    let result = Bounds::up_to(most);
    giving(pass(list.plus(ONE)).plus(result.scaled(1.0)), result)
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
