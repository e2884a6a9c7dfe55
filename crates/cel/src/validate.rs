//! Static validation of constants that would fail at run time.

mod format;

use crate::ast::{Expr, ExprId, ExprKind, Literal};
use crate::check::{CheckedExpr, same};
use crate::env::Validation;
use crate::issue::Issues;
use crate::stack::with_room;
use crate::types::CelType;
use crate::val::Timestamp;
use scantling_notation::{duration, regex, timestamp};
use std::sync::Arc;

/// Validates constants and the element types of literals.
///
/// # Errors
/// Returns all errors found.
pub fn validate(checked: &CheckedExpr, validation: Validation) -> Result<(), Issues> {
    if validation == Validation::None {
        return Ok(());
    }
    let mut validator = Validator {
        checked,
        constants: validation == Validation::Constants,
        issues: Issues::new(Arc::clone(&checked.ast.source)),
    };
    with_room(checked.ast.depth, || {
        validator.visit(&checked.ast.root, Within::Expression);
    });
    if validator.issues.is_empty() {
        Ok(())
    } else {
        Err(validator.issues)
    }
}

struct Validator<'c> {
    checked: &'c CheckedExpr,
    /// True if to validate constants.
    constants: bool,
    issues: Issues,
}

/// The context of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Outside a call of `format`.
    Expression,
    /// In a call of `format`, whose argument list may mix types.
    Format,
}

impl Validator<'_> {
    fn visit(&mut self, e: &Expr, within: Within) {
        let mut inside = within;
        match &e.kind {
            ExprKind::Call {
                function,
                target,
                args,
            } if self.constants => {
                // By name, whichever overload it is, as kube-apiserver's validators do.
                self.constant_argument(function, args);
                if function.as_ref() == "format" {
                    inside = Within::Format;
                    if let Some(target) = target {
                        self.format(e, target, args);
                    }
                }
            }
            ExprKind::List { elements, optional } if within == Within::Expression => {
                self.homogeneous_list(elements, optional);
            }
            ExprKind::Map(_) if within == Within::Expression => self.homogeneous_map(e),
            _ => {}
        }
        e.for_each_child(|child| self.visit(child, inside));
    }

    /// Validates the first argument of these functions. UPSTREAM: kube-apiserver takes it for the regular expression
    /// even for the global function `matches`, whose first argument is the string.
    fn constant_argument(&mut self, function: &str, args: &[Expr]) {
        let Some((id, literal)) = args.first().and_then(|arg| match &arg.kind {
            ExprKind::Literal(literal) => Some((arg.id, literal)),
            _ => None,
        }) else {
            return;
        };
        let valid = match (function, literal) {
            ("duration", Literal::String(text)) => duration::parse(text).is_some(),
            ("timestamp", Literal::String(text)) => timestamp::parse(text).is_some(),
            ("timestamp", Literal::Int(seconds)) => Timestamp::new(*seconds, 0).is_ok(),
            ("matches", Literal::String(pattern)) => regex::Pattern::check(pattern).is_ok(),
            _ => true,
        };
        if !valid {
            self.report(id, format!("invalid {function} argument"));
        }
    }

    fn homogeneous_list(&mut self, elements: &[Expr], optional: &[u32]) {
        let mut types = elements.iter().enumerate().map(|(n, element)| {
            let ty = self.checked.ty(element.id);
            let is_optional = optional.iter().any(|o| *o as usize == n);
            (
                element.id,
                if is_optional {
                    ty.first_param().unwrap_or(ty)
                } else {
                    ty
                },
            )
        });
        // The first element sets the type: the errors are about those that differ from it.
        let Some((_, first)) = types.next() else {
            return;
        };
        // One error per list is enough.
        if let Some((id, other)) = types.find(|(_, ty)| !same(first, ty)) {
            self.mismatch(id, first, other);
        }
    }

    fn homogeneous_map(&mut self, e: &Expr) {
        let ExprKind::Map(entries) = &e.kind else {
            return;
        };
        let checked = self.checked;
        let mut types = entries.iter().map(|entry| {
            let value = checked.ty(entry.value.id);
            let value = if entry.optional {
                value.first_param().unwrap_or(value)
            } else {
                value
            };
            (entry, checked.ty(entry.key.id), value)
        });
        let Some((_, first_key, first_value)) = types.next() else {
            return;
        };
        // Unlike in lists, every entry that differs is reported, as in cel-go.
        for (entry, key, value) in types {
            if !same(first_key, key) {
                self.mismatch(entry.key.id, first_key, key);
            }
            if !same(first_value, value) {
                self.mismatch(entry.value.id, first_value, value);
            }
        }
    }

    /// A constant format string with a list literal of arguments.
    fn format(&mut self, e: &Expr, target: &Expr, args: &[Expr]) {
        let overloads = self.checked.overloads(e.id);
        if let (
            ExprKind::Literal(Literal::String(text)),
            [
                Expr {
                    kind: ExprKind::List { elements, .. },
                    ..
                },
            ],
        ) = (&target.kind, args)
            // Another library may have a function of that name with other clauses.
            && overloads.iter().any(|o| o.id == "string_format")
            && let Err((at, message)) = format::check(self.checked, e.id, text, elements)
        {
            self.report(at, message);
        }
    }

    fn mismatch(&mut self, id: ExprId, expected: &CelType, found: &CelType) {
        self.report(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn report(&mut self, id: ExprId, message: String) {
        self.issues.report(self.checked.ast.offset(id), message);
    }
}
