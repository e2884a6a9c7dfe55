//! Macros for optional values.

use super::{ExpandResult, Expander, into_ident};
use crate::ast::Expr;

/// `value.optMap(var, transform)`
pub(super) fn opt_map(x: &mut Expander<'_>, value: Expr, [var, transform]: [Expr; 2]) -> ExpandResult {
    let not_simple = "optMap() variable name must be a simple identifier";
    if_present(x, value, var, transform, not_simple, |x, transformed| {
        x.call("optional.of", vec![transformed])
    })
}

/// `value.optFlatMap(var, transform)`
pub(super) fn opt_flat_map(x: &mut Expander<'_>, value: Expr, [var, transform]: [Expr; 2]) -> ExpandResult {
    let not_simple = "optFlatMap() variable name must be a simple identifier";
    if_present(x, value, var, transform, not_simple, |_, transformed| transformed)
}

/// Transforms the value of an optional; an empty optional stays empty.
fn if_present(
    x: &mut Expander<'_>,
    value: Expr,
    var: Expr,
    transform: Expr,
    not_simple: &'static str,
    wrap: fn(&mut Expander<'_>, Expr) -> Expr,
) -> ExpandResult {
    let var = into_ident(var).map_err(|id| x.error(id, not_simple))?;
    let present = x.builder.id(x.offset);
    let range = x.list(Vec::new());
    let copy = x.copy(&value)?;
    let present = x.builder.member_call(present, "hasValue", value, Vec::new());
    let inner = x.member_call("value", copy, Vec::new());
    let bound = x.bound(range, var, inner, transform);
    let some = wrap(x, bound);
    let none = x.call("optional.none", Vec::new());
    Ok(x.call("_?_:_", vec![present, some, none]))
}
