//! Macros of a namespace: `cel.bind`, `cel.block` and its helpers, `math.least` and `math.greatest`.

#![expect(
    clippy::needless_pass_by_value,
    reason = "the table of macros asks for these signatures"
)]

use super::{ExpandResult, Expander, into_ident};
use crate::ast::{Expr, ExprKind, Literal};

/// `cel.bind(var, value, result)`
pub(super) fn bind(x: &mut Expander<'_>, _: Expr, [var, value, result]: [Expr; 3]) -> ExpandResult {
    let not_simple = "cel.bind() variable names must be simple identifiers";
    let var = into_ident(var).map_err(|id| x.error(id, not_simple))?;
    let range = x.list(Vec::new());
    Ok(x.bound(range, var, value, result))
}

/// `cel.block([values], result)`
pub(super) fn block(x: &mut Expander<'_>, _: Expr, [values, result]: [Expr; 2]) -> ExpandResult {
    match values.kind {
        ExprKind::List { .. } => Ok(x.call("cel.@block", vec![values, result])),
        _ => Err(x.error(values.id, "cel.block requires the first arg to be a list literal")),
    }
}

/// `cel.index(n)`: the n-th value of the block.
pub(super) fn index(x: &mut Expander<'_>, _: Expr, [index]: [Expr; 1]) -> ExpandResult {
    match count(&index) {
        Some(n) => Ok(x.ident_named(&format!("@index{n}"))),
        None => Err(x.error(
            index.id,
            "cel.index requires a single non-negative int constant arg",
        )),
    }
}

/// `cel.iterVar(depth, n)`: a variable of a comprehension.
pub(super) fn iter_var(x: &mut Expander<'_>, _: Expr, args: [Expr; 2]) -> ExpandResult {
    numbered(
        x,
        &args,
        "@it",
        "cel.iterVar requires two non-negative int constant args",
    )
}

/// `cel.accuVar(depth, n)`: the accumulator of a comprehension.
pub(super) fn accu_var(x: &mut Expander<'_>, _: Expr, args: [Expr; 2]) -> ExpandResult {
    numbered(
        x,
        &args,
        "@ac",
        "cel.accuVar requires two non-negative int constant args",
    )
}

fn numbered(
    x: &mut Expander<'_>,
    [depth, unique]: &[Expr; 2],
    prefix: &str,
    otherwise: &'static str,
) -> ExpandResult {
    let depth = count(depth).ok_or_else(|| x.error(depth.id, otherwise))?;
    let unique = count(unique).ok_or_else(|| x.error(unique.id, otherwise))?;
    Ok(x.ident_named(&format!("{prefix}:{depth}:{unique}")))
}

fn count(expr: &Expr) -> Option<i64> {
    match expr.kind {
        ExprKind::Literal(Literal::Int(n)) if n >= 0 => Some(n),
        _ => None,
    }
}

/// `math.least(a, b, …)`
pub(super) fn least(x: &mut Expander<'_>, math: Expr, args: Vec<Expr>) -> ExpandResult {
    extreme(x, &math, args, "math.least()", "math.@min")
}

/// `math.greatest(a, b, …)`
pub(super) fn greatest(x: &mut Expander<'_>, math: Expr, args: Vec<Expr>) -> ExpandResult {
    extreme(x, &math, args, "math.greatest()", "math.@max")
}

fn extreme(
    x: &mut Expander<'_>,
    math: &Expr,
    args: Vec<Expr>,
    display: &str,
    function: &str,
) -> ExpandResult {
    match args.as_slice() {
        [] => Err(x.error(math.id, format!("{display} requires at least one argument"))),
        // Only literals can be refused here; everything else is left to the checker.
        [one] if is_numeric_list(one) || may_be_numeric(one) => Ok(x.call(function, args)),
        [one] => Err(x.error(one.id, format!("{display} invalid single argument value"))),
        [..] => {
            if let Some(other) = args.iter().find(|a| !may_be_numeric(a)) {
                return Err(x.error(
                    other.id,
                    format!("{display} simple literal arguments must be numeric"),
                ));
            }
            // There are overloads for one and two numbers; more are passed as a list.
            let args = if args.len() == 2 { args } else { vec![x.list(args)] };
            Ok(x.call(function, args))
        }
    }
}

fn may_be_numeric(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(literal) => {
            matches!(literal, Literal::Double(_) | Literal::Int(_) | Literal::Uint(_))
        }
        ExprKind::List { .. } | ExprKind::Map(_) | ExprKind::Struct { .. } => false,
        ExprKind::Ident(_) | ExprKind::Select { .. } | ExprKind::Call { .. } | ExprKind::Comprehension(_) => {
            true
        }
    }
}

fn is_numeric_list(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::List { elements, .. } => !elements.is_empty() && elements.iter().all(may_be_numeric),
        _ => false,
    }
}
