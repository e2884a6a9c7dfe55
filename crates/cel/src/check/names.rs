//! Name resolution without types, for expressions that are evaluated unchecked.

use super::{CheckedExpr, Checker, Reference, qualified_name};
use crate::ast::{Ast, Expr, ExprKind};
use crate::env::Env;
use crate::issue::Issues;
use crate::overload::{Overload, Style};
use crate::stack::with_room;
use crate::types::CelType;
use std::sync::Arc;

impl CheckedExpr {
    /// Resolves the names of an expression and leaves all types open. Unknown names and calls without an overload
    /// become errors at run time.
    pub fn unchecked(env: &Env, mut ast: Ast) -> CheckedExpr {
        // No offsets: without types there is nothing to report, and run-time errors have no position.
        let limit = ast.id_limit();
        let mut checker = Checker {
            env,
            issues: Issues::new(Arc::clone(&ast.source)),
            offsets: Vec::new(),
            types: vec![CelType::Dyn; limit],
            references: vec![None; limit],
            unifier: super::Unifier::default(),
            locals: Vec::new(),
        };
        with_room(ast.depth, || checker.names(&mut ast.root));
        CheckedExpr {
            ast,
            types: checker.types,
            references: checker.references,
        }
    }
}

impl Checker<'_> {
    fn names(&mut self, e: &mut Expr) {
        let id = e.id;
        match &mut e.kind {
            ExprKind::Literal(_) => {}
            ExprKind::Ident(name) => {
                let name = Arc::clone(name);
                if self.local(&name).is_some() {
                    self.refer(id, Reference::Local(name));
                } else {
                    self.global(e, &name);
                }
            }
            ExprKind::Select { .. } => self.select_names(e),
            ExprKind::Call {
                function,
                target,
                args,
            } => {
                for arg in args.iter_mut() {
                    self.names(arg);
                }
                if function.as_ref() == "_?._" {
                    // The second argument is a constant name, which needs no resolution.
                    self.refer(id, Reference::OptionalSelect);
                    return;
                }
                let mut arity = args.len();
                let mut style = Style::Global;
                let qualified = target.as_deref().and_then(qualified_name);
                let qualified = qualified.and_then(|prefix| self.function(&format!("{prefix}.{function}")));
                let found = match (qualified, target.as_deref_mut()) {
                    (Some(found), _) => {
                        *target = None;
                        Some(found)
                    }
                    (None, Some(receiver)) => {
                        self.names(receiver);
                        arity += 1;
                        style = Style::Member;
                        self.function(function)
                    }
                    (None, None) => self.function(function),
                };
                if let Some((name, overloads)) = found {
                    // Without types only the arity excludes candidates. The arguments choose among the rest at run
                    // time.
                    let fits = |o: &&&'static Overload| o.style == style && o.params.len() == arity;
                    let overloads = overloads.iter().filter(fits).copied().collect();
                    *function = name;
                    self.refer(id, Reference::Overloads(overloads));
                }
            }
            ExprKind::List { elements, .. } => elements.iter_mut().for_each(|e| self.names(e)),
            ExprKind::Map(entries) => {
                for entry in entries {
                    self.names(&mut entry.key);
                    self.names(&mut entry.value);
                }
            }
            ExprKind::Struct { name, fields } => {
                let env = self.env;
                if let Some(full) = env
                    .base()
                    .resolve(name, |name| env.resolve_name(name).map(|_| Arc::from(name)))
                {
                    *name = full;
                }
                fields.iter_mut().for_each(|f| self.names(&mut f.value));
            }
            ExprKind::Comprehension(fold) => {
                self.names(&mut fold.range);
                self.names(&mut fold.accu_init);
                let outside = self.locals.len();
                self.locals.push((Arc::clone(&fold.accu_var), CelType::Dyn));
                let inside = self.locals.len();
                for var in fold.iter_var2.iter().chain([&fold.iter_var]) {
                    self.locals.push((Arc::clone(var), CelType::Dyn));
                }
                self.names(&mut fold.condition);
                self.names(&mut fold.step);
                self.locals.truncate(inside);
                self.names(&mut fold.result);
                self.locals.truncate(outside);
            }
        }
    }

    fn select_names(&mut self, e: &mut Expr) {
        if let Some(name) = qualified_name(e)
            && self.starts_globally(&name)
            && self.global(e, &name).is_some()
        {
            return;
        }
        if let ExprKind::Select { operand, .. } = &mut e.kind {
            self.names(operand);
        }
    }
}
