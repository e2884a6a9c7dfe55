//! Comprehension macros and `has`.

use super::{
    ACCUMULATOR, ExpandResult, Expander, FORMER_ACCUMULATOR, FoldParts, MacroError, UNUSED, into_ident,
};
use crate::ast::{Expr, ExprKind};
use std::sync::Arc;

const NOT_SIMPLE: &str = "argument must be a simple name";
const NOT_IDENTIFIER: &str = "argument is not an identifier";
const OVERWRITES: &str = "iteration variable overwrites accumulator variable";

/// The variables of a comprehension.
struct IterVars {
    first: Arc<str>,
    second: Option<Arc<str>>,
}

impl IterVars {
    fn one(x: &Expander<'_>, var: Expr, otherwise: &'static str) -> Result<Self, MacroError> {
        let id = var.id;
        // The errors and their order are cel-go's: first the form of the names, then their meaning.
        let first = into_ident(var).map_err(|id| x.error(id, otherwise))?;
        if is_accumulator(&first) {
            return Err(x.error(id, OVERWRITES));
        }
        Ok(IterVars { first, second: None })
    }

    fn two(x: &Expander<'_>, first: Expr, second: Expr) -> Result<Self, MacroError> {
        let (first_id, second_id) = (first.id, second.id);
        let first = into_ident(first).map_err(|id| x.error(id, NOT_SIMPLE))?;
        let second = into_ident(second).map_err(|id| x.error(id, NOT_SIMPLE))?;
        if first == second {
            return Err(x.error(second_id, format!("duplicate variable name: {first}")));
        }
        if is_accumulator(&first) {
            return Err(x.error(first_id, OVERWRITES));
        }
        if is_accumulator(&second) {
            return Err(x.error(second_id, OVERWRITES));
        }
        Ok(IterVars {
            first,
            second: Some(second),
        })
    }
}

fn is_accumulator(name: &str) -> bool {
    name == ACCUMULATOR || name == FORMER_ACCUMULATOR
}

/// `has(operand.field)`
pub(super) fn has(x: &mut Expander<'_>, [arg]: [Expr; 1]) -> ExpandResult {
    match arg.kind {
        // A new node at the position of the call: errors about the field point to the call of `has`.
        ExprKind::Select { operand, field, .. } => Ok(x.node(ExprKind::Select {
            operand,
            field,
            test: true,
        })),
        _ => Err(x.error(arg.id, "invalid argument to has() macro")),
    }
}

/// `range.all(var, predicate)`
pub(super) fn all(x: &mut Expander<'_>, range: Expr, [var, predicate]: [Expr; 2]) -> ExpandResult {
    let vars = IterVars::one(x, var, NOT_SIMPLE)?;
    Ok(all_of(x, range, vars, predicate))
}

/// `range.all(key, value, predicate)`
pub(super) fn all2(x: &mut Expander<'_>, range: Expr, [key, value, predicate]: [Expr; 3]) -> ExpandResult {
    let vars = IterVars::two(x, key, value)?;
    Ok(all_of(x, range, vars, predicate))
}

fn all_of(x: &mut Expander<'_>, range: Expr, vars: IterVars, predicate: Expr) -> Expr {
    // Nodes are numbered in the order in which they are built, so the order of these statements is cel-go's.
    let init = x.bool(true);
    let accu = x.accu();
    let condition = x.call("@not_strictly_false", vec![accu]);
    let accu = x.accu();
    let step = x.call("_&&_", vec![accu, predicate]);
    let result = x.accu();
    fold(x, range, vars, [init, condition, step, result])
}

/// `range.exists(var, predicate)`
pub(super) fn exists(x: &mut Expander<'_>, range: Expr, [var, predicate]: [Expr; 2]) -> ExpandResult {
    let vars = IterVars::one(x, var, NOT_SIMPLE)?;
    Ok(any_of(x, range, vars, predicate))
}

/// `range.exists(key, value, predicate)`
pub(super) fn exists2(x: &mut Expander<'_>, range: Expr, [key, value, predicate]: [Expr; 3]) -> ExpandResult {
    let vars = IterVars::two(x, key, value)?;
    Ok(any_of(x, range, vars, predicate))
}

fn any_of(x: &mut Expander<'_>, range: Expr, vars: IterVars, predicate: Expr) -> Expr {
    let init = x.bool(false);
    let accu = x.accu();
    let not = x.call("!_", vec![accu]);
    let condition = x.call("@not_strictly_false", vec![not]);
    let accu = x.accu();
    let step = x.call("_||_", vec![accu, predicate]);
    let result = x.accu();
    fold(x, range, vars, [init, condition, step, result])
}

