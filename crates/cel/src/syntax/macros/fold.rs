//! Comprehension macros and `has`.

use super::{
    ACCUMULATOR, ExpandResult, Expander, FORMER_ACCUMULATOR, FoldParts, MISMATCH, MacroError, UNUSED,
    into_ident,
};
use crate::ast::{Expr, ExprKind};
use std::sync::Arc;

const NOT_SIMPLE: &str = "argument must be a simple name";
const OVERWRITES: &str = "iteration variable overwrites accumulator variable";

/// The number of variables of a comprehension, and the error for one that is not a name.
#[derive(Clone, Copy)]
pub(super) enum Variables {
    One(&'static str),
    Two,
}

/// One variable, with the errors of `all` and `exists`.
pub(super) const SIMPLE: Variables = Variables::One(NOT_SIMPLE);
/// One variable, with the errors of `map` and `filter`.
pub(super) const IDENTIFIER: Variables = Variables::One("argument is not an identifier");

/// The variables of a comprehension.
pub(super) struct IterVars {
    first: Arc<str>,
    second: Option<Arc<str>>,
}

/// The arguments of a macro that becomes a comprehension.
pub(super) struct FoldArgs {
    pub(super) range: Expr,
    pub(super) vars: IterVars,
    /// The predicate that selects elements.
    pub(super) filter: Option<Expr>,
    /// The predicate or transformation.
    pub(super) body: Expr,
}

/// Builds a comprehension.
pub(super) type Build = fn(&mut Expander<'_>, FoldArgs) -> Expr;

impl Variables {
    pub(super) fn count(self) -> usize {
        match self {
            Variables::One(_) => 1,
            Variables::Two => 2,
        }
    }

    /// Takes the variables from the arguments.
    pub(super) fn read(
        self,
        x: &Expander<'_>,
        args: &mut impl Iterator<Item = Expr>,
    ) -> Result<IterVars, MacroError> {
        // The errors and their order are cel-go's: first the form of the names, then their meaning.
        let mut name = |otherwise| {
            let var = args.next().ok_or(MISMATCH)?;
            let id = var.id;
            Ok((id, into_ident(var).map_err(|id| x.error(id, otherwise))?))
        };
        let (first, second) = match self {
            Variables::One(otherwise) => (name(otherwise)?, None),
            Variables::Two => (name(NOT_SIMPLE)?, Some(name(NOT_SIMPLE)?)),
        };
        if let Some((id, second)) = &second
            && *second == first.1
        {
            return Err(x.error(*id, format!("duplicate variable name: {second}")));
        }
        for (id, name) in [&first].into_iter().chain(&second) {
            if is_accumulator(name) {
                return Err(x.error(*id, OVERWRITES));
            }
        }
        Ok(IterVars {
            first: first.1,
            second: second.map(|(_, name)| name),
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

/// `all`: the transformation is the predicate.
pub(super) fn all(x: &mut Expander<'_>, args: FoldArgs) -> Expr {
    // Nodes are numbered in the order in which they are built, so the order of these statements is cel-go's.
    let init = x.bool(true);
    let accu = x.accu();
    let condition = x.call("@not_strictly_false", vec![accu]);
    let accu = x.accu();
    let step = x.call("_&&_", vec![accu, args.body]);
    let result = x.accu();
    fold(x, args.range, args.vars, [init, condition, step, result])
}

/// `exists`
pub(super) fn exists(x: &mut Expander<'_>, args: FoldArgs) -> Expr {
    let init = x.bool(false);
    let accu = x.accu();
    let not = x.call("!_", vec![accu]);
    let condition = x.call("@not_strictly_false", vec![not]);
    let accu = x.accu();
    let step = x.call("_||_", vec![accu, args.body]);
    let result = x.accu();
    fold(x, args.range, args.vars, [init, condition, step, result])
}

/// `exists_one`
pub(super) fn exists_one(x: &mut Expander<'_>, args: FoldArgs) -> Expr {
    let init = x.int(0);
    let condition = x.bool(true);
    let accu = x.accu();
    let one = x.int(1);
    let more = x.call("_+_", vec![accu, one]);
    let same = x.accu();
    let step = x.call("_?_:_", vec![args.body, more, same]);
    let accu = x.accu();
    let one = x.int(1);
    let result = x.call("_==_", vec![accu, one]);
    fold(x, args.range, args.vars, [init, condition, step, result])
}

/// `range.filter(var, predicate)`
pub(super) fn filter(x: &mut Expander<'_>, range: Expr, [var, predicate]: [Expr; 2]) -> ExpandResult {
    // UPSTREAM: the element is the variable node itself, with its identifier and position.
    let element = var.clone();
    let vars = IDENTIFIER.read(x, &mut std::iter::once(var))?;
    let (filter, body) = (Some(predicate), element);
    Ok(map(
        x,
        FoldArgs {
            range,
            vars,
            filter,
            body,
        },
    ))
}

/// `map` and `filter`: collects transformed elements in a list.
pub(super) fn map(x: &mut Expander<'_>, args: FoldArgs) -> Expr {
    let init = x.list(Vec::new());
    let condition = x.bool(true);
    let step = append(x, args.filter, args.body);
    let result = x.accu();
    fold(x, args.range, args.vars, [init, condition, step, result])
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

/// `transformList`
pub(super) fn transform_list(x: &mut Expander<'_>, args: FoldArgs) -> Expr {
    let step = append(x, args.filter, args.body);
    let init = x.list(Vec::new());
    let condition = x.bool(true);
    let result = x.accu();
    fold(x, args.range, args.vars, [init, condition, step, result])
}

/// `transformMap`: adds a value under the current key.
pub(super) fn transform_map(x: &mut Expander<'_>, args: FoldArgs) -> Expr {
    let accu = x.accu();
    let entry = vec![accu, x.ident(&args.vars.first), args.body];
    insert(x, args.range, args.vars, args.filter, entry)
}

/// `transformMapEntry`: adds the entries of another map.
pub(super) fn transform_map_entry(x: &mut Expander<'_>, args: FoldArgs) -> Expr {
    let entries = vec![x.accu(), args.body];
    insert(x, args.range, args.vars, args.filter, entries)
}

/// `cel.@mapInsert(@result, …)`
fn insert(
    x: &mut Expander<'_>,
    range: Expr,
    vars: IterVars,
    predicate: Option<Expr>,
    args: Vec<Expr>,
) -> Expr {
    // Unlike the standard macros, cel-go builds the step before the other parts here.
    let step = x.call("cel.@mapInsert", args);
    let step = only_if(x, predicate, step);
    let init = x.node(ExprKind::Map(Vec::new()));
    let condition = x.bool(true);
    let result = x.accu();
    fold(x, range, vars, [init, condition, step, result])
}

/// `list.sortBy(var, key)`: the list, sorted by the list of its keys.
pub(super) fn sort_by(x: &mut Expander<'_>, list: Expr, [var, key]: [Expr; 2]) -> ExpandResult {
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
    let vars = IDENTIFIER.read(x, &mut std::iter::once(var))?;
    let keys = map(
        x,
        FoldArgs {
            range,
            vars,
            filter: None,
            body: key,
        },
    );
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
