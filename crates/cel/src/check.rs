//! The type checker: resolves names and overloads and infers the type of every node.

mod message;
mod names;
mod unify;

pub(crate) use unify::same;

use crate::ast::{Ast, Comprehension, Expr, ExprId, ExprKind, Literal, MapEntry};
use crate::env::{BaseEnv, Env, NameBinding, ReservedFields};
use crate::issue::Issues;
use crate::message as well_known;
use crate::overload::{Overload, Style, Ty};
use crate::stack::with_room;
use crate::types::CelType;
use std::sync::Arc;
use unify::{Unbound, Unifier, more_general};

/// A checked expression. Its AST is rewritten: names are fully qualified, `a.b` is a name if `a.b` is declared, and a
/// function with a dotted name has no receiver.
#[derive(Clone, Debug)]
pub struct CheckedExpr {
    /// The expression.
    pub ast: Ast,
    types: Vec<CelType>,
    references: Vec<Option<Reference>>,
}

/// The declaration that a name or call refers to.
#[derive(Clone, Debug)]
pub enum Reference {
    /// A variable of the environment, by its full name.
    Variable(Arc<str>),
    /// A variable of the innermost comprehension that declares this name.
    Local(Arc<str>),
    /// A type.
    Type(CelType),
    /// A number.
    Constant(i64),
    /// The candidate overloads; several if the types of the operands are known only at run time.
    Overloads(Vec<&'static Overload>),
    /// `a.?b`
    OptionalSelect,
}

impl CheckedExpr {
    /// The type of a node.
    pub fn ty(&self, id: ExprId) -> &CelType {
        // Every node of the tree has a number below `id_limit`, so the fallback is never used.
        self.types.get(id.0 as usize).unwrap_or(&CelType::Dyn)
    }

    /// The type of the expression.
    pub fn result_type(&self) -> &CelType {
        self.ty(self.ast.root.id)
    }

    /// The reference of a name or call.
    pub fn reference(&self, id: ExprId) -> Option<&Reference> {
        self.references.get(id.0 as usize)?.as_ref()
    }

    /// The candidate overloads of a call.
    pub fn overloads(&self, id: ExprId) -> &[&'static Overload] {
        match self.reference(id) {
            Some(Reference::Overloads(overloads)) => overloads,
            _ => &[],
        }
    }

    /// Returns a type name that only the checker knows (`duration`). Evaluating it is an error.
    pub fn undefined_type(&self) -> Option<&str> {
        let mut pending = vec![&self.ast.root];
        while let Some(e) = pending.pop() {
            if let (ExprKind::Ident(name), Some(Reference::Type(ty))) = (&e.kind, self.reference(e.id))
                // An alias such as `duration` is not the name at run time, and only the checker knows schema types.
                && (name.as_ref() != ty.name() || matches!(ty, CelType::Object(_)))
            {
                return Some(name);
            }
            e.for_each_child(|child| pending.push(child));
        }
        None
    }

    /// Returns whether a name is used as a variable anywhere, even as one of a comprehension.
    pub fn mentions(&self, name: &str) -> bool {
        self.references
            .iter()
            .flatten()
            .any(|r| matches!(r, Reference::Variable(n) | Reference::Local(n) if n.as_ref() == name))
    }
}

/// Checks an expression against an environment.
///
/// # Errors
/// Returns all errors found.
pub fn check(env: &Env, mut ast: Ast) -> Result<CheckedExpr, Issues> {
    let mut checker = Checker {
        env,
        issues: Issues::new(Arc::clone(&ast.source)),
        offsets: std::mem::take(&mut ast.offsets),
        types: Vec::new(),
        references: Vec::new(),
        unifier: Unifier::default(),
        locals: Vec::new(),
    };
    // Sized once: the checker rewrites nodes in place and never makes new ones.
    checker.types.resize(checker.offsets.len(), CelType::Dyn);
    checker.references.resize(checker.offsets.len(), None);
    with_room(ast.depth, || checker.expr(&mut ast.root));
    let Checker {
        issues,
        offsets,
        mut types,
        references,
        unifier,
        ..
    } = checker;
    if !issues.is_empty() {
        return Err(issues);
    }
    for ty in &mut types {
        // Only now are all variables bound: a node may have got a variable that a later node determines.
        *ty = unifier.resolve(ty, Unbound::ToDyn);
    }
    ast.offsets = offsets;
    Ok(CheckedExpr {
        ast,
        types,
        references,
    })
}

struct Checker<'e> {
    env: &'e Env,
    issues: Issues,
    offsets: Vec<u32>,
    types: Vec<CelType>,
    references: Vec<Option<Reference>>,
    unifier: Unifier,
    /// The variables of the enclosing comprehensions, innermost last.
    locals: Vec<(Arc<str>, CelType)>,
}