/// `range.exists_one(var, predicate)`
pub(super) fn exists_one(x: &mut Expander<'_>, range: Expr, [var, predicate]: [Expr; 2]) -> ExpandResult {
    let vars = IterVars::one(x, var, NOT_SIMPLE)?;
    Ok(one_of(x, range, vars, predicate))
}

/// `range.exists_one(key, value, predicate)`
pub(super) fn exists_one2(
    x: &mut Expander<'_>,
    range: Expr,
    [key, value, predicate]: [Expr; 3],
) -> ExpandResult {
    let vars = IterVars::two(x, key, value)?;
    Ok(one_of(x, range, vars, predicate))
}

fn one_of(x: &mut Expander<'_>, range: Expr, vars: IterVars, predicate: Expr) -> Expr {
    let init = x.int(0);
    let condition = x.bool(true);
    let accu = x.accu();
    let one = x.int(1);
    let more = x.call("_+_", vec![accu, one]);
    let same = x.accu();
    let step = x.call("_?_:_", vec![predicate, more, same]);
    let accu = x.accu();
    let one = x.int(1);
    let result = x.call("_==_", vec![accu, one]);
    fold(x, range, vars, [init, condition, step, result])
}

/// `range.map(var, transform)`
pub(super) fn map(x: &mut Expander<'_>, range: Expr, [var, transform]: [Expr; 2]) -> ExpandResult {
    let vars = IterVars::one(x, var, NOT_IDENTIFIER)?;
    Ok(collect(x, range, vars, None, transform))
}

/// `range.map(var, predicate, transform)`
pub(super) fn map_filtered(
    x: &mut Expander<'_>,
    range: Expr,
    [var, predicate, transform]: [Expr; 3],
) -> ExpandResult {
    let vars = IterVars::one(x, var, NOT_IDENTIFIER)?;
    Ok(collect(x, range, vars, Some(predicate), transform))
}

/// `range.filter(var, predicate)`
pub(super) fn filter(x: &mut Expander<'_>, range: Expr, [var, predicate]: [Expr; 2]) -> ExpandResult {
    // UPSTREAM: the element is the variable node itself, with its identifier and position.
    let element = var.clone();
    let vars = IterVars::one(x, var, NOT_IDENTIFIER)?;
    Ok(collect(x, range, vars, Some(predicate), element))
}

/// Collects transformed elements in a list.
fn collect(
    x: &mut Expander<'_>,
    range: Expr,
    vars: IterVars,
    predicate: Option<Expr>,
    transform: Expr,
) -> Expr {
    let init = x.list(Vec::new());
    let condition = x.bool(true);
    let step = append(x, predicate, transform);
    let result = x.accu();
    fold(x, range, vars, [init, condition, step, result])
}

/// `@result + [element]`
fn append(x: &mut Expander<'_>, predicate: Option<Expr>, element: Expr) -> Expr {
    let accu = x.accu();
    let element = x.list(vec![element]);
    let step = x.call("_+_", vec![accu, element]);
    only_if(x, predicate, step)
}

/// `predicate ? step : @result`
fn only_if(x: &mut Expander<'_>, predicate: Option<Expr>, step: Expr) -> Expr {
    match predicate {
        Some(predicate) => {
            let same = x.accu();
            x.call("_?_:_", vec![predicate, step, same])
        }
        None => step,
    }
}

/// `range.transformList(key, value, transform)`
pub(super) fn transform_list(
    x: &mut Expander<'_>,
    range: Expr,
    [k, v, transform]: [Expr; 3],
) -> ExpandResult {
    let vars = IterVars::two(x, k, v)?;
    Ok(list_of(x, range, vars, None, transform))
}

/// `range.transformList(key, value, predicate, transform)`
pub(super) fn transform_list_filtered(
    x: &mut Expander<'_>,
    range: Expr,
    [k, v, predicate, transform]: [Expr; 4],
) -> ExpandResult {
    let vars = IterVars::two(x, k, v)?;
    Ok(list_of(x, range, vars, Some(predicate), transform))
}

fn list_of(
    x: &mut Expander<'_>,
    range: Expr,
    vars: IterVars,
    predicate: Option<Expr>,
    transform: Expr,
) -> Expr {
    let step = append(x, predicate, transform);
    let init = x.list(Vec::new());
    let condition = x.bool(true);
    let result = x.accu();
    fold(x, range, vars, [init, condition, step, result])
}

