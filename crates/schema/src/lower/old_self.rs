//! `oldSelf` as an optional value.

use super::Reason;
use scantling_cel::ast::{Ast, Expr, ExprKind, Literal};
use scantling_cel::syntax::{ParseOptions, parse};

const OLD: &str = "oldSelf";

/// Rewrites an expression in which `oldSelf` may be `null` for one in which it is optional: `oldSelf == null` becomes
/// `!oldSelf.hasValue()`, any other `oldSelf` becomes `oldSelf.value()`. Returns `None` if the expression does not use it.
pub(super) fn rewrite(text: &str) -> Result<Option<String>, Reason> {
    if !text.contains(OLD) {
        return Ok(None);
    }
    let ast = parse(text, &ParseOptions::default()).map_err(|_| "the rule does not parse".to_owned())?;
    let mut edits = Vec::new();
    collect(&ast, &ast.root, &mut edits)?;
    if edits.is_empty() {
        return Ok(None);
    }
    // A macro copies its argument in the tree, so one use may be found twice.
    edits.sort_by_key(|edit| edit.start);
    edits.dedup_by_key(|edit| edit.start);
    // The offsets of a parsed expression count characters.
    let source: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len() * 2);
    let mut done = 0;
    for edit in edits {
        out.extend(source.get(done..edit.start).unwrap_or_default());
        out.push_str(edit.text);
        done = edit.end;
    }
    out.extend(source.get(done..).unwrap_or_default());
    Ok(Some(out))
}

/// A replacement of characters.
struct TextEdit {
    start: usize,
    end: usize,
    text: &'static str,
}

fn is_old(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Ident(name) if &**name == OLD)
}

fn is_null(expr: &Expr) -> bool {
    expr.kind == ExprKind::Literal(Literal::Null)
}

fn collect(ast: &Ast, expr: &Expr, edits: &mut Vec<TextEdit>) -> Result<(), Reason> {
    if let ExprKind::Comprehension(fold) = &expr.kind
        && (&*fold.iter_var == OLD || fold.iter_var2.as_deref() == Some(OLD))
    {
        return Err("a macro of the rule has a variable called `oldSelf`; rename it".into());
    }
    if let ExprKind::Call { function, args, .. } = &expr.kind
        && matches!(&**function, "_==_" | "_!=_")
        && let [a, b] = args.as_slice()
        && ((is_old(a) && is_null(b)) || (is_null(a) && is_old(b)))
    {
        let (Some(a), Some(b)) = (ast.offset(a.id), ast.offset(b.id)) else {
            return Err("a comparison of `oldSelf` with null has no position".into());
        };
        let (first, second) = (a.min(b) as usize, a.max(b) as usize);
        let end = second
            + if is_old_at(ast, second) {
                OLD.len()
            } else {
                "null".len()
            };
        let between: String = ast.source.chars().skip(first).take(end - first).collect();
        let plain: String = between.split_whitespace().collect();
        let is_plain =
            ["oldSelf==null", "oldSelf!=null", "null==oldSelf", "null!=oldSelf"].contains(&plain.as_str());
        if !is_plain {
            return Err("write the comparison of `oldSelf` with null without parentheses or comments".into());
        }
        edits.push(TextEdit {
            start: first,
            end,
            text: if &**function == "_==_" {
                "!oldSelf.hasValue()"
            } else {
                "oldSelf.hasValue()"
            },
        });
        return Ok(());
    }
    if is_old(expr) {
        let start = ast
            .offset(expr.id)
            .ok_or_else(|| "a use of `oldSelf` has no position".to_owned())? as usize;
        edits.push(TextEdit {
            start,
            end: start + OLD.len(),
            text: "oldSelf.value()",
        });
    }
    let mut result = Ok(());
    expr.for_each_child(|child| {
        if result.is_ok() {
            result = collect(ast, child, edits);
        }
    });
    result
}

/// Returns whether `oldSelf` is at an offset of the source.
fn is_old_at(ast: &Ast, offset: usize) -> bool {
    ast.source.chars().skip(offset).take(OLD.len()).eq(OLD.chars())
}

#[cfg(test)]
mod tests {
    use super::rewrite;

    #[test]
    fn old_self_becomes_optional() {
        let cases = [
            ("self > 1", None),
            ("oldSelf == null", Some("!oldSelf.hasValue()")),
            (
                "null != oldSelf && self > oldSelf",
                Some("oldSelf.hasValue() && self > oldSelf.value()"),
            ),
            (
                "oldSelf  ==\nnull ? self >= 10 : self >= oldSelf",
                Some("!oldSelf.hasValue() ? self >= 10 : self >= oldSelf.value()"),
            ),
            (
                "oldSelf == null || oldSelf.all(x, has(oldSelf.a) && x in self)",
                Some("!oldSelf.hasValue() || oldSelf.value().all(x, has(oldSelf.value().a) && x in self)"),
            ),
            (
                "self == 'ü oldSelf' || self == oldSelf",
                Some("self == 'ü oldSelf' || self == oldSelf.value()"),
            ),
            ("self.oldSelf == 1", None),
        ];
        for (rule, want) in cases {
            assert_eq!(rewrite(rule).unwrap().as_deref(), want, "{rule}");
        }
        for rule in ["(oldSelf) == null", "self.all(oldSelf, oldSelf > 1)"] {
            assert!(rewrite(rule).is_err(), "{rule}");
        }
    }
}