impl<'e> Checker<'e> {
    /// Checks a node, and records and returns its type.
    fn expr(&mut self, e: &mut Expr) -> CelType {
        let id = e.id;
        let ty = match &mut e.kind {
            ExprKind::Literal(literal) => literal_type(literal),
            ExprKind::Ident(_) => self.ident(e),
            ExprKind::Select { .. } => self.select(e),
            ExprKind::Call { .. } => self.call(e),
            ExprKind::List { elements, optional } => self.list(elements, optional),
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Struct { name, fields } => self.message(id, name, fields),
            ExprKind::Comprehension(fold) => self.comprehension(fold),
        };
        if let Some(place) = self.types.get_mut(id.0 as usize) {
            *place = ty.clone();
        }
        ty
    }

    fn ident(&mut self, e: &mut Expr) -> CelType {
        let ExprKind::Ident(name) = &e.kind else {
            return CelType::Error;
        };
        let name = Arc::clone(name);
        if let Some(ty) = self.local(&name) {
            self.refer(e.id, Reference::Local(name));
            return ty;
        }
        if let Some(ty) = self.global(e, &name) {
            return ty;
        }
        self.undeclared(e.id, &name);
        CelType::Error
    }

    /// Looks up a variable of a comprehension. A name with a leading dot never refers to one.
    fn local(&self, name: &str) -> Option<CelType> {
        self.locals
            .iter()
            .rev()
            .find(|(n, _)| n.as_ref() == name)
            .map(|(_, ty)| ty.clone())
    }

    /// Resolves the node to a name of the environment, if there is one.
    fn global(&mut self, e: &mut Expr, name: &str) -> Option<CelType> {
        let env = self.env;
        let (name, reference, ty) = env.base().resolve(name, |name| {
            let (reference, ty) = match env.resolve_name(name)? {
                NameBinding::Variable(name, ty) => (Reference::Variable(Arc::clone(name)), ty.clone()),
                NameBinding::Type(ty) => (Reference::Type(ty.clone()), CelType::of_type(ty)),
                NameBinding::Constant(value) => (Reference::Constant(value), CelType::Int),
            };
            Some((Arc::from(name), reference, ty))
        })?;
        self.refer(e.id, reference);
        e.kind = ExprKind::Ident(name);
        Some(ty)
    }

    /// Returns whether `a.b.c` may be a qualified name, that is, whether `a` is not a variable of a comprehension.
    fn starts_globally(&self, name: &str) -> bool {
        // A comprehension variable hides every qualified name that begins with it, as in cel-go's
        // `resolveQualifiedIdent`.
        let first = name.split('.').next();
        first.is_some_and(|first| first.is_empty() || self.local(first).is_none())
    }

    fn select(&mut self, e: &mut Expr) -> CelType {
        // The longest name wins: with variables `a` and `a.b`, `a.b` is the latter. A presence test is never a name.
        if let Some(name) = qualified_name(e)
            && self.starts_globally(&name)
            && let Some(ty) = self.global(e, &name)
        {
            return ty;
        }
        let id = e.id;
        let ExprKind::Select { operand, field, test } = &mut e.kind else {
            return CelType::Error;
        };
        let operand_type = self.expr(operand);
        let ty = self.field(id, &operand_type, field, OptionalWrap::AsOperand);
        if *test {
            // The field is looked up even for a presence test, so that `has(a.b)` of an undeclared `b` is an error.
            CelType::Bool
        } else {
            self.unifier.resolve(&ty, Unbound::Keep)
        }
    }