/// `range.transformMap(key, value, transform)`
pub(super) fn transform_map(x: &mut Expander<'_>, range: Expr, [k, v, transform]: [Expr; 3]) -> ExpandResult {
    let vars = IterVars::two(x, k, v)?;
    Ok(map_of(x, range, vars, None, MapInsertion::ValueOfKey(transform)))
}

/// `range.transformMap(key, value, predicate, transform)`
pub(super) fn transform_map_filtered(
    x: &mut Expander<'_>,
    range: Expr,
    [k, v, predicate, transform]: [Expr; 4],
) -> ExpandResult {
    let vars = IterVars::two(x, k, v)?;
    Ok(map_of(
        x,
        range,
        vars,
        Some(predicate),
        MapInsertion::ValueOfKey(transform),
    ))
}

/// `range.transformMapEntry(key, value, transform)`
pub(super) fn transform_map_entry(
    x: &mut Expander<'_>,
    range: Expr,
    [k, v, transform]: [Expr; 3],
) -> ExpandResult {
    let vars = IterVars::two(x, k, v)?;
    Ok(map_of(x, range, vars, None, MapInsertion::Entries(transform)))
}

/// `range.transformMapEntry(key, value, predicate, transform)`
pub(super) fn transform_map_entry_filtered(
    x: &mut Expander<'_>,
    range: Expr,
    [k, v, predicate, transform]: [Expr; 4],
) -> ExpandResult {
    let vars = IterVars::two(x, k, v)?;
    Ok(map_of(
        x,
        range,
        vars,
        Some(predicate),
        MapInsertion::Entries(transform),
    ))
}

/// The entries that an iteration adds.
enum MapInsertion {
    /// A value under the current key.
    ValueOfKey(Expr),
    /// The entries of another map.
    Entries(Expr),
}

fn map_of(
    x: &mut Expander<'_>,
    range: Expr,
    vars: IterVars,
    predicate: Option<Expr>,
    inserted: MapInsertion,
) -> Expr {
    let accu = x.accu();
    let args = match inserted {
        MapInsertion::ValueOfKey(value) => vec![accu, x.ident(&vars.first), value],
        MapInsertion::Entries(entries) => vec![accu, entries],
    };
    // Unlike the standard macros, cel-go builds the step before the other parts here.
    let step = x.call("cel.@mapInsert", args);
    let step = only_if(x, predicate, step);
    let init = x.node(ExprKind::Map(Vec::new()));
    let condition = x.bool(true);
    let result = x.accu();
    fold(x, range, vars, [init, condition, step, result])
}

/// `list.sortBy(var, key)`: the list, sorted by the list of its keys.
pub(super) fn sort_by(x: &mut Expander<'_>, list: Expr, args: [Expr; 2]) -> ExpandResult {
    let name = x.builder.name("@__sortBy_input__");
    // Built first although it is used last: cel-go makes this node before it looks at the arguments.
    let input = x.ident(&name);
    match list.kind {
        ExprKind::List { .. }
        | ExprKind::Select { .. }
        | ExprKind::Ident(_)
        | ExprKind::Comprehension(_)
        | ExprKind::Call { .. } => {}
        ExprKind::Literal(_) | ExprKind::Map(_) | ExprKind::Struct { .. } => {
            return Err(x.error(
                list.id,
                "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
            ));
        }
    }
    let range = x.ident(&name);
    let keys = map(x, range, args)?;
    let receiver = x.ident(&name);
    let sorted = x.member_call("@sortByAssociatedKeys", receiver, vec![keys]);
    let range = x.list(Vec::new());
    let condition = x.bool(false);
    Ok(x.fold(FoldParts {
        range,
        iter_var: UNUSED.into(),
        iter_var2: None,
        accu_var: name,
        init: list,
        condition,
        step: input,
        result: sorted,
    }))
}

/// Builds a comprehension from initial value, condition, step and result.
fn fold(
    x: &mut Expander<'_>,
    range: Expr,
    vars: IterVars,
    [init, condition, step, result]: [Expr; 4],
) -> Expr {
    let accu_var = x.builder.name(ACCUMULATOR);
    x.fold(FoldParts {
        range,
        iter_var: vars.first,
        iter_var2: vars.second,
        accu_var,
        init,
        condition,
        step,
        result,
    })
}
