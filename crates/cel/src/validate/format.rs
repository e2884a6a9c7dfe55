//! Format strings against the types of their arguments.

use crate::ast::{Expr, ExprId, ExprKind};
use crate::check::Checked;
use crate::types::Type;

/// A mistake and where it is.
type Mistake = (ExprId, String);

/// Checks the clauses of a format string against the arguments of the call `id`.
pub(super) fn check(checked: &Checked, id: ExprId, text: &str, args: &[Expr]) -> Result<(), Mistake> {
    let mut rest = text.as_bytes();
    let mut used = 0;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            continue;
        }
        match rest {
            [] => return Err((id, "unexpected end of string".into())),
            [b'%', after @ ..] => rest = after,
            _ => {
                let arg = args
                    .get(used)
                    .ok_or_else(|| (id, format!("index {used} out of range")))?;
                let (clause, after) =
                    clause(rest).map_err(|e| (id, format!("could not parse formatting clause: {e}")))?;
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

/// The letter of the clause behind a percent sign, and what follows it. `text` is not empty.
fn clause(text: &[u8]) -> Result<(u8, &[u8]), String> {
    let mut rest = text;
    if let Some(after) = rest.strip_prefix(b".") {
        let digits = after.iter().take_while(|b| b.is_ascii_digit()).count();
        let Some((precision, after)) = after
            .split_at_checked(digits)
            .filter(|(_, after)| !after.is_empty())
        else {
            return Err("error while parsing precision: could not find end of precision specifier".into());
        };
        let precision = String::from_utf8_lossy(precision);
        if let Err(e) = precision.parse::<i64>() {
            let problem = match e.kind() {
                std::num::IntErrorKind::Empty => "invalid syntax",
                _ => "value out of range",
            };
            return Err(format!(
                "error while parsing precision: error while converting precision to integer: \
                 strconv.Atoi: parsing \"{precision}\": {problem}"
            ));
        }
        rest = after;
    }
    match rest.split_first() {
        Some((letter @ (b's' | b'd' | b'f' | b'e' | b'b' | b'x' | b'X' | b'o'), after)) => {
            Ok((*letter, after))
        }
        Some((other, _)) => Err(format!(
            "unrecognized formatting clause \"{}\"",
            char::from(*other)
        )),
        None => Err("unexpected end of string".into()),
    }
}

/// Whether a clause takes an argument of that type.
fn accepts(checked: &Checked, clause: u8, arg: &Expr) -> Result<(), Mistake> {
    let ty = checked.ty(arg.id);
    let (valid, wants) = match clause {
        b's' => return accepts_text(checked, arg),
        b'd' => (
            matches!(ty, Type::Int | Type::Uint),
            "decimal clause can only be used on integers",
        ),
        b'f' => (
            matches!(ty, Type::Double | Type::String),
            "fixed-point clause can only be used on doubles",
        ),
        b'e' => (
            matches!(ty, Type::Double | Type::String),
            "scientific clause can only be used on doubles",
        ),
        b'b' => (
            matches!(ty, Type::Int | Type::Uint | Type::Bool),
            "only integers and bools can be formatted as binary",
        ),
        b'o' => (
            matches!(ty, Type::Int | Type::Uint),
            "octal clause can only be used on integers",
        ),
        _ => (
            matches!(ty, Type::Int | Type::Uint | Type::String | Type::Bytes),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
    };
    if valid || matches!(ty, Type::Dyn) {
        Ok(())
    } else {
        Err((arg.id, format!("{wants}, was given {}", ty.name())))
    }
}

/// `%s` takes nearly everything; literals are looked into.
fn accepts_text(checked: &Checked, arg: &Expr) -> Result<(), Mistake> {
    let ty = checked.ty(arg.id);
    if matches!(ty, Type::Opaque(..) | Type::Message(_) | Type::Object(_)) {
        return Err((
            arg.id,
            format!(
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                 durations, and timestamps, was given {}",
                ty.name()
            ),
        ));
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