    /// `a.?b`, which the parser represents as a call with a constant.
    fn optional_select(&mut self, id: ExprId, args: &mut [Expr]) -> CelType {
        let [operand, field] = args else {
            self.report(
                id,
                format!(
                    "unsupported optional field selection: incorrect signature. argument count: {}",
                    args.len()
                ),
            );
            return CelType::Error;
        };
        let ExprKind::Literal(Literal::String(name)) = &field.kind else {
            self.report(field.id, "unsupported optional field selection");
            return CelType::Error;
        };
        let name = Arc::clone(name);
        let operand_type = self.expr(operand);
        let ty = self.field(id, &operand_type, &name, OptionalWrap::Always);
        self.refer(id, Reference::OptionalSelect);
        self.unifier.resolve(&ty, Unbound::Keep)
    }

    /// The type of a field of a value.
    fn field(&mut self, id: ExprId, operand: &CelType, field: &str, wrap: OptionalWrap) -> CelType {
        let operand = self.unifier.resolve(operand, Unbound::Keep);
        let (target, wrap) = match operand.optional_value() {
            Some(value) => (value, OptionalWrap::Always),
            None => (&operand, wrap),
        };
        let ty = match target.unwrapped() {
            CelType::Map(entry) => entry.1.clone(),
            CelType::Object(object) => {
                let found = match self.env.base().options().reserved_fields {
                    ReservedFields::Raw => object.shape.select(field),
                    ReservedFields::Escaped => object.shape.field(field),
                };
                match found {
                    Some(found) => found.shape.ty(&format!("{}.{}", object.name, found.name)),
                    None => {
                        self.report(id, format!("undefined field '{field}'"));
                        CelType::Error
                    }
                }
            }
            CelType::Message(name) => {
                self.report(
                    id,
                    match well_known::find(name) {
                        Some(_) => format!("undefined field '{field}'"),
                        None => format!("unexpected failed resolution of '{name}'"),
                    },
                );
                CelType::Error
            }
            CelType::Var(_) | CelType::Param(_) => {
                // The type of the operand is unknown, so treat it as dynamic from here on.
                self.unifier.assignable(&CelType::Dyn, target);
                CelType::Dyn
            }
            CelType::Dyn | CelType::Error => CelType::Dyn,
            _ => {
                self.report(id, format!("type '{target}' does not support field selection"));
                CelType::Dyn
            }
        };
        match wrap {
            OptionalWrap::Always => CelType::optional(ty),
            OptionalWrap::AsOperand => ty,
        }
    }

    fn call(&mut self, e: &mut Expr) -> CelType {
        let id = e.id;
        let ExprKind::Call {
            function,
            target,
            args,
        } = &mut e.kind
        else {
            return CelType::Error;
        };
        // Handled before the arguments: the second one is the name of a field, not an expression.
        if function.as_ref() == "_?._" && target.is_none() {
            return self.optional_select(id, args);
        }
        // Also before the arguments, because each value must be in scope when the next one is checked.
        if function.as_ref() == "cel.@block"
            && let (None, [values, result]) = (&target, args.as_mut_slice())
            && let ExprKind::List { elements, .. } = &mut values.kind
            && let Some((_, overloads)) = self.function("cel.@block")
        {
            self.refer(id, Reference::Overloads(overloads.to_vec()));
            return self.block(elements, result);
        }
        // The arguments are checked before the receiver, as in cel-go: this orders the numbers of type variables.
        let mut operands: Vec<CelType> = args.iter_mut().map(|arg| self.expr(arg)).collect();
        let Some(receiver) = target else {
            let Some((name, overloads)) = self.function(function) else {
                self.undeclared(id, function);
                return CelType::Error;
            };
            *function = name;
            return self.resolve(id, function, overloads, &operands, Style::Global, args);
        };
        // In `a.b.f(x)`, either `a.b.f` is a function, or `f` is a member function of the value `a.b`.
        if let Some(prefix) = qualified_name(receiver)
            && let Some((name, overloads)) = self.function(&format!("{prefix}.{function}"))
        {
            *target = None;
            // The receiver was only part of the name: it must be neither checked nor evaluated.
            *function = name;
            return self.resolve(id, function, overloads, &operands, Style::Global, args);
        }
        operands.insert(0, self.expr(receiver));
        let Some((name, overloads)) = self.function(function) else {
            self.undeclared(id, function);
            return CelType::Error;
        };
        self.resolve(id, &name, overloads, &operands, Style::Member, args)
    }

