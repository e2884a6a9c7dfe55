//! Validation of format strings against the types of their arguments.

use crate::ast::{Expr, ExprId, ExprKind};
use crate::check::CheckedExpr;
use crate::library::strings::template::{self, Clause, Dialect};
use crate::types::CelType;

/// An error and its node.
type Mistake = (ExprId, String);

/// Checks the clauses of a format string against the arguments of the call `id`.
pub(super) fn check(checked: &CheckedExpr, id: ExprId, text: &str, args: &[Expr]) -> Result<(), Mistake> {
    let mut rest = text.as_bytes();
    let mut used = 0;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            continue;
        }
        match rest {
            // The texts are those of the evaluation, because cel-go's validator runs the same parser without values.
            [] => return Err((id, "unexpected end of string".into())),
            [b'%', after @ ..] => rest = after,
            _ => {
                let arg = args
                    .get(used)
                    .ok_or_else(|| (id, format!("index {used} out of range")))?;
                // The missing argument is reported before the clause is parsed, as in the evaluation.
                let (clause, after) = template::clause(rest, None)
                    .map_err(|e| (id, format!("could not parse formatting clause: {e}")))?;
                accepts(checked, clause, arg)
                    .map_err(|(at, e)| (at, format!("error during formatting: {e}")))?;
                rest = after;
                used += 1;
            }
        }
    }
    if args.len() > used {
        let got = args.len();
        return Err((
            id,
            format!("too many arguments supplied to string.format (expected {used}, got {got})"),
        ));
    }
    Ok(())
}

/// Returns whether a clause takes an argument of that type.
fn accepts(checked: &CheckedExpr, clause: Clause, arg: &Expr) -> Result<(), Mistake> {
    let ty = checked.ty(arg.id);
    let valid = match clause {
        Clause::Text => return accepts_text(checked, arg),
        Clause::Decimal | Clause::Octal => matches!(ty, CelType::Int | CelType::Uint),
        Clause::Fixed(_) | Clause::Scientific(_) => matches!(ty, CelType::Double | CelType::String),
        Clause::Binary => matches!(ty, CelType::Int | CelType::Uint | CelType::Bool),
        Clause::Hexadecimal | Clause::UpperHexadecimal => {
            matches!(
                ty,
                CelType::Int | CelType::Uint | CelType::String | CelType::Bytes
            )
        }
    };
    // The type of a dynamic argument is checked when it is formatted.
    if valid || matches!(ty, CelType::Dyn) {
        Ok(())
    } else {
        Err(refusal(clause, arg.id, ty))
    }
}

fn refusal(clause: Clause, at: ExprId, ty: &CelType) -> Mistake {
    (
        at,
        format!("{}, was given {}", clause.takes(Dialect::Localized), ty.name()),
    )
}

/// `%s` accepts nearly every type; the elements of literals are checked.
fn accepts_text(checked: &CheckedExpr, arg: &Expr) -> Result<(), Mistake> {
    let ty = checked.ty(arg.id);
    if matches!(ty, CelType::Opaque(..) | CelType::Message(_) | CelType::Object(_)) {
        return Err(refusal(Clause::Text, arg.id, ty));
    }
    match &arg.kind {
        ExprKind::List { elements, .. } => elements.iter().try_for_each(|e| accepts_text(checked, e)),
        ExprKind::Map(entries) => entries.iter().try_for_each(|entry| {
            accepts_text(checked, &entry.key)?;
            accepts_text(checked, &entry.value)
        }),
        _ => Ok(()),
    }
}