    /// `cel.@block([values], result)`: each value is a variable in the following values and in the result.
    fn block(&mut self, values: &mut [Expr], result: &mut Expr) -> CelType {
        let outside = self.locals.len();
        for (i, value) in values.iter_mut().enumerate() {
            let ty = self.expr(value);
            self.locals.push((format!("@index{i}").into(), ty));
        }
        let ty = self.expr(result);
        self.locals.truncate(outside);
        ty
    }

    /// Looks up a function and its qualified name.
    fn function(&self, name: &str) -> Option<(Arc<str>, &'e [&'static Overload])> {
        let scope: &'e BaseEnv = self.env.base();
        scope.resolve(name, |name| Some((name.into(), scope.overloads(name)?)))
    }

    /// Returns the overloads that fit the operands, and the result type.
    fn resolve(
        &mut self,
        id: ExprId,
        function: &str,
        overloads: &[&'static Overload],
        operands: &[CelType],
        style: Style,
        args: &[Expr],
    ) -> CelType {
        let mut result: Option<CelType> = None;
        let mut found = Vec::new();
        for overload in overloads.iter().filter(|o| o.style == style) {
            // cel-go checks the operands one by one, so that the error names the operand instead of the whole call.
            if matches!(function, "_&&_" | "_||_") {
                return self.logical(id, overload, operands, args);
            }
            if overload.params.len() != operands.len() {
                // cel-go instantiates the type parameters before it compares the arity.
                self.unifier.skip(n_type_params(overload));
                continue;
            }
            let (params, overload_result) = self.instantiate(overload);
            if !self.unifier.all_assignable(operands, &params) {
                continue;
            }
            found.push(*overload);
            let ty = self.unifier.resolve(&overload_result, Unbound::Keep);
            result = Some(match result {
                None => ty,
                // Several overloads fit if an operand is dynamic. Different result types leave the result open.
                Some(before) if matches!(before, CelType::Dyn) || same(&ty, &before) => before,
                Some(_) => CelType::Dyn,
            });
        }
        let Some(result) = result else {
            let mut types = operands
                .iter()
                // Only the operands of this message are free of variable names; other messages print `_var1`.
                .map(|t| self.unifier.resolve(t, Unbound::ToDyn).to_string());
            let receiver = match style {
                Style::Member => types.next().map_or_else(String::new, |t| format!("{t}.")),
                Style::Global => String::new(),
            };
            let types = types.collect::<Vec<_>>().join(", ");
            self.report(
                id,
                format!("found no matching overload for '{function}' applied to '{receiver}({types})'"),
            );
            return CelType::Error;
        };
        self.refer(id, Reference::Overloads(found));
        result
    }

    /// Reports the operand of `&&` or `||` that is not a boolean.
    fn logical(
        &mut self,
        id: ExprId,
        overload: &'static Overload,
        operands: &[CelType],
        args: &[Expr],
    ) -> CelType {
        let mut ty = CelType::Bool;
        for (operand, arg) in operands.iter().zip(args) {
            if !self.unifier.assignable(operand, &CelType::Bool) {
                self.mismatch(arg.id, &CelType::Bool, operand);
                ty = CelType::Error;
            }
        }
        self.refer(id, Reference::Overloads(vec![overload]));
        ty
    }

    /// An overload's signature with fresh variables in place of its type parameters.
    fn instantiate(&mut self, overload: &Overload) -> (Vec<CelType>, CelType) {
        let mut fresh: Vec<(&'static str, CelType)> = Vec::new();
        let params = overload
            .params
            .iter()
            .map(|p| self.fresh(*p, &mut fresh))
            .collect();
        let result = self.fresh(overload.result, &mut fresh);
        (params, result)
    }

    fn fresh(&mut self, ty: Ty, fresh: &mut Vec<(&'static str, CelType)>) -> CelType {
        match ty {
            Ty::Param(name) => match fresh.iter().find(|(n, _)| *n == name) {
                Some((_, var)) => var.clone(),
                None => {
                    let var = self.unifier.new_variable();
                    fresh.push((name, var.clone()));
                    var
                }
            },
            Ty::List(element) => CelType::list(self.fresh(*element, fresh)),
            Ty::Map(key, value) => CelType::map(self.fresh(*key, fresh), self.fresh(*value, fresh)),
            Ty::Type(of) => CelType::of_type(self.fresh(*of, fresh)),
            Ty::Optional(value) => CelType::optional(self.fresh(*value, fresh)),
            _ => ty.to_type(),
        }
    }

    fn list(&mut self, elements: &mut [Expr], optional: &[u32]) -> CelType {
        let mut all: Option<CelType> = None;
        for (n, element) in elements.iter_mut().enumerate() {
            let mut ty = self.expr(element);
            if optional.iter().any(|o| *o as usize == n) {
                ty = self.optional_entry(element.id, ty);
            }
            // Mixed elements are no error here but make the list dynamic; `validate` refuses them later, as cel-go's
            // validator does.
            all = Some(self.join(all, ty));
        }
        CelType::list(all.unwrap_or_else(|| self.unifier.new_variable()))
    }

    fn map(&mut self, entries: &mut [MapEntry]) -> CelType {
        let mut all: (Option<CelType>, Option<CelType>) = (None, None);
        for entry in entries {
            let key = self.expr(&mut entry.key);
            all.0 = Some(self.join(all.0.take(), key));
            let mut value = self.expr(&mut entry.value);
            if entry.optional {
                value = self.optional_entry(entry.value.id, value);
            }
            all.1 = Some(self.join(all.1.take(), value));
        }
        // An empty literal gets free variables, so that it is assignable to a list or map of any type.
        let key = all.0.unwrap_or_else(|| self.unifier.new_variable());
        let value = all.1.unwrap_or_else(|| self.unifier.new_variable());
        CelType::map(key, value)
    }

    /// The value type of an entry marked with `?`, which must have an optional type.
    fn optional_entry(&mut self, id: ExprId, ty: CelType) -> CelType {
        if let Some(value) = ty.optional_value() {
            return value.clone();
        }
        // Only optionals and dynamic values may be marked: the latter are checked at run time.
        if !matches!(ty, CelType::Dyn) {
            self.mismatch(id, &CelType::optional(ty.clone()), &ty);
        }
        ty
    }

    /// Joins the element type of a literal with the type of another element.
    fn join(&mut self, before: Option<CelType>, ty: CelType) -> CelType {
        let Some(before) = before else {
            return ty;
        };
        if self.unifier.assignable(&before, &ty) {
            return more_general(&before, &ty).clone();
        }
        CelType::Dyn
    }

    fn comprehension(&mut self, fold: &mut Comprehension) -> CelType {
        let range = self.expr(&mut fold.range);
        let accu = self.expr(&mut fold.accu_init);
        let range = self.unifier.resolve(&range, Unbound::Keep);
        let two = fold.iter_var2.is_some();
        let (first, second) = match range.unwrapped() {
            CelType::List(element) if two => (CelType::Int, element.as_ref().clone()),
            CelType::List(element) => (element.as_ref().clone(), CelType::Dyn),
            CelType::Map(entry) => (entry.0.clone(), entry.1.clone()),
            CelType::Dyn | CelType::Error | CelType::Var(_) | CelType::Param(_) => {
                // Binds a free variable to `dyn`; otherwise the loop body could bind it to a type that the range does
                // not have.
                self.unifier.assignable(&CelType::Dyn, &range);
                (CelType::Dyn, CelType::Dyn)
            }
            _ => {
                let message = format!(
                    "expression of type '{range}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.report(fold.range.id, message);
                (CelType::Error, CelType::Error)
            }
        };
        let outside = self.locals.len();
        // Two scopes, as in cel-go: the result sees the accumulator but not the loop variables.
        self.locals.push((Arc::clone(&fold.accu_var), accu.clone()));
        let inside = self.locals.len();
        // If both variables have the same name, the name refers to the first.
        if let Some(second_name) = fold.iter_var2.as_ref().filter(|name| **name != fold.iter_var) {
            self.locals.push((Arc::clone(second_name), second));
        }
        self.locals.push((Arc::clone(&fold.iter_var), first));
        self.asserted(&mut fold.condition, &CelType::Bool);
        // The accumulator keeps the type of its initial value, so every step must be assignable to it.
        self.asserted(&mut fold.step, &accu);
        self.locals.truncate(inside);
        let result = self.expr(&mut fold.result);
        self.locals.truncate(outside);
        self.unifier.resolve(&result, Unbound::Keep)
    }

    fn asserted(&mut self, e: &mut Expr, ty: &CelType) {
        let found = self.expr(e);
        if !self.unifier.assignable(ty, &found) {
            self.mismatch(e.id, ty, &found);
        }
    }

    fn refer(&mut self, id: ExprId, reference: Reference) {
        if let Some(place) = self.references.get_mut(id.0 as usize) {
            *place = Some(reference);
        }
    }

    fn report(&mut self, id: ExprId, message: impl Into<String>) {
        let offset = self
            .offsets
            .get(id.0 as usize)
            .copied()
            .filter(|o| *o != u32::MAX);
        // Nodes from macros may have no position; such an error is about the expression as a whole.
        self.issues.report(offset, message);
    }

    fn mismatch(&mut self, id: ExprId, expected: &CelType, found: &CelType) {
        self.report(id, format!("expected type '{expected}' but found '{found}'"));
    }

    fn undeclared(&mut self, id: ExprId, name: &str) {
        let container = self.env.base().container();
        self.report(
            id,
            format!("undeclared reference to '{name}' (in container '{container}')"),
        );
    }
}

/// Determines whether the type of a selected field becomes optional.
#[derive(Clone, Copy)]
enum OptionalWrap {
    /// Only if the operand is optional.
    AsOperand,
    /// Always.
    Always,
}

/// The number of type parameters of an overload. Each consumes a type variable even if the overload does not
/// match, because error messages show the numbers of type variables.
fn n_type_params(overload: &Overload) -> usize {
    fn collect(ty: Ty, names: &mut Vec<&'static str>) {
        match ty {
            Ty::Param(name) if !names.contains(&name) => names.push(name),
            Ty::List(of) | Ty::Type(of) | Ty::Optional(of) => collect(*of, names),
            Ty::Map(key, value) => {
                collect(*key, names);
                collect(*value, names);
            }
            _ => {}
        }
    }
    let mut names = Vec::new();
    for ty in overload.params.iter().chain([&overload.result]) {
        collect(*ty, &mut names);
    }
    names.len()
}

fn literal_type(literal: &Literal) -> CelType {
    match literal {
        Literal::Null => CelType::Null,
        Literal::Bool(_) => CelType::Bool,
        Literal::Int(_) => CelType::Int,
        Literal::Uint(_) => CelType::Uint,
        Literal::Double(_) => CelType::Double,
        Literal::String(_) => CelType::String,
        Literal::Bytes(_) => CelType::Bytes,
    }
}

/// The qualified name `a.b.c`, if the node consists only of a name and selections.
fn qualified_name(e: &Expr) -> Option<String> {
    match &e.kind {
        ExprKind::Ident(name) => Some(name.to_string()),
        ExprKind::Select {
            operand,
            field,
            test: false,
        } => {
            let mut name = qualified_name(operand)?;
            name.push('.');
            name.push_str(field);
            Some(name)
        }
        _ => None,
    }
}
